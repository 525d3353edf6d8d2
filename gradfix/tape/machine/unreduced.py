"""What made the several elements that backward runs on: losses told not to reduce, one term of a sum."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING

from gradfix.defects.records import NonScalar
from gradfix.tape.domain.graph import upstream
from gradfix.tape.effects.operations import having

if TYPE_CHECKING:
    from gradfix.defects import Span
    from gradfix.tape.domain.graph import Node
    from gradfix.tape.machine.reports import Reports

FEW = 500
"""How many operations behind a loss are looked through."""
SCALES = having("scales") | {"neg", "scale"}
"""What keeps each element of a loss, where nothing else goes in that learns."""


def facts_of(reports: Reports, text: str, root: Node) -> NonScalar:
    """What backward runs on, by its text and by what made it."""
    told = [
        made["criterion"] for node in upstream([root], _scaled) if (made := node.facts or {}).get("criterion")
    ]
    spans = [reports.span(place) for place in told]
    here = tuple(dict.fromkeys(span for span in spans if span is not None))
    return NonScalar(root=text, built=here, elsewhere=None in spans, term=_term(reports, root))


def _term(reports: Reports, root: Node) -> Span | None:
    """The only term of a loss that has several elements, beside single numbers."""
    term: Span | None = None
    one: Node | None = root
    while one is not None:
        wider = (one.facts or {}).get("wider")
        if one.guards is not None or (wider is None and (one.op not in SCALES or len(one.parents) > 1)):
            break
        if wider is not None and _again(root, one):
            return None  # in another turn that operand may be the number
        term = reports.span(wider) if wider is not None else term
        one = next((each for each in one.parents if wider in (None, each.place)), None)
    return term


def _again(root: Node, added: Node) -> bool:
    """Whether a root was made by the same addition several times."""
    return any(one is not added and one.place is added.place for one in islice(upstream([root]), FEW))


def _scaled(node: Node) -> Iterable[Node]:
    """What a node only scales, and each of those of which it is one."""
    one = node.op in SCALES and len(node.parents) == 1
    return node.parents if one or node.guards is not None else ()
