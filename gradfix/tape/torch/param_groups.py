"""An optimizer's `param_groups`, and gradients that are got at in ways that don't say whose they are."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gradfix.defects.reasons import What
from gradfix.tape.domain.definitions import Instance
from gradfix.tape.domain.events import Clear, Use
from gradfix.tape.domain.graph import Tensor
from gradfix.tape.domain.torch_values import Group, Layer, Opaque, Optimizer, Weights
from gradfix.tape.domain.values import Const, Seq, Unknown
from gradfix.tape.domain.why import Why, fact
from gradfix.tape.torch.modules import leaves
from gradfix.tape.torch.weights import set_leaf

if TYPE_CHECKING:
    from gradfix.tape.domain.values import Args, Kwargs, Truth, Value
    from gradfix.tape.machine.machine import Machine

FAR = 64
"""How many values are looked through for parameters that another value may be one of."""


def param_groups(optimizer: Optimizer) -> Value:
    """`optimizer.param_groups`: the groups that it was given, where it is known which these are."""
    if optimizer.groups is None:
        held = Weights(optimizer, optimizer.leaves, False)
        return Unknown(fact("an optimizer's groups of parameters"), (held,))
    return Seq("list", list(optimizer.groups))


def store_on_optimizer(machine: Machine, owner: Optimizer, name: str, value: Value) -> None:
    """`optimizer.name = value`: a method of its own, or other groups of parameters."""
    if name != "param_groups":
        machine.trail.put(owner, owner.own, name, value)
        return
    machine.gradients.clear(owner.leaves, None, must=False)
    machine.trail.set(owner, "complete", False)
    machine.trail.set(owner, "groups", None)


def group_entry(group: Group, key: Value) -> Value:
    """`group[key]`: its parameters, or one of its settings."""
    if not isinstance(key, Const):
        return Unknown(Why(What.ELEMENT, "an entry of a group of parameters"), (group.weights,))
    return group.weights if key.value == "params" else Unknown(fact("a setting of an optimizer"))


def store_group_entry(machine: Machine, group: Group, key: Value, node: ast.AST) -> None:
    """`group[key] = value`: what it holds instead of its parameters, or beside them, isn't known."""
    machine.timeline.note("schedules", group.weights.leaves, machine.here.at(node), machine.here.path)
    if not isinstance(key, Const) or key.value == "params":
        _filled_anew(machine, group)


def _filled_anew(machine: Machine, group: Group) -> None:
    machine.gradients.clear(group.weights.leaves, None, must=False)
    machine.trail.set(group, "weights", Weights(group.weights.of, group.weights.leaves, False))
    for optimizer in machine.optimizers.known:
        if optimizer.groups is None or any(one is group for one in optimizer.groups):
            machine.trail.set(optimizer, "complete", False)


def group_method(machine: Machine, group: Group, name: str, args: Args, kwargs: Kwargs) -> Value:
    """A method of a group, which is a dict."""
    if name in ("get", "setdefault", "pop") and args:
        return group_entry(group, args[0])
    if name == "update" and (args or "params" in kwargs or "**" in kwargs):
        _filled_anew(machine, group)
    if name not in ("keys", "update"):
        machine.gradients.clear(group.weights.leaves, None, must=False)
    return Unknown(fact("what an optimizer says of a group of parameters"))


def some_gradient(machine: Machine, owner: Unknown) -> None:
    """`.grad` of what may be any of the parameters that it came from: somebody may fill or clear it."""
    came_from = [*_some_of(machine, owner)] or [one.leaves for one in machine.optimizers.known]
    for held in came_from:  # where nobody knows from where, it may be any
        machine.gradients.clear(held, None, must=False)


def some_leaf(machine: Machine, owner: Unknown, wanted: Value) -> None:
    """`.requires_grad` of the same: any of them may be told so."""
    for leaf in (leaf for held in _some_of(machine, owner) for leaf in held):
        if not isinstance(wanted, Const) or leaf.requires is not bool(wanted.value):
            set_leaf(machine, leaf, None)


def _some_of(machine: Machine, owner: Unknown) -> Iterator[list[Tensor]]:
    """The parameters that a value came from."""
    stack, seen = [*owner.holds], 0
    while stack and seen < FAR:
        value = stack.pop()
        seen += 1
        if isinstance(value, (Weights, Optimizer)):
            yield value.leaves
        elif isinstance(value, Group):
            yield value.weights.leaves
        elif isinstance(value, Tensor) and value.leaf and value.requires is not False:
            yield [value]
        elif isinstance(value, Unknown):
            stack.extend(value.holds)
        elif isinstance(value, Seq):
            stack.extend(value.items)
        elif isinstance(value, (Layer, Instance, Opaque)):
            yield leaves(machine, value)[0]
            stack.extend(value.attrs.values() if isinstance(value, Instance) else ())


def spread(machine: Machine, since: int, turns: Sequence[Value], whole: Sequence[Value]) -> None:
    """Gradients that a loop has cleared or used in its turns so may others be, for which it wasn't run."""
    if len(turns) == len(whole) or machine.gradients.last_touch < since:
        return
    rest = [turn for turn in whole if not any(turn is ran for ran in turns)]
    touched = [leaf for turn in turns for leaf in _leaves_of(machine, turn) if _handled(leaf, since)]
    if touched:
        machine.gradients.clear(
            [leaf for turn in rest for leaf in _leaves_of(machine, turn)], None, must=False
        )


def asking(machine: Machine, turns: Sequence[Value]) -> list[tuple[Tensor, Truth]]:
    """The leaves that turns of a loop are about, and whether they require grad."""
    return [(leaf, leaf.requires) for turn in turns for leaf in _leaves_of(machine, turn)]


def spread_asking(
    machine: Machine, asked: Sequence[tuple[Tensor, Truth]], whole: Sequence[Value], sure: bool
) -> None:
    """What a loop has frozen or thawed in its turns so is, or may be, what it wasn't run for."""
    now = {leaf.requires for leaf, before in asked if leaf.requires is not before}
    if not now:
        return
    ran = {id(leaf) for leaf, _ in asked}
    wanted = now.pop() if sure and len(now) == 1 else None
    place = next(((leaf.node.facts or {}).get("frozen") for leaf, _ in asked), None)
    for leaf in (leaf for turn in whole for leaf in _leaves_of(machine, turn)):
        if id(leaf) not in ran and (sure or leaf.requires is not None):
            set_leaf(machine, leaf, wanted, place)


def doubt_asked(machine: Machine, asked: Sequence[tuple[Tensor, Truth]], since: int) -> None:
    """What a loop has done to leaves of which each may not have been among those that it went through."""
    for leaf, before in asked:
        if leaf.requires is not before:
            set_leaf(machine, leaf, None, (leaf.node.facts or {}).get("frozen"))
        for event in leaf.slot.events if leaf.slot is not None else []:
            if isinstance(event, Clear) and event.number > since:
                leaf.gradient().events.append(Clear(None, machine.here.path, must=False))
                break


def _handled(leaf: Tensor, since: int) -> bool:
    events = leaf.slot.events if leaf.slot is not None else []
    return any(isinstance(event, (Clear, Use)) and event.number > since for event in events)


def _leaves_of(machine: Machine, turn: Value) -> list[Tensor]:
    """The leaves that a turn of a loop is about."""
    if isinstance(turn, Seq):
        return [leaf for item in turn.items for leaf in _leaves_of(machine, item)]
    if isinstance(turn, Tensor):
        return [turn] if turn.leaf else []
    if isinstance(turn, (Weights, Optimizer)):
        return turn.leaves
    if isinstance(turn, Group):
        return turn.weights.leaves
    return leaves(machine, turn)[0] if isinstance(turn, (Layer, Instance, Opaque)) else []


def written(machine: Machine, value: Value, node: ast.AST) -> None:
    """Something is written into a parameter that stands for a group, or into its `.data`."""
    if isinstance(value, Unknown) and value.origin == "data":
        value = value.holds[0]
    elif isinstance(value, Unknown) and value.origin != "grad":  # a buffer, of which gradients may be views
        for one in value.holds:
            if isinstance(one, Weights):
                machine.gradients.clear(one.leaves, None, must=False)
    if isinstance(value, Weights):
        held = [*value.leaves, *([value.of] if isinstance(value.of, Opaque) else [])]
        machine.timeline.note("writes", held, machine.here.at(node), machine.here.path)
