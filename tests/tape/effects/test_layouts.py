"""What is taken for contiguous: torch bears it out for each operation, and nothing is said of what copies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import pytest
import torch
from short import listed
from torch.utils._pytree import tree_flatten, tree_map_only

from gradfix.tape.effects import table
from gradfix.tape.effects.layouts import OTHERWISE, ROW_MAJOR, ROW_MAJOR_BY_WEIGHT, SMALL_ROW_MAJOR
from gradfix.tape.effects.operations import OPERATIONS
from gradfix.tape.effects.strides import POINTWISE

SURFACES = ("method", "function", "functional")
SAMPLES = 5
"""So many sets of arguments are tried of each operation."""
UNTRIED = frozenset({"concat", "gumbel_softmax", "one_hot"})
"""Operations with a row that torch has no samples of, of float32 at least."""


def _as_if(order: Callable[[int], list[int]]) -> Callable[[torch.Tensor], torch.Tensor]:
    """The same values, in memory as if the dimensions had another order."""

    def lies(tensor: torch.Tensor) -> torch.Tensor:
        dims = order(tensor.dim())
        back = [dims.index(dim) for dim in range(tensor.dim())]
        return tensor.detach().permute(dims).contiguous().permute(back)

    return lies


def _channels_last(tensor: torch.Tensor) -> torch.Tensor:
    given = tensor.detach()
    return given.contiguous(memory_format=torch.channels_last) if tensor.dim() == 4 else given


def _repeated(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach()[:1].expand(tensor.shape) if tensor.dim() > 1 else tensor.detach()


ORDERS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "contiguous": lambda tensor: tensor.detach().contiguous(),
    "reversed": _as_if(lambda rank: list(reversed(range(rank)))),
    "last two exchanged": _as_if(lambda rank: [*range(rank - 2), *reversed(range(max(rank - 2, 0), rank))]),
    "first two exchanged": _as_if(lambda rank: [*reversed(range(min(rank, 2))), *range(2, rank)]),
    "channels last": _channels_last,
    "expanded": _repeated,
}


def operations() -> Iterator[tuple[str, Any]]:
    """The operations that torch has samples of, by the names that the tape has for them."""
    from torch.testing._internal.common_methods_invocations import op_db

    known = frozenset(OPERATIONS.names).union(*(table.names(surface) for surface in SURFACES))
    for one in op_db:
        name = one.name.removeprefix("nn.functional.")
        if name in known - OTHERWISE:
            yield name, one


def _made(operation: Any, given: Any, lies: Callable[[torch.Tensor], torch.Tensor]) -> list[torch.Tensor]:
    """The tensors of their own memory that an operation makes of arguments that lie so."""
    whole = (given.input, given.args, given.kwargs)
    try:
        first, args, kwargs = tree_map_only(torch.Tensor, lies, whole)
        results = tree_flatten(operation.op(first, *args, **kwargs))[0]
    except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError):
        return []
    held = [one for one in tree_flatten((first, args, kwargs))[0] if isinstance(one, torch.Tensor)]
    there = {one.untyped_storage().data_ptr() for one in held}
    return [
        one
        for one in results
        if isinstance(one, torch.Tensor)
        and one.layout == torch.strided
        and one.untyped_storage().data_ptr() not in there
    ]


def _orders_of(name: str) -> list[str]:
    """In which orders the inputs of an operation may lie, and its result is still taken for contiguous."""
    return list(ORDERS) if name in ROW_MAJOR | SMALL_ROW_MAJOR else ["contiguous"]


def _is_taken(name: str, order: str, one: torch.Tensor) -> bool:
    return order == "contiguous" or name not in SMALL_ROW_MAJOR or one.dim() < 4


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore")
def test_what_is_taken_for_contiguous_is() -> None:
    wrong: set[tuple[str, str]] = set()
    tried: set[str] = set()
    for name, operation in operations():
        for given in islice(operation.sample_inputs("cpu", torch.float32), SAMPLES):
            if "memory_format" in given.kwargs:
                continue
            for order in _orders_of(name):
                made = [one for one in _made(operation, given, ORDERS[order]) if _is_taken(name, order, one)]
                tried |= {name} if made else set()
                wrong |= {(name, order) for one in made if not one.is_contiguous()}
    assert wrong == set()
    assert (ROW_MAJOR | SMALL_ROW_MAJOR | POINTWISE) - tried == UNTRIED


@pytest.mark.torch
@pytest.mark.parametrize("name", sorted(ROW_MAJOR_BY_WEIGHT))
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("sizes", [(1, 3, 3), (2, 3, 1), (2, 1, 6), (4, 3, 6)], ids=str)
def test_the_weight_says_how_a_convolution_lies(name: str, order: str, sizes: tuple[int, int, int]) -> None:
    x = ORDERS[order](torch.rand(sizes))
    shape = (2, sizes[1], 1) if name == "conv1d" else (sizes[1], 2, 1)
    assert getattr(torch, name)(x, torch.rand(shape)).is_contiguous()


GATE = """
gate = torch.ones((), requires_grad=True)
z = y * gate
flat = y.reshape(-1)
flat += 1
z.sum().backward()
"""
"""A write to what `reshape` gives, once the product keeps what it was given."""
HERE = "import numpy as np\ni = torch.rand(2, 3, 4, 5)\nbatch = torch.rand(2, 5, 4)\n"


def _runs(body: str) -> bool:
    try:
        exec(f"import torch\nfrom torch import nn\n{HERE}{body}{GATE}", {})
    except RuntimeError:
        return False
    return True


COPIED = [
    "y = torch.einsum('bhij,bhjd->bihd', torch.rand(2, 3, 4, 4), torch.rand(2, 3, 4, 5))",
    "y = torch.einsum('ncvl,vw->ncwl', i, torch.rand(4, 4))",
    "y = nn.LSTM(4, 3, batch_first=True)(batch)[0]",
    "y = nn.GRU(4, 3, 1, True, True)(batch)[0]",
    "y, h = nn.RNN(4, 3, batch_first=True)(batch)",
    "y = nn.MultiheadAttention(4, 2, batch_first=True)(batch, batch, batch)[0]",
    "y = i.contiguous(memory_format=torch.channels_last)",
    "y = i.clone(memory_format=torch.channels_last)",
    "y = i.cpu(memory_format=torch.channels_last)",
    "y = i.double().float(memory_format=torch.channels_last)",
    "y = i.to(memory_format=torch.channels_last)",
    "y = torch.zeros_like(i, memory_format=torch.channels_last)",
    "y = torch.empty(2, 3, 4, 5, memory_format=torch.channels_last).fill_(1.0)",
    "y = torch.fft.irfft(torch.fft.rfft(batch, dim=1), dim=1)",
    "y = torch.linalg.solve_ex(torch.eye(4), torch.rand(4, 3))[0]",
    "p = nn.Parameter(torch.rand(3, 4).t())\ny = p.detach()",
    "m = nn.Linear(3, 4)\nm.weight.data = torch.rand(3, 4).t()\ny = m.weight.detach()",
    "y = torch.from_numpy(np.ones((3, 4)).T)",
    "y = torch.tensor(np.ones((3, 4)).T)",
    "y = torch.FloatTensor(np.ones((3, 4)).T)",
]
SHOWN = [
    "y = torch.rand(3, 4)",
    "y = nn.LSTM(4, 3)(batch)[0]",
    "y = nn.GRU(4, 3, batch_first=False)(batch)[0]",
    "y = nn.MultiheadAttention(4, 2)(batch, batch, batch)[0]",
    "y = i.clone(memory_format=torch.contiguous_format)",
    "y = i.transpose(1, 2).contiguous()",
    "y = torch.zeros_like(i)",
    "p = nn.Parameter(torch.rand(3, 4))\ny = p.detach()",
    "m = nn.Linear(3, 4)\nm.weight.data = torch.rand(4, 3)\ny = m.weight.detach()",
    "y = torch.tensor([[1.0, 2.0], [3.0, 4.0]])",
    "y = nn.Conv1d(5, 3, 1)(batch.transpose(0, 1).contiguous().transpose(0, 1))",
]


@pytest.mark.torch
@pytest.mark.parametrize("body", COPIED)
def test_nothing_is_said_of_a_write_to_a_copy(body: str) -> None:
    assert _runs(body)
    assert listed(f"{HERE}{body}{GATE}") == set()


@pytest.mark.torch
@pytest.mark.parametrize("body", SHOWN)
def test_a_write_to_what_is_shown_is_found(body: str) -> None:
    assert not _runs(body)
    assert listed(f"{HERE}{body}{GATE}") != set()
