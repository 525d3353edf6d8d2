"""The programs of `tests.wild` are what they claim to be, and gradfix says nothing false of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("torch")

from wild import judge
from wild.arena import runs, warm
from wild.campaign import FALSE, Case, Tally, one, shrunk
from wild.facts import Facts
from wild.planting import BUGS, Planted, planted
from wild.programs import written
from wild.world import Dice

from gradfix.defects import Evidence, Role, Span
from gradfix.rule import Finding

pytestmark = pytest.mark.torch

LOOP = """import torch
from torch import nn
model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.ones(2, 2, 3):
    hidden = model[:2](x)
    loss = model[2](hidden).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
STALE = LOOP.replace("    optimizer.zero_grad()\n", "")
ZERO = STALE.replace("(hidden).mean()", "(hidden).mean() * 0")
ERASED = STALE.replace("    optimizer.step", "    optimizer.zero_grad()\n    optimizer.step")
LATER = ERASED.replace(
    "    optimizer.step", "    model[2](model[:2](x)).mean().backward()\n    optimizer.step"
)
CUT = LOOP.replace("(hidden)", "(hidden.detach())")
OVERWRITTEN = LOOP.replace("    loss =", "    hidden += 1\n    loss =")
HANDLED = OVERWRITTEN.replace(
    "loss.backward()", "try:\n        loss.backward()\n    except RuntimeError:\n        continue"
)
LOOKS = "import sys\n" + LOOP.replace("for x", "if '--look' in sys.argv:\n    exit(0)\nfor x")
REPLACED = LOOP.replace("for x", "model[2] = nn.Linear(4, 1)\nfor x")


@pytest.fixture(scope="module", autouse=True)
def _warm() -> None:
    """Not while tests are collected: of several processes that do so, one runs them."""
    warm()


def seen(source: str) -> Facts:
    (facts,) = runs(source, [[]])
    return facts


def shows(source: str) -> str:
    return judge.sort([seen(source)], [seen(LOOP)])


@pytest.mark.parametrize(
    ("source", "signs"),
    [
        pytest.param(LOOP, "", id="nothing where all is well"),
        pytest.param(STALE, "stale", id="a gradient that is used twice"),
        pytest.param(ERASED, "unreached, wasted", id="a gradient that is erased"),
        pytest.param(CUT, "unreached", id="leaves behind a detach"),
        pytest.param(OVERWRITTEN, "raises", id="an overwritten value"),
        pytest.param(HANDLED, "handled", id="a failure that has a handler"),
        pytest.param(REPLACED, "unreached, unowned", id="a layer that no optimizer has"),
        pytest.param(LOOP.replace("mean()", "mean().item()"), "invalid", id="no bug of autograd"),
        pytest.param(LOOP.replace("mean()", "sum() * 2"), "other gradients", id="another gradient"),
    ],
)
def test_torch_shows(source: str, signs: str) -> None:
    assert shows(source) == signs


def quiet(rule: str, culprit: int) -> Finding:
    """A finding that says that something trains wrong."""
    return Finding("", rule, "", Span(culprit, 0, culprit, 1), (), "certain", "trains wrong")


def loud(culprit: int, *evidence: int) -> Finding:
    """A finding that says that something is overwritten."""
    steps = tuple(Evidence(Span(line, 0, line, 1), Role.SAVED) for line in evidence)
    found = replace(quiet("inplace_overwrites_saved", culprit), evidence=steps, impact="crashes")
    return replace(found, torch_says="modified by an inplace")


@pytest.mark.parametrize(
    ("source", "claim", "verdict"),
    [
        pytest.param(STALE, quiet("missing_zero_grad", 8), "confirmed", id="a stale gradient"),
        pytest.param(LOOP, quiet("missing_zero_grad", 9), "refuted", id="no stale gradient"),
        pytest.param(ZERO, quiet("missing_zero_grad", 8), "undecided", id="a stale gradient that is zero"),
        pytest.param(ERASED, quiet("zero_grad_before_step", 9), "confirmed", id="an erased gradient"),
        pytest.param(LATER, quiet("zero_grad_before_step", 9), "confirmed", id="one of two gradients erased"),
        pytest.param(LOOP, quiet("zero_grad_before_step", 8), "refuted", id="a gradient that was used"),
        pytest.param(CUT, quiet("unreached_parameters", 4), "confirmed", id="unreached leaves"),
        pytest.param(LOOP, quiet("unreached_parameters", 4), "refuted", id="reached leaves"),
        pytest.param(OVERWRITTEN, loud(7, 6, 10), "confirmed", id="a failure"),
        pytest.param(HANDLED, loud(7, 6, 11), "confirmed", id="a failure that has a handler"),
        pytest.param(LOOP, loud(7, 9), "refuted", id="a failure that does not come"),
        pytest.param(OVERWRITTEN, loud(8, 6), "refuted", id="a failure at another line"),
        pytest.param(LOOP, loud(99, 9), "undecided", id="a line that did not run"),
    ],
)
def test_torch_judges(source: str, claim: Finding, verdict: str) -> None:
    assert judge.judged(claim, [seen(source)], [], Planted("", source, 1)) == verdict


@pytest.mark.parametrize(
    ("source", "verdict"),
    [
        pytest.param(REPLACED, "confirmed", id="leaves that nobody reaches"),
        pytest.param(LOOP, "undecided", id="no fix of its own to compare with"),
    ],
)
def test_a_finding_is_not_refuted_by_the_fixes_of_others(source: str, verdict: str) -> None:
    claim = quiet("optimizer_before_replacement", 4)
    facts = [seen(source)]
    assert judge.judged(claim, facts, facts, Planted("", source, 1)) == verdict


def test_a_fix_is_judged_by_what_is_left() -> None:
    assert judge.fixed([seen(STALE)], [seen(LOOP)]) == ""
    assert judge.fixed([seen(STALE)], [seen(CUT)]) == "brings: unreached"
    assert judge.fixed([seen(CUT)], [seen(CUT)]) == ""
    assert judge.fixed([seen(OVERWRITTEN)], [seen(OVERWRITTEN)]) == "still raises"
    assert judge.fixed([seen(CUT)], [seen(OVERWRITTEN)]) == "raises"
    assert judge.fixed([seen(STALE)], [seen(LOOP.replace("mean()", "sum() * 2"))]) == "another value"


def test_what_a_healthy_program_handles_says_nothing_of_a_bug() -> None:
    facts = seen(HANDLED)
    assert facts.caught
    judge.forgive([facts], [seen(HANDLED)])
    assert not facts.caught


def test_a_run_that_only_looks_is_no_run_that_trains() -> None:
    assert judge.healthy(runs(LOOKS, [[], ["--look"]]))
    assert not judge.healthy(runs(LOOKS, [["--look"]]))


def test_a_program_that_ends_by_itself_has_not_failed() -> None:
    assert judge.healthy([seen(LOOP + "raise SystemExit\n")])
    assert not judge.healthy([seen(LOOP + "raise SystemExit(1)\n")])


def test_a_program_that_nobody_learns_from_may_not_fail() -> None:
    unused = LOOP.replace("    optimizer.step()\n", "")
    assert judge.healthy([seen(unused)], idle=True)
    assert not judge.healthy([seen(unused)])
    assert not judge.healthy([seen(OVERWRITTEN)], idle=True)


def test_a_seed_always_writes_the_same_program() -> None:
    assert [written(seed).source for seed in range(40)] == [written(seed).source for seed in range(40)]


def test_nearly_every_program_is_healthy() -> None:
    programs = [(written(seed), seed) for seed in range(5000, 5060)]
    ill = [seed for p, seed in programs if not judge.healthy(runs(p.source, p.calls(Dice(seed), 2)))]
    assert len(ill) < 4


def test_every_bug_can_be_planted() -> None:
    found = set()
    for seed in range(400):
        bug = planted(written(seed % 100).source, Dice(seed))
        found |= {bug.bug} if bug else set()
    assert len(found) > 0.8 * len(BUGS)


def test_a_disagreement_shrinks_to_what_it_needs() -> None:
    case = Case("", 0, OVERWRITTEN + "print(1)\n", ((),), lambda text: seen_to_raise(text))
    assert "print" not in shrunk(case)


def seen_to_raise(text: str) -> bool:
    error = seen(text).error
    return error is not None and "inplace" in error[1]


@pytest.mark.parametrize("first", range(9000, 9150, 30), ids=lambda first: f"seeds from {first}")
def test_nothing_false_is_said_of_wild_programs(first: int) -> None:
    """Nothing at all of the healthy ones, nothing certain of the broken ones that torch refutes."""
    tally = Tally()
    for seed in range(first, first + 30):
        tally.add(one(seed))
    assert false(tally) == []
    assert tally.counts["healthy"] > 25
    assert tally.counts["found"] > 10


def false(tally: Tally) -> list[tuple[str, int]]:
    return [(case.group, case.seed) for case in tally.cases if case.group.startswith(FALSE)]
