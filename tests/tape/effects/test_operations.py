"""The rows of operations: each is of one that there is, torch bears them out, nobody keeps others."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import pytest

from gradfix.tape.domain.effect import Effect
from gradfix.tape.effects import contractions, geometry, pieces, strides, table
from gradfix.tape.effects.operations import (
    DUNDERS,
    LAYERS,
    OPERATIONS,
    Key,
    LayerKey,
    LayerTrait,
    Table,
    Trait,
    having,
    in_all_forms,
    in_place,
    layers_having,
    layers_told,
    told,
    where,
)

ROOT = Path(__file__).parent.parent.parent.parent
UNRECORDED: Mapping[str, frozenset[str]] = {
    "makes a tensor of plain values, outside of any graph": frozenset({
        "tensor", "as_tensor", "asarray", "from_numpy", "load", "Variable", "Parameter", "Tensor",
        "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "HalfTensor", "IntTensor",
        "LongTensor", "ShortTensor",
    }),
    "leaves torch": frozenset({"numpy", "tolist"}),
    "an attribute": frozenset({"data"}),
    "a method of distributions": frozenset({"sample"}),
    "what torch has with another device": frozenset({"npu"}),
    "it takes a dtype by its name": frozenset({"type"}),
    "compiled, and recorded as its layer": frozenset({"logsigmoid"}),
}  # fmt: skip
"""Names with a row of which nothing is recorded, by the reason."""
SURFACES = ("method", "function", "functional")


def recorded(name: str) -> bool:
    """Whether there is an operation of this name, in place or not."""
    return any({name, f"{name}_"} & set(table.names(surface)) for surface in SURFACES)


def effects(name: str) -> tuple[Effect, ...]:
    """All that is recorded of an operation."""
    return (*table.method(name), *table.function(name), *table.functional(name))


def test_each_row_is_of_an_operation_that_is_recorded() -> None:
    allowed = frozenset[str]().union(*UNRECORDED.values())
    assert [name for name in OPERATIONS.names if not recorded(name) and name not in allowed] == []
    assert [name for name in allowed if recorded(name) or name not in OPERATIONS.names] == []


def test_each_row_of_a_layer_is_of_one_that_is_recorded() -> None:
    assert [name for name in LAYERS.names if name not in table.names("module")] == []


@pytest.mark.parametrize(
    "rows", [pytest.param(OPERATIONS, id="operations"), pytest.param(LAYERS, id="layers")]
)
def test_there_is_one_row_for_each_in_order_and_each_says_something(rows: Table) -> None:
    assert rows.names == sorted(set(rows.names), key=lambda name: (name.lower(), name))
    said = frozenset[str]().union(*rows.traits.values(), *rows.values.values())
    assert said == set(rows.names)


def test_every_trait_and_key_is_explained() -> None:
    assert (set(OPERATIONS.traits), set(OPERATIONS.values)) == (set(get_args(Trait)), set(get_args(Key)))
    assert (set(LAYERS.traits), set(LAYERS.values)) == (set(get_args(LayerTrait)), set(get_args(LayerKey)))


def test_there_is_a_rule_for_every_shape_and_stride() -> None:
    ruled = {
        *contractions.PRODUCTS, *contractions.REDUCTIONS, *contractions.LOSSES, *geometry.SHAPES,
        *geometry.JOINS, *geometry.ALIKE, *geometry.AS_OTHER,
    }  # fmt: skip
    assert ruled == set(told("shape"))
    assert set(pieces.RULES) <= set(told("shape").values())
    assert {*strides.RULES, *strides.REORDERED, *strides.SAME, *strides.RESHAPED} == set(told("stride"))


def test_forms_are_those_in_place_and_those_of_operators() -> None:
    assert in_all_forms(frozenset({"add"})) >= {"add", "add_", "__add__", "__radd__", "__iadd__"}
    assert in_all_forms(frozenset({"rsub"})) >= {"rsub", "__rsub__"}
    assert in_place(frozenset({"zero"})) == {"zero_"}
    assert all(recorded(name.rstrip("_")) for name in DUNDERS.values())


def test_what_is_flat_is_recorded_so() -> None:
    assert [name for name in having("flat") if not any(row.vanishes for row in effects(name))] == []


def test_what_gives_no_gradient_is_recorded_so() -> None:
    assert [name for name in told("gives") if not any(row.constant for row in effects(name))] == []


Call = Callable[[Any, Any, Any], Any]
"""How an operation is called: by torch, with two tensors of three rows and four columns."""


def method(name: str, *args: object) -> Call:
    return lambda torch, x, y: getattr(x, name)(*args)


def of_both(name: str) -> Call:
    return lambda torch, x, y: getattr(torch, name)(x, y)


def of_list(name: str) -> Call:
    return lambda torch, x, y: getattr(torch, name)([x, y])


def cast_to_its_dtype(name: str) -> Call:
    return lambda torch, x, y: getattr(x, name)(y if name == "type_as" else torch.float64)


LINEAR: Mapping[str, Call] = {
    **{name: of_both(name) for name in ("add", "sub", "subtract", "rsub")},
    **{name: of_list(name) for name in ("stack", "cat", "concat", "concatenate", "hstack", "vstack")},
    **{name: cast_to_its_dtype(name) for name in ("to", "type", "type_as")},
    "view": method("view", 12),
    "reshape": method("reshape", 12),
    "unsqueeze": method("unsqueeze", 0),
    "expand": method("expand", 2, 3, 4),
    "repeat": method("repeat", 2, 1),
}
ELSEWHERE = {"cuda", "xpu", "half", "bfloat16"}
"""Not on every machine, or not exact."""


@pytest.mark.torch
@pytest.mark.parametrize("name", sorted((having("additive") | having("copies")) - ELSEWHERE))
def test_what_is_additive_or_a_copy_is_linear(name: str) -> None:
    torch = pytest.importorskip("torch")
    call = LINEAR.get(name, method(name))
    x, y, u, v = (torch.arange(12.0).reshape(3, 4) * factor - 2 for factor in (1, 3, 5, 7))
    whole, parts = call(torch, x + u, y + v), call(torch, x, y) + call(torch, u, v)
    assert torch.equal(whole, parts)


@pytest.mark.torch
@pytest.mark.parametrize("name", sorted(having("scales")))
def test_what_scales_is_linear_where_the_factor_is_a_number(name: str) -> None:
    torch = pytest.importorskip("torch")
    x, u = torch.arange(12.0), torch.arange(12.0) * 3
    call = getattr(torch, name)
    assert torch.equal(call(x + u, 2.0), call(x, 2.0) + call(u, 2.0))
    assert not torch.equal(call(x + u, x + 1 + u), call(x, x + 1) + call(u, u + 1))


@pytest.mark.torch
@pytest.mark.parametrize("name", sorted(having("again") | having("again-by")))
def test_what_is_done_again_in_place_makes_another_value(name: str) -> None:
    torch = pytest.importorskip("torch")
    x = torch.tensor([0.3, 0.6])
    given = [torch.tensor(2.0)] if name in {"add", "sub"} | having("again-by") else []
    once = getattr(x, f"{name}_")(*given).clone()
    assert not torch.equal(getattr(x, f"{name}_")(*given), once)


@pytest.mark.torch
@pytest.mark.parametrize("name", sorted(having("wraps") - {"where", "copy"}))
def test_what_makes_a_tensor_of_a_number_leaves_inference_mode(name: str) -> None:
    torch = pytest.importorskip("torch")
    with torch.inference_mode():
        x = torch.ones(3)
    w = torch.ones(3, requires_grad=True)
    assert (getattr(torch, name)(x, 2) * w).sum().requires_grad


@pytest.mark.torch
@pytest.mark.parametrize("name", sorted(having("overwrites")))
def test_what_overwrites_keeps_nothing_of_what_was_there(name: str) -> None:
    torch = pytest.importorskip("torch")
    results = []
    for content in (0.25, 0.75):
        torch.manual_seed(0)
        x = torch.full((50,), content)
        results.append(getattr(x, f"{name}_")(*([3.0] if name == "fill" else [])))
    assert torch.equal(*results)


@pytest.mark.torch
@pytest.mark.parametrize("name", sorted(told("casts")))
def test_a_cast_makes_the_dtype_that_is_told(name: str) -> None:
    torch = pytest.importorskip("torch")
    kinds = {torch.float32: "float", torch.float64: "double", torch.bool: "bool",
             torch.float16: "half", torch.bfloat16: "half"}  # fmt: skip
    assert kinds.get(getattr(torch.ones(2), name)().dtype, "int") == told("casts")[name]


@pytest.mark.torch
@pytest.mark.parametrize("name", sorted(where("makes", "typed")))
def test_a_constructor_makes_the_dtype_that_is_told(name: str) -> None:
    torch = pytest.importorskip("torch")
    kinds = {torch.float32: "float", torch.float64: "double", torch.bool: "bool", torch.float16: "half"}
    assert kinds.get(getattr(torch, name)(2).dtype, "int") == told("dtype")[name]


@pytest.mark.torch
@pytest.mark.parametrize("name", sorted(having("permutes") - having("attribute")))
def test_what_permutes_is_a_view_out_of_order(name: str) -> None:
    torch = pytest.importorskip("torch")
    given = {"permute": (2, 0, 1), "adjoint": ()}.get(name, (0, 1))
    x = torch.arange(24.0).reshape(2, 3, 4)
    seen = getattr(x, name)(*given)
    assert seen.untyped_storage().data_ptr() == x.untyped_storage().data_ptr() and not seen.is_contiguous()


@pytest.mark.torch
@pytest.mark.parametrize("kind", sorted(layers_having("drops")))
def test_a_layer_that_drops_leaves_its_input_alone_in_eval_mode(kind: str) -> None:
    torch = pytest.importorskip("torch")
    layer = getattr(torch.nn, kind)(inplace=True).eval()
    x = torch.ones((2, 3, 4, 5, 6)[: 2 + int(kind[-2])] if kind.endswith("d") else (2, 3))
    before = x._version
    layer(x)
    assert x._version == before


@pytest.mark.torch
@pytest.mark.parametrize("kind", sorted(layers_told("state")))
def test_a_recurrent_layer_has_the_state_that_is_told(kind: str) -> None:
    torch = pytest.importorskip("torch")
    cell = kind.endswith("Cell")
    made = getattr(torch.nn, kind)(2, 3)(torch.ones(1, 2) if cell else torch.ones(1, 1, 2))
    state = made if cell else made[1]
    assert layers_told("state")[kind] == ("pair" if isinstance(state, tuple) else "one")


DTYPES = {
    "", "double", "float", "half", "int", "bool", "long", "short", "uint8", "int8", "int16", "int32", "int64",
    "float16", "float32", "float64", "bfloat16", "complex",
}  # fmt: skip
ELSEWHERE_FOR_A_REASON = {
    "requires_grad requires_grad_ detach_": "what switches an existing tensor, as words of the source",
    "eq ne lt le gt ge": "what Python's comparisons are called, by their syntax",
    "item tolist numpy numpy": "how the recorder calls what converts, by the method itself",
    "grad data requires_grad is_leaf grad_fn": "attributes that are read without being recorded",
}


def literals(tree: ast.AST) -> Iterator[tuple[int, list[str]]]:
    """The sets, tuples, lists and dicts of strings in a module, a dict by its keys and by its values."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Set, ast.Tuple, ast.List)):
            yield node.lineno, _strings(node.elts)
        elif isinstance(node, ast.Dict):
            yield node.lineno, _strings([key for key in node.keys if key is not None])
            yield node.lineno, _strings(node.values)
        elif isinstance(node, ast.Attribute) and node.attr == "split":
            yield node.lineno, " ".join(_strings([node.value])).split()


def _strings(nodes: list[ast.expr]) -> list[str]:
    return [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def operations_among(words: list[str]) -> list[str]:
    """Those that name operations and nothing else: neither dtypes nor functions of Python."""
    plain = [word for word in words if word not in DTYPES and not hasattr(builtins, word)]
    known = {*OPERATIONS.names, *table.names("module"), *DUNDERS}
    return [word for word in plain if word in known or recorded(word)]


def test_no_set_of_operations_is_kept_elsewhere() -> None:
    """Two names may be told apart where they are used; three are a trait. The driver's room names what it
    writes into programs, and its search runs in the user's interpreter, without the tape's tables."""
    kept = [
        f"{path.relative_to(ROOT)}:{line}: {', '.join(found)}"
        for folder in ("gradfix", "codemods")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if "effects" not in path.parts and "driver" not in path.parts
        for line, words in literals(ast.parse(path.read_text("utf-8")))
        if len(found := operations_among(words)) > 2 and 2 * len(found) > len(words)
        if " ".join(words) not in ELSEWHERE_FOR_A_REASON
    ]
    assert kept == []
