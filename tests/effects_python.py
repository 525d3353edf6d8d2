"""Rows for what torch writes in Python: functionals, layers, methods, operators and indexing."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import torch
from effects_layers import (
    CUTTING_CASTS,
    DIFFERENTIABLE_CASTS,
    FUNCTIONALS,
    FUNCTIONS,
    METHODS,
    MODULES,
    PRODUCTS,
    PROPERTIES,
    VARIADIC,
    c,
    x,
)
from effects_native import Report, Rows
from effects_recorder import Call, observe, record, tensors_of
from effects_rows import REFUSED, Row, Subject, build, first_tensor, flagged, row_of, transposed
from effects_samples import database_samples
from torch import Tensor

functional = torch.nn.functional
CONVERTERS = {"handle_torch_function", "boolean_dispatch", "assert_int_or_pair"}
FLAG = {"training": (True, False), "use_input_stats": (True, False)}


def python_rows(report: Report) -> Rows:
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
    return "n" if re.search(r"\b(float|int)\b", note) and not re.search(r"[Ll]ist|[Tt]uple|bool", note) else "o"


def subject_of(function: Callable[..., Any], sample: Mapping[str, Any]) -> Subject:
    parameters = signature_of(function)
    if [p.name for p in parameters][:1] == ["args"]:
        parameters = [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in sample]
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

    return Subject(tuple(p.name for p in parameters), kinds, invoke)


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
    if len(outputs) == 1 and outputs[0].numel() == 1 and {"reduction", "dim", "size_average"} & set(subject.names):
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
    rows = _checked(report, _states(function, sample, names, {}))
    return rows, _checked(report, _states(function, sample, names, {"inplace": True})) if "inplace" in names else []


def _from_database(name: str, function: Callable[..., Any], names: list[str]) -> dict[str, Any] | None:
    for positional, keyword in database_samples(f"nn.functional.{name}"):
        sample = dict(zip(names, positional, strict=False)) | keyword
        try:
            observe(Call(sample, lambda values: function(**values)))
        except REFUSED:
            continue
        return sample
    return None


def _states(function: Callable[..., Any], sample: Mapping[str, Any], names: list[str], set_: Row) -> list[Row]:
    """One row, or one for each state of a flag that changes the effect; the default state comes first."""
    flag = next((n for n in FLAG if n in names), "")
    sample = dict(sample) | set_
    more = [sample | {"p": 0.0}] if "p" in names and "dropout" in function.__name__ else []

    def made(state: dict[str, Any]) -> Row:
        asked = sample | state
        subject = subject_of(function, asked)
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
            subject = Subject(("self",), "t", lambda v, cast=cast: cast(v["self"]))
            row = build(subject, {"self": x(3, 4)}, [{"self": x(3, 4).double()}])
            rows[name] = [row | {"view": "maybe", "returns_self": "maybe", "shape": "elementwise"}]
    for name in CUTTING_CASTS:
        cast = getattr(Tensor, name)
        subject = Subject(("self",), "t", lambda v, cast=cast: cast(v["self"]))
        rows[name] = [build(subject, {"self": x(3, 4)}) | {"shape": "elementwise"}]
    return rows


def _set(values: dict[str, Any]) -> Any:
    values["self"][values["index"]] = values["value"]
    return values["self"]


def _operators() -> dict[str, list[Row]]:
    """Indexing, and the operators that aren't just a method under another name."""
    get = lambda v: v["self"][v["index"]]  # noqa: E731
    basic = [{"self": x(3, 4), "index": i} for i in (0, slice(1, 2), slice(None), None, ..., (0, slice(1)))]
    long, mask = c(2), x(3) > 0.5
    rows = {"__getitem__": [build(Subject(("self", "index"), "to", get), basic[0], basic[1:])]}
    rows["__getitem__"] += _by_index(Subject(("self", "index"), "tt", get), {}, long, mask)
    rows["__setitem__"] = []
    for kind, value in (("t", x(4)), ("n", 1.0)):
        put = Subject(("self", "index", "value"), f"to{kind}", _set)
        rows["__setitem__"].append(build(put, {"self": x(3, 4), "index": 0, "value": value}))
        put = Subject(("self", "index", "value"), f"tt{kind}", _set)
        rows["__setitem__"] += _by_index(put, {"value": value}, long, mask)
    for name in ("__rsub__", "__rtruediv__", "__rdiv__", "__rpow__", "__rfloordiv__", "__rmod__", "__rmatmul__"):
        rows[name] = [r for kind in ("t" if name == "__rmatmul__" else "tn") if (r := _reflected(name, kind)) is not None]
    for name in PROPERTIES:
        subject = Subject(("self",), "t", lambda v, name=name: getattr(v["self"], name))
        rows[name] = [build(subject, {"self": x(3, 4)})]
    return rows


def _by_index(subject: Subject, more: Row, long: Tensor, mask: Tensor) -> list[Row]:
    asked = [(flag, {"self": x(3, 4), "index": index} | more) for flag, index in ((False, long), (True, mask))]
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


def module_rows(report: Report) -> dict[str, dict[str, Any]]:
    """For each layer how it is built and what its forward does in training and in evaluation."""
    rows = {}
    for name in dir(torch.nn):
        kind = getattr(torch.nn, name)
        if name in MODULES:
            rows[name] = _module(kind, *MODULES[name])
            report.recorded += 3 if "inplace" in rows[name] else 2
        elif isinstance(kind, type) and issubclass(kind, torch.nn.Module):
            report.unrecorded.append(f"nn.{name}")
    return rows


def _module(kind: Any, made: dict[str, Any], sample: Mapping[str, Any]) -> dict[str, Any]:
    init = _init_of(kind)
    module = kind(**made)
    row: dict[str, Any] = {
        "init": " ".join(n for n, _ in init),
        "defaults": {n: d for n, d in init if _is_plain(d)},
        "train": _forward(module, sample, True),
        "eval": _forward(module, sample, False),
        "parameters": " ".join(n for n, _ in module.named_parameters()),
        "buffers": " ".join(n for n, _ in module.named_buffers()),
    }
    names = {n for n, _ in init}
    if "p" in names and "Dropout" in kind.__name__:
        never = _forward(kind(**made, p=0.0), sample, True)
        row["train"] |= {k: "maybe" for k in ("view", "returns_self") if k in never and k not in row["train"]}
    if "inplace" in names:
        row["inplace"] = _forward(kind(**made, inplace=True), sample, True)
    return row


def _is_plain(default: Any) -> bool:
    if isinstance(default, float):
        return math.isfinite(default)
    return default is None or isinstance(default, (bool, int, str))


def _init_of(kind: Any) -> list[tuple[str, Any]]:
    """Constructor parameters with their defaults; the recurrent layers hide theirs behind `*args`."""
    own = list(inspect.signature(kind.__init__).parameters.values())[1:]
    if any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in own) and issubclass(kind, torch.nn.RNNBase):
        base = list(inspect.signature(torch.nn.RNNBase.__init__).parameters.values())[2:]
        own = [p for p in base if p.name != "proj_size" or kind is torch.nn.LSTM]
        if kind is torch.nn.RNN:
            nonlinearity = inspect.Parameter("nonlinearity", inspect.Parameter.KEYWORD_ONLY, default="tanh")
            own.insert([p.name for p in own].index("num_layers") + 1, nonlinearity)
    named = [p for p in own if p.kind not in {p.VAR_POSITIONAL, p.VAR_KEYWORD}]
    return [(p.name, p.default) for p in named]


def _forward(module: torch.nn.Module, sample: Mapping[str, Any], training: bool) -> Row:
    module.train(training)
    parameters = list(inspect.signature(type(module).forward).parameters.values())[1:]
    sample = dict(zip([p.name for p in parameters], sample.values(), strict=False))
    record(Call(sample, lambda values: module(**values)), ())
    kinds = "".join(kind_of(p, sample.get(p.name, None if p.default is p.empty else p.default)) for p in parameters)
    subject = Subject(tuple(p.name for p in parameters), kinds, lambda values: module(**values))
    state = dict(module.named_parameters()) | dict(module.named_buffers())
    call = Call(sample, subject.invoke, state)
    recording = observe(call)
    runs = [recording.typical, *_layouts(subject, sample, state, recording)]
    row = row_of(subject, recording, runs, first_tensor(sample), recording.vanishes)
    reduces = len(recording.typical.outputs) == 1 and recording.typical.outputs[0].numel() == 1
    return row | ({"shape": "reduction"} if reduces else _same_shape(sample, recording.typical.outputs))


def _same_shape(sample: Mapping[str, Any], outputs: list[Tensor]) -> Row:
    inputs = tensors_of(sample[first_tensor(sample)])
    return {"shape": "elementwise"} if all(o.shape == inputs[0].shape for o in outputs) else {}


def _layouts(subject: Subject, sample: Mapping[str, Any], state: dict[str, Tensor], recording: Any) -> list[Any]:
    if not any(recording.typical.shares):
        return []
    runs = []
    for variant in (transposed(sample), {n: x(4, 6) for n in sample}):
        with suppress(*REFUSED):
            runs.append(record(Call(variant, subject.invoke, state), recording.names))
    return runs
