"""Attributes of tensors, read and written."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from gradfix.defects.reasons import What
from gradfix.tape.domain.definitions import Method
from gradfix.tape.domain.graph import Node, Storage, Tensor
from gradfix.tape.domain.paths import Equals
from gradfix.tape.domain.values import NONE, Const, Seq, Unknown
from gradfix.tape.domain.why import Why, fact
from gradfix.tape.effects import strides
from gradfix.tape.effects.operations import having
from gradfix.tape.interpreter.occasions import GradientRead, GradientSet
from gradfix.tape.machine.cuts import made_unrecorded
from gradfix.tape.machine.relied_upon import asks
from gradfix.tape.torch.conversions import cut_tensor
from gradfix.tape.torch.manual_steps import hand_written_step
from gradfix.tape.torch.tensors import filled, set_requires_grad

if TYPE_CHECKING:
    from gradfix.tape.domain.values import Value
    from gradfix.tape.interpreter.interpreter import Interpreter
    from gradfix.tape.machine.leaves import Leaves
    from gradfix.tape.machine.machine import Machine

VIEW_ATTRIBUTES = having("attribute") - {"data"}
PLAIN_ATTRIBUTES = frozenset({
    "dtype", "device", "ndim", "is_cuda", "is_leaf", "names", "layout", "itemsize", "nbytes",
    "is_sparse", "output_nr", "_version", "name", "is_meta",
})  # fmt: skip


def tensor_attribute(vm: Interpreter, owner: Tensor, name: str, node: ast.AST) -> Value:
    """An attribute of a tensor."""
    if name == "grad":
        return gradient(vm, owner, node)
    if name == "data":
        return _data(vm.machine, owner, node)
    read = READ.get(name)
    value = read(vm.machine, owner, node) if read is not None else None
    if value is not None:
        if name == "shape":
            vm.reports.findings.terms.fact_of(value, owner)
        if type(value) is Unknown and name in PLAIN_ATTRIBUTES:
            return _same_fact(vm, owner, name, value)
        return value
    if name in PLAIN_ATTRIBUTES:
        return _same_fact(vm, owner, name, Unknown(fact(f"a tensor's {name}")))
    return _looked_at(vm.machine, owner, name, node) if name in VIEW_ATTRIBUTES else Method(owner, name)


def _same_fact(vm: Interpreter, owner: Tensor, name: str, found: Unknown) -> Value:
    """What isn't known of a tensor is the same each time."""
    terms = vm.reports.findings.terms
    terms.answered(found, name, owner)
    return terms.first(found)


RECURRENT = frozenset({"lstm", "gru", "rnn"})


def _data(machine: Machine, owner: Tensor, node: ast.AST) -> Value:
    if owner.grad_of is not None:
        return owner
    if owner.node.op in RECURRENT and any(one.op == "unknown" for one in owner.node.parents):
        return Unknown(Why(What.ATTRIBUTE, "what may be a packed sequence holds"), (owner,))
    result = cut_tensor(machine, owner, "data", node)
    result.data_of = owner.data_of or owner
    result.counter = result
    return result


def _requires_grad(machine: Machine, owner: Tensor, node: ast.AST) -> Value:
    requires = machine.graph.requires(owner)
    _asked(machine, owner, node)
    if requires is not None:
        return Const(requires)
    whether = Unknown(fact("whether it requires grad"))
    machine.tested.keep_alive.append(whether)
    machine.tested.graph_tests.add((("true", id(whether)), True))
    return whether


def _grad_fn(machine: Machine, owner: Tensor, node: ast.AST) -> Value:
    """What made a tensor, for backward: nothing did where it is a leaf or requires no grad."""
    requires = machine.graph.requires(owner)
    _asked(machine, owner, node)
    if requires is False or owner.leaf is True:
        return NONE
    made = Unknown(fact("a tensor's grad_fn"))
    if requires is True and owner.leaf is False:
        made.least = 1
        return made
    machine.tested.keep_alive.append(made)
    machine.tested.graph_tests.update({(("true", id(made)), True), (Equals(("is", id(made)), None), False)})
    return made


def _shape(machine: Machine, owner: Tensor, node: ast.AST) -> Value:
    if owner.shape is not None and None not in owner.shape:
        return Seq("tuple", [Const(size) for size in owner.shape])
    return Seq("tuple", [], open=True)


def _asked(machine: Machine, owner: Tensor, node: ast.AST) -> None:
    """Note what is told otherwise where what made a tensor is recorded."""
    if made_unrecorded(machine.graph, owner):
        asks(machine.graph, machine.here.at(node))


def _is_leaf(machine: Machine, owner: Tensor, node: ast.AST) -> Value | None:
    _asked(machine, owner, node)
    return Const(owner.leaf) if owner.leaf is not None else None


def _ndim(machine: Machine, owner: Tensor, node: ast.AST) -> Value | None:
    return Const(len(owner.shape)) if owner.shape is not None and None not in owner.shape else None


def _device(machine: Machine, owner: Tensor, node: ast.AST) -> Value:
    place = Unknown(fact("a tensor's device"), (owner,))
    place.origin = "device"
    return place


def _real(machine: Machine, owner: Tensor, node: ast.AST) -> Value | None:
    return owner if owner.dtype in ("float", "double", "half") else None


def _looked_at(machine: Machine, owner: Tensor, name: str, node: ast.AST) -> Tensor:
    """`x.T` and its kin: a view."""
    made = machine.recording.node(name, machine.here.at(node), [owner])
    result = machine.results.output(made)
    result.dtype = owner.dtype
    if owner.shape is not None and name not in ("real", "imag"):
        result.shape = owner.shape[::-1] if name == "T" else (*owner.shape[:-2], *owner.shape[-2:][::-1])
    machine.results.look(result, owner, "plain")
    result.layout = None
    if name != "imag" and (steps := strides.of(owner)) is not None:
        strides.looks(result, steps[::-1] if name == "T" else (*steps[:-2], *steps[-2:][::-1]))
    return result


def _no_gradient(leaves: Leaves, owner: Tensor) -> bool:
    """Whether a tensor is one that backward leaves no gradient with."""
    return owner.requires is True and owner.leaf is False and owner.retained is False and not leaves.hooked


def gradient(vm: Interpreter, owner: Tensor, node: ast.AST) -> Value:
    """`.grad`: of a leaf what its slot holds, of anything else nothing."""
    vm.timeline.note("looks", (owner,), vm.here.at(node), vm.here.path)
    if vm.running.compared is node and node not in vm.running.demanded and owner.leaf is False:
        vm.notes.asked_for.append(owner)
        if _no_gradient(vm.machine.leaves, owner):
            return NONE
    vm.tell(GradientRead(owner, node))
    slot = owner.gradient()
    if slot.tensor is None:
        made = Node("grad", owner.place, (), False)
        made.facts = {"of": owner}
        held = slot.tensor = Tensor(made, Storage(), False, leaf=True)
        held.grad_of = owner
        held.shape, held.dtype = owner.shape, owner.dtype
    return slot.tensor


READ: dict[str, Callable[[Machine, Tensor, ast.AST], Value | None]] = {
    "requires_grad": _requires_grad,
    "grad_fn": _grad_fn,
    "shape": _shape,
    "is_leaf": _is_leaf,
    "ndim": _ndim,
    "device": _device,
    "real": _real,
}
"""How an attribute of a tensor is read; None where it isn't known."""


def store_on_tensor(
    vm: Interpreter, owner: Tensor, name: str, value: Value, node: ast.AST, augmented: bool
) -> None:
    """`x.name = value`."""
    if name == "grad":
        vm.tell(GradientSet(owner, node))
        if isinstance(value, Tensor) and value.grad_of is owner:
            filled(vm.machine, owner, node)
        else:
            vm.machine.gradients.clear([owner], vm.here.at(node), must=isinstance(value, Const))
    elif name == "data" and owner.grad_of is not None and not augmented:
        vm.machine.gradients.clear([owner.grad_of], vm.here.at(node), must=False)
    elif name == "requires_grad":
        set_requires_grad(vm.names, owner, value, node)
    elif name == "data" and not augmented:
        data = tensor_attribute(vm, owner, "data", node)
        assert isinstance(data, Tensor)
        hand_written_step(vm.machine, data, [value], node)
        vm.machine.operations.describe(
            vm.machine.recording.write(owner, vm.here.at(node), "data", silent=True), owner, vm.here.at(node)
        )
        vm.machine.results.other_memory(owner, value)
        other = isinstance(value, Tensor) and value.storage is not owner.storage  # else it is put back
        made_in = value.storage.inference if isinstance(value, Tensor) and other else None
        if made_in is None:
            owner.storage.inference = None  # it is ordinary again
        if made_in is not None and owner.view == "loose":
            vm.trail.set(owner, "storage", Storage())  # whose memory it had keeps what it was
        if made_in is not None and owner.base is None and len(vm.here.path) < 2:
            owner.storage.inference, owner.storage.inferred = made_in, vm.here.path
            vm.machine.recording.inferred = True
