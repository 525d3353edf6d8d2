"""What is looked up in a codebook by an index that has no gradient, and what it is chosen for."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from gradfix.tape.domain.graph import upstream
from gradfix.tape.effects.operations import where
from gradfix.tape.machine.cuts import CHOOSING, Chosen, choosing

if TYPE_CHECKING:
    from gradfix.defects import Span
    from gradfix.tape.domain.graph import Node
    from gradfix.tape.machine.reports import Reports

MATRIX = "embedding"
"""The lookup that takes nothing but a matrix."""
LOOKUPS = frozenset({MATRIX, "getitem"})
PRODUCTS = frozenset({"matmul", "mm"})
TURNED = where("shape", "transposed", "swapped") | {"T", "mT"}
FEW = 100
"""So many operations make the scores that an index is taken from."""


class Choice(Chosen, total=False):
    """The facts of a choice in a codebook, where they are known."""

    chosen: Span | None
    scored: Span | None


def choice(reports: Reports, cut: Node, root: Node) -> Choice | Chosen:
    """Which code is the nearest to what: nothing where an index is used for more, or made of more.

    Scores are distances, or products and what is added to them: each row of what it is chosen for has one for
    each code, so that what is looked up by the best along the last dimension has that shape again. Of what is
    made of an index, only how that was taken.
    """
    if cut.op not in CHOOSING:
        return choosing(cut)
    users = [one for one in upstream([root]) if any(parent is cut for parent in one.parents)]
    if len(users) != 1 or users[0].op not in LOOKUPS:
        return {}
    books = [one for one in users[0].parents if one is not cut]
    book = books[0].leaf if len(books) == 1 else None
    if book is None or (users[0].op != MATRIX and (book.shape is None or len(book.shape) != 2)):
        return {}
    made = list(islice(upstream(cut.parents, lambda one: () if one.leaf else one.parents), FEW))
    scores = [one for one in made if _of(one, books[0])]
    if len(scores) != 1:
        return {}
    chosen, scored = reports.span(users[0].place), reports.span(scores[0].place)
    return Choice(chosen=chosen, scored=scored, rank=(cut.facts or {}).get("rank"))


def _of(node: Node, book: Node) -> bool:
    """Whether an operation holds something against each row of a codebook."""
    if len(node.parents) != 2 or node.parents[0].requires is not True:
        return False
    other = node.parents[1]
    if node.op in PRODUCTS:
        return other.op in TURNED and other.parents[:1] == (book,)
    return node.op == "cdist" and other is book
