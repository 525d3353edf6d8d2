"""Every fixture: the bug fails under torch, gradfix turns it into the cure, the cure passes and stays."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from gradfix.config import Config
from gradfix.engine import fix
from gradfix.outcome import Outcome
from gradfix.plan import Plan
from gradfix.registry import codemods

ROOT = Path(__file__).parent.parent / "fixtures"
WARM = Path(__file__).with_name("warm.py")
PROMISE = "# without the fix: "
LEGAL = "nothing fails"
"""How the promise of a before begins where only style is at stake."""

Run = Callable[[Path], "str | None"]


def cases(name: str) -> list[ParameterSet]:
    """Each fixture's file of this name, under an id that reads as words."""
    return [
        pytest.param(path, id=f"{path.parent.parent.name}: {path.parent.name.replace('_', ' ')}")
        for path in sorted(ROOT.glob(f"*/*/{name}.py"))
    ]


each_before = pytest.mark.parametrize("before", cases("before"))
each_cured = pytest.mark.parametrize("path", [*cases("after"), *cases("keep")])


@pytest.fixture(scope="session")
def run() -> Iterator[Run]:
    """Runs a script under torch, with all of its rule, and gives the error that it ends with, or None."""
    command = [sys.executable, str(WARM)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as warm:
        assert warm.stdin is not None and warm.stdout is not None
        questions, answers = warm.stdin, warm.stdout
        known: dict[str, str | None] = {}

        def ask(path: Path) -> str | None:
            if str(path) not in known:
                paths = [str(each) for each in sorted(path.parent.parent.glob("*/*.py"))]
                print(json.dumps(paths), file=questions, flush=True)
                known.update(zip(paths, json.loads(answers.readline()), strict=True))
            return known[str(path)]

        yield ask
        questions.close()


@cache
def plan(name: str, enabled: bool = True) -> Plan:
    """The default rules, with one rule added or taken away; unsafe fixes too."""
    chosen = {"extend_select" if enabled else "ignore": (name,)}
    return Plan(Config(ROOT, unsafe_fixes=True).with_options(**chosen))


def outcome(path: Path, enabled: bool = True) -> Outcome:
    return fix(path.name, path.read_bytes(), plan(path.parent.parent.name, enabled))


def promise(before: Path) -> str:
    """The words in which a before says that it fails."""
    first = before.read_text(encoding="utf-8").partition("\n")[0]
    assert first.startswith(PROMISE)
    return first.removeprefix(PROMISE).strip()


def told(outcome: Outcome) -> list[str]:
    """What was found, for the message of a failing test."""
    return [f"{each.code} line {each.span.line}: {each.says or each.decline}" for each in outcome.findings]


@pytest.mark.torch
@each_before
def test_the_bug_fails_under_torch_in_the_words_it_promises(before: Path, run: Run) -> None:
    error = run(before)
    if promise(before).startswith(LEGAL):
        assert error is None
    else:
        assert error is not None and promise(before) in error


@pytest.mark.torch
@each_cured
def test_the_cured_and_the_healthy_pass_under_torch(path: Path, run: Run) -> None:
    assert run(path) is None


@each_before
def test_gradfix_turns_the_bug_into_the_cure_byte_for_byte(before: Path) -> None:
    mended = outcome(before)
    assert mended.failure is None
    after = before.with_name("after.py").read_bytes()
    assert (mended.after or b"").decode() == after.decode(), told(mended)


@each_cured
def test_the_cured_and_the_healthy_are_left_alone(path: Path) -> None:
    found = outcome(path)
    assert found.failure is None
    assert (told(found), found.after) == ([], None)


@each_before
def test_the_bug_stays_while_its_rule_is_disabled(before: Path) -> None:
    found = outcome(before, enabled=False)
    assert found.failure is None
    assert found.after is None, told(found)


def test_every_rule_has_fixtures_and_every_fixture_a_rule() -> None:
    assert {path.name for path in ROOT.iterdir()} == set(codemods())


def test_every_bug_has_a_cure() -> None:
    befores = {path.parent for path in ROOT.glob("*/*/before.py")}
    assert befores == {path.parent for path in ROOT.glob("*/*/after.py")}


def test_there_are_two_healthy_look_alikes_for_every_three_bugs() -> None:
    assert 3 * len(list(ROOT.glob("*/*/keep.py"))) >= 2 * len(list(ROOT.glob("*/*/before.py")))
