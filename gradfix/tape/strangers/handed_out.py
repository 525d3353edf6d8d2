"""What code that isn't known may do to a value that it is handed."""

from __future__ import annotations

from gradfix.defects import Convention
from gradfix.tape.domain.definitions import Class, Function, Instance, Method, Scope
from gradfix.tape.domain.events import Backward
from gradfix.tape.domain.graph import Number, Tensor
from gradfix.tape.domain.torch_values import Group, Layer, Opaque, Optimizer, Weights
from gradfix.tape.domain.values import Const, External, Map, Range, Seq, Unknown, Value
from gradfix.tape.interpreter.aliases import names_read
from gradfix.tape.interpreter.interpreter import Interpreter
from gradfix.tape.interpreter.occasions import StrangerStepped
from gradfix.tape.strangers.assumed_optimizers import doubted, let_go, step_supposed
from gradfix.tape.torch.modules import leaves, set_leaf

DOUBT = "what a call may have put elsewhere"
INERT = frozenset({Const, External, Range, Number, Class, Method})
"""What code that isn't known can't change."""


def escape(vm: Interpreter, value: Value) -> None:
    """Hand a value to code that isn't known."""
    doubted(vm, None)
    hand_out(vm, value)


def stepped_by_scaler(vm: Interpreter, told: StrangerStepped) -> None:
    """`scaler.step(optimizer)` of what isn't known to be one."""
    optimizer = told.stepped
    if isinstance(optimizer, Unknown) and id(optimizer) in vm.supposed:
        step_supposed(vm, optimizer, told.node)
    else:
        escape(vm, optimizer)


def hand_out(vm: Interpreter, value: Value, depth: int = 0) -> None:
    """Let go of a value and of all that is reached from it."""
    if type(value) in INERT:
        return
    if isinstance(value, Unknown):
        let_go(vm, value)
        if depth < 2:
            _hand_out_unknown(vm, value, depth)
    elif isinstance(value, Tensor):
        vm.handed.append(value)
        vm.passed_on.add(id(vm.history(value)))
        vm.lent.append((next(Backward.numbers), vm.history(value), vm.path))
    elif isinstance(value, (Optimizer, Weights, Layer, Opaque)) and not vm.backwards:
        return  # no gradient yet that could be cleared
    elif isinstance(value, (Optimizer, Weights)):
        vm.clear(value.leaves, None, must=False)
    elif isinstance(value, Group):
        hand_out(vm, value.weights, depth)
    elif isinstance(value, (Layer, Opaque)) or (isinstance(value, Instance) and value.module):
        if not vm.backwards:
            return
        vm.clear(leaves(vm, value)[0], None, must=False)
    elif isinstance(value, (Seq, Map)):
        if not value.open and (isinstance(value, Map) or value.kind in ("list", "set")):
            vm.trail.set(value, "open", True)
        if depth < 3:
            for item in value.items if isinstance(value, Seq) else value.items.values():
                hand_out(vm, item, depth + 1)
    elif isinstance(value, Instance) and depth < 2:
        for item in list(value.attrs.values()):
            if not isinstance(item, Tensor):
                hand_out(vm, item, depth + 1)
    elif isinstance(value, Function) and depth < 2:
        for item in _closed_over(vm, value):
            hand_out(vm, item, depth + 1)


def _hand_out_unknown(vm: Interpreter, value: Unknown, depth: int) -> None:
    """What isn't known may give away all that it is made of."""
    if value.children:
        _stir(vm, value)
    if value.tensor is not None:
        vm.handed.append(value.tensor)
        vm.lent.append((next(Backward.numbers), vm.history(value.tensor), vm.path))
    for held in value.holds:
        if not isinstance(held, Tensor):
            hand_out(vm, held, depth + 1)


def _closed_over(vm: Interpreter, function: Function) -> list[Value]:
    """The lists and dicts around a function that it can change when somebody calls it."""
    names = names_read(vm, function.code.node)
    scope: Scope | None = function.scope
    found: list[Value] = []
    while scope is not None and scope is not scope.globals:
        held = [value for name, value in scope.names.items() if name in names]
        found += [value for value in held if isinstance(value, (Seq, Map))]
        scope = scope.outer
    return found


def _stir(vm: Interpreter, value: Unknown) -> None:
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
                    vm.trail.set(child, "requires", None)
            elif isinstance(child, (Tensor, Unknown)):
                again = isinstance(child, Unknown) and child.why == DOUBT
                doubt = Unknown(DOUBT, child.holds if again else (child,))  # type: ignore[union-attr]
                doubt.part = True
                vm.trail.put(owner, children, name, doubt)


def may_thaw(vm: Interpreter, value: Value) -> None:
    """Code that isn't known may let frozen parameters train again, of what it gets and of what that is in."""
    stack, seen = [value], 0
    while stack and seen < 8:
        value = stack.pop()
        seen += 1
        if isinstance(value, Unknown):
            stack.extend(value.holds)
        module = value.module if isinstance(value, Unknown) else value
        held = value.leaves if isinstance(value, Weights) else leaves(vm, module)[0] if module else []
        for leaf in held:
            if leaf.requires is False and (leaf.parameter or Convention.B in leaf.lean):
                set_leaf(vm, leaf, None)
