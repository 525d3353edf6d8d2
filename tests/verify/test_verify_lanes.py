"""Judging side by side: the same answers in the same order, one at a time where programs could meet."""

from __future__ import annotations

import os
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gradfix.trace.processes import left_by
from gradfix.trace.report import Recording
from gradfix.verify import Launcher, Limits, lanes
from gradfix.verify.launch import Command, Job
from gradfix.verify.servers import MARK

NUMBERS = list(range(12))
Do = Callable[[int, Launcher], int]


class Idle(Launcher):
    """A launcher that is ready at once and has no interpreter."""

    begun: list[Idle] = []  # noqa: RUF012 - emptied before each test

    def begin(self) -> None:
        """There is nothing to start."""

    def started(self) -> bool:
        Idle.begun.append(self)
        self.ready = not self.broken
        return self.ready


@pytest.fixture
def first(monkeypatch: pytest.MonkeyPatch) -> Iterator[Idle]:
    monkeypatch.setattr(lanes, "Launcher", Idle)
    monkeypatch.setattr(lanes, "MANY", 3)
    Idle.begun.clear()
    one = Idle()
    one.secluded = True
    with one:
        yield one


def through(first: Launcher, work: Do, *, wide: bool = True) -> list[int]:
    with lanes.Lanes(work, first, wide) as two:
        for number in NUMBERS:
            two.add(number)
        return two.answers()


def doubled(number: int, launcher: Launcher) -> int:
    time.sleep(0.01 if number % 3 else 0.03)
    return 2 * number


def test_answers_come_in_the_order_of_the_files(first: Idle) -> None:
    assert through(first, doubled) == [2 * number for number in NUMBERS]


def test_two_interpreters_share_the_files(first: Idle) -> None:
    used: dict[int, set[int]] = {}

    def noted(number: int, launcher: Launcher) -> int:
        used.setdefault(id(launcher), set()).add(number)
        return doubled(number, launcher)

    through(first, noted)
    assert len(used) == 2
    assert sorted(number for numbers in used.values() for number in numbers) == NUMBERS


def test_answers_come_while_others_are_still_to_be_given(first: Idle) -> None:
    with lanes.Lanes(doubled, first, wide=False) as one:
        one.begin()
        one.add(4)
        while not one.found:
            time.sleep(0.01)
        one.add(5)
        assert one.answers() == [8, 10]


@pytest.mark.parametrize("why", ["programs could meet", "there is no room"])
def test_one_at_a_time(why: str, first: Idle) -> None:
    first.secluded = why != "programs could meet"
    assert through(first, doubled, wide=why != "there is no room") == [2 * number for number in NUMBERS]
    assert Idle.begun == []


@pytest.mark.parametrize("why", ["one processor", "an accelerator", "more than half of the memory"])
def test_there_is_no_room_for_two(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "ACCELERATORS", ("/",) if why == "an accelerator" else ())
    memory = (2 if why == "more than half of the memory" else 1) * Limits().memory
    assert not lanes.room(Limits(memory=memory), 1 if why == "one processor" else 2)


def test_what_fails_beside_fails_here(first: Idle) -> None:
    def only_here(number: int, launcher: Launcher) -> int:
        if launcher is not first:
            raise LookupError("beside")
        return doubled(number, launcher)

    with pytest.raises(LookupError, match="beside"):
        through(first, only_here)


def test_an_interrupt_leaves_nothing_running(first: Idle) -> None:
    beside = threading.Event()

    def noted(number: int, launcher: Launcher) -> int:
        if launcher is not first:
            beside.set()
            time.sleep(0.1)
        return doubled(number, launcher)

    with pytest.raises(KeyboardInterrupt), lanes.Lanes(noted, first, wide=True) as two:
        for number in NUMBERS:
            two.add(number)
        two.begin()
        assert beside.wait(5)
        raise KeyboardInterrupt
    for thread in two.threads:
        thread.join(5)
        assert not thread.is_alive()
    assert {one.broken for one in [first, *Idle.begun]} == {"closed"}
    assert len(two.found) < len(NUMBERS)


@pytest.mark.torch
def test_a_launcher_that_is_closed_starts_no_more(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import time\ntime.sleep(60)\n")
    job = Job(Command("script", str(tmp_path / "train.py")), str(tmp_path))
    with Launcher() as one:
        assert one.started()
        threading.Timer(0.5, one.close).start()
        started = time.monotonic()
        assert one.run(job)["how"] == "broken"
        assert one.run(job)["how"] == "no torch"
        assert time.monotonic() - started < 30


TRAINS = "import torch\nw = torch.ones(2, requires_grad=True)\n(w * 3).sum().backward()\n"


def job(folder: Path, name: str, text: str) -> Job:
    path = folder / name / "program.py"
    path.parent.mkdir()
    path.write_text(text)
    return Job(Command("script", str(path)), str(path.parent), limits=Limits(seconds=30, landlock=False))


@pytest.fixture
def two() -> Iterator[list[Launcher]]:
    """Two that share an interpreter."""
    with Launcher() as one:
        one.wide = sys.platform.startswith("linux")
        if not one.wide:
            pytest.skip("one interpreter serves two on Linux alone")
        assert one.started()
        with one.beside() as other:
            assert one.server is not None
            assert other.server is not None
            assert one.server.process is other.server.process
            yield [one, other]


TELLS = f"""
import os, random, sys, threading, time
begun = time.monotonic()
{TRAINS}
time.sleep(1)
held = [name for name in os.environ if "THREAD" in name or "SPIN" in name]
print(begun, time.monotonic(), torch.rand(1).item(), random.random(), threading.active_count(), held, sep="|")
"""


@pytest.mark.torch
def test_two_programs_run_at_the_same_time_in_one_interpreter(two: list[Launcher], tmp_path: Path) -> None:
    found: dict[int, Recording] = {}

    def runs(number: int) -> None:
        found[number] = two[number].run(job(tmp_path, str(number), TELLS))

    threads = [threading.Thread(target=runs, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[number]["how"] for number in range(2)] == ["finished", "finished"]
    told = [found[number]["stdout"].strip().split("|") for number in range(2)]
    assert max(float(one[0]) for one in told) < min(float(one[1]) for one in told)
    import torch

    drawn = torch.rand(1, generator=torch.Generator().manual_seed(0)).item()
    held = [name for name in os.environ if "THREAD" in name or "SPIN" in name]
    same = [str(drawn), str(random.Random(0).random()), "1", str(held)]
    assert [one[2:] for one in told] == [same, same]


@pytest.mark.torch
def test_a_program_that_ends_what_watches_it_does_not_harm_the_one_beside(
    two: list[Launcher], tmp_path: Path
) -> None:
    one, other = two
    assert one.server is not None
    mark = one.server.mark
    waits = job(tmp_path, "waits", f"import time\ntime.sleep(2)\n{TRAINS}")
    kills = job(tmp_path, "kills", "import os, time\nos.kill(os.getppid(), 9)\ntime.sleep(60)\n")
    found: list[Recording] = []
    beside = threading.Thread(target=lambda: found.append(other.run(waits)))
    beside.start()
    time.sleep(0.5)
    killed = one.run(kills)
    beside.join()
    if killed["notes"]:
        pytest.skip("without a namespace the recorder itself refuses it")
    assert (killed["how"], found[0]["how"]) == ("broken", "finished")
    assert any(event["event"] == "backward" for event in found[0]["events"])
    assert not left_by(f"{MARK}={mark}")
