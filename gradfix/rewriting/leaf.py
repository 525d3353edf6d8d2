"""Takes apart the expression that makes a leaf: its value without gradients, and what is done to it after."""

from __future__ import annotations

import libcst as cst

from gradfix.rewriting.calls import keyword, last_name, without


def constant_of(factory: cst.Call) -> cst.BaseExpression:
    """The call that makes the tensor, without asking for gradients."""
    if isinstance(factory.func, cst.Attribute) and factory.func.attr.value == "requires_grad_":
        return factory.func.value
    if last_name(factory.func) == "Variable" and factory.args:
        return factory.args[0].value
    asked = keyword(factory, "requires_grad")
    return without(factory, asked) if asked is not None else factory


def parameter_last(made: cst.BaseExpression, factory: cst.Call) -> cst.BaseExpression:
    """What is done to a parameter is done to the value that it is made of."""
    first, *rest = factory.args
    inner = made.deep_replace(factory, _closed(first.value))
    assert isinstance(inner, cst.BaseExpression)
    bare = first.with_changes(value=inner.with_changes(lpar=(), rpar=()))
    return factory.with_changes(args=[bare, *rest], lpar=made.lpar, rpar=made.rpar)


def _closed(value: cst.BaseExpression) -> cst.BaseExpression:
    """A value in brackets, where something may bind tighter than what is in it."""
    if isinstance(value, (cst.Name, cst.Attribute, cst.Call, cst.Subscript)) or value.lpar:
        return value
    return value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
