"""Gradient slots, optimizers and steps: which contribution a step uses, and whether one used it before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypedDict

from gradfix.defects import Assumption, Convention, Role
from gradfix.defects.ordered import EarlyClear, NotCleared
from gradfix.defects.reasons import What
from gradfix.defects.records import Scaled
from gradfix.tape.domain.events import Add, Backward, Clear, Empty, Unscale, Use, shared
from gradfix.tape.domain.paths import ALWAYS, beyond, contradicts, covered, implies
from gradfix.tape.domain.torch_values import Optimizer
from gradfix.tape.domain.values import NOTHING
from gradfix.tape.domain.why import Why
from gradfix.tape.domain.within import Within
from gradfix.tape.effects.operations import having
from gradfix.tape.machine.account import newest_call
from gradfix.tape.machine.cuts import KIND_OF_CUT, all_cuts, leaves_behind, nodes_below
from gradfix.tape.machine.deeds import unknown_behind

if TYPE_CHECKING:
    from gradfix.defects import Touched
    from gradfix.tape.domain.events import SlotEvent
    from gradfix.tape.domain.paths import Path


if TYPE_CHECKING:
    from typing_extensions import Unpack

    from gradfix.tape.domain.graph import Node, Tensor
    from gradfix.tape.domain.moments import Moment
    from gradfix.tape.domain.values import Lean, Place, Unknown
    from gradfix.tape.machine.account import Account
    from gradfix.tape.machine.optimizers import Optimizers
    from gradfix.tape.machine.recording import Recording
    from gradfix.tape.machine.reports import Draft
    from gradfix.tape.machine.severed import Severed
    from gradfix.tape.machine.tested import Count


COUNTED = frozenset({Convention.F})
"""That a step waits for several turns, where it isn't known for how many."""
READS = frozenset({"reads", "anything"})
"""How a forward touches the leaves that it uses, or may."""


class Scoped(TypedDict, total=False):
    """What differs inside of something only."""

    asked: bool


MOVES = having("moves")


def moved_from(tensors: Iterable[Tensor]) -> list[Tensor]:
    """The leaves that tensors may be which were moved to where these may have been already."""
    results = (one.node for one in tensors if one.leaf is not True and one.node.op in MOVES)
    return [parent.leaf for node in results for parent in node.parents if parent.leaf is not None]


class Gradients:
    """What is in the slots of leaves: filled, cleared, used."""

    def __init__(
        self, recording: Recording, severed: Severed, optimizers: Optimizers, before: Gradients | None
    ) -> None:
        self.recording = recording
        self.severed = severed
        self.optimizers = optimizers
        self.leaves = severed.leaves
        self.graph = recording.graph
        self.here = recording.here
        self.reports = severed.reports
        self.trail = recording.trail
        self.timeline = recording.timeline
        self.updated: list[Tensor] = [*before.updated] if before else []
        """Leaves that are stepped by hand, or that some optimizer may hold."""
        self.read_grads: list[Tensor] = [*before.read_grads] if before else []
        """The tensors whose gradient somebody has looked at."""
        self.last_touch: int = before.last_touch if before else -1
        """When gradients were cleared last, or perhaps were, or used by hand, in the same numbers."""
        self.lent: list[tuple[int, Node, Path, Why]] = [*before.lent] if before else []
        """Graphs that code had which isn't known, and when, in the numbers of the backwards."""
        self.asked = False
        """Whether the step that runs has called a closure: what an earlier call of it left is nobody's."""
        self.erasures: list[tuple[Draft[EarlyClear], Moment | None, list[Tensor], int, set[int]]] = []
        """Gradients that were erased though a step would have used them, with that step and its leaves, when
        it was, in the numbers of the backwards, and the nodes that had saved the leaves by then."""
        self.paths: dict[int, Path] = {}
        """On which path each step ran, by its number."""
        self.stand_ins: list[Tensor] = [*before.stand_ins] if before else []
        """Leaves that each stand for all that an optimizer may hold: clearing others may clear them too."""

    def within(self, **now: Unpack[Scoped]) -> Within:
        """A block in which this is so, and as it was after it."""
        return Within(self, self.trail, now)

    def perhaps_cleared(self, leaves: Iterable[Tensor]) -> None:
        """Code that isn't known has the leaves, or what they are in."""
        self.clear(leaves, None, must=False, why=newest_call(self.timeline))

    def clear(
        self,
        leaves: Iterable[Tensor],
        place: Place,
        must: bool = True,
        zeros: bool = False,
        why: Why | None = None,
    ) -> None:
        """zero_grad, or `p.grad = None`; `why` it isn't known whether it is done."""
        self.trail.tick()
        moment: Moment | None = None
        leaves = list(leaves)
        for leaf in moved_from(leaves):
            leaf.gradient().events.append(Clear(None, self.here.path, must=False))
        if place is not None:
            moment = self.timeline.note("clears", leaves, place, self.here.path)
        for leaf in (*(self.stand_ins if place is not None else ()), *self.leaves.overlapping(leaves)):
            leaf.gradient().events.append(Clear(None, self.here.path, must=False))
        for leaf in leaves:
            clear = Clear(place, self.here.path, must, zeros)
            clear.moment, clear.why, clear.loops = moment, why, len(self.severed.tested.turns)
            leaf.gradient().events.append(clear)
        self.last_touch = next(Backward.numbers)

    def step(self, optimizer: Optimizer, place: Place, *, must: bool = True) -> None:
        """An optimizer's step: judge the gradients that it uses, then write its parameters."""
        self.trail.tick()
        self.trail.set(optimizer, "stepped", True)
        self.optimizers.steps.append(number := next(Backward.numbers))
        self.paths[number] = self.here.path
        if self.severed.backwards:
            self.trail.set(optimizer, "after", self.severed.backwards[-1])
        self.timeline.step(optimizer.leaves, place, self.here.path)
        for leaf in optimizer.leaves:
            self.use(leaf, place, optimizer, must, optimizer.lean)
            self.advance(leaf, place, optimizer, must)
        for leaf in self.leaves.overlapping(optimizer.leaves):
            leaf.gradient().events.append(Use(place, self.here.path, optimizer, self.timeline.newest))

    def unscale(self, leaves: list[Tensor], place: Place) -> None:
        """Take a GradScaler's factor out of gradients."""
        self.timeline.note("changes", leaves, place, self.here.path)
        for leaf in (*leaves, *self.leaves.overlapping(leaves)):
            leaf.gradient().events.append(Unscale(self.here.path))

    def use(
        self, leaf: Tensor, place: Place, by: Optimizer | Tensor, must: bool, lean: Lean = NOTHING
    ) -> None:
        """Let a step use a leaf's gradient."""
        events = leaf.gradient().events
        if by is leaf:
            self.timeline.step([leaf], place, self.here.path)
        if must:
            self._stale(leaf, events, place, by, lean)
            self._erased(leaf, events, place, by, lean)
        events.append(Use(place, self.here.path, by, self.timeline.newest))
        if by is leaf:
            self.updated.append(leaf)
            self.last_touch = next(Backward.numbers)

    def advance(self, leaf: Tensor, place: Place, optimizer: Optimizer, must: bool) -> None:
        """Write a parameter, where it surely has a gradient."""
        if not must or self.graph.requires(leaf) is not True or not self._filled(leaf):
            return
        write = self.recording.write(leaf, place, "step", silent=optimizer.fused is True)
        write.stepped = optimizer, leaf

    def _filled(self, leaf: Tensor) -> bool:
        added: list[Path] = []
        for event in reversed(leaf.gradient().events):
            if contradicts(event.path, self.here.path) or isinstance(event, (Use, Unscale)):
                continue
            if isinstance(event, Add) and event.backward.returns:
                continue
            if isinstance(event, Add) and event.must and not implies(self.here.path, event.path):
                added.append(event.path)  # one of several, of which one is sure to arrive
                if covered(self.here.path, added):
                    return True
                continue
            if isinstance(event, Clear) and event.zeros:
                continue
            if isinstance(event, Empty) and not implies(self.here.path, event.path):
                continue
            return isinstance(event, Add) and event.must and implies(self.here.path, event.path)
        return False

    def _since_clear(self, events: list[SlotEvent]) -> tuple[list[SlotEvent], list[Why]] | None:
        """What happened to a gradient since it was last cleared, newest first, and what isn't known of it;
        None if that is so on some paths only."""
        recent: list[SlotEvent] = []
        doubts: list[Why] = []
        for event in reversed(events):
            if contradicts(event.path, self.here.path):
                continue
            if isinstance(event, Add) and event.backward.returns:
                continue
            if isinstance(event, Empty):
                if implies(self.here.path, event.path):
                    return recent, doubts
                continue
            if isinstance(event, Clear) and event.must:
                return (recent, doubts) if implies(self.here.path, event.path) else None
            if isinstance(event, Clear) and event.why is None:
                return None
            if isinstance(event, Clear) and event.why is not None:
                doubts.append(event.why)
                continue
            recent.append(event)
        return recent, doubts

    def _stale(
        self, leaf: Tensor, events: list[SlotEvent], place: Place, by: Optimizer | Tensor, lean: Lean
    ) -> None:
        since = self._since_clear(events)
        recent, doubts = since or ([], [])
        if doubts:
            reason = "what isn't followed may have cleared these gradients"
            self.reports.silence(place, reason, doubts[0])
        elif since is None:
            self.reports.silence(place, "these gradients are cleared on some of the ways that lead here")
        uses = [(i, event) for i, event in enumerate(recent) if isinstance(event, Use)]
        if not uses or uses[0][1].by is not by:
            return
        newest, use = uses[0]
        fresh = [event for event in recent[:newest] if isinstance(event, Add)]
        stale = [event for event in recent[newest:] if isinstance(event, Add)]
        if (
            not fresh
            or not stale
            or not any(event.must for event in stale)
            or not all(event.must for event in fresh)
        ):
            return
        first = self.meant(fresh)
        if id(use.place) in first.backward.spoilt:
            return
        old = next(event for event in stale if event.must)
        lean = lean | first.lean | old.lean
        steps = [(first.backward.place, Role.ADDS), (use.place, Role.ALREADY_USED)]
        if use.place is not place:
            steps.append((place, Role.USES_AGAIN))
        name = by.name if isinstance(by, Optimizer) else ""
        held = by.leaves if isinstance(by, Optimizer) else [leaf]
        between = self.optimizers.between(use.moment, first.backward.moment, held)
        facts = NotCleared(
            optimizer=name,
            step=self.reports.span(place),
            early=between is not None and not any(touch.kind in READS for touch in between),
            parameters=(leaf.name,) if by is leaf and leaf.name else (),
            between=between,
        )
        met = shared(fresh, first) | shared(stale, old) | use.path
        when = beyond(met, self.here.path - self.here.assumed)
        accounts = self.leaves.accounts
        account = accounts.of(Assumption.NOBODY_ELSE_CLEARS, (*doubts, *accounts.clearing([leaf])))
        self.reports.report("missing_zero_grad", first.backward.place, steps, facts, lean=lean, when=when,
                            account=account)  # fmt: skip

    def meant(self, adds: list[Add]) -> Add:
        """The first contribution that a step is for, newest first given.

        What arrived before another optimizer's step, or beside a backward that names its leaves, is what
        the loss of another network has left.
        """
        before = max((step for step in self.optimizers.steps if step < adds[0].backward.number), default=-1)
        own = [add for add in adds if add.backward.number > before]
        aimed = [add for add in own if add.backward.aimed]
        return (aimed or own)[-1]

    def _failed_since(self, clear: Clear) -> bool:
        """Whether a backward since then raised or brought nothing: it is to blame for the empty gradients."""
        since = [event for event, _ in self.severed.backwards if event.number > clear.number]
        return any(
            (event.raised or not (event.delivered or event.strange))
            and not contradicts(event.path, self.here.path)
            for event in since
        )

    def _perhaps_filled(self, leaf: Tensor, clear: Clear) -> Iterator[Why]:
        """Why it isn't known whether a backward since then has filled a gradient unseen."""
        here = self.here.path
        for event, root in self.severed.backwards:
            if event.number > clear.number and event.strange and not contradicts(event.path, here):
                behind = unknown_behind(self.graph.history(root))
                yield behind or Why(What.BACKWARD, "", event.place)
        for number, node, path, why in self.lent:
            if number > clear.number and not contradicts(path, here) and self._leads_to(node, leaf):
                yield why

    def _leads_to(self, root: Node, leaf: Tensor) -> bool:
        """Whether a backward from a node could still fill a leaf."""
        below = nodes_below(root)
        gone = any(implies(self.here.path, path) for node in below for _, path in node.freed or ())
        return not gone and any(node.leaf is leaf for node in below)

    def _kept_out(self, leaf: Tensor, clear: Clear, place: Place, account: Account) -> bool:
        """Whether a backward since then would have filled a gradient, had its graph not been cut: say so."""
        for event, root in reversed(self.severed.backwards):
            if event.number < clear.number:
                break
            if contradicts(event.path, self.here.path):
                continue
            for cut in all_cuts(self.graph.history(root)):
                if cut.cut in KIND_OF_CUT and any(one is leaf for one in leaves_behind(cut)):
                    steps = [(event.place, Role.BACKWARD), (place, Role.STEPS_WITHOUT_IT)]
                    self.severed.report_cut(cut, event, steps, impact="trains wrong", account=account)
                    return True
        return False

    def _erased(
        self, leaf: Tensor, events: list[SlotEvent], place: Place, by: Optimizer | Tensor, lean: Lean
    ) -> None:
        """What a step can't use as it was cleared after it arrived: all of it, or an earlier turn's part."""
        since = self._since_use(events)
        if since is None:
            return
        clear, lost, used, counted = since
        if counted is not None and clear.loops < len(self.severed.tested.turns):
            return  # what is left of a loop that counts its turns is dropped at its end
        if used:
            if self.asked:
                return
            places = [add.backward.place for add in used]
            lost = [add for add in lost if add.backward.place in places and not self._stepped(add, clear)]
            if self.severed.tested.counting(self.here.path) and any(map(self._turn_of_others, lost)):
                return
            # What a step could use only came along, where that was for something else.
            lost = [add for add in lost if not self._looked_at(add)]
        if not lost or not all(add.must and not add.backward.kept for add in lost):
            return
        if not used and self._failed_since(clear):
            return
        perhaps = () if used else self._perhaps_filled(leaf, clear)
        account = self.leaves.accounts.filled([leaf], clear.moment, perhaps)
        if not used and self._kept_out(leaf, clear, place, account):
            return
        first = self.meant(lost)
        steps = [
            (first.backward.place, Role.FILLS),
            (clear.place, Role.ERASES_THEM),
            (place, Role.STEPS_WITHOUT),
        ]
        name = by.name if isinstance(by, Optimizer) else ""
        held = by.leaves if isinstance(by, Optimizer) else [leaf]
        draft = self.reports.draft(
            "zero_grad_before_step",
            clear.place,
            steps,
            EarlyClear(
                backward=self.reports.span(first.backward.place),
                step=self.reports.span(place),
                optimizer=name,
                between=self.since_step(events, first, held),
            ),
            lean=lean | first.lean | (counted or NOTHING),
            when=beyond(shared(lost, first), self.here.path - self.here.assumed),
            account=account,
        )
        self.erased_before(self.timeline.newest, draft, held)

    def erased_before(
        self, step: Moment | None, draft: Draft[EarlyClear] | None, leaves: list[Tensor]
    ) -> None:
        """Keep what a clearing took from a step, until all is known that fills those gradients."""
        if draft is not None:
            savers = {id(saved.node) for leaf in leaves for saved in leaf.storage.savers}
            self.erasures.append((draft, step, leaves, next(Backward.numbers), savers))

    def note_erasures(self) -> None:
        """At the end: note them with all that fills the gradients, also after the step."""
        for draft, step, leaves, now, savers in self.erasures:
            touches = self.optimizers.touches
            filled = touches.filled(step, leaves) if step is not None and touches is not None else None
            later = (event for event, _ in self.severed.backwards if event.number > now)
            spoils = any(self._strange(event, draft) or savers & event.met.keys() for event in later)
            self.reports.note(draft, replace(draft.facts, filled=filled, spoils=spoils))

    def _strange(self, event: Backward, draft: Draft[EarlyClear]) -> bool:
        """Whether it isn't known all that a backward reaches, and it is another one than was erased: that one
        comes to a new graph in each turn, unless it keeps what it walks."""
        other = self.reports.span(event.place) != draft.facts.backward
        return event.strange and (other or event.retain is not False)

    def since_step(self, events: list[SlotEvent], first: Add, leaves: list[Tensor]) -> Touched:
        """What touched leaves between the step before a contribution and the step that runs."""
        now = self.timeline.newest
        before = [event for event in events[: events.index(first)] if isinstance(event, Use)]
        start = before[-1].moment if before else now and self.timeline.beginning(now)
        return self.optimizers.between(start, now, leaves)

    def _stepped(self, add: Add, clear: Clear) -> bool:
        """Whether another optimizer has stepped before a contribution was erased: it was for that one."""
        between = (step for step in self.optimizers.steps if add.backward.number < step < clear.number)
        return any(self._beside(self.paths.get(step, ALWAYS)) is None for step in between)

    def _turn_of_others(self, add: Add) -> bool:
        """Whether another step than the one that runs has run since: each of several may have turns of its
        own, and needs nothing of those of others."""
        since = (step for step in self.optimizers.steps[:-1] if step > add.backward.number)
        return any(self._beside(self.paths.get(step, ALWAYS)) is None for step in since)

    def _looked_at(self, add: Add) -> bool:
        """Whether a backward was for gradients that somebody reads, of what no optimizer holds, or may have
        been."""
        held = {id(leaf) for one in self.optimizers.known for leaf in one.leaves}
        for one in self.read_grads:
            adds = [event for event in one.gradient().events if isinstance(event, Add)]
            brought = not adds or any(each.backward.place is add.backward.place for each in adds)
            if id(one) not in held and one.requires is not False and brought:
                return True
        return False

    def _beside(self, path: Path) -> Count | None:
        """What says that something happened in another turn than one that a test counts out, next to it."""
        return self.severed.tested.beside(path, self.here.path)

    def _since_use(self, events: list[SlotEvent]) -> tuple[Clear, list[Add], list[Add], Lean | None] | None:
        """The last clearing of what no step has used yet, what it erased and what came after, and what it
        takes that a step in the turn before didn't run."""
        used: list[Add] = []
        lost: list[Add] = []
        clear: Clear | None = None
        lean: Lean | None = None
        for event in reversed(events):
            if contradicts(event.path, self.here.path):
                continue
            if (count := self._beside(event.path)) is not None:
                lean = (lean or NOTHING) if count.known else COUNTED
                continue
            if isinstance(event, Use) or (isinstance(event, Empty) and implies(self.here.path, event.path)):
                break
            if isinstance(event, Clear):
                if event.why is not None and clear is None:
                    continue  # whoever did this after a clearing can only have filled them again
                if not event.must or not implies(self.here.path, event.path):
                    return None
                clear = clear if clear is not None and lost else event
            elif isinstance(event, Add) and not event.backward.returns:
                (used if clear is None else lost).append(event)
        return None if clear is None else (clear, lost, used, lean)

    def scaled(self, leaf: Tensor, place: Place, form: Literal["clip", "step"]) -> bool:
        """Report a gradient that still carries a GradScaler's factor."""
        for event in reversed(leaf.gradient().events):
            if contradicts(event.path, self.here.path) or isinstance(event, Empty):
                continue
            if not isinstance(event, Add) or not event.must or event.backward.scaler is None:
                return False
            scaler = event.backward.scaler
            if scaler["scaler"].enabled is not True:
                return False
            optimizer = next(
                (o.name for o in self.optimizers.known if any(leaf is held for held in o.leaves)), ""
            )
            used = (place, Role.USED_SCALED)
            steps = [(event.backward.place, Role.SCALED_ARRIVE), used]
            facts = Scaled(scaler=scaler["name"], optimizer=optimizer, form=form)
            self.reports.report("clip_before_unscale", place, steps, facts, lean=event.lean)
            return True
        return False

    def reached(self) -> set[int]:
        """The leaves that some backward reached, or may have."""
        return {
            id(leaf)
            for leaf in self.leaves.every_leaf
            if leaf.slot and any(isinstance(e, Add) for e in leaf.slot.events)
        }


class Ended:
    """What all entries of a file have left together."""

    def __init__(self, entries: Sequence[Gradients]) -> None:
        self.reached = {leaf for one in entries for leaf in one.reached()}
        """The leaves that some backward reached, or may have."""
        every = {id(optimizer): optimizer for one in entries for optimizer in one.optimizers.known}
        self.optimizers = list(every.values())
        self.trained = {id(leaf) for optimizer in self.optimizers for leaf in optimizer.leaves}
        """The leaves that somebody wants to train: an optimizer holds them."""
        self.updated = {id(leaf) for one in entries for leaf in one.updated}
        self.accounts = [one.leaves.accounts for one in entries]
        self.supposed: list[Unknown] = []
        """What is taken for optimizers by its use: they hold what they are made of, or some of it."""
        read = {id(tensor): tensor for one in entries for tensor in one.read_grads}
        self.read = list(read.values())
        """The tensors whose gradient somebody has looked at."""

    def held(self, sought: Assumption, leaves: Sequence[Tensor], more: Iterable[Why] = ()) -> Account:
        """What may step leaves, in all entries."""
        first, *others = self.accounts
        made = (value.why for value in self.supposed if first.holds(value.holds, leaves))
        each = (why for one in others for why in one.had(leaves) if self.optimizers)
        return first.held(sought, leaves, self.optimizers, (*more, *made, *each))
