"""Defects written by hand, in the record that their kind has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from gradfix.defects import Defect, Span
from gradfix.defects.records import record_of

Plain: TypeAlias = Any
"""What a field of a record holds."""


def defect_of(kind: str, culprit: Span, facts: Mapping[str, Any]) -> Defect:
    """A certain defect that crashes; a fact that its record doesn't have is an error."""
    return Defect(kind, culprit, (), record_of(kind)(**facts))
