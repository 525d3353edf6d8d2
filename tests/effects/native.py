"""Rows for torch's native functions: every overload recorded, derivatives.yaml as the second witness."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any

import torch
from torchgen.model import SchemaKind

from .recorder import (
    Call,
    Recording,
    contradictions,
    differentiable_names,
    observe,
    record,
    tensors_of,
)
from .rows import REFUSED, Row, Subject, as_method, build, common, flagged, renamed, with_unseen
from .samples import (
    ALSO,
    HAND,
    LISTS,
    SHAPES,
    Recipe,
    attempts,
    bind,
    database_samples,
    first_that_runs,
    values_by_type,
)
from .schema import FACTORY, Overload, overloads

FLAGS = ("train", "training", "use_input_stats")
MANY_TRIES = 60
_ONE: tuple[tuple[tuple[int, ...], ...], ...] = (((2, 5),), ((2, 1, 5),), ((1, 5),))

Rows = dict[str, dict[str, list[Row]]]


MOST_SECONDS = 20
"""What hangs under an older torch is ended like what crashes."""


@dataclass
class Report:
    """What the generation has to tell apart from the table."""

    recorded: int = 0
    agreed: int = 0
    disagreements: list[str] = field(default_factory=list)
    joint: list[str] = field(default_factory=list)
    contradicted: list[str] = field(default_factory=list)
    provoke: bool = False
    """Also overwrite every tensor before backward, to see whether torch fails where the recording says so."""
    unrecorded: list[str] = field(default_factory=list)
    wary: bool = False
    """Look at each overload in a child: an older torch may crash where a newer one refuses."""


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
    wanted: list[tuple[Overload, list[tuple[str, str]]]] = []
    for overload in overloads():
        surfaces = on_surface(overload)
        if surfaces:
            (outs if overload.kind is SchemaKind.out else wanted).append((overload, surfaces))
    made = _all_rows([overload for overload, _ in wanted], report, shapes)
    for (_, surfaces), found in zip(wanted, made, strict=True):
        _add(rows, surfaces, found)
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
    kinds, keyword = "".join(a.kind for a in overload.arguments), overload.keyword
    if set(names) >= FACTORY:
        names, kinds, keyword = [*names, "requires_grad"], kinds + "o", keyword + 1
    return Subject(tuple(names), kinds, call, overload.results, overload.needs, keyword)


def _all_rows(known: list[Overload], report: Report, shapes: dict[str, str]) -> Iterator[list[Row]]:
    """The rows of each; where torch may crash, from processes begun again behind what killed them."""
    while known and report.wary:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            with os.fdopen(writing, "wb") as pipe:
                _tell(known, report, shapes, pipe)
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe, contextlib.suppress(EOFError, pickle.UnpicklingError):
            while True:
                rows, learned = pickle.load(pipe)
                shapes.update(learned)
                known = known[1:]
                yield rows
        os.waitpid(child, 0)
        if known:
            report.unrecorded.append(known[0].spelled)
            known = known[1:]
            yield []
    yield from (_rows_of(overload, report, shapes) for overload in known)


def _tell(known: list[Overload], report: Report, shapes: dict[str, str], pipe: Any) -> None:
    """One after the other, for as long as this process lives."""
    for overload in known:
        signal.alarm(MOST_SECONDS)
        rows: list[Row] = []
        with contextlib.suppress(Exception):
            rows = _rows_of(overload, report, shapes)
        pickle.dump((rows, shapes), pipe)
        pipe.flush()


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
    provoked(report, overload.spelled, Call(values, subject.invoke))
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
            (
                state,
                _finished(
                    overload, subject, values | {flag: state}, [m | {flag: state} for m in more], shape
                ),
            )
            for state in (True, False)
        ],
        flag,
    )


def provoked(report: Report, name: str, call: Call) -> None:
    if report.provoke:
        report.contradicted += [f"{name}: {text}" for text in contradictions(call, observe(call))]


def _observed(subject: Subject, values: dict[str, Any]) -> tuple[dict[str, Any], Recording]:
    recording = observe(Call(values, subject.invoke))
    if recording.typical.outputs and not any(o.numel() for o in recording.typical.outputs):
        raise LookupError("an empty result says nothing")
    return values, recording


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


def _compare(
    overload: Overload, values: Mapping[str, Any], saves: dict[str, list[str]], report: Report
) -> None:
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
    row = _subject(overload, operator(overload)).opening()
    row |= {"writes": " ".join(overload.outs), "returns_self": "always"}
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
        expected = torch.broadcast_shapes(*shapes)  # type: ignore[no-untyped-call]
    except RuntimeError:
        return False
    return all(o.shape == expected for o in outputs)


def _is_one(values: Mapping[str, Any], outputs: list[torch.Tensor]) -> bool:
    return all(o.numel() == 1 for o in outputs)
