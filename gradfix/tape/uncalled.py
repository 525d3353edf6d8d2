"""What nobody calls is entered: functions with unknown arguments, methods on an object built for them."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from gradfix.defects import Assumption, Convention
from gradfix.defects.reasons import What
from gradfix.tape.domain.definitions import Bound, Class, Function, Instance, Partial
from gradfix.tape.domain.graph import Tensor
from gradfix.tape.domain.torch_values import Layer
from gradfix.tape.domain.values import NONE, Alt, Const, External, Unknown
from gradfix.tape.domain.why import Why
from gradfix.tape.effects.frameworks import Entry
from gradfix.tape.interpreter.granted import granted
from gradfix.tape.interpreter.inside import all_in
from gradfix.tape.python.classes import instantiate, is_module
from gradfix.tape.python.following import call_function
from gradfix.tape.strangers.assumed_backward import wish
from gradfix.tape.strangers.assumed_optimizers import doubted
from gradfix.tape.strangers.framework_objects import enter, rows_of
from gradfix.tape.strangers.whole_models import called_on_itself, is_loss, is_whole, trains_itself
from gradfix.tape.torch.modules import leaves

if TYPE_CHECKING:
    from gradfix.defects import Lean
    from gradfix.tape.domain.trail import Trail
    from gradfix.tape.domain.values import Value
    from gradfix.tape.entry_filter import Culprits
    from gradfix.tape.interpreter.interpreter import Interpreter
    from gradfix.tape.interpreter.names import Names
    from gradfix.tape.interpreter.program import Program
    from gradfix.tape.interpreter.state import Strangers
    from gradfix.tape.machine.machine import Machine


GIVEN: Lean = frozenset({Convention.D, Assumption.INPUT_LEARNS})
"""What it takes that the input of a forward requires grad."""


def enter_function(vm: Interpreter, function: Function) -> None:
    """Call a function with arguments that nobody knows."""
    with vm.running.within(uncalled=True):
        call_function(vm, function, *_arguments(vm, function, first=None), function.code.node)


def _arguments(
    vm: Interpreter, function: Function, first: Value | None
) -> tuple[list[Value], dict[str, Value]]:
    """Unknown arguments; callable defaults hold (F), flags and numbers are open."""
    a, notes = function.code.node.args, vm.notes
    args = [first] if first is not None else []
    for i, arg in enumerate((*a.posonlyargs, *a.args)[len(args) :]):
        default = function.defaults.get(arg.arg)
        if default is not None and _always_given(vm.program, function, arg.arg, i):
            default = None
        if isinstance(default, External):
            args.append(granted(notes, External(default.path)))
        elif isinstance(default, (Class, Function, Partial, Layer)):
            args.append(granted(notes, default))
        else:
            args.append(Unknown(Why(What.ARGUMENT, arg.arg, notes.here.at(arg))))
    return args, {}


def _always_given(program: Program, function: Function, name: str, position: int) -> bool:
    """Whether all calls in this file bring an argument: its default holds nowhere, then."""
    called = function.owner.name if function.owner is not None else function.code.name
    if not program.calls:
        for node in all_in(program.tree):
            if isinstance(node, ast.Call):
                by = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                program.calls.setdefault(by, []).append(node)
    calls = program.calls.get(called, [])
    return bool(calls) and all(
        len(call.args) > position
        or any(isinstance(arg, ast.Starred) for arg in call.args)
        or any(given.arg in (name, None) for given in call.keywords)
        for call in calls
    )


def enter_class(vm: Interpreter, cls: Class, culprits: Culprits) -> None:
    """Enter what a class defines and nobody has called, on an object that is built for it."""
    entries = dict(entries_of(vm.program, cls))
    methods = [(name, member) for name, member in cls.attrs.items() if isinstance(member, Function)]
    due = [(name, member) for name, member in methods if _due(name, member, cls, name in entries, culprits)]
    if not due and not culprits.builds(cls.node):
        return
    instance = _instance(vm, cls)
    if instance is None:
        return
    vm.notes.stand_ins[id(instance)] = instance
    entries = _by_hand(vm.program, instance, entries)
    wished = {key for row, _ in rows_of(vm.program, cls) for key, entry in row.methods.items() if entry.root}
    if len(due) > 1:  # what another method calls is met on the way
        called = called_on_itself(cls.node)
        due.sort(
            key=lambda one: (one[0] in called and one[0] not in entries, _only_looks(vm.program, one[1]))
        )
    for name, member in due:
        entry = entries.get(name)
        if name == "forward" and instance.module:
            roots = {key for key, one in entries.items() if one.root} | wished
            if not _only_infers(vm.machine, instance, member) and not _trained_without(cls, roots):
                _enter_forward(vm, instance, member)
        elif entry is not None:
            enter(vm, Bound(instance, member), entry, member.code.node)
        elif not member.code.entered:
            _let_time_pass(vm.strangers)
            result = _enter_method(vm, instance, member)
            if name in wished:
                wish(vm.strangers, [result])


TRAINS = frozenset({"backward", "step", "manual_backward"})
"""What a method calls that trains."""


def _trained_without(cls: Class, roots: set[str]) -> bool:
    """Whether what a framework trains by is written here and never comes to `forward`: that only infers."""
    due = [name for name in roots if name in cls.attrs]
    if not due:
        return False
    for name in due:
        method = cls.attrs.get(name)
        if not isinstance(method, Function):
            continue
        inside = all_in(method.code.node)
        own = [one for one in inside if isinstance(one, ast.Attribute) and method.code.is_first(one.value)]
        if any(method.code.is_first(one) and not _looked_into(method, one) for one in inside):
            return False
        if any(
            isinstance(one, ast.Call) and one.func in own and one.func.attr == "forward" for one in inside
        ):
            return False
        due += [one.attr for one in own if one.attr not in due]
    return True


def _looked_into(method: Function, node: ast.AST) -> bool:
    """Whether it stands before a dot: else it is called, or given away."""
    inside = (one for one in all_in(method.code.node) if isinstance(one, ast.Attribute))
    return any(one.value is node for one in inside)


def _only_looks(program: Program, method: Function) -> bool:
    """Whether a method neither trains nor leaves something for others: it can wait for what does."""
    if _stored(program, method.code.node):
        return False
    calls = (one.func for one in all_in(method.code.node) if isinstance(one, ast.Call))
    return not any(isinstance(func, ast.Attribute) and func.attr in TRAINS for func in calls)


def _only_infers(machine: Machine, instance: Instance, member: Function) -> bool:
    """Whether a module is run here with all its parameters frozen, or is never recorded though others are
    trained here or it learns nothing.

    That its output is backpropagated (D) is then more than a convention: it is a helper of inference.
    """
    code = member.code
    if code.recorded:
        return not code.thawed
    return code.entered and (machine.severed.inherited > 0 or leaves(machine, instance) == ([], True))


def _let_time_pass(strangers: Strangers) -> None:
    """Nobody knows what runs between two methods: gradients may be filled and cleared there."""
    doubted(strangers, None)
    machine = strangers.machine
    if machine.severed.backwards:
        machine.gradients.clear(machine.leaves.every_leaf, None, must=False)


def _due(name: str, member: Function, cls: Class, called: bool, culprits: Culprits) -> bool:
    """Whether a method is entered, where nobody calls it."""
    if name == "forward" and is_module(cls):
        return culprits.leads(cls.node)
    return name != "__init__" and (called or (not member.code.entered and culprits.within(member.code.node)))


def _instance(vm: Interpreter, cls: Class) -> Instance | None:
    init, module = cls.lookup("__init__"), is_module(cls)
    vm.notes.on_behalf = True
    node = cls.node
    if isinstance(init, Function):
        args, kwargs = _arguments(vm, init, first=NONE)
        made = instantiate(vm, cls, args[1:], kwargs, node)
    else:
        made = instantiate(vm, cls, [], {}, node) if module else Instance(cls, module)
    if isinstance(made, Instance):
        _adopt(vm.trail, made)
    return made if isinstance(made, Instance) else None


def _adopt(trail: Trail, instance: Instance) -> None:
    """Submodules that a constructor built by calls that aren't known are opaque modules (convention B)."""
    for value in instance.attrs.values():
        if isinstance(value, Unknown) and value.origin and instance.module and value.requires is None:
            trail.learn(value, "built", True)


def entries_of(program: Program, cls: Class) -> Iterator[tuple[str, Entry]]:
    """The methods that a framework calls, and how."""
    for row, sure in rows_of(program, cls):
        own = isinstance(cls.lookup(row.takes_over), Function)
        for name, entry in row.methods.items():
            if sure or not entry.grad:
                yield name, replace(entry, root=False) if own else entry


def _by_hand(program: Program, instance: Instance, entries: dict[str, Entry]) -> dict[str, Entry]:
    """The same for an object that says, or may say, that it backpropagates, clears and steps by itself."""
    switches = [row.manual for row, _ in rows_of(program, instance.cls) if row.manual]
    told = [instance.attrs.get(name) or instance.cls.lookup(name) for name in switches]
    if all(one is None or (isinstance(one, Const) and one.value) for one in told):
        return entries
    by_hand = any(isinstance(one, Const) and not one.value for one in told)
    return {
        name: Entry(given=entry.given) if entry.root and by_hand else replace(entry, root=False)
        for name, entry in entries.items()
    }


def _enter_method(vm: Interpreter, instance: Instance, member: Function) -> Value:
    static = any(
        isinstance(value, External) and value.path.endswith("staticmethod") for value, _ in member.decorators
    )
    args, kwargs = _arguments(vm, member, first=None if static else instance)
    _forget(vm.names, instance, member)
    with vm.running.within(uncalled=True):
        return call_function(
            vm, member, args, kwargs, member.code.node, receiver=None if static else instance
        )


def _forget(names: Names, instance: Instance, member: Function) -> None:
    """What other methods put in the place of a constructor's constant, or in turn, may be anything by now."""
    held = {name: value for name, value in instance.attrs.items() if isinstance(value, (Tensor, Alt))}
    times = (
        Counter(name for name in _stored_elsewhere(names.program, instance, member) if name in held)
        if held
        else {}
    )
    for name, methods in times.items():
        value = held[name]
        ways = [one for _, one in value.options] if isinstance(value, Alt) else [value]
        constant = any(isinstance(one, Tensor) and one.requires is False for one in ways)
        if constant or methods > 1:
            names.trail.put(
                instance, instance.attrs, name, Unknown(Why(What.ATTRIBUTE, f"`{name}` of an object"))
            )


def _stored_elsewhere(program: Program, instance: Instance, member: Function) -> Iterator[str]:
    """The attributes that each method besides one and the constructor assigns."""
    for method in instance.cls.node.body:
        if isinstance(method, ast.FunctionDef) and method.name != "__init__":
            yield from _stored(program, method) if method is not member.code.node else ()


def _stored(program: Program, method: ast.AST) -> frozenset[str]:
    """The attributes that a method assigns, read once for all that are entered."""
    known = program.stored.get(id(method))
    if known is None:
        nodes = (node for node in all_in(method) if isinstance(node, ast.Attribute))
        known = frozenset(node.attr for node in nodes if isinstance(node.ctx, ast.Store))
        program.stored[id(method)] = known
    return known


def _enter_forward(vm: Interpreter, instance: Instance, member: Function) -> None:
    """Enter a forward on its own: its output is backpropagated (convention D), its input may require grad.

    Whoever runs a module meets a crash that hangs on the input alone, if there is one: either it is only ever
    given data, or it stands behind what learns. Where a file shows that, the tape has followed it from there.
    """
    args, kwargs = _arguments(vm, member, first=instance)
    for i, arg in enumerate(args[1:2], 1):
        if isinstance(arg, Unknown):
            args[i] = Unknown(arg.why, requires=True, lean=GIVEN)
    names = [arg.arg for arg in member.code.node.args.args]
    for i, name in enumerate(names[1 : len(args)], 1):
        default = member.defaults.get(name)
        if isinstance(default, Const) and default.value is False:
            args[i] = granted(vm.notes, Const(False))  # who trains through it needn't know the switch
    before = dict(instance.attrs)
    with vm.running.within(exported=False):
        result = call_function(vm, member, args, kwargs, member.code.node, receiver=instance)
        exported = vm.running.exported
    if exported or trains_itself(vm.program, instance.cls.node):
        return  # nobody backpropagates what comes out of it
    kept = {
        name: value for name, value in instance.attrs.items() if (id(instance), name) not in vm.notes.buffers
    }
    stored = [value for name, value in kept.items() if before.get(name) is not value]
    roots = [result, *stored]
    whole, loss = partial(is_whole, vm.names, instance, roots), is_loss(vm.machine, instance, result)
    with vm.machine.backward.raising.within(whole=whole, loss=loss):
        wish(vm.strangers, roots)
