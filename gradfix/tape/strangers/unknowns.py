"""Calls of what isn't known: by polarity they may do anything to their arguments, and nothing for sure."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gradfix.defects.reasons import What
from gradfix.tape.domain.definitions import Instance
from gradfix.tape.domain.graph import Node, Tensor, upstream
from gradfix.tape.domain.torch_values import Layer, Mode, Opaque, Weights
from gradfix.tape.domain.values import NONE, TRUE, Alt, Const, External, Seq, Unknown
from gradfix.tape.domain.why import Why, fact
from gradfix.tape.effects import table
from gradfix.tape.effects.frameworks import CALL
from gradfix.tape.effects.operations import also_in_place, having
from gradfix.tape.interpreter.grad_switches import SWITCHES
from gradfix.tape.interpreter.granted import UNKNOWN_METHOD
from gradfix.tape.interpreter.modes import lose_mode, may_have_set, of_torch, unbound
from gradfix.tape.interpreter.occasions import ModuleCleared
from gradfix.tape.machine.account import newest_call
from gradfix.tape.strangers.assumed_optimizers import clear_supposed, doubted, step_supposed
from gradfix.tape.strangers.assumed_steps import BY_USE
from gradfix.tape.strangers.data_alone import from_elsewhere, may_be_told
from gradfix.tape.strangers.framework_objects import hand_over, unknown_host
from gradfix.tape.strangers.handed_out import (
    hand_out,
    hand_out_callee,
    let_gradients_go,
    may_take_out,
    may_thaw,
)
from gradfix.tape.strangers.imported_modules import may_clear_imported
from gradfix.tape.strangers.kept import keep, kept, may_freeze, may_set_any, use_again
from gradfix.tape.strangers.opaque_weights import keep_weights
from gradfix.tape.strangers.own_forwards import passes_by
from gradfix.tape.strangers.reaching import Reaching
from gradfix.tape.torch.conversions import cut_tensor, number
from gradfix.tape.torch.distributions import PACKAGE, distribution_method
from gradfix.tape.torch.modules import freeze, leaves, opaque, set_training
from gradfix.tape.torch.param_groups import some_gradient, written
from gradfix.tape.torch.tensors import KEEPS, copied, filled, gathered, method_call, zero
from gradfix.tape.torch.walks import run_backward
from gradfix.tape.torch.weights import set_leaf

if TYPE_CHECKING:
    from gradfix.tape.domain.trail import Trail
    from gradfix.tape.domain.values import Args, Kwargs, Value
    from gradfix.tape.interpreter.interpreter import Interpreter
    from gradfix.tape.interpreter.state import Strangers
    from gradfix.tape.machine.machine import Machine

CUTS = having("converts") | {"detach"}
MODULES = (Layer, Instance, Opaque)
MANY = 16
"""How many things in a list are looked at one by one."""
MOVES = having("moves") & having("of-modules")


def call_unknown(vm: Interpreter, callee: Value, args: Args, kwargs: Kwargs, node: ast.AST) -> Value:
    """Call a value that isn't known to be anything."""
    if isinstance(callee, Unknown) and (callee.module is not None or callee.built):
        return call_opaque(vm, opaque(vm.machine, callee), args, kwargs, node)
    if isinstance(callee, Unknown) and callee.origin.startswith(PACKAGE):
        drawn = distribution_method(vm.machine, callee, args, node)
        if drawn is not None:
            return drawn
    if isinstance(node, ast.Call) and isinstance(callee, External):
        hand_over(vm, callee.path, args, kwargs, node)
    elif isinstance(node, ast.Call) and isinstance(callee, Unknown) and callee.origin:
        framework = unknown_host(vm, callee, CALL, args, kwargs, node)
        if framework is not None:
            return framework
    given = [*args, *kwargs.values()]
    place = vm.here.at(node)
    before = kept(vm.strangers, callee) if Reaching.stranger(callee) else []
    vm.timeline.note("anything", (callee, *given, *before), place, vm.here.path)
    use_again(vm.strangers, before)
    doubted(vm.strangers, node, newest_call(vm.timeline))
    hand_out_callee(vm.strangers, callee)
    for value in given:
        hand_out(vm.strangers, value)
    may_clear_imported(vm.strangers)
    for one in callee.holds if isinstance(callee, Unknown) else ():
        tensor = one.tensor if isinstance(one, Unknown) else one
        if isinstance(tensor, Tensor) and vm.grad_mode.grad is not True:
            tensor.storage.lent = True
        if isinstance(one, (Layer, Instance)):  # by whatever method
            set_training(vm.notes, one, None, UNKNOWN_METHOD)
    if any(map(_sets_mode, given)):  # who is given a mode enters it: here, or somewhere else
        lose_mode(vm.machine, entered=True)
    if Reaching.stranger(callee):
        reached = [*(callee.holds if isinstance(callee, Unknown) else ()), *given]
        let_gradients_go(vm.machine, reached)
        may_take_out(vm.trail, reached)
        for value in given:
            if isinstance(value, Instance) and not value.module:
                may_set_any(vm.trail, value)
        if vm.running.is_statement(node):
            keep(vm.strangers, callee, given)
            may_freeze(vm.strangers, [one for one in given if isinstance(one, (*MODULES, Weights))])
            _for_its_effect(vm, callee, reached)
            _may_put_in(vm.trail, reached, args, node)
            if _may_be_switch(vm, node, given):
                lose_mode(vm.machine)
        if not isinstance(callee, External) or vm.running.is_statement(node):
            may_have_set(vm)
    for value in (callee, *given) if vm.machine.leaves.froze else ():
        may_thaw(vm.machine, value)
    unfollowed = Why(What.IMPORT if isinstance(callee, External) else What.CALL, "", place)
    result = Unknown(unfollowed, tuple(given))
    vm.strangers.results[id(result)] = (result, node, callee)
    learnt = vm.machine.leaves.asked and any(map(vm.machine.leaves.may_learn, (callee, *given)))
    if learnt or _asked_to_learn(node):
        vm.machine.leaves.asked[id(result)] = result
    unrecorded = vm.grad_mode.grad is False and vm.grad_mode.grad_off[1] is not None
    owners = [one for one in getattr(callee, "holds", ()) if isinstance(one, (Tensor, Unknown))]
    if unrecorded and isinstance(callee, Unknown) and not _may_hand_back(vm, callee, [*owners, *given]):
        result.made, result.requires, result.lean = _unrecorded(vm.machine, given, node), False, BY_USE
    result.part = True
    result.method = any(isinstance(one, Tensor) for one in owners)
    if isinstance(callee, (External, Unknown)):
        result.origin = callee.path if isinstance(callee, External) else callee.origin
        if isinstance(callee, Unknown):
            result.holds = (*result.holds, *callee.holds)
    return result


def _may_hand_back(vm: Interpreter, callee: Value, given: Sequence[Value]) -> bool:
    """Whether a call was given what is or may be in a graph: it may return that as it is, recorded or not.
    A function that somebody imports has no weights of its own, by which what it returns would have one."""
    if from_elsewhere(callee) and any(_made_elsewhere(vm.strangers, one) for one in given):
        return True
    nodes = [node for value in given for node in vm.graph.nodes(value)]
    met = [*upstream(nodes, lambda node: node.parents if node.may or node.requires is None else ())]
    if any(node.requires is True or (node.requires is None and node.leaf is not None) for node in met):
        return True
    values = [*given, *(node.facts["value"] for node in met if node.facts and "value" in node.facts)]
    return any(map(vm.machine.leaves.may_learn, values))


def _made_elsewhere(strangers: Strangers, value: Value) -> bool:
    """Whether a value is what a call that isn't known has returned, and may be a leaf."""
    if not isinstance(value, Unknown) or id(value) not in strangers.results:
        return False
    return value.requires is None and value.module is None


def _sets_mode(value: Value) -> bool:
    """Whether a value sets the grad mode where it is entered, or one of its alternatives does."""
    ways = [one for _, one in value.options] if isinstance(value, Alt) else [value]
    return any(isinstance(one, Mode) for one in ways)


def _asked_to_learn(node: ast.AST) -> bool:
    """Whether a call asks for what requires grad."""
    told = node.keywords if isinstance(node, ast.Call) else ()
    return any(getattr(one.value, "value", None) is not False for one in told if one.arg == "requires_grad")


def _for_its_effect(vm: Interpreter, callee: Value, reached: Sequence[Value]) -> None:
    """A call whose result nobody wants may switch something: recording, where it is one of torch's own, or a
    leaf."""
    if of_torch(callee):
        lose_mode(vm.machine)
    may_be_told(vm.strangers, reached)
    for value in reached:
        _may_let_go(vm, value)


def _may_put_in(trail: Trail, reached: Sequence[Value], args: Args, node: ast.AST) -> None:
    """What is given a chain of modules and one that is made for it may put that in, anywhere."""
    written = node.args if isinstance(node, ast.Call) else []
    made = [one for one, given in zip(written, args, strict=False) if _of_modules(given)]
    if any(isinstance(one, (ast.Call, ast.List, ast.Tuple)) for one in made):
        for chain in _chains(reached):
            if chain.items is not None and not chain.open:
                trail.set(chain, "open", True)


def _chains(reached: Sequence[Value]) -> Iterator[Layer]:
    """The containers of modules among some values, and those of a module of which one may be a part."""
    for value in reached:
        if isinstance(value, Layer):
            yield value
        for owner in value.holds if isinstance(value, Unknown) else ():
            if isinstance(owner, Instance):
                yield from (part for part in owner.attrs.values() if isinstance(part, Layer))


def _of_modules(given: Value) -> bool:
    within = given.items if isinstance(given, Seq) else [given]
    return any(isinstance(one, (Layer, Opaque, Instance)) for one in within)


def _may_let_go(vm: Interpreter, value: Value) -> None:
    """A leaf may not require grad any more, a result may be out of its graph."""
    if isinstance(value, Alt):
        vm.forks.on_each(value, lambda one: _may_let_go(vm, one))
    elif isinstance(value, Seq):
        for item in value.items[:MANY]:
            _may_let_go(vm, item)
    elif isinstance(value, Tensor) and value.leaf is True and value.requires is True:
        set_leaf(vm.machine, value, None)
    elif isinstance(value, Tensor) and value.requires is not False and value.leaf is not True:
        _may_detach(vm, value)


def _may_detach(vm: Interpreter, owner: Tensor) -> None:
    """What isn't known, called for its effect, may take a result out of its graph."""
    made = Node("unknown", owner.place, (vm.graph.history(owner),), None)
    made.may, made.path = True, vm.here.path
    if owner.leaf is False or "handed" in (owner.node.facts or {}):  # what may be a leaf keeps its gradient
        made.facts = {"handed": True}
    vm.trail.set(owner, "node", made)
    vm.trail.set(owner, "requires", None)
    vm.trail.set(owner, "leaf", None)


def _may_be_switch(vm: Interpreter, node: ast.AST, given: Sequence[Value]) -> bool:
    """Whether nothing binds the name of what is called and all that it is told is yes or no, or may be: that
    is how recording is turned on and off."""
    told = [type(one) is Unknown or (type(one) is Const and type(one.value) is bool) for one in given]
    if told != [True] or not isinstance(node, ast.Call):
        return False
    match node.func:
        case ast.Call(ast.Name("getattr"), [_, name]) if not isinstance(name, ast.Constant):
            return True  # of whatever module it is
    return unbound(vm.names, node.func)


def _unrecorded(machine: Machine, given: Sequence[Value], node: ast.AST) -> Node:
    """What a call that isn't known returns where nothing is recorded: whatever was behind it is cut off."""
    behind = Node(
        "unknown", None, tuple(inner for value in given for inner in machine.graph.nodes(value)), None
    )
    behind.may = True
    made = Node("call", machine.here.at(node), (behind,), False)
    made.cut, made.cut_place = machine.grad_mode.grad_off
    made.path, made.lean = machine.here.path, BY_USE
    return made


def call_opaque(
    vm: Interpreter, module: Opaque, args: Args, kwargs: Kwargs, node: ast.AST, *, sure: bool = True
) -> Value:
    """Call a module whose class isn't known: it requires grad through its weights (convention B).

    What another method of it returns may come from its weights, or may be data that it has prepared.
    """
    given = [*args, *kwargs.values()]
    for value in given:
        if not isinstance(value, Tensor):
            hand_out(vm.strangers, value)
        elif value.requires is False:  # it may be told to require grad
            let_gradients_go(vm.machine, [value])
    made = vm.machine.recording.node("module", vm.here.at(node), [*leaves(vm.machine, module)[0], *given])
    made.may = not sure
    if made.requires is True and passes_by(module.of):
        made.requires, made.facts = None, {"past": True}
    if made.requires is True and not sure:
        made.requires = None
    if made.requires is False and _holds_others(module.of):
        made.requires = None
    if made.requires is True:
        made.lean = made.lean | module.lean
        made.saves = True
        keep_weights(vm.machine, module, made, given)
    result = Unknown(Why(What.MODULE), tuple(given), requires=made.requires, lean=made.lean)
    result.made = made
    return result


def _holds_others(module: Value) -> bool:
    """Whether something that isn't known was put into a module, which may have parameters of its own."""
    stack, seen = [module], set[int]()
    while stack:
        owner = stack.pop()
        seen.add(id(owner))
        for child in (owner.children or {}).values() if isinstance(owner, Unknown) else ():
            if isinstance(child, Unknown) and child.module is None and owner not in child.holds:
                return True
            stack.extend([child] if id(child) not in seen else [])
    return False


def unknown_method(
    vm: Interpreter, receiver: Unknown, name: str, args: Args, kwargs: Kwargs, node: ast.Call
) -> Value:
    """A method of what isn't known: what its name says where only one thing has it."""
    if (
        receiver.children is not None
        and name in receiver.children
        and not isinstance(receiver.children[name], Unknown)
    ):
        return vm.call(receiver.children[name], args, kwargs, node)
    framework = unknown_host(vm, receiver, name, args, kwargs, node)
    if framework is not None:
        return framework
    if receiver.origin == "grad":
        return _gradient_method(vm.machine, receiver, name, args, node)
    if name.endswith("_"):
        gathered(*args)
        written(vm.machine, receiver, node)
    if name in SWITCHES:  # it may be one of those that it was made of
        may_be_told(vm.strangers, [receiver])
        for held in receiver.holds:
            _may_let_go(vm, held)
    if name == "backward":
        return run_backward(vm, vm.graph.tensor_of(receiver), _backward_options(args, kwargs), node)
    if name in ("parameters", "named_parameters"):
        module = opaque(vm.machine, receiver, node)
        return Weights(module, *leaves(vm.machine, module), named=name == "named_parameters")
    if name == "zero_grad" and receiver.module is not None:
        vm.tell(ModuleCleared(node))
    if name in ("step", "zero_grad") and _as_optimizer(vm.strangers, receiver, name, args, node):
        return NONE
    if name == "requires_grad_" and _told(vm.machine, receiver, args, kwargs):
        return receiver
    if receiver.tensor is not None or receiver.requires is True or _tensor_only(name):
        return _as_tensor(vm, receiver, name, args, kwargs, node)
    if name in MOVES:
        return _moved(receiver)
    return _of_object(vm, receiver, name, args, kwargs, node)


def _of_object(
    vm: Interpreter, receiver: Unknown, name: str, args: Args, kwargs: Kwargs, node: ast.Call
) -> Value:
    """A method of what is no tensor, or may be none."""
    if name in ("train", "eval", "apply"):
        vm.trail.learn(receiver, "requires", None)
        if receiver.module is not None:
            set_training(vm.notes, receiver.module, name == "train")
        _told_mode(vm, receiver, name, args)
        return receiver
    if receiver.module is not None and name not in ("state_dict", "load_state_dict", "modules", "children"):
        if vm.running.is_statement(node) and name != "forward":  # for what it does to the module
            vm.timeline.note("anything", (receiver, *args), vm.here.at(node), vm.here.path)
            vm.machine.gradients.perhaps_cleared(leaves(vm.machine, receiver.module)[0])
        return call_opaque(vm, receiver.module, args, kwargs, node, sure=name == "forward")
    if name in OF_TEXTS and not kwargs and all(isinstance(one, Const) for one in args):
        return _of_text(vm, receiver, name, args, node)
    return call_unknown(vm, _member(receiver, name), args, kwargs, node)


OF_TEXTS = frozenset({
    "find", "rfind", "startswith", "endswith", "lower", "upper", "casefold", "capitalize", "title", "strip",
    "lstrip", "rstrip", "removeprefix", "removesuffix", "isdigit", "isnumeric", "isalpha",
})  # fmt: skip
"""What is asked of texts: the answer is the same each time."""


def _of_text(vm: Interpreter, receiver: Unknown, name: str, args: Args, node: ast.Call) -> Value:
    asked = f"{name}({', '.join(repr(one.value) for one in args if isinstance(one, Const))})"
    if receiver.children is None or asked not in receiver.children:
        answer = call_unknown(vm, _member(receiver, name), args, {}, node)
        vm.trail.learn_part(receiver, "children", asked, answer)
        return answer
    return receiver.children[asked]


def _told_mode(vm: Interpreter, receiver: Unknown, name: str, args: Args) -> None:
    """`train()` and `eval()` say what `.training` reads from then on."""
    if name == "apply":
        return
    if receiver.children is None:
        vm.trail.learn(receiver, "children", {})
    mode = Const(name == "train") if not args else Unknown(fact("whether it trains"))
    assert receiver.children is not None
    vm.trail.put(receiver, receiver.children, "training", mode)


def _as_optimizer(strangers: Strangers, receiver: Unknown, name: str, args: Args, node: ast.Call) -> bool:
    """Step or clear what may be an optimizer, or clear a module; whether it was taken so."""
    if name == "zero_grad" and receiver.module is not None:
        strangers.machine.gradients.clear(
            leaves(strangers.machine, receiver.module)[0], strangers.here.at(node)
        )
        return True
    if name == "zero_grad":
        strangers.machine.gradients.clear(strangers.machine.leaves.every_leaf, None, must=False)
        clear_supposed(strangers, receiver, node)
        return True
    if receiver.module is None and not args:
        step_supposed(strangers, receiver, node)
        return True
    stepped = args[0] if len(args) == 1 else None
    if isinstance(stepped, Unknown) and id(stepped) in strangers.supposed:
        step_supposed(strangers, stepped, node)
        return True
    return False


def _told(machine: Machine, receiver: Unknown, args: Args, kwargs: Kwargs) -> bool:
    """`.requires_grad_(wanted)`: what is called or asked for its parameters afterwards is a module."""
    if receiver.tensor is not None or receiver.requires is not None:
        return False
    wanted = args[0] if args else kwargs.get("requires_grad", TRUE)
    within = any(isinstance(held, Unknown) and held.module is not None for held in receiver.holds)
    if receiver.module is None and not within and isinstance(wanted, Const) and wanted.value:
        return False
    module = opaque(machine, receiver)
    freeze(machine, Weights(module, *leaves(machine, module)), wanted, None)
    return True


def _member(receiver: Unknown, name: str) -> Unknown:
    member = Unknown(Why(What.ATTRIBUTE, f"`{name}`", None, receiver.why), (receiver,))
    member.origin = f"{receiver.origin}.{name}" if receiver.origin else ""
    return member


MEASURES = frozenset({"dim", "numel", "nelement", "ndimension"})
"""How much a tensor holds."""


def _tensor_only(name: str) -> bool:
    """Whether only tensors have a method of this name."""
    return (
        name in CUTS
        or name in MEASURES
        or (name.endswith("_") and not name.endswith("__") and bool(table.method(name)))
    )


def _as_tensor(
    vm: Interpreter, receiver: Unknown, name: str, args: Args, kwargs: Kwargs, node: ast.Call
) -> Value:
    if receiver.tensor is None and receiver.requires is None and name in CUTS:
        tensor = vm.graph.tensor_of(receiver)
        if name != "detach":
            vm.trail.learn(receiver, "tensor", None)
        return (
            cut_tensor(vm.machine, tensor, "detach", node)
            if name == "detach"
            else number(vm.machine, tensor, name, node)
        )
    if name in ("train", "eval"):
        vm.trail.learn(receiver, "tensor", None)  # a module, as only they have these
        vm.trail.learn(receiver, "requires", None)
        return receiver
    if not (table.method(name) or name in CUTS or name in MOVES or name in TENSOR_METHODS):
        return call_unknown(vm, _member(receiver, name), args, kwargs, node)
    return method_call(vm, vm.graph.tensor_of(receiver), name, args, kwargs, node)


TENSOR_METHODS = MEASURES | {"size", "register_hook", "type"}
"""Methods of tensors that nothing is recorded of."""


def _moved(receiver: Unknown) -> Unknown:
    """`.to(device)`: the same thing elsewhere; a copy of a tensor, the same module."""
    if receiver.module is not None:
        return receiver
    moved = Unknown(receiver.why, receiver.holds, receiver.requires, receiver.lean)
    moved.origin, moved.part, moved.made = receiver.origin, receiver.part, receiver.made
    moved.built = receiver.built
    return moved


STAYS = also_in_place(having("detaches")) | {"requires_grad_"}
"""What is done to a gradient and gives back the same."""


def _gradient_method(machine: Machine, receiver: Unknown, name: str, args: Args, node: ast.AST) -> Value:
    group = receiver.holds[0] if receiver.holds else None
    if isinstance(group, Weights) and name in ("zero_", "fill_"):
        machine.gradients.clear(group.leaves, machine.here.at(node), must=name == "zero_" or zero(args))
    elif isinstance(group, Weights) and name.endswith("_"):
        for leaf in group.leaves:
            filled(machine, leaf, node)
    elif isinstance(group, Weights) and name in KEEPS:
        copied(group.leaves)
    elif isinstance(group, Unknown) and name.endswith("_"):
        some_gradient(machine, group)
    if name in STAYS:
        return receiver
    return Unknown(Why(What.COMPUTED, "a gradient"), receiver.holds, requires=False)


def _backward_options(args: Args, kwargs: Kwargs) -> dict[str, Value]:
    return {**dict(zip(("gradient", "retain_graph", "create_graph", "inputs"), args, strict=False)), **kwargs}
