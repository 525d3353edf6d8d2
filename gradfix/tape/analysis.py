"""What the tape answers about one file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradfix.defects import Defect, Span
    from gradfix.defects.reasons import Reason


@dataclass(frozen=True, slots=True)
class Silence:
    """Something that the tape looked at and could not decide."""

    span: Span
    reason: str
    unknown: Reason | None = None
    """The nearest that isn't known, where there is one."""


@dataclass(frozen=True, slots=True)
class Analysis:
    """What the tape found in one file."""

    defects: tuple[Defect, ...]
    silences: tuple[Silence, ...] = ()
    too_complex: str = ""
    """Why the analysis was not finished, "" when it was."""
