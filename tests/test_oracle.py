"""Tape and torch agree; the oracle itself is tested with analysers that say too much or too little."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

pytest.importorskip("torch")

from oracle.campaign import Tally, one, warm
from oracle.choose import seeded
from oracle.compare import compare
from oracle.comparison import Comparison, speechless
from oracle.kept import found, read
from oracle.programs import Program, program
from oracle.shrink import shrink
from oracle.strategy import programs
from oracle.tape import tape

from gradfix.defects import NOTHING, Certainty, Convention, Defect, Evidence, Role, Span
from gradfix.defects.records import record_of
from gradfix.defects.severed import Cut

pytestmark = pytest.mark.torch

OVERWRITTEN = """import torch
x = torch.ones(3, requires_grad=True)
y = x.exp()
y += 1
y.sum().backward()
"""
HEALTHY = OVERWRITTEN.replace("x.exp()", "x * 2")
FLAGGED = """import sys
import torch
flag0 = len(sys.argv) > 5
x = torch.ones(3, requires_grad=True)
y = x.exp()
if flag0:
    y += 1
y.sum().backward()
"""
MAY_ALIAS = FLAGGED.replace("if flag0:\n    y += 1", "if flag0:\n    y = x * 2\ny += 1")
STALE = """import torch
w = torch.nn.Linear(4, 4)
opt = torch.optim.SGD(w.parameters(), lr=0.1)
for i in range(2):
    w(torch.ones(4)).sum().backward()
    opt.step()
"""
CLEARED = STALE.replace("    w(", "    opt.zero_grad()\n    w(")
ERASED = STALE.replace("    opt.step()", "    opt.zero_grad()\n    opt.step()")
BY_HAND = """import torch
w = torch.ones(3, requires_grad=True)
for i in range(2):
    (w * 2).sum().backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
"""
HIDDEN = OVERWRITTEN.replace("y += 1", "y.data += 1")
HARMLESS = HIDDEN.replace("x.exp()", "x * 2")
TERM = """import torch
x = torch.ones(3, requires_grad=True)
(x.sum() + x.exp().sum().detach()).backward()
"""
UNKNOWN = """import torch
from mystery import blur
x = torch.ones(3, 4, requires_grad=True)
y = blur(x * 2)
y += 1
y.sum().backward()
"""


@pytest.fixture(scope="module", autouse=True)
def _warm() -> None:
    """Not while tests are collected: of several processes that do so, one runs them."""
    warm()


def defect(kind: str, at: int, *evidence: int, certainty: Certainty = "certain", **more: str) -> Defect:
    spans = tuple(Evidence(Span(line, 0, line, 1), Role.USED) for line in evidence)
    lean = NOTHING if certainty == "certain" else frozenset({Convention.B})
    facts = record_of(kind)()
    return Defect(kind, Span(at, 0, at, 1), spans, facts, lean=lean, condition=more.get("condition", ""))


def says(*defects: Defect) -> Callable[[str], Iterable[Defect]]:
    return lambda source: defects


def groups(source: str, *defects: Defect, flags: int = 0, opaque: bool = False) -> list[str]:
    result = compare(Program(source, flags, opaque), says(*defects))
    assert result is not None
    return [d.group for d in result.disagreements]


@pytest.mark.parametrize(
    ("source", "group"),
    [
        pytest.param(OVERWRITTEN, "missed: overwritten", id="an error of autograd"),
        pytest.param(STALE, "missed: missing_zero_grad", id="a stale gradient in a step"),
        pytest.param(BY_HAND, "missed: missing_zero_grad", id="a stale gradient in an update by hand"),
        pytest.param(ERASED, "missed: zero_grad_before_step", id="an erased gradient"),
        pytest.param(HIDDEN, "missed: write_through_data", id="a write through data"),
    ],
)
def test_what_the_analyser_misses_is_a_disagreement(source: str, group: str) -> None:
    assert groups(source) == [group]


@pytest.mark.parametrize(
    "source", [HEALTHY, CLEARED, HARMLESS, TERM], ids=["write", "training", "data", "term"]
)
def test_a_healthy_program_needs_no_defect(source: str) -> None:
    assert groups(source) == []


@pytest.mark.parametrize(
    ("source", "said"),
    [
        pytest.param(OVERWRITTEN, defect("inplace_overwrites_saved", 4, 3, 5), id="an overwritten tensor"),
        pytest.param(STALE, defect("missing_zero_grad", 5, 6), id="a missing zero_grad"),
        pytest.param(BY_HAND, defect("missing_zero_grad", 4, 6), id="a missing clear by hand"),
        pytest.param(ERASED, defect("zero_grad_before_step", 6, 5, 7), id="an erased gradient"),
        pytest.param(HIDDEN, defect("write_through_data", 4, 3, 5), id="a write through data"),
    ],
)
def test_the_right_defect_is_agreement(source: str, said: Defect) -> None:
    result = compare(Program(source), says(said))
    assert result is not None
    assert result.disagreements == []
    assert result.verdicts == {f"confirmed {said.kind}": 1}


@pytest.mark.parametrize(
    ("source", "said"),
    [
        pytest.param(HEALTHY, defect("inplace_overwrites_saved", 4, 3, 5), id="an overwritten tensor"),
        pytest.param(HEALTHY, defect("inplace_on_leaf", 4), id="a written leaf"),
        pytest.param(HEALTHY, defect("detached_loss_path", 4, 5), id="a severed loss"),
        pytest.param(HEALTHY, defect("non_scalar_backward", 5), id="a backward of many elements"),
        pytest.param(CLEARED, defect("missing_zero_grad", 6, 7), id="a missing zero_grad"),
        pytest.param(STALE, defect("zero_grad_before_step", 6, 5), id="an erased gradient"),
        pytest.param(STALE, defect("unreached_parameters", 3), id="unreached parameters"),
        pytest.param(HARMLESS, defect("write_through_data", 4, 3, 5), id="a write through data"),
        pytest.param(STALE, defect("backward_twice", 5), id="a second backward"),
        pytest.param(CLEARED, defect("backward_in_no_grad", 6, 6), id="a backward without grad mode"),
    ],
)
def test_a_false_defect_is_a_disagreement(source: str, said: Defect) -> None:
    result = compare(Program(source), says(said))
    assert result is not None
    assert f"false: {said.kind}" in [d.group for d in result.disagreements]


def test_a_defect_that_names_the_wrong_backward_is_a_miss() -> None:
    source = OVERWRITTEN.replace("y += 1", "(x * 2).sum().backward()\ny += 1")
    assert "missed: overwritten" in groups(source, defect("inplace_overwrites_saved", 3, 4))


def test_a_failure_under_a_flag_must_be_reported() -> None:
    assert groups(FLAGGED, flags=1) == ["missed under a flag: overwritten"]
    assert groups(FLAGGED, defect("inplace_overwrites_saved", 7, 5, 8, condition="flag0"), flags=1) == []


def test_a_write_that_hits_only_sometimes_may_stay_unreported() -> None:
    assert groups(MAY_ALIAS, flags=1) == []


def test_a_certain_defect_must_happen_whenever_its_culprit_runs() -> None:
    said = defect("inplace_overwrites_saved", 8, 5, 9)
    assert groups(MAY_ALIAS, said, flags=1) == ["sometimes: inplace_overwrites_saved"]


def test_a_likely_defect_that_is_false_is_told_apart() -> None:
    said = defect("inplace_on_leaf", 4, certainty="likely")
    assert groups(HEALTHY, said) == ["false (likely): inplace_on_leaf"]


def test_the_body_of_an_unknown_callee_is_not_to_be_guessed() -> None:
    assert groups(UNKNOWN, opaque=True) == []
    said = defect("inplace_overwrites_saved", 5, 4, 6)
    assert groups(UNKNOWN, said, opaque=True) == ["sometimes: inplace_overwrites_saved"]


@pytest.mark.parametrize(("column", "verdict"), [(10, "confirmed"), (1, "false")])
def test_a_severed_term_is_one_whose_gradient_returns_without_the_cut(column: int, verdict: str) -> None:
    source = TERM if column == 10 else TERM.replace("x.exp()", "torch.ones(3)")
    start = source.splitlines()[2].index("x.exp()" if column == 10 else "torch.ones")
    end = source.splitlines()[2].index(").backward")
    said = Defect("severed_term", Span(3, start, 3, end), (), Cut(), "trains wrong")
    result = compare(Program(source), says(said))
    assert result is not None
    assert result.verdicts == {f"{verdict} severed_term": 1}


def test_what_follows_a_failure_is_left_undecided() -> None:
    result = compare(
        Program(OVERWRITTEN), says(defect("inplace_overwrites_saved", 4, 3, 5), defect("backward_twice", 5))
    )
    assert result is not None
    assert result.verdicts["undecided backward_twice"] == 1


def test_an_error_that_is_not_of_autograd_takes_the_program_out() -> None:
    assert compare(Program("import torch\ntorch.ones(3) @ torch.ones(4)\n"), speechless) is None


def test_a_disagreement_shrinks_to_what_it_needs() -> None:
    noisy = OVERWRITTEN.replace("y = ", "z = torch.ones(2)\nfor i in range(2):\n    z = z * 2\ny = ")
    found = shown(noisy).disagreements[0]
    assert shrink(Program(noisy), found, speechless).source == OVERWRITTEN


def shown(source: str) -> Comparison:
    result = compare(Program(source), speechless)
    assert result is not None
    return result


def test_a_seed_always_writes_the_same_program() -> None:
    assert [program(seeded(n)).source for n in range(50)] == [program(seeded(n)).source for n in range(50)]


def test_programs_show_every_sort_of_fault_and_health() -> None:
    tally = Tally()
    for seed in range(400):
        one(seed, speechless, tally)
    assert tally.invalid < 20
    assert 0.4 < tally.outcomes["healthy"] / tally.programs < 0.7
    expected = {
        "overwritten",
        "severed",
        "leaf written",
        "view of many",
        "view without grad",
        "backward twice",
    }
    expected |= {"not a scalar", "inference saved", "stale gradient", "erased gradient", "leaf as root"}
    assert expected <= set(tally.outcomes)


def agreement(written: Program) -> list[str]:
    """What tape and torch disagree on, as text that shows the program."""
    result = compare(written, tape)
    if result is None:
        return []
    return [f"{d.group} at line {d.line}\n{written.source}{written.driver}" for d in result.disagreements]


@pytest.mark.parametrize("first", range(0, 200, 50), ids=lambda first: f"seeds from {first}")
def test_tape_and_torch_agree_on_programs_of_known_seeds(first: int) -> None:
    assert [text for seed in range(first, first + 50) for text in agreement(program(seeded(seed)))] == []


@settings(
    max_examples=100, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
@given(programs())
def test_tape_and_torch_agree_on_programs_that_hypothesis_writes(written: Program) -> None:
    assert agreement(written) == []


@pytest.mark.parametrize("path", found(), ids=lambda path: path.stem)
def test_tape_and_torch_agree_where_they_once_did_not(path: Path) -> None:
    assert agreement(read(path)) == []
