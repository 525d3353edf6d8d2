"""Many files: in order, through any executor, whatever happens to a process."""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
import toy
from toy import PLAN, plan

from gradfix.crew import processes, through
from gradfix.outcome import Outcome
from gradfix.pool import SMALL, run, usable_cpus
from gradfix.since import Earlier
from gradfix.task import Task, mend, silence


def task(name: str, content: bytes = b"x += y\n") -> Task:
    return Task(name, content, PLAN)


def named(given: Task) -> Outcome:
    """A step that takes longer the earlier its task is."""
    time.sleep(0.02 / (1 + int(given.path)))
    return Outcome(given.path, skipped=str(os.getpid()))


def deadly(given: Task) -> Outcome:
    """A step that ends its process on one task."""
    if given.path == "3":
        os._exit(1)
    return Outcome(given.path)


@pytest.fixture
def _toy(monkeypatch: pytest.MonkeyPatch) -> None:
    toy.install(monkeypatch.setattr)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(partial(processes, 2), id="in other processes"),
        pytest.param(ThreadPoolExecutor, id="in threads, as any executor"),
    ],
)
def test_outcomes_come_in_the_order_of_the_tasks(make: partial[ThreadPoolExecutor]) -> None:
    outcomes = list(through(make, map(task, map(str, range(10))), named, 4))
    assert [outcome.path for outcome in outcomes] == [str(number) for number in range(10)]


def test_a_file_that_kills_its_process_is_named_and_the_others_are_done() -> None:
    outcomes = list(through(partial(processes, 2), map(task, map(str, range(8))), deadly, 4))
    assert [outcome.path for outcome in outcomes if not outcome.failure] == list("0124567")
    assert outcomes[3].failure is not None
    assert outcomes[3].failure.reason == "the Python interpreter died of it"


def test_little_work_stays_in_this_process() -> None:
    assert {outcome.skipped for outcome in run([task("1"), task("2")], 4, named)} == {str(os.getpid())}


def test_one_job_stays_in_this_process() -> None:
    tasks = [task("1", b" " * SMALL), task("2")]
    assert {outcome.skipped for outcome in run(tasks, 1, named)} == {str(os.getpid())}


def test_much_work_goes_to_other_processes() -> None:
    tasks = [task("1", b" " * SMALL), task("2"), task("3")]
    outcomes = list(run(iter(tasks), 2, named))
    assert [outcome.path for outcome in outcomes] == ["1", "2", "3"]
    assert str(os.getpid()) not in {outcome.skipped for outcome in outcomes}


def test_tasks_are_taken_no_faster_than_they_are_done() -> None:
    taken: list[str] = []

    def tasks() -> Iterator[Task]:
        for number in range(20):
            taken.append(str(number))
            yield task(str(number))

    outcomes = through(partial(ThreadPoolExecutor, 2), tasks(), named, 4)
    next(outcomes)
    assert len(taken) == 4


@pytest.mark.usefixtures("_toy")
def test_the_step_finds_and_mends_what_its_plan_selects() -> None:
    outcome = mend(task("x.py", b"x += y; x -= y\n"))
    assert outcome.after == b"x = x + y; x -= y\n"
    assert mend(Task("x.py", b"x += y\n", plan(select=("unsafe_toy",)))) == Outcome("x.py")


@pytest.mark.usefixtures("_toy")
def test_the_step_leaves_out_what_was_there_at_an_earlier_revision() -> None:
    diff = b"--- a/x.py\n+++ b/x.py\n@@ -0,0 +1 @@\n+z += y\n"
    outcome = mend(Task("x.py", b"z += y\nx += y\n", PLAN, Earlier(b"x += y\n", diff)))
    assert [finding.span.line for finding in outcome.findings] == [1]


@pytest.mark.usefixtures("_toy")
def test_the_step_can_silence_instead() -> None:
    outcome = silence(task("x.py"))
    assert outcome.after == b"x += y  # gradfix: ignore[TOY1]\n"


def test_tasks_cross_to_another_process() -> None:
    given = Task("x.py", b"", PLAN, Earlier(b"", b""))
    assert pickle.loads(pickle.dumps(given)) == given


def test_there_is_a_cpu_to_use() -> None:
    assert usable_cpus() >= 1
