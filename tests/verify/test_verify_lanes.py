"""Judging side by side: the same answers in the same order, one at a time where programs could meet."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gradfix.verify import Launcher, Limits, lanes
from gradfix.verify.launch import Command, Job

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
