"""How a rule inserts, moves and removes statements; comments and blank lines stay where they belong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import libcst as cst

from gradfix.defects import Span
from gradfix.rewriting import shapes as m
from gradfix.rewriting.arguments import keyword, with_keyword
from gradfix.rule import Edit, Replacement
from gradfix.tree import Tree

Anchor: TypeAlias = "cst.SimpleStatementLine | cst.BaseCompoundStatement | cst.BaseSmallStatement"
"""What other statements can stand beside: a line, a block, or one of several statements on a line."""

Line: TypeAlias = "cst.SimpleStatementLine | cst.BaseCompoundStatement"

ANCHORS = (cst.SimpleStatementLine, cst.BaseCompoundStatement, cst.BaseSmallStatement)
BARE = (cst.Name, cst.Attribute, cst.Call, cst.Subscript)
NODES = (cst.BaseCompoundStatement, cst.BaseSmallStatement, cst.BaseExpression)


def node_of(tree: Tree, fact: object) -> cst.CSTNode | None:
    """The statement or expression that a fact's span names."""
    return tree.at(fact, *NODES) if isinstance(fact, Span) else None


def expression(tree: Tree, text: str) -> cst.BaseExpression:
    return cst.parse_expression(text, config=tree.module.config_for_parsing)


def small(tree: Tree, text: str) -> cst.BaseSmallStatement:
    line = cst.parse_statement(text, config=tree.module.config_for_parsing)
    assert isinstance(line, cst.SimpleStatementLine)
    return line.body[0]


def method_call(value: cst.BaseExpression, name: str) -> cst.Call:
    """`value.name()`, with brackets around the value where its first dot would bind tighter."""
    if not isinstance(value, BARE) and not getattr(value, "lpar", ()):
        value = value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return cst.Call(cst.Attribute(value, cst.Name(name)))


def with_argument(call: cst.Call, name: str, value: str) -> cst.Call:
    """The call with this keyword argument, whether or not it had one of that name."""
    given = keyword(call, name)
    if given is None:
        return with_keyword(call, name, value)
    args = [arg.with_changes(value=cst.parse_expression(value)) if arg is given else arg for arg in call.args]
    return call.with_changes(args=args)


def anchor(tree: Tree, node: cst.CSTNode) -> Anchor:
    """The statement of a node, as something that other statements can stand beside."""
    line = tree.statement(node)
    if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1:
        return line
    return tree.small_statement(node) or line


def home(tree: Tree, place: Anchor) -> cst.CSTNode:
    """The body that an anchor stands in."""
    holder = tree.parent(place)
    return tree.parent(holder) if isinstance(holder, cst.SimpleStatementLine) else holder


def path(tree: Tree, node: cst.CSTNode) -> list[Anchor]:
    """The anchors that lead to a node from its function's body (or the module), the outermost first."""
    here = anchor(tree, node)
    found = [here]
    for above in tree.ancestors(here):
        if isinstance(above, (cst.FunctionDef, cst.ClassDef)):
            break
        if isinstance(above, cst.BaseCompoundStatement) and not isinstance(tree.parent(above), cst.If):
            found.append(above)
    return found[::-1]


def together(tree: Tree, first: cst.CSTNode, second: cst.CSTNode) -> tuple[Anchor, Anchor] | None:
    """The two anchors in one body that hold two nodes; None if the nodes stand in different branches."""
    for one, other in zip(path(tree, first), path(tree, second), strict=False):
        if one is not other:
            return (one, other) if home(tree, one) is home(tree, other) else None
    return None


def siblings(tree: Tree, place: Anchor) -> list[Anchor]:
    """The anchors of the body that an anchor stands in, in order."""
    found: list[Anchor] = []
    for statement in getattr(home(tree, place), "body", ()):
        if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) > 1:
            found.extend(statement.body)
        else:
            found.append(statement)
    return found


def between(tree: Tree, first: Anchor, last: Anchor | None) -> list[Anchor]:
    """The anchors after the first and before the last, if there is one."""
    row = siblings(tree, first)
    return row[row.index(first) + 1 : None if last is None else row.index(last)]


def text_of(tree: Tree, place: cst.CSTNode) -> str:
    """The source text of a statement, without its comments and semicolon."""
    if isinstance(place, cst.SimpleStatementLine) and len(place.body) == 1:
        place = place.body[0]
    if isinstance(place, cst.BaseSmallStatement):
        place = place.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)
    elif isinstance(place, cst.BaseCompoundStatement):
        place = place.with_changes(leading_lines=())
    return tree.code(place).strip()


def names_in(node: cst.CSTNode) -> set[str]:
    """Every plain name below a node."""
    return {name.value for name in m.findall(node, m.Name()) if isinstance(name, cst.Name)}


@dataclass
class Beside:
    """What is to happen at one anchor."""

    before: list[Line] = field(default_factory=list)
    after: list[Line] = field(default_factory=list)
    gone: bool = False
    comments: bool = True
    """Whether the comments of a statement that goes stay behind."""
    ends: bool = False
    """Whether the statements behind it on its line all go."""
    headed: bool = False
    """Whether the comments above it are about what comes before it too."""


class Draft:
    """Statements to insert, move and remove; `edits` says it in the terms of a fix."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self._beside: dict[cst.CSTNode, Beside] = {}
        self._swaps: dict[cst.CSTNode, cst.CSTNode] = {}

    def before(self, place: Anchor, *texts: str) -> None:
        self._at(place).before += self._lines(texts)

    def under_heading(self, place: Anchor, last: Anchor) -> None:
        """What goes before a statement stays under the comment that heads the lines down to the last."""
        self._at(place).headed |= _one_paragraph(self.tree, place, last)

    def after(self, place: Anchor, *texts: str) -> None:
        self._at(place).after += self._lines(texts)

    def swap(self, old: cst.CSTNode, new: cst.CSTNode) -> None:
        self._swaps[old] = new

    def remove(self, place: Anchor) -> None:
        self._at(place).gone = True

    def move_before(self, place: Anchor, target: Anchor) -> None:
        """What moves up among the lines that a comment heads stays under that comment."""
        self.under_heading(target, place)
        self._at(target).before.append(self._taken(place))

    def move_after(self, place: Anchor, target: Anchor) -> None:
        self._at(target).after.append(self._taken(place))

    def edits(self) -> tuple[Edit, ...]:
        self._end_lines()
        return tuple(self._edits(self._outermost([*self._beside, *self._swaps])))

    def _end_lines(self) -> None:
        """Find the statements that are to be the last on their line, so that no semicolon dangles."""
        for line in {
            self.tree.parent(place) for place in self._beside if isinstance(place, cst.BaseSmallStatement)
        }:
            row = list(getattr(line, "body", ()))
            stay = [place for place in row if place not in self._beside or not self._beside[place].gone]
            if stay and stay[-1] is not row[-1]:
                self._at(stay[-1]).ends = True

    def _at(self, place: Anchor) -> Beside:
        return self._beside.setdefault(place, Beside())

    def _lines(self, texts: Iterable[str]) -> list[cst.SimpleStatementLine]:
        return [cst.SimpleStatementLine([small(self.tree, text)]) for text in texts]

    def _taken(self, place: Anchor) -> Line:
        """A copy of a statement that leaves its place, with the comments that belong to it."""
        beside = self._at(place)
        beside.gone, beside.comments = True, False
        inside: dict[cst.CSTNode, Replacement] = {
            old: new for old, new in self._swaps.items() if place in self.tree.ancestors(old)
        }
        changed = place.visit(_Inside(inside)) if inside else place
        assert isinstance(changed, ANCHORS)
        place = changed
        if not isinstance(place, cst.BaseSmallStatement):
            return place.with_changes(leading_lines=_own_comments(place.leading_lines))
        return cst.SimpleStatementLine([place.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)])

    def _outermost(self, nodes: Sequence[cst.CSTNode]) -> list[cst.CSTNode]:
        unique = list(dict.fromkeys(nodes))
        return [node for node in unique if not any(above in unique for above in self.tree.ancestors(node))]

    def _edits(self, nodes: Iterable[cst.CSTNode]) -> Iterator[Edit]:
        for node in nodes:
            beside = self._beside.get(node)
            if beside is not None and beside.gone and not (beside.before or beside.after):
                yield from _removal(node, beside)
            else:
                yield Edit(node, self._new(node))

    def _new(self, node: cst.CSTNode) -> Replacement:
        inside = [n for n in (*self._beside, *self._swaps) if node in self.tree.ancestors(n)]
        new = {n: self._new(n) for n in self._outermost(inside)}
        changed = self._swaps[node] if node in self._swaps else node.visit(_Inside(new)) if new else node
        beside = self._beside.get(node)
        if beside is None or not isinstance(changed, cst.CSTNode):
            return changed
        kept = [] if beside.gone else [changed]
        if isinstance(node, cst.BaseSmallStatement):
            return cst.FlattenSentinel(_on_one_line(node, beside, kept))
        return cst.FlattenSentinel(_on_own_lines(beside, kept))


class _Inside(cst.CSTTransformer):
    """Puts new nodes below an anchor that is itself replaced."""

    def __init__(self, new: dict[cst.CSTNode, Replacement]) -> None:
        super().__init__()
        self.new = new

    def on_visit(self, node: cst.CSTNode) -> bool:
        return node not in self.new

    def on_leave(  # type: ignore[override]  # the signature of libcst promises less than its visitor takes
        self, original_node: cst.CSTNode, updated_node: cst.CSTNode
    ) -> Replacement:
        return self.new.get(original_node, updated_node)


def _own_comments(leading: Sequence[cst.EmptyLine]) -> list[cst.EmptyLine]:
    """The comment lines directly above a statement, of all lines that lead to it."""
    own: list[cst.EmptyLine] = []
    for empty in reversed(leading):
        if empty.comment is None:
            break
        own.insert(0, empty)
    return own


def _one_paragraph(tree: Tree, first: Anchor, last: Anchor) -> bool:
    """Whether a statement follows another with no blank line, comment or block on the way."""
    if home(tree, first) is not home(tree, last) or last not in between(tree, first, None):
        return False
    return all(
        isinstance(place, cst.SimpleStatementLine) and not place.leading_lines
        for place in (*between(tree, first, last), last)
    )


def _removal(node: cst.CSTNode, beside: Beside) -> Iterator[Edit]:
    if not beside.comments and isinstance(node, cst.SimpleStatementLine):
        for comment in _own_comments(node.leading_lines):
            yield Edit(comment, cst.RemoveFromParent())
        yield Edit(node.trailing_whitespace, cst.TrailingWhitespace())
        yield Edit(node.body[0], cst.RemoveFromParent())
    elif not beside.comments and isinstance(node, cst.BaseCompoundStatement):
        rest = node.leading_lines[: len(node.leading_lines) - len(_own_comments(node.leading_lines))]
        yield Edit(node, cst.SimpleStatementLine([], leading_lines=rest))
    else:
        yield Edit(node, cst.RemoveFromParent())


def _on_one_line(node: cst.BaseSmallStatement, beside: Beside, kept: list[cst.CSTNode]) -> list[cst.CSTNode]:
    """Statements between semicolons; the last one has the semicolon that stood there."""
    before, after = ([cst.ensure_type(line, cst.SimpleStatementLine).body[0] for line in lines]
                     for lines in (beside.before, beside.after))  # fmt: skip
    row = [*before, *kept, *after]
    semicolon = cst.Semicolon(whitespace_after=cst.SimpleWhitespace(" "))
    row = [item.with_changes(semicolon=semicolon) for item in row]
    end = cst.MaybeSentinel.DEFAULT if beside.ends else node.semicolon
    return [*row[:-1], row[-1].with_changes(semicolon=end)]


def _on_own_lines(beside: Beside, kept: list[cst.CSTNode]) -> list[cst.CSTNode]:
    """The first has the blank lines that stood there; the comment of what stays stays above it."""
    if not kept or not beside.before:
        return [*beside.before, *kept, *beside.after]
    node = kept[0]
    leading = list(getattr(node, "leading_lines", ()))
    own = [] if beside.headed else _own_comments(leading)
    above = leading[: len(leading) - len(own)]
    first, *rest = beside.before
    first = first.with_changes(leading_lines=[*above, *first.leading_lines])
    return [first, *rest, node.with_changes(leading_lines=own), *beside.after]
