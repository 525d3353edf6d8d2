"""What holds a tensor: a name, an attribute or a list element that an assignment can give a new value."""

from __future__ import annotations

import libcst as cst

from gradfix.rewriting.binary import bracketed
from gradfix.rewriting.names import assignable, walk
from gradfix.tape.effects.operations import having
from gradfix.tape.effects.table import method
from gradfix.tree import Tree

VIEWS = having("attribute") - {"data"}
OPERATIONS = (cst.BinaryOperation, cst.UnaryOperation)


def same(one: str, other: str) -> bool:
    """Whether two texts are the same expression but for their spaces."""
    return "".join(one.split()) == "".join(other.split())


def repeatable(node: cst.CSTNode) -> bool:
    """Whether an expression may be written twice: it calls nothing (but `len`) and binds nothing."""
    if isinstance(node, cst.Attribute):
        return repeatable(node.value)
    if isinstance(node, cst.Subscript):
        return repeatable(node.value) and all(_plain(part.slice) for part in node.slice)
    return isinstance(node, cst.Name)


def _plain(node: cst.CSTNode) -> bool:
    heavy = (cst.Call, cst.Await, cst.Yield, cst.NamedExpr, cst.Lambda, cst.BaseComp)
    return not any(isinstance(part, heavy) and not _length(part) for part in walk(node))


def _length(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value == "len"


def holder_of(tree: Tree, node: cst.BaseExpression, text: str) -> cst.BaseExpression | None:
    """The part of a written expression that names the holder: `x` in `x[0].t()`."""
    inner: cst.BaseExpression | None = node
    while inner is not None and not same(tree.code(inner), text):
        inner = _viewed(inner)
    return inner


def held(node: cst.BaseExpression | None) -> cst.BaseExpression | None:
    """What holds the memory of an expression: `x` for `x[:, 0]` and `x.t()`; nothing for `f(x)`."""
    while node is not None and _views(node):
        node = _viewed(node)
    return node if node is not None and repeatable(node) else None


def _views(node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.Subscript):
        return len(node.slice) > 1 or _cuts(node.slice[0].slice)
    if isinstance(node, cst.Attribute):
        return node.attr.value in VIEWS
    named = isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute)
    return named and any(effect.view for effect in method(node.func.attr.value))  # type: ignore[attr-defined]


def _cuts(index: cst.BaseSlice) -> bool:
    """Whether only a tensor takes such an index; `xs[i]` is more often an element of a list."""
    if isinstance(index, cst.Slice):
        return True
    value = index.value if isinstance(index, cst.Index) else None
    return isinstance(value, (cst.Ellipsis, cst.Tuple, cst.Comparison))


def _viewed(node: cst.BaseExpression) -> cst.BaseExpression | None:
    if isinstance(node, (cst.Subscript, cst.Attribute)):
        return node.value
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        return node.func.value
    return None


def can_hold(tree: Tree, node: cst.CSTNode, holder: cst.BaseExpression) -> bool:
    """Whether an assignment to the holder, beside `node`, is seen by all that reads the holder there."""
    for above in tree.ancestors(node):
        if isinstance(above, (cst.Lambda, cst.BaseComp)):
            return False
        if isinstance(above, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
            break
    if isinstance(holder, cst.Name):
        return assignable(tree, node, holder.value)
    return repeatable(holder)


def cloned(node: cst.BaseExpression) -> cst.Call:
    """`node.clone()`."""
    owner = bracketed(node) if isinstance(node, OPERATIONS) and not node.lpar else node
    return cst.Call(cst.Attribute(owner, cst.Name("clone")))


def free_name(tree: Tree, *names: str) -> str:
    """The first of these names that the file does not use; with an underscore if it uses all."""
    used = {node.value for node in walk(tree.module) if isinstance(node, cst.Name)}
    return next((name for name in names if name not in used), names[0] + "_")
