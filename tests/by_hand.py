"""Defects written by hand, in the record of their kind, with what the tape knows of the same program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any, TypeAlias

from gradfix.defects import Defect, Span
from gradfix.defects.records import record_of
from gradfix.source import Source, parse
from gradfix.tape.entries import analyse

Plain: TypeAlias = Any
"""What a field of a record holds."""


def defect_of(kind: str, source: str, culprit: Span, facts: Mapping[str, Plain]) -> Defect:
    """A certain defect that crashes, with the facts that the tape sees where it finds this very defect, else
    with these: a program that is a fragment has none to find. A fact that its record lacks is an error."""
    defect = Defect(kind, culprit, (), record_of(kind)(**facts))
    seen = next((one for one in _found(source) if (one.kind, one.culprit) == (kind, culprit)), None)
    return defect if seen is None else replace(defect, facts=seen.facts)


@cache
def _found(source: str) -> tuple[Defect, ...]:
    parsed = parse("main.py", source.encode())
    return analyse(parsed).defects if isinstance(parsed, Source) else ()
