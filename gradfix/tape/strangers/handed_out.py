"""What code that isn't known may do to a value that it is handed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gradfix.defects import Assumption, Convention, Gap
from gradfix.defects.reasons import What
from gradfix.tape.domain.definitions import Bound, Class, Function, Instance, Method, Partial
from gradfix.tape.domain.events import Backward
from gradfix.tape.domain.graph import Number, Tensor
from gradfix.tape.domain.torch_values import Group, Layer, Opaque, Optimizer, Weights
from gradfix.tape.domain.values import UNDEFINED, Alt, Const, External, Map, Range, Seq, Unknown, unknown_of
from gradfix.tape.domain.why import Why, fact
from gradfix.tape.interpreter.aliases import names_read
from gradfix.tape.machine.account import newest_call
from gradfix.tape.strangers.assumed_optimizers import doubted, let_go, step_supposed
from gradfix.tape.strangers.filled import stirred
from gradfix.tape.torch.modules import children, leaves, one_of_these
from gradfix.tape.torch.weights import set_leaf

if TYPE_CHECKING:
    from gradfix.tape.domain.trail import Trail
    from gradfix.tape.domain.values import Value
    from gradfix.tape.interpreter.interpreter import Interpreter
    from gradfix.tape.interpreter.names import Names
    from gradfix.tape.interpreter.occasions import PutSomewhere, StrangerStepped
    from gradfix.tape.interpreter.state import Strangers
    from gradfix.tape.machine.machine import Machine

DOUBT = Why(What.COMPUTED, "what a call may have put elsewhere")
PUT_SOMEWHERE = "which part of a module something takes the place of"
PARTS = frozenset({Layer, Instance, Opaque, Unknown, Alt})
"""What may be a part of a module."""
HOLDING = frozenset({Seq, Map, Instance, Alt, Layer})
"""What may hold a list, or an object."""
LISTS = frozenset({"ModuleList", "ModuleDict", "ParameterList", "ParameterDict"})
"""What modules are put into."""
MANY = 64
"""How many values are looked through for tensors."""
INERT = frozenset({Const, External, Range, Number, Class})
"""What code that isn't known can't change."""


def escape(strangers: Strangers, value: Value) -> None:
    """Hand a value to code that isn't known."""
    doubted(strangers, None, newest_call(strangers.timeline))
    hand_out(strangers, value)
    let_gradients_go(strangers.machine, [value])
    may_take_out(strangers.trail, [value])


def asked_for_later(strangers: Strangers, *given: Value) -> Unknown:
    """Items that are made when somebody asks for them: nobody knows when, nor after what."""
    for value in given:
        escape(strangers, value)
    return unknown_of(fact("what is made when it is asked for"), *given)


def put_somewhere(vm: Interpreter, told: PutSomewhere) -> None:
    """What leaves the module has isn't known from here on, nor which of its parts are still there."""
    put, owner = told.put, told.owner
    if type(put) not in PARTS and not (isinstance(put, Tensor) and put.leaf is not False):
        return
    if vm.machine.leaves.froze:
        may_thaw(vm.machine, owner)
    if parts := list(_parts(owner)):
        place = vm.here.at(told.node)
        why = Why(What.ATTRIBUTE, PUT_SOMEWHERE, place)
        moment = vm.timeline.note("anything", (UNDEFINED, owner), place, vm.here.path)
        if moment.why is None:
            moment.why = why
        lean = frozenset({Gap(Assumption.NO_OTHER_PART, vm.reports.findings.reason(why))})
        vm.notes.replaced.update({id(part): (part, lean) for part in parts})


def _parts(owner: Value) -> Iterator[Value]:
    """The parts of a module, or of all that are in what was taken from one: it may be any of them."""
    seen, stack = {id(owner)}, [owner]
    while stack and len(seen) < MANY:
        value = stack.pop()
        inside = [part for _, part in children(value) if type(part) in PARTS]
        yield from inside
        if isinstance(value, (Unknown, Seq)):
            inside = [*(value.holds if isinstance(value, Unknown) else value.items)]
        elif isinstance(value, Alt):
            inside = [option for _, option in value.options]
        elif type(owner) is not Unknown:
            continue
        stack.extend(part for part in inside if id(part) not in seen)
        seen.update(map(id, inside))


def stepped_by_scaler(vm: Interpreter, told: StrangerStepped) -> None:
    """`scaler.step(optimizer)` of what isn't known to be one."""
    optimizer = told.stepped
    if isinstance(optimizer, Unknown) and id(optimizer) in vm.strangers.supposed:
        step_supposed(vm.strangers, optimizer, told.node)
    else:
        escape(vm.strangers, optimizer)


def hand_out(strangers: Strangers, value: Value, depth: int = 0) -> None:
    """Let go of a value and of all that is reached from it."""
    if type(value) in INERT:
        if type(value) is Class:
            strangers.loose[id(value)] = value
        return
    if isinstance(value, Method):
        hand_out(strangers, value.receiver, depth)
        return
    if isinstance(value, Unknown):
        let_go(strangers, value)
        if depth < 2:
            _hand_out_unknown(strangers, value, depth)
        return
    if isinstance(value, Instance):
        strangers.loose[id(value)] = value
    if isinstance(value, Tensor):
        strangers.passed_on[id(strangers.graph.history(value))] = newest_call(strangers.timeline)
        _lend(strangers.machine, value)
    elif isinstance(value, Alt):
        for _, option in value.options:
            hand_out(strangers, option, depth)
    elif isinstance(value, Bound):
        for item in (value.function, value.receiver):
            hand_out(strangers, item, depth)
    elif isinstance(value, Partial):
        for item in (value.function, *value.args, *value.kwargs.values()):
            hand_out(strangers, item, depth)
    elif isinstance(value, (Optimizer, Weights, Layer, Opaque)) and not strangers.machine.severed.backwards:
        return  # no gradient yet that could be cleared
    elif isinstance(value, (Optimizer, Weights)):
        strangers.machine.gradients.perhaps_cleared(value.leaves)
    elif isinstance(value, Group):
        hand_out(strangers, value.weights, depth)
    elif isinstance(value, (Layer, Opaque)):
        strangers.machine.gradients.perhaps_cleared(leaves(strangers.machine, value)[0])
    elif isinstance(value, (Seq, Map)):
        if not value.open and (isinstance(value, Map) or value.kind in ("list", "set")):
            strangers.trail.set(value, "open", True)
        if depth < 3:
            for item in value.items if isinstance(value, Seq) else value.items.values():
                if type(item) is not Const:
                    hand_out(strangers, item, depth + 1)
    elif isinstance(value, Instance) and depth < 2:
        if value.module and strangers.machine.severed.backwards:
            strangers.machine.gradients.perhaps_cleared(leaves(strangers.machine, value)[0])
        for item in list(value.attrs.values()):
            if type(item) is not Const and not isinstance(item, Tensor):
                hand_out(strangers, item, depth + 1)
    elif isinstance(value, Function) and depth < 2:
        if depth == 0:
            stirred(strangers, value)
        for item in _closed_over(strangers.names, value):
            hand_out(strangers, item, depth + 1)


def _lend(machine: Machine, tensor: Tensor) -> None:
    """Code that isn't known has the graph of a tensor."""
    node, why = machine.graph.history(tensor), newest_call(machine.timeline)
    machine.gradients.lent.append((next(Backward.numbers), node, machine.here.path, why))


def hand_out_callee(strangers: Strangers, callee: Value) -> None:
    """Let go of what is called: a method that isn't known has the value that it was found on."""
    hand_out(strangers, callee)
    for held in callee.holds if isinstance(callee, Unknown) else ():
        hand_out(strangers, held)


def let_gradients_go(machine: Machine, values: Sequence[Value]) -> None:
    """Code that isn't known may keep the gradients of what it gets, clear them, step it and put more in."""
    stack, seen = list(values), 0
    while stack and seen < MANY:
        value = stack.pop()
        seen += 1
        if type(value) in INERT:
            continue
        if isinstance(value, Unknown):
            if value.tensor is None:
                continue
            value = value.tensor
        if isinstance(value, Tensor):
            owner = value.grad_of or value
            node = machine.graph.history(owner)
            if owner.leaf is True:
                machine.gradients.updated.append(owner)
            if owner.leaf is False:
                machine.trail.set(owner, "retained", owner.retained or None)
            elif node.requires is False:
                machine.severed.let_go[id(node)] = node, newest_call(machine.timeline)
            elif machine.severed.backwards and owner.requires is not False:
                machine.gradients.perhaps_cleared([owner])
        elif isinstance(value, Weights):
            machine.gradients.updated.extend([*value.leaves, *one_of_these(machine, value.of)])
        elif isinstance(value, Layer):
            machine.gradients.updated.extend(leaves(machine, value)[0])
            if value.kind in LISTS and not value.open:
                machine.trail.set(value, "open", True)
        elif isinstance(value, (Seq, Map)):
            stack.extend(value.items if isinstance(value, Seq) else value.items.values())
        elif isinstance(value, Alt):
            stack.extend(option for _, option in value.options)


def may_take_out(trail: Trail, values: Sequence[Value]) -> None:
    """Code that isn't known may take out of a list what is in it, put more into a list of modules, and let an
    object forget what it has remembered."""
    within = [held for one in values if type(one) is Unknown for held in one.holds if type(held) in HOLDING]
    for part in [part for one in within if type(one) is Instance for part in one.attrs.values()]:
        if type(part) is Layer and part.kind in LISTS and not part.open:
            trail.set(part, "open", True)
    stack, seen = [*within, *(one for one in values if type(one) in HOLDING)], 0
    while stack and seen < MANY:
        value = stack.pop()
        seen += 1
        if isinstance(value, (Seq, Map)):
            held = value.items if isinstance(value, Seq) else [*value.items.values()]
            stack.extend(item for item in held if type(item) in HOLDING)
            if (isinstance(value, Map) or value.kind in ("list", "set")) and Tensor in map(type, held):
                listed = [_doubted(item) if type(item) is Tensor else item for item in held]
                whole = isinstance(value, Seq)
                trail.set(value, "items", listed if whole else dict(zip(value.items, listed, strict=True)))
        elif isinstance(value, Instance):
            stack.extend(item for item in value.attrs.values() if type(item) in HOLDING)
            _may_forget(trail, value)
        elif isinstance(value, Alt):
            stack.extend(option for _, option in value.options if type(option) in HOLDING)
        elif type(value) is Layer:
            stack.extend(part for part in (value.items or {}).values() if type(part) in HOLDING)


def _may_forget(trail: Trail, value: Instance) -> None:
    """What it has kept of what it has computed may be another by now."""
    for name, kept in list(value.attrs.items()):
        if isinstance(kept, Tensor) and kept.leaf is False:
            trail.put(value, value.attrs, name, _doubted(kept))


def _doubted(item: Value) -> Unknown:
    doubt = Unknown(DOUBT, (item,))
    doubt.part = True
    return doubt


def _hand_out_unknown(strangers: Strangers, value: Unknown, depth: int) -> None:
    """What isn't known may give away all that it is made of."""
    if value.module is not None and strangers.machine.severed.backwards:
        strangers.machine.gradients.perhaps_cleared(leaves(strangers.machine, value.module)[0])
    if value.children:
        _stir(strangers.trail, value)
    if value.tensor is not None:
        _lend(strangers.machine, value.tensor)
    for held in value.holds:
        if type(held) is not Const and not isinstance(held, Tensor):
            hand_out(strangers, held, depth + 1)


def _closed_over(names: Names, function: Function) -> list[Value]:
    """What a function names around it, and can change when somebody calls it."""
    read = names_read(names.program, function.code.node)
    seen = (value for scope in function.scope.outward() for value in names.these(scope, read))
    return [value for value in seen if value is not function]


def _stir(trail: Trail, value: Unknown) -> None:
    """What an object that isn't known keeps may be something else after code that isn't known had it."""
    stack, seen = [value], 0
    while stack and seen < 16:
        owner = stack.pop()
        seen += 1
        children = owner.children or {}
        for name, child in children.items():
            if isinstance(child, Unknown) and owner in child.holds:
                if child.children:
                    stack.append(child)
                if child.requires is False and child.tensor is None and owner.requires is None:
                    trail.set(child, "requires", None)
            elif type(child) is Const and name != "training":
                trail.put(
                    owner, children, name, unknown_of(Why(What.ATTRIBUTE, f"`{name}` of an object"), child)
                )
            elif isinstance(child, (Tensor, Unknown)):
                again = isinstance(child, Unknown) and child.why is DOUBT
                trail.put(owner, children, name, child if again else _doubted(child))


def may_thaw(machine: Machine, value: Value) -> None:
    """Code that isn't known may let frozen parameters train again, of what it gets and of what that is in."""
    stack, seen = [value], 0
    while stack and seen < MANY:
        value = stack.pop()
        seen += 1
        if isinstance(value, Unknown):
            stack.extend(value.holds)
        elif isinstance(value, (Seq, Map)):
            stack.extend(value.items if isinstance(value, Seq) else value.items.values())
        elif isinstance(value, Alt):
            stack.extend(option for _, option in value.options)
        module = value.module if isinstance(value, Unknown) else value
        held = value.leaves if isinstance(value, Weights) else leaves(machine, module)[0] if module else []
        for leaf in held:
            if leaf.requires is False and (leaf.parameter or Convention.B in leaf.lean):
                set_leaf(machine, leaf, None)
