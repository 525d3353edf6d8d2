"""The methods that every module has, and what puts parts into one."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from gradfix.defects.reasons import What
from gradfix.tape.domain.definitions import Instance
from gradfix.tape.domain.graph import Tensor
from gradfix.tape.domain.narrowing import paired
from gradfix.tape.domain.torch_values import Layer, Opaque, Weights
from gradfix.tape.domain.values import Alt, Const, Map, Seq, Unknown
from gradfix.tape.domain.why import Why, fact
from gradfix.tape.effects.operations import having
from gradfix.tape.interpreter.occasions import ModuleCleared, PutSomewhere
from gradfix.tape.torch.modules import children, freeze, leaves, set_training

if TYPE_CHECKING:
    from gradfix.tape.domain.trail import Trail
    from gradfix.tape.domain.values import Value
    from gradfix.tape.interpreter.interpreter import Interpreter

SAME = having("of-modules") | {
    "train", "eval", "requires_grad_", "apply", "share_memory", "to_empty", "compile",
}  # fmt: skip

MODULE_METHODS = frozenset({
    "parameters", "named_parameters", "train", "eval", "to", "cuda", "cpu", "float", "half", "double",
    "zero_grad", "requires_grad_", "modules", "children", "named_modules", "named_children", "state_dict",
    "load_state_dict", "register_buffer", "register_parameter", "add_module", "register_module", "apply",
    "buffers", "register_forward_hook", "bfloat16", "share_memory", "register_full_backward_hook",
    "register_forward_pre_hook", "__setattr__", "get_submodule", "get_parameter", "get_buffer",
})  # fmt: skip
"""What a module is asked for by name, wherever it comes from."""
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
        vm.machine.optimizers.asked.append((vm.here.at(node), found))
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
            _on_each(vm, owner, args, node)
        if name in ("to", "cuda"):
            vm.machine.leaves.moved = True
        if "memory_format" in kwargs:  # what its convolutions make lies as their weights do
            for leaf in leaves(vm.machine, owner)[0]:
                vm.trail.set(leaf, "layout", None)
        return owner
    return _registering(vm, owner, name, args, kwargs, node)


def _on_each(vm: Interpreter, owner: Value, args: Sequence[Value], node: ast.AST) -> None:
    """`apply`: a function runs on each part; what it does to layers isn't run for each of them."""
    vm.timeline.note("anything", (owner, *args), vm.here.at(node), vm.here.path)
    vm.machine.gradients.perhaps_cleared(leaves(vm.machine, owner)[0])
    parts = _submodules(owner, "modules")
    for part in parts.items if isinstance(parts, Seq) else []:
        if isinstance(part, Instance) and args:
            vm.call(args[0], [part], {}, node)


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
            more = more or _may_be_module(value)
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


def _may_be_module(value: Value) -> bool:
    if isinstance(value, Alt):
        return any(not isinstance(one, (Tensor, Const)) for _, one in value.options)
    return isinstance(value, Unknown) and value.tensor is None and value.requires is not True


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
        _grow(vm.trail, owner, name, _in_order(name, args, kwargs))
        return owner
    if isinstance(owner, Layer) and owner.items is not None and name in ("values", "keys", "items"):
        return _dictionary_view(owner, name)
    if name in ("forward", "__call__"):
        return vm.call(owner, args, kwargs, node)
    if name in PARTS:
        return _by_path(owner, named)
    reads = name in ("state_dict", "buffers", "named_buffers")
    vm.timeline.note("uses" if reads else "anything", (owner, *args), vm.here.at(node), vm.here.path)
    return Unknown(Why(What.OPERATION, f"`.{name}()` of a module"))


PARTS = frozenset({"get_submodule", "get_parameter", "get_buffer"})
"""What finds a part of a module by its path."""


def _by_path(owner: Value, path: Value | None) -> Value:
    """The part that a path leads to; where nobody knows which, one of them."""
    value = owner
    for name in str(path.value).split(".") if isinstance(path, Const) and path.value else ():
        value = dict(children(value)).get(name) or Unknown(
            Why(What.ATTRIBUTE, "a part of a module"), (value,)
        )
    if isinstance(path, Const):
        return value
    part = Unknown(Why(What.ATTRIBUTE, "a part of a module"), (owner,))
    part.part = True
    return part


def register(trail: Trail, owner: Value, named: Value | None, value: Value) -> None:
    """Give a module a submodule or parameter by its name, which needn't be known."""
    key = str(named.value) if isinstance(named, Const) else f"?{trail.clock}"
    if isinstance(owner, Instance):
        trail.put(owner, owner.attrs, key, value)
    elif isinstance(owner, Opaque):
        trail.put(owner, owner.children, key, value)
    elif isinstance(owner, Layer) and owner.items is not None and isinstance(named, Const):
        trail.put(owner, owner.items, key, value)
    elif isinstance(owner, Layer):
        trail.put(owner, owner.attrs, key, value)  # which it may run anywhere, or not at all
        trail.set(owner, "open", True)


def _in_order(name: str, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Sequence[Value]:
    """What a list of modules is given, by place."""
    named = ("index", "module") if name == "insert" else ("module", "modules")
    return [*args, *(kwargs[one] for one in named if one in kwargs)]


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
    if name == "insert" and len(args) < 2:
        trail.set(owner, "open", True)
    elif name == "insert":
        items = list((owner.items or {}).values())
        at = args[0].value if isinstance(args[0], Const) and isinstance(args[0].value, int) else len(items)
        items[at:at] = added
        if not isinstance(args[0], Const):
            trail.set(owner, "open", True)  # between any two of them
        trail.set(owner, "items", {str(i): item for i, item in enumerate(items)})
        return
    for value in added if name != "insert" else ():
        assert owner.items is not None
        trail.put(owner, owner.items, str(len(owner.items)), value)


def _dictionary_view(owner: Layer, name: str) -> Value:
    items = owner.items or {}
    if name == "keys":
        return Seq("list", [Const(key) for key in items], owner.open)
    if name == "values":
        return Seq("list", list(items.values()), owner.open)
    return Seq("list", [paired(Const(key), value) for key, value in items.items()], owner.open)
