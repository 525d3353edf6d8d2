"""Gradients that are asked for by `torch.autograd.grad`: of what requires none, or without a graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradfix.defects import Role
from gradfix.defects.severed import NoLeaf, WithoutGraph
from gradfix.tape.domain.graph import Tensor, upstream
from gradfix.tape.domain.values import Seq
from gradfix.tape.machine.cut_facts import others
from gradfix.tape.machine.cuts import ASKED, behind, nearest_cuts, summands
from gradfix.tape.machine.leafless import factory_below

if TYPE_CHECKING:
    from gradfix.tape.domain.graph import Node
    from gradfix.tape.domain.paths import Path
    from gradfix.tape.domain.values import Value
    from gradfix.tape.interpreter.interpreter import Interpreter
    from gradfix.tape.interpreter.occasions import GradientsAsked
    from gradfix.tape.machine.severed import Severed

REFUSED = "One of the differentiated Tensors does not require grad"
NO_GRAPH = "element 0 of tensors does not require grad and does not have a grad_fn"


def asked(vm: Interpreter, told: GradientsAsked) -> None:
    """Torch has no gradient of a constant, and none from one."""
    vm.machine.severed.asked = True
    requires = vm.graph.requires(told.outputs)
    for one in _tensors(told.inputs) if requires is not None else ():
        if vm.graph.requires(one) is False and one.leaf is True:
            _of_constant(vm, one, told, REFUSED if requires else NO_GRAPH)
    for one in _tensors(told.outputs):
        if vm.graph.requires(one) is False:
            _from_constant(vm, one, told)


def _of_constant(vm: Interpreter, tensor: Tensor, told: GradientsAsked, says: str) -> None:
    """The gradient with respect to what was made without one, here and not out of a graph on purpose."""
    severed, node = vm.machine.severed, vm.graph.history(tensor)
    if tensor.lean or node.lean or any(below.cut for below in upstream([node])):
        return
    if vm.running.uncalled and tensor.born < vm.names.frame.scope.born:
        return  # whoever runs this may have let it require grad by then
    here, made = vm.here.at(told.node), factory_below(node)
    sought, span = "autograd.grad() is asked for", vm.reports.span(here)
    vm.reports.report(
        "no_leaf_requires_grad",
        made,
        [(made, Role.CONSTANT), (here, Role.ASKED)],
        NoLeaf(backward=span, asked=span, target=tensor.name, sought=sought),
        when=vm.here.path - vm.here.assumed,
        says=says,
        account=severed.told_otherwise(node),
    )


def _from_constant(vm: Interpreter, root: Tensor, told: GradientsAsked) -> None:
    """The gradient of a gradient that was asked for without a graph."""
    cut = _without_graph(vm.graph.history(root), vm.here.path)
    if cut is not None:
        here = vm.here.at(told.node)
        vm.reports.report(
            "gradient_without_graph",
            cut.cut_place,
            [(cut.cut_place, Role.CUT), (here, Role.ASKED)],
            WithoutGraph(
                backward=vm.reports.span(here), others=others(vm.machine.leaves.optimizers, cut, ())
            ),
            lean=cut.lean,
            when=vm.here.path - vm.here.assumed,
            says=NO_GRAPH,
        )


def _tensors(value: Value) -> Iterator[Tensor]:
    for one in value.items if isinstance(value, Seq) else [value]:
        if isinstance(one, Tensor):
            yield one


def check_penalties(severed: Severed) -> None:
    """At the end: terms of a loss that are made of gradients without a graph, while the loss has one."""
    for event, root in severed.backwards[severed.inherited :] if severed.asked else ():
        for term in summands(severed.graph.history(root)) if root.requires is True else ():
            cut = _without_graph(term, event.path) if term.requires is False else None
            if cut is not None and cut is not term:  # a step that is looked through is a sum with one
                here = [(event.place, Role.WITHOUT)]
                severed.report_cut(cut, event, here, impact="trains wrong")


def _without_graph(node: Node, path: Path) -> Node | None:
    """What alone keeps a node from having a graph: gradients that were asked for."""
    cuts = list(nearest_cuts(node, path))
    return cuts[0] if cuts and all(one.cut == ASKED and behind(one) is True for one in cuts) else None
