"""Graphs that end before their leaves: where they were cut, and which cut was not meant."""

from __future__ import annotations

import ast
from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

from gradfix.defects import NOTHING, Assumption, Convention, Role, kind_of
from gradfix.defects.leaning import weight
from gradfix.defects.reasons import What
from gradfix.defects.severed import Cut
from gradfix.tape.domain.graph import Tensor, upstream
from gradfix.tape.domain.in_graph import arms, on_path
from gradfix.tape.domain.paths import contradicts
from gradfix.tape.domain.why import Why
from gradfix.tape.domain.within import Within
from gradfix.tape.machine import rows
from gradfix.tape.machine.cut_facts import cut_facts, turned_off_around
from gradfix.tape.machine.cuts import (
    CONVERSIONS,
    DETACHES,
    KIND_OF_CUT,
    MODES,
    PASSING_NONE,
    all_cuts,
    behind,
    leaves_behind,
    nearest_cuts,
    terms_of,
    up_to,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from gradfix.defects import Impact
    from gradfix.tape.domain.events import Backward
    from gradfix.tape.domain.graph import Node
    from gradfix.tape.domain.paths import Path
    from gradfix.tape.domain.values import Lean, Place
    from gradfix.tape.machine.account import Account
    from gradfix.tape.machine.histories import Graph
    from gradfix.tape.machine.leaves import Leaves
    from gradfix.tape.machine.python import Python
    from gradfix.tape.machine.reports import Draft
    from gradfix.tape.machine.tested import Tested

FEW = 200
"""How many operations behind a loss are looked through for cuts that nobody is told of."""
ITSELF = "whether its own value, which is tested, lets it come to this isn't known"
DECIDED = "whether it runs where the grad mode was decided to be off isn't known"
SEVERAL = "several cuts lie behind this backward; which one was meant isn't known"
CONSTANT = "what is cut off here is taken for a constant of the loss"
LEARNS = "what is behind it learns without it, too, where this loss is walked"
UNHELD = "of what is behind it nothing is known to learn, where this loss is walked"
NO_GRAPH = "element 0 of tensors does not require grad and does not have a grad_fn"


class Leafless(NamedTuple):
    """A root that nothing behind requires grad for: which leaf was meant is known at the end."""

    node: Node
    event: Backward
    path: Path
    met: Path
    """The path on which the backward stands, whichever of its roots it is."""
    lean: Lean
    account: Account


class Severed:
    """Why no gradient arrives."""

    def __init__(
        self, graph: Graph, tested: Tested, leaves: Leaves, python: Python, before: Severed | None
    ) -> None:
        self.graph = graph
        self.here = graph.here
        self.reports = graph.reports
        self.trail = graph.trail
        self.tested = tested
        self.leaves = leaves
        self.python = python
        self.backwards: list[tuple[Backward, Tensor]] = [*before.backwards] if before else []
        """The real backwards that can have run here, with their roots."""
        self.inherited = len(self.backwards)
        """How many of them the module itself ran, before this was entered."""
        self.rewraps: list[tuple[Node, Backward]] = []
        """Leaves made of converted values that a backward reached."""
        self.leafless: list[Leafless] = []
        self.conversions: list[Draft[Cut]] = []
        """Cuts whose result may also be meant as a plain number: what uses it so is known at the end."""
        self.let_go: dict[int, tuple[Node, Why]] = {**before.let_go} if before else {}
        """The nodes of leaves that code which isn't known had: it may have let them require grad."""
        self.left_open: dict[str, Why] = {}
        """What was looked at of an object that stands for others, where each of those may have its own."""
        self.asked: bool = before is not None and before.asked
        """Whether gradients were asked for by `autograd.grad`."""
        self.refusals: list[Path] = []
        """The paths on which torch has refused to make an optimizer of no parameters: nothing comes after."""

    def severed_on_some_paths(self, root: Tensor, node: Node, event: Backward) -> None:
        """The root lost its graph in one arm of a branch."""
        whole = event.path
        for guard in arms(node):
            if any(self.tested.picks.get(key, 0) not in self.tested.turns for key, _ in guard - whole):
                continue  # other turns of that loop may have brought a graph
            if not contradicts(guard, whole) and on_path(node, whole | guard) is False:
                with Within(event, self.trail, {"path": whole | guard}):
                    self.severed_root(root, node, event)

    def severed_root(self, root: Tensor, node: Node, event: Backward) -> None:
        self.severed(node, event, root.lean, NO_GRAPH)

    def unrecorded_root(self, root: Tensor, event: Backward) -> bool:
        """Say so where gradients are asked for of what was cut off, or kept out of every graph."""
        node = self.graph.history(root)
        cuts = nearest_cuts(node, event.path)
        if not any(cut.cut in MODES | CONVERSIONS | DETACHES and behind(cut) is True for cut in cuts):
            return False
        self.severed_root(root, node, event)
        return True

    def severed(self, node: Node, event: Backward, lean: Lean, says: str) -> None:
        """Say what keeps the root of a backward out of every graph."""
        if not self.tested.graph_tests.isdisjoint(event.path):
            return  # it runs only where a test has found a graph
        if any(path <= event.path for path in self.refusals):
            return
        account = self.told_otherwise(node)
        met = list(nearest_cuts(node, event.path))
        nearest = list(map(rows.last_in_row, met))
        cuts = list({id(cut.cut_place): cut for cut in reversed(nearest)}.values())[::-1]
        sure = [cut for cut in cuts if behind(cut) is True]
        chosen = sure or [cut for cut in cuts if behind(cut) is None and cut.cut != "data"]
        chosen = [cut for cut in chosen if not _behind_others(cut, chosen)]
        chosen = [cut for cut in chosen if not _unrecorded_anyway(cut, chosen)]
        if any(cut.cut in MODES and _encloses(cut.cut_place, node.place) for cut in chosen):
            chosen = [cut for cut in chosen if cut.cut not in PASSING_NONE]  # masks and indices of the loss
        if chosen and self._same_before(chosen, event):
            self.reports.silence(event.place, "it had a graph before, with the same cuts in it")
            return
        if any(
            cut.cut in MODES
            and _decided(cut.cut_place)
            and (self._either_way(event.path) or not event.path <= cut.path)
            for cut in chosen
        ):
            self.reports.silence(event.place, DECIDED)
            return
        if (not cuts or self._elsewhere(event)) and self._tested_itself(node, event.path):
            self.reports.silence(event.place, ITSELF)
            return
        here = (event.place, Role.BACKWARD)
        apart = [cut for cut, last in zip(met, nearest, strict=True) if cut is last and behind(cut) is True]
        if self.python.blames_rebinding(up_to(node, apart)):
            return  # behind a cut that hides a graph of its own, a name was bound for another reason
        if len(chosen) >= 1 and (sure or len(chosen) == 1):
            terms = {id(term) for term in terms_of(node)}
            whole = [cut for cut in chosen if id(cut) in terms]
            for cut in whole if whole == chosen else chosen[:1]:
                lean = NOTHING if sure else frozenset({Convention.B})
                steps = [here, *self.perhaps_sooner(node, event)]
                self.report_cut(cut, event, steps, says=says, lean=lean, account=account, root=node)
        elif not cuts:
            stands = self.here.path - self.here.assumed
            self.leafless.append(
                Leafless(node, event, event.path, stands, lean, self._and_left_open(account))
            )
        else:
            why = Why(What.MEANT, "the nearest of them", chosen[0].cut_place if chosen else cuts[0].cut_place)
            self.reports.silence(event.place, SEVERAL, why)

    def _elsewhere(self, event: Backward) -> bool:
        """Whether it is one value of several that a backward starts from: another one has, or may have, a
        graph."""
        others = (root for other, root in self.backwards if other.place is event.place)
        return bool(event.path - self.here.path | self.here.assumed) or any(
            root.requires is not False for root in others
        )

    def _tested_itself(self, node: Node, path: Path) -> bool:
        """Whether a backward runs only if a test of its root's own value says so: a constant may be there to
        fail it."""
        tested = [self.tested.values[key] for key, _ in path if key in self.tested.values]
        return any(one is node for nodes in tested for one in islice(upstream(nodes), FEW))

    def _same_before(self, cuts: list[Node], event: Backward) -> bool:
        """Whether an earlier turn may have had a graph though it had these cuts: something else has ended
        since."""
        roots = [
            root
            for other, root in self.backwards
            if other is not event and other.place is event.place and root.requires is not False
        ]
        places = {id(cut.cut_place) for cut in cuts}
        return any(
            places <= {id(cut.cut_place) for cut in all_cuts(self.graph.history(root), FEW)} for root in roots
        )

    def perhaps_sooner(self, node: Node, event: Backward) -> list[tuple[Place, Role]]:
        """The backwards before one, of the same leaves or cuts, that fail like it unless what isn't known of
        their roots has a graph: whoever runs the program may never come to that one."""
        before = [
            one
            for one, root in self.backwards
            if one.number < event.number and one.place is not event.place
            if root.requires is None and not contradicts(one.path, event.path)
        ]
        own = {id(one) for one in _ends_below(node)} if before else set()
        return [
            (one.place, Role.BACKWARD)
            for one in before
            if one.start is not None and any(id(end) in own for end in _ends_below(one.start))
        ]

    def _either_way(self, path: Path) -> bool:
        """Whether one test comes out differently for two values: in the turns of a loop, say."""
        tests = self.reports.findings.tests
        came_out = {(id(tests[key]), holds) for key, holds in path if key in tests}
        return any((test, not holds) in came_out for test, holds in came_out)

    def told_otherwise(self, node: Node) -> Account:
        """What may have let one of the leaves below a node require grad.

        Who had a module may have put another one in its place, which brings parameters of its own.
        """
        below = list(_up_to_cuts(node))
        whys = [self.let_go[id(one)][1] for one in below if id(one) in self.let_go]
        accounts = self.leaves.accounts
        parts = accounts.had([one.leaf for one in below if one.leaf is not None and one.leaf.parameter])
        return accounts.of(Assumption.NOBODY_ELSE_LETS, chain(whys, parts))

    def _and_left_open(self, account: Account) -> Account:
        """The same account, with what others may fill or define that has brought no graph here."""
        more = self.leaves.accounts.of(account.sought, self.left_open.values())
        return replace(account, gaps=(*account.gaps, *more.gaps))

    def report_cut(self, cut: Node, event: Backward, steps: list[tuple[Place, Role]], *, says: str = "",
                   lean: Lean = NOTHING, kind: str = "", impact: Impact | None = None,
                   account: Account | None = None, root: Node | None = None) -> None:  # fmt: skip
        """Report the cut that keeps gradients from everything behind it."""
        kind = kind or KIND_OF_CUT.get(cut.cut, "")
        if not kind:
            return
        if kind_of(kind).unrecorded:
            steps = [(cut.place, Role.UNRECORDED), *steps]
        behind = [parent for parent in cut.parents if parent.requires is not False]
        steps = [(behind[0].place if behind else None, Role.GRAPH), (cut.cut_place, Role.CUT), *steps]
        fewest = min((parent.lean for parent in behind), key=weight, default=NOTHING)
        lean, facts = cut.lean | event.lean | lean | fewest, cut_facts(self, kind, cut, event, root)
        if cut.doubted and cut.cut in DETACHES and self.graph.grad_mode.mode_in_doubt is False:
            lean = lean | {Assumption.RECORDED_HERE}
        if isinstance(facts, Cut) and kind_of(kind).logged:
            draft = self.reports.draft(
                kind,
                cut.cut_place,
                steps,
                facts,
                says=says,
                lean=lean,
                when=event.path,
                impact=impact,
                account=account,
            )
            self.conversions.extend([draft] if draft is not None else [])
        else:
            self.reports.report(kind, cut.cut_place, steps, facts, says=says, lean=lean, when=event.path,
                        impact=impact, account=account)  # fmt: skip

    def taken_as_meant(self, root: Tensor, event: Backward, reached: Collection[int]) -> None:
        """Say of each cut on the way to a loss that has a graph why nothing is said of it."""
        for cut in all_cuts(self.graph.history(root), FEW):
            if cut.requires is False and behind(cut) is not False:
                learns = any(id(leaf) in reached for leaf in leaves_behind(cut))
                why = (
                    Why(What.MEANT, LEARNS, event.place) if learns else Why(What.UNHELD, UNHELD, event.place)
                )
                self.reports.silence(cut.cut_place, CONSTANT, why)


def _decided(place: Place) -> bool:
    """Whether a grad mode is decided by a value: so may be what else is decided beside it."""
    items = [item.context_expr for item in place.items] if isinstance(place, ast.With) else [place]
    calls = [one for one in items if isinstance(one, ast.Call) and one.args]
    return any(not isinstance(one.args[0], ast.Constant) for one in calls)


def _up_to_cuts(node: Node) -> Iterator[Node]:
    """What could still bring a gradient to a node if it were told to require one: nothing behind a cut."""
    return upstream([node], lambda one: () if one.cut else one.parents)


def _ends_below(node: Node) -> Iterator[Node]:
    """Where a backward from a node would end: leaves, and what is cut."""
    return (one for one in _up_to_cuts(node) if one.leaf is not None or one.cut)


def _unrecorded_anyway(cut: Node, cuts: list[Node]) -> bool:
    """Whether a cut was made in a grad mode that is itself one of these: that one has to go first."""
    within = turned_off_around(cut) if cut.cut not in MODES else None
    return within is not None and any(one.cut in MODES and one.cut_place is within for one in cuts)


def _encloses(block: Place, place: Place) -> bool:
    return isinstance(block, ast.With) and any(one is place for one in ast.walk(block))


def _behind_others(cut: Node, cuts: list[Node]) -> bool:
    """Whether all that a cut keeps from the root for sure is kept from the cut itself, by others of these."""
    if any(parent.requires is True for parent in cut.parents):
        return False
    above = [one for parent in cut.parents for one in nearest_cuts(parent)]
    passing = [one for one in above if one.cut not in PASSING_NONE]  # nothing comes through a sample anyway
    return bool(passing) and all(any(one is other for other in cuts) for one in passing)
