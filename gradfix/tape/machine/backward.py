"""Backward on the machine: what it raises, what it frees, and which leaves it reaches."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, TypedDict

from gradfix.defects import Assumption, Convention, Role
from gradfix.defects.records import (
    BackwardUnrecorded,
    Freed,
    NonScalar,
    Overwritten,
    Written,
    WrittenByModule,
    WrittenThroughData,
)
from gradfix.tape.domain.events import Add, live_arms, surely
from gradfix.tape.domain.graph import upstream
from gradfix.tape.domain.moments import under
from gradfix.tape.domain.paths import ALWAYS, contradicts, implies
from gradfix.tape.domain.values import stamp
from gradfix.tape.domain.within import Within
from gradfix.tape.effects import shapes
from gradfix.tape.effects.operations import having, layers_having, name_of_layer
from gradfix.tape.effects.repeats import put_again
from gradfix.tape.machine.cuts import leaves_behind
from gradfix.tape.machine.guarded import Guarded
from gradfix.tape.machine.reach import MANY, leading, remember

if TYPE_CHECKING:
    from gradfix.defects import Span
    from gradfix.defects.records import (
        Facts,
    )
    from gradfix.tape.domain.graph import Node, NodeFacts, Spoil, Tensor, Write
    from gradfix.tape.domain.values import Lean, Place
    from gradfix.tape.machine.early_steps import EarlySteps

SURE, BY_USE = 2, 1
"""How a node is part of a backward: for sure, or because nothing else can be meant (convention C)."""
FEW = 100
"""How many operations one can be told the places of."""
DRAWS = {*having("draws"), *map(name_of_layer, layers_having("drops"))}
WAYS = 3
"""On how many different paths one backward looks at a node again."""
STEPPED_BETWEEN = "whether a step since the backward before this changed what it needs isn't known"
UNDERIVED = having("underived")
OVERWRITTEN = "one of the variables needed for gradient computation has been modified by an inplace operation"
TWICE = "Trying to backward through the graph a second time"
NO_SCALAR = "grad can be implicitly created only for scalar outputs"


class Blamed(NamedTuple):
    """The rule that was broken, the place that breaks it, and what is known of it."""

    kind: str
    place: Place
    facts: Facts


if TYPE_CHECKING:
    from typing_extensions import Unpack

    from gradfix.tape.domain.events import Backward
    from gradfix.tape.domain.paths import Path
    from gradfix.tape.machine.python import Python
    from gradfix.tape.machine.recording import Recording
    from gradfix.tape.machine.severed import Severed


class Scoped(TypedDict, total=False):
    """What differs inside of something only."""

    whole: Callable[[], bool] | None


class Backwards:
    """Backward as it runs."""

    def __init__(
        self, severed: Severed, recording: Recording, early_steps: EarlySteps, python: Python
    ) -> None:
        self.severed = severed
        self.recording = recording
        self.early_steps = early_steps
        self.python = python
        self.graph = severed.graph
        self.here = severed.here
        self.reports = severed.reports
        self.trail = recording.trail
        self.timeline = recording.timeline
        self.grad_mode = recording.grad_mode
        self.whole: Callable[[], bool] | None = None
        """Whether what is backpropagated came out of a whole model, which is given data."""
        self.frees = stamp()
        """When a backward last freed what it walked."""

    def within(self, **now: Unpack[Scoped]) -> Within:
        """A block in which this is so, and as it was after it."""
        return Within(self, self.trail, now)

    def run(
        self, root: Tensor, event: Backward, *, whole: bool = True, only: list[Tensor] | None = None
    ) -> None:
        """Run backward from `root`: `whole` False where a gradient is given, `only` the leaves asked for."""
        node = self.graph.history(root)
        event.assumed = self.here.assumed
        event.root = root
        if node.op == "scale" and node.facts:
            event.scaler = node.facts
        event.aimed = tuple(only or ())
        if not event.virtual:
            self.timeline.on = True
            event.moment = self.timeline.note("fills", (event,), event.place, event.path)
            self.severed.backwards.append((event, root))
        if root.requires is False:
            if not event.virtual:
                self.severed.severed_root(root, node, event)
            return
        if not event.virtual:
            if root.requires is None:
                self.severed.severed_on_some_paths(root, node, event)
            known: NodeFacts = node.facts or {}
            several = known.get("several") or shapes.many(root.shape)
            unreduced = several is None and bool(known.get("unreduced"))
            if whole and (several or unreduced):
                made = (root.place, Role.MADE_LARGE)
                lean = root.lean | {Convention.C} if unreduced else root.lean
                scalar = NonScalar(root=self._root_text(event))
                self.reports.report("non_scalar_backward", event.place, [made], scalar, lean=lean,
                            when=event.path, says=NO_SCALAR)  # fmt: skip
            if self.grad_mode.grad is False and root.requires is True:
                here = [(event.place, Role.BACKWARD)]
                facts = BackwardUnrecorded(backward=self.reports.span(event.place))
                self.reports.report(
                    "backward_in_no_grad", self.grad_mode.grad_off[1], here, facts, when=event.path
                )
            self.severed.rewrapped(root, node, event)
            if only and node.cut and node.leaf is not None:
                self.severed.rewraps.append((node, event))
        self._walk(root, node, event, only)
        if not event.virtual and root.requires is None:
            self.reports.silence(event.place, "whether this has a graph isn't known", node)
        elif event.strange:
            self.reports.silence(event.place, "not all that this may reach is known", node)

    def _root_text(self, event: Backward) -> str:
        """The source text of what backward runs on: a method's owner, or what a function is given first. The
        method is given nothing where one number is wanted."""
        func, given = getattr(event.place, "func", None), getattr(event.place, "args", None)
        function = given and not (isinstance(given[0], ast.Constant) and given[0].value is None)
        root = given[0] if given and function else getattr(func, "value", None)
        return self.reports.text(root, self.reports.findings.main) if root is not None else ""

    def _walk(self, root: Tensor, start: Node, event: Backward, only: list[Tensor] | None) -> None:
        """Visit what backward visits; what is surely part of it is seen as such even if met before."""
        seen = event.met
        arms = live_arms(start, event.path) if root.requires is None else [event.path]
        sure: list[tuple[Node, Path]] = [(start, arm - event.path) for arm in arms]
        guarded = Guarded()
        by_use: list[tuple[Node, Path]] = [] if sure else [(start, ALWAYS)]
        wanted = None if only is None else {id(leaf) for leaf in only}
        walked = None if only is None else leading(self.graph, start, only, perhaps=True)
        if walked is not None and not event.virtual and id(start) not in walked:
            self.reports.silence(
                event.place,
                "no way from here to what gradients are asked for is seen",
            )
        again = (self.recording.spoils, self.frees) if self._leaves_all(event, only) else None
        frees = event.retain is False and not event.virtual
        supposed = self.early_steps.optimizers.supposed
        while sure or guarded.order or (by_use and not event.virtual):
            level = SURE if sure or guarded.order else BY_USE
            if sure or not guarded.order:
                node, when = (sure or by_use).pop()
            else:
                node, when = guarded.pop()
            if node.requires is False or (walked is not None and id(node) not in walked):
                continue
            if again and level == SURE and not when and node.reach is not None and node.reach[0] == again:
                self._reach_all(node.reach[1], event, root.lean)
                continue
            before, here = seen.get(id(node)), event.path | when if when else event.path
            if before is not None and (len(before) >= WAYS or any(one <= here for one in before)):
                continue
            seen[id(node)] = (*before, here) if before else (here,)
            if not event.virtual:
                if supposed and node.leaf is None and -1 < node.clean < supposed[-1]:
                    self.reports.silence(event.place, STEPPED_BETWEEN)
                if node.op in UNDERIVED:
                    self.reports.silence(event.place, f"{node.op} has no derivative; no rule is about that")
                node.clean = event.number
            if node.leaf is not None:
                if not event.virtual and (wanted is None or id(node.leaf) in wanted):
                    self._reach(node, level, event, root.lean, when)
                continue
            if level == BY_USE:
                event.strange = True
            if node.op == "module" and not event.virtual:
                self._through_module(node, event)
            if level == SURE and self._stops(node, event, root.lean, when):
                continue
            for parent, known, guard in self._above(node, level, here):
                both = when | guard
                if known and both:
                    guarded.add(parent, both)
                else:
                    (sure if known else by_use).append((parent, both))
            if frees and level == SURE and node.saves:
                self._free(node, event, when)
        if again and len(seen) > MANY:
            remember(start, again)
        if frees:
            self.frees = stamp()

    def _free(self, node: Node, event: Backward, when: Path) -> None:
        if node.freed is None:
            node.freed = []
        node.freed.append((event, self.here.path | when))

    def _through_module(self, node: Node, event: Backward) -> None:
        """Say of a module whose class isn't known, and whose weights were written since it ran, that what it
        kept isn't known."""
        weights = [parent.leaf.storage.writes for parent in node.parents if parent.leaf is not None]
        if any(writes and writes[-1].born > node.born for writes in weights):
            self.reports.silence(
                event.place, "what a module keeps that isn't known, and was stepped since it ran", node
            )

    @staticmethod
    def _leaves_all(event: Backward, only: list[Tensor] | None) -> bool:
        """Whether a backward changes nothing of the graph, so that the next one needn't look at it again."""
        return only is None and not event.virtual and event.retain is not False

    def _reach_all(self, leaves: tuple[Node, ...], event: Backward, lean: Lean) -> None:
        for leaf in leaves:
            if id(leaf) not in event.met:
                event.met[id(leaf)] = (event.path,)
                leaf.clean = event.number
                self._reach(leaf, SURE, event, lean, ALWAYS)

    def _reach(self, node: Node, level: int, event: Backward, lean: Lean, when: Path) -> None:
        """A gradient arrives at a leaf; by two ways, one of them is always open."""
        assert node.leaf is not None
        adds = node.leaf.gradient().events
        if adds and isinstance(adds[-1], Add) and adds[-1].backward is event:
            adds[-1].path = event.path
            return
        if node.cut:
            self.severed.rewraps.append((node, event))
        else:
            event.delivered = True
        lean = lean | node.lean | event.lean
        if level == BY_USE:
            lean = lean | {Convention.C}
        adds.append(Add(event, not event.returns, lean, event.path | when))

    @staticmethod
    def _above(node: Node, level: int, path: Path) -> Iterator[tuple[Node, bool, Path]]:
        """What backward visits after a node, whether it surely does, and under which guard."""
        guards = node.guards or (ALWAYS,) * len(node.parents)
        sure = level == SURE and not node.may
        for parent, guard in zip(reversed(node.parents), reversed(guards), strict=True):
            if contradicts(guard, path):
                continue
            if sure and parent.requires is None and surely(parent):
                for arm in live_arms(parent, path | guard):
                    yield parent, True, arm - path
            else:
                yield parent, sure and parent.requires is True, guard - path

    def _stops(self, node: Node, event: Backward, lean: Lean, when: Path) -> bool:
        """Report what this node can't give back; True where backward goes no further.

        What is freed raises before torch looks at whether something was written to it.
        """
        if not node.spoiled and not node.freed:
            return False
        here = event.path | when
        gone = self._freed_before(node, event, here)
        if gone is None or not implies(here, gone[1]):
            self._written_since(node, event, lean, when)
        if gone is None:
            return False
        self._twice(node, gone[0], event, lean, when | gone[1])
        event.raised = True
        return True

    @staticmethod
    def _freed_before(node: Node, event: Backward, here: Path) -> tuple[Backward, Path] | None:
        """The earlier backward that has freed a node, and on which path."""
        for earlier, path in node.freed or () if not event.virtual else ():
            if earlier.met is not event.met and not contradicts(path, here):
                return earlier, path
        return None

    def _written_since(self, node: Node, event: Backward, lean: Lean, when: Path) -> None:
        """Report what was written over something that a node has saved."""
        for spoil in node.spoiled or ():
            write, saved = spoil.write.path, spoil.saved.path
            paths = ((write, event.path), (saved, event.path), (when, write), (when, saved))
            if not any(contradicts(one, other) for one, other in paths):
                self._overwritten(spoil, event, lean, when)

    def _overwritten(self, spoil: Spoil, event: Backward, lean: Lean, guard: Path) -> None:
        write, saved = spoil.write, spoil.saved
        if write.form == "buffer":
            return
        if spoil.silent and put_again(write, saved):
            return
        steps = [(saved.node.place, Role.SAVED), (write.place, Role.OVERWRITTEN)]
        if not event.virtual:
            steps.append((event.place, Role.BACKWARD))
        lean = lean | saved.lean | event.lean
        alternative = saved.path - write.path
        if Convention.D in lean and saved.argument and any(one.unrecorded for one in saved.writes):
            return  # what came in is data, as it is written where nothing is recorded
        if Convention.D in lean and saved.argument and write.form == "setitem":
            return  # entries of what came in: as often boxes as features
        if Convention.D in lean and self._prepares(saved.node):
            return
        if event.virtual and self._picked_apart(write.path | saved.path):
            return
        when = (write.path | alternative | guard | event.assumed) - (event.path - event.assumed)
        kind, culprit, facts = self._blamed(spoil, event, steps)
        self.reports.report(kind, culprit, steps, facts, lean=lean, when=when,
                    impact="trains wrong" if spoil.silent else "crashes",
                    says="" if spoil.silent else OVERWRITTEN)  # fmt: skip

    def _picked_apart(self, path: Path) -> bool:
        """Whether two turns of a loop have to meet different things: who says that a module is built so?"""
        picks = self.severed.tested.picks
        return len({picks[key] for key, holds in path if holds and key in picks}) > 1

    def _prepares(self, node: Node) -> bool:
        """Whether a node stands before the first layer of a whole model: it is given data."""
        if self.whole is None or any(leaf.parameter for leaf in leaves_behind(node)):
            return False
        return self.whole()

    def _blamed(self, spoil: Spoil, event: Backward, steps: list[tuple[Place, Role]]) -> Blamed:
        """What an overwriting has broken."""
        write = spoil.write
        if write.form == "step":
            event.spoilt.add(id(write.place))
            return Blamed("step_before_backward", write.place, self.early_steps.facts(write, event))
        known = self._known(spoil, event).named()
        if write.form == "module":
            built = write.built or write.place
            steps.append((built, Role.BUILT_IN_PLACE))
            return Blamed("inplace_module", built, WrittenByModule(**known, module=write.module))
        if spoil.silent:
            return Blamed("write_through_data", write.place, WrittenThroughData(**known))
        return Blamed("inplace_overwrites_saved", write.place, Overwritten(**known))

    def _known(self, spoil: Spoil, event: Backward) -> Overwritten:
        """What a rewrite has to know of a write and of what it went over."""
        write, node = spoil.write, spoil.saved.node
        known = (write.written or Written()).named()
        facts = Overwritten(
            **{**known, "form": write.form}, saver=node.op, save=self.reports.span(node.place)
        )
        return facts if write.leaf is None else self._late(write, write.leaf, event, facts)

    def _late(self, write: Write, leaf: Tensor, event: Backward, facts: Overwritten) -> Overwritten:
        """A leaf is to be written behind the backward that needs its old values."""
        facts = replace(facts, parameter=True)
        if event.virtual or event.moment is None or write.moment is None:
            return facts
        seen, place = under(write.moment, (event.moment.site,))
        return replace(
            facts,
            backward=self.reports.span(event.place),
            under=self.reports.span(place) if seen else None,
            until=self.early_steps.optimizers.until(event.moment, leaf),
        )

    def _built(self, event: Backward) -> tuple[tuple[Span, ...], bool]:
        """Where the operations stand that a backward walks, or nothing; whether one of them draws."""
        roots = [self.graph.history(event.root)] if event.root is not None else []
        below = list(islice(upstream(roots), FEW))
        recorded = (one for one in below if one.requires is not False and one.leaf is None)
        spans = [self.reports.span(one.place) for one in recorded]
        found = tuple(dict.fromkeys(span for span in spans if span is not None))
        return (found if len(below) < FEW and None not in spans else ()), any(map(_draws, below))

    def _twice(self, node: Node, earlier: Backward, event: Backward, lean: Lean, guard: Path) -> None:
        steps = [
            (node.place, Role.SHARED),
            (earlier.place, Role.FREES),
            (event.place, Role.NEEDS_AGAIN),
        ]
        outside, spared = self.python.outside(node, earlier, event), self.early_steps.spared(event)
        if node.doubted and self.grad_mode.mode_in_doubt is False:
            lean = lean | {Assumption.RECORDED_HERE}
        built, draws = self._built(event)
        self.reports.report(
            "backward_twice",
            earlier.place,
            steps,
            Freed(
                again=self.reports.span(event.place),
                outside=outside,
                spared=spared,
                built=built,
                draws=draws,
                shared=self.reports.span(node.place),
            ),
            lean=lean | node.lean,
            when=event.path | guard,
            says=TWICE,
        )


def _draws(node: Node) -> bool:
    """Whether what made a node draws random numbers."""
    return node.op in DRAWS or (node.facts or {}).get("factory") in DRAWS
