"""The picture of a fixture: its lines in the order in which they run, and what each is made of."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from docs.played import Edge, Role, edge, line_of, played, role_of, whereabouts
from gradfix.defects import Span
from gradfix.rule import Finding
from gradfix.source import Source, parse
from gradfix.tape.domain.events import Add, Backward, Clear, Use
from gradfix.tape.domain.graph import Node, upstream

LONGEST = 40
ARRIVES, MISSING = "its gradient arrives", "no gradient arrives"
DEEDS: dict[Role, str] = {
    "clear": "clears the gradients",
    "step": "uses the gradients",
    "cut": "ends the graph",
}


@dataclass(slots=True)
class Row:
    """One line of a picture, with the rows above it that it is made of."""

    span: Span
    code: str
    role: Role
    notes: list[str] = field(default_factory=list)
    bad: bool = False
    """Whether it is part of what is wrong."""
    good: bool = False
    """Whether a gradient arrives at it, or it is part of what mends."""
    spoiled: bool = False
    """Whether what it saved was overwritten."""
    above: list[tuple[int, Edge]] = field(default_factory=list)

    @property
    def line(self) -> int:
        return self.span.line


def before_and_after(text: bytes, mended: bytes | None, finding: Finding) -> tuple[list[Row], list[Row]]:
    """The pictures of a finding, and of the same backwards in the text that was made of it."""
    broken = Picture(text, finding, None)
    if mended is None:
        return broken.rows, []
    whole = Picture(mended, None, broken.chosen)
    whole.mark(text.decode().splitlines())
    return broken.rows, whole.rows


class Picture:
    """The rows of one text as they come together."""

    def __init__(self, text: bytes, finding: Finding | None, chosen: Sequence[int] | None) -> None:
        source = parse("example.py", text)
        assert isinstance(source, Source)
        self.source = source
        self.finding = finding
        self.lines = source.text.splitlines()
        self.statements = dict(statements(source.tree))
        self.rows: list[Row] = []
        self.at: dict[int, int] = {}
        """By the identity of a node, or of a place in the text, its row."""
        self.scopes = [
            (node.lineno, node.end_lineno or node.lineno)
            for node in ast.walk(source.tree)
            if isinstance(node, ast.FunctionDef)
        ]
        ran = list({line_of(event.place): event for event in reversed(played(source))}.values())[::-1]
        self.chosen = about(finding, ran) if finding else [at for at in chosen or () if at < len(ran)]
        """Which of the backwards of the text, counted as they stand there, the picture shows."""
        backwards = [ran[at] for at in self.chosen]
        for node in sorted(self._nodes(backwards), key=lambda node: node.born):
            self._node(node)
        for event in backwards:
            self._backward(event)
        self._deeds(backwards)
        if finding is not None:
            self._explain(finding)
        self._arrived(backwards, ran)
        self._absorb()

    def _nodes(self, backwards: Iterable[Backward]) -> Iterator[Node]:
        yield from upstream([event.start for event in backwards if event.start is not None])

    def _node(self, node: Node) -> None:
        """A row for a node; what was made by one call is one row, what is nowhere in the text is none."""
        place = node.place
        known = self.at.get(id(place)) if isinstance(place, ast.AST) else None
        if known is not None and node.leaf is not None and self.rows[known].role in ("leaf", "constant"):
            self.at[id(node)] = known
            return
        above = {self.at[id(parent)]: edge(parent, node) for parent in node.parents if id(parent) in self.at}
        if not isinstance(place, ast.AST) and above:
            self.at[id(node)] = min(above)
            return
        code = self._code(place) if known is None or node.leaf is not None else ""
        row = Row(whereabouts(place), code or node.op.removesuffix("_"), role_of(node))
        row.above, row.spoiled = list(above.items()), bool(node.spoiled)
        self._add(row, node, place)

    def _backward(self, event: Backward) -> None:
        start = [(self.at[id(event.start)], "recorded")] if id(event.start) in self.at else []
        reaches: list[tuple[int, Edge]] = [(at, "recorded" if event.met else "plain") for at, _ in start]
        row = Row(whereabouts(event.place), self._code(event.place), "backward", above=reaches)
        self._add(row, event, event.place)

    def _deeds(self, backwards: Sequence[Backward]) -> None:
        """What clears and uses the gradients that come of it, up to the first step behind it."""
        for node in self._nodes(backwards):
            slot = node.leaf.slot if node.leaf is not None else None
            filled = False
            for event in slot.events if slot else ():
                filled |= isinstance(event, Add) and event.backward in backwards
                if (
                    isinstance(event, (Clear, Use))
                    and id(event.place) not in self.at
                    and line_of(event.place)
                ):
                    role: Role = "clear" if isinstance(event, Clear) else "step"
                    row = Row(whereabouts(event.place), self._code(event.place), role)
                    self._insert(row, event.place)
                if isinstance(event, Use) and filled:
                    break

    def _explain(self, finding: Finding) -> None:
        """Say at each place of the evidence what it is."""
        for step in finding.evidence:
            if step.path is not None:
                continue
            at = self._nearest(step.span, step.says)
            if at is None:
                row = Row(step.span, self._line(step.span.line), "other")
                at = self._insert(row, None)
            if step.says not in self.rows[at].notes:
                self.rows[at].notes.append(step.says)
            self.rows[at].bad = True

    def _nearest(self, span: Span, says: str) -> int | None:
        """The row of a place, or the last one on its line, as the outermost operation is."""
        found = [at for at, row in enumerate(self.rows) if row.line == span.line]
        same = [at for at in found if self.rows[at].span == span]
        spoiled = [at for at in same if self.rows[at].spoiled]
        if len(same) > 1 and spoiled:
            return spoiled[0] if "saved" in says else min(spoiled[0] + 1, same[-1])
        return next(reversed(same or found), None)

    def _arrived(self, backwards: Sequence[Backward], ran: Sequence[Backward]) -> None:
        """Say of leaves whether a gradient arrives, and of deeds what they do, where nothing else is said."""
        filled = {id(node) for event in ran for node in self._nodes([event]) if id(node) in event.met}
        for node in self._nodes(backwards):
            row = self.rows[self.at[id(node)]]
            if row.role == "leaf" and node.requires and not row.notes:
                row.good = self.finding is None and id(node) in filled
                row.bad = id(node) not in filled
                row.notes += [ARRIVES] * row.good + [MISSING] * row.bad
        for row in self.rows:
            row.notes += [] if row.notes or row.role not in DEEDS else [DEEDS[row.role]]

    def mark(self, before: Sequence[str]) -> None:
        """Mark what is new since another text."""
        for line in new_lines(before, self.lines):
            code = self._line(line)
            if code and not any(row.line == line for row in self.rows):
                self._insert(Row(Span(line, 0, line, 0), code, "other"), None)
            for row in self.rows:
                if row.line == line:
                    row.notes = row.notes or ["rewritten"]
                    row.good = True

    def _absorb(self) -> None:
        """Leave out constants that stand inside of what the next row shows."""
        inner = {
            at
            for row in self.rows
            for at, _ in row.above
            if self.rows[at].role == "constant" and row.line == self.rows[at].line
            and self.rows[at].code != row.code and self.rows[at].code in row.code
        }  # fmt: skip
        place = {at: new for new, at in enumerate(at for at in range(len(self.rows)) if at not in inner)}
        for row in self.rows:
            row.above = [(place[at], kind) for at, kind in row.above if at in place]
        self.rows = [self.rows[at] for at in place]

    def _add(self, row: Row, thing: object, place: object) -> None:
        self.at[id(thing)] = len(self.rows)
        if isinstance(place, ast.AST):
            self.at.setdefault(id(place), len(self.rows))
        self.rows.append(row)

    def _insert(self, row: Row, place: object) -> int:
        """A row without edges, where a reader of the text would come to it."""
        scope = self._scope(row.line)
        before = [
            at for at, one in enumerate(self.rows) if self._scope(one.line) == scope and one.line <= row.line
        ]
        where = before[-1] + 1 if before else len(self.rows) if scope else 0
        self.rows.insert(where, row)
        self.at = {key: at + (at >= where) for key, at in self.at.items()}
        for one in self.rows:
            one.above = [(at + (at >= where), kind) for at, kind in one.above]
        if isinstance(place, ast.AST):
            self.at[id(place)] = where
        return where

    def _scope(self, line: int) -> int:
        """The innermost function that a line is in, by its first line."""
        return max((first for first, last in self.scopes if first <= line <= last), default=0)

    def _line(self, line: int) -> str:
        """A line as it stands there, without its comment."""
        return cut(f" {self.lines[line - 1].strip()}".partition(" #")[0].strip())

    def _code(self, place: object) -> str:
        """The text of a place: the whole statement, where it is all of its value."""
        if not isinstance(place, ast.AST):
            return ""
        text = ast.get_source_segment(self.source.text, self.statements.get(place, place)) or ""
        return cut(" ".join(text.split()))


def statements(tree: ast.Module) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Each value with the statement that it is all of."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return)) and node.value:
            yield node.value, node


def about(finding: Finding, ran: Sequence[Backward]) -> list[int]:
    """The backwards that a finding speaks of; the first where it speaks of none."""
    told = {step.span.line for step in finding.evidence if step.path is None} | {finding.span.line}
    return [at for at, event in enumerate(ran) if line_of(event.place) in told] or [0] * bool(ran)


def new_lines(before: Sequence[str], after: Sequence[str]) -> Iterator[int]:
    """The lines of a text that another doesn't have, however far they are indented."""
    texts = [line.strip() for line in before], [line.strip() for line in after]
    for tag, _, _, first, last in SequenceMatcher(None, *texts, autojunk=False).get_opcodes():
        if tag in ("replace", "insert"):
            yield from range(first + 1, last + 1)


def cut(text: str) -> str:
    """As much of a text as a row has room for."""
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
