"""From recordings to the rows of effects.json."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .recorder import Call, Recording, Run, differentiable_names, observe, record, tensors_of

REFUSED = (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError, LookupError, AttributeError)
Row = dict[str, Any]


@dataclass(frozen=True)
class Subject:
    """One overload on its way to a row: argument names, a letter for the kind of each, and how to call it."""

    names: tuple[str, ...]
    kinds: str
    invoke: Callable[[dict[str, Any]], Any]
    results: int | None = None
    needs: int | None = None
    """How many of the first arguments are required; None is all."""
    keyword: int = 0
    """How many of the last are keyword-only."""

    def opening(self) -> Row:
        needs = len(self.names) if self.needs is None else self.needs
        row: Row = {"args": " ".join(self.names), "kinds": self.kinds}
        return (
            row
            | ({"needs": needs} if needs != 1 else {})
            | ({"keyword": self.keyword} if self.keyword else {})
        )


def transposed(values: Mapping[str, Any]) -> dict[str, Any]:
    """The same values in a layout that isn't contiguous."""
    return {n: _permuted(v) if isinstance(v, Tensor) and v.dim() > 1 else v for n, v in values.items()}


def _permuted(tensor: Tensor) -> Tensor:
    return tensor.transpose(0, -1).contiguous().transpose(0, -1)


def other_dtype(values: Mapping[str, Any], first: str) -> dict[str, Any]:
    """The first tensor in double, so that conversions have something to convert."""
    return {n: v.double() if n == first and _is_float(v) else v for n, v in values.items()}


def _is_float(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()


def first_tensor(values: Mapping[str, Any]) -> str:
    return next((n for n, v in values.items() if tensors_of(v)), "")


def build(subject: Subject, values: Mapping[str, Any], more: Iterable[Mapping[str, Any]] = ()) -> Row:
    """The row of one overload; `more` are further inputs, to tell always from sometimes aliasing."""
    call = Call(values, subject.invoke)
    recording = observe(call)
    runs = [recording.typical, *_alias_runs(subject, values, more, recording.typical)]
    return row_of(subject, recording, runs, first_tensor(values), _still_vanishes(subject, values, recording))


def row_of(subject: Subject, recording: Recording, runs: Sequence[Run], first: str, vanishes: bool) -> Row:
    typical = recording.typical
    written = [n for n in recording.saves | dict.fromkeys(subject.names) if n in recording.written]
    written += sorted(recording.written - set(written))
    row = subject.opening()
    if recording.saves:
        row["saves"] = {what: " ".join(needed_by) for what, needed_by in recording.saves.items()}
    if written:
        row["writes"] = " ".join(written)
    results = subject.results if subject.results is not None else results_of(typical)
    row |= _aliases(runs, first, recording.written, results)
    if recording.constant:
        row["constant"] = recording.constant if results else [-1]
        if not results and recording.constant != [-1]:
            del row["constant"]
    if results != 1:
        row["results"] = results
    if vanishes:
        row["vanishes"] = True
    if recording.once:
        row["once"] = True
    return row


def results_of(run: Run) -> int:
    if run.single:
        return 1
    return 0 if run.is_list else max(1, len(set(run.places)))


def _alias_runs(
    subject: Subject, values: Mapping[str, Any], more: Iterable[Mapping[str, Any]], typical: Run
) -> list[Run]:
    more = list(more)
    if typical.written or not (more or any(typical.shares)):
        return []
    first = first_tensor(values)
    runs = []
    for sample in (values, *more):
        for variant in (sample, transposed(sample), other_dtype(sample, first)):
            call = Call(variant, subject.invoke)
            try:
                runs.append(record(call, differentiable_names(call)))
            except REFUSED:
                continue
    return runs


def _aliases(runs: Sequence[Run], first: str, written: set[str], results: int) -> Row:
    full = [r for r in runs if r.outputs]
    if not full:
        return {}
    if written:
        own = [r.same[0] in written for r in full]
        return {"returns_self": "always"} if all(own) else {}
    row: Row = {}
    shares, same = [r.shares[0] == first for r in full], [r.same[0] == first for r in full]
    if any(shares) and first:
        many = results != 1 and any(_refuses_writes(r) for r in full)
        row["view"] = "many" if many else "always" if all(shares) else "maybe"
    if any(same) and first:
        row["returns_self"] = "always" if all(same) else "maybe"
    return row


def _refuses_writes(run: Run) -> bool:
    try:
        run.outputs[0].add_(1)
    except RuntimeError as error:
        return "multiple views" in str(error)
    return False


def _still_vanishes(subject: Subject, values: Mapping[str, Any], recording: Recording) -> bool:
    """A gradient that is zero between 0 and 1 may be a clamp's: look at a wider range as well."""
    if not recording.vanishes:
        return False
    for spread in (0.5, 2, 3, 5, 8):
        wide = {n: torch.randn_like(v) * spread if _is_float(v) else v for n, v in values.items()}
        with suppress(*REFUSED):
            if not observe(Call(wide, subject.invoke)).vanishes:
                return False
    return True


def renamed(row: Row, old: str, new: str) -> Row:
    """Functions call their first argument `input` where methods call it `self`."""

    def spell(names: str) -> str:
        return " ".join(new if n == old else n for n in names.split())

    other = dict(row)
    if new in row["args"].split():
        return other
    for key in ("args", "writes"):
        if key in other:
            other[key] = spell(other[key])
    if "saves" in other:
        other["saves"] = {spell(w): spell(n) for w, n in other["saves"].items()}
    return other


def as_method(row: Row) -> Row:
    """Python takes `self` from wherever the schema has it."""
    names = row["args"].split()
    at = names.index("self")
    kinds = row["kinds"][at] + row["kinds"][:at] + row["kinds"][at + 1 :]
    return row | {"args": " ".join(["self", *names[:at], *names[at + 1 :]]), "kinds": kinds}


def with_unseen(row: Row, known: Mapping[str, Sequence[str]] | None, seen: Iterable[str]) -> Row:
    """Adds what derivatives.yaml says of the optional tensors that the sample left out."""
    unseen = set(row["args"].split()) - set(seen)
    saves = {w: n.split() for w, n in row.get("saves", {}).items()}
    for what, needed_by in (known or {}).items():
        if what in unseen:
            saves[what] = list(needed_by)
        elif what in saves:
            saves[what] += [n for n in needed_by if n in unseen and n not in saves[what]]
    saved = {w: " ".join(n) for w, n in saves.items() if n}
    return row | ({"saves": saved} if saved else {})


def common(row: Row, others: Sequence[Row]) -> Row:
    """Only what every sample saves: torch picks among kernels by shape."""
    saves = {
        what: " ".join(
            n for n in needed_by.split() if all(n in o.get("saves", {}).get(what, "").split() for o in others)
        )
        for what, needed_by in row.get("saves", {}).items()
    }
    return row | {"saves": {what: needed_by for what, needed_by in saves.items() if needed_by}}


def flagged(rows: Sequence[tuple[bool, Row]], flag: str) -> list[Row]:
    """One row for each state of a flag, unless the flag changes nothing."""
    if all(row == rows[0][1] for _, row in rows):
        return [rows[0][1]]
    return [row | {"when": {flag: state}} for state, row in rows]
