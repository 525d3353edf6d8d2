"""Rows for what torch writes in Python: functionals, layers, methods, operators and indexing."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import takewhile
from operator import attrgetter
from typing import Any

import torch
from torch import Tensor

from .layers import (
    CUTTING_CASTS,
    DIFFERENTIABLE_CASTS,
    FUNCTIONALS,
    FUNCTIONS,
    GENERATOR,
    METHODS,
    PRODUCTS,
    PROPERTIES,
    VARIADIC,
    x,
)
from .native import Report, Rows, provoked
from .recorder import Call, observe, record, tensors_of
from .rows import REFUSED, Row, Subject, build, first_tensor, flagged
from .samples import database_samples

functional = torch.nn.functional
CONVERTERS = {"handle_torch_function", "boolean_dispatch", "assert_int_or_pair"}
FLAG = ("training", "use_input_stats", "log_target", "hard", "log_input", "swap", "sparse", "full")


def python_rows(report: Report) -> Rows:
    GENERATOR.manual_seed(1)
    rows: Rows = {"functional": {}, "functional_inplace": {}, "function": {}, "method": {}}
    for name in dir(functional):
        made = _functional(name, report)
        if made:
            rows["functional"][name], inplace = made
            if inplace:
                rows["functional_inplace"][name] = inplace
    for name, sample in FUNCTIONS.items():
        rows["function"][name] = _checked(report, [_plain(getattr(torch, name), sample)])
    rows["function"]["einsum"] = _checked(report, [_product(count) for count in PRODUCTS])
    for name, sample in METHODS.items():
        rows["method"][name] = _checked(report, [_plain(getattr(Tensor, name), sample)])
    for name, made_rows in (*_casts().items(), *_operators().items()):
        rows["method"][name] = _checked(report, made_rows)
    return rows


def _checked(report: Report, rows: list[Row]) -> list[Row]:
    report.recorded += len(rows)
    return rows


def signature_of(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Parameters; those of `max_pool2d` and its like are those of the function that they dispatch to."""
    dispatched = torch._jit_internal.boolean_dispatched.get(function)
    if dispatched is not None:
        function = dispatched["if_false"]
    return list(inspect.signature(function).parameters.values())


def kind_of(parameter: inspect.Parameter, value: Any) -> str:
    if isinstance(value, Tensor):
        return "t"
    if isinstance(value, (list, tuple)) and tensors_of(value):
        return "l"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return "n"
    if value is not None:
        return "o"
    note = str(parameter.annotation)
    if "Tensor" in note and not re.search(r"Callable|[Ll]ist|[Tt]uple", note):
        return "t"
    return (
        "n" if re.search(r"\b(float|int)\b", note) and not re.search(r"[Ll]ist|[Tt]uple|bool", note) else "o"
    )


def subject_of(function: Callable[..., Any], sample: Mapping[str, Any]) -> Subject:
    parameters = signature_of(function)
    if [p.name for p in parameters][:1] == ["args"]:
        parameters = [
            inspect.Parameter(
                n, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None if i else inspect._empty
            )
            for i, n in enumerate(sample)
        ]
    star = next((p.name for p in parameters if p.kind is inspect.Parameter.VAR_POSITIONAL), "")
    parameters = [p for p in parameters if p.kind is not inspect.Parameter.VAR_KEYWORD]
    kinds = "".join(
        kind_of(p, sample.get(p.name, None if p.default is p.empty else p.default)) for p in parameters
    )

    def invoke(values: dict[str, Any]) -> Any:
        if not star:
            return function(**values)
        before = [v for n, v in values.items() if n != star]
        return function(*before, *values[star])

    return subject_from(parameters, kinds, invoke)


def subject_from(
    parameters: list[inspect.Parameter], kinds: str, invoke: Callable[[dict[str, Any]], Any]
) -> Subject:
    """A star takes what is left, but may take nothing."""
    required = takewhile(lambda p: p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD, parameters)
    keyword = sum(p.kind is p.KEYWORD_ONLY for p in parameters)
    names = tuple(p.name for p in parameters)
    return Subject(names, kinds, invoke, needs=len(list(required)), keyword=keyword)


def _plain(function: Callable[..., Any], sample: Mapping[str, Any]) -> Row:
    subject = subject_of(function, sample)
    if function.__name__ in VARIADIC:
        subject = replace(subject, results=0)
    scalar = {n: [x()] if isinstance(v, list) else v for n, v in sample.items()}
    return build(subject, sample, [scalar]) | shape_row(subject, sample)


def _product(count: int) -> Row:
    names = [f"operand{i}" for i in range(count)]
    sample = {"equation": PRODUCTS[count]} | {n: x(3, 3) for n in names}
    return build(Subject(tuple(sample), "o" + "t" * count, lambda v: torch.einsum(*v.values())), sample)


def shape_row(subject: Subject, sample: Mapping[str, Any]) -> Row:
    """The samples are chosen so that whatever may change a shape does."""
    outputs = record(Call(sample, subject.invoke), ()).outputs
    inputs = tensors_of(sample.get(first_tensor(sample)))
    if not outputs or not inputs:
        return {}
    if (
        len(outputs) == 1
        and outputs[0].numel() == 1
        and {"reduction", "dim", "size_average"} & set(subject.names)
    ):
        return {"shape": "reduction"}
    return {"shape": "elementwise"} if all(o.shape == inputs[0].shape for o in outputs) else {}


def _functional(name: str, report: Report) -> tuple[list[Row], list[Row]] | None:
    function = getattr(functional, name)
    if name.startswith(("_", "has_torch")) or name in CONVERTERS or isinstance(function, type):
        return None
    sample = FUNCTIONALS.get(name)
    try:
        names = [p.name for p in signature_of(function)]
    except (TypeError, ValueError):
        return None
    if sample is None:
        sample = _from_database(name, function, names)
    if sample is None:
        report.unrecorded.append(f"nn.functional.{name}")
        return None
    rows = _checked(report, _states(function, sample, names, report))
    if "inplace" not in names:
        return rows, []
    return rows, _checked(report, _states(function, sample | {"inplace": True}, names, report))


def _from_database(name: str, function: Callable[..., Any], names: list[str]) -> dict[str, Any] | None:
    for positional, keyword in database_samples(f"nn.functional.{name}"):
        sample = dict(zip(names, positional, strict=False)) | keyword
        try:
            observe(Call(sample, lambda values: function(**values)))
        except REFUSED:
            continue
        return sample
    return None


def _states(
    function: Callable[..., Any], sample: Mapping[str, Any], names: list[str], report: Report
) -> list[Row]:
    """One row, or one for each state of a flag that changes the effect; the default state comes first."""
    flag = next((n for n in FLAG if n in names), "")
    sample = dict(sample)
    more = [sample | {"p": 0.0}] if "p" in names and "dropout" in function.__name__ else []

    def made(state: dict[str, Any]) -> Row:
        asked = sample | state
        subject = subject_of(function, asked)
        provoked(report, f"nn.functional.{function.__name__} {state}", Call(asked, subject.invoke))
        return build(subject, asked, [m | state for m in more]) | shape_row(subject, asked)

    if not flag:
        return [made({})]
    default = bool(next(p.default for p in signature_of(function) if p.name == flag))
    return flagged([(state, made({flag: state})) for state in (default, not default)], flag)


def _casts() -> dict[str, list[Row]]:
    """`x.float()` and its like; devices that this machine lacks do what `cpu` does."""
    rows = {}
    for name in DIFFERENTIABLE_CASTS:
        if hasattr(Tensor, name):
            cast = getattr(Tensor, "float" if name in {"cuda", "xpu", "mtia", "ipu"} else name)
            subject = _unary(cast)
            row = build(subject, {"self": x(3, 4)}, [{"self": x(3, 4).double()}])
            rows[name] = [row | {"view": "maybe", "returns_self": "maybe", "shape": "elementwise"}]
    for name in CUTTING_CASTS:
        cast = getattr(Tensor, name)
        subject = _unary(cast)
        rows[name] = [build(subject, {"self": x(3, 4)}) | {"shape": "elementwise"}]
    return rows


def _unary(operation: Callable[[Tensor], Any]) -> Subject:
    return Subject(("self",), "t", lambda values: operation(values["self"]))


def _get(values: dict[str, Any]) -> Any:
    return values["self"][values["index"]]


def _set(values: dict[str, Any]) -> Any:
    values["self"][values["index"]] = values["value"]
    return values["self"]


def _operators() -> dict[str, list[Row]]:
    """Indexing, and the operators that aren't just a method under another name."""
    basic = [{"self": x(3, 4), "index": i} for i in (0, slice(1, 2), slice(None), None, ..., (0, slice(1)))]
    long, mask = torch.tensor([0, 2]), torch.tensor([True, False, True])
    rows = {"__getitem__": [build(Subject(("self", "index"), "to", _get), basic[0], basic[1:])]}
    rows["__getitem__"] += _by_index(Subject(("self", "index"), "tt", _get), {}, long, mask)
    rows["__setitem__"] = []
    for kind, value in (("t", x(4)), ("n", 1.0)):
        put = Subject(("self", "index", "value"), f"to{kind}", _set)
        rows["__setitem__"].append(build(put, {"self": x(3, 4), "index": 0, "value": value}))
        put = Subject(("self", "index", "value"), f"tt{kind}", _set)
        rows["__setitem__"] += _by_index(put, {"value": value}, long, mask)
    for name in (
        "__rsub__",
        "__rtruediv__",
        "__rdiv__",
        "__rpow__",
        "__rfloordiv__",
        "__rmod__",
        "__rmatmul__",
    ):
        rows[name] = [
            r
            for kind in ("t" if name == "__rmatmul__" else "tn")
            if (r := _reflected(name, kind)) is not None
        ]
    for name in PROPERTIES:
        subject = _unary(attrgetter(name))
        rows[name] = [build(subject, {"self": x(3, 4)})]
    return rows


def _by_index(subject: Subject, more: Row, long: Tensor, mask: Tensor) -> list[Row]:
    asked = [
        (flag, {"self": x(3, 4), "index": index} | more) for flag, index in ((False, long), (True, mask))
    ]
    return flagged([(flag, build(subject, values)) for flag, values in asked], "index_is_mask")


def _reflected(name: str, kind: str) -> Row | None:
    operator = getattr(Tensor, name)
    sample = {"self": x(3, 3), "other": x(3, 3) if kind == "t" else 2.0}
    subject = Subject(("self", "other"), f"t{kind}", lambda v: operator(v["self"], v["other"]))
    try:
        row = build(subject, sample)
    except REFUSED:
        return None
    return row if name == "__rmatmul__" else row | {"shape": "elementwise"}
