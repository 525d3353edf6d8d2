"""From a rule's edits to text: what can be applied together, the new file, and the stretches that changed."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import libcst as cst

from gradfix.places import lines
from gradfix.rule import Edit, Replacement, TextEdit
from gradfix.tree import LONE_RETURN, Tree

Block: TypeAlias = "cst.Module | cst.IndentedBlock"
Stretch: TypeAlias = "tuple[int, int, int, int]"
N = TypeVar("N", bound=cst.CSTNode)


@dataclass(frozen=True, slots=True)
class Change:
    """Lines of the file (from 0, the end left out) and what stands there instead."""

    start: int
    end: int
    lines: list[str]


def compatible(tree: Tree, fixes: Iterable[Sequence[Edit]]) -> list[int]:
    """Which sets of edits can be applied together, the earlier first: none touches another's nodes."""
    chosen: list[int] = []
    taken: set[cst.CSTNode] = set()
    above: set[cst.CSTNode] = set()
    for number, edits in enumerate(fixes):
        nodes = {edit.old for edit in edits}
        holders = {holder for node in nodes for holder in tree.ancestors(node)}
        if not (nodes & above or nodes & taken or holders & taken):
            chosen.append(number)
            taken |= nodes
            above |= holders
    return chosen


def apply(tree: Tree, edits: Iterable[Edit]) -> str:
    """The file's new text. Lines that no edit touches are the old ones, character for character."""
    source = tree.source_lines
    parts: list[str] = []
    done = 0
    for change in changes(tree, edits):
        parts += [*source[done : change.start], *change.lines]
        done = change.end
    return "".join([*parts, *source[done:]])


def changes(tree: Tree, edits: Iterable[Edit]) -> list[Change]:
    """What differs between libcst's renderings before and after, carried over to the file's own lines."""
    first, old, new = _renderings(tree, tuple(edits))
    return [
        Change(
            first + start, first + end, _in_style(tree, first + start, first + end, new[new_start:new_end])
        )
        for start, end, new_start, new_end in _changed(old, new)
    ]


def text_edits(tree: Tree, changed: Iterable[Change]) -> tuple[TextEdit, ...]:
    """The shortest stretches of the file that differ, for formats that place them by line and column."""
    return tuple(_text_edit(tree.source_lines, change) for change in changed)


def _renderings(tree: Tree, edits: Sequence[Edit]) -> tuple[int, list[str], list[str]]:
    """Where the lines start, then they before and after: of the statement with all edits, else of all."""
    top = _top(tree, edits)
    if top in tree.tops:
        first, old = tree.tops[top]
        swap = _Swap(tree, edits)
        new = top.visit(swap)
        if isinstance(new, cst.CSTNode) and new not in swap.emptied:
            return first, old, lines(tree.code(swap.finished(new)))
    swap = _Swap(tree, edits)
    return 0, tree.rendered_lines, lines(swap.finished(tree.module.visit(swap)).code)


def _top(tree: Tree, edits: Sequence[Edit]) -> cst.CSTNode:
    """The statement of the module's own level that holds all edits, else the module."""
    tops = {(edit.old, *tree.ancestors(edit.old))[-2:][0] for edit in edits}
    return tops.pop() if len(tops) == 1 else tree.module


class _Swap(cst.CSTTransformer):
    """Puts the new nodes where the old ones stand, found by identity."""

    def __init__(self, tree: Tree, edits: Iterable[Edit]) -> None:
        super().__init__()
        self.waiting = {edit.old: edit.new for edit in edits}
        self.above = {holder for node in self.waiting for holder in tree.ancestors(node)}
        self.emptied: set[cst.CSTNode] = set()

    def finished(self, node: N) -> N:
        """The node that came out, once every edit has found its place."""
        if self.waiting:
            raise ValueError(
                f"{len(self.waiting)} edited nodes are not in this tree, or lie inside one another"
            )
        return node

    def on_visit(self, node: cst.CSTNode) -> bool:
        return node in self.above

    def on_leave(  # type: ignore[override]  # the signature of libcst promises less than its visitor takes
        self, original_node: cst.CSTNode, updated_node: cst.CSTNode
    ) -> Replacement:
        if original_node in self.waiting:
            new = self.waiting.pop(original_node)
            if isinstance(new, cst.RemovalSentinel) and isinstance(original_node, cst.SimpleStatementLine):
                return self._emptied(original_node)
            if isinstance(new, cst.SimpleStatementLine) and not new.body:
                return self._emptied(new)
            return _with_semicolon(original_node, new)
        if isinstance(updated_node, cst.SimpleStatementLine) and not updated_node.body:
            return self._emptied(updated_node)
        if isinstance(updated_node, (cst.Module, cst.IndentedBlock)) and updated_node is not original_node:
            return _without(self.emptied, updated_node)
        return updated_node

    def _emptied(self, line: cst.SimpleStatementLine) -> cst.SimpleStatementLine:
        """A stand-in for a line that has lost its statements: libcst would drop its comments with it."""
        stand_in = line.with_changes(body=[cst.Pass()])
        self.emptied.add(stand_in)
        return stand_in


def _with_semicolon(old: cst.CSTNode, new: Replacement) -> Replacement:
    """A new small statement keeps the semicolon of the one it replaces."""
    if not isinstance(old, cst.BaseSmallStatement) or not isinstance(new, cst.BaseSmallStatement):
        return new
    return new.with_changes(semicolon=old.semicolon) if isinstance(new.semicolon, cst.MaybeSentinel) else new


def _without(emptied: Set[cst.CSTNode], block: Block) -> Block:
    """Drop the lines that have lost their last statement; their comments go to what follows."""
    kept: list[cst.BaseStatement] = []
    orphans: list[cst.EmptyLine] = []
    for statement in block.body:
        if statement in emptied and isinstance(statement, cst.SimpleStatementLine):
            orphans += _comments(statement)
        elif orphans:
            kept.append(_under(orphans, statement))
            orphans = []
        else:
            kept.append(statement)
    if len(kept) == len(block.body):
        return block
    if not kept and isinstance(block, cst.IndentedBlock):
        kept.append(cst.SimpleStatementLine([cst.Pass()], leading_lines=orphans))
        orphans = []
    return block.with_changes(body=kept, footer=[*orphans, *block.footer])


def _comments(emptied: cst.SimpleStatementLine) -> list[cst.EmptyLine]:
    """The empty lines and comments that stood above an emptied line, and the comment at its end."""
    comment = emptied.trailing_whitespace.comment
    return [*emptied.leading_lines, *([cst.EmptyLine(comment=comment)] if comment else [])]


def _under(orphans: Sequence[cst.EmptyLine], statement: cst.BaseStatement) -> cst.BaseStatement:
    own: Sequence[cst.EmptyLine] = getattr(statement, "leading_lines", ())
    blank = all(line.comment is None for line in orphans)
    if blank and own and own[0].comment is None:
        return statement
    return statement.with_changes(leading_lines=[*orphans, *own])


def _in_style(tree: Tree, start: int, end: int, new: list[str]) -> list[str]:
    """Give new lines what libcst has dropped: a form feed at the start, a lone return at the end."""
    if start < end and new:
        had, rendered = tree.source_lines[start], tree.rendered_lines[start]
        new = [had[: max(0, len(had) - len(rendered))] + new[0], *new[1:]]
    if "\n" not in tree.source and LONE_RETURN.search(tree.source):
        return [line.replace("\n", "\r") for line in new]
    return new


def _changed(old: list[str], new: list[str]) -> Iterator[Stretch]:
    """The stretches of lines that differ: old start and end, new start and end."""
    head = next(
        (i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new))
    )
    rest = min(len(old), len(new)) - head
    tail = next((i for i in range(rest) if old[-1 - i] != new[-1 - i]), rest)
    matcher = difflib.SequenceMatcher(None, old[head : len(old) - tail], new[head : len(new) - tail])
    for tag, start, end, new_start, new_end in matcher.get_opcodes():
        if tag != "equal":
            yield head + start, head + end, head + new_start, head + new_end


def _text_edit(source: list[str], change: Change) -> TextEdit:
    had, has = "".join(source[change.start : change.end]), "".join(change.lines)
    rest = min(len(had), len(has))
    head = next((i for i in range(rest) if had[i] != has[i]), rest)
    tail = next((i for i in range(rest - head) if had[-1 - i] != has[-1 - i]), rest - head)
    first = _place(change.start, had[:head])
    last = _place(change.start, had[: len(had) - tail])
    return TextEdit(*first, *last, has[head : len(has) - tail])


def _place(start: int, text: str) -> tuple[int, int]:
    """Line and column, both from 1, of the end of a text that begins at a line."""
    before = lines(text + ".")
    return start + len(before), len(before[-1])
