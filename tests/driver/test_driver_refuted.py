"""A finding that was certain, and that torch doesn't show where its lines run through, is our own defect."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest

from gradfix.config import Config
from gradfix.plan import Plan, plan_for
from gradfix.proof import Proving, proved
from gradfix.session import Request
from gradfix.source import Source, parse
from gradfix.tape.analysis import Analysis
from gradfix.verify import Verdict

pytestmark = pytest.mark.torch

BROKEN = """\
import torch
from torch import nn


def fit(x, scaled=True):
    net = nn.Linear(4, 20)
    h = torch.sigmoid(net(x))
    h += 1
    h.sum().backward()
    return net.weight.grad
"""
HEALTHY = BROKEN.replace("h += 1", "h = h + 1")
LINE = "this is a defect of gradfix, please report it: GF101 inplace_overwrites_saved was certain and fit("


def planted(path: Path, claimed: str) -> Plan:
    """A plan by which the tape says of the file at hand what is true of another one."""
    plan = plan_for(Config(path.parent))

    def analyse(source: Source, asked: Plan) -> Analysis:
        other = parse(str(path), claimed.encode())
        assert isinstance(other, Source)
        return plan.analyse(other, asked)

    return replace(plan, analyse=analyse)


def said(path: Path, text: str, claimed: str) -> Verdict:
    """What `--verify` says of the claim."""
    path.write_text(text)
    request = Request((str(path),), "list", planted(path, claimed), jobs=1)
    run = proved(request, Proving(), lambda _: lambda _: None)
    (verdict,) = (each for one in run.outcomes for each in one.verdicts if each.kind)
    return verdict


def test_a_certain_claim_that_its_driver_refutes_is_reported_as_a_defect_of_gradfix(tmp_path: Path) -> None:
    verdict = said(tmp_path / "net.py", HEALTHY, BROKEN)
    assert verdict.verdict == "not reproduced"
    assert LINE in verdict.reason
    assert verdict.reason.endswith(f"doesn't show it (gradfix {version('gradfix')})")


def test_a_claim_that_its_driver_shows_is_no_defect_of_gradfix(tmp_path: Path) -> None:
    verdict = said(tmp_path / "net.py", BROKEN, BROKEN)
    assert "defect of gradfix" not in verdict.reason


def test_a_claim_under_a_condition_that_the_driver_may_not_meet_is_not_refuted(tmp_path: Path) -> None:
    flagged = BROKEN.replace("    h += 1\n", "    if scaled:\n        h += 1\n")
    verdict = said(tmp_path / "net.py", flagged.replace("h += 1", "h = h + 1"), flagged)
    assert verdict.verdict == "not reproduced"
    assert "defect of gradfix" not in verdict.reason
