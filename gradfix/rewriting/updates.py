"""Updates of leaves by hand: what they look like, and how `w = w - step` is said in place."""

from __future__ import annotations

import libcst as cst

from gradfix.rewriting.binary import AUGMENTED, STRENGTH
from gradfix.rewriting.holders import repeatable, same
from gradfix.rewriting.names import reads, walk
from gradfix.tree import Tree


def mentions_grad(node: cst.CSTNode) -> bool:
    """Whether some `.grad` is read or written in it."""
    return any(isinstance(part, cst.Attribute) and part.attr.value == "grad" for part in walk(node))


def updates_by_hand(small: cst.CSTNode) -> bool:
    """`w -= lr * w.grad` or `w.sub_(lr * w.grad)`: in place, by a gradient, and not of one."""
    if isinstance(small, cst.AugAssign):
        return mentions_grad(small.value) and not mentions_grad(small.target)
    call = small.value if isinstance(small, cst.Expr) else None
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
        return False
    in_place = call.func.attr.value.endswith("_") and not mentions_grad(call.func)
    return in_place and any(mentions_grad(arg) for arg in call.args)


def rebinds_by_hand(small: cst.Assign) -> bool:
    """`w = w - lr * w.grad`: from itself and a gradient."""
    targets = [each.target for each in small.targets]
    from_itself = all(set(reads(target)) <= set(reads(small.value)) for target in targets)
    return from_itself and mentions_grad(small.value) and not any(map(mentions_grad, targets))


def in_place_updates(tree: Tree, node: cst.Assign) -> list[cst.BaseSmallStatement] | None:
    """`w -= step` from `w = w - step`, one for each target."""
    if len(node.targets) != 1:
        return None
    target = node.targets[0].target
    if not isinstance(target, cst.Tuple):
        return [_update(tree, target, node.value)] if repeatable(target) else None
    if not isinstance(node.value, cst.Tuple) or len(node.value.elements) != len(target.elements):
        return None
    pairs = [(t.value, v.value) for t, v in zip(target.elements, node.value.elements, strict=True)]
    if not all(repeatable(place) for place, _ in pairs) or _crossed(tree, pairs):
        return None
    return [_update(tree, place, value) for place, value in pairs]


def _crossed(tree: Tree, pairs: list[tuple[cst.BaseExpression, cst.BaseExpression]]) -> bool:
    """Whether a later value reads what an earlier update has changed."""
    return any(
        set(reads(place)) & set(reads(value))
        for number, (place, _) in enumerate(pairs)
        for _, value in pairs[number + 1 :]
    )


def _update(tree: Tree, target: cst.BaseExpression, value: cst.BaseExpression) -> cst.BaseSmallStatement:
    if isinstance(value, cst.BinaryOperation) and _is(tree, value.left, target):
        augmented = AUGMENTED[type(value.operator)]
        return cst.AugAssign(target.deep_clone(), augmented(), _bare(value.right))  # type: ignore[arg-type]
    plain = value.with_changes(lpar=(), rpar=())
    return cst.Expr(cst.Call(cst.Attribute(target.deep_clone(), cst.Name("copy_")), [cst.Arg(plain)]))


def _is(tree: Tree, node: cst.BaseExpression, target: cst.BaseExpression) -> bool:
    """`w`, `w.data` or `w.detach()`."""
    text = tree.code(node).removesuffix(".data").removesuffix(".detach()")
    return same(text, tree.code(target))


def _bare(node: cst.BaseExpression) -> cst.BaseExpression:
    """Without the brackets that only kept a sum together."""
    held = len(node.lpar) == 1 and isinstance(node.lpar[0].whitespace_after, cst.SimpleWhitespace)
    arithmetic = isinstance(node, cst.BinaryOperation) and type(node.operator) in STRENGTH
    return node.with_changes(lpar=(), rpar=()) if held and arithmetic else node
