"""What an optimizer steps and no backward reaches, because of a cut."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from gradfix.defects import Assumption, Role, kind_of
from gradfix.defects.reasons import What
from gradfix.defects.severed import Unreached
from gradfix.tape.checks.choices import choice
from gradfix.tape.checks.wanted_cuts import asked_for
from gradfix.tape.domain.graph import Tensor, upstream
from gradfix.tape.domain.why import Why
from gradfix.tape.machine.account import why_of_call
from gradfix.tape.machine.cuts import LOSSES, MODES, SCALES, WEIGHS, all_cuts, leaves_behind, summands, summed
from gradfix.tape.machine.here import span_of
from gradfix.tape.machine.leaves import is_added

if TYPE_CHECKING:
    from gradfix.tape.domain.events import Backward
    from gradfix.tape.domain.graph import Node
    from gradfix.tape.domain.moments import Moment
    from gradfix.tape.domain.torch_values import Optimizer
    from gradfix.tape.domain.values import Place
    from gradfix.tape.interpreter.names import Names
    from gradfix.tape.interpreter.program import Program
    from gradfix.tape.machine.machine import Machine
    from gradfix.tape.machine.optimizers import Optimizers

UNSEEN = "no backward that is seen reaches some of what this holds"


def check_unreached(names: Names) -> None:
    """At the end: optimizers that step parameters which no backward reached, because of a cut."""
    if not names.machine.severed.backwards or any(kind_of(kind).lost for kind, _ in names.reports.reported):
        return
    for optimizer in names.machine.optimizers.known:
        if not (optimizer.stepped and optimizer.complete and optimizer.after):
            continue
        never = [leaf for leaf in optimizer.leaves if leaf.requires is True and not is_added(leaf)]
        never = [leaf for leaf in never if not any(map(is_added, names.machine.leaves.overlapping([leaf])))]
        if never:
            names.reports.silence(optimizer.place, UNSEEN, Why(What.BACKWARD))
        event, root = optimizer.after
        cut = _cut_before(names, optimizer, never, root) if never else None
        kept = _touching(names.machine.optimizers, event, never, cut) if cut is not None else None
        if cut is not None and kept is not None and all(moment.deed == "anything" for moment in kept):
            accounts = names.machine.leaves.accounts
            account = accounts.filled(never, more=[why_of_call(moment) for moment in kept])
            names.reports.report(
                "unreached_parameters",
                optimizer.place,
                [
                    (cut.cut_place, Role.CUT),
                    (event.place, Role.BACKWARD),
                    (optimizer.place, Role.NEVER_TRAINED),
                ],
                _unreached(names, optimizer, event, cut),
                lean=optimizer.lean,
                account=account,
            )


def check_frozen_groups(machine: Machine) -> None:
    """At the end: optimizers that were given, as a group of its own, what was frozen unasked when made."""
    for optimizer in machine.optimizers.known:
        if not optimizer.stepped or optimizer.after is None or optimizer.after[1].requires is not True:
            continue  # that nothing at all learns is said of the backward
        for group in optimizer.groups or ():
            frozen = _frozen_unasked(group.weights.leaves)
            if frozen is not None and group.weights.complete:
                _report_frozen(machine, optimizer, optimizer.after[0], group.weights.leaves, frozen)


def _frozen_unasked(leaves: list[Tensor]) -> Place:
    """Where all of these were made, if what made them froze them and they still are."""
    facts = [leaf.node.facts or {} for leaf in leaves if leaf.requires is False]
    unasked = len(facts) == len(leaves) and all(one.get("unasked") for one in facts)
    return facts[0].get("frozen") if facts and unasked else None


def _report_frozen(
    machine: Machine, optimizer: Optimizer, event: Backward, held: list[Tensor], frozen: Place
) -> None:
    reports, accounts = machine.reports, machine.leaves.accounts
    reports.report(
        "unreached_parameters",
        optimizer.place,
        [(frozen, Role.FROZEN), (optimizer.place, Role.NEVER_TRAINED)],
        Unreached(
            optimizer=optimizer.name,
            cut=reports.span(frozen),
            cut_kind="frozen",
            backward=reports.span(event.place),
        ),
        lean=optimizer.lean,
        account=accounts.of(Assumption.NOBODY_ELSE_LETS, accounts.had(held)),
    )


def _unreached(names: Names, optimizer: Optimizer, event: Backward, cut: Node) -> Unreached:
    """What a rewrite has to know: of a part that isn't recorded, where it runs and who else would meet it."""
    forward = names.reports.span(cut.place) if cut.cut in MODES else None
    backwards = names.machine.severed.backwards
    others = (root for one, root in backwards if one is not event)
    roots = [names.machine.graph.history(root) for one, root in backwards if one is event]
    wanted = {id(leaf) for leaf in optimizer.leaves if not is_added(leaf)}
    targets = [one for root in roots for one in _targets(names.machine.optimizers, root)]
    alone = [one for root in roots for one in _alone(root, wanted, targets)]
    met = (_recorded_to(names.machine.graph.history(root)) for root in others)
    return Unreached(
        optimizer=optimizer.name,
        cut=names.reports.span(cut.cut_place),
        cut_kind=cut.cut,
        backward=names.reports.span(event.place),
        forward=(forward,) if forward else (),
        shared=any(node is cut for nodes in met for node in nodes),
        alone=cut.cut in MODES or any(cut is one for one in alone),
        target=any(cut is one for one in targets) and bool(_ends(cut) & wanted),
        weighs=any(cut is one for root in roots for one in _weights(names.machine.optimizers, root)),
        either=cut.cut not in MODES and any(_cut_as_well(root, cut, wanted) for root in roots),
        **(choice(names.reports, cut, roots[0]) if roots else {}),
    )


def _cut_as_well(root: Node, cut: Node, wanted: set[int]) -> bool:
    """Whether another cut, be it that of a loss's target, keeps the same leaves from a root."""
    kept = _ends(cut) & wanted
    return any(one.cut and one is not cut and _ends(one) & kept for one in _recorded_to(root))


def _recorded_to(root: Node) -> Iterator[Node]:
    """What a backward walks, and the cuts at which it ends."""
    return upstream([root], lambda node: () if node.cut else node.parents)


def _touching(optimizers: Optimizers, event: Backward, never: list[Tensor], cut: Node) -> list[Moment] | None:
    """What else than a backward sees to the parameters behind a cut, by hand, or may do so."""
    behind = {id(leaf) for leaf in leaves_behind(cut)}
    leaves = [leaf for leaf in never if id(leaf) in behind]
    touches, moment = optimizers.touches, event.moment
    if touches is None or moment is None:
        return None
    return touches.kept_otherwise(moment, leaves)


def _cut_before(names: Names, optimizer: Optimizer, never: list[Tensor], root: Tensor) -> Node | None:
    """The cut in a graph behind which only leaves lie that were never reached."""
    if root.requires is not True:
        return None
    wanted = {id(leaf) for leaf in never}
    node = names.machine.graph.history(root)
    targets = _targets(names.machine.optimizers, node)
    for cut in (*_alone(node, wanted, targets), *all_cuts(node, but=MODES)):
        if cut.cut in MODES:
            found = _names_all_behind(optimizer, wanted, cut)
        else:
            found = bool({id(leaf) for leaf in leaves_behind(cut, MODES) if leaf is not cut.leaf} & wanted)
        if found and not _wanted(names.program, cut):
            return cut
    return None


def _alone(root: Node, wanted: set[int], targets: Collection[Node]) -> list[Node]:
    """The cuts each of which keeps some leaves from a root by itself, but for the targets of losses: first
    those that leave a whole term without a graph."""
    kept = (cut for cut in _recorded_to(root) if cut.cut and _ends(cut) & wanted)
    found = [cut for cut in kept if not any(cut is target for target in targets)]
    dead = {id(one) for term in summands(root) if term.requires is False for one in _recorded_to(term)}
    return sorted(found, key=lambda cut: id(cut) not in dead)


def _targets(optimizers: Optimizers, root: Node) -> list[Node]:
    """The cuts that what learns is held against, and those that this is made of: not where it is a term of
    the loss itself, from which another is taken."""
    held = {id(leaf) for one in optimizers.known for leaf in one.leaves}
    terms = {id(one) for one in summed(root)}
    sides = [side for node in _recorded_to(root) for side in _compared(node, held)]
    return _made_of(side for side in sides if side.cut or id(side) not in terms)


def _weights(optimizers: Optimizers, root: Node) -> list[Node]:
    """The cuts that what learns is weighed by, and those that this is made of."""
    held = {id(leaf) for one in optimizers.known for leaf in one.leaves}
    return _made_of(side for node in _recorded_to(root) if node.op in SCALES for side in _beside(node, held))


def _made_of(sides: Iterable[Node]) -> list[Node]:
    """The cuts in what has no graph."""
    return [one for side in sides if side.requires is False for one in _recorded_to(side) if one.cut]


def _compared(node: Node, held: set[int]) -> tuple[Node, ...]:
    """What an operation may hold its other operand against: not where that one trains nothing."""
    if node.op in LOSSES:
        return node.parents[1:]
    return _beside(node, held) if node.op in WEIGHS - SCALES else ()


def _beside(node: Node, held: set[int]) -> tuple[Node, ...]:
    """Of two operands each of which the other one trains beside."""
    pairs = zip(node.parents, node.parents[::-1], strict=True) if len(node.parents) == 2 else ()
    return tuple(one for one, other in pairs if _trains(other, held))


def _trains(node: Node, held: set[int]) -> bool:
    """Whether a backward that comes to a node may come to what optimizers hold."""
    return any(one.requires is None for one in _recorded_to(node)) or bool(_ends(node) & held)


def _ends(cut: Node) -> set[int]:
    """The leaves that nothing but this cut keeps from what it gives."""
    behind = upstream(cut.parents, lambda one: () if one.cut else one.parents)
    return {id(one.leaf) for one in behind if one.leaf is not None}


def _names_all_behind(optimizer: Optimizer, never: set[int], cut: Node) -> bool:
    """Whether an optimizer was given just the leaves of a part that isn't recorded, be it as a group of its
    own or as what the part was asked for.

    A part of what it holds is frozen on purpose by who runs it unrecorded; not all of it.
    """
    behind = {id(leaf) for leaf in leaves_behind(cut)}
    groups = [group.weights.leaves for group in optimizer.groups or ()]
    for held in [optimizer.leaves, *groups, *optimizer.parts]:
        trained = {id(leaf) for leaf in held if leaf.requires is True}
        if trained and trained <= never and trained <= behind:
            return True
    return False


def _wanted(program: Program, cut: Node) -> bool:
    place = cut.cut_place
    return isinstance(place, ast.AST) and asked_for(program.tree, span_of(place).line)
