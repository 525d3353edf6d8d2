"""Optimizers and gradient scalers."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradfix.defects import Role
from gradfix.defects.records import NonLeaf
from gradfix.tape.domain.definitions import Instance
from gradfix.tape.domain.events import Unscale
from gradfix.tape.domain.graph import Node, Tensor
from gradfix.tape.domain.torch_values import Group, Layer, Opaque, Optimizer, Scaler, Weights
from gradfix.tape.domain.values import NONE, Alt, Args, Const, Kwargs, Map, Seq, Unknown, Value
from gradfix.tape.interpreter.interpreter import Interpreter
from gradfix.tape.interpreter.modes import kept, set_mode
from gradfix.tape.interpreter.occasions import StrangerStepped
from gradfix.tape.interpreter.origins import factory_inside
from gradfix.tape.torch.modules import leaves
from gradfix.tape.torch.param_groups import FAR

KINDS = frozenset({
    "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "SparseAdam", "Adamax", "ASGD", "LBFGS", "NAdam",
    "RAdam", "RMSprop", "Rprop", "SGD", "Muon",
})  # fmt: skip


def make_optimizer(vm: Interpreter, kind: str, args: Args, kwargs: Kwargs, node: ast.AST) -> Value:
    """`optim.Kind(params, ...)`."""
    given = args[0] if args else kwargs.get("params", NONE)
    held, complete = parameters(vm, given)
    if isinstance(given, Weights) and complete and not held:
        vm.refusals.append(vm.path)
    for leaf in held:
        _no_result(vm, leaf, node)
    optimizer = Optimizer(kind, held, complete, vm.at(node))
    optimizer.groups = _grouped(vm, given)
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
    vm.optimizers.append(optimizer)
    vm.timeline.on = True
    return optimizer


NO_LEAF = "can't optimize a non-leaf Tensor"


def _no_result(vm: Interpreter, given: Tensor, node: ast.AST) -> None:
    """Report what is the result of an operation: an optimizer takes leaves only. Go on as if it were one."""
    if given.requires is not True or given.leaf is not False or given.retained is not False:
        return
    made = given.node.place
    steps = [(made, Role.MADE_NO_LEAF), (vm.at(node), Role.ONLY_LEAVES)]
    facts = NonLeaf(optimised=True, target=given.name, factory=factory_inside(vm, given))
    vm.report("grad_of_non_leaf", made, steps, facts, when=vm.path, lean=given.lean, says=NO_LEAF)
    leaf = Node("leaf", made, (), True)
    leaf.leaf = given
    vm.trail.set(given, "node", leaf)
    vm.trail.set(given, "leaf", True)
    vm.every_leaf.append(given)


def _grouped(vm: Interpreter, given: Value) -> list[Group] | None:
    """The groups that parameters are given in: one, if it isn't a list of dicts."""
    several = isinstance(given, Seq) and any(isinstance(item, (Map, Group)) for item in given.items)
    if isinstance(given, Seq) and several:
        return None if given.open else [_group(vm, item) for item in given.items]
    return [_group(vm, given)] if isinstance(given, (Weights, Tensor, Seq)) else None


def _group(vm: Interpreter, given: Value) -> Group:
    held, complete = parameters(vm, given)
    return Group(Weights(given, held, complete))


def _one_of_these(vm: Interpreter, module: Value) -> list[Tensor]:
    """The parameters of all those that a module is one of: an element of a list, it isn't known which."""
    chosen = module.of if isinstance(module, Opaque) else NONE
    held = chosen.holds if isinstance(chosen, Unknown) and chosen.part else ()
    return [leaf for one in held if isinstance(one, (Layer, Instance)) for leaf in leaves(vm, one)[0]]


def parameters(vm: Interpreter, given: Value) -> tuple[list[Tensor], bool]:
    """The leaves that an optimizer is given, and whether they are all."""
    if isinstance(given, Weights):
        vm.updated.extend(_one_of_these(vm, given.of))
        return list(given.leaves), given.complete
    if isinstance(given, Tensor):
        return [given], True
    if isinstance(given, Seq):
        parts = [parameters(vm, item) for item in given.items]
        found = list({id(leaf): leaf for inner, _ in parts for leaf in inner}.values())
        return found, all(whole for _, whole in parts) and not given.open
    if isinstance(given, Map):
        return parameters(vm, given.items["params"]) if "params" in given.items else ([], False)
    if isinstance(given, Group):
        return parameters(vm, given.weights)
    if isinstance(given, (Layer, Instance, Opaque)):
        return leaves(vm, given)
    if isinstance(given, Alt):
        found, _ = parameters(vm, Seq("list", [option for _, option in given.options]))
        return found, False
    if isinstance(given, Unknown):
        vm.updated.extend(_made_of(vm, given))
    return [], False


def _made_of(vm: Interpreter, given: Unknown) -> Iterator[Tensor]:
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
            yield from parameters(vm, value)[0]


def optimizer_method(
    vm: Interpreter, receiver: Optimizer, name: str, args: Args, kwargs: Kwargs, node: ast.AST
) -> Value:
    """A method of an optimizer."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and name in ("step", "zero_grad"):
        vm.trail.set(receiver, "name", vm.text(node.func.value) if vm.at_home else receiver.name)
    if name == "zero_grad":
        kept = args[0] if args else kwargs.get("set_to_none", Const(True))
        vm.clear(receiver.leaves, vm.at(node), zeros=isinstance(kept, Const) and not kept.value)
        return NONE
    if name == "step":
        closure = args[0] if args else kwargs.get("closure", NONE)
        with vm.within(asked=closure is not NONE):
            if closure is not NONE:
                if receiver.iterates is True:  # it writes the parameters and asks for the loss again
                    _ask(vm, closure, node)
                    vm.step(receiver, vm.at(node))
                _ask(vm, closure, node)
            vm.step(receiver, vm.at(node))
        return NONE
    if name == "add_param_group" and args:
        more, complete = parameters(vm, args[0])
        vm.trail.set(receiver, "leaves", receiver.leaves + more)
        vm.trail.set(receiver, "complete", receiver.complete and complete)
        if receiver.groups is not None:
            vm.trail.set(receiver, "groups", [*receiver.groups, _group(vm, args[0])])
        return NONE
    if name in ("state_dict", "load_state_dict", "train", "eval"):
        return Unknown("an optimizer's state")
    vm.timeline.note("anything", (receiver, *args), vm.at(node), vm.path)
    vm.clear(receiver.leaves, None, must=False)
    return Unknown(f"`.{name}()` of an optimizer")


def _ask(vm: Interpreter, closure: Value, node: ast.AST) -> None:
    """Call a closure as optimizers do: recording, whatever the grad mode around the step."""
    with kept(vm):
        set_mode(vm, "enable_grad", True, vm.at(node))
        vm.call(closure, [], {}, node)


def scaler_method(
    vm: Interpreter, receiver: Scaler, name: str, args: Args, kwargs: Kwargs, node: ast.AST
) -> Value:
    """A method of a GradScaler."""
    if name == "scale" and args:
        return _scaled(vm, receiver, args[0], node)
    optimizer = args[0] if args else None
    if name == "unscale_" and optimizer is not None:
        scaled = optimizer.leaves if isinstance(optimizer, Optimizer) else vm.every_leaf
        vm.timeline.note("changes", scaled, vm.at(node), vm.path)
        for leaf in scaled:
            leaf.gradient().events.append(Unscale(vm.path))
    if name == "step" and isinstance(optimizer, Optimizer):
        if isinstance(node, ast.Call) and node.args and vm.at_home:
            vm.trail.set(optimizer, "name", vm.text(node.args[0]))
        vm.trail.set(receiver, "stepped", (*receiver.stepped, optimizer))
        vm.step(optimizer, vm.at(node))
    elif name == "step" and args:
        vm.timeline.note("may step", args[:1], vm.at(node), vm.path)
        vm.tell(StrangerStepped(args[0], node))
    elif name == "update":
        given = [leaf for one in dict.fromkeys(receiver.stepped) for leaf in one.leaves]
        vm.timeline.note("scales", given, vm.at(node), vm.path)
    return NONE


def _scaled(vm: Interpreter, scaler: Scaler, value: Value, node: ast.AST) -> Value:
    if isinstance(value, Unknown) and (value.requires is not None or value.part):
        value = vm.tensor_of(value)
    if not isinstance(value, Tensor):
        return vm.unknown("a scaled loss", value)
    made = vm.node("scale", vm.at(node), [value])
    made.may = value.node.may
    function = node.func if isinstance(node, ast.Call) else None
    name = vm.text(function.value) if isinstance(function, ast.Attribute) else ""
    made.facts = {"scaler": scaler, "name": name}
    result = vm.output(made)
    result.shape, result.dtype = value.shape, value.dtype
    return result


def clip(vm: Interpreter, given: Value, node: ast.AST) -> None:
    """`clip_grad_norm_(parameters)`: on gradients that are still scaled?"""
    held, _ = parameters(vm, given)
    vm.timeline.note("changes", held, vm.at(node), vm.path)
    for leaf in held:
        if vm.scaled(leaf, vm.at(node), "clip"):
            return
