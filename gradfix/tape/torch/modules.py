"""What modules have in common, known or not: their parameters, their training mode, freezing."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from gradfix.defects import Convention
from gradfix.defects.reasons import What
from gradfix.tape.domain.alternatives import paired
from gradfix.tape.domain.definitions import Instance
from gradfix.tape.domain.graph import Node, Tensor
from gradfix.tape.domain.torch_values import Layer, Opaque, Weights
from gradfix.tape.domain.values import Alt, Const, Map, Seq, Unknown
from gradfix.tape.domain.why import Why, fact
from gradfix.tape.effects.operations import having
from gradfix.tape.interpreter.occasions import ModuleCleared, PutSomewhere
from gradfix.tape.torch.weights import parameters_of, weights

if TYPE_CHECKING:
    from gradfix.tape.domain.trail import Trail
    from gradfix.tape.domain.values import Place, Value
    from gradfix.tape.interpreter.interpreter import Interpreter
    from gradfix.tape.interpreter.state import Notes
    from gradfix.tape.machine.here import Here
    from gradfix.tape.machine.machine import Machine

SAME = having("of-modules") | {
    "train", "eval", "requires_grad_", "apply", "share_memory", "to_empty", "compile",
}  # fmt: skip

MODULE_METHODS = frozenset({
    "parameters", "named_parameters", "train", "eval", "to", "cuda", "cpu", "float", "half", "double",
    "zero_grad", "requires_grad_", "modules", "children", "named_modules", "named_children", "state_dict",
    "load_state_dict", "register_buffer", "register_parameter", "add_module", "register_module", "apply",
    "buffers", "register_forward_hook", "bfloat16", "share_memory", "register_full_backward_hook",
    "register_forward_pre_hook", "__setattr__",
})  # fmt: skip
"""What a module is asked for by name, wherever it comes from."""


OWN_DICTS = frozenset({"__dict__", "_modules", "_parameters"})
"""What a module keeps its parts in: who has that can put another one in."""


def own_dict(owner: Value, name: str) -> Unknown:
    """The dict itself, which isn't followed."""
    return Unknown(Why(What.ATTRIBUTE, f"`{name}` of a module"), (owner,))


def opaque(machine: Machine, value: Unknown, node: ast.AST | None = None) -> Opaque:
    """The module that an unknown value is, by the way it is used (convention B)."""
    if value.module is None:
        module = Opaque(value, weights(machine, node), frozenset({Convention.B}))
        module.weights.lean = frozenset({Convention.B})
        module.weights.node.lean = frozenset({Convention.B})
        machine.trail.learn(value, "module", module)
        if machine.leaves.told and any(_frozen(machine, held) for held in value.holds):
            set_leaf(machine, module.weights, None)
        return module
    return value.module


DEEP = 4
"""How often what isn't known is made of what isn't known."""


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
    found: dict[int, Tensor] = {}
    complete = _gather(machine, value, set(), found)
    return list(found.values()), complete


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
    while stack:
        owner = stack.pop()
        inside = owner.children if isinstance(owner, Unknown) else None
        for child in [*(inside or {}).values(), *(value.children.values() if owner is value.of else ())]:
            if isinstance(child, Unknown) and child.module is None:
                stack.extend([child] if child.children and id(child) not in seen else [])
                seen.add(id(child))
            elif isinstance(child, (Layer, Instance, Opaque, Alt, Unknown)):
                _gather(machine, child, seen, found)


def _maybe_module(child: Value) -> bool:
    """Whether an unknown attribute is a submodule: it was built by a call in a module's constructor."""
    return isinstance(child, Unknown) and (child.module is not None or child.built)


def set_training(notes: Notes, value: Value, on: bool | None) -> None:
    """train() and eval(), all the way down."""
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
                notes.unsure[id(value)] = value
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


def set_leaf(machine: Machine, leaf: Tensor, wanted: bool | None, place: Place = None) -> None:
    """Let a leaf require grad, or not, or perhaps."""
    if leaf.requires is wanted:
        return
    node = Node("leaf", leaf.place, (), wanted)
    node.leaf = leaf
    node.lean, node.path = leaf.lean, machine.here.path
    if wanted is False:
        machine.leaves.told[id(leaf)] = leaf
        node.facts = {"frozen": place}
    machine.trail.set(leaf, "requires", wanted)
    machine.trail.set(leaf, "node", node)


REGISTERING = {
    "add_module": "module", "register_module": "module", "register_parameter": "param",
    "register_buffer": "tensor", "__setattr__": "value",
}  # fmt: skip
"""What puts a part into a module, and what it calls that part."""


def module_method(
    vm: Interpreter,
    owner: Value,
    name: str,
    args: Sequence[Value],
    kwargs: Mapping[str, Value],
    node: ast.AST,
) -> Value:
    """A method that every nn.Module has."""
    given = args[0] if args else next(iter(kwargs.values()), None)
    if name in ("parameters", "named_parameters"):
        found, complete = leaves(vm.machine, owner)
        return Weights(owner, found, complete, named=name == "named_parameters")
    if name in ("train", "eval"):
        on = name == "train" and not (isinstance(given, Const) and not given.value)
        set_training(
            vm.notes,
            owner,
            None if name == "train" and given is not None and not isinstance(given, Const) else on,
        )
        return owner
    if name == "requires_grad_":
        found, complete = leaves(vm.machine, owner)
        wanted = given if given is not None else Const(True)
        freeze(vm.machine, Weights(owner, found, complete), wanted, vm.here.at(node))
        return owner
    if name == "zero_grad":
        vm.tell(ModuleCleared(node))
        vm.machine.gradients.clear(leaves(vm.machine, owner)[0], vm.here.at(node))
        return Const(None)
    if name in ("modules", "children", "named_modules", "named_children"):
        return _submodules(owner, name)
    if name in SAME:
        if name == "apply":
            vm.timeline.note("anything", (owner, *args), vm.here.at(node), vm.here.path)
        if name in ("to", "cuda"):
            vm.machine.leaves.moved = True
        return owner
    return _registering(vm, owner, name, args, kwargs, node)


MANY = 200
"""How many submodules are told one by one."""


def _submodules(owner: Value, name: str) -> Value:
    """All of them, where each is known; else some of them, and there may be more."""
    below: list[tuple[tuple[str, ...], Value]] = []
    stack: list[tuple[tuple[str, ...], Value]] = [((), owner)]
    seen: set[int] = set()
    more = False
    while stack and len(below) < MANY:
        path, value = stack.pop(0)
        if id(value) in seen:
            continue
        if not isinstance(value, (Layer, Instance, Opaque)):
            more = more or isinstance(value, (Alt, Unknown))
            below.extend([(path, value)] if isinstance(value, Unknown) else [])
            continue
        seen.add(id(value))
        more = more or isinstance(value, Opaque) or (isinstance(value, Layer) and value.open)
        if path or name.endswith("modules"):
            below.append((path, value))
        if not path or name.endswith("modules"):
            stack.extend(((*path, key), child) for key, child in children(value))
    named = name.startswith("named")
    found = [Seq("tuple", [_name(path), one]) if named else one for path, one in below]
    return Seq("list", found, open=more or bool(stack))


def _name(path: tuple[str, ...]) -> Value:
    """What a module is called, where no part of it was put in under a name that isn't known."""
    known = not any(part.startswith(("?", "<")) for part in path)
    return Const(".".join(path)) if known else Unknown(fact("a module's name"))


def _registering(
    vm: Interpreter,
    owner: Value,
    name: str,
    args: Sequence[Value],
    kwargs: Mapping[str, Value],
    node: ast.AST,
) -> Value:
    named = args[0] if args else kwargs.get("name")
    if name in REGISTERING:
        given = args[1] if len(args) > 1 else kwargs.get(REGISTERING[name])
        if given is not None:
            if not isinstance(named, Const) and name != "register_buffer":
                vm.tell(PutSomewhere(owner, given, node))
            register(vm.trail, owner, named, given)
        if name == "register_buffer" and isinstance(named, Const):
            vm.notes.buffers.add((id(owner), named.value))
        return Const(None)
    if (
        isinstance(owner, Layer)
        and owner.items is not None
        and name in ("append", "extend", "insert", "update")
    ):
        _grow(vm.trail, owner, name, args)
        return owner
    if isinstance(owner, Layer) and owner.items is not None and name in ("values", "keys", "items"):
        return _dictionary_view(owner, name)
    if name in ("forward", "__call__"):
        return vm.call(owner, args, kwargs, node)
    reads = name in ("state_dict", "buffers", "named_buffers")
    vm.timeline.note("uses" if reads else "anything", (owner, *args), vm.here.at(node), vm.here.path)
    return Unknown(Why(What.OPERATION, f"`.{name}()` of a module"))


def register(trail: Trail, owner: Value, named: Value | None, value: Value) -> None:
    """Give a module a submodule or parameter by its name, which needn't be known."""
    key = str(named.value) if isinstance(named, Const) else f"?{trail.clock}"
    if isinstance(owner, Instance):
        trail.put(owner, owner.attrs, key, value)
    elif isinstance(owner, Layer) and owner.items is not None and isinstance(named, Const):
        trail.put(owner, owner.items, key, value)
    elif isinstance(owner, Layer):
        trail.put(owner, owner.attrs, key, value)  # which it may run anywhere, or not at all
        trail.set(owner, "open", True)


def _grow(trail: Trail, owner: Layer, name: str, args: Sequence[Value]) -> None:
    added = args[-1:] if name in ("append", "insert") else []
    if name in ("extend", "update") and args:
        source = args[0]
        if isinstance(source, Seq):
            added = source.items
        elif isinstance(source, Layer) and source.items:
            added = list(source.items.values())
        elif isinstance(source, Map):
            for key, value in source.items.items():
                trail.put(owner, owner.items or {}, str(key), value)
            return
        if not isinstance(source, (Seq, Layer)) or source.open:
            trail.set(owner, "open", True)
    if name == "insert":
        items = list((owner.items or {}).values())
        at = args[0].value if isinstance(args[0], Const) and isinstance(args[0].value, int) else len(items)
        items[at:at] = added
        trail.set(owner, "items", {str(i): item for i, item in enumerate(items)})
        return
    for value in added:
        assert owner.items is not None
        trail.put(owner, owner.items, str(len(owner.items)), value)


def _dictionary_view(owner: Layer, name: str) -> Value:
    items = owner.items or {}
    if name == "keys":
        return Seq("list", [Const(key) for key in items], owner.open)
    if name == "values":
        return Seq("list", list(items.values()), owner.open)
    return Seq("list", [paired(Const(key), value) for key, value in items.items()], owner.open)
