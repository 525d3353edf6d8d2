"""What is known of a cut that keeps a gradient back: whether one would arrive without it, and for whom."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gradfix.defects import Convention, kind_of
from gradfix.defects.records import record_of
from gradfix.defects.severed import THE_LOSS, TO_WALK, Cut, NoGradient, Unrecorded, WithoutGraph
from gradfix.tape.domain.events import Add
from gradfix.tape.domain.graph import upstream
from gradfix.tape.machine import rows
from gradfix.tape.machine.cuts import (
    DETACHES,
    MODES,
    choosing,
    leaves_behind,
    nodes_below,
    unrecorded,
    unrecorded_with,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from gradfix.defects.facts import Facts
    from gradfix.tape.domain.events import Backward
    from gradfix.tape.domain.graph import Node, Tensor
    from gradfix.tape.domain.values import Place
    from gradfix.tape.machine.histories import Graph
    from gradfix.tape.machine.optimizers import Optimizers
    from gradfix.tape.machine.severed import Severed

ASKING = frozenset({"retain_grad", "register_hook"})
"""What is asked of a tensor for the backward that is to come."""


def cut_facts(severed: Severed, kind: str, cut: Node, event: Backward, root: Node | None) -> Facts:
    """What is known of a cut, as the record of its kind says it."""
    record, backward = record_of(kind), severed.reports.span(event.place)
    arrives = arrives_without(severed.graph, event, cut)
    alone = rows.alone(cut, root or event.start, event.path)
    if record is Unrecorded:
        beside, doubtful = unrecorded_with(cut, root, event.path) if root is not None else ([cut], False)
        what, wanted = _asked(severed, event.place)
        spans = [span for one in beside if (span := severed.reports.span(one.place))]
        return Unrecorded(
            form=_mode_form(cut.cut_place),
            mode=cut.cut,
            forward=tuple(dict.fromkeys(spans)),
            backward=backward,
            doubtful=doubtful or event.returns,
            arrives=arrives,
            alone=alone,
            what=what,
            wanted=wanted,
        )
    if record is NoGradient:
        return NoGradient(op=cut.op, backward=backward, arrives=arrives, alone=alone, **choosing(cut))
    if record is WithoutGraph:
        beyond = others(severed.leaves.optimizers, cut, event.met)
        return WithoutGraph(backward=backward, others=beyond, arrives=arrives, alone=alone)
    held = _held(severed.leaves.optimizers, cut)
    told = kind_of(kind).absence and any(one.cut in DETACHES for one in unrecorded(cut))
    shared, taught = _shared(severed.leaves.optimizers, cut, event) if told else (False, False)
    return Cut(form=cut.cut, backward=backward, arrives=arrives, alone=alone, held=held, shared=shared,
               taught=taught)  # fmt: skip


def _asked(severed: Severed, place: Place) -> tuple[str, str]:
    """What a graph was wanted of, and what for: something else than a backward may ask for one."""
    func = place.func if isinstance(place, ast.Call) else None
    if not isinstance(func, ast.Attribute) or func.attr not in ASKING:
        return THE_LOSS, TO_WALK
    return f"`{severed.reports.text(func.value)}`", f"for {func.attr}()"


def _held(optimizers: Optimizers, cut: Node) -> bool:
    """Whether an optimizer may hold what is behind a cut: not where all of it only is assumed to learn,
    and what the optimizers hold is something else."""
    leaves = leaves_behind(cut)
    assumed = bool(leaves) and all(Convention.B in leaf.node.lean for leaf in leaves)
    if not assumed or not optimizers.train():
        return True
    held = {id(leaf) for one in optimizers.known for leaf in one.leaves}
    return any(id(leaf) in held for leaf in leaves)


def _shared(optimizers: Optimizers, cut: Node, event: Backward) -> tuple[bool, bool]:
    """Whether some of what was detached learns from other losses than this one; or, where this one teaches
    the rest of it, from none, and no optimizer is known to hold it. And whether this one teaches all."""
    leaves = [leaf for leaf in leaves_behind(cut) if leaf.requires is True]
    taught = [set(_taught_at(leaf)) for leaf in leaves]
    held = {id(leaf) for one in optimizers.known for leaf in one.leaves}
    if any(places and id(event.place) not in places for places in taught):
        return True, False
    unheld = (not places and id(leaf) not in held for leaf, places in zip(leaves, taught, strict=True))
    return any(taught) and any(unheld), bool(taught) and all(taught)


def _taught_at(leaf: Tensor) -> Iterator[int]:
    """The places of the backwards that reach a leaf, or may."""
    for one in leaf.slot.events if leaf.slot is not None else ():
        if isinstance(one, Add):
            yield id(one.backward.place)


def others(optimizers: Optimizers, cut: Node, met: Collection[int]) -> bool:
    """Whether a backward that has met these nodes and goes on behind a cut may come to leaves that it
    isn't for."""
    below = list(upstream(cut.parents, lambda one: () if one.cut else one.parents))
    leaves = [one.leaf for one in below if one.leaf is not None and one.requires is not False]
    if any(one.requires is None for one in below):
        return True
    if met:
        return any(leaf.parameter and id(leaf.node) not in met for leaf in leaves)
    known = optimizers.known
    owners = [{id(one) for one in known if any(leaf is held for held in one.leaves)} for leaf in leaves
              if leaf.parameter]  # fmt: skip
    return any(len(each) != 1 or each != owners[0] for each in owners)


def arrives_without(graph: Graph, event: Backward, cut: Node) -> bool:
    """Whether a backward would come to what it is for, if it weren't for a cut."""
    if cut.cut not in MODES and turned_off_around(cut) is not None:
        return False  # without it, it still wouldn't be recorded
    return not event.aimed or is_for(graph, event, cut)


def _mode_form(place: Place) -> str:
    """with, decorator or statement."""
    return {"With": "with", "AsyncWith": "with", "Call": "statement"}.get(type(place).__name__, "decorator")


def is_for(graph: Graph, event: Backward, term: Node) -> bool:
    """Whether one of the tensors that a backward names is behind a term."""
    below = {id(node) for node in nodes_below(term)}
    return any(id(graph.history(tensor)) in below for tensor in event.aimed)


def turned_off_around(cut: Node) -> Place:
    """Where recording was turned off around a cut."""
    return (cut.facts or {}).get("within")
