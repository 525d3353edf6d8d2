"""From a rule's edits to text: what can be applied together, the new file, and the stretches that changed."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import TypeAlias

import libcst as cst

from gradfix.places import lines
from gradfix.rule import Edit, Replacement, TextEdit
from gradfix.tree import INDENT, LONE_RETURN, Tree

Block: TypeAlias = "cst.Module | cst.IndentedBlock"
Stretch: TypeAlias = "tuple[int, int, int, int]"


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
    swap = _Swap(tree, edits)
    module = tree.module.visit(swap)
    if swap.waiting:
        raise ValueError(f"{len(swap.waiting)} edited nodes are not in this tree, or lie inside one another")
    return _splice(tree, module.code)


def text_edits(before: str, after: str) -> tuple[TextEdit, ...]:
    """The shortest stretches of `before` that differ from `after`, line by line."""
    old, new = lines(before), lines(after)
    return tuple(_text_edit(old, new, stretch) for stretch in _changed(old, new))


class _Swap(cst.CSTTransformer):
    """Puts the new nodes where the old ones stand, found by identity."""

    def __init__(self, tree: Tree, edits: Iterable[Edit]) -> None:
        super().__init__()
        self.waiting = {edit.old: edit.new for edit in edits}
        self.above = {holder for node in self.waiting for holder in tree.ancestors(node)}
        self.emptied: set[cst.CSTNode] = set()

    def on_visit(self, node: cst.CSTNode) -> bool:
        return node in self.above

    def on_leave(  # type: ignore[override]  # the signature of libcst promises less than its visitor takes
        self, original_node: cst.CSTNode, updated_node: cst.CSTNode
    ) -> Replacement:
        if original_node in self.waiting:
            new = self.waiting.pop(original_node)
            if isinstance(new, cst.RemovalSentinel) and isinstance(original_node, cst.SimpleStatementLine):
                return self._emptied(original_node)
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


def _splice(tree: Tree, code: str) -> str:
    """Carry what differs between libcst's two renderings over to the file's own text."""
    source, old, new = lines(tree.source), lines(tree.rendered), lines(code)
    parts: list[str] = []
    done = 0
    for start, end, new_start, new_end in _changed(old, new):
        parts += source[done:start]
        parts += _in_style(source[start:end], old[start:end], new[new_start:new_end], tree.source)
        done = end
    return "".join([*parts, *source[done:]])


def _in_style(source: list[str], old: list[str], new: list[str], text: str) -> list[str]:
    """Give new lines what libcst has dropped: a form feed at the start, a lone return at the end."""
    if source and new:
        feed = source[0][: max(0, len(source[0]) - len(old[0]))]
        new = [feed + new[0], *new[1:]] if INDENT.fullmatch(feed) else new
    if "\n" not in text and LONE_RETURN.search(text):
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


def _text_edit(old: list[str], new: list[str], stretch: Stretch) -> TextEdit:
    start, end, new_start, new_end = stretch
    had, has = "".join(old[start:end]), "".join(new[new_start:new_end])
    rest = min(len(had), len(has))
    head = next((i for i in range(rest) if had[i] != has[i]), rest)
    tail = next((i for i in range(rest - head) if had[-1 - i] != has[-1 - i]), rest - head)
    first = _place(start, had[:head])
    last = _place(start, had[: len(had) - tail])
    return TextEdit(*first, *last, has[head : len(has) - tail])


def _place(start: int, text: str) -> tuple[int, int]:
    """Line and column, both from 1, of the end of a text that begins at a line."""
    before = lines(text + ".")
    return start + len(before), len(before[-1])
