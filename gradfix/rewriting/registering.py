"""Whether an assignment would register a parameter: such an attribute takes nothing else from then on."""

from __future__ import annotations

import libcst as cst

from gradfix.rewriting.calls import last_name
from gradfix.rewriting.names import walk
from gradfix.tree import Tree


def registers(tree: Tree, old: cst.BaseExpression, new: cst.BaseExpression) -> bool:
    """Whether an attribute would get a parameter if `new` stood where `old` stands."""
    small = tree.small_statement(old)
    if not isinstance(small, cst.Assign) or small.value is not old:
        return False
    if not any(isinstance(each.target, cst.Attribute) for each in small.targets):
        return False
    return last_name(new) in _parameters(tree)


def _parameters(tree: Tree) -> set[str]:
    """The names and attributes that are assigned a Parameter somewhere."""
    return {
        last_name(each.target)
        for node in walk(tree.module)
        if isinstance(node, cst.Assign)
        and isinstance(node.value, cst.Call)
        and last_name(node.value.func) == "Parameter"
        for each in node.targets
    }
