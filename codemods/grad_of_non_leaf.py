"""A tensor whose gradient is read or optimised is the result of an operation.

What breaks: backward keeps gradients in leaves. `torch.randn(3, requires_grad=True) * 0.1` is not the leaf
but a result of it, and so is `torch.zeros(3, requires_grad=True).cuda()`: their `.grad` stays None, and an
optimizer refuses them ("can't optimize a non-leaf Tensor").

Rewrite: where the leaf is made in the same expression, it is made last: `(torch.randn(3) *
0.1).requires_grad_()`, `nn.Parameter(torch.randn(3).cuda())`. For the result of other operations
`retain_grad()` is called after it; one that is optimised becomes a leaf, `.detach().requires_grad_()`.

Left alone: tensors that call `retain_grad()`, and leaves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from gradfix.defects import Span
from gradfix.defects.records import NonLeaf
from gradfix.rewriting.calls import last_name
from gradfix.rewriting.leaf import constant_of, parameter_last
from gradfix.rewriting.seats import dotted, put, shown, targets
from gradfix.rewriting.uncut import on
from gradfix.rule import Decline, Edit, Fix, Options, Rule

if TYPE_CHECKING:
    from gradfix.defects import Defect
    from gradfix.tree import Tree


def rewrite(defect: Defect, tree: Tree, options: Options) -> Fix | Decline:
    """Make the leaf last, or keep the gradient of the result."""
    made = tree.at(defect.culprit, cst.BaseExpression)
    if made is None:
        return Decline("call retain_grad() on this tensor before backward()")
    facts = defect.told(NonLeaf)
    inner = facts.factory
    factory = tree.at(inner, cst.Call) if isinstance(inner, Span) else None
    if factory is not None and factory is not made:
        edits = put(tree, {made: _leaf_last(made, factory)})
        return Fix(edits, shown(tree, edits))
    if facts.optimised:
        edits = put(tree, {made: _own_leaf(made)})
        return Fix(edits, shown(tree, edits))
    return _retained(tree, made, facts.target)


def _own_leaf(made: cst.BaseExpression) -> cst.BaseExpression:
    for name in ("detach", "requires_grad_"):
        made = on(cst.Attribute(made, cst.Name(name)), made)
    return made


def _leaf_last(made: cst.BaseExpression, factory: cst.Call) -> cst.BaseExpression:
    if last_name(factory.func) == "Parameter" and factory.args:
        return parameter_last(made, factory)
    constant = made.deep_replace(factory, constant_of(factory))
    assert isinstance(constant, cst.BaseExpression)
    dot = cst.Dot()
    if isinstance(made, cst.Call) and isinstance(made.func, cst.Attribute):
        dot, constant = made.func.dot, constant.with_changes(lpar=(), rpar=())
    elif made.lpar:
        return on(cst.Attribute(constant, cst.Name("requires_grad_")), constant)
    return on(cst.Attribute(constant, cst.Name("requires_grad_"), dot), constant).with_changes(
        lpar=made.lpar, rpar=made.rpar
    )


def _retained(tree: Tree, made: cst.BaseExpression, target: str) -> Fix | Decline:
    small = tree.small_statement(made)
    name = target or next(iter(targets(small)), "")
    if not name or not isinstance(small, cst.Assign) or name not in _assigned(small):
        return Decline(f"call retain_grad() on {name or 'this tensor'} before backward()")
    call = cst.Expr(cst.parse_expression(f"{name}.retain_grad()"))
    line = tree.parent(small)
    if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1:
        added = cst.FlattenSentinel([line, cst.SimpleStatementLine([call])])
        return Fix((Edit(line, added),), f"{name}.retain_grad()")
    before = small.with_changes(semicolon=cst.Semicolon(whitespace_after=cst.SimpleWhitespace(" ")))
    after = call.with_changes(semicolon=small.semicolon)
    return Fix((Edit(small, cst.FlattenSentinel([before, after])),), f"{name}.retain_grad()")


def _assigned(small: cst.Assign) -> set[str]:
    found = set()
    for each in small.targets:
        parts = each.target.elements if isinstance(each.target, cst.Tuple) else [each]
        found |= {dotted(getattr(part, "value", None) or each.target) for part in parts}
    return found


RULE = Rule(
    code="GF209",
    message="{read} is no leaf but the result of `{culprit}`, so it keeps no gradient",
    rewrite=rewrite,
)
