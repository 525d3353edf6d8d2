"""Builds `x = x + y` from `x += y`, with the brackets that the right side needs and no others."""

from __future__ import annotations

import libcst as cst

from gradfix.tree import children

OPERATORS: dict[type[cst.BaseAugOp], tuple[type[cst.BaseBinaryOp], int]] = {
    cst.BitOrAssign: (cst.BitOr, 1),
    cst.BitXorAssign: (cst.BitXor, 2),
    cst.BitAndAssign: (cst.BitAnd, 3),
    cst.LeftShiftAssign: (cst.LeftShift, 4),
    cst.RightShiftAssign: (cst.RightShift, 4),
    cst.AddAssign: (cst.Add, 5),
    cst.SubtractAssign: (cst.Subtract, 5),
    cst.MultiplyAssign: (cst.Multiply, 6),
    cst.DivideAssign: (cst.Divide, 6),
    cst.FloorDivideAssign: (cst.FloorDivide, 6),
    cst.ModuloAssign: (cst.Modulo, 6),
    cst.MatrixMultiplyAssign: (cst.MatrixMultiply, 6),
    cst.PowerAssign: (cst.Power, 7),
}
"""Each augmented operator's binary one, and how tightly it binds."""

STRENGTH = dict(OPERATORS.values())
AUGMENTED = {binary: augmented for augmented, (binary, _) in OPERATORS.items()}
LOOSE = (
    cst.Comparison, cst.BooleanOperation, cst.IfExp, cst.Lambda, cst.Tuple, cst.Yield, cst.NamedExpr,
)  # fmt: skip


def operation(
    node: cst.AugAssign, target: cst.BaseExpression, value: cst.BaseExpression
) -> cst.BinaryOperation:
    """`x + y`, spaced as the author spaced `x += y`."""
    binary, strength = OPERATORS[type(node.operator)]
    space = cst.SimpleWhitespace(" " if _spaced(node) else "")
    operator = binary().with_changes(whitespace_before=space, whitespace_after=space)
    right = bracketed(value) if _needs_brackets(value, strength) else value
    return cst.BinaryOperation(target.deep_clone(), operator, right)


def assignment(
    node: cst.AugAssign, target: cst.BaseAssignTargetExpression, value: cst.BaseExpression
) -> cst.Assign:
    """`x = <value>` with the spaces of `x += y`."""
    before, after = children(node.operator)
    bound = cst.AssignTarget(target).with_changes(
        whitespace_before_equal=before, whitespace_after_equal=after
    )
    return cst.Assign([bound], value)


def bracketed(node: cst.BaseExpression) -> cst.BaseExpression:
    return node.with_changes(lpar=[cst.LeftParen(), *node.lpar], rpar=[*node.rpar, cst.RightParen()])


def _spaced(node: cst.AugAssign) -> bool:
    return any(
        not isinstance(space, cst.SimpleWhitespace) or space.value for space in children(node.operator)
    )


def _needs_brackets(value: cst.BaseExpression, strength: int) -> bool:
    if value.lpar:
        return False
    if isinstance(value, cst.BinaryOperation):
        inner = STRENGTH[type(value.operator)]
        return inner < strength or (inner == strength and not isinstance(value.operator, cst.Power))
    if isinstance(value, cst.UnaryOperation):
        return isinstance(value.operator, cst.Not)
    return isinstance(value, LOOSE)
