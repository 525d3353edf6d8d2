"""The tape as an analyser of source text."""

from __future__ import annotations

from gradfix.source import Source, parse
from gradfix.tape.defects import Defect
from gradfix.tape.interpreter import analyse


class NotAnalysedError(Exception):
    """The tape gave up on a program: a failure to parse, or too complex."""


def tape(source: str) -> tuple[Defect, ...]:
    parsed = parse("program.py", source.encode())
    if not isinstance(parsed, Source):
        raise NotAnalysedError(f"not parsed: {parsed}")
    analysis = analyse(parsed)
    if analysis.too_complex:
        raise NotAnalysedError(f"too complex: {analysis.too_complex}")
    return analysis.defects
