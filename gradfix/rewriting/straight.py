"""Straight-through estimators: a value goes on rounded, and its gradient as if it were not."""

from __future__ import annotations

import libcst as cst

from gradfix.rewriting.holders import repeatable
from gradfix.rewriting.statements import Draft, anchor
from gradfix.rewriting.surrogates import operands, writes
from gradfix.rule import Edit, Fix
from gradfix.tree import Tree

IDENTITY = "its gradient is that of what is rounded, which is a choice of the model"
LOWEST = (cst.Arg, cst.Assign, cst.AnnAssign, cst.Return, cst.Index, cst.Element, cst.Expr)
"""Where an expression needs no brackets."""


def straight_through(tree: Tree, call: cst.CSTNode | None) -> Fix | None:
    """`x + (x.round() - x).detach()` for `x.round()`: where x isn't a name, what gets the result holds it."""
    given = operands(tree, call) if isinstance(call, cst.Call) else []
    if not isinstance(call, cst.Call) or len(given) != 1 or writes(call):
        return None
    before = given[0]
    if isinstance(before, (cst.Name, cst.Attribute, cst.Subscript)) and repeatable(before):
        new = _estimator(tree, call, tree.code(before))
        return Fix((Edit(call, _in_brackets(tree, call, new)),), tree.code(new), IDENTITY)
    name = _name_of(tree, call)
    if name is None or "\n" in tree.code(call):
        return None
    renamed = call.deep_replace(before, cst.Name(name))
    assert isinstance(renamed, cst.Call)
    new = _estimator(tree, renamed, name)
    draft = Draft(tree)
    draft.before(anchor(tree, call), f"{name} = {tree.code(before)}")
    draft.swap(call, new)
    return Fix(draft.edits(), tree.code(new), IDENTITY)


def _estimator(tree: Tree, rounded: cst.Call, before: str) -> cst.BaseExpression:
    return cst.parse_expression(f"{before} + ({tree.code(rounded)} - {before}).detach()")


def _in_brackets(tree: Tree, call: cst.Call, new: cst.BaseExpression) -> cst.BaseExpression:
    if isinstance(tree.parent(call), LOWEST) or call.lpar:
        return new
    return new.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def _name_of(tree: Tree, call: cst.Call) -> str | None:
    """The name that a statement binds to the result of a call, and to nothing else."""
    around = tree.parent(call)
    if not isinstance(around, cst.Assign) or len(around.targets) != 1:
        return None
    target = around.targets[0].target
    return target.value if isinstance(target, cst.Name) else None
