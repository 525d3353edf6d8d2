"""What to make a loss of instead of an operation without a gradient, in the names of the case at hand."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from gradfix.rewriting import shapes as m
from gradfix.rewriting.calls import keyword, last_name
from gradfix.rewriting.names import walk
from gradfix.tape.effects.operations import told
from gradfix.tree import Tree

PICKS = {"argmax": "", "argmin": "-"}
"""What names the place of the best score, and the sign that makes the best one the largest."""
PAIRS = {"max": "", "min": "-", "topk": ""}
"""The same, as the second of two results."""
ALIKE = {"eq", "ne"}
FAMILIES = told("surrogate")
"""What sort of operation without a gradient each one is."""
LONGEST = 40


def advice(tree: Tree, node: cst.CSTNode | None, family: str) -> str:
    """What to do about an operation, where its source says enough; nothing where it doesn't."""
    said = {"comparison": _compared, "index": _indexed, "rounding": _rounded, "cast": _cast}.get(family)
    text = said(tree, node) if said is not None and isinstance(node, cst.BaseExpression) else ""
    return text if text.count("\n") == 0 else ""


def advice_at(tree: Tree, node: cst.CSTNode | None) -> str:
    """The same for what stands at a place; nothing where that is no operation without a gradient."""
    family = FAMILIES.get(last_name(node.func), "") if isinstance(node, cst.Call) else ""
    return advice(tree, node, "comparison" if isinstance(node, cst.Comparison) else family)


def _compared(tree: Tree, node: cst.BaseExpression) -> str:
    sides = _sides(tree, node)
    if sides is None:
        return ""
    left, sign, right = sides
    if sign in ("==", "!="):
        found = ((_scores(tree, one), other) for one, other in ((left, right), (right, left)))
        return next((_accuracy(tree, scores, other) for scores, other in found if scores), "")
    high, low = (left, right) if sign.startswith(">") else (right, left)
    if not _short(tree, high, low):
        return ""
    lower = tree.code(low) if isinstance(low, (cst.Name, cst.Integer, cst.Float)) else f"({tree.code(low)})"
    return (
        f"replace the comparison by a smooth one: torch.sigmoid(({tree.code(high)} - {lower}) / temperature)"
    )


def _accuracy(tree: Tree, scores: str, target: cst.BaseExpression) -> str:
    return (
        "an accuracy only measures: let the loss be "
        f"torch.nn.functional.cross_entropy({scores}, {tree.code(target)})"
    )


def _sides(tree: Tree, node: cst.BaseExpression) -> tuple[cst.BaseExpression, str, cst.BaseExpression] | None:
    """Both sides of a comparison, however it is written."""
    if isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
        one = node.comparisons[0]
        signs = {cst.Equal: "==", cst.NotEqual: "!=", cst.GreaterThan: ">", cst.LessThan: "<",
                 cst.GreaterThanEqual: ">=", cst.LessThanEqual: "<="}  # fmt: skip
        sign = signs.get(type(one.operator))
        return (node.left, sign, one.comparator) if sign else None
    given = operands(tree, node) if isinstance(node, cst.Call) and last_name(node.func) in ALIKE else []
    return (given[0], "==", given[1]) if len(given) == 2 else None


def operands(tree: Tree, call: cst.Call) -> list[cst.BaseExpression]:
    """What a function or a method of torch is given, the tensor first."""
    given = [arg.value for arg in call.args if arg.keyword is None and not arg.star]
    if not isinstance(call.func, cst.Attribute) or tree.code(call.func.value) == tree.torch:
        return given
    return [call.func.value, *given]


def writes(call: cst.Call) -> bool:
    """Whether a call puts its result where something else was."""
    return last_name(call.func).endswith("_") or keyword(call, "out") is not None


def _scores(tree: Tree, node: cst.BaseExpression) -> str:
    """The scores of which a value names the best, as it is written here or where its name was bound."""
    if isinstance(node, cst.Call) and (name := last_name(node.func)) in PICKS:
        given = operands(tree, node)
        return PICKS[name] + tree.code(given[0]) if given and _short(tree, given[0]) else ""
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and not node.args:
        return _scores(tree, node.func.value)  # `.view(-1)` has arguments; `.float()`, `.long()` have none
    if not isinstance(node, cst.Name):
        return ""
    found = set(_bound(tree, node))
    return found.pop() if len(found) == 1 else ""


def _bound(tree: Tree, name: cst.Name) -> Iterator[str]:
    """What the function around a name binds it to, as scores; what has none gives nothing."""
    for part in walk(tree.function(name) or tree.module):
        if not isinstance(part, cst.Assign) or len(part.targets) != 1:
            continue
        target, value = part.targets[0].target, part.value
        if m.matches(target, m.Name(name.value)):
            yield _scores(tree, value) if not m.matches(value, m.Name(name.value)) else ""
        elif isinstance(target, cst.Tuple) and len(target.elements) == 2 and isinstance(value, cst.Call):
            second, given = target.elements[1].value, operands(tree, value)
            sign = PAIRS.get(last_name(value.func))
            if m.matches(second, m.Name(name.value)) and sign is not None and given:
                yield sign + tree.code(given[0])


def _indexed(tree: Tree, node: cst.BaseExpression) -> str:
    scores = _scores(tree, node)
    around = tree.parent(node)
    against = isinstance(around, cst.BinaryOperation) and isinstance(around.operator, cst.Subtract)
    other = around.right if against and isinstance(around, cst.BinaryOperation) else None
    target = tree.code(other) if other is not None and other is not node and _short(tree, other) else "target"
    return (
        f"take the loss from the scores themselves: torch.nn.functional.cross_entropy({scores}, {target}); "
        f"where an index has to be chosen, torch.nn.functional.gumbel_softmax({scores}, hard=True)"
        if scores
        else ""
    )


def _rounded(tree: Tree, node: cst.BaseExpression) -> str:
    given = operands(tree, node) if isinstance(node, cst.Call) and not writes(node) else []
    if len(given) != 1 or not _short(tree, given[0]) or not _plain(given[0]):
        return ""
    text = tree.code(given[0])
    if isinstance(given[0], cst.Call) and isinstance(node, cst.Call):
        once = tree.code(node.deep_replace(given[0], cst.Name("x")))
        return f"round with a straight-through estimator: with x = {text}, x + ({once} - x).detach()"
    return f"round with a straight-through estimator: {text} + ({tree.code(node)} - {text}).detach()"


def _cast(tree: Tree, node: cst.BaseExpression) -> str:
    given = operands(tree, node) if isinstance(node, cst.Call) else []
    if not given or not _short(tree, given[0]):
        return ""
    return f"compute the loss from `{tree.code(given[0])}`, before the cast to integers"


def _plain(node: cst.BaseExpression) -> bool:
    """Whether an expression binds as tightly as a name."""
    return isinstance(node, (cst.Name, cst.Attribute, cst.Subscript, cst.Call)) or bool(node.lpar)


def _short(tree: Tree, *nodes: cst.BaseExpression) -> bool:
    return all(len(tree.code(node)) <= LONGEST for node in nodes)
