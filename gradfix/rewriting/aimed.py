"""Tells a backward which parameters it is for: those of the optimizers that step after it."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence

import libcst as cst

from gradfix.defects import Span
from gradfix.defects.ordered import EarlyStep
from gradfix.defects.records import Freed
from gradfix.rewriting import shapes as m
from gradfix.rewriting.arguments import keyword
from gradfix.rewriting.order import calls_of, stands_alone
from gradfix.rewriting.statements import anchor, between, expression, path, with_argument
from gradfix.rule import Edit, Fix
from gradfix.tree import Tree

STEPS, CLEARS = m.Name("step"), m.Name("zero_grad")


def aimed(
    tree: Tree, later: cst.Call, optimizers: Sequence[str], spared: Container[str], frozen: Container[str]
) -> Fix | None:
    """The later backward told which parameters it is for, where that spares it what is broken."""
    if any(optimizer not in spared for optimizer in optimizers):
        return None
    inputs = inputs_of(tree, later, optimizers, frozen)
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
        cleared |= {name for _, name in _of_optimizers(tree, calls_of(place, "zero_grad"))}
    return None


def later_steps(tree: Tree, later: cst.Call, facts: EarlyStep | Freed) -> list[str]:
    """The optimizers that step what a later backward fills, its own first; none where these aren't known."""
    own = stepped(tree, later_step(tree, later))
    found, cleared = [own] if own else [], set[str]()
    after = [place for here in path(tree, later) for place in between(tree, here, None)]
    for call, name in _of_optimizers(tree, _behind(tree, later)):
        alone = anchor(tree, call) in after and stands_alone(anchor(tree, call), call)
        if _clears(call):
            cleared |= {name} if alone else set()
        elif name not in cleared and name not in found and _fed(name, facts):
            if not alone or name not in facts.perhaps:
                return []
            found.append(name)
    others = {*(facts.reached or ())} - {*found, *cleared, ""}
    return [] if any(not _steps_before(tree, later, name) for name in others) else found


def steps_again(tree: Tree, later: cst.Call, optimizer: str) -> bool:
    """Whether an optimizer steps behind a backward, in its function."""
    found = _of_optimizers(tree, _behind(tree, later))
    return any(name == optimizer and not _clears(call) for call, name in found)


def _fed(name: str, facts: EarlyStep | Freed) -> bool:
    """Whether a backward fills what is stepped, or may."""
    return facts.reached is None or name in facts.perhaps or "" in facts.reached


def _behind(tree: Tree, later: cst.Call) -> list[cst.Call]:
    """The steps and clearings behind a backward in its function."""
    function = tree.function(later)
    found = m.findall(function or tree.module, m.Call(func=m.Attribute(attr=STEPS | CLEARS)))
    inside = [call for call in found if isinstance(call, cst.Call) and tree.function(call) is function]
    return [call for call in inside if tree.span(call) > tree.span(later)]


def _steps_before(tree: Tree, later: cst.Call, name: str) -> bool:
    """Whether all steps of an optimizer stand before a backward in its function, or behind a clearing of
    their own in another one."""
    function, before = tree.function(later), False
    cleared: set[cst.CSTNode | None] = set()
    found = m.findall(tree.module, m.Call(func=m.Attribute(attr=STEPS | CLEARS)))
    calls = [call for call in found if isinstance(call, cst.Call)]
    for call, each in _of_optimizers(tree, calls):
        if each != name:
            continue
        if _clears(call):
            cleared.add(tree.function(call))
        elif tree.function(call) is function:
            before = before or tree.span(call) < tree.span(later)
        elif tree.function(call) not in cleared:
            return False
    return before


def _of_optimizers(tree: Tree, calls: Iterable[cst.Call]) -> Iterator[tuple[cst.Call, str]]:
    """Steps and clearings with their optimizers."""
    for call in calls:
        if isinstance(call.func, cst.Attribute):
            yield call, tree.code(call.func.value) if _clears(call) else stepped(tree, call)


def _clears(call: cst.Call) -> bool:
    return m.matches(call.func, m.Attribute(attr=CLEARS))


def stepped(tree: Tree, call: cst.Call | None) -> str:
    """The optimizer of a step: `opt` of `opt.step()` and of `scaler.step(opt)`."""
    if call is None or not isinstance(call.func, cst.Attribute):
        return ""
    return tree.code(call.args[0].value if call.args else call.func.value)


def inputs_of(tree: Tree, later: cst.Call, optimizers: Sequence[str], frozen: Container[str]) -> str:
    """The parameters that the later backward is for, as an expression that can be read where it stands.

    torch takes none that needs no gradient: where some are `frozen` they are left out.
    """
    return " + ".join(_inputs(tree, later, optimizer, frozen) for optimizer in optimizers)


def _inputs(tree: Tree, later: cst.Call, optimizer: str, frozen: Container[str]) -> str:
    thawed = " if p.requires_grad" if optimizer in frozen else ""
    given, built = _held(tree, optimizer)
    text = tree.code(given) if given is not None else ""
    value = expression(tree, text) if text else None
    if value is not None and not isinstance(value, cst.Name) and not m.findall(value, m.Dict()):
        seen = built is None or tree.function(built) in (None, tree.function(later)) or _on_self(value)
        listed = isinstance(value, cst.List) or m.matches(value, m.Call(func=m.Name("list")))
        if seen:
            return f"[p for p in {text}{thawed}]" if thawed else text if listed else f"list({text})"
    return f'[p for group in {optimizer}.param_groups for p in group["params"]{thawed}]'


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
