"""What stands beside a definition changes nothing of what is said of it, in any order."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from oracle.choose import seeded
from oracle.programs import program

from gradfix.tape.entry_filter import Culprits
from properties.permuting import STRANGERS, Tally, compared, parts, permuted, said, tried

FIXTURES = Path(__file__).parent.parent.parent / "fixtures"
FOUND = """import torch


def other(x):
    return x.cuda()


def one():
    w = torch.ones(3, requires_grad=True)
    y = w.exp()
    y += 1
    y.sum().backward()


class Net(torch.nn.Module):
    def forward(self, x):
        return other(x)


class Wide(Net):
    size = other(2)
"""


def differences(texts: dict[str, str], seed: int, variants: int) -> list[str]:
    """What the variants of some programs change."""
    rng, tally = random.Random(seed), Tally()
    for name, text in texts.items():
        tried(Path(name), text, rng, variants, tally)
    assert tally.files > len(texts) * 0.9 and tally.findings > len(texts) * 0.3
    return [f"{one.path}: lost {sorted(one.lost)}, gained {sorted(one.gained)}" for one in tally.differences]


def test_the_findings_of_the_fixtures_stay() -> None:
    texts = {str(path.parent): path.read_text("utf-8") for path in sorted(FIXTURES.glob("*/*/before.py"))}
    assert differences(texts, seed=1, variants=1) == []


def test_the_findings_of_random_programs_stay() -> None:
    texts = {str(seed): program(seeded(seed)).source for seed in range(100)}
    assert differences(texts, seed=2, variants=1) == []


def test_findings_stay_where_no_entry_has_work_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Culprits, "size", lambda self, node: -6_600)
    texts = {str(path.parent): path.read_text("utf-8") for path in sorted(FIXTURES.glob("*/*/before.py"))}
    assert differences(texts, seed=3, variants=1) == []


def test_every_line_is_where_it_is_said_to_be() -> None:
    variant = permuted(FOUND, random.Random(4), 5)
    before, after = FOUND.splitlines(), variant.text.splitlines()
    assert sorted(variant.lines) == list(range(1, len(before) + 1))
    assert [after[variant.lines[i] - 1] for i in sorted(variant.lines)] == before
    assert len(after) > len(before)


def test_definitions_change_places_where_none_needs_the_other() -> None:
    orders = set()
    for seed in range(200):
        found = [part.node.name for part in parts(permuted(FOUND, random.Random(seed), 0).text) if part.node]
        orders.add(tuple(found))
    assert len(orders) == 8
    assert all(order.index("Wide") > max(order.index("Net"), order.index("other")) for order in orders)


@pytest.mark.parametrize("stranger", STRANGERS, ids=lambda text: text.format(name="stranger").split("\n")[0])
def test_a_stranger_is_a_definition_that_nobody_calls(stranger: str) -> None:
    (part,) = (part for part in parts(stranger.format(name="Z1")) if part.node)
    assert part.node is not None and part.node.name == "Z1"


@pytest.mark.parametrize(
    ("change", "lost", "gained"),
    [
        pytest.param(("    y += 1\n", "    y + 1.\n"), 1, 0, id="goes"),
        pytest.param(("    return x.cuda()\n", "    x.exp().add_(1).sum().backward()\n"), 0, 1, id="comes"),
    ],
)
def test_a_finding_that_comes_or_goes_is_told(change: tuple[str, str], lost: int, gained: int) -> None:
    before = said(FOUND)
    assert before is not None
    variant = permuted(FOUND, random.Random(5), 0)
    told = compared(Path("x.py"), before, type(variant)(variant.text.replace(*change), variant.lines))
    assert told is not None
    assert (len(told.lost), len(told.gained)) == (lost, gained)
