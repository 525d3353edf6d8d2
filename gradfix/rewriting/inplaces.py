"""Writes that a cut has made harmless: what is joined to its graph again, they would write in place."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from gradfix.rewriting import shapes as m
from gradfix.rewriting.names import walk
from gradfix.rewriting.seats import targets
from gradfix.tape.effects.operations import having
from gradfix.tree import Tree

NUMBERS = having("converts") | {"float"}


def written_at_once(tree: Tree, swaps: Iterable[cst.BaseExpression]) -> bool:
    """Whether what comes of an expression is written in the same one: `x.detach().mul_(2)`."""
    return any(_writes_in_place(tree, old) for old in swaps)


def _writes_in_place(tree: Tree, node: cst.BaseExpression) -> bool:
    method = tree.parent(node)
    call = tree.parent(method) if isinstance(method, cst.Attribute) and method.value is node else None
    if not isinstance(method, cst.Attribute) or not isinstance(call, cst.Call) or call.func is not method:
        return False
    name = method.attr.value
    if name == "requires_grad_" or name.endswith("__"):
        return False
    return name.endswith("_") or _writes_in_place(tree, call)


def writes_in_place(node: cst.CSTNode) -> bool:
    """`x.add_(y)`, `x += y` or `x[i] = y`, whatever x is."""
    if isinstance(node, cst.Call):
        name = node.func.attr.value if isinstance(node.func, cst.Attribute) else ""
        return name.endswith("_") and not name.endswith("__") and name != "requires_grad_"
    target = isinstance(node, cst.AssignTarget) and isinstance(node.target, cst.Subscript)
    return target or isinstance(node, cst.AugAssign)


def kept_beside(tree: Tree, node: cst.BaseExpression, form: str) -> bool:
    """Whether a number grows under one name while another name keeps it: of a tensor both would change."""
    if form not in NUMBERS:
        return False
    names = set(targets(tree.small_statement(node)))
    scope = tree.function(node) or tree.module
    added = {each.target.value for each in walk(scope)
             if isinstance(each, cst.AugAssign) and isinstance(each.target, cst.Name)}  # fmt: skip
    return any(_held_twice(scope, name) for name in names & added)


def _held_twice(scope: cst.CSTNode, name: str) -> bool:
    """`final = total`, `totals.append(total)`."""
    plain = m.Assign(value=m.Name(name)) | m.Call(
        func=m.Attribute(attr=m.Name("append")), args=[m.Arg(m.Name(name))]
    )
    return bool(m.findall(scope, plain))
