"""Takes the rows of a tensor one by one, each a view of its own, where a loop writes to them in place."""

from __future__ import annotations

import libcst as cst

from gradfix.defects import Defect
from gradfix.defects.written import WrittenView
from gradfix.rewriting.calls import last_name
from gradfix.rewriting.holders import free_name, repeatable
from gradfix.rewriting.outofplace import out_of_place
from gradfix.rewriting.statements import expression
from gradfix.rule import Decline, Edit, Fix, Options
from gradfix.tape.effects import table
from gradfix.tree import Tree

UNREADABLE = Decline(
    "take this view anew behind the block that records nothing: what it shows was written since, and torch "
    "refuses to read such a view as well"
)


def out_of_place_or_by_index(defect: Defect, tree: Tree, options: Options) -> Fix | Decline:
    """A new tensor under the same name; where the whole is what is read later, views that may be written."""
    if defect.told(WrittenView).unreadable:
        return UNREADABLE
    fix = out_of_place(defect, tree, options)
    return fix if isinstance(fix, Fix) else _by_index(defect, tree) or fix


def _by_index(defect: Defect, tree: Tree) -> Fix | None:
    """`for row in x` becomes `for row in (x[i] for i in range(len(x)))`: autograd follows each `x[i]`."""
    node = tree.at(defect.culprit, cst.BaseExpression, cst.BaseSmallStatement)
    facts = defect.told(WrittenView)
    if (
        node is None
        or facts.of_leaf
        or facts.maker != "unbind"
        or not facts.target.isidentifier()
        or _keeps(node)
    ):
        return None
    for loop in tree.ancestors(node):
        rows = _rows(loop, facts.target) if isinstance(loop, cst.For) else None
        if rows is not None:
            text, i = tree.code(rows), free_name(tree, "i", "index")
            new = expression(tree, f"({text}[{i}] for {i} in range(len({text})))")
            return Fix((Edit(rows, new),), tree.code(new))
    return None


def _keeps(node: cst.CSTNode) -> bool:
    """Whether a write saves what it writes: the write to the next row is a write to that as well."""
    if isinstance(node, cst.AugAssign):
        number = isinstance(node.value, (cst.Integer, cst.Float))
        return not number and not isinstance(node.operator, (cst.AddAssign, cst.SubtractAssign))
    call = node.value if isinstance(node, (cst.Expr, cst.Assign)) else node
    if not isinstance(call, cst.Call):
        return False
    name = last_name(call.func).rstrip("_")
    overloads = (*table.method(name), *table.function(name), *table.functional(name))
    kept = [(what, guard) for each in overloads for what, guard in each.saves]
    return any(what.startswith("result") or (what == "self" and what in guard) for what, guard in kept)


def _rows(loop: cst.For, name: str) -> cst.BaseExpression | None:
    """The tensor whose rows a loop variable runs over, alone or beside others."""
    found: cst.BaseExpression | None = None
    if isinstance(loop.target, cst.Name) and loop.target.value == name:
        found = loop.iter
    elif isinstance(loop.target, cst.Tuple) and isinstance(loop.iter, cst.Call):
        names = [getattr(element.value, "value", None) for element in loop.target.elements]
        beside = isinstance(loop.iter.func, cst.Name) and loop.iter.func.value == "zip"
        if beside and name in names and len(loop.iter.args) == len(names):
            found = loop.iter.args[names.index(name)].value
    return found if found is not None and repeatable(found) else None
