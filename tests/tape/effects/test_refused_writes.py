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
    lambda: torch.full((1, 3), 0.5).expand(3, 3),
    lambda: torch.ones(1, 3).long().expand(3, 3),
    lambda: torch.ones(1, 3).bool().expand(3, 3),
    lambda: torch.full((1, 1, 3), 0.5).expand(3, 3, 3),
)
FULL = torch.full((3, 3), 0.5)
FIRST = torch.tensor([0])
GIVEN = (
    (), (FULL,), (2.0,), (0.5,), (1,), (0, 1), (0,), (FULL > 0, 1.0), (FULL > 0, FULL), (0.1, 2.0),
    (FULL, FULL), (FULL, 0.5), (FULL.long(),), (FULL.long(), FULL.long()), (0, FIRST, 1.0),
    (0, FIRST, FULL[:1]), (0, FULL.long(), 1.0), (0, FULL.long(), FULL), (0, FIRST, FULL[:1], "mean"),
    (0, FULL.long(), FULL, "mean"), ((FIRST,), FULL[:1]), ((3, 1), (3, 1)), (FULL[0], FULL[0]),
    (FULL.expand(3, 3, 3), FULL.expand(3, 3, 3)), (FULL, FULL[0]), (FULL, FULL, FULL),
    (lambda value: value,), (2.0, 0, 0.5),
)  # fmt: skip


def in_place() -> list[str]:
    """All writes that methods do, as the tape knows them."""
    names = [name for name in dir(torch.Tensor) if name.endswith("_") and not name.startswith("_")]
    return [name for name in names if table.method(name)]


def answers(name: str) -> set[bool]:
    """Whether torch refuses it for the memory, each time that it takes the arguments."""
    found: set[bool] = set()
    for make in MADE:
        for args in GIVEN:
            try:
                getattr(make(), name)(*args)
                found.add(False)
            except (RuntimeError, TypeError, ValueError, IndexError) as error:
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
        pytest.param("m = torch.ones(3, 1).expand(3, 4)\nm[0] += 1", id="a row of one element"),
        pytest.param(
            "m = torch.ones(1, 3).expand(2, 3)\nif m.is_contiguous():\n    m = m.clone()\nm += 1",
            id="copied where it never is",
        ),
        pytest.param(
            "m = torch.ones(1, 3).expand(2, 3)\nm.data = m.data * 2\nm = m.expand(4, 2, 3)\nm += 1",
            id="what is given other memory, expanded again",
        ),
        pytest.param(
            "with torch.inference_mode():\n    q = torch.ones(3)\nif not q.is_inference():\n"
            "    q = q.clone()\nq += 1",
            id="cloned where it is ordinary",
        ),
        pytest.param(
            "with torch.inference_mode():\n    q = torch.ones(3)\n"
            "if not torch.is_inference_mode_enabled():\n    q += 1",
            id="where the mode is off",
        ),
        pytest.param(
            "def f(n):\n    with torch.inference_mode():\n        m = torch.ones(3)\n"
            "    m += n\n    return m",
            id="the mode is left in the same function",
        ),
        pytest.param(
            "with torch.inference_mode():\n"
            "    m = torch.einsum('ij,j->i', torch.ones(2, 3), torch.ones(3))\nm += 1",
            id="what einsum has made of two",
        ),
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
        pytest.param(
            "m = torch.ones(1, 3).expand(2, 3)\nm.unsqueeze_(1)\nm.transpose_(1, 2)\nm.squeeze_()",
            id="other sizes alone",
        ),
        pytest.param(
            "m = torch.ones(1, 3).expand(2, 3)\nm.index_put_((torch.tensor([0]),), torch.ones(3))",
            id="put by an index",
        ),
        pytest.param("m = torch.ones(1, 0).expand(4, 0)\nm += 1", id="nothing to write"),
        pytest.param(
            "m = torch.ones(1, 3).expand(2, 3)\nif not m.is_contiguous():\n    m = m.contiguous()\nm += 1",
            id="copied where it isn't contiguous",
        ),
        pytest.param(
            "m = torch.ones(1, 3).expand(2, 3)\nif 0 in m.stride():\n    m = m.clone()\nm += 1",
            id="copied by its strides",
        ),
        pytest.param("m = torch.ones(1, 3).expand(2, 3)\nm.data = torch.ones(2, 3)\nm += 1", id="other data"),
        pytest.param(
            "m = torch.ones(1, 3).expand(2, 3)\nm.data = m.clone()\nm += 1", id="a copy of itself as data"
        ),
        pytest.param(
            "m = torch.ones(1, 3).expand(2, 3)\nm.set_(torch.ones(2, 3))\nm += 1", id="other memory"
        ),
        pytest.param("m = torch.ones(3, 1).expand(3, 4)\nm.resize_(3, 8)\nm += 1", id="resized"),
        pytest.param(
            "m = torch.ones(3, 1).expand(3, 4)\nm.as_strided_((3, 1), (1, 1))\nm += 1",
            id="looked at otherwise",
        ),
        pytest.param(
            "m = torch.ones(3, 1).expand(3, 4)\ntorch.add(torch.ones(5), 1, out=m)\nm += 1",
            id="resized by out",
        ),
        pytest.param(
            "@torch.inference_mode()\ndef build():\n    return torch.zeros(3)\ndef bump():\n"
            "    t = build()\n    t += 1\n    return t",
            id="made by what runs in the mode, which may be on",
        ),
        pytest.param(
            "class Cache:\n    def __init__(self):\n        with torch.inference_mode():\n"
            "            self.k = torch.zeros(4, 3)\n"
            "    def update(self, i, v):\n        self.k[i] = v\n        self.k.mul_(0.9)\n"
            "        return self.k",
            id="a cache, which is filled in the mode",
        ),
        pytest.param(
            "with torch.inference_mode():\n    q = torch.ones(3)\nif q.is_inference():\n"
            "    q = q.clone()\nq += 1",
            id="cloned where it is of inference",
        ),
        pytest.param(
            "with torch.inference_mode():\n    q = torch.ones(3)\n"
            "if torch.is_inference_mode_enabled():\n    q += 1",
            id="written where the mode is on",
        ),
        pytest.param(
            "with torch.inference_mode():\n    q = torch.ones(4)\n"
            "q = nn.Parameter(q, requires_grad=False)\nq.add_(1)\nq[0].add_(1)",
            id="a parameter of it",
        ),
        pytest.param(
            "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.register_buffer('mean', torch.zeros(1, 3).expand(2, 3))\n"
            "    def forward(self, y):\n        self.mean.mul_(0.9)\n"
            "        return y - self.mean\nM().double()(torch.ones(2, 3))",
            id="a buffer of a module that was moved",
        ),
        pytest.param(
            "p = torch.ones(2, 3)\nwith torch.inference_mode():\n    m = torch.einsum('ij->ji', p)\nm += 1",
            id="einsum of one, which is a view of it",
        ),
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


def test_what_is_in_place_only_in_inference_mode_overwrites_nothing() -> None:
    assert (
        listed(
            "w = torch.ones(3, requires_grad=True)\ny = w.sigmoid()\n"
            "if torch.is_inference_mode_enabled():\n    y += 1\nelse:\n    y = y + 1\ny.sum().backward()"
        )
        == set()
    )


def test_what_is_transposed_is_known_not_to_be_contiguous() -> None:
    transposed = "w = torch.ones(3, 4, requires_grad=True)\ny = w.exp().t()\ns = y.sum()\n"
    copied = "if {}y.is_contiguous():\n    y = y.contiguous()\ny += 1\n(s + y.sum()).backward()"
    assert listed(transposed + copied.format("not ")) == set()
    assert listed(transposed + copied.format("")) == {"inplace_overwrites_saved"}
