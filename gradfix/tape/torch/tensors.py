"""Methods of tensors: a few by hand, all else from the effects table."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from gradfix.defects import Convention
from gradfix.defects.reasons import What
from gradfix.tape.domain.events import Add, Clear
from gradfix.tape.domain.graph import Node, Tensor
from gradfix.tape.domain.torch_values import Weights
from gradfix.tape.domain.values import NONE, NOTHING, Const, Seq, Unknown, unknown_of
from gradfix.tape.domain.why import Why, fact
from gradfix.tape.effects import table
from gradfix.tape.effects.operations import DUNDERS, having, in_place
from gradfix.tape.effects.overloads import choose
from gradfix.tape.machine.cuts import DETACHES, SCALES, made_unrecorded
from gradfix.tape.machine.relied_upon import refuses
from gradfix.tape.torch.manual_steps import hand_written_step
from gradfix.tape.torch.weights import change_others

if TYPE_CHECKING:
    from gradfix.tape.domain.values import Args, Kwargs, Value
    from gradfix.tape.interpreter.interpreter import Interpreter
    from gradfix.tape.interpreter.names import Names
    from gradfix.tape.machine.histories import Graph
    from gradfix.tape.machine.machine import Machine


def method_call(
    vm: Interpreter,
    tensor: Tensor,
    name: str,
    args: Args,
    kwargs: Kwargs,
    node: ast.AST,
    form: str = "method",
) -> Value:
    """`tensor.name(*args)`."""
    if name in KEEPS and tensor.requires is False:
        copied(_gradient_behind(tensor.node))
    if (handler := vm.handlers.methods.get(name)) is not None:
        return handler(vm.machine, tensor, args, kwargs, node)
    if (act := vm.handlers.acts.get(name)) is not None:
        return act(vm, tensor, args, kwargs, node)
    if name == "split" and args and isinstance(args[0], Seq):
        name = "split_with_sizes"
    known = table.method(name)
    picked = choose(known, [tensor, *args], kwargs) if known else None
    if picked is None:
        if name.endswith("_") and not name.endswith("__"):
            does = Why(What.OPERATION, f"`{name}`")
            vm.reports.silence(vm.here.at(node), "what this does to a tensor isn't known", does)
        return _unlisted(tensor, name, args, node)
    effect, bound = picked
    op = DUNDERS.get(name, name.strip("_")) if name.startswith("__") else name
    if effect.writes and tensor.grad_of is None:
        gathered(*args)
    if tensor.grad_of is not None and effect.writes:
        return _on_gradient(vm.machine, tensor, op, args, node)
    if effect.writes:
        hand_written_step(vm.machine, tensor, args, node)
    return vm.forks.operate(op, effect, bound, vm.here.at(node), form)


STAYS = in_place(having("stays"))
"""What is done to a gradient and leaves something of it."""
KEEPS = having("kept")
"""What is done to a gradient that is wanted as it is, and not only measured."""


def _gradient_behind(node: Node) -> Iterator[Tensor]:
    """The leaf whose gradient a tensor is, perhaps detached or moved."""
    while node.op != "grad" and len(node.parents) == 1:
        node = node.parents[0]
    if node.op == "grad" and node.facts:
        yield node.facts["of"]


def gathered(*terms: Value) -> None:
    """What is added up is wanted as it is: so is the gradient of a parameter."""
    copied(leaf for term in terms for leaf in gradient_of(term) if leaf.parameter)


def gradient_of(value: Value) -> Sequence[Tensor]:
    """The leaves whose gradient a value is, perhaps: one stands for those of many."""
    if isinstance(value, Tensor):
        return [] if value.grad_of is None else [value.grad_of]
    if isinstance(value, Unknown) and value.origin == "grad":
        return [leaf for held in value.holds if isinstance(held, Weights) for leaf in held.leaves]
    return []


def copied(leaves: Iterable[Tensor]) -> None:
    """Somebody keeps the gradients that these leaves have got."""
    for leaf in leaves:
        for event in leaf.gradient().events:
            if isinstance(event, Add):
                event.backward.kept = True


def _unlisted(tensor: Tensor, name: str, args: Args, node: ast.AST) -> Value:
    """A method that the table doesn't list: what went in may be in its result, and may be written."""
    result = unknown_of(Why(What.OPERATION, f"`.{name}()` isn't known"), tensor, *args)
    result.part = True
    return result


def _on_gradient(machine: Machine, gradient: Tensor, op: str, args: Args, node: ast.AST) -> Value:
    """An in-place operation on a `.grad`: zeroing clears it, filling gives it another, the rest leaves it."""
    leaf = gradient.grad_of
    replaced = op == "mul_" or op in ANEW
    if leaf is not None and (op == "zero_" or (replaced and zero(args))):
        machine.gradients.clear([leaf], machine.here.at(node), must=True, zeros=True)
    elif leaf is not None and op not in STAYS and not _number(args):
        machine.gradients.clear(
            [leaf], machine.here.at(node), must=False
        )  # by what isn't known, which may be zero
    elif leaf is not None and op in SCALES and _number(args):
        _changed(machine, leaf, node)  # of nothing it makes nothing
    elif leaf is not None:
        filled(machine, leaf, node)
    return gradient


ANEW = in_place(having("overwrites"))


def _number(args: Args) -> bool:
    return bool(args) and isinstance(args[0], Const)


def filled(machine: Machine, leaf: Tensor, node: ast.AST) -> None:
    """Something is written into a gradient: where it was cleared before, that may be what the step is for."""
    events = leaf.gradient().events
    _changed(machine, leaf, node)
    if events and isinstance(events[-1], Clear):
        machine.gradients.clear([leaf], machine.here.at(node), must=False)


def _changed(machine: Machine, leaf: Tensor, node: ast.AST) -> None:
    machine.timeline.note("changes", (leaf,), machine.here.at(node), machine.here.path)


def zero(args: Args) -> bool:
    """Whether a gradient is filled with zeros."""
    return bool(args) and isinstance(args[0], Const) and args[0].value == 0


def _flag(kwargs: Kwargs, args: Args, name: str, position: int) -> Value:
    return kwargs.get(name, args[position] if len(args) > position else NONE)


def requires_grad_in_place(
    vm: Interpreter, tensor: Tensor, args: Args, kwargs: Kwargs, node: ast.AST
) -> Value:
    set_requires_grad(
        vm.names, tensor, _flag(kwargs, args, "requires_grad", 0) if args or kwargs else Const(True), node
    )
    return tensor


def _surely_recorded(machine: Machine, tensor: Tensor, node: ast.AST) -> None:
    """What may be a result stays one where it is: that it requires grad doesn't make it a leaf, but takes
    no convention any more."""
    made = Node("requires_grad_", machine.here.at(node), (tensor.node,), True)
    made.may, made.lean = True, NOTHING if tensor.requires else tensor.lean
    machine.trail.set(tensor, "node", made)
    machine.trail.set(tensor, "lean", made.lean)
    machine.trail.set(tensor, "requires", True)


def set_requires_grad(names: Names, tensor: Tensor, value: Value, node: ast.AST) -> None:
    """`x.requires_grad = value`, on a leaf or on a result that lost its graph."""
    wanted = bool(value.value) if isinstance(value, Const) and not _some_of_many(names, tensor) else None
    supposed = tensor.leaf is None and (tensor.requires is None or (tensor.requires is True and tensor.lean))
    if wanted is True and supposed:
        _surely_recorded(names.machine, tensor, node)
        return
    if wanted is tensor.requires:
        return
    if made_unrecorded(names.machine.graph, tensor):
        refuses(names.machine.graph, names.here.at(node))
    if wanted is True and tensor.leaf is not False:
        made = Node("leaf", tensor.place, (tensor.node,), True)
        made.lean = NOTHING if tensor.node.cut in DETACHES else tensor.lean
        if tensor.node.parents:
            made.cut, made.cut_place = "requires_grad", names.here.at(node)
            made.facts = {
                "target": names.machine.operations.target(names.here.at(node)).removesuffix(".requires_grad")
            }
        made.leaf = tensor
        names.trail.set(tensor, "node", made)
        names.trail.set(tensor, "requires", True)
        names.trail.set(tensor, "lean", made.lean)
        names.trail.set(tensor, "leaf", True)
        names.machine.leaves.every_leaf.append(tensor)
    elif wanted is not True and tensor.leaf is not False:
        if tensor.parameter:
            names.machine.leaves.told[id(tensor)] = tensor
        names.trail.set(tensor, "requires", wanted)
        made = Node("leaf", tensor.place, (), wanted)
        made.leaf, made.path, made.facts = tensor, names.here.path, {"frozen": names.here.at(node)}
        names.trail.set(tensor, "node", made)
    change_others(names.machine, tensor, wanted)


def _some_of_many(names: Names, tensor: Tensor) -> bool:
    """Whether a leaf stands for all parameters of a module, and a test in a loop has picked some."""
    loops = names.frame.loops
    return (
        tensor.parameter and Convention.B in tensor.lean and bool(loops) and loops[-1].path != names.here.path
    )


def property_call(machine: Machine, tensor: Tensor, args: Args, kwargs: Kwargs, node: ast.AST) -> Value:
    """Facts about a tensor that involve no gradient."""
    name = called(node, "")
    if name == "size" and tensor.shape and None not in tensor.shape:
        if args and isinstance(args[0], Const) and isinstance(args[0].value, int):
            if -len(tensor.shape) <= args[0].value < len(tensor.shape):
                return Const(tensor.shape[args[0].value])
        elif not args:
            return Seq("tuple", [Const(size) for size in tensor.shape])
    if name in ("dim", "ndimension") and tensor.shape is not None and None not in tensor.shape:
        return Const(len(tensor.shape))
    size = Unknown(fact("a size"))
    size.about = tensor.storage
    return size


def untracked_write(machine: Machine, tensor: Tensor, args: Args, kwargs: Kwargs, node: ast.AST) -> Value:
    name, place = called(node, ""), machine.here.at(node)
    if name == "set_" and machine.operations.refuses(tensor, [tensor, *args], name, place):
        return tensor
    if name in ("set_", "resize_"):
        machine.results.other_memory(tensor)
    why = Why(What.OPERATION, f"`{name}`")
    machine.reports.silence(machine.here.at(node), "what memory a tensor shows from here on isn't known", why)
    return tensor


def shared(machine: Machine, tensor: Tensor, args: Args, kwargs: Kwargs, node: ast.AST) -> Value:
    """The same tensor, in memory that others see as well."""
    return tensor


def called(node: ast.AST, otherwise: str) -> str:
    """The name of the method that is called, where it is written as a call."""
    return (
        node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else otherwise
    )


def in_graph(graph: Graph, value: Value) -> Value:
    """An unknown that is known to be a tensor, as that tensor."""
    if isinstance(value, Unknown) and (value.tensor is not None or value.requires is True):
        return graph.tensor_of(value)
    return value
