"""Where a tensor is read as one number: what fails on several elements, or shows them where one was meant."""

from __future__ import annotations

import re

import libcst as cst

from gradfix.rewriting import shapes as m
from gradfix.rewriting.calls import last_name
from gradfix.rewriting.names import walk
from gradfix.rewriting.statements import anchor, between
from gradfix.tape.effects.operations import having
from gradfix.tree import Tree

SAME = having("moves") | having("detaches") | {"clone"}
"""Methods whose result has the same elements."""
TAKES = frozenset({"float", "int", "add_scalar"})
"""What takes one number only."""
COUNTS = frozenset({"len", "size", "numel"})
"""What says how many there are of something."""
SHOWS = frozenset({"print", "str", "repr", "format"})
"""What shows whatever it gets."""
CONVERSION = re.compile(r"%[-+ #0]*[\d*]*(?:\.[\d*]+)?([a-zA-Z])")
SPECIFIED = re.compile(r"\{[^{}]*:[^{}]+\}")
FIRST = [m.SubscriptElement(m.Index(m.Integer("0")))]


def read_as_one(tree: Tree, scope: cst.CSTNode, name: str, shown: bool = False) -> bool:
    """Whether code reads the tensor of a name so; where `shown`, what would show all of it counts too."""
    names = (one for one in m.findall(scope, m.Name(name)) if _is_variable(tree, one))
    return any(_reads_one(tree, _bare(tree, one), shown) for one in names)


def indexed(tree: Tree, made: cst.CSTNode, name: str) -> list[cst.Subscript]:
    """The `loss.data[0]` of old code behind the making of a loss: one number has no first element."""
    data = m.Subscript(m.Attribute(m.Name(name), m.Name("data")), FIRST)
    behind = between(tree, anchor(tree, made), None)
    return [one for place in behind for one in m.findall(place, data) if isinstance(one, cst.Subscript)]


def _is_variable(tree: Tree, name: cst.CSTNode) -> bool:
    above = tree.parent(name)
    attribute = isinstance(above, cst.Attribute) and above.attr is name
    return not attribute and not (isinstance(above, cst.Arg) and above.keyword is name)


def _bare(tree: Tree, node: cst.CSTNode) -> cst.CSTNode:
    """The outermost expression with the same elements: `loss.detach().cpu()` of `loss`."""
    above = tree.parent(node)
    while isinstance(above, cst.Attribute) and above.value is node:
        call = tree.parent(above)
        if above.attr.value == "data":
            node = above
        elif above.attr.value in SAME and isinstance(call, cst.Call) and call.func is above:
            node = call
        else:
            break
        above = tree.parent(node)
    return node


def _reads_one(tree: Tree, node: cst.CSTNode, shown: bool) -> bool:
    above = tree.parent(node)
    if isinstance(above, cst.Attribute):
        return above.attr.value == "item"
    if isinstance(above, cst.Subscript):
        return isinstance(node, cst.Attribute) and m.matches(above.slice, FIRST)
    if isinstance(above, cst.FormattedStringExpression):
        return shown or bool(above.format_spec)
    if isinstance(above, (cst.AugAssign, cst.BinaryOperation)) and _added_up(tree, node):
        return True
    if isinstance(above, cst.Arg):
        call = tree.parent(above)
        return isinstance(call, cst.Call) and _takes_one(call, shown)
    return _formatted(tree, node, shown)


def _added_up(tree: Tree, node: cst.CSTNode) -> bool:
    """Whether it is added, or so many times it, to a total that begins as a number."""
    above = tree.parent(node)
    while isinstance(above, cst.BinaryOperation) and isinstance(above.operator, (cst.Multiply, cst.Divide)):
        if not _is_count(above.left if above.right is node else above.right):
            return False
        node = _bare(tree, above)
        above = tree.parent(node)
    if not isinstance(above, cst.AugAssign) or not isinstance(above.operator, cst.AddAssign):
        return False
    scope = tree.function(above) or tree.module
    return any(
        tree.code(name) == tree.code(above.target) and isinstance(value, (cst.Integer, cst.Float))
        for one in walk(scope)
        if isinstance(one, cst.Assign)
        for name, value in _pairs(one)
    )


def _is_count(node: cst.CSTNode) -> bool:
    """Whether a factor is surely one number: written out, or how many there are of something."""
    if isinstance(node, cst.Call):
        return last_name(node.func) in COUNTS
    counted = isinstance(node, cst.Subscript) and m.matches(node.value, m.Attribute(attr=m.Name("shape")))
    return counted or isinstance(node, (cst.Integer, cst.Float))


def _pairs(statement: cst.Assign) -> list[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """What an assignment binds, each to its own."""
    target, value = statement.targets[0].target, statement.value
    if isinstance(target, cst.Tuple) and isinstance(value, cst.Tuple):
        return [(a.value, b.value) for a, b in zip(target.elements, value.elements, strict=False)]
    return [(target, value)]


def _takes_one(call: cst.Call, shown: bool) -> bool:
    """Whether a function takes one number, or shows what it is given."""
    name = last_name(call.func)
    if isinstance(call.func, cst.Attribute) and isinstance(call.func.value, cst.SimpleString):
        return name == "format" and (shown or SPECIFIED.search(call.func.value.value) is not None)
    return name in TAKES or (shown and name in SHOWS and isinstance(call.func, cst.Name))


def _formatted(tree: Tree, node: cst.CSTNode, shown: bool) -> bool:
    """Whether an operand of `"..." % (...)` is shown there, or has to be a number."""
    above, place = tree.parent(node), 0
    if isinstance(above, cst.Element):
        row = tree.parent(above)
        place = row.elements.index(above) if isinstance(row, cst.Tuple) else 0
        node, above = row, tree.parent(row)
    if not m.matches(above, m.BinaryOperation(left=m.SimpleString(), operator=m.Modulo(), right=node)):
        return False
    assert isinstance(above, cst.BinaryOperation)
    kinds = CONVERSION.findall(cst.ensure_type(above.left, cst.SimpleString).value.replace("%%", ""))
    return shown or (place < len(kinds) and kinds[place] not in "sra")
