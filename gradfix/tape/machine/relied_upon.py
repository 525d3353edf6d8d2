"""What is done where nothing is recorded, and can't be or comes out otherwise where it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradfix.tape.domain.graph import Node, Tensor
    from gradfix.tape.domain.values import Place
    from gradfix.tape.machine.histories import Graph


def asks(graph: Graph, place: Place) -> None:
    """Note that the answer is another one where this is recorded."""
    if graph.grad_mode.grad is False:
        mode = graph.reports.span(graph.grad_mode.grad_off[1])
        graph.reports.findings.unrecorded.asking.setdefault(mode, {})[graph.reports.span(place)] = None


def refuses(graph: Graph, place: Place) -> None:
    """Note what can't be done where it is recorded."""
    if graph.grad_mode.grad is False:
        mode = graph.reports.span(graph.grad_mode.grad_off[1])
        graph.reports.findings.unrecorded.refused.setdefault(mode, {})[graph.reports.span(place)] = None


def writes(graph: Graph, target: Tensor, node: Node, place: Place) -> None:
    """Note a write to what may be a leaf, or to what is older than the block and would take a graph along."""
    owner = target.base if target.base is not None else target
    leaf = owner.leaf is not False and owner.requires is not False
    if leaf or (bool(node.cut) and not _made_here(graph, target)):
        refuses(graph, place)


def _made_here(graph: Graph, target: Tensor) -> bool:
    """Whether what is written was made where nothing is recorded."""
    if target.node.cut and target.node.cut_place is graph.grad_mode.grad_off[1]:
        return True
    mode, made = graph.grad_mode.grad_off[1], target.place
    inner, outer = graph.reports.span(made), graph.reports.span(mode)
    if inner is None or outer is None or not hasattr(mode, "body"):
        return False
    return outer.line <= inner.line <= outer.end_line
