"""Lets a grad mode that is decided while the program runs be on whenever the backward runs."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from gradfix.defects import Span
from gradfix.rewriting import shapes as m
from gradfix.rewriting.names import binds, walk
from gradfix.rewriting.order import calls_of
from gradfix.rewriting.seats import dotted, one_line
from gradfix.rewriting.statements import Anchor, anchor, between, names_in, node_of, together
from gradfix.rule import Edit, Fix
from gradfix.tree import Tree

PLAIN = (
    cst.Name | cst.Attribute | cst.Comparison | cst.BooleanOperation | cst.UnaryOperation | cst.BaseNumber
    | cst.BaseString | cst.Not | cst.And | cst.Or | cst.ComparisonTarget | cst.BaseCompOp | cst.Dot
    | cst.BaseParenthesizableWhitespace | cst.LeftParen | cst.RightParen
)  # fmt: skip
"""What a test may be made of that is asked once more: it has no effect and no other answer."""
OTHERS = "another backward in this function may need what is then recorded no more"


def as_tested(tree: Tree, culprit: Span, backward: Span | None) -> Fix | None:
    """`set_grad_enabled(phase == "val")` asks what the backward's own `if` asks."""
    call, later = _mode(node_of(tree, culprit)), node_of(tree, backward)
    if call is None or later is None or len(call.args) != 1 or _is_off(call.args[0]):
        return None
    asked = call.args[0].value
    tests = [test for test in _tests(tree, call, later) if names_in(test) & names_in(asked)]
    row = _from_to(tree, call, later)
    if len(tests) != 1 or not row:
        return None
    test = tests[0]
    if any(names_in(test) & set(binds(place)) for place in row) or not all(map(_plain, walk(test))):
        return None
    function = tree.function(later)
    alone = len(calls_of(function if function is not None else tree.module, "backward")) == 1
    new = call.args[0].with_changes(value=test)
    says = one_line(tree.code(call.with_changes(args=[new])))
    return Fix((Edit(call.args[0], new),), says, "" if alone else OTHERS)


def _is_off(given: cst.Arg) -> bool:
    """Whether a mode is switched off, whatever happens."""
    return bool(given.star) or m.matches(given.value, m.Name("False"))


def _from_to(tree: Tree, call: cst.Call, later: cst.CSTNode) -> list[Anchor]:
    """The statements from the one that decides the mode to the one that runs backward, which it may hold."""
    block = anchor(tree, call)
    if block in tree.ancestors(later):
        return [block]
    pair = together(tree, call, later)
    if pair is None or pair[1] not in between(tree, pair[0], None):
        return []
    return [pair[0], *between(tree, *pair), pair[1]]


def _mode(node: cst.CSTNode | None) -> cst.Call | None:
    """The `set_grad_enabled(...)` of a statement."""
    items = [item.item for item in node.items] if isinstance(node, cst.With) else [node]
    calls = [
        one for one in items if isinstance(one, cst.Call) and dotted(one.func).endswith("set_grad_enabled")
    ]
    return calls[0] if len(calls) == 1 else None


def _tests(tree: Tree, call: cst.Call, later: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    """The tests that have to hold for the one and not for the other."""
    common = set(tree.ancestors(call))
    inner = later
    for above in tree.ancestors(later):
        if above in common or isinstance(above, cst.FunctionDef):
            break
        if isinstance(above, cst.If) and inner is above.body:
            yield above.test.with_changes(lpar=(), rpar=())
        elif isinstance(above, cst.If) and isinstance(inner, cst.Else):
            yield cst.UnaryOperation(cst.Not(), _bracketed(above.test))
        inner = above


def _bracketed(test: cst.BaseExpression) -> cst.BaseExpression:
    if test.lpar or not isinstance(test, cst.BooleanOperation):
        return test
    return test.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def _plain(node: cst.CSTNode) -> bool:
    return isinstance(node, PLAIN)
