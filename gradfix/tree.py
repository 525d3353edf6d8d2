"""A file's libcst tree, with the ways to find the node that an `ast` span names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TypeAlias, TypeVar, overload

import libcst as cst
from libcst.metadata import ByteSpanPositionProvider, MetadataWrapper

from gradfix.defects import Span
from gradfix.places import Places, lines

N = TypeVar("N", bound=cst.CSTNode)
Statement: TypeAlias = "cst.SimpleStatementLine | cst.BaseCompoundStatement"
Offsets: TypeAlias = "tuple[int, int]"

LONE_RETURN = re.compile(r"\r(?!\n)")
INDENT = re.compile(r"[ \t\f]*")
FIELDS: dict[type[cst.CSTNode], tuple[str, ...]] = {}
NODES: dict[type, bool] = {}


class UnfaithfulError(Exception):
    """libcst does not give this file back as it was, so no rewrite of it can be trusted."""


def children(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The nodes directly below a node; `CSTNode.children` rebuilds the node to list them, which is slow."""
    names = FIELDS.get(type(node)) or FIELDS.setdefault(type(node), tuple(node.__dataclass_fields__))
    for name in names:
        value = getattr(node, name)
        if is_node(value):
            yield value
        elif type(value) is list or type(value) is tuple:
            for item in value:
                if is_node(item):
                    yield item


def is_node(value: object) -> bool:
    """isinstance, which for a class with abstract methods takes longer than all else that is done here."""
    found = NODES.get(type(value))
    if found is None:
        found = NODES[type(value)] = isinstance(value, cst.CSTNode)
    return found


class Tree:
    """What a rule sees of a file; made by the engine when there is something to rewrite.

    module                      the cst.Module
    at(span, *types)            the outermost node of these types that covers exactly the ast span, or None
    parent(node)                its parent node
    statement(node)             the SimpleStatementLine or compound statement that holds the node
    small_statement(node)       the small statement (Assign, AugAssign, Expr ...) that holds the node, or None
    block(statement)            the statements of the body that holds a statement, in order, itself among them
    function(node)              the FunctionDef that holds the node, or None
    code(node)                  its source text
    span(node)                  its ast span (UTF-8 byte columns)
    text(span)                  the source text of a span
    torch                       the name that torch is bound to in this file ("torch", "th"), or None
    """

    def __init__(self, text: str) -> None:
        self.source = text
        self.module = cst.parse_module(LONE_RETURN.sub("\n", text))
        self.rendered = self.module.code
        self.places = Places(self.rendered, _missing(text, self.rendered))

    @overload
    def at(self, span: Span) -> cst.CSTNode | None: ...
    @overload
    def at(self, span: Span, *types: type[N]) -> N | None: ...
    def at(self, span: Span, *types: type[cst.CSTNode]) -> cst.CSTNode | None:
        nodes = self._by_offsets.get(self.places.offsets(span), ())
        return next((node for node in reversed(nodes) if not types or isinstance(node, types)), None)

    def parent(self, node: cst.CSTNode) -> cst.CSTNode:
        return self._parents[node]

    def ancestors(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """The nodes that hold a node, the nearest first."""
        above = self._parents.get(node)
        while above is not None:
            yield above
            above = self._parents.get(above)

    def statement(self, node: cst.CSTNode) -> Statement:
        found = self._nearest(node, cst.SimpleStatementLine, cst.BaseCompoundStatement)
        assert isinstance(found, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
        return found

    def small_statement(self, node: cst.CSTNode) -> cst.BaseSmallStatement | None:
        for found in (node, *self.ancestors(node)):
            if isinstance(found, cst.BaseSmallStatement):
                return found
            if isinstance(found, cst.BaseCompoundStatement):
                return None
        return None

    def block(self, statement: cst.CSTNode) -> list[cst.CSTNode]:
        holder = self.parent(statement)
        assert isinstance(
            holder, (cst.Module, cst.IndentedBlock, cst.SimpleStatementSuite, cst.SimpleStatementLine)
        )
        return list(holder.body)

    def function(self, node: cst.CSTNode) -> cst.FunctionDef | None:
        return next((above for above in self.ancestors(node) if isinstance(above, cst.FunctionDef)), None)

    def code(self, node: cst.CSTNode) -> str:
        return self.module.code_for_node(node)

    def span(self, node: cst.CSTNode) -> Span:
        return self.places.span(*self._offsets[node])

    def text(self, span: Span) -> str:
        return self.places.text(span)

    @cached_property
    def torch(self) -> str | None:
        return next((name for small in _at_import(self.module.body) for name in _torch(small)), None)

    @cached_property
    def source_lines(self) -> list[str]:
        return lines(self.source)

    @cached_property
    def rendered_lines(self) -> list[str]:
        return lines(self.rendered)

    @cached_property
    def tops(self) -> dict[cst.CSTNode, tuple[int, list[str]]]:
        """The statements of the module's own level: where each starts (from 0), and its lines as rendered."""
        tops: dict[cst.CSTNode, tuple[int, list[str]]] = {}
        start = len(self.module.header)
        for statement in self.module.body:
            rendered = lines(self.code(statement))
            end = start + len(rendered)
            if self.rendered_lines[start:end] == rendered:  # not so for a last line without its newline
                tops[statement] = (start, rendered)
            start = end
        return tops

    def _nearest(self, node: cst.CSTNode, *types: type[cst.CSTNode]) -> cst.CSTNode:
        return next(above for above in (node, *self.ancestors(node)) if isinstance(above, types))

    @cached_property
    def _parents(self) -> dict[cst.CSTNode, cst.CSTNode]:
        parents: dict[cst.CSTNode, cst.CSTNode] = {}
        waiting: list[cst.CSTNode] = [self.module]
        while waiting:
            node = waiting.pop()
            for child in children(node):
                parents[child] = node
                waiting.append(child)
        return parents

    @cached_property
    def _offsets(self) -> dict[cst.CSTNode, Offsets]:
        """Every node's byte offsets, inner nodes before the nodes that hold them."""
        wrapper = MetadataWrapper(self.module, unsafe_skip_copy=True)
        found = wrapper.resolve(ByteSpanPositionProvider)
        offsets = {node: (at.start, at.start + at.length) for node, at in found.items()}
        for node in [node for node in offsets if isinstance(node, (cst.Tuple, cst.GeneratorExp))]:
            offsets[node] = self._with_brackets(node, offsets)
        return offsets

    def _with_brackets(
        self, node: cst.Tuple | cst.GeneratorExp, offsets: dict[cst.CSTNode, Offsets]
    ) -> Offsets:
        """`ast` counts a tuple's brackets in, and those that a lone generator borrows from its call."""
        if node.lpar:
            return offsets[node.lpar[-1]][0], offsets[node.rpar[0]][1]
        start, end = offsets[node]
        if isinstance(node, cst.Tuple):
            return start, end
        return self.places.raw.rindex(b"(", 0, start), self.places.raw.index(b")", end) + 1

    @cached_property
    def _by_offsets(self) -> dict[Offsets, list[cst.CSTNode]]:
        index: dict[Offsets, list[cst.CSTNode]] = {}
        for node, offsets in self._offsets.items():
            index.setdefault(offsets, []).append(node)
        return index


def _missing(text: str, rendered: str) -> dict[int, int]:
    """How many bytes libcst drops at the start of each line: form feeds before an indentation."""
    if text == rendered:
        return {}
    before, after = lines(text), lines(rendered)
    if len(before) != len(after):
        raise UnfaithfulError("libcst does not reproduce this file's lines")
    missing = {}
    for number, (had, has) in enumerate(zip(before, after, strict=True), 1):
        had = LONE_RETURN.sub("\n", had)
        if had != has:
            cut = len(had) - len(has)
            if cut < 0 or had[cut:] != has or INDENT.fullmatch(had[:cut]) is None:
                raise UnfaithfulError(f"libcst does not reproduce line {number}")
            missing[number] = cut
    return missing


def _at_import(body: Iterable[cst.CSTNode]) -> Iterator[cst.BaseSmallStatement]:
    """The small statements that run at import, inside `if` and `try` too, but in no function or class."""
    for statement in body:
        if isinstance(statement, cst.BaseSmallStatement):
            yield statement
        elif isinstance(statement, cst.SimpleStatementLine):
            yield from statement.body
        elif isinstance(statement, (cst.If, cst.Else, cst.Try, cst.ExceptHandler, cst.Finally, cst.With)):
            yield from _at_import(statement.body.body)
            yield from _at_import(each for each in children(statement) if each is not statement.body)


def _torch(small: cst.BaseSmallStatement) -> Iterator[str]:
    """The names to which an import statement binds torch itself."""
    if isinstance(small, cst.Import):
        for alias in small.names:
            if alias.evaluated_name == "torch":
                yield alias.evaluated_alias or "torch"
            elif alias.asname is None and alias.evaluated_name.startswith("torch."):
                yield "torch"
