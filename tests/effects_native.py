"""Rows for torch's native functions: every overload, recorded, with derivatives.yaml as the second witness."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any

import torch
from effects_recorder import Call, Recording, differentiable_names, observe, record, tensors_of
from effects_rows import REFUSED, Row, Subject, as_method, build, common, flagged, renamed, with_unseen
from effects_samples import (
    LISTS,
    SHAPES,
    Recipe,
    attempts,
    bind,
    database_samples,
    first_that_runs,
    values_by_type,
)
from effects_schema import FACTORY, Overload, overloads
from torchgen.model import SchemaKind

FLAGS = ("train", "training", "use_input_stats")
MANY_TRIES = 60
_ONE: tuple[tuple[tuple[int, ...], ...], ...] = (((2, 5),), ((2, 1, 5),), ((1, 5),))

Rows = dict[str, dict[str, list[Row]]]
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


@dataclass
class Report:
    """What the generation has to tell apart from the table."""

    recorded: int = 0
    agreed: int = 0
    disagreements: list[str] = field(default_factory=list)
    joint: list[str] = field(default_factory=list)
    unrecorded: list[str] = field(default_factory=list)


def operator(overload: Overload) -> Any:
    return getattr(getattr(torch.ops.aten, overload.base), overload.overload or "default")


def database_names(overload: Overload) -> Iterator[str]:
    base = overload.base.removesuffix("_") if overload.kind is SchemaKind.inplace else overload.base
    yield base
    yield f"nn.functional.{base}"
    for namespace in ("linalg", "special", "fft"):
        if base.startswith(f"{namespace}_"):
            yield f"{namespace}.{base.removeprefix(namespace + '_')}"


def candidates(overload: Overload) -> Iterator[dict[str, Any]]:
    if overload.spelled in HAND:
        yield dict(HAND[overload.spelled])
    yield from attempts(overload)
    for name in database_names(overload):
        for positional, keyword in database_samples(name):
            values = bind(overload.arguments, positional, keyword)
            if values is not None:
                yield values


def on_surface(overload: Overload) -> list[tuple[str, str]]:
    """The names under which the installed torch really has it as a builtin."""
    return [(s, n) for s, n in overload.surfaces if _is_builtin(s, n)]


def _is_builtin(surface: str, name: str) -> bool:
    place: Any = {"method": torch.Tensor, "function": torch, "functional": torch.nn.functional}[surface]
    for part in name.split("."):
        place = getattr(place, part, None)
    return place is not None and not hasattr(place, "__code__")


def native_rows(report: Report) -> Rows:
    rows: Rows = {"method": {}, "function": {}, "functional": {}}
    shapes: dict[str, str] = {}
    outs: list[tuple[Overload, list[tuple[str, str]]]] = []
    for overload in overloads():
        surfaces = on_surface(overload)
        if surfaces and overload.kind is SchemaKind.out:
            outs.append((overload, surfaces))
        elif surfaces:
            _add(rows, surfaces, _rows_of(overload, report, shapes))
    for overload, surfaces in outs:
        known = [(s, n) for s, n in surfaces if n in rows[s]]
        _add(rows, known, [_out_row(overload, shapes.get(overload.base, ""))])
    return rows


def _add(rows: Rows, surfaces: Iterable[tuple[str, str]], made: list[Row]) -> None:
    for surface, name in surfaces:
        for row in made:
            spelled = as_method(row) if surface == "method" else renamed(row, "self", "input")
            if spelled not in rows[surface].setdefault(name, []):
                rows[surface][name].append(spelled)
    for surface, name in surfaces:
        if not rows[surface].get(name, True):
            del rows[surface][name]


def _python_call(overload: Overload) -> Callable[[dict[str, Any]], Any]:
    """As users call it: `x * 2` is another overload to the dispatcher than `x.mul` with a Scalar."""
    surface, name = on_surface(overload)[0]
    place: Any = {"method": torch.Tensor, "function": torch, "functional": torch.nn.functional}[surface]
    for part in name.split("."):
        place = getattr(place, part)

    def invoke(values: dict[str, Any]) -> Any:
        rest = dict(values)
        first = [rest.pop("self")] if surface == "method" else []
        for argument in overload.arguments:
            if argument.name in rest and not argument.keyword:
                first.append(rest.pop(argument.name))
            elif argument.name != "self":
                break
        return place(*first, **rest)

    return invoke


def _subject(overload: Overload, call: Callable[[dict[str, Any]], Any]) -> Subject:
    names = [a.name for a in overload.arguments]
    kinds = "".join(a.kind for a in overload.arguments)
    if set(names) >= FACTORY:
        names, kinds = [*names, "requires_grad"], kinds + "o"
    return Subject(tuple(names), kinds, call, overload.results)


def _rows_of(overload: Overload, report: Report, shapes: dict[str, str]) -> list[Row]:
    op = operator(overload)
    found = None
    for call in (_python_call(overload), lambda values: op(**values)):
        subject = _subject(overload, call)
        found = found or first_that_runs(candidates(overload), partial(_observed, subject))
        if found is not None:
            break
    if found is None:
        report.unrecorded.append(overload.spelled)
        return []
    values, recording = found
    report.recorded += 1
    if recording.joint:
        report.joint.append(f"{overload.spelled}: {sorted(recording.joint)}")
    _compare(overload, values, recording.saves, report)
    shape = shape_of(overload, subject)
    shapes.setdefault(overload.base, shape)
    drops = "dropout" in overload.base
    more = _more_views(overload) if overload.view or drops or any(recording.typical.shares) else []
    flag = next((f for f in FLAGS if f in values and overload.base not in {"lstm", "gru"}), "")
    if not flag:
        return [_finished(overload, subject, values, more, shape)]
    return flagged(
        [
            (state, _finished(overload, subject, values | {flag: state}, [m | {flag: state} for m in more], shape))
            for state in (True, False)
        ],
        flag,
    )


def _observed(subject: Subject, values: dict[str, Any]) -> tuple[dict[str, Any], Recording]:
    return values, observe(Call(values, subject.invoke))


def _finished(
    overload: Overload, subject: Subject, values: dict[str, Any], more: list[dict[str, Any]], shape: str
) -> Row:
    row = build(subject, values, more)
    if overload.spelled in ALSO:
        row = common(row, [build(subject, v) for v in ALSO[overload.spelled]])
    row = with_unseen(row, overload.saves if not overload.composite else None, values)
    return row | ({"shape": shape} if shape else {})


def _more_views(overload: Overload) -> list[dict[str, Any]]:
    """Enough other inputs to see whether a view is a view for all of them."""
    more: list[dict[str, Any]] = []
    for values in islice(candidates(overload), 3 * MANY_TRIES):
        if len(more) == MANY_TRIES:
            break
        more.append(values)
    if "dropout" in overload.base:
        more += [values | {"p": 0.0} for values in more[:2]]
    if any(a.name == "dtype" for a in overload.arguments):
        more += [values | {"dtype": torch.float64} for values in more[:2]]
    return more


def _compare(overload: Overload, values: Mapping[str, Any], saves: dict[str, list[str]], report: Report) -> None:
    if overload.saves is None or overload.composite:
        return
    told = {w: {n for n in ns if n in values} for w, ns in overload.saves.items()}
    told = {w: ns for w, ns in told.items() if ns and (w in values or w.startswith("result"))}
    heard = {w: set(ns) for w, ns in saves.items()}
    if any(not tensors_of(v) for n, v in values.items() if n in told):
        return
    if told == heard or not differentiable_names(Call(values, lambda _: None)):
        report.agreed += 1
    else:
        report.disagreements.append(f"{overload.spelled}: yaml {told}, recorded {heard}")


def _out_row(overload: Overload, shape: str) -> Row:
    row: Row = {
        "args": " ".join(a.name for a in overload.arguments),
        "kinds": "".join(a.kind for a in overload.arguments),
        "writes": " ".join(overload.outs),
        "returns_self": "always",
    }
    if overload.results != 1:
        row["results"] = overload.results
    return row | ({"shape": shape} if shape else {})


def shape_of(overload: Overload, subject: Subject) -> str:
    """Shape of the result, where all that torch takes agree on it."""
    tensors = [a.name for a in overload.arguments if a.kind == "t"]
    if not tensors or any(a.kind == "l" for a in overload.arguments) or not overload.results:
        return ""
    if _all_agree(subject, _broadcast_samples(overload, tensors), _is_broadcast):
        return "elementwise"
    plain = (values_by_type(overload, r) for r in _plain_recipes())
    return "reduction" if _all_agree(subject, plain, _is_one) else ""


def _plain_recipes() -> Iterator[Recipe]:
    for shape in (*SHAPES[:4], (2, 5)):
        for numbers in LISTS:
            for integers in (False, True):
                yield Recipe(shape, shape, integers, optional=False, numbers=numbers)


def _broadcast_samples(overload: Overload, tensors: list[str]) -> Iterator[dict[str, Any]]:
    several = ((2, 4, 3), (4, 1), (3,)) if overload.kind is SchemaKind.inplace else ((2, 1, 3), (4, 1), (3,))
    for one in _ONE if len(tensors) == 1 else (several, ((3, 2), (2,), ())):
        for numbers in LISTS:
            for integers in (False, True):
                values: dict[str, Any] = {}
                for i, name in enumerate(tensors):
                    shape = one[i % len(one)]
                    made = values_by_type(overload, Recipe(shape, shape, integers, True, numbers))
                    values = made | {n: values[n] for n in tensors[:i]} | {name: made[name]}
                yield values


def _all_agree(subject: Subject, samples: Iterator[dict[str, Any]], agrees: Any) -> bool:
    agreed = False
    while True:
        try:
            values = next(samples)
        except StopIteration:
            return agreed
        except LookupError:
            return False
        try:
            outputs = record(Call(values, subject.invoke), ()).outputs
        except REFUSED:
            continue
        if not outputs or not agrees(values, outputs):
            return False
        agreed = True


def _is_broadcast(values: Mapping[str, Any], outputs: list[torch.Tensor]) -> bool:
    shapes = [t.shape for v in values.values() for t in tensors_of(v)]
    try:
        return all(o.shape == torch.broadcast_shapes(*shapes) for o in outputs)
    except RuntimeError:
        return False


def _is_one(values: Mapping[str, Any], outputs: list[torch.Tensor]) -> bool:
    return all(o.numel() == 1 for o in outputs)
