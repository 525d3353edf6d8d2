"""Results without a graph that are told to require grad: a leaf of their own, and no gradient behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradfix.defects import NOTHING, Convention, Role
from gradfix.defects.severed import OnResult
from gradfix.tape.domain.events import Add
from gradfix.tape.effects.operations import having
from gradfix.tape.machine import rows
from gradfix.tape.machine.cut_facts import arrives_without
from gradfix.tape.machine.cuts import (
    CONVERSIONS,
    DETACHES,
    KIND_OF_CUT,
    MODES,
    behind,
    copied,
    leaves_behind,
    nearest_cuts,
    terms_of,
)

if TYPE_CHECKING:
    from gradfix.tape.domain.events import Backward
    from gradfix.tape.domain.graph import Node, Tensor
    from gradfix.tape.domain.values import Lean
    from gradfix.tape.machine.account import Account
    from gradfix.tape.machine.severed import Severed

READ_OUT = having("converts")


def rewrapped(severed: Severed, root: Tensor, node: Node, event: Backward) -> None:
    """A severed result that was told to require grad: no error, and no gradient behind it."""
    for leaf in (node, *terms_of(node)):
        if leaf.leaf is None or leaf.cut != "requires_grad" or leaf.requires is not True:
            continue
        if leaf is not node and any(copied(parent).cut in DETACHES for parent in leaf.parents):
            continue  # `x.detach().requires_grad_()` makes a new leaf of x, which is what it is for
        cuts = [cut for parent in leaf.parents for cut in nearest_cuts(parent) if behind(cut) is True]
        if cuts:
            facts = OnResult(
                target=(leaf.facts or {}).get("target", ""),
                cut=severed.reports.span(cuts[0].cut_place),
                cut_kind=KIND_OF_CUT.get(cuts[0].cut, ""),
                arrives=arrives_without(severed.graph, event, cuts[0]),
                alone=rows.alone(cuts[0], None, event.path),
            )
            steps = [(cuts[0].cut_place, Role.CUT), (event.place, Role.BACKWARD)]
            severed.reports.report(
                "requires_grad_on_result",
                leaf.cut_place,
                steps,
                facts,
                lean=cuts[0].lean,
                when=event.path,
            )


def rewrapped_leaves(severed: Severed, read: list[Tensor], reached: set[int]) -> None:
    """At the end: leaves made of converted results, whose gradient nobody reads and nobody passes on."""
    for leaf, event in severed.rewraps:
        tensor = leaf.leaf
        if tensor is None or leaf.cut not in CONVERSIONS | MODES or leaf.requires is not True:
            continue
        if tensor.parameter and not any(root is tensor for _, root in severed.backwards):
            continue
        if behind(leaf) is False or any(tensor is one for one in read):
            continue
        if (lost := _loses(severed, leaf, event, reached)) is not None:
            others = [one.slot for one in severed.leaves.every_leaf if one is not tensor and one.slot]
            adds = [add for slot in others for add in slot.events if isinstance(add, Add)]
            alone = not any(add.backward.met is event.met for add in adds)
            kind = "" if alone else "severed_term"
            here = (event.place, Role.BACKWARD)
            lean, account = lost
            severed.report_cut(
                leaf, event, [here], impact="trains wrong", kind=kind, lean=lean, account=account
            )


def _loses(severed: Severed, leaf: Node, event: Backward, reached: set[int]) -> tuple[Lean, Account] | None:
    """What it leans on that a converted leaf keeps a gradient from others; None: it may be meant.

    A backward that runs on the copy itself gives the copy a gradient of one, and nobody anything else:
    then the value was to have a graph, whether one is known or not.
    """
    itself = any(one is event and root is leaf.leaf for one, root in severed.backwards)
    if behind(leaf) is None:
        meant = not itself or event.aimed or not _read_out(leaf)
        return None if meant else (frozenset({Convention.B}), severed.leaves.accounts.filled([]))
    lost = [one for parent in leaf.parents for one in leaves_behind(parent)]
    never = [one for one in lost if id(one) not in reached]
    if not lost or not (itself or never):
        return None
    return NOTHING, severed.leaves.accounts.filled([] if itself else never)


def _read_out(leaf: Node) -> bool:
    """Whether a leaf is made of a number that was read out of a tensor."""
    return any(parent.cut in READ_OUT for parent in leaf.parents)
