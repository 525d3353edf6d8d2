"""A torch that is not as expected, and runs that broke: the program goes on, the verdict says so."""

from __future__ import annotations

import importlib
import math
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from gradfix.cli import main
from gradfix.trace.report import CALLS, STEPS, Recording
from gradfix.verify import Command, Launcher, Verdict, judge
from gradfix.verify.launch import Job

pytestmark = pytest.mark.torch

HEAD = """import torch, torch.nn as nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(8, 4)
"""
HEALTHY = """for _ in range(3):
    opt.zero_grad()
    model(x).sum().backward()
    opt.step()
"""
BROKEN = "h = model[1](model[0](x))\nh += 1\nmodel[2](h).sum().backward()\nprint('lived')\n"
NO_HOOKS = "import torch.optim.optimizer as o; del o.register_optimizer_step_pre_hook"
NO_CLIPPING = "del torch.nn.utils.clip_grad_value_"
STATIC_APPLY = (
    "real = torch.autograd.Function.__dict__['apply']; "
    "odd = type('Odd', (), {'__get__': lambda s, i, c=None: real.__get__(None, c)})(); "
    "torch.autograd.Function.apply = odd"
)


def python(folder: Path, *changes: str) -> str:
    """An interpreter whose torch is another one."""
    code = "; ".join(["import sys, runpy, torch", *changes])
    start = "sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    (folder / "changed.py").write_text(f"{code}\n{start}\n")
    script = folder / "python"
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {folder / "changed.py"} "$@"\n')
    script.chmod(0o755)
    return str(script)


def run(folder: Path, interpreter: str, body: str) -> Recording:
    (folder / "train.py").write_text(HEAD + body)
    with Launcher(interpreter) as launcher:
        return launcher.run(Job(Command("script", str(folder / "train.py")), str(folder)))


def judged(folder: Path, interpreter: str | None, before: str, after: str) -> Verdict:
    path = str(folder / "train.py")
    (folder / "train.py").write_text(HEAD + before)
    first, second = ({path: (HEAD + body).encode()} for body in (before, after))
    with Launcher(interpreter) as launcher:
        return judge(first, second, Command("script", path), None, launcher)[0]


@pytest.mark.parametrize(
    ("change", "part"),
    [(NO_CLIPPING, "clipping"), (STATIC_APPLY, "custom Functions")],
    ids=["clipping", "apply"],
)
def test_a_part_of_torch_that_is_missing_is_named_and_the_program_goes_on(
    change: str, part: str, tmp_path: Path
) -> None:
    own = "class F(torch.autograd.Function):\n    forward = staticmethod(lambda c, a: a * 2)\nF.apply(x)\n"
    seen = run(tmp_path, python(tmp_path, change), own + HEALTHY + "print('lived')\n")
    assert (seen["how"], seen["stdout"], seen["stderr"]) == ("stopped", "", "")
    assert list(seen["blind"]) == [part]
    assert [event["event"] for event in seen["events"]].count("step") == 3


def test_a_verdict_names_what_the_recorder_could_not_look_into(tmp_path: Path) -> None:
    said = judged(tmp_path, python(tmp_path, NO_CLIPPING), BROKEN, BROKEN.replace("h += 1", "h = h + 1"))
    assert said.verdict == "flows"
    assert "not looked into: clipping (AttributeError: " in said.reason


def test_without_the_hooks_of_optimizers_there_is_no_verdict(tmp_path: Path) -> None:
    interpreter = python(tmp_path, NO_HOOKS)
    said = judged(tmp_path, interpreter, HEALTHY, HEALTHY.replace("3", "2"))
    assert said.verdict == "could not run"
    assert said.reason.startswith("the recorder failed under torch ")
    assert f"{STEPS} (AttributeError: " in said.reason
    assert set(run(tmp_path, interpreter, HEALTHY)["blind"]) == {STEPS}


def test_what_could_not_be_run_is_written_by_nobody_and_is_2(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(HEAD + HEALTHY + BROKEN)
    interpreter = python(tmp_path, NO_HOOKS)
    words = ["--apply", "--verify=lenient", "--python", interpreter, str(tmp_path / "train.py")]
    done = subprocess.run(
        [sys.executable, "-m", "gradfix", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "could not run (the recorder failed" in done.stderr
    assert "h += 1" in (tmp_path / "train.py").read_text()
    ran = [sys.executable, "-m", "gradfix", "run", "--python", interpreter, str(tmp_path / "train.py")]
    done = subprocess.run(ran, capture_output=True, text=True, check=False)
    assert done.returncode == 1, "the broken rule that was seen all the same is told"
    assert "GF101" in done.stdout


def test_a_mistake_at_every_call_never_reaches_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    torch: Any = importlib.import_module("torch")
    from gradfix.trace import mode
    from gradfix.trace.session import Session

    monkeypatch.setattr(mode, "versioned", None)
    session = Session(lambda _: None)
    session.start()
    try:
        w = torch.ones(2, requires_grad=True)
        y = (w * 2).sum()
        y.backward()
        assert w.grad is not None and w.detach().tolist() == [1.0, 1.0]
        with pytest.raises(RuntimeError, match="a second time"):
            twice(w)
    finally:
        session.stop()
    assert session.state.blind[CALLS].startswith("TypeError: ")


def twice(w: Any) -> None:
    loss = (w * w).sum()
    loss.backward()
    loss.backward()


def test_an_untried_torch_is_checked_and_the_report_says_so(tmp_path: Path) -> None:
    seen = run(tmp_path, python(tmp_path, "torch.__version__ = '2.99.0'"), HEALTHY)
    assert seen["how"] == "stopped" and not seen["blind"]
    assert seen["notes"][0].endswith("not with 2.99.0; its self-check of 8 programs passed")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (NO_HOOKS, "steps of optimizers (AttributeError"),
        ("torch.Tensor.backward = lambda t: None", "nothing seen where there is inplace_overwrites_saved"),
    ],
    ids=["no hooks", "a backward past torch.autograd"],
)
def test_an_untried_torch_that_fails_the_check_is_not_trusted(change: str, why: str, tmp_path: Path) -> None:
    interpreter = python(tmp_path, "torch.__version__ = '2.99.0'", change)
    said = judged(tmp_path, interpreter, BROKEN, BROKEN.replace("h += 1", "h = h + 1"))
    assert said.verdict == "could not run"
    assert "not with 2.99.0, and its self-check failed: " in said.reason and why in said.reason


LOST = {
    "rubbish in every open file": (
        "import os\nfor fd in range(3, 99):\n"
        '    try: os.write(fd, b\'rubbish\\n[1]\\n{"event": "step"}\\n\')\n'
        "    except OSError: pass\n",
        "the program wrote into the channel of the recorder",
    ),
    "every file closed": ("import os\nos.closerange(3, 4096)\n", "the recorder was not heard to the end"),
    "another file under the channel's number": (
        "import os\nos.closerange(3, 4096)\nfiles = [open('own%d.txt' % n, 'w') for n in range(90)]\n"
        "import atexit\natexit.register(lambda: [print(f.tell()) for f in files])\n",
        "the recorder was not heard to the end",
    ),
    "an end in native code": ("import ctypes\nctypes.CDLL(None)._exit(0)\n", "the recorder was not heard"),
}


@pytest.mark.parametrize("name", LOST)
def test_without_a_channel_there_is_no_verdict_after(name: str, tmp_path: Path) -> None:
    body, why = LOST[name]
    said = judged(tmp_path, None, body + BROKEN, body + BROKEN.replace("h += 1", "h = h + 1"))
    assert said.verdict == "could not run" and said.reason.startswith(why)


GAN = """del opt
G, D = nn.Linear(2, 2), nn.Linear(2, 1)
opt_g, opt_d = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
for i in range(60):
    opt_d.zero_grad()
    D(G(torch.randn(4, 2)).detach()).mean().backward()
    opt_d.step()
    if i % 60 == {}:
        opt_g.zero_grad()
        D(G(torch.randn(4, 2))).mean().backward()
        opt_g.step()
"""


@pytest.mark.usefixtures("one_server")
def test_gradients_flow_once_every_optimizer_has_stepped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert closing(tmp_path, GAN.format(40), capsys) == ("gradients flow", 0)


@pytest.mark.usefixtures("one_server")
def test_gradients_are_accumulated_for_as_long_as_it_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = "for i in range(200):\n    (model(x).mean() / 8).backward()\n    if i % 8 == 7:\n"
    assert closing(tmp_path, body + "        opt.step(); opt.zero_grad()\n", capsys) == ("gradients flow", 0)


@pytest.mark.usefixtures("one_server")
def test_what_is_frozen_is_named_in_the_closing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said, code = closing(tmp_path, "model[0].requires_grad_(False)\n" + HEALTHY, capsys)
    assert (said, code) == ("gradients flow; frozen: model.0.weight, model.0.bias", 0)


@pytest.mark.usefixtures("one_server")
def test_an_optimizer_that_never_stepped_is_named_with_the_steps_seen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said, code = closing(tmp_path, GAN.format(99), capsys)
    wanted = "gradients flow to 2 of 4 parameters; never stepped: opt_g (steps seen: 60 of opt_d)"
    assert (said, code) == (wanted, 0)


@pytest.mark.usefixtures("one_server")
def test_an_optimizer_around_another_one_is_not_waited_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrapped = "outer = torch.optim.SGD(model.parameters(), lr=0.1)\n" + HEALTHY.replace("3", "10**9")
    assert closing(tmp_path, wrapped, capsys) == ("gradients flow", 0)


@pytest.mark.usefixtures("one_server")
def test_a_parameter_without_a_gradient_is_counted_in_the_closing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = "spare = nn.Linear(4, 4)\nopt.add_param_group({'params': [*spare.parameters()]})\n" + HEALTHY
    assert closing(tmp_path, body, capsys) == ("gradients flow to 4 of 6 parameters", 0)


def closing(folder: Path, body: str, capsys: pytest.CaptureFixture[str]) -> tuple[str, Any]:
    """The last line of the report of `gradfix run`, and the exit code."""
    (folder / "train.py").write_text(HEAD + body)
    with pytest.raises(SystemExit) as stop:
        main(["run", str(folder / "train.py")])
    return capsys.readouterr().out.splitlines()[-1], stop.value.code


def left(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith("gradfix-")]


@pytest.mark.parametrize("ended_by", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT], ids=lambda one: one.name)
def test_who_is_ended_politely_leaves_no_folder(ended_by: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "endless.py").write_text("import time\nprint('begun', flush=True)\ntime.sleep(600)\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "gradfix", "run", "endless.py"], cwd=tmp_path, stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path)}, text=True,
        # What a shell starts behind an `&` would ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    assert process.stderr is not None
    while "begun" not in process.stderr.readline():
        assert process.poll() is None
    assert len(left(tmp_path)) == 1
    process.send_signal(ended_by)
    assert process.wait(30) == 128 + ended_by
    process.stderr.close()
    assert left(tmp_path) == []


def test_the_next_run_sweeps_what_a_killed_one_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    for name in (f"gradfix-{gone.pid}-abc", f"gradfix-{os.getppid()}-abc", "gradfix-torches"):
        (tmp_path / name / "inner").mkdir(parents=True)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with Launcher():
        pass
    assert sorted(left(tmp_path)) == [f"gradfix-{os.getppid()}-abc", "gradfix-torches"]


def test_one_limit_holds_for_all_runs_together_and_the_endless_run_once(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    endless = b"import time\ntime.sleep(600)\n"
    begun = time.monotonic()
    with Launcher(seconds=math.inf) as launcher:
        launcher.run(Job(Command("script", str(path)), str(tmp_path), {str(path): b""}))
        launcher.until = time.monotonic() + 4
        first = judge(
            {str(path): endless}, {str(path): endless + b"#"}, Command("script", str(path)), None, launcher
        )
        later = judge({str(path): b"1"}, {str(path): b"2"}, Command("script", str(path)), None, launcher)
    assert [said.verdict for said in first + later] == ["could not run"] * 2
    assert [said.reason for said in first + later] == ["the time for all runs is used up (--time-limit)"] * 2
    assert time.monotonic() - begun < 60


def test_the_memory_limit_is_the_users(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "train.py").write_text("held = []\nwhile True: held.append(b'x' * 10_000_000)\n")
    with pytest.raises(SystemExit) as stop:
        main(["run", "--memory-limit", "0.8", str(tmp_path / "train.py")])
    assert (stop.value.code, capsys.readouterr().out) == (2, "could not run: held more than 0.8 GB\n")
