"""Programs that misbehave: an answer with a reason each time, no process left, nothing written."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gradfix.trace.processes import descendants
from gradfix.trace.report import Recording
from gradfix.verify.launch import ADVICE, Command, Job, Launcher, Limits

pytestmark = pytest.mark.torch

TRAINS = """
import torch as th
w = th.ones(3, requires_grad=True)
(w * w).sum().backward()
"""

ENDS = {
    "a script that hangs": ("while True: pass", "time"),
    "a script that sleeps with signals blocked": (
        "import signal, time\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\ntime.sleep(600)",
        "time",
    ),
    "os._exit": ("import os\nos._exit(3)", "exit"),
    "SystemExit": ("raise SystemExit(0)", "finished"),
    "SystemExit with a message": ("raise SystemExit('no data')", "exit"),
    "a crash in native code": ("import ctypes\nctypes.string_at(0)", "signal"),
    "abort": ("import os\nos.abort()", "signal"),
    "more memory than there is": ("x = th.ones(50_000_000_000, dtype=th.uint8)", "memory"),
    "memory eaten bit by bit": ("held = []\nwhile True: held.append(b'x' * 50_000_000)", "memory"),
    "a fork whose child lives on": (
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(600)",
        "finished",
    ),
    "a daemon, forked twice": (
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0: time.sleep(600)\n"
        "    os._exit(0)",
        "finished",
    ),
    "a child process that never ends": (
        "import subprocess\nsubprocess.Popen(['sleep', '600'])",
        "finished",
    ),
    "megabytes of output": ("for _ in range(300): print('x' * 100_000)", "finished"),
    "a fork bomb's first hundred": (
        "import os, time\nfor _ in range(100):\n    if os.fork() == 0:\n        time.sleep(600)",
        "finished",
    ),
    "a script that reads standard input": ("input()", "error"),
    "a script that deletes itself": ("import os\nos.remove(__file__)", "finished"),
    "a missing file": ("open('nothing.csv')", "error"),
    "no such module": ("import nothing_of_that_name", "error"),
    "a syntax error": ("def (", "error"),
    "deep recursion": ("def f(): f()\nf()", "error"),
    "every file descriptor closed": ("import os\nos.closerange(3, 4096)", ""),
    "a torch mode of its own": (
        "from torch.overrides import TorchFunctionMode\n"
        "class Mode(TorchFunctionMode):\n"
        "    def __torch_function__(self, f, t, a=(), k=None): return f(*a, **(k or {}))\n"
        "with Mode(): (w * w).sum().backward()",
        "finished",
    ),
    "saved tensor hooks of its own": (
        "with th.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t): (w * w).sum().backward()",
        "finished",
    ),
    "torch.compile": (
        "f = th.compile(lambda x: (x * 2).sum())\nf(w).backward()",
        "finished",
    ),
    "anomaly mode": ("with th.autograd.set_detect_anomaly(True): (w * w).sum().backward()", "finished"),
    "data loader workers": (
        "from torch.utils.data import DataLoader, TensorDataset\n"
        "for (x,) in DataLoader(TensorDataset(th.ones(8, 3)), batch_size=4, num_workers=2):\n"
        "    (w * x).sum().backward()",
        "finished",
    ),
    "tracebacks switched off": ("import sys\nsys.tracebacklimit = 0\n1 / 0", "error"),
    "a thread that never ends": (
        "import threading, time\nthreading.Thread(target=time.sleep, args=(600,), daemon=False).start()",
        "finished",
    ),
}

SAVES = {
    "torch.save": "th.save(w, 'model.pt')",
    "torch.save to a folder made for it": "import os\nos.makedirs('a/b')\nth.save(w, 'a/b/model.pt')",
    "open": "open('model.txt', 'w').write('x')",
    "pathlib": "from pathlib import Path\nPath('model.txt').write_text('x')",
    "numpy": "import numpy\nnumpy.save('model.npy', w.detach().numpy())",
    "a shared mapping": "th.from_file('held.bin', shared=True, size=3).fill_(7)",
    "os.replace over a file": "open('t', 'w').write('x')\nimport os\nos.replace('t', 'held.bin')",
    "a checkpoint read back": "th.save({'w': w}, 'c.pt')\nassert th.equal(th.load('c.pt')['w'], w)",
    "shutil.rmtree": "import shutil\nshutil.rmtree('folder')",
    "another process": "import subprocess\nsubprocess.run(['sh', '-c', 'echo x > made; rm held.bin'])",
    "an absolute path outside": "open('/usr/gradfix-was-here', 'w').write('x')",
    "the home folder": "import os\nopen(os.path.expanduser('~/.gradfix-was-here'), 'w').write('x')",
}


@pytest.fixture(scope="module")
def bystanders() -> set[int]:
    """The processes that other tests keep warm."""
    return set(descendants(os.getpid()))


@pytest.fixture(scope="module")
def launcher(bystanders: set[int]) -> Iterator[Launcher]:
    with Launcher() as one:
        yield started(one, bystanders)


def started(launcher: Launcher, bystanders: set[int]) -> Launcher:
    launcher.run(Job(Command("script", os.devnull), os.getcwd()))
    assert launcher.server is not None
    bystanders.add(launcher.server.process.pid)
    return launcher


def run(launcher: Launcher, folder: Path, body: str, limits: Limits) -> Recording:
    path = folder / "program.py"
    path.write_text(TRAINS + textwrap.dedent(body) + "\n")
    return launcher.run(Job(Command("script", str(path)), str(folder), limits=limits))


@pytest.mark.parametrize("name", ENDS)
def test_ends_with_a_reason_and_leaves_nothing_behind(
    name: str, launcher: Launcher, bystanders: set[int], tmp_path: Path
) -> None:
    ends(name, launcher, bystanders, tmp_path)


def ends(name: str, launcher: Launcher, bystanders: set[int], tmp_path: Path) -> None:
    body, how = ENDS[name]
    limit = 3.0 if how == "time" or "thread" in name else 60.0
    started = time.monotonic()
    recording = run(launcher, tmp_path, body, Limits(seconds=limit, memory=8e8))
    assert time.monotonic() - started < limit + 20
    allowed = {how} if how else {"finished", "killed", "error"}
    if how == "memory":
        allowed.add("error")
    if name == "a thread that never ends":
        allowed.add("time")
    assert recording["how"] in allowed, recording["stderr"]
    if recording["how"] == "error":
        assert recording["error"] is not None and recording["error"]["type"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["program.py"]
    assert set(descendants(os.getpid())) <= bystanders, "the servers should be alone"
    assert len(recording["stdout"]) < 100_000


@pytest.mark.parametrize("namespaces", [True, False], ids=["in a namespace", "without namespaces"])
@pytest.mark.parametrize("name", SAVES)
def test_no_file_of_the_user_is_changed_by(
    name: str, namespaces: bool, launcher: Launcher, tmp_path: Path
) -> None:
    changes_nothing(SAVES[name], Limits(seconds=10, namespaces=namespaces), launcher, tmp_path)


def changes_nothing(body: str, limits: Limits, launcher: Launcher, tmp_path: Path) -> None:
    (tmp_path / "held.bin").write_bytes(b"twelve bytes")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "inner").write_text("kept")
    recording = run(launcher, tmp_path, body, limits)
    names = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*"))
    assert names == ["folder", "folder/inner", "held.bin", "program.py"]
    assert (tmp_path / "held.bin").read_bytes() == b"twelve bytes"
    assert not Path("/usr/gradfix-was-here").exists()
    assert not Path("~/.gradfix-was-here").expanduser().exists()
    assert recording["how"] in ("finished", "error")
    if recording["how"] == "error" and not limits.namespaces:
        assert recording["held_back"], recording["stderr"]


ANEW = (
    "a script that hangs", "os._exit", "SystemExit", "a crash in native code",
    "more memory than there is", "memory eaten bit by bit", "a fork whose child lives on",
    "a daemon, forked twice", "megabytes of output",
    "a script that reads standard input", "every file descriptor closed",
    "a thread that never ends",
)  # fmt: skip
"""Ends that depend on how the process was made."""
LEAVES = """
import os, sys, threading, time
from gradfix.trace.processes import descendants
from gradfix.verify.launch import Command, Job, Launcher

def leave():
    while len(descendants(os.getpid())) < 2:
        time.sleep(0.05)
    time.sleep(1)
    print(*descendants(os.getpid()), flush=True)
    os._exit(0)

threading.Thread(target=leave).start()
Launcher(anew=True).run(Job(Command("script", "program.py"), sys.argv[1]))
"""
"""A program that starts a run and is gone before its end."""


@pytest.fixture(scope="module")
def forkless(bystanders: set[int]) -> Iterator[Launcher]:
    with Launcher(anew=True) as one:
        yield started(one, bystanders)


@pytest.mark.parametrize("name", ANEW)
def test_without_fork_ends_with_a_reason_and_leaves_nothing_behind(
    name: str, forkless: Launcher, bystanders: set[int], tmp_path: Path
) -> None:
    ends(name, forkless, bystanders, tmp_path)


@pytest.mark.parametrize("name", ["torch.save", "pathlib", "another process", "the home folder"])
def test_without_fork_no_file_of_the_user_is_changed_by(
    name: str, forkless: Launcher, tmp_path: Path
) -> None:
    changes_nothing(SAVES[name], Limits(seconds=20, namespaces=False), forkless, tmp_path)


def test_without_fork_nothing_outlives_a_parent_that_has_gone(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("print('begun', flush=True)\nwhile True: pass\n")
    done = subprocess.run([sys.executable, "-c", LEAVES, str(tmp_path)], capture_output=True, check=True)
    pids = [int(pid) for pid in done.stdout.split()]
    assert len(pids) == 2, done.stderr
    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def test_says_what_it_held_back_and_which_option_allows_it(launcher: Launcher, tmp_path: Path) -> None:
    limits = Limits(namespaces=False)
    recording = run(launcher, tmp_path, SAVES["torch.save"], limits)
    assert recording["how"] == "finished"
    assert recording["held_back"] == ["write to model.pt (allowed by --verify-allow-writes)"]


def test_writes_where_it_is_allowed_to(launcher: Launcher, tmp_path: Path) -> None:
    run(launcher, tmp_path, SAVES["torch.save"], Limits(allow_writes=True))
    assert (tmp_path / "model.pt").exists()


def test_lays_the_patched_text_over_scripts_and_imports(launcher: Launcher, tmp_path: Path) -> None:
    (tmp_path / "layers.py").write_text("WORD = 'old'\n")
    (tmp_path / "main.py").write_text("import layers, torch, inspect\nprint(layers.WORD, 'old')\n")
    texts = {
        str(tmp_path / "layers.py"): b"WORD = 'patched'\n",
        str(tmp_path / "main.py"): b"import layers, inspect\n"
        b"print(layers.WORD, __file__, inspect.getsource(layers).strip())\n",
    }
    for namespaces in (True, False):
        limits = Limits(namespaces=namespaces)
        job = Job(Command("script", "main.py"), str(tmp_path), texts, limits)
        assert launcher.run(job)["stdout"] == "patched main.py WORD = 'patched'\n"
    assert (tmp_path / "layers.py").read_text() == "WORD = 'old'\n"
    assert not (tmp_path / "__pycache__").exists()


def test_runs_modules_and_pytest_selections(launcher: Launcher, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TRAINS + "def test_it():\n    (w * w).sum().backward()\n")
    for command in (Command("module", "test_it"), Command("pytest", "test_it.py", ("-q",))):
        recording = launcher.run(Job(command, str(tmp_path)))
        assert recording["how"] == "finished", recording["stderr"]
        assert next(event["event"] for event in recording["events"]) == "backward"


def test_an_interpreter_without_torch_is_named(tmp_path: Path) -> None:
    import shutil

    python = next((p for p in ("/usr/bin/python3", shutil.which("python3")) if p), "")
    bare = tmp_path / "bare"
    bare.write_text(f'#!/bin/sh\nexec {python} -S -E "$@"\n')
    bare.chmod(0o755)
    with Launcher(str(bare)) as launcher:
        recording = run(launcher, tmp_path, "", Limits())
    assert recording["how"] == "no torch"
    assert recording["stderr"] == f"no torch in {bare}; {ADVICE}"


def test_an_interpreter_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with Launcher(str(tmp_path / "nothing")) as launcher:
        assert "No such file" in run(launcher, tmp_path, "", Limits())["stderr"]
