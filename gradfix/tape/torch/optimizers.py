"""Optimizers and gradient scalers."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gradfix.defects import Assumption, Role
from gradfix.defects.reasons import What
from gradfix.defects.records import NonLeaf
from gradfix.tape.domain.definitions import Instance
from gradfix.tape.domain.graph import Node, Tensor
from gradfix.tape.domain.torch_values import Group, Layer, Opaque, Optimizer, Weights
from gradfix.tape.domain.values import NONE, Alt, Const, Map, Seq, Unknown, stamp, unknown_of
from gradfix.tape.domain.why import Why, fact, whys
from gradfix.tape.interpreter.modes import kept, set_mode
from gradfix.tape.interpreter.occasions import StrangerStepped
from gradfix.tape.interpreter.origins import factory_inside
from gradfix.tape.torch.modules import leaves, one_of_these
from gradfix.tape.torch.param_groups import FAR
from gradfix.tape.torch.weights import trust_leaf

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gradfix.tape.domain.torch_values import Scaler
    from gradfix.tape.domain.values import Args, Kwargs, Value
    from gradfix.tape.interpreter.interpreter import Interpreter
    from gradfix.tape.machine.machine import Machine

KINDS = frozenset({
    "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "SparseAdam", "Adamax", "ASGD", "LBFGS", "NAdam",
    "RAdam", "RMSprop", "Rprop", "SGD", "Muon",
})  # fmt: skip


def make_optimizer(machine: Machine, kind: str, args: Args, kwargs: Kwargs, node: ast.AST) -> Value:
    """`optim.Kind(params, ...)`."""
    given = args[0] if args else kwargs.get("params", NONE)
    if isinstance(given, Seq) and given.some:
        given = Unknown(Why(What.ELEMENT, "the parameters that a test lets through"), tuple(given.items))
    known = len(machine.gradients.updated)
    held, complete = parameters(machine, given)
    if isinstance(given, Weights) and complete and not held:
        machine.severed.refusals.append(machine.here.path)
    for leaf in held:
        _no_result(machine, leaf, node)
        trust_leaf(machine, leaf)
    optimizer = Optimizer(kind, held, complete, machine.here.at(node))
    optimizer.perhaps = machine.gradients.updated[known:]
    optimizer.groups = _grouped(machine, given)
    optimizer.parts = machine.optimizers.parts(held)
    optimizer.lean = frozenset().union(*(leaf.lean for leaf in held)) if held else frozenset()
    fused = kwargs.get("fused")
    if isinstance(fused, Const):
        optimizer.fused = bool(fused.value)
    elif fused is not None:
        optimizer.fused = None
    if kind == "LBFGS":
        most = args[2] if len(args) > 2 else kwargs.get("max_iter", Const(20))
        optimizer.iterates = None if not isinstance(most, Const) else most.value != 1
    for leaf in held:
        leaf.parameter = True
    machine.trail.written.note_all(held)
    machine.optimizers.known.append(optimizer)
    machine.timeline.on = True
    return optimizer


NO_LEAF = "can't optimize a non-leaf Tensor"


def _no_result(machine: Machine, given: Tensor, node: ast.AST) -> None:
    """Report what is the result of an operation: an optimizer takes leaves only. Go on as if it were one."""
    if given.requires is not True or given.leaf is not False or given.retained is not False:
        return
    made = given.node.place
    steps = [(made, Role.MADE_NO_LEAF), (machine.here.at(node), Role.ONLY_LEAVES)]
    facts = NonLeaf(optimised=True, target=given.name, factory=factory_inside(machine.reports, given))
    machine.reports.report(
        "grad_of_non_leaf",
        made,
        steps,
        facts,
        when=machine.here.path,
        lean=given.lean,
        says=NO_LEAF,
        account=machine.leaves.accounts.of(Assumption.NOBODY_ELSE_KEEPS, ()),
    )
    leaf = Node("leaf", made, (), True)
    leaf.leaf = given
    machine.trail.set(given, "node", leaf)
    machine.trail.set(given, "leaf", True)
    machine.leaves.every_leaf.append(given)


def _grouped(machine: Machine, given: Value) -> list[Group] | None:
    """The groups that parameters are given in: one, if it isn't a list of dicts."""
    several = isinstance(given, Seq) and any(isinstance(item, (Map, Group)) for item in given.items)
    if isinstance(given, Seq) and several:
        return None if given.open else [_group(machine, item) for item in given.items]
    return [_group(machine, given)] if isinstance(given, (Weights, Tensor, Seq)) else None


def _group(machine: Machine, given: Value) -> Group:
    held, complete = parameters(machine, given)
    return Group(Weights(given, held, complete))


def parameters(machine: Machine, given: Value) -> tuple[list[Tensor], bool]:
    """The leaves that an optimizer is given, and whether they are all."""
    if isinstance(given, Weights):
        machine.gradients.updated.extend(one_of_these(machine, given.of))
        return list(given.leaves), given.complete
    if isinstance(given, Tensor):
        return [given], True
    if isinstance(given, Seq):
        parts = [parameters(machine, item) for item in given.items]
        found = list({id(leaf): leaf for inner, _ in parts for leaf in inner}.values())
        return found, all(whole for _, whole in parts) and not given.open
    if isinstance(given, Map):
        return parameters(machine, given.items["params"]) if "params" in given.items else ([], False)
    if isinstance(given, Group):
        return parameters(machine, given.weights)
    if isinstance(given, (Layer, Instance, Opaque)):
        return leaves(machine, given)
    if isinstance(given, Alt):
        found, _ = parameters(machine, Seq("list", [option for _, option in given.options]))
        return found, False
    if isinstance(given, Unknown):
        machine.gradients.updated.extend(_made_of(machine, given))
    return [], False


def _made_of(machine: Machine, given: Unknown) -> Iterator[Tensor]:
    """The leaves that an optimizer may get from a value that isn't known, by what that is made of."""
    stack, seen = [*given.holds], 0
    while stack and seen < FAR:
        value = stack.pop()
        seen += 1
        if isinstance(value, Unknown):
            stack.extend(value.holds)
        elif isinstance(value, Seq):
            stack.extend(value.items)
        else:
            yield from parameters(machine, value)[0]
            held = value.attrs.values() if isinstance(value, Instance) else ()
            yield from (one for one in held if isinstance(one, Tensor))


def optimizer_method(
    vm: Interpreter, receiver: Optimizer, name: str, args: Args, kwargs: Kwargs, node: ast.AST
) -> Value:
    """A method of an optimizer."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and name in ("step", "zero_grad"):
        vm.trail.set(receiver, "name", vm.reports.text(node.func.value) if vm.here.at_home else receiver.name)
    if name == "zero_grad":
        kept = args[0] if args else kwargs.get("set_to_none", Const(True))
        vm.machine.gradients.clear(
            receiver.leaves, vm.here.at(node), zeros=isinstance(kept, Const) and not kept.value
        )
        vm.machine.gradients.clear(receiver.perhaps, None, must=False)
        return NONE
    if name == "step":
        closure = args[0] if args else kwargs.get("closure", NONE)
        with vm.machine.gradients.within(asked=closure is not NONE):
            if closure is not NONE:
                if receiver.iterates is True:  # it writes the parameters and asks for the loss again
                    _ask(vm, closure, True, node)
                    vm.machine.gradients.step(receiver, vm.here.at(node))
                _ask(vm, closure, receiver.iterates is not False, node)
            vm.machine.gradients.step(receiver, vm.here.at(node))
        return NONE
    if name == "add_param_group" and args:
        more, complete = parameters(vm.machine, args[0])
        vm.trail.set(receiver, "leaves", receiver.leaves + more)
        vm.trail.set(receiver, "complete", receiver.complete and complete)
        if receiver.groups is not None:
            vm.trail.set(receiver, "groups", [*receiver.groups, _group(vm.machine, args[0])])
        return NONE
    if name in ("state_dict", "load_state_dict", "train", "eval"):
        return Unknown(fact("an optimizer's state"))
    vm.timeline.note("anything", (receiver, *args), vm.here.at(node), vm.here.path)
    vm.machine.gradients.clear(receiver.leaves, None, must=False)
    return Unknown(Why(What.OPERATION, f"`.{name}()` of an optimizer"))


def _ask(vm: Interpreter, closure: Value, several: bool, node: ast.AST) -> None:
    """Call a closure as optimizers do, `several` times: recording, whatever the grad mode around the step."""
    since = stamp() if several else 0
    with kept(vm), vm.names.within(since=since):
        set_mode(vm.machine, "enable_grad", True, vm.here.at(node))
        vm.call(closure, [], {}, node)


def scaler_method(
    vm: Interpreter, receiver: Scaler, name: str, args: Args, kwargs: Kwargs, node: ast.AST
) -> Value:
    """A method of a GradScaler."""
    if name == "scale" and args:
        return _scaled(vm.machine, receiver, args[0], node)
    optimizer = args[0] if args else None
    if name == "unscale_" and optimizer is not None:
        scaled = vm.machine.leaves.every_leaf
        if isinstance(optimizer, Optimizer) and optimizer.complete:
            scaled = optimizer.leaves
        vm.machine.gradients.unscale(scaled, vm.here.at(node))
    if name == "step" and isinstance(optimizer, Optimizer):
        if isinstance(node, ast.Call) and node.args and vm.here.at_home:
            vm.trail.set(optimizer, "name", vm.reports.text(node.args[0]))
        vm.trail.set(receiver, "stepped", (*receiver.stepped, optimizer))
        vm.machine.gradients.step(optimizer, vm.here.at(node))
    elif name == "step" and args:
        vm.timeline.note("may step", args[:1], vm.here.at(node), vm.here.path)
        vm.tell(StrangerStepped(args[0], node))
    elif name == "update":
        given = [leaf for one in dict.fromkeys(receiver.stepped) for leaf in one.leaves]
        vm.timeline.note("scales", given, vm.here.at(node), vm.here.path)
    return Unknown(SCALE) if name == "get_scale" else NONE


SCALE = fact("a scaler's scale")


def _scaled(machine: Machine, scaler: Scaler, value: Value, node: ast.AST) -> Value:
    if isinstance(value, Unknown) and (value.requires is not None or value.part):
        value = machine.graph.tensor_of(value)
    if not isinstance(value, Tensor):
        return unknown_of(Why(What.COMPUTED, "a scaled loss"), value)
    made = machine.recording.node("scale", machine.here.at(node), [value])
    made.may = value.node.may
    function = node.func if isinstance(node, ast.Call) else None
    name = machine.reports.text(function.value) if isinstance(function, ast.Attribute) else ""
    made.facts = {"scaler": scaler, "name": name}
    result = machine.results.output(made)
    result.shape, result.dtype = value.shape, value.dtype
    return result


def clip(machine: Machine, given: Value, limits: Sequence[Value], node: ast.AST) -> None:
    """`clip_grad_norm_(parameters)`: on gradients that are still scaled, to a limit that isn't?"""
    held, _ = parameters(machine, given)
    machine.timeline.note("changes", held, machine.here.at(node), machine.here.path)
    if any(SCALE in whys(one) for one in limits if isinstance(one, Unknown)):
        return
    for leaf in held:
        if machine.gradients.scaled(leaf, machine.here.at(node), "clip"):
            return
