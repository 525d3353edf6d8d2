"""What is found beneath one flag is found beneath any number, and nothing else is; in the words it needs."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from zlib import crc32

import pytest

from gradfix.defects import Defect
from gradfix.source import Source, parse
from gradfix.tape.entries import analyse
from properties.branching import SCALING, TOUCHING, WAYS, differences, found, scalable

FIXTURES = Path(__file__).parent.parent.parent / "fixtures"
MANY = (3, 10)
"""Numbers of flags, or of arms, of which fewer used to be enough to silence everything."""
LEAVES = frozenset({"leaf_rebound", "no_leaf_requires_grad", "requires_grad_misspelt", "grad_of_non_leaf"})
"""Rules about leaves, which are told apart and not looked at as one."""


def fixtures(name: str) -> list[Path]:
    """One in twelve, whichever others there are."""
    return [
        path for path in sorted(FIXTURES.glob(f"*/*/{name}.py")) if crc32(path.parent.name.encode()) % 12 == 0
    ]


@pytest.mark.parametrize("way", TOUCHING)
def test_branches_that_touch_nothing_of_it_change_nothing(way: str) -> None:
    for path in fixtures("before"):
        told = list(differences(path.parent.name, path.read_text("utf-8"), MANY, [way]))
        assert [one for one in told if one is not None] == []


@pytest.mark.parametrize("way", WAYS)
def test_the_healthy_stay_silent_beneath_any_number(way: str) -> None:
    for path in [*fixtures("after"), *fixtures("keep")]:
        if way in SCALING and path.parent.parent.name in LEAVES:
            continue  # a leaf that is scaled is none: optimizers refuse it
        told = differences(path.parent.name, path.read_text("utf-8"), MANY, [way])
        assert [one for one in told if one is not None and one.gained] == []


@pytest.mark.parametrize("way", SCALING)
def test_what_is_found_beneath_one_is_found_beneath_any_number(way: str) -> None:
    """Seven in eight of the variants: what hangs on a leaf, or on a list of results, is lost."""
    tried = lost = 0
    for path in fixtures("before"):
        if path.parent.parent.name not in LEAVES:
            told = list(differences(path.parent.name, path.read_text("utf-8"), MANY, [way]))
            tried, lost = tried + len(told), lost + sum(one is not None and bool(one.lost) for one in told)
    assert tried > 40 and lost <= tried // 8


def defects(body: str) -> list[Defect]:
    """What is found in a script, without matters of style."""
    source = parse("script.py", dedent(body).encode())
    assert isinstance(source, Source)
    return [one for one in analyse(source).defects if one.impact != "style"]


START = """import os, sys
import torch
w = torch.ones(3, requires_grad=True)
x = w * 1
k = len(sys.argv)
"""


def test_each_of_many_flags_is_the_one_condition_of_its_own_bug() -> None:
    flags = [f"if os.environ.get('F{i}'):\n    x = x.exp()\n    x += 1\n" for i in range(20)]
    conditions = [one.condition for one in defects(START + "".join(flags) + "x.sum().backward()\n")]
    assert conditions == [f"os.environ.get('F{i}')" for i in range(20)]


@pytest.mark.parametrize("count", [2, 4, 10, 40])
def test_each_of_many_arms_is_the_one_condition_of_its_own_bug(count: int) -> None:
    arms = [f"{'el' if i else ''}if k == {i}:\n    x = x.exp()\n    x += 1\n" for i in range(count)]
    conditions = [one.condition for one in defects(START + "".join(arms) + "x.sum().backward()\n")]
    assert conditions == [f"k == {i}" for i in range(count)]


def test_a_write_after_many_arms_overwrites_what_each_has_saved() -> None:
    arms = [f"{'el' if i else ''}if k == {i}:\n    x = w * {i}.5\n" for i in range(12)]
    script = START + "".join(arms) + "x = x.exp()\nx += 1\n"
    assert [(one.kind, one.condition) for one in defects(script + "x.sum().backward()\n")] == [
        ("inplace_overwrites_saved", "")
    ]


def test_two_thousand_arms_are_one_choice() -> None:
    arms = [f"{'el' if i else ''}if k == {i}:\n    x = x * {i}.5\n" for i in range(2_000)]
    script = START + "u = x.exp()\n" + "".join(arms) + "u += 1\n(x.sum() + u.sum()).backward()\n"
    assert [(one.kind, one.condition) for one in defects(script)] == [("inplace_overwrites_saved", "")]


SAVED = "y = x.exp()\n{}\n    y += 1\n(y.sum() * 2).backward()\n"


@pytest.mark.parametrize(
    ("test", "told"),
    [
        pytest.param("if not os.environ.get('A'):", "not os.environ.get('A')", id="what fails"),
        pytest.param("if not k < 3:", "k >= 3", id="a comparison that fails"),
        pytest.param("if k is not None:", "k is not None", id="what isn't None"),
        pytest.param("if k < 3 and os.environ.get('A'):", "k < 3 and os.environ.get('A')", id="both at once"),
        pytest.param("if k < 3 or k > 7:", "k < 3 or k > 7", id="one of two"),
        pytest.param("if not (k < 3 and k > 7):", "not (k < 3 and k > 7)", id="not both"),
        pytest.param("if __name__ == '__main__':", "", id="how the file is run"),
    ],
)
def test_a_condition_is_told_as_a_person_would(test: str, told: str) -> None:
    start = START.replace("len(sys.argv)", "os.environ.get('K')")
    assert [one.condition for one in defects(start + SAVED.format(test))] == [told]


def test_a_name_that_is_called_is_not_scaled() -> None:
    assert scalable("net = make()\ny = net(x)\nz = y * 2\n") >= {"y", "z"}
    assert "net" not in scalable("net = make()\ny = net(x)\n")
    assert found("import torch\n") == frozenset()


def test_what_may_be_no_tensor_at_all_is_not_one_without_a_graph() -> None:
    flags = [f"if os.environ.get('F{i}'):\n    total = total + (w * {i}).sum()\n" for i in range(6)]
    assert defects(START + "total = 0\n" + "".join(flags) + "total.backward()\n") == []
    assert (
        defects(START + "total = None\n" + "".join(flags).replace("total +", "") + "total.backward()\n") == []
    )


TERMS = """
a, b = os.environ.get("a"), os.environ.get("b")
c, d = os.environ.get("c"), os.environ.get("d")
loss = torch.zeros(3)
if a and not b:
    loss = loss + w
if c:
    loss = loss + w * 2
"""


@pytest.mark.parametrize(
    "test", ["(a and not b) or c", "c or (a and not b)", "not (not c and not (a and not b))", "a and not b"]
)
def test_a_test_that_says_again_what_each_flag_asked_leaves_no_way_around_them(test: str) -> None:
    assert defects(START + TERMS + f"if {test}:\n    loss.sum().backward()\n") == []


@pytest.mark.parametrize("test", ["not (a and not b)", "d", "not ((a and not b) and c)"])
def test_a_test_that_asks_something_else_leaves_one(test: str) -> None:
    kinds = [one.kind for one in defects(START + TERMS + f"if {test}:\n    loss.sum().backward()\n")]
    assert kinds == ["no_leaf_requires_grad"]


APPROACH = """
class Approach:
    def __init__(self, model, old_weight=1.0, metric_weight=0.0):
        self.model, self.old_weight, self.metric_weight = model, old_weight, metric_weight

    def epoch(self, t, loader):
        for x, y in loader:
            out = self.model(x)
            loss = self.distilled(t, out, y)
            if self.metric_weight > 0:
                loss += self.metric_weight * self.metric(t, out, y)
            loss.backward()

    def distilled(self, t, out, old):
        loss = torch.zeros(1)
        if {test}:
            loss += self.old_weight * torch.dist(out, old)
        return loss
"""


@pytest.mark.parametrize(
    ("test", "condition"),
    [
        (
            "t > 0 and self.old_weight > 0",
            "not (t > 0 and self.old_weight > 0) and self.metric_weight <= 0",
        ),
        ("t > 0", "self.metric_weight <= 0 and t <= 0"),
    ],
)
def test_each_test_that_adds_a_term_is_in_the_condition_of_a_loss_without_any(
    test: str, condition: str
) -> None:
    (found,) = defects(START + APPROACH.format(test=test))
    assert (found.kind, found.condition) == ("no_leaf_requires_grad", condition)
