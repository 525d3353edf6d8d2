"""Calls that walk the graph: `loss.backward()`, `torch.autograd.backward`, `torch.autograd.grad`."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from gradfix.defects import Convention
from gradfix.tape.domain.events import Backward
from gradfix.tape.domain.graph import Storage, Tensor
from gradfix.tape.domain.torch_values import Weights
from gradfix.tape.domain.values import NONE, NOTHING, Const, Seq, Unknown
from gradfix.tape.interpreter.inside import open_ended
from gradfix.tape.interpreter.occasions import GradientsAsked, Walked
from gradfix.tape.machine.deeds import FREED, WALKED, note
from gradfix.tape.torch.asked import gradients

if TYPE_CHECKING:
    from gradfix.tape.domain.events import Met
    from gradfix.tape.domain.values import Args, Kwargs, Value
    from gradfix.tape.interpreter.interpreter import Interpreter


USED_AS = frozenset({Convention.B})
"""What it takes that something has a graph of which gradients are asked for."""


def backward(vm: Interpreter, tensor: Tensor, args: Args, kwargs: Kwargs, node: ast.AST) -> Value:
    """`loss.backward(gradient, retain_graph, create_graph, inputs)`."""
    return run_backward(vm, tensor, _options(args, kwargs), node)


def _options(args: Args, kwargs: Kwargs) -> dict[str, Value]:
    names = ("gradient", "retain_graph", "create_graph", "inputs")
    if "retain_variables" in kwargs:  # its name in the first releases of torch
        kwargs = {**kwargs, "retain_graph": kwargs["retain_variables"]}
    return {
        **dict(zip(names, args, strict=False)),
        **{name: value for name, value in kwargs.items() if name in names or name == "**"},
    }


def run_backward(
    vm: Interpreter, tensor: Tensor, options: Kwargs, node: ast.AST, met: Met | None = None
) -> Value:
    """One backward call, however it is spelt; `met` is what the other roots of the same call have walked."""
    retain = options.get("retain_graph", NONE)
    create = options.get("create_graph", NONE)
    keeps: bool | None = False
    for option in (retain, create) if retain is NONE else (retain,):
        if not isinstance(option, Const):
            keeps = None
        elif option.value:
            keeps = True
    unseen = open_ended(options, node)
    if unseen and keeps is False:
        keeps = None
    if keeps is None and vm.here.at_home:
        note(vm.reports, node, FREED, retain, create)
    gradient = options.get("gradient", NONE)
    only: list[Tensor] | None = None
    if "inputs" in options:
        only = tensors_in(options["inputs"])
    event = Backward(vm.here.at(node), vm.here.path, keeps, virtual=False, lean=NOTHING)
    event.arms = vm.here.arms
    event.aimed = tuple(_asked_for(vm, options.get("inputs", NONE)))
    event.met = event.met if met is None else met
    vm.machine.backward.run(tensor, event, whole=gradient is NONE and not unseen, only=only)
    vm.tell(Walked(tensor, event))
    vm.trail.tick()
    return NONE


def tensors_in(value: Value) -> list[Tensor]:
    """The tensors that a value holds."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, Weights):
        return value.leaves
    if isinstance(value, Seq):
        return [tensor for item in value.items for tensor in tensors_in(item)]
    return []


def _asked_for(vm: Interpreter, value: Value) -> list[Tensor]:
    """The tensors that a backward names, and what isn't known of them as one."""
    if isinstance(value, Unknown):
        return [vm.graph.tensor_of(value)]
    if isinstance(value, Seq):
        return [tensor for item in value.items for tensor in _asked_for(vm, item)]
    return tensors_in(value)


def backward_from_roots(vm: Interpreter, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    names = ("gradient", "retain_graph", "create_graph")
    roots = args[0] if args else kwargs.get("tensors", NONE)
    options = {**dict(zip(names, args[1:], strict=False)), **kwargs}
    if "grad_tensors" in options:
        options["gradient"] = options.pop("grad_tensors")
    if vm.here.at_home:
        note(vm.reports, node, WALKED, roots)
    met: Met = {}
    for item in roots.items if isinstance(roots, Seq) else [roots]:
        vm.forks.each(item, partial(_from_root, vm, options=options, node=node, met=met))
    return NONE


def _from_root(vm: Interpreter, root: Value, *, options: Kwargs, node: ast.Call, met: Met) -> Value:
    """One of several roots of the same backward."""
    for tensor in [_unheard(vm, root)] if isinstance(root, Unknown) else tensors_in(root):
        run_backward(vm, tensor, options, node, met)
    return NONE


def _unheard(vm: Interpreter, root: Unknown) -> Tensor:
    """The tensor that a root is of which nothing is known, or one that stands for a list of them."""
    if root.tensor is not None:
        return root.tensor
    return Tensor(root.made or vm.graph.guess(root), Storage(argument=True), root.requires, leaf=None)


def grad_of_roots(vm: Interpreter, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    """`torch.autograd.grad`: walks and frees the graph, fills no gradient."""
    options = {
        **dict(
            zip(("outputs", "inputs", "grad_outputs", "retain_graph", "create_graph"), args, strict=False)
        ),
        **kwargs,
    }
    keep = [options.get(name, NONE) for name in ("retain_graph", "create_graph")]
    retain: bool | None = any(isinstance(option, Const) and option.value for option in keep)
    if any(not isinstance(option, Const) for option in keep) or open_ended(kwargs, node):
        retain = None
    outputs = options.get("outputs", NONE)
    if vm.here.at_home:
        note(vm.reports, node, WALKED, outputs)
    met: Met = {}
    for root in tensors_in(outputs):
        event = Backward(vm.here.at(node), vm.here.path, retain, False, frozenset())
        event.returns, event.met = True, met
        if root.requires is True:
            vm.machine.backward.run(
                root,
                event,
                whole="grad_outputs" not in options,
                only=tensors_in(options.get("inputs", NONE)),
            )
            continue
        event.arms = vm.here.arms
        event.aimed = tuple(_asked_for(vm, options.get("inputs", NONE)))
        known = root.requires is False
        if not known and "grad_outputs" not in options and not open_ended(kwargs, node):
            vm.machine.backward.wants_scalar(root, event, USED_AS)
        if not (known and vm.machine.severed.unrecorded_root(root, event)):
            reason = "this has no graph" if known else "whether this has a graph isn't known"
            vm.reports.silence(vm.here.at(node), f"{reason}; no rule is about gradients that are asked for")
    vm.tell(GradientsAsked(outputs, options.get("inputs", NONE), node))
    return gradients(vm.machine, outputs, options, node)
