"""Findings of one cause: of several writes over a saved value, the later ones may go with the first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gradfix.defects import Defect, Role, Span
from gradfix.defects.written import Overwritten
from gradfix.rewriting.statements import anchor, between, node_of, path
from gradfix.tree import Tree


def waits(tree: Tree, mended: Iterable[Defect]) -> Iterator[tuple[int, int]]:
    """Of defects that are going to be mended, by their numbers: which one waits, and for which.

    Out of place, the first write leaves the later ones a value of their own, which nobody has saved.
    """
    saved: dict[Span, list[tuple[int, Span]]] = {}
    for number, defect in enumerate(mended):
        facts = defect.facts
        write = next(
            (one.span for one in defect.evidence if one.role is Role.OVERWRITTEN and not one.path), None
        )
        if isinstance(facts, Overwritten) and facts.save is not None and not facts.parameter and write:
            saved.setdefault(facts.save, []).append((number, write))
    for writes in saved.values():
        for number, write in writes:
            first = next((other for other, earlier in writes if _leads(tree, earlier, write)), None)
            if first is not None:
                yield number, first


def _leads(tree: Tree, first: Span, later: Span) -> bool:
    """Whether whoever comes to one place has always passed the other."""
    one, other = node_of(tree, first), node_of(tree, later)
    if one is None or other is None or tree.function(one) is not tree.function(other):
        return False
    row = between(tree, anchor(tree, one), None)
    return any(place in row for place in path(tree, other))
