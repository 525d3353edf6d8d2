"""What a rewrite would leave behind: whether the backward that it is for fails then for another reason, and
which other findings go with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gradfix.defects import Defect, Span, kind_of
from gradfix.defects.records import Freed
from gradfix.defects.severed import Severed
from gradfix.source import Source, parse

if TYPE_CHECKING:
    from gradfix.plan import Plan
    from gradfix.rule import Fix
    from gradfix.tree import Tree


def followers(kind: str, defects: Sequence[Defect]) -> list[int]:
    """The defects, by their numbers, that one of a kind may have brought about."""
    return [number for number, one in enumerate(defects) if one.kind == kind_of(kind).brings]


def gone(
    defects: Sequence[Defect], numbers: Sequence[int], source: Source, after: Source, plan: Plan
) -> Iterator[int]:
    """Which of some defects, by their numbers, a rewritten text hasn't any more."""
    from gradfix.patch import LineMap, unified

    onward = LineMap(unified(source.path, source.program, after.program))
    left = {(one.kind, one.culprit.line) for one in plan.analyse(after, plan).defects}
    for number in numbers:
        line = onward.after(defects[number].culprit.line)
        if line is not None and (defects[number].kind, line) not in left:
            yield number


def rewritten(source: Source, tree: Tree, defect: Defect, fix: Fix | None) -> Source | None:
    """The text that a fix alone makes, where it is to join a graph again, or to keep one."""
    return text_with(source, tree, fix) if isinstance(defect.facts, (Severed, Freed)) else None


def text_with(source: Source, tree: Tree, fix: Fix | None) -> Source | None:
    """The text that a fix alone makes."""
    from gradfix.edits import apply

    if fix is None:
        return None
    after = parse(source.path, source.encode(apply(tree, fix.edits)))
    return after if isinstance(after, Source) else None


def then_fails(
    defect: Defect, before: Sequence[Defect], source: Source, after: Source, plan: Plan
) -> Iterator[Defect]:
    """What is certain to raise, and wasn't before, in the backward that a rewrite is for."""
    from gradfix.patch import LineMap, unified

    facts = defect.facts
    backward = facts.again if isinstance(facts, Freed) else facts.named().get("backward")
    if not isinstance(backward, Span):
        return
    onward = LineMap(unified(source.path, source.program, after.program))
    back = LineMap(unified(source.path, after.program, source.program))
    known = {(one.kind, onward.after(one.culprit.line)) for one in before}
    for one in plan.analyse(after, plan).defects:
        lines = {step.span.line for step in one.evidence if step.path is None}
        meets = any(back.after(line) in (backward.line, None) for line in lines)
        if meets and (one.kind, one.culprit.line) not in known and one.impact == "crashes" and not one.lean:
            yield one
