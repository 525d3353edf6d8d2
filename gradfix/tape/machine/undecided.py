"""Why nothing is said: what isn't known of a place that was looked at."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from gradfix.defects.reasons import What
from gradfix.tape.domain.graph import Node
from gradfix.tape.domain.values import Foreign
from gradfix.tape.domain.why import Why, fact
from gradfix.tape.machine.deeds import deeds_in, doubt, unknown_behind
from gradfix.tape.machine.here import span_of

if TYPE_CHECKING:
    from gradfix.defects import Span
    from gradfix.defects.reasons import Reason
    from gradfix.tape.domain.definitions import Code
    from gradfix.tape.domain.events import Backward
    from gradfix.tape.domain.graph import Tensor
    from gradfix.tape.machine.reports import Findings, Reports

NO_GRAPH = "this has no graph, and whether one was lost isn't known"
HOW_MANY = "whether this is one number isn't known"
NO_RULE = "no rule is about that"
"""What nothing would settle."""
WHICH_WAY = fact("which way a run takes")
SAID_ALREADY = frozenset({WHICH_WAY, Why(What.BACKWARD)})
"""What only says what would settle it: the rest is in the words that it is the reason of."""
RECORDED = fact("whether it was recorded")
ASIDE = "this isn't played"


def reasons(findings: Findings) -> Iterator[tuple[Span, str, Reason | None]]:
    """What couldn't be decided, each with the nearest reason, in the order of the text."""
    for (span, decided), of in sorted(findings.silences.items(), key=lambda told: told[0]):
        why = unknown_behind(of) or RECORDED if isinstance(of, Node) else of
        why = WHICH_WAY if why is None and NO_RULE not in decided else why
        reason = findings.reason(why) if why is not None else None
        more = f": {reason.told}" if reason is not None and why not in SAID_ALREADY else ""
        yield span, decided + more, reason


def without_graph(reports: Reports, node: Node, event: Backward) -> None:
    """A backward from what has no graph, of which nothing may be said: that can be meant."""
    place = event.place
    if place is not None and not isinstance(place, Foreign):
        why = unknown_behind(node) or Why(What.COMPUTED, "this", node.place)
        doubt(reports, place, NO_GRAPH, why)


def how_many(reports: Reports, event: Backward, root: Tensor) -> None:
    """A backward from what may be one number or several."""
    place = event.place
    if place is not None and not isinstance(place, Foreign):
        doubt(
            reports, place, "whether this is one number isn't known", Why(What.COMPUTED, "this", root.place)
        )


def account_for_deeds(
    findings: Findings, nodes: list[ast.AST], codes: Iterable[Code], left: Why | None
) -> None:
    """Note of each deed of the text why nothing is said of it, where nobody has said anything yet.

    What is done in a function that never ran is said of the function; `left` is why some of it may not have.
    """
    deeds = {span_of(node): words for node, words in deeds_in(nodes)}
    lines = sorted({span.line for span in deeds})
    idle = [code for code in codes if not code.entered and code.file == findings.main]
    idle = [code for code in idle if code.name == "forward" or _within(code.node, lines)]
    told = {span for span, _ in findings.silences} | {span for _, span in findings.found}
    told |= {one.span for found in findings.found.values() for one in found.evidence if one.path is None}
    for code in idle:
        uncalled = Why(What.UNCALLED, f"`{code.name}`", code.node)
        findings.silences.setdefault((span_of(code.node), ASIDE), left or uncalled)
    for span in dict.fromkeys((*deeds, *findings.deeds)):
        words, why = findings.deeds.get(span, (ASIDE, left or Why(What.WAY)))
        inside = any(_holds(code.node, span) for code in idle)
        if why is not None and span not in told and not (words == ASIDE and inside):
            findings.silences[span, words] = why


def _within(node: ast.AST, lines: Sequence[int]) -> bool:
    """Whether one of some lines is in a function."""
    span = span_of(node)
    at = bisect_left(lines, span.line)
    return at < len(lines) and lines[at] <= span.end_line


def _holds(node: ast.AST, span: Span) -> bool:
    own = span_of(node)
    return own.line <= span.line and span.end_line <= own.end_line
