"""What torch refuses to write: the rows say for which operations, and torch bears them out."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from short import listed

from gradfix.tape.effects import table
from gradfix.tape.effects.operations import having

SHARED = "more than one element of the written-to tensor"
OUT = "functions with out=... arguments don't support automatic differentiation"
MADE: tuple[Callable[[], torch.Tensor], ...] = (
    lambda: torch.full((1, 3), 0.5).expand(4, 3),
    lambda: torch.ones(1, 3).long().expand(4, 3),
    lambda: torch.ones(1, 3).bool().expand(4, 3),
)
GIVEN = (
    (), (torch.full((4, 3), 0.5),), (2.0,), (1,), (0, 1), (torch.ones(4, 3).bool(), 1.0), (0.1, 2.0),
    (torch.ones(4, 3), torch.ones(4, 3)), (torch.ones(4, 3), 0.5), (torch.ones(4, 3).long(),),
    (0, torch.tensor([0]), 1.0),
)  # fmt: skip


def in_place() -> list[str]:
    """The elementwise writes that methods do, as the tape knows them."""
    names = [name for name in table.names("method") if name.endswith("_") and not name.endswith("__")]
    return [name for name in names if table.method(name)[0].shape == "elementwise"]


def answers(name: str) -> set[bool]:
    """Whether torch refuses it for the memory, each time that it takes the arguments."""
    found: set[bool] = set()
    for make in MADE:
        for args in GIVEN:
            try:
                getattr(make(), name)(*args)
                found.add(False)
            except (RuntimeError, TypeError) as error:
                found |= {True} if SHARED in str(error) else set()
    return found


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore")
def test_writes_look_at_how_the_elements_lie_but_those_that_are_said_not_to() -> None:
    spared = having("takes-repeated")
    wrong = [name for name in in_place() if (False in answers(name)) > (name[:-1] in spared)]
    assert wrong == []


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(having("refuses-out")))
def test_what_is_to_be_recorded_cannot_go_to_out(name: str) -> None:
    live = torch.full((3, 3), 0.5, requires_grad=True)
    batch = live.expand(2, 3, 3)
    tries = (
        (live,), (live, live), (live, 0), ([live, live],), (live, live, 0.5), (live, live, live),
        (batch, batch), (batch, batch, batch), (live, live[0]), (live[0], live[0]), (live > 0, live, live),
        (live, 0, torch.zeros(3, 3).long()), (live, 0, torch.zeros(3).long()), (live, 0.0),
    )  # fmt: skip
    said: set[bool] = set()
    for args in tries:
        try:
            getattr(torch, name)(*args, out=torch.empty(0))
            said.add(False)
        except (RuntimeError, TypeError, IndexError, AttributeError) as error:
            said |= {True} if OUT in str(error) else set()
    assert said == {True}


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("m = torch.ones(3).expand(2, 3)\nm.mul_(2)", id="expanded"),
        pytest.param("m = torch.ones(1, 3).expand_as(torch.ones(2, 3))\nm += 1", id="expanded as another"),
        pytest.param("m = torch.ones(1, 3).expand(2, 3)\nm.t().sub_(1)", id="a view of what is expanded"),
        pytest.param("m = torch.ones(x, 1).expand(x, 3)\nm /= 2", id="one size isn't known"),
        pytest.param(
            "with torch.inference_mode():\n    m = torch.ones(3)\nm[0] = 1", id="made in inference mode"
        ),
        pytest.param(
            "with torch.inference_mode():\n    m = torch.ones(3)\nwith torch.no_grad():\n    m += 1",
            id="written where nothing is recorded",
        ),
        pytest.param("m = torch.ones(3)\ntorch.add(w, 1, out=m)", id="put into out"),
        pytest.param("torch.add(torch.ones(3), 1, out=w * 1)", id="put into what has a graph"),
    ],
)
def test_torch_refuses(body: str) -> None:
    assert listed(f"w = torch.ones(3, requires_grad=True)\nx = len(open('f').read())\n{body}") == {
        "write_refused"
    }


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("m = torch.ones(3).expand(x, 3)\nm.mul_(2)", id="how often isn't known"),
        pytest.param("m = torch.ones(x, 3).expand(2, 3)\nm.mul_(2)", id="what there is isn't known"),
        pytest.param("m = torch.ones(2, 3).expand(-1, 3)\nm.mul_(2)", id="expanded to what it was"),
        pytest.param("m = torch.ones(3).expand(2, 3).contiguous()\nm.mul_(2)", id="copied"),
        pytest.param("m = torch.ones(3).expand(2, 3)\nm.zero_()", id="one value for all"),
        pytest.param("m = torch.ones(3).expand(2, 3)\nm[0].mul_(2)", id="one row"),
        pytest.param("m = torch.ones(3).expand(2, 3)\nm = m * 2\nm += 1", id="out of place"),
        pytest.param(
            "with torch.inference_mode():\n    m = torch.ones(3)\nm = m.clone()\nm += 1", id="a clone"
        ),
        pytest.param("m = torch.ones(3)\nwith torch.inference_mode():\n    m += 1\nm += 1", id="made before"),
        pytest.param("with torch.inference_mode(x):\n    m = torch.ones(3)\nm += 1", id="a mode by a flag"),
        pytest.param("with torch.no_grad():\n    torch.add(w, 1, out=w)", id="out where nothing is recorded"),
        pytest.param("torch.gt(w, 1, out=torch.ones(3).bool())", id="out without a derivative"),
        pytest.param("def f(v):\n    return torch.exp(v, out=v)", id="out of an argument"),
        pytest.param(
            "try:\n    torch.exp(w, out=torch.ones(3))\nexcept RuntimeError:\n    pass", id="it is expected"
        ),
    ],
)
def test_nothing_is_said_of(body: str) -> None:
    assert listed(f"w = torch.ones(3, requires_grad=True)\nx = len(open('f').read())\n{body}") == set()


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("w.set_(w * 1)", id="a leaf"),
        pytest.param("w[:2].set_(torch.ones(2))", id="a view of a leaf"),
    ],
)
def test_what_a_leaf_shows_is_not_exchanged(body: str) -> None:
    assert listed(f"w = torch.ones(3, requires_grad=True)\n{body}") == {"inplace_on_leaf"}


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("with torch.no_grad():\n    w.set_(w * 1)", id="where nothing is recorded"),
        pytest.param("w.data.set_(torch.ones(3))", id="by its data"),
        pytest.param("(w * 1).set_(torch.ones(3))", id="of a result"),
        pytest.param("torch.ones(3).set_(w * 1)", id="of what requires none"),
        pytest.param("w.detach().set_(torch.ones(3))", id="of what is detached"),
    ],
)
def test_what_shows_other_memory_is_left_alone(body: str) -> None:
    assert listed(f"w = torch.ones(3, requires_grad=True)\n{body}") == set()
