"""Rows for torch's layers: how each is built, and what its forward does in training and in evaluation."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor

from .layers import MODULES, Built, x
from .native import Report, provoked
from .python import kind_of, subject_from
from .recorder import Call, Recording, Run, observe, record, tensors_of
from .rows import REFUSED, Row, Subject, first_tensor, row_of, transposed


def module_rows(report: Report) -> dict[str, dict[str, Any]]:
    """For each layer how it is built and what its forward does in training and in evaluation."""
    rows = {}
    for name in dir(torch.nn):
        kind = getattr(torch.nn, name)
        if name in MODULES:
            rows[name] = _module(kind, MODULES[name], report)
            report.recorded += 3 if "inplace" in rows[name] else 2
        elif isinstance(kind, type) and issubclass(kind, torch.nn.Module):
            report.unrecorded.append(f"nn.{name}")
    return rows


def _module(kind: Any, built: Built, report: Report) -> dict[str, Any]:
    made, sample = built
    init = _init_of(kind)
    module = kind(**made)
    row: dict[str, Any] = {
        "init": " ".join(n for n, _ in init),
        "defaults": {n: d for n, d in init if _is_plain(d)},
        "train": _forward(module, sample, True, report),
        "eval": _forward(module, sample, False, report),
        "parameters": " ".join(n for n, _ in module.named_parameters()),
        "buffers": " ".join(n for n, _ in module.named_buffers()),
    }
    names = {n for n, _ in init}
    if "p" in names and "Dropout" in kind.__name__:
        never = _forward(kind(**made, p=0.0), sample, True, report)
        row["train"] |= {k: "maybe" for k in ("view", "returns_self") if k in never and k not in row["train"]}
    if "inplace" in names:
        row["inplace"] = _forward(kind(**made, inplace=True), sample, True, report)
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


def _forward(module: torch.nn.Module, sample: Mapping[str, Any], training: bool, report: Report) -> Row:
    module.train(training)
    parameters = list(inspect.signature(type(module).forward).parameters.values())[1:]
    sample = dict(zip([p.name for p in parameters], sample.values(), strict=False))
    record(Call(sample, lambda values: module(**values)), ())
    kinds = "".join(
        kind_of(p, sample.get(p.name, None if p.default is p.empty else p.default)) for p in parameters
    )
    subject = subject_from(parameters, kinds, lambda values: module(**values))
    state = dict(module.named_parameters()) | dict(module.named_buffers())
    call = Call(sample, subject.invoke, state)
    recording = observe(call)
    provoked(report, f"nn.{type(module).__name__} {training=}", call)
    runs = [recording.typical, *_layouts(subject, sample, state, recording)]
    row = row_of(subject, recording, runs, first_tensor(sample), recording.vanishes)
    reduces = len(recording.typical.outputs) == 1 and recording.typical.outputs[0].numel() == 1
    return row | ({"shape": "reduction"} if reduces else _same_shape(sample, recording.typical.outputs))


def _same_shape(sample: Mapping[str, Any], outputs: list[Tensor]) -> Row:
    inputs = tensors_of(sample[first_tensor(sample)])
    return {"shape": "elementwise"} if all(o.shape == inputs[0].shape for o in outputs) else {}


def _layouts(
    subject: Subject, sample: Mapping[str, Any], state: dict[str, Tensor], recording: Recording
) -> list[Run]:
    if not any(recording.typical.shares):
        return []
    runs = []
    for variant in (transposed(sample), {n: x(4, 6) for n in sample}):
        with suppress(*REFUSED):
            runs.append(record(Call(variant, subject.invoke, state), recording.names))
    return runs
