"""Work on other machines, with a real scheduler and two workers: what comes out is what comes out here."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from click.testing import CliRunner

from gradfix import plan as plans
from gradfix.cli import main
from gradfix.fleet.batches import BATCH

ROOT = Path(__file__).parents[2]
RUN = """
import signal, sys
from gradfix.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs start without it
main(prog_name="gradfix")
"""
WITHOUT = "import sys\nsys.modules['distributed'] = None\n"
BROKEN = """\
import torch
from helper import act

w = torch.ones(3, requires_grad=True)
for step in range(3):
    y = act(w)
    y += 1
    y.sum().backward()
"""
HELPER = "def act(x):\n    return x.sigmoid()\n"
PRELOADED = """
import os, time
from pathlib import Path
import gradfix.tape.entries as entries

played = getattr(entries, "played", entries.analyse)  # a worker loads this more than once

def tested(source, *rest):
    if "# slow" in source.text:
        with Path(os.environ["MARKS"]).open("a") as marks:
            marks.write(f"{os.getpid()}\\n")
        time.sleep(0.5)
    if "# deadly" in source.text:
        os._exit(1)
    return played(source, *rest)

entries.played, entries.analyse = played, tested
"""
OLDER = """
from importlib import metadata
version = getattr(metadata, "told", metadata.version)
metadata.told, metadata.version = version, lambda name: "0.0.9" if name == "gradfix" else version(name)
"""
NONE = OLDER.replace('"0.0.9" if', 'version("nothing of that name") if')
ALIKE = """
import gradfix.cache.key
gradfix.cache.key.own = lambda: "another checkout"
"""
"""Of the same version by name."""
WAITS = re.compile(r"^gradfix: no worker at .*\n", re.MULTILINE)
"""What is said where the workers are still on their way, as on a machine that has other things to do."""
LEFT = """
import sys, time
from distributed import Client

with Client(sys.argv[1], timeout=30) as client:
    for _ in range(100):
        left = client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))
        if not left:
            break
        time.sleep(0.1)
    print(left)
"""


class Cluster:
    """A scheduler with what it is told to start."""

    def __init__(self, folder: Path, stack: ExitStack, nannies: bool) -> None:
        self.folder = folder
        self.nannies = nannies
        self.stack = stack
        self.marks = folder / "marks"
        self.scheduler = self._start("dask_scheduler", "--host", "127.0.0.1", "--port", "0")
        self.address = self._said(r"Scheduler at:\s+(tcp://\S+)")

    def worker(self, *preloaded: str) -> None:
        """Start a worker, each as good as on a machine of its own: it sees nothing of the project."""
        place = self.folder / f"worker{len(list(self.folder.iterdir()))}"
        place.mkdir()
        words = [self.address, "--nthreads", "1", "--nanny" if self.nannies else "--no-nanny"]
        words += ["--local-directory", str(place)]
        for number, text in enumerate(preloaded):
            (place / f"preloaded{number}.py").write_text(text)
            words += ["--preload", str(place / f"preloaded{number}.py")]
        self._start("dask_worker", *words)

    def busy(self) -> int:
        """A worker that is in the middle of something, once there is one."""
        return int(_awaited(lambda: self.marks.read_text().split() if self.marks.exists() else [])[-1])

    def _start(self, program: str, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.{program}", "--no-dashboard", *words]
        settings = {
            "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1",
            "DASK_DISTRIBUTED__WORKER__MEMORY__TERMINATE": "False",
            "MARKS": str(self.marks),
        }
        log = self.stack.enter_context((self.folder / f"{program}.log").open("ab"))
        process = subprocess.Popen(
            command,
            cwd=self.folder,
            env=os.environ | settings,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        self.stack.callback(_ended, process)
        return process

    def registered(self, count: int) -> None:
        """Wait for so many workers."""
        self._said("Register worker", count)

    def _said(self, pattern: str, count: int = 1) -> str:
        log = self.folder / "dask_scheduler.log"
        return _awaited(lambda: re.findall(pattern, log.read_text())[count - 1 :])[0]


def _awaited(look: Callable[[], Sequence[str]]) -> Sequence[str]:
    """What there is to see in the end."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if seen := look():
            return seen
        time.sleep(0.02)
    raise TimeoutError


def _ended(process: subprocess.Popen[bytes]) -> None:
    """Away with a process and those that it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextmanager
def cluster(folder: Path, *workers: tuple[str, ...], nannies: bool = False) -> Iterator[Cluster]:
    """A cluster; with nannies, which start another worker in the place of one that dies."""
    with ExitStack() as stack:
        one = Cluster(folder, stack, nannies)
        for preloaded in workers:
            one.worker(*preloaded)
        yield one


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A scheduler with two workers."""
    with cluster(tmp_path_factory.mktemp("cluster"), (PRELOADED,), (PRELOADED,), nannies=True) as one:
        yield one


@pytest.fixture(autouse=True)
def _there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    Path("pyproject.toml").touch()
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("DASK_DISTRIBUTED__ADMIN__LARGE_GRAPH_WARNING_THRESHOLD", "1kB")


@contextmanager
def begun(*words: str, first: str = "") -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", first + RUN, *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def gradfix(*words: str, first: str = "") -> tuple[int, str, str]:
    """How a run ends, and what it says."""
    with begun(*words, first=first) as process:
        out, err = process.communicate(timeout=120)
        return process.returncode, out, err


def in_this_process(*words: str) -> tuple[int, str, str]:
    """The same of a run that needs no cluster: what it says is what counts of it."""
    plans.forget()
    done = CliRunner().invoke(main, ["-j1", "--no-cache", *words], prog_name="gradfix")
    return done.exit_code, done.stdout, done.stderr


def on(cluster: Cluster) -> tuple[str, str]:
    return "--executor", cluster.address.replace("tcp://", "dask://")


def make(count: int, text: str = "") -> None:
    """Files that are a batch each."""
    Path("helper.py").write_text(HELPER)
    for number in range(count):
        Path(f"{number:02}.py").write_text(f"{BROKEN}{text}{'#' * BATCH}\n")


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("--verbose",), id="a listing"),
        pytest.param(("--diff",), id="a diff"),
    ],
)
def test_a_cluster_says_what_this_machine_says(words: tuple[str, ...], two: Cluster) -> None:
    make(4)
    Path("broken.py").write_text("import torch\ndef f(:\n")
    Path("other.py").write_text("import json\n")
    here = in_this_process(*words)
    assert "00.py" in here[1] and here[0] == 2
    code, out, err = gradfix("--no-cache", *words, *on(two))
    assert (code, out, WAITS.sub("", err)) == here


def test_a_cluster_writes_what_this_machine_writes(two: Cluster) -> None:
    make(2)
    shown = in_this_process("--diff")[1]
    assert gradfix("--no-cache", "--apply", *on(two))[0] == 0
    assert "y = y + 1" in Path("01.py").read_text() and "+    y = y + 1" in shown
    assert in_this_process()[:2] == (0, "")


def test_a_worker_that_is_killed_in_the_middle_loses_nothing(two: Cluster) -> None:
    make(6, "# slow\n")
    here = in_this_process("--verbose")
    two.marks.unlink(missing_ok=True)
    with begun("--no-cache", "--verbose", *on(two)) as process:
        killed = two.busy()
        os.kill(killed, signal.SIGKILL)
        out, err = process.communicate(timeout=120)
    assert (process.returncode, out, err) == here
    ran = two.marks.read_text().split()
    assert str(killed) in ran and len(ran) > 6


def test_a_file_that_kills_its_workers_is_named_and_the_others_are_done(two: Cluster) -> None:
    for name in ("a", "c"):
        Path(f"{name}.py").write_text(BROKEN)
    Path("b.py").write_text(BROKEN + "# deadly\n")
    Path("helper.py").write_text(HELPER)
    code, out, err = gradfix("--no-cache", "--output-format", "concise", *on(two))
    assert (code, [line[:4] for line in out.splitlines()]) == (2, ["a.py", "c.py"])
    assert "b.py: failed (tape): the Python interpreter died of it" in err


def test_ctrl_c_leaves_at_once_and_nothing_behind(two: Cluster) -> None:
    make(24, "# slow\n")
    two.marks.unlink(missing_ok=True)
    with begun("--no-cache", *on(two)) as process:
        two.busy()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=10)
    assert (process.returncode, out, err) == (130, "", "interrupted\n")
    left = subprocess.run(
        [sys.executable, "-c", LEFT, two.address], capture_output=True, text=True, check=True
    )
    assert left.stdout == "0\n"
    assert len(two.marks.read_text().split()) < 24


def test_what_is_kept_needs_no_cluster(two: Cluster) -> None:
    make(2)
    first = gradfix(*on(two))
    assert first[0] == 1
    assert gradfix("--executor", "dask://127.0.0.1:1") == first
    assert gradfix() == first


def test_many_repositories_go_through_one_cluster(two: Cluster) -> None:
    for name in ("one", "two"):
        Path(name).mkdir()
        Path(name, "pyproject.toml").write_text(
            "[tool.gradfix]\n" + ("ignore = ['GF101']\n" * (name == "two"))
        )
        Path(name, "a.py").write_text(BROKEN)
        Path(name, "helper.py").write_text(HELPER)
    Path("list").write_text("one\ntwo\nthree\n")
    here = in_this_process("--from-list", "list")
    assert "one/a.py" in here[1] and "two" not in here[1]
    assert gradfix("--no-cache", "--from-list", "list", *on(two)) == here


def test_workers_with_another_gradfix_refuse_and_the_others_do_it(tmp_path: Path) -> None:
    make(4)
    here = in_this_process()
    (tmp_path / "cluster").mkdir()
    with cluster(tmp_path / "cluster", (OLDER,), (ALIKE,), (NONE,)) as one:
        one.registered(3)
        code, out, err = gradfix("--no-cache", *on(one))
        assert (code, out) == (2, "")
        assert "they must be the same" in err and re.search(r"; here is gradfix 0\.1\.0.*, libcst", err)
        for theirs in ("gradfix 0.0.9", "no gradfix", "gradfix 0.1.0 (a checkout, another ), Python"):
            assert re.search(rf"goes on without the worker tcp://\S+: it has {re.escape(theirs)}", err)
        one.worker()
        one.registered(4)
        code, out, err = gradfix("--no-cache", *on(one))
    assert (code, out) == here[:2]
    assert err.startswith("gradfix: goes on without the worker tcp://") and "it has gradfix 0.0.9" in err
    assert err.endswith(here[2])


def test_without_a_worker_it_waits_for_one(tmp_path: Path) -> None:
    make(1)
    here = in_this_process()
    (tmp_path / "cluster").mkdir()
    with cluster(tmp_path / "cluster") as one, begun("--no-cache", *on(one)) as process:
        assert process.stderr is not None
        assert "no worker at tcp://" in process.stderr.readline()
        one.worker()
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == here


def test_a_scheduler_that_goes_away_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(4, "# slow\n")
    monkeypatch.setenv("DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT", "2s")
    (tmp_path / "cluster").mkdir()
    with cluster(tmp_path / "cluster", (PRELOADED,)) as one, begun("--no-cache", *on(one)) as process:
        one.busy()
        os.killpg(one.scheduler.pid, signal.SIGKILL)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err.count("Traceback")) == (2, "", 0), err
    assert re.search(r"--executor: the scheduler at tcp://\S+ is gone", err)


@pytest.mark.parametrize(
    ("words", "first", "said"),
    [
        pytest.param(
            ("--executor", "dask://127.0.0.1:1"),
            "",
            "--executor: no dask scheduler answers at tcp://127.0.0.1:1",
            id="where there is none",
        ),
        pytest.param(
            ("--executor", "dask://127.0.0.1:1"),
            WITHOUT,
            "--executor needs distributed: pip install 'gradfix[dask]'",
            id="without the extra",
        ),
        pytest.param(
            ("--executor", "spark://127.0.0.1:1"), "", "is no address of a scheduler", id="of another kind"
        ),
        pytest.param(
            ("--executor", "dask://localhost"), "", "is no address of a scheduler", id="without a port"
        ),
        pytest.param(
            ("--executor", "dask://127.0.0.1:1", "-j", "2"),
            "",
            "--executor does not go with --jobs",
            id="with processes here",
        ),
    ],
)
def test_who_is_called_wrongly_is_told(
    words: tuple[str, ...], first: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(1)
    monkeypatch.setenv("DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT", "1s")
    code, out, err = gradfix("--no-cache", *words, first=first)
    assert (code, out, "Traceback" in err) == (2, "", False)
    assert said in err


def test_nothing_else_needs_the_extra() -> None:
    make(1)
    code, out, err = gradfix("--no-cache", first=WITHOUT)
    assert (code, "GF101" in out, "distributed" in err) == (1, True, False)
