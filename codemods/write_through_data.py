"""A write through `.data` changes what backward needs, and nothing notices.

`.data` is the same memory without its version counter: after `y = x.exp()`, `y.data.add_(1)` raises no
error, and backward computes with the changed values. The gradient is wrong.

The write goes to the tensor itself, out of place: `y = y.add(1)`. A parameter that is changed between the
forward and the backward pass is changed behind the backward pass instead. The fix is unsafe where something
else sees the write and would keep the old values: another name, or a view.

Left alone: `.data` before the forward pass (initialisation) and after backward (updates, clipping, moving
averages).
"""

from __future__ import annotations

import libcst as cst

from gradfix.defects import Defect
from gradfix.defects.written import WrittenThroughData
from gradfix.rewriting.calls import Write, keyword, written
from gradfix.rewriting.holders import can_hold, cloned, holder_of, repeatable, same
from gradfix.rewriting.late import behind_backward
from gradfix.rewriting.names import walk
from gradfix.rewriting.outofplace import NO_NAME, NOT_FOUND, assigned, heeding_aliases, says, writing
from gradfix.rewriting.statements import Draft, anchor
from gradfix.rule import Decline, Edit, Fix, Options, Rule
from gradfix.tree import Tree

BY_HAND = Decline("write to the tensor itself, or after backward")


def rewrite(defect: Defect, tree: Tree, options: Options) -> Fix | Decline:
    node = writing(defect, tree)
    if node is None:
        return NOT_FOUND
    facts = defect.told(WrittenThroughData)
    if facts.parameter:
        return behind_backward(tree, facts)
    return heeding_aliases(_on_the_tensor(defect, tree, node), defect, tree, node)


def _on_the_tensor(defect: Defect, tree: Tree, node: cst.AugAssign | cst.Assign | cst.Call) -> Fix | Decline:
    data = _data(tree, node)
    if data is None or not can_hold(tree, node, data.value):
        return NO_NAME
    if isinstance(node, cst.Call):
        return _called(tree, node, data)
    place = node.target if isinstance(node, cst.AugAssign) else node.targets[0].target
    if place is not data:
        return _into_clone(tree, node, data)
    if isinstance(node, cst.AugAssign):
        new = assigned(defect, node, data.value)  # type: ignore[arg-type]
    else:
        target = node.targets[0].with_changes(target=data.value)
        new = node.with_changes(targets=[target], value=_without_data(tree, node.value, data))
    return Fix((Edit(node, new),), says(tree, new))


def _data(tree: Tree, node: cst.AugAssign | cst.Assign | cst.Call) -> cst.Attribute | None:
    """The `y.data` that is written."""
    if isinstance(node, cst.Call):
        out = keyword(node, "out")
        place: cst.BaseExpression = out.value if out is not None else node.func
    else:
        place = node.target if isinstance(node, cst.AugAssign) else node.targets[0].target
    found = [part for part in walk(place) if isinstance(part, cst.Attribute) and part.attr.value == "data"]
    return found[0] if found and holder_of(tree, place, tree.code(found[0])) is not None else None


def _called(tree: Tree, node: cst.Call, data: cst.Attribute) -> Fix | Decline:
    write = written(tree, node, tree.code(data))
    if isinstance(write, Decline):
        return write
    statement = tree.parent(write.call)
    if write.tensor is not data or write.twin is None or not isinstance(statement, cst.Expr):
        return _into_clone(tree, node, data) if isinstance(tree.small_statement(node), cst.Expr) else BY_HAND
    return _assigned_twin(tree, write, statement, data)


def _assigned_twin(tree: Tree, write: Write, statement: cst.Expr, data: cst.Attribute) -> Fix:
    assert write.twin is not None
    value = _without_data(tree, write.twin, data)
    new = cst.Assign([cst.AssignTarget(data.value.deep_clone())], value)  # type: ignore[arg-type]
    return Fix((Edit(statement, new),), says(tree, new))


def _without_data(tree: Tree, node: cst.BaseExpression, data: cst.Attribute) -> cst.BaseExpression:
    """The expression, reading the tensor where it read the tensor's data."""
    text = tree.code(data)
    for part in list(walk(node)):
        if isinstance(part, cst.Attribute) and same(tree.code(part), text):
            changed = node.deep_replace(part, data.value.deep_clone())
            assert isinstance(changed, cst.BaseExpression)
            node = changed
    return node


def _into_clone(tree: Tree, node: cst.CSTNode, data: cst.Attribute) -> Fix | Decline:
    """`y.data[i] = v` is `y = y.clone()`, then `y[i] = v`."""
    if not repeatable(data.value):
        return NO_NAME
    clone = f"{tree.code(data.value)} = {tree.code(cloned(data.value))}"
    draft = Draft(tree)
    draft.before(anchor(tree, node), clone)
    draft.swap(data, data.value)
    return Fix(draft.edits(), clone)


RULE = Rule(
    code="GF107",
    message="`{culprit}` changes what {saver} saved, and autograd does not notice",
    sometimes_unsafe=True,
    rewrite=rewrite,
)
