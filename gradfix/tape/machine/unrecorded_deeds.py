"""What is done only because nothing is recorded there: a rewrite that lets it be recorded has to know."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gradfix.defects.severed import Unrecorded
from gradfix.tape.machine.cuts import MODES, behind, nearest_cuts

if TYPE_CHECKING:
    from gradfix.defects import Span
    from gradfix.defects.facts import Facts
    from gradfix.tape.domain.graph import Node, Tensor
    from gradfix.tape.domain.values import Place
    from gradfix.tape.machine.histories import Graph


class UnrecordedDeeds:
    """The places of such deeds, each once, by what has turned recording off."""

    def __init__(self) -> None:
        self.asking: dict[Span | None, dict[Span | None, None]] = {}
        """Where somebody asks whether anything is recorded, and may go another way if it is."""
        self.refused: dict[Span | None, dict[Span | None, None]] = {}
        """Where torch would refuse to record, or put into a graph that lives on, what is done."""

    def told(self, facts: Facts, culprit: Span) -> Facts:
        """The facts of what isn't recorded, with all that was done there."""
        if not isinstance(facts, Unrecorded):
            return facts
        asking, refused = tuple(self.asking.get(culprit, ())), tuple(self.refused.get(culprit, ()))
        return replace(facts, asking=asking, refused=refused)


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


def made_unrecorded(graph: Graph, tensor: Tensor) -> bool:
    """Whether a tensor would have a graph if it were recorded here."""
    cuts = nearest_cuts(graph.history(tensor), graph.here.path)
    return any(cut.cut in MODES and behind(cut) is not False for cut in cuts)


def _made_here(graph: Graph, target: Tensor) -> bool:
    """Whether what is written was made where nothing is recorded."""
    if target.node.cut in MODES:
        return True
    mode, made = graph.grad_mode.grad_off[1], target.place
    inner, outer = graph.reports.span(made), graph.reports.span(mode)
    if inner is None or outer is None or not hasattr(mode, "body"):
        return False
    return outer.line <= inner.line <= outer.end_line
