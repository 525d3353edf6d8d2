"""What modules have in common, known or not: their parts and parameters, their training mode, freezing."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradfix.defects import Convention
from gradfix.defects.reasons import What
from gradfix.tape.domain.definitions import Instance
from gradfix.tape.domain.graph import Tensor
from gradfix.tape.domain.torch_values import Layer, Opaque, Weights
from gradfix.tape.domain.values import Alt, Const, Unknown
from gradfix.tape.domain.why import Why
from gradfix.tape.domain.written import Gathered
from gradfix.tape.interpreter.granted import TAKEN
from gradfix.tape.torch.weights import parameters_of, set_leaf, weights

if TYPE_CHECKING:
    from gradfix.tape.domain.values import Lean, Place, Value
    from gradfix.tape.domain.written import Gatherings
    from gradfix.tape.interpreter.state import Notes
    from gradfix.tape.machine.here import Here
    from gradfix.tape.machine.machine import Machine

OWN_DICTS = frozenset({"__dict__", "_modules", "_parameters"})
"""What a module keeps its parts in: who has that can put another one in."""


def own_dict(owner: Value, name: str) -> Unknown:
    """The dict itself, which isn't followed, but for what is in it by name."""
    found = Unknown(Why(What.ATTRIBUTE, f"`{name}` of a module"), (owner,))
    found.children = {f"[{key!r}]": value for key, value in children(owner)}
    return found


def opaque(machine: Machine, value: Unknown, node: ast.AST | None = None) -> Opaque:
    """The module that an unknown value is, by the way it is used (convention B)."""
    if value.module is None:
        module = Opaque(value, weights(machine, node), frozenset({Convention.B}))
        module.weights.lean = frozenset({Convention.B})
        module.weights.node.lean = frozenset({Convention.B})
        module.born = module.weights.born = value.born
        machine.trail.learn(value, "module", module)
        machine.leaves.modules[id(module.weights)] = (module.weights, value)
        if inside := [*{id(one): one for one in _modules_in(value)}.values()]:
            machine.leaves.stands_for[id(module.weights)] = lambda known: [
                gathered(machine, one, known) for one in inside
            ]
        if machine.leaves.told and any(_frozen(machine, held) for held in value.holds):
            set_leaf(machine, module.weights, None)
        return module
    return value.module


DEEP = 4
"""How often what isn't known is made of what isn't known."""


def _modules_in(value: Value, deep: int = DEEP) -> Iterator[Value]:
    """The modules that something was made of which isn't known: it may be one of them. What is a module's
    attribute isn't that module."""
    for held in value.holds if isinstance(value, Unknown) and deep else ():
        if not isinstance(held, (Layer, Instance)):
            yield from _modules_in(held, deep - 1)
        elif isinstance(value, Unknown) and value.why.what is not What.ATTRIBUTE:
            yield held


def _frozen(machine: Machine, value: Value) -> bool:
    """Whether a module holds parameters that need no gradient: what is made of it may hold them too."""
    for _ in range(DEEP):
        if not isinstance(value, Unknown) or value.module is not None or len(value.holds) != 1:
            break
        value = value.holds[0]
    module = value.module if isinstance(value, Unknown) else value
    return module is not None and any(leaf.requires is not True for leaf in leaves(machine, module)[0])


def children(value: Value) -> Iterator[tuple[str, Value]]:
    """The registered submodules and parameters of a module."""
    if isinstance(value, Layer):
        yield from ((value.items or {}) if value.items is not None else {}).items()
        yield from value.attrs.items()
    elif isinstance(value, Instance):
        yield from value.attrs.items()


MODULES = frozenset({Layer, Instance, Opaque, Alt, Tensor})
"""What is a parameter or a module, or may be."""


def leaves(machine: Machine, value: Value) -> tuple[list[Tensor], bool]:
    """The parameters of a module, and whether they are all."""
    found = gathered(machine, value, machine.leaves.gatherings)
    return [*found.leaves], found.complete


def gathered(machine: Machine, value: Value, known: Gatherings) -> Gathered:
    """The same, as it was gathered before, where nothing of it was written since."""
    if (before := known.of(value)) is not None:
        return before
    eras, seen, leaves = (known.written.era, machine.trail.written.era), set[int](), dict[int, Tensor]()
    complete = _gather(machine, value, seen, leaves)
    found = Gathered(value, leaves, complete, seen)
    if eras == (known.written.era, machine.trail.written.era):
        known.keep(found)
    else:  # something has turned out to be a module meanwhile
        known.written.forget()
    return found


def _gather(machine: Machine, value: Value, seen: set[int], found: dict[int, Tensor]) -> bool:
    """Add the parameters of a module to those that were found; whether they are all of its own."""
    if id(value) in seen:
        return True
    seen.add(id(value))
    if isinstance(value, Tensor):
        if value.parameter:
            found.setdefault(id(value), value)
        return True
    if isinstance(value, Opaque):
        _and_put_in(machine, value, seen, found)
        return True
    if isinstance(value, Unknown):
        known = value.origin or value.module
        return _gather(machine, opaque(machine, value), seen, found) if known else True
    if isinstance(value, Alt):
        for _, option in value.options:
            _gather(machine, option, seen, found)
        return False
    if isinstance(value, Layer):
        for leaf in parameters_of(machine, value).values():
            if leaf.leaf is not False:  # a result can't be registered: its name has been given up
                found.setdefault(id(leaf), leaf)
        complete = not value.open
    elif isinstance(value, Instance):
        if not value.module:
            return False
        complete = True
    else:
        return True
    for _, child in children(value):
        if type(child) in MODULES or _maybe_module(child):
            complete = _gather(machine, child, seen, found) and complete
    return complete


def one_of_these(machine: Machine, module: Value) -> list[Tensor]:
    """The parameters of all those that a module is one of: an element of a list, it isn't known which."""
    chosen = module.of if isinstance(module, Opaque) else None
    held = chosen.holds if isinstance(chosen, Unknown) and chosen.part else ()
    return [leaf for one in held if isinstance(one, (Layer, Instance)) for leaf in leaves(machine, one)[0]]


def may_hold_more(value: Value) -> bool:
    """Whether something that isn't known was put into a module, which may have parameters of its own."""
    stack, seen = [value], set[int]()
    while stack:
        inner = stack.pop()
        if isinstance(inner, Unknown) and inner.module is None and inner.tensor is None:
            return True
        if id(inner) not in seen:
            seen.add(id(inner))
            stack.extend(child for _, child in children(inner))
    return False


def _and_put_in(machine: Machine, value: Opaque, seen: set[int], found: dict[int, Tensor]) -> None:
    """The weights of a module that isn't known, and of the modules that were put in or told apart."""
    found.setdefault(id(value.weights), value.weights)
    stack: list[Value] = [value.of]
    seen.add(id(value.of))  # which is read
    while stack:
        owner = stack.pop()
        inside = owner.children if isinstance(owner, Unknown) else None
        for child in [*(inside or {}).values(), *(value.children.values() if owner is value.of else ())]:
            if isinstance(child, Unknown) and child.module is None:
                stack.extend([child] if child.children and id(child) not in seen else [])
                seen.add(id(child))
            elif isinstance(child, (Layer, Instance, Opaque, Alt, Tensor, Unknown)):
                _gather(machine, child, seen, found)


def _maybe_module(child: Value) -> bool:
    """Whether an unknown attribute is a submodule: it was built by a call in a module's constructor."""
    return isinstance(child, Unknown) and (child.module is not None or child.built)


def set_training(notes: Notes, value: Value, on: bool | None, lean: Lean = TAKEN) -> None:
    """train() and eval(), all the way down; what isn't known is taken for training, by this."""
    stack = [value]
    seen: set[int] = set()
    while stack:
        value = stack.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, (Layer, Instance)):
            notes.machine.trail.set(value, "training", on)
            if on is None:
                notes.unsure[id(value)] = value, lean
            stack.extend(child for _, child in children(value))
        elif isinstance(value, Alt):
            stack.extend(option for _, option in value.options)


def all_of(here: Here, group: Weights) -> bool:
    """Whether what is done to a group of parameters is done to each of them."""
    return group.met is None or here.path == group.met


def freeze(machine: Machine, group: Weights, value: Value, place: Place) -> None:
    """`p.requires_grad = value` over parameters."""
    wanted = bool(value.value) if isinstance(value, Const) and all_of(machine.here, group) else None
    for leaf in group.leaves:
        set_leaf(machine, leaf, wanted, place)
