"""The tape as an analyser of source text."""

from __future__ import annotations

import importlib
import pkgutil

import gradfix.tape
from gradfix.defects import Defect
from gradfix.source import Source, parse
from gradfix.tape.entries import analyse

for _module in pkgutil.iter_modules(gradfix.tape.__path__):
    importlib.import_module(f"gradfix.tape.{_module.name}")  # so that forked batches all run the same code


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
