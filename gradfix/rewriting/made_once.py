"""Moves what a constructor computes of parameters into the one method that reads it."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from gradfix.defects import Span
from gradfix.rewriting import shapes as m
from gradfix.rewriting.names import binds, reads, walk
from gradfix.rewriting.statements import Anchor, Draft, anchor, between, node_of, text_of
from gradfix.rule import Fix
from gradfix.tree import Tree

DRAWS = "each call then draws random numbers of its own"
CHANGED = "what it is made of may have changed since the module was made"


def where_read(
    tree: Tree, shared: Span | None, draws: bool, swap: tuple[cst.Call, cst.Call] | None = None
) -> Fix | None:
    """`self.gain = self.scale.exp()` of `__init__`, where the method begins that reads `self.gain`; `swap`:
    a call, and what stands in its place then."""
    node = node_of(tree, shared)
    small = tree.small_statement(node) if node is not None else None
    made_in = tree.function(small) if small is not None else None
    if not isinstance(small, cst.Assign) or made_in is None or made_in.name.value != "__init__":
        return None
    targets = [each.target for each in small.targets]
    readers = _readers(tree, _own(targets), made_in)
    place = anchor(tree, small)
    local = set(reads(small.value)) & {*binds(made_in.body), *_given(made_in)} - {"self"}
    if len(targets) != 1 or not _own(targets) or len(readers) != 1 or local:
        return None
    reader = readers[0]
    if place not in made_in.body.body or not isinstance(reader.body, cst.IndentedBlock):
        return None
    draft = Draft(tree)
    if swap is not None:
        draft.swap(*swap)
    _begin(draft, reader, place)
    changed = bool(
        _own(walk(small.value)) & _own(one for row in between(tree, place, None) for one in walk(row))
    )
    unsafe = CHANGED if changed or "load_state_dict" in tree.source else ""
    return Fix(draft.edits(), f"in {reader.name.value}: {text_of(tree, small)}", DRAWS if draws else unsafe)


def _begin(draft: Draft, reader: cst.FunctionDef, place: Anchor) -> None:
    """Let a method begin with a statement, behind its docstring."""
    first = reader.body.body[0]
    assert isinstance(first, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
    docstring = m.matches(first, m.SimpleStatementLine([m.Expr(m.SimpleString())]))
    (draft.move_after if docstring else draft.move_before)(place, first)


def _own(nodes: Iterable[cst.CSTNode]) -> set[str]:
    """The attributes of `self` among some nodes."""
    owned = m.Attribute(value=m.Name("self"))
    return {one.attr.value for one in nodes if isinstance(one, cst.Attribute) and m.matches(one, owned)}


def _given(function: cst.FunctionDef) -> set[str]:
    return {param.name.value for param in walk(function.params) if isinstance(param, cst.Param)}


def _readers(tree: Tree, names: set[str], made_in: cst.FunctionDef) -> list[cst.FunctionDef]:
    """The methods beside the constructor that name these attributes; none where somebody else does too."""
    found: dict[cst.FunctionDef, None] = {}
    for one in walk(tree.module):
        if isinstance(one, cst.Attribute) and one.attr.value in names:
            function = tree.function(one)
            beside = function is not None and tree.parent(function) is tree.parent(made_in)
            if function is None or not beside or not m.matches(one.value, m.Name("self")):
                return []
            found[function] = None
    return [function for function in found if function is not made_in or _read_in(function, names)]


def _read_in(function: cst.FunctionDef, names: set[str]) -> bool:
    """Whether the constructor itself reads the attribute that it sets."""
    named = [one for one in walk(function) if isinstance(one, cst.Attribute) and one.attr.value in names]
    return len(named) > 1
