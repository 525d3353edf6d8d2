"""Why nothing is said, and what a claim can't rule out: the reasons of what isn't known, in words."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from gradfix.defects.reasons import Reason
from gradfix.tape.domain.graph import upstream
from gradfix.tape.domain.values import Foreign
from gradfix.tape.domain.why import why_of
from gradfix.tape.machine.here import span_of

if TYPE_CHECKING:
    from gradfix.defects import Span
    from gradfix.tape.domain.graph import Node
    from gradfix.tape.domain.why import Why
    from gradfix.tape.machine.reports import Findings

FAR = 200
"""How many operations are looked through for what isn't known."""
DEEP = 3
"""How many parts of parts are told; then what they are all of."""


def reasons(findings: Findings) -> Iterator[tuple[Span, str, Reason | None]]:
    """What couldn't be decided, each with the nearest reason."""
    for (span, decided), made_of in findings.silences.items():
        why = unknown_behind(made_of) if made_of is not None else None
        reason = in_words(findings, why) if why is not None else None
        yield span, f"{decided}: {reason.told}" if reason is not None else decided, reason


def unknown_behind(node: Node) -> Why | None:
    """Why the nearest unknown isn't known that a value was made of."""
    for one in islice(upstream([node]), FAR):
        value = (one.facts or {}).get("value")
        if value is not None:
            return why_of(value)
    return None


def in_words(findings: Findings, why: Why, deep: int = DEEP) -> Reason:
    """A reason as a person reads it: with the text and the line of what isn't known."""
    of = why.of
    while of is not None and deep == 0 and of.of is not None:
        of = of.of
    inner = in_words(findings, of, max(deep - 1, 0)) if of is not None else None
    if why.place is None:
        return Reason(why.what, why.name, of=inner)
    foreign = isinstance(why.place, Foreign)
    node, path = (why.place.node, why.place.path) if isinstance(why.place, Foreign) else (why.place, None)
    name = why.name or _called(findings, node, path or findings.main)
    return Reason(why.what, name, span_of(node), path if foreign else None, inner)


def _called(findings: Findings, node: ast.AST, file: str) -> str:
    """What a call is a call of, as it stands there."""
    return f"`{findings.text(node.func, file)}`" if isinstance(node, ast.Call) else ""
