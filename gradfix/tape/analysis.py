"""What the tape answers about one file, and whom it asks for others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from gradfix.defects import Defect, Span

if TYPE_CHECKING:
    from gradfix.source import Source

Resolver: TypeAlias = "Callable[[str, str, int], Source | None]"
"""(importing file, dotted module, level) to the parsed first-party module, if it is one."""


@dataclass(frozen=True, slots=True)
class Silence:
    """Something that the tape looked at and could not decide."""

    span: Span
    reason: str


@dataclass(frozen=True, slots=True)
class Analysis:
    """What the tape found in one file."""

    defects: tuple[Defect, ...]
    silences: tuple[Silence, ...] = ()
    too_complex: str = ""
    """Why the analysis was not finished, "" when it was."""


class TooComplexError(Exception):
    """The work that a file may cost is used up."""
