"""Findings are asked of one by one: what is taken, left and silenced, and how it looks at a real terminal."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
import toy
from click.testing import CliRunner
from terminal import PROMPT, Shell

from gradfix.cli import main
from gradfix.engine import fix
from gradfix.outcome import Outcome
from gradfix.plan import Plan
from gradfix.review import Answer, Question, reviewed
from gradfix.rule import Safety

GATED = "import torch\n"


@pytest.fixture(autouse=True)
def _there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    toy.install(monkeypatch.setattr)


class Scripted:
    """Somebody who says what is written down, and remembers what they were asked."""

    def __init__(self, answers: Sequence[Answer]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []
        self.counted: list[tuple[int, int]] = []

    def __call__(self, question: Question) -> Answer:
        finding = question.finding
        line = question.outcome.lines[finding.span.line - 1]
        self.asked.append(f"{finding.span.line}: {line}")
        self.counted.append((question.number, question.of))
        return self.answers.pop(0)


def played(text: str, *answers: Answer, plan: Plan | None = None) -> tuple[str, Outcome, Scripted]:
    """The text that these answers lead to, its outcome, and what was asked. All answers are used up."""
    plan = plan or toy.plan()
    content = (GATED + text).encode()
    somebody = Scripted(answers)
    outcome, _ = reviewed(fix("a.py", content, plan), plan, somebody)
    assert somebody.answers == [] and outcome.failure is None
    return (outcome.after or content).decode().removeprefix(GATED), outcome, somebody


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        pytest.param(["take", "take", "take"], "x = x + a\ny = y + b\nz = z + c\n", id="each is taken"),
        pytest.param(["skip", "take", "skip"], "x += a\ny = y + b\nz += c\n", id="one is taken"),
        pytest.param(["skip", "skip", "skip"], "x += a\ny += b\nz += c\n", id="none is taken"),
        pytest.param(["skip", "rest"], "x += a\ny = y + b\nz = z + c\n", id="the rest, what was left stays"),
        pytest.param(["take", "leave"], "x = x + a\ny += b\nz += c\n", id="the others are left"),
        pytest.param(
            ["take", "quit"], "x = x + a\ny += b\nz += c\n", id="what was taken before quitting stays"
        ),
        pytest.param(
            ["ignore", "take", "ignore"],
            "x += a  # gradfix: ignore[TOY1]\ny = y + b\nz += c  # gradfix: ignore[TOY1]\n",
            id="two are silenced",
        ),
    ],
)
def test_the_text_is_what_the_answers_make_of_it(answers: list[Answer], expected: str) -> None:
    assert played("x += a\ny += b\nz += c\n", *answers)[0] == expected


def test_what_is_left_is_what_was_neither_taken_nor_silenced() -> None:
    _, outcome, _ = played("x += a\ny += b\nz += c\n", "take", "skip", "ignore")
    assert [finding.span.line for finding in outcome.remaining] == [3]
    assert ([finding.span.line for finding in outcome.applied], outcome.silenced) == ([2], 1)


def test_several_on_a_line_are_asked_of_one_after_the_other() -> None:
    text, _, somebody = played("x += a; y += b; z += c\n", "skip", "take", "skip")
    assert text == "x += a; y = y + b; z += c\n"
    assert somebody.asked[2] == "2: x += a; y = y + b; z += c"


def test_a_comment_silences_all_of_its_rule_on_the_line_and_they_are_not_asked_of() -> None:
    text, _, somebody = played("x += a; y += b\nz += c\n", "ignore", "take")
    assert text == "x += a; y += b  # gradfix: ignore[TOY1]\nz = z + c\n"
    assert len(somebody.asked) == 2


def test_questions_are_counted() -> None:
    _, _, somebody = played("x += a\ny += b\nz += c\n", "skip", "take", "skip")
    assert somebody.counted == [(1, 3), (2, 3), (3, 3)]


def test_an_unsafe_fix_is_offered_and_taken_by_choice_only() -> None:
    assert played("x -= a\n", "take")[0] == "x = x - a\n"
    assert played("y += b\nx -= a\n", "rest")[0] == "y = y + b\nx -= a\n"
    assert played("x -= a\nz -= c\ny += b\n", "rest")[0] == "x = x - a\nz -= c\ny = y + b\n"
    allowed = toy.plan(unsafe_fixes=True)
    assert played("y += b\nx -= a\n", "rest", plan=allowed)[0] == "y = y + b\nx = x - a\n"


def test_what_has_no_fix_can_be_left_or_silenced() -> None:
    somebody = Scripted(["take"])
    offered: list[bytes | None] = []

    def ask(question: Question) -> Answer:
        offered.append(question.outcome.after)
        return somebody(question)

    outcome, _ = reviewed(fix("a.py", b"import torch\nx *= y\n", toy.PLAN), toy.PLAN, ask)
    assert (outcome.after, offered, len(outcome.remaining)) == (None, [None], 1)
    assert played("x *= y\n", "ignore")[0] == "x *= y  # gradfix: ignore[TOY3]\n"


def test_a_suspect_is_shown_and_never_rewritten() -> None:
    text, outcome, _ = played("x += ...\n", "take", plan=toy.plan(suspects=True))
    assert (text, [finding.certainty for finding in outcome.remaining]) == ("x += ...\n", ["suspect"])


def test_a_rule_that_does_not_settle_is_not_offered() -> None:
    """Each time its fix were taken, the same would be asked again."""
    text, outcome, _ = played("x /= y\nz += y\n", "take", "take")
    assert (text, outcome.applied[0].safety) == ("x /= y\nz = z + y\n", Safety.SAFE)


def test_a_fix_that_breaks_the_text_leaves_the_file_as_it_was() -> None:
    plan = toy.plan(ignore=("TOY12",))
    found = fix("a.py", b"import torch\nx += y\nx %= y\n", plan)
    outcome, _ = reviewed(found, toy.PLAN, lambda _: "take")
    assert outcome.failure is not None and outcome.failure.stage == "check"
    assert outcome.after is None


# At a terminal.


def make(name: str, text: str) -> Path:
    file = Path(name)
    file.write_text(GATED + text)
    return file


def test_a_terminal_shows_evidence_and_diff_and_writes_what_is_taken() -> None:
    file = make("a.py", "x += a\ny += b\n")
    code, said = Shell("--apply", "--interactive", "--color", "never", "a.py").typed("y\n", "n\n")
    assert (code, file.read_text()) == (1, GATED + "x = x + a\ny += b\n")
    assert "a.py:2:1 TOY1" in said
    assert "    2 | x += a" in said
    assert " import torch\n-x += a\n+x = x + a\n y += b\n(1/2) Take this fix [y,n,i,a,d,q,?]? y\n" in said
    assert said.endswith("1 finding fixed in 1 file, 1 left: 1 crashes.\n")
    assert said.count("a.py:3:1") == 1, "what was asked of is not listed again"


def test_help_and_slips_explain_the_letters_and_ask_again() -> None:
    file = make("a.py", "x += a\n")
    code, said = Shell("--interactive", "--color", "never").typed("?\n", "what\n", "\n", "Y\n")
    assert (code, file.read_text()) == (0, GATED + "x = x + a\n")
    assert said.count("y - take this fix\n") == 3
    assert said.count("q - leave this finding and all others; what was taken is written\n") == 3


def test_an_unsafe_fix_is_called_so_where_it_is_offered() -> None:
    make("a.py", "x -= a\n")
    _, said = Shell("--interactive", "--color", "never").typed("n\n")
    assert "unsafe fix]" in said and "(1/1) Take this unsafe fix [y,n,i,a,d,q,?]?" in said


def test_nothing_can_be_taken_where_there_is_no_fix() -> None:
    file = make("a.py", "x *= a\n")
    code, said = Shell("--interactive", "--color", "never").typed("y\n", "i\n")
    assert "(1/1) No fix to take: what now [n,i,d,q,?]? y\nn - " in said
    assert (code, file.read_text()) == (0, GATED + "x *= a  # gradfix: ignore[TOY3]\n")
    assert said.endswith("0 findings fixed in 0 files, 1 silenced.\n")


def test_quitting_asks_of_no_other_file_and_keeps_what_was_taken() -> None:
    first, second, third = (make(name, "x += a\ny += b\n") for name in ("a.py", "b.py", "c.py"))
    code, said = Shell("--interactive").typed("a\n", "y\n", "q\n")
    assert code == 1
    texts = [each.read_text() for each in (first, second, third)]
    assert texts == [
        GATED + "x = x + a\ny = y + b\n",
        GATED + "x = x + a\ny += b\n",
        GATED + "x += a\ny += b\n",
    ]
    assert said.endswith("3 findings fixed in 2 files, 3 left: 3 crash.\n")


def test_leaving_a_file_goes_on_to_the_next() -> None:
    first, second = (make(name, "x += a\ny += b\n") for name in ("a.py", "b.py"))
    Shell("--interactive").typed("d\n", "a\n")
    assert first.read_text() == GATED + "x += a\ny += b\n"
    assert second.read_text() == GATED + "x = x + a\ny = y + b\n"


@pytest.mark.parametrize(
    ("key", "code"), [pytest.param("\x04", 1, id="end of input"), pytest.param("\x03", 130, id="Ctrl-C")]
)
def test_leaving_without_a_word_keeps_the_files_that_are_done_with(key: str, code: int) -> None:
    first, second = (make(name, "x += a\ny += b\n") for name in ("a.py", "b.py"))
    ended, said = Shell("--interactive").typed("a\n", key)
    assert (ended, "Traceback" in said) == (code, False)
    assert first.read_text() == GATED + "x = x + a\ny = y + b\n"
    assert second.read_text() == GATED + "x += a\ny += b\n"
    assert not list(Path().glob(".*.gradfix"))


def test_colours_are_those_of_the_listing_and_of_the_diff() -> None:
    make("a.py", "x += a\n")
    _, said = Shell("--interactive").typed("n\n")
    assert "\x1b[32m+x = x + a\x1b[0m" in said and "\x1b[1m(1/1) Take this fix" in said
    assert "\x1b" not in Shell("--interactive", "--color", "never").typed("n\n")[1]


def test_a_file_that_changes_while_somebody_thinks_is_left_alone() -> None:
    file = make("a.py", "x += a\n")
    shell = Shell("--interactive")
    while PROMPT not in shell.said:
        shell.said += shell.read()
    file.write_text(GATED + "x += other\n")
    os.write(shell.ours, b"y\n")
    code, said = shell.typed()
    assert (code, file.read_text()) == (2, GATED + "x += other\n")
    assert "changed on disk since it was read" in said


def test_nothing_to_ask_says_nothing() -> None:
    make("a.py", "x = 1\n")
    assert Shell("--interactive").typed() == (0, "")


def test_only_what_is_new_is_asked_of() -> None:
    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *identity, *arguments], check=True, capture_output=True)

    git("init", "-q")
    file = make("a.py", "x += a\n")
    git("add", "-A")
    git("commit", "-q", "-m", "first")
    file.write_text(GATED + "new = 1\nx += a\ny += b\n")
    code, said = Shell("--interactive", "--since", "HEAD").typed("y\n")
    assert (code, file.read_text()) == (0, GATED + "new = 1\nx += a\ny = y + b\n")
    assert "(1/1)" in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param([], "at a terminal", id="no terminal"),
        pytest.param(["--diff"], "--interactive and --diff", id="a diff"),
        pytest.param(["--add-ignore"], "--interactive and --add-ignore", id="all silenced at once"),
        pytest.param(["-"], "does not go with -", id="standard input"),
        pytest.param(["--verify"], "does not go with --verify", id="the judge"),
        pytest.param(
            ["--output-format", "json"], "does not go with --output-format json", id="a machine's format"
        ),
        pytest.param(["--statistics"], "does not go with --statistics", id="a count"),
    ],
)
def test_a_call_that_cannot_ask_is_named_and_writes_nothing(arguments: list[str], words: str) -> None:
    file = make("a.py", "x += a\n")
    result = CliRunner().invoke(main, ["--apply", "--interactive", *arguments], prog_name="gradfix")
    assert (result.exit_code, file.read_text()) == (2, GATED + "x += a\n")
    assert words in result.stderr


def test_a_notebook_is_asked_of_by_its_cells_and_stays_one() -> None:
    cells = [["import torch\n"], ["x += a\n", "y -= b"], ["z += c"]]
    head: dict[str, object] = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    notebook = {
        "cells": [{**head, "source": lines} for lines in cells],
        "metadata": {},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    Path("a.ipynb").write_text(json.dumps(notebook))
    code, said = Shell("--interactive", "--color", "never", "a.ipynb").typed("y\n", "n\n", "i\n")
    assert code == 1
    assert "a.ipynb:cell 2:1:1 TOY1" in said and "-x += a\n+x = x + a\n y -= b\n(1/3) " in said
    assert "a.ipynb:cell 3:1:1 TOY1" in said
    left = [each["source"] for each in json.loads(Path("a.ipynb").read_text())["cells"]]
    assert left == [["import torch\n"], ["x = x + a\n", "y -= b"], ["z += c  # gradfix: ignore[TOY1]"]]
