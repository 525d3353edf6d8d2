"""Losses behind which nothing requires grad: the leaf that was meant is known at the end."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gradfix.defects import Assumption, Role
from gradfix.defects.severed import NoLeaf
from gradfix.tape.domain.graph import Tensor
from gradfix.tape.domain.paths import covered
from gradfix.tape.machine.cuts import nodes_below
from gradfix.tape.machine.severed import NO_GRAPH

if TYPE_CHECKING:
    from collections.abc import Collection

    from gradfix.defects import Span
    from gradfix.tape.domain.graph import Node
    from gradfix.tape.domain.values import Place
    from gradfix.tape.machine.severed import Leafless, Severed


def leafless_roots(severed: Severed, wanted: list[Tensor]) -> None:
    """At the end: the tensors that should have been leaves are those whose gradient somebody wants."""
    for root in severed.leafless:
        node, event, path, _, lean, account = root
        if _chosen(root, severed.leafless):
            lean = lean | {Assumption.NOTHING_IS_LEARNT}
        below = {id(one): one for one in nodes_below(node)}
        meant = [t for t in wanted if id(t.node) in below and t.requires is False]
        places = list({id(t): (factory_below(t.node), t.name) for t in meant}.values())
        frozen, made = _frozen(severed, meant)
        if frozen is not None:
            places = [(frozen, "")]
        if not places:
            leaves = [one.leaf for one in below.values() if one.leaf is not None]
            one = (
                len(leaves) == 1 and not severed.leaves.optimizers.train()
            )  # else it is that which the loss should hold
            only = one and leaves[0].dtype not in ("int", "bool")
            places = [(leaves[0].place, "")] if only else [] if one else [(event.place, "")]
        if event.aimed:
            places = [(event.place, "")]  # it is for other leaves
        for place, name in places:
            steps = [(place, Role.CONSTANT), (event.place, Role.BACKWARD)]
            steps += severed.perhaps_sooner(node, event)
            arrives = bool(meant) or place is event.place
            facts = NoLeaf(
                backward=severed.reports.span(event.place),
                target=name,
                made=made,
                arrives=arrives,
                unasked=any((one.node.facts or {}).get("unasked") for one in meant),
                written=any(map(_written_by_views, meant or _leaves(below.values()))),
            )
            severed.reports.report(
                "no_leaf_requires_grad",
                place,
                steps,
                facts,
                says=NO_GRAPH,
                when=path,
                lean=lean,
                account=account,
            )


def _chosen(this: Leafless, leafless: Collection[Leafless]) -> bool:
    """Whether it takes a way that somebody has to choose: on others there may be something to be learnt."""
    if this.path <= this.met or any((one.facts or {}).get("frozen") for one in nodes_below(this.node)):
        return False
    same = [one.path for one in leafless if one.event.place is this.event.place and one.met == this.met]
    return not covered(this.met, same)


def factory_below(node: Node) -> Place:
    """The one call that made what a tensor was computed from."""
    factories = [one for one in nodes_below(node) if one.leaf is not None]
    return factories[0].place if len(factories) == 1 else node.place


def _frozen(severed: Severed, meant: list[Tensor]) -> tuple[Place, tuple[Span, ...]]:
    """Where all that an optimizer was to train was frozen at once, if it was, and where it was made."""
    held = {id(leaf) for one in severed.leaves.optimizers.known for leaf in one.leaves}
    meant = [t for t in meant if id(t) in held]
    found = [(t.node.facts or {}).get("frozen") for t in meant]
    made = [severed.reports.span(t.place) for t in meant]
    known = bool(found) and None not in made and isinstance(found[0], ast.AST)
    if not known or any(one is not found[0] for one in found):
        return None, ()
    return found[0], tuple(dict.fromkeys(span for span in made if span is not None))


def _leaves(nodes: Collection[Node]) -> list[Tensor]:
    return [node.leaf for node in nodes if node.leaf is not None]


def _written_by_views(leaf: Tensor) -> bool:
    """Whether something writes to a leaf through a view of it."""
    written = [value for write in leaf.storage.writes if write.moment for value in write.moment.what]
    return any(isinstance(one, Tensor) and one is not leaf and one.base is not None for one in written)
