"""What a package was handed for good: its later functions, and the methods of its objects, may use it."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from gradfix.defects import Assumption, Gap
from gradfix.defects.reasons import What
from gradfix.tape.domain.definitions import Bound, Function, Instance, Method, Partial
from gradfix.tape.domain.graph import Number, Tensor
from gradfix.tape.domain.torch_values import Layer, Opaque, Optimizer, Weights
from gradfix.tape.domain.values import Alt, Const, External, Seq, Unknown
from gradfix.tape.domain.why import Why, fact
from gradfix.tape.interpreter.inside import all_in
from gradfix.tape.machine.account import newest_call
from gradfix.tape.strangers.filled import functions_in, held
from gradfix.tape.strangers.handed_out import hand_out, let_gradients_go, may_take_out, may_thaw
from gradfix.tape.torch.modules import leaves
from gradfix.tape.torch.weights import doubt_leaf

if TYPE_CHECKING:
    from gradfix.tape.domain.trail import Trail
    from gradfix.tape.domain.values import Value
    from gradfix.tape.interpreter.state import Strangers

KEPT = (Optimizer, Weights, Layer, Opaque, Instance, Function, Bound, Partial, Method)
"""What makes a difference to gradients, or may."""
THAWING = frozenset({"requires_grad", "requires_grad_"})
PLAINLY = frozenset({Const, Tensor, Alt, Number})
"""What an attribute may be that another value takes the place of unseen."""
FEW = 8
"""How far is looked for what something was found on."""
MANY = 256
"""How much is used again at one call."""


def keep(strangers: Strangers, keeper: Value, given: Sequence[Value]) -> None:
    """Something is handed over that isn't part of a result: who has it may keep it."""
    inside = [one for value in given for one in (value.items if isinstance(value, Seq) else [value])]
    handed = {id(one): one for one in inside if isinstance(one, KEPT)}
    for mark in _keepers(keeper) if handed else ():
        strangers.kept.setdefault(mark, {}).update(handed)


def kept(strangers: Strangers, callee: Value) -> list[Value]:
    """What the package of a function that is called was handed before."""
    if not strangers.kept:
        return []
    found = {mark: one for key in _keepers(callee) for mark, one in strangers.kept.get(key, {}).items()}
    return [*found.values()][:MANY]


def may_freeze(strangers: Strangers, values: Sequence[Value]) -> None:
    """Code that isn't known is called for what it does to a module: it may have frozen it."""
    machine = strangers.machine
    gap = Gap(Assumption.SET_OTHERWISE, machine.reports.findings.reason(newest_call(strangers.timeline)))
    for value in values:
        own = value.leaves if isinstance(value, Weights) else leaves(machine, value)[0]
        for leaf in own:
            if leaf.requires is True and leaf.parameter:
                doubt_leaf(machine, leaf, gap)


def use_again(strangers: Strangers, values: Sequence[Value]) -> None:
    """Code that isn't known uses what it was handed before."""
    let_gradients_go(strangers.machine, values)
    may_take_out(strangers.trail, values)
    for value in values:
        hand_out(strangers, value)
        may_thaw(strangers.machine, value)
        for function, receiver in functions_in(strangers, value):
            _may_have_run(strangers, function, receiver)


def may_set_any(trail: Trail, owner: Value) -> None:
    """Any attribute of an object may have been given another value; modules stay what they are."""
    if isinstance(owner, Instance):
        for name in {*owner.attrs, *(name for cls in owner.cls.order for name in cls.attrs)}:
            held = owner.attrs.get(name) or owner.cls.lookup(name)
            if type(held) in PLAINLY:
                unknown = Unknown(Why(What.ATTRIBUTE, f"`{name}` of an object"), (held,) if held else ())
                trail.put(owner, owner.attrs, name, unknown)


def _may_have_run(strangers: Strangers, function: Function, receiver: Value | None) -> None:
    """What a function sets may be another by now, where somebody has called it."""
    inside = all_in(function.code.node)
    outer = {name for one in inside if isinstance(one, (ast.Global, ast.Nonlocal)) for name in one.names}
    for scope in function.scope.outward():
        for name in outer & scope.names.keys():
            strangers.trail.put(scope, scope.names, name, _another(scope.names[name]))
    for one in inside:
        if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store):
            owner = receiver if function.code.is_first(one.value) else held(function, one.value)
            if isinstance(owner, Instance) and one.attr in owner.attrs:
                strangers.trail.put(owner, owner.attrs, one.attr, _another(owner.attrs[one.attr]))
    if any(isinstance(one, ast.Attribute) and one.attr in THAWING for one in inside):
        names = {one.id for one in inside if isinstance(one, ast.Name)}
        for scope in function.scope.outward():
            for value in strangers.names.these(scope, names):
                may_thaw(strangers.machine, value)


def _another(before: Value) -> Unknown:
    found = Unknown(fact("what a function sets that others may call"), (before,))
    found.part = True
    return found


def _keepers(value: Value) -> list[Hashable]:
    """The package that a function, an object or a class comes from; where that isn't known, what it was found
    on or made by."""
    path = value.path if isinstance(value, External) else getattr(value, "origin", "")
    if package := path.partition(".")[0]:
        return [package]
    found: list[Hashable] = []
    stack = [value]
    while stack and len(found) < FEW:
        one = stack.pop()
        if isinstance(one, Unknown):
            found.append(id(one))
            stack.extend(one.holds)
    return found
