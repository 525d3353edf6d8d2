"""Steps that come too early: what stands between them and the backward that needs the old parameters."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from gradfix.defects import together
from gradfix.defects.ordered import EarlyStep
from gradfix.tape.domain.events import Add, Use
from gradfix.tape.machine.cuts import nodes_below
from gradfix.tape.machine.reach import leading
from gradfix.tape.machine.touches import of_gradients

if TYPE_CHECKING:
    from gradfix.defects import Touched
    from gradfix.tape.domain.events import Backward
    from gradfix.tape.domain.graph import Tensor, Write
    from gradfix.tape.domain.moments import Moment
    from gradfix.tape.domain.torch_values import Optimizer
    from gradfix.tape.machine.histories import Graph
    from gradfix.tape.machine.leaves import Leaves


class Step(NamedTuple):
    """A step as one of the writes that it consists of shows it."""

    write: Write
    optimizer: Optimizer
    moment: Moment


class EarlySteps:
    """What the rewrite of a step that came too early has to know."""

    def __init__(self, graph: Graph, leaves: Leaves) -> None:
        self.graph = graph
        self.reports = graph.reports
        self.timeline = graph.timeline
        self.leaves = leaves
        self.optimizers = leaves.optimizers
        self.known: dict[tuple[int, int], EarlyStep] = {}
        """What stands between a step and a later backward, by both."""

    def facts(self, write: Write, later: Backward) -> EarlyStep:
        """Which backward the early step was for, and what stands between it and the later one."""
        own: Add | None = None
        if write.stepped is not None:
            adds = [add for add in write.stepped[1].gradient().events if isinstance(add, Add)]
            own = next((add for add in reversed(adds) if add.backward is not later), None)
        key = (id(write.place), later.number)
        if key not in self.known:
            self.known[key] = self._since(write, later)
        return replace(
            self.known[key],
            optimizer=write.stepped[0].name if write.stepped is not None else "",
            backward=self.reports.span(later.place) if not later.virtual else None,
            step_backward=self.reports.span(own.backward.place) if own else None,
            spared=self.spared(later),
            reached=self.reached(later),
            perhaps=self.reached(later, perhaps=True) or (),
            frozen=self.frozen(),
        )

    def _since(self, write: Write, later: Backward) -> EarlyStep:
        """What stands between, for this step and for those after it that the later backward needs as well."""
        step = _step_of(write)
        if step is None:
            return EarlyStep()
        since = [one for one in self._spoiling(later) if one.moment.number > step.moment.number]
        places = [self.reports.span(one.write.place) for one in since]
        return EarlyStep(
            steps=tuple(span for span in places if span is not None),
            between=together([self._between(one, later) for one in (step, *since)]),
            beside=self._beside(step, since, later),
            shared=self._shared(step.optimizer),
        )

    def _between(self, step: Step, later: Backward) -> Touched:
        return self.optimizers.between(step.moment, later.moment, step.optimizer.leaves)

    def _beside(self, step: Step, since: list[Step], later: Backward) -> Touched:
        """What touches the gradients of all other optimizers."""
        own = {id(leaf) for one in (step, *since) for leaf in one.optimizer.leaves}
        leaves = {id(leaf): leaf for one in self.optimizers.known for leaf in one.leaves}
        rest = [leaf for key, leaf in leaves.items() if key not in own]
        return of_gradients(self.optimizers.between(step.moment, later.moment, rest))

    def _shared(self, optimizer: Optimizer) -> bool | None:
        """Whether another optimizer steps some of the same leaves."""
        own = {id(leaf) for leaf in optimizer.leaves}
        perhaps = {id(leaf) for leaf in self.leaves.overlapping(optimizer.leaves)}
        others = [one for one in self.optimizers.known if one.place is not optimizer.place]
        held = {id(leaf) for one in others for leaf in one.leaves}
        if own & held:
            return True
        return None if self.timeline.strange or perhaps & held else False

    def _spoiling(self, later: Backward) -> list[Step]:
        """The steps that have changed what a backward needs, each once."""
        assert later.root is not None
        found: dict[int, Step] = {}
        for node in nodes_below(self.graph.history(later.root)):
            for spoil in node.spoiled or ():
                step = _step_of(spoil.write) if spoil.write.form == "step" else None
                if step is not None:
                    found[id(spoil.write.place)] = step
        return list(found.values())

    def stepped(self, earlier: Backward, later: Backward, grows: bool) -> bool:
        """Whether a step between two backwards has changed what the later one needs, or may have.

        `grows`: what each turn builds is in the graph of the next one, which may have kept what is stepped.
        """
        steps, supposed = (
            [step for step in known if earlier.number < step < later.number]
            for known in (self.optimizers.steps, self.optimizers.supposed)
        )
        if supposed or not steps or later.root is None:
            return bool(supposed)
        below = nodes_below(self.graph.history(later.root))
        return grows or any(
            node.may
            or any(one.write.form == "step" for one in node.spoiled or ())
            or (node.leaf is not None and _may_be_stepped(node.leaf, earlier, later))
            for node in below
        )

    def frozen(self) -> tuple[str, ...]:
        """The optimizers that hold leaves that need no gradient, or may need none."""
        known = self.optimizers.known
        return tuple(one.name for one in known if any(leaf.requires is not True for leaf in one.leaves))

    def spared(self, event: Backward) -> tuple[str, ...]:
        """The optimizers whose leaves a backward could reach without meeting what it raises about."""
        if event.virtual or event.root is None:
            return ()
        root = self.graph.history(event.root)
        broken = [
            id(node)
            for node in nodes_below(root)
            if node.spoiled or any(earlier.met is not event.met for earlier, _ in node.freed or ())
        ]
        found = []
        for optimizer in self.optimizers.known:
            walked = leading(self.graph, root, optimizer.leaves)
            if optimizer.name and id(root) in walked and not any(one in walked for one in broken):
                found.append(optimizer.name)
        return tuple(found)

    def reached(self, event: Backward, *, perhaps: bool = False) -> tuple[str, ...] | None:
        """The optimizers whose leaves a backward reaches, or `perhaps` does, if all that step are known."""
        if event.virtual or event.root is None or self.timeline.strange:
            return None
        root, known = self.graph.history(event.root), self.optimizers.known
        held = ([*one.leaves, *self.leaves.overlapping(one.leaves)] for one in known)
        walked = (leading(self.graph, root, leaves, perhaps=perhaps) for leaves in held)
        return tuple(one.name for one, nodes in zip(known, walked, strict=True) if id(root) in nodes)


def _may_be_stepped(leaf: Tensor, earlier: Backward, later: Backward) -> bool:
    """Whether a step between two backwards may have changed a leaf: it isn't known if that had a gradient."""
    slot = leaf.slot
    uses = [one for one in (slot.events if slot is not None else ()) if isinstance(one, Use)]
    first, last = (one.moment.number if one.moment is not None else None for one in (earlier, later))
    written = {id(write.place) for write in leaf.storage.writes if write.form == "step"}
    return any(
        id(use.place) not in written
        and (use.moment is None or first is None or last is None or first < use.moment.number < last)
        for use in uses
    )


def _step_of(write: Write) -> Step | None:
    """The step that has written a leaf, where it is known when that was."""
    if write.stepped is None:
        return None
    optimizer, leaf = write.stepped
    used = [one for one in leaf.gradient().events if isinstance(one, Use) and one.place is write.place]
    moment = used[-1].moment if used else None
    return Step(write, optimizer, moment) if moment is not None else None
