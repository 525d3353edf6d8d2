"""Tells a backward which parameters it is for: those of the optimizer that steps after it."""

from __future__ import annotations

from collections.abc import Container

import libcst as cst

from gradfix.defects import Span
from gradfix.rewriting import shapes as m
from gradfix.rewriting.arguments import keyword
from gradfix.rewriting.order import calls_of, stands_alone
from gradfix.rewriting.statements import anchor, between, expression, with_argument
from gradfix.rule import Edit, Fix
from gradfix.tree import Tree


def aimed(
    tree: Tree, later: cst.Call, optimizer: str, spared: Container[str], frozen: Container[str]
) -> Fix | None:
    """The later backward told which parameters it is for, where that spares it what is broken."""
    if not optimizer or optimizer not in spared:
        return None
    inputs = inputs_of(tree, later, optimizer, frozen)
    if not inputs or keyword(later, "inputs") is not None:
        return None
    new = with_argument(later, "inputs", inputs)
    return Fix((Edit(later, new),), tree.code(new))


def call_at(tree: Tree, place: Span | None) -> cst.Call | None:
    return tree.at(place, cst.Call) if place is not None else None


def later_step(tree: Tree, later: cst.Call) -> cst.Call | None:
    """The later backward's own step: the next in the same body, unless it steps along what came since."""
    cleared: set[str] = set()
    for place in between(tree, anchor(tree, later), None):
        alone = [call for call in calls_of(place, "step") if stands_alone(place, call)]
        if alone:
            return alone[0] if stepped(tree, alone[0]) not in cleared else None
        cleared |= {stepped(tree, call) for call in calls_of(place, "zero_grad")}
    return None


def stepped(tree: Tree, call: cst.Call | None) -> str:
    """The optimizer of a step: `opt` of `opt.step()` and of `scaler.step(opt)`."""
    if call is None or not isinstance(call.func, cst.Attribute):
        return ""
    return tree.code(call.args[0].value if call.args else call.func.value)


def inputs_of(tree: Tree, later: cst.Call, optimizer: str, frozen: Container[str]) -> str:
    """The parameters that the later backward is for, as an expression that can be read where it stands.

    torch takes none that needs no gradient: where some are `frozen` they are left out.
    """
    thawed = " if p.requires_grad" if optimizer in frozen else ""
    given, built = _held(tree, optimizer)
    text = tree.code(given) if given is not None else ""
    value = expression(tree, text) if text else None
    if value is not None and not isinstance(value, cst.Name) and not m.findall(value, m.Dict()):
        seen = built is None or tree.function(built) in (None, tree.function(later)) or _on_self(value)
        listed = isinstance(value, cst.List) or m.matches(value, m.Call(func=m.Name("list")))
        if seen:
            return f"[p for p in {text}{thawed}]" if thawed else text if listed else f"list({text})"
    return f'[p for group in {optimizer}.param_groups for p in group["params"]{thawed}]' if optimizer else ""


def _on_self(value: cst.BaseExpression) -> bool:
    """Whether all parameters are those of attributes of `self`, which every method has."""
    calls = calls_of(value, "parameters")
    owners = [_root(call.func) for call in calls if isinstance(call.func, cst.Attribute)]
    return bool(owners) and all(owner == "self" for owner in owners)


def _root(node: cst.BaseExpression) -> str:
    """The name that a chain of attributes and subscripts begins with, if it goes on after that."""
    inner = cst.ensure_type(node, cst.Attribute).value
    deep = isinstance(inner, (cst.Attribute, cst.Subscript))
    while isinstance(inner, (cst.Attribute, cst.Subscript)):
        inner = inner.value
    return inner.value if deep and isinstance(inner, cst.Name) else ""


def _held(tree: Tree, optimizer: str) -> tuple[cst.BaseExpression | None, cst.CSTNode | None]:
    """What an optimizer was given when it was built, and where that was."""
    found: list[tuple[cst.BaseExpression, cst.CSTNode]] = []
    for node in m.findall(tree.module, m.Assign()):
        if isinstance(node, cst.Assign) and len(node.targets) == 1:
            built = _built(tree, node.targets[0].target, node.value, optimizer)
            found += [(built.args[0].value, node)] if built is not None and built.args else []
    return found[0] if len(found) == 1 else (None, None)


def _built(tree: Tree, target: cst.CSTNode, value: cst.CSTNode, name: str) -> cst.Call | None:
    """The call whose result a name is assigned, inside `a, b = f(), g()` too."""
    if (
        isinstance(target, cst.Tuple)
        and isinstance(value, cst.Tuple)
        and len(target.elements) == len(value.elements)
    ):
        pairs = zip(target.elements, value.elements, strict=True)
        return next(
            (call for t, v in pairs if (call := _built(tree, t.value, v.value, name)) is not None), None
        )
    return value if isinstance(value, cst.Call) and tree.code(target) == name else None
