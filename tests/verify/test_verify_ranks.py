"""Training in processes that the program starts: each is recorded, and what they say is merged by rank."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gradfix.config import Config
from gradfix.outcome import Mode
from gradfix.plan import plan_for
from gradfix.run import Told, Wish, run
from gradfix.verify import Launcher, Limits, parse_command

pytestmark = pytest.mark.torch

TRAIN = """import os, sys, time, torch, torch.distributed as dist, torch.nn as nn, torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP

def group(rank, world):
    store = "file://" + os.path.abspath("store")
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=world)

def parts():
    model = nn.Sequential(nn.Linear(4, 8), nn.Sigmoid(), nn.Linear(8, 1))
    return model, torch.optim.SGD(model.parameters(), lr=0.1)

def worker(rank, world):
    group(rank, world)
    model, opt = parts()
    ddp = DDP(model)
    for step in range(5):
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        {forward}
        opt.zero_grad()
        {before}
        loss.backward()
        {step}
    dist.destroy_process_group()

if __name__ == "__main__":
    mp.start_processes(worker, args=(2,), nprocs=2, start_method="{method}")
"""
ABORTS = 4
"""How often a program is run that gloo aborts: its threads do so now and then, without gradfix as well."""
FORWARD, STEP = "loss = nn.functional.mse_loss(ddp(x), y)", "opt.step()"
OVERWRITTEN = "h = model[1](model[0](x)); h += 1; loss = model[2](h).sum()"


@pytest.fixture(scope="module")
def launcher() -> Iterator[Launcher]:
    with Launcher() as one:
        yield one


def program(forward: str = FORWARD, before: str = "pass", step: str = STEP, method: str = "fork") -> str:
    return TRAIN.format(forward=forward, before=before, step=step, method=method)


def told(
    launcher: Launcher,
    folder: Path,
    text: str,
    limits: Limits | None = None,
    words: str = "",
    mode: Mode = "list",
) -> Told:
    (folder / "train.py").write_text(text)
    line = words or str(folder / "train.py")
    wish = Wish(
        parse_command(line.split()),
        plan_for(Config(folder)),
        mode,
        limits=limits or Limits(seconds=60),
        echo=False,
    )
    for _ in range(ABORTS):
        found = run(wish, launcher)
        if "SIGABRT" not in found.broken:
            break
    return found


def in_time(launcher: Launcher, folder: Path, text: str, until: str) -> str:
    """What is said of a program that hangs, once it had the time to come to where it does."""
    broken = ""
    for seconds in (5, 10, 20, 40, 80):
        broken = told(launcher, folder, text, Limits(seconds=seconds)).broken
        assert broken.startswith(f"still running after {seconds} s; ")
        if until in broken:
            break
    return broken


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize("namespaces", [True, False], ids=["in a namespace", "without namespaces"])
def test_ranks_that_train_flow(method: str, namespaces: bool, launcher: Launcher, tmp_path: Path) -> None:
    found = told(launcher, tmp_path, program(method=method), Limits(seconds=60, namespaces=namespaces))
    assert not found.broken
    assert found.exit_code == 0
    assert len(found.last.fine) == 4
    assert found.last.recording["apart"] == []
    assert "recorded on ranks 0-1" in found.last.recording["notes"]
    assert found.last.recording["steps"] == {"opt": 3}


def test_a_broken_rule_on_all_ranks_is_said_once_and_mended(launcher: Launcher, tmp_path: Path) -> None:
    found = told(launcher, tmp_path, program(OVERWRITTEN), mode="diff")
    (outcome,) = found.outcomes
    assert [(one.code, one.span.line) for one in outcome.findings] == [("GF101", 18)]
    assert [verdict.verdict for verdict in outcome.verdicts] == ["flows"]
    assert "inplace_overwrites_saved in line 18: on ranks 0-1" in found.first.recording["notes"]


def test_a_rank_that_never_steps_is_named(launcher: Launcher, tmp_path: Path) -> None:
    found = told(launcher, tmp_path, program(step="rank or opt.step()"))
    assert found.last.recording["apart"] == ["rank 1 never steps opt (steps seen: 3 on rank 0)"]


def test_a_rank_without_a_gradient_is_named(launcher: Launcher, tmp_path: Path) -> None:
    found = told(
        launcher,
        tmp_path,
        program("loss = model[2](torch.ones(1, 8)).sum() if rank else model(x).sum()"),
    )
    assert len(found.last.recording["apart"]) == 1
    assert found.last.recording["apart"][0].startswith("no gradient on rank 1 at model.0.bias and 1 more")


def test_a_rank_that_fails_is_what_went_wrong(launcher: Launcher, tmp_path: Path) -> None:
    found = told(launcher, tmp_path, program(before="rank and model.nothing"))
    assert "AttributeError, line 20: 'Sequential' object has no attribute 'nothing'" in found.broken


def test_a_rank_that_is_killed_is_no_healthy_training(launcher: Launcher, tmp_path: Path) -> None:
    found = told(launcher, tmp_path, program(before="step and rank and os.kill(os.getpid(), 9)"))
    assert found.broken.startswith("the program failed (")
    assert "rank 1 ended without a word" in found.broken


def test_a_rank_that_hangs_is_named(launcher: Launcher, tmp_path: Path) -> None:
    found = in_time(
        launcher, tmp_path, program(before="step and rank and time.sleep(600)"), "rank 1 stood in line 20"
    )
    assert found.endswith(" s; rank 0 stood in line 21, rank 1 stood in line 20")


def test_a_rank_that_never_joins_is_named(launcher: Launcher, tmp_path: Path) -> None:
    text = program().replace(
        "    group(rank, world)\n", "    rank and time.sleep(600)\n    group(rank, world)\n"
    )
    found = in_time(launcher, tmp_path, text, "ForkProcess-2 stood in line 13")
    assert " s; nothing was heard of rank 1; no backward on rank 0" in found
    assert found.endswith("rank 0 stood in line 6, ForkProcess-2 stood in line 13")


POOL = """import torch, torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset
if __name__ == "__main__":
    model = nn.Linear(4, 1)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    data = TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
    for x, y in DataLoader(data, batch_size=4, num_workers=2, multiprocessing_context="{method}"):
        opt.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        opt.step()
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_of_a_loader_are_left_alone(method: str, launcher: Launcher, tmp_path: Path) -> None:
    found = told(launcher, tmp_path, POOL.format(method=method))
    recording = found.last.recording
    assert (found.exit_code, recording["how"], recording["notes"], recording["apart"]) == (
        0,
        "stopped",
        [],
        [],
    )
    assert recording["steps"] == {"opt": 3}


HOGWILD = """import os, torch, torch.nn as nn, torch.multiprocessing as mp
def train(model, index):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        opt.zero_grad()
        {body}
        opt.step()
if __name__ == "__main__":
    model = nn.Linear(4, 1)
    model.share_memory()
    context = mp.get_context("fork")
    group = [context.Process(target=train, args=(model, index)) for index in range(2)]
    for one in group: one.start()
    for one in group: one.join()
"""


def test_processes_without_ranks_are_called_by_their_names(launcher: Launcher, tmp_path: Path) -> None:
    found = told(launcher, tmp_path, HOGWILD.format(body="model(torch.ones(2, 4)).sum().backward()"))
    assert found.exit_code == 0
    assert set(found.last.fine) == {"model.weight", "model.bias"}
    assert "recorded on ForkProcess-1, ForkProcess-2" in found.last.recording["notes"]


def test_a_process_that_failed_unnoticed_is_named(launcher: Launcher, tmp_path: Path) -> None:
    body = "model(torch.ones(2, 4 + index)).sum().backward()"
    found = told(launcher, tmp_path, HOGWILD.format(body=body))
    assert found.last.recording["apart"][0].startswith("ForkProcess-2 failed (RuntimeError: ")
    assert "mat1 and mat2" in found.last.recording["apart"][0]


def test_a_process_that_left_with_an_exit_code_unnoticed_is_named(launcher: Launcher, tmp_path: Path) -> None:
    body = "model(torch.ones(2, 4)).sum().backward(); index and exit(5)"
    found = told(launcher, tmp_path, HOGWILD.format(body=body))
    assert "ForkProcess-2 left with exit code 5 in line 6" in found.last.recording["apart"]


FORKED = """import os, torch, torch.nn as nn
child = os.fork()
if child == 0:
    model = nn.Linear(4, 1)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        opt.zero_grad()
        model(torch.ones(2, 4)).sum().backward()
        opt.step()
    os._exit(0)
os.waitpid(child, 0)
"""


def test_a_fork_by_hand_is_recorded(launcher: Launcher, tmp_path: Path) -> None:
    found = told(launcher, tmp_path, FORKED)
    assert (found.exit_code, found.broken) == (0, "")
    assert set(found.last.fine) == {"model.weight", "model.bias"}


WAYS = [Limits(), Limits(namespaces=False), Limits(allow_writes=True)]
WAY_NAMES = ["in a namespace", "without namespaces", "with writes allowed"]
ALONE = """import torch, torch.nn as nn
model = nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    opt.zero_grad()
    {body}
    opt.step()
"""


@pytest.mark.parametrize(
    "words", ["torchrun --standalone --nproc-per-node 1 train.py", "-m torch.distributed.run train.py"]
)
def test_torchrun_is_a_program_like_any_other(words: str, launcher: Launcher, tmp_path: Path) -> None:
    found = told(
        launcher, tmp_path, ALONE.format(body="model(torch.ones(2, 4)).sum().backward()"), words=words
    )
    assert (found.exit_code, found.broken) == (0, "")
    assert set(found.last.fine) == {"model.weight", "model.bias"}


@pytest.mark.parametrize(
    ("words", "limits"),
    [
        pytest.param("torchrun --standalone train.py", Limits(), id="a file in a namespace"),
        *(
            pytest.param("torchrun --standalone --module train", limits, id=f"a module {name}")
            for limits, name in zip(WAYS, WAY_NAMES, strict=True)
        ),
    ],
)
def test_what_torchrun_started_is_mended(
    words: str, limits: Limits, launcher: Launcher, tmp_path: Path
) -> None:
    """A file that another process starts is mended in each of the ways below."""
    body = "h = model(torch.ones(2, 4)).exp(); h += 1; h.sum().backward()"
    found = told(launcher, tmp_path, ALONE.format(body=body), limits, words=words, mode="diff")
    (outcome,) = found.outcomes
    assert [verdict.verdict for verdict in outcome.verdicts] == ["flows"]


@pytest.mark.parametrize("limits", WAYS, ids=WAY_NAMES)
@pytest.mark.parametrize("start", ["subprocess.run([sys.executable, {file!r}, 'again'])", "exec({read})"])
def test_a_script_started_by_path_or_by_its_text_is_mended(
    start: str, limits: Limits, launcher: Launcher, tmp_path: Path
) -> None:
    if limits.allow_writes and start.startswith("exec"):
        pytest.skip("nothing stands between such a program and its files")
    body = "h = model(torch.ones(2, 4)).exp(); h += 1; h.sum().backward()"
    (tmp_path / "train.py").write_text(ALONE.format(body=body))
    file = str(tmp_path / "train.py")
    begin = start.format(file=file, read=f"compile(open({file!r}).read(), {file!r}, 'exec')")
    (tmp_path / "start.py").write_text(f"import subprocess, sys\n{begin}\n")
    wish = Wish(
        parse_command([str(tmp_path / "start.py")]),
        plan_for(Config(tmp_path)),
        "diff",
        limits=limits,
        echo=False,
    )
    (outcome,) = run(wish, launcher).outcomes
    assert [verdict.verdict for verdict in outcome.verdicts] == ["flows"]


def test_a_script_is_started_as_python_does(launcher: Launcher, tmp_path: Path) -> None:
    text = (
        "import os, pickle, sys, torch\n"
        "class Own: pass\n"
        "main = sys.modules['__main__']\n"
        "assert main.Own is Own and pickle.loads(pickle.dumps(Own)) is Own\n"
        "assert (__name__, __spec__, __package__) == ('__main__', None, None), (__spec__, __package__)\n"
        "assert __file__ == os.path.abspath('child.py') and sys.argv == ['child.py', 'word']\n"
        "assert sys.path[0] == os.path.dirname(__file__) and __file__ not in sys.path\n"
        "torch.ones(1, requires_grad=True).sum().backward()\n"
    )
    (tmp_path / "child.py").write_text(text)
    start = "import subprocess, sys\nsubprocess.run([sys.executable, 'child.py', 'word'], check=True)\n"
    assert told(launcher, tmp_path, start).broken == ""


@pytest.mark.parametrize(
    ("words", "leave", "said"),
    [
        ("train.py", "sys.exit(3)", "left with exit code 3 in line 6"),
        ("train.py", "sys.exit('no data')", "left with exit code 1 (no data) in line 6"),
        ("train.py", "os._exit(3)", "left with exit code 3"),
        ("--module train", "sys.exit('no data')", "left with exit code 1 (no data) in line 6"),
    ],
)
def test_a_rank_that_leaves_with_an_exit_code_is_named(
    words: str, leave: str, said: str, launcher: Launcher, tmp_path: Path
) -> None:
    body = f"model(torch.ones(2, 4)).sum().backward()\n    import os, sys; {leave}"
    found = told(
        launcher,
        tmp_path,
        ALONE.format(body=body).replace("\n    opt.zero_grad()", ""),
        words=f"torchrun --standalone {words}",
    )
    assert f"; rank 0 {said}" in found.broken


def test_a_rank_that_leaves_with_zero_has_finished(launcher: Launcher, tmp_path: Path) -> None:
    text = ALONE.format(body="model(torch.ones(2, 4)).sum().backward()")
    leave = "import sys\ntry: {}['nothing']\nexcept KeyError: sys.exit(0)\n"
    found = told(
        launcher, tmp_path, text + leave, Limits(max_steps=9), words="torchrun --standalone train.py"
    )
    assert (found.exit_code, found.broken, found.last.recording["apart"]) == (0, "", [])


def test_a_program_that_is_not_there_is_named(launcher: Launcher, tmp_path: Path) -> None:
    assert "neither a file nor a program" in told(launcher, tmp_path, "", words="torchruns train.py").broken
