"""Small inputs for torch's overloads: by argument type, by hand, or from torch's own operator database."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from .schema import Argument, Overload

SHAPES = ((3, 3), (2, 3, 3), (4,), (2, 3, 4, 4), (2, 1, 3), ())
NUMBERS = {
    "dim0": 0,
    "dim1": 1,
    "axis0": 0,
    "axis1": 1,
    "source": 0,
    "destination": 1,
    "diagonal": 0,
    "offset": 0,
}
NUMBERS |= {"interpolation_mode": 0, "padding_mode": 0}
BOUNDS = {"min": 0.3, "max": 0.7}
LISTS: tuple[list[int], ...] = ([0], [1, 0], [3, 3], [1], [2], [2, 2], [1, 2], [-1], [2, 0, 1])
INDICES = {"index", "indices", "bins", "repeats", "sorted_sequence", "tensor_indices_or_sections"}


HAND: Mapping[str, dict[str, Any]] = {
    **{
        f"conv{transposed}{d}d.{'input' if transposed else 'default'}": {
            "input": torch.rand(2, 4, *[6] * d),
            "weight": torch.rand(4, 4, *[3] * d),
            "bias": torch.rand(4),
        }
        for transposed in ("", "_transpose")
        for d in (1, 2, 3)
    },
    **{
        f"conv{d}d.padding": {
            "input": torch.rand(2, 4, *[6] * d),
            "weight": torch.rand(4, 4, *[3] * d),
            "bias": torch.rand(4),
            "padding": "same",
        }
        for d in (1, 2, 3)
    },
    "scaled_dot_product_attention.default": {n: torch.rand(2, 2, 5, 4) for n in ("query", "key", "value")},
    "linalg_norm.ord_str": {"self": torch.rand(3, 3), "ord": "fro"},
    "batch_norm.default": {
        "input": torch.rand(4, 3, 5),
        "weight": torch.rand(3),
        "bias": torch.rand(3),
        "running_mean": torch.rand(3),
        "running_var": torch.rand(3),
        "training": True,
        "momentum": 0.1,
        "eps": 1e-5,
        "cudnn_enabled": False,
    },
    "instance_norm.default": {
        "input": torch.rand(4, 3, 5),
        "weight": torch.rand(3),
        "bias": torch.rand(3),
        "running_mean": torch.rand(3),
        "running_var": torch.rand(3),
        "use_input_stats": True,
        "momentum": 0.1,
        "eps": 1e-5,
        "cudnn_enabled": False,
    },
    "layer_norm.default": {
        "input": torch.rand(4, 3),
        "normalized_shape": [3],
        "weight": torch.rand(3),
        "bias": torch.rand(3),
    },
    "group_norm.default": {
        "input": torch.rand(4, 4, 3),
        "num_groups": 2,
        "weight": torch.rand(4),
        "bias": torch.rand(4),
    },
    "convolution.default": {
        "input": torch.rand(2, 3, 8),
        "weight": torch.rand(4, 3, 3),
        "bias": torch.rand(4),
        "stride": [1],
        "padding": [0],
        "dilation": [1],
        "transposed": False,
        "output_padding": [0],
        "groups": 1,
    },
    "float_power_.Scalar": {"self": torch.rand(3, 3, dtype=torch.float64), "exponent": 2},
    "float_power_.Tensor": {
        "self": torch.rand(3, 3, dtype=torch.float64),
        "exponent": torch.rand(3, 3, dtype=torch.float64),
    },
    **{
        f"{name}.value_reduce": {
            "self": torch.rand(3, 3),
            "dim": 0,
            "index": torch.zeros(3, 3, dtype=torch.int64),
            "value": 2,
            "reduce": "add",
        }
        for name in ("scatter", "scatter_")
    },
    "kl_div.default": {"self": torch.rand(3, 3), "target": torch.rand(3, 3)},
    "view_as_real.default": {"self": torch.rand(3, 3, dtype=torch.complex64)},
    "imag.default": {"self": torch.rand(3, 3, dtype=torch.complex64)},
    "rrelu.default": {"self": torch.randn(3, 3), "training": True},
    "rrelu_.default": {"self": torch.randn(3, 3), "training": True},
}
"""Where types alone find no sample, or one that isn't typical."""
ALSO: Mapping[str, list[dict[str, Any]]] = {
    "scaled_dot_product_attention.default": [{n: torch.rand(2, 5, 4) for n in ("query", "key", "value")}],
    "linear.default": [{"input": torch.rand(2, 5, 3), "weight": torch.rand(4, 3), "bias": torch.rand(4)}],
    "matmul.default": [{"self": torch.rand(2, 5, 3), "other": torch.rand(3, 4)}],
}
"""Further samples, of which only what they have in common counts."""


@dataclass(frozen=True)
class Recipe:
    """How to fill the tensors of a schema: the shape, and which of them hold integers."""

    shape: tuple[int, ...]
    index_shape: tuple[int, ...]
    integers: bool = False
    optional: bool = True
    numbers: list[int] | None = None
    low: float = 0.1
    high: float = 0.9


def tensor(recipe: Recipe, argument: Argument) -> Tensor:
    if argument.name in {"mask", "condition"}:
        return torch.rand(recipe.shape) > 0.5
    if argument.name in INDICES:
        return torch.arange(torch.Size(recipe.index_shape).numel()).reshape(recipe.index_shape) % 2
    if recipe.integers:
        return torch.randint(1, 5, recipe.shape)
    return torch.rand(recipe.shape) * (recipe.high - recipe.low) + recipe.low


def _value(argument: Argument, recipe: Recipe) -> Any:
    kind, plain = argument.kind, argument.type.rstrip("?")
    if plain.startswith("Tensor?["):
        return (torch.tensor([0, 1, 1]),)
    if kind == "l":
        return [tensor(recipe, argument), tensor(recipe, argument)]
    if kind == "t":
        return tensor(recipe, argument)
    if plain == "Device":
        return torch.device("cpu")
    if kind == "n":
        return (
            BOUNDS[argument.name]
            if argument.name in BOUNDS
            else {"float": 0.5, "Scalar": 2}.get(
                plain, NUMBERS.get(argument.name, 0 if "dim" in argument.name else 2)
            )
        )
    if "[" in plain:
        return [n + 1 for n in recipe.numbers or ()] if argument.name == "destination" else recipe.numbers
    if plain == "bool":
        return argument.name in {"train", "training"}
    if plain == "ScalarType":
        return torch.float32
    raise LookupError(plain)


def required(argument: Argument) -> bool:
    return argument.default is None


def values_by_type(overload: Overload, recipe: Recipe) -> dict[str, Any]:
    """Required arguments, and optional tensors where the recipe says so; `dim=None` stays None."""
    values: dict[str, Any] = {}
    for argument in overload.arguments:
        if argument.name in overload.outs or argument.name == "generator":
            continue
        if required(argument) and argument.type.endswith("?") and argument.kind != "t":
            values[argument.name] = None
        elif required(argument) or argument.name in BOUNDS or (recipe.optional and argument.kind == "t"):
            values[argument.name] = _value(argument, recipe)
    return values


def recipes(overload: Overload) -> Iterator[Recipe]:
    lists = any("[" in a.type and a.kind == "o" and required(a) for a in overload.arguments)
    indexed = any(a.name in INDICES for a in overload.arguments)
    optional = any(a.kind == "t" and not required(a) for a in overload.arguments)
    for integers, given, shape in itertools.product(
        (False, True), (True, False) if optional else (False,), SHAPES
    ):
        for index_shape in (shape, (3,), (2, 2), ()) if indexed else (shape,):
            for numbers in LISTS if lists else (None,):
                yield Recipe(shape, index_shape, integers, given, numbers)


def attempts(overload: Overload) -> Iterator[dict[str, Any]]:
    """Arguments by name, the plainest first."""
    torch.manual_seed(0)
    for recipe in recipes(overload):
        try:
            yield values_by_type(overload, recipe)
        except LookupError:
            return


@lru_cache(maxsize=1)
def _database() -> dict[str, list[Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db
    named: dict[str, list[Any]] = {}
    for entry in op_db:
        for name in (entry.name, *(alias.name for alias in entry.aliases)):
            named.setdefault(name, []).append(entry)
    return named


def database_samples(name: str, limit: int = 6) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    """(positional, keyword) arguments that torch tests this name with: the first few of each kind."""
    for entry in _database().get(name, ()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for dtype in (torch.float32, torch.int64):
                if dtype in entry.dtypes:
                    samples = entry.sample_inputs("cpu", dtype, requires_grad=False)
                    for sample in itertools.islice(samples, limit):
                        yield [sample.input, *sample.args], dict(sample.kwargs)
                    break


def bind(
    arguments: Sequence[Argument], positional: Sequence[Any], keyword: dict[str, Any]
) -> dict[str, Any] | None:
    """The sample by argument name, or None where it belongs to another overload."""
    if len(positional) > len(arguments):
        return None
    named = {a.name: v for a, v in zip(arguments, positional, strict=False)} | keyword
    by_name = {a.name: a for a in arguments}
    if not named.keys() <= by_name.keys() or any(required(a) and a.name not in named for a in arguments):
        return None
    return named if all(_fits(by_name[n], v) for n, v in named.items()) else None


def _fits(argument: Argument, value: Any) -> bool:
    if value is None:
        return "?" in argument.type
    if isinstance(value, Tensor):
        return argument.kind == "t"
    if isinstance(value, bool):
        return argument.type.startswith("bool")
    if isinstance(value, (int, float)):
        return argument.kind == "n" or argument.type.startswith(("int[", "SymInt["))
    return argument.kind in "lo"


def first_that_runs(candidates: Iterator[dict[str, Any]], run: Callable[[dict[str, Any]], Any]) -> Any:
    """The recording of the first sample that torch takes, or None."""
    for values in candidates:
        try:
            return run(values)
        except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError, LookupError):
            continue
    return None
