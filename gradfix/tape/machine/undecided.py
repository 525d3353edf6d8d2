"""Why nothing is said: what isn't known of a place that was looked at."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from gradfix.tape.domain.graph import upstream

if TYPE_CHECKING:
    from gradfix.defects import Span
    from gradfix.tape.domain.graph import Node
    from gradfix.tape.machine.reports import Findings

FAR = 200
"""How many operations are looked through for what isn't known."""


def reasons(findings: Findings) -> Iterator[tuple[Span, str]]:
    """What couldn't be decided, each with the nearest reason."""
    for (span, reason), made_of in findings.silences.items():
        why = _unknown_behind(made_of) if made_of is not None else ""
        yield span, f"{reason}: {why}" if why else reason


def _unknown_behind(node: Node) -> str:
    """What the nearest unknown is that a value was made of."""
    for one in islice(upstream([node]), FAR):
        value = (one.facts or {}).get("value")
        if value is not None:
            return value.why
    return ""
