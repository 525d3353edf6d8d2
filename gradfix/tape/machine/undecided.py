"""Why nothing is said: what isn't known of a place that was looked at."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from gradfix.tape.domain.graph import upstream
from gradfix.tape.domain.why import why_of

if TYPE_CHECKING:
    from gradfix.defects import Span
    from gradfix.defects.reasons import Reason
    from gradfix.tape.domain.graph import Node
    from gradfix.tape.domain.why import Why
    from gradfix.tape.machine.reports import Findings

FAR = 200
"""How many operations are looked through for what isn't known."""


def reasons(findings: Findings) -> Iterator[tuple[Span, str, Reason | None]]:
    """What couldn't be decided, each with the nearest reason."""
    for (span, decided), made_of in findings.silences.items():
        why = unknown_behind(made_of) if made_of is not None else None
        reason = findings.reason(why) if why is not None else None
        yield span, f"{decided}: {reason.told}" if reason is not None else decided, reason


def unknown_behind(node: Node) -> Why | None:
    """Why the nearest unknown isn't known that a value was made of."""
    for one in islice(upstream([node]), FAR):
        value = (one.facts or {}).get("value")
        if value is not None:
            return why_of(value)
    return None
