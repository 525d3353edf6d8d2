"""The health report for a person: what flows is counted, what doesn't is told by its reason."""

from __future__ import annotations

from io import StringIO

import pytest
from click.testing import CliRunner

from gradfix.cli import main
from gradfix.health.checked import Broken, Checked, Health, Starved
from gradfix.outcome import Run, View
from gradfix.report.health import closing, counted, render

FLOWS = Checked("a.py", "Net", 3, "flows", parameters=4, reached=4)
PARTLY = Checked(
    "a.py", "Other", 30, "partly", parameters=7, reached=1,
    starved=(
        *(Starved(f"layers.{n}.weight", "unused") for n in range(5)),
        Starved("head.weight", "cut", "detach"),
    ),
)  # fmt: skip
UNRUN = Checked("b.py", "Third", 7, "not run", "call: RuntimeError: " + "the sizes must match " * 8)
BAD = Checked("b.py", "Last", 9, "broken", broken=(Broken("x", "GF101", "b.py", 12, "it overwrites"),))


def health(*modules: Checked) -> Health:
    return Health(Run(()), modules, 3.2)


def shown(*modules: Checked, verbose: bool = False) -> str:
    stream = StringIO()
    render(health(*modules), stream, View(verbose=verbose))
    return stream.getvalue()


def test_a_file_through_which_gradients_flow_is_one_line() -> None:
    assert shown(FLOWS) == "a.py: gradients flow through its module\n"


def test_reasons_are_told_once_with_the_parameters_that_they_hold_for() -> None:
    text = shown(FLOWS, PARTLY)
    assert "a.py: gradients flow through 1 of 2 modules\n  Other, line 30: gradients reach 1 of 7" in text
    names = "layers.0.weight, layers.1.weight, layers.2.weight, layers.3.weight and 1 more:"
    assert names in " ".join(text.split())
    assert text.count("unused in this run") == 1
    assert "Net" not in text
    assert "Net, line 3" in shown(FLOWS, PARTLY, verbose=True)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_is_wider_than_the_terminal(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert max(map(len, shown(PARTLY, UNRUN, BAD).splitlines())) <= width
    stream = StringIO()
    closing(Health(Run(()), (), 0.1, broken="there is no such thing as that " * 6), stream, View())
    assert max(map(len, stream.getvalue().splitlines())) <= width


def test_what_is_broken_says_where_and_by_which_rule() -> None:
    assert "Last, line 9: broken\n    b.py:12: GF101 it overwrites" in shown(BAD)


def test_all_is_counted_in_one_sentence() -> None:
    told = counted(health(FLOWS, PARTLY, UNRUN, BAD))
    assert told == ("4 modules in 2 files: 2 flow (1 with a part that gets none), 1 broken, 1 not run.")


@pytest.mark.parametrize(
    "words",
    [
        ["--deep", "."],
        ["--deep", "--verify", "--apply", "."],
        ["--deep", "--verify", "-"],
        ["--deep", "--verify", "--output-format", "sarif", "."],
        ["--deep", "--verify", "--since", "main", "."],
        ["--write-tests", "tests", "--apply", "."],
        ["--write-tests", "tests", "--verify", "."],
    ],
)
def test_what_makes_no_sense_together_is_refused(words: list[str]) -> None:
    assert CliRunner().invoke(main, words).exit_code == 2
