"""The simulated autograd: operations make nodes that save storages, writes spoil them, cuts end gradients.

Nothing here knows Python: the interpreter says which operation ran on which tensors, and the machine keeps
the graph as torch would, on every path at once. Facts are three-valued; only a True one may lead to a defect.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gradfix.tape.domain.alternatives import phi
from gradfix.tape.domain.graph import Node, Spoil, Tensor, Write
from gradfix.tape.domain.in_graph import partings
from gradfix.tape.domain.paths import ALWAYS, contradicts, covered, implies, meet
from gradfix.tape.domain.values import (
    NOTHING,
    Const,
    Seq,
    Unknown,
    either,
    stamp,
)
from gradfix.tape.effects.operations import having

if TYPE_CHECKING:
    from gradfix.tape.domain.graph import Saved
    from gradfix.tape.domain.values import (
        Place,
        Truth,
        Value,
    )
    from gradfix.tape.machine.histories import Graph
    from gradfix.tape.machine.tested import Tested


HOLDING = having("holds-it")


def _reached(saved: Saved, tensor: Tensor) -> bool:
    """Whether what a node kept changes with `tensor.data = other`: views and results keep the old memory."""
    return saved.tensor is tensor and saved.node.op in HOLDING


class Recording:
    """What runs is put into the graph, and what it writes spoils what was kept."""

    def __init__(self, graph: Graph, tested: Tested, before: Recording | None) -> None:
        self.graph = graph
        self.here = graph.here
        self.reports = graph.reports
        self.trail = graph.trail
        self.timeline = graph.timeline
        self.grad_mode = graph.grad_mode
        self.tested = tested
        self.late: Tensor | None = None
        """The view that the operation before learnt the history of: until then it counts as a leaf."""
        self.inferred: bool = before is not None and before.inferred
        """Whether a tensor that requires grad was given the data of an inference tensor."""
        self.spoils = stamp()
        """When a saved value was overwritten last."""

    def node(self, op: str, place: Place, inputs: Sequence[Value], lists: Sequence[Value] = ()) -> Node:
        """A recorded operation on inputs, of which some are lists of operands, in the present grad mode."""
        self.late = None
        if self.timeline.on:
            self.timeline.note("reads", inputs, place, self.here.path)
        for value in inputs:
            if not isinstance(value, Tensor) or value.base is None:
                continue
            if value.view == "many" and len(value.storage.writes) > value.seen:
                self.graph.stale_view(value, place)
            elif value.view == "plain" and value.leaf and value.base.requires and self.grad_mode.grad:
                self._learns(value, value is inputs[0])
        requires: Truth = False
        parents: list[Node] = []
        for value in inputs:
            if type(value) is Const:
                continue
            if requires is not True and (fact := self.graph.requires(value)) is not False:
                requires = fact
            nodes = self.graph.given(value)
            if not nodes and isinstance(value, Unknown) and value.requires is None:
                nodes = [self.graph.guess(value)]  # it may be in a graph, whatever the others are
            parents.extend(nodes)
        for value in lists:
            parents.extend(self.graph.unheard(value))
        lean = self.graph.leaning(inputs) if requires else NOTHING
        if self.reports.granted:
            lean = lean | self.reports.granted
        node = Node(op, place, tuple(parents), requires)
        if self.grad_mode.grad is not True and requires is not False:
            if self.grad_mode.grad is False:
                node.requires = False
                node.cut, node.cut_place = self.grad_mode.grad_off[0] or "no_grad", self.grad_mode.grad_off[1]
            else:
                node.requires, node.cut_place = None, place
        elif requires is None:
            node.branch = next((guards for parent in parents if (guards := partings(parent))), ())
        node.path = self.here.path
        node.lean = lean
        node.doubted = self.grad_mode.mode_in_doubt is not False
        if self.inferred and node.requires and (entered := _passed_by(op, inputs)) is not None:
            return self._passing(node, entered, inputs)
        return node

    def _learns(self, view: Tensor, first: bool) -> None:
        """A view is used for the first time since what it shows got into a graph: now it has a history."""
        assert view.base is not None
        if view.base.leaf is not True:
            self.trail.set(view, "leaf", False)
            self.late = view if first else self.late

    def _passing(self, node: Node, entered: Place, inputs: Sequence[Value]) -> Node:
        """What autograd passes by isn't recorded: on the path on which it does."""
        when = ALWAYS.union(*(one.storage.inferred for one in _tensors(inputs))) - self.here.path
        if contradicts(when, self.here.path):
            return node
        past = Node(node.op, node.place, node.parents, False)
        past.cut, past.cut_place, past.path = "inference_mode", entered, self.here.path
        if not when or len(when) > 1:
            return past
        ((key, holds),) = when
        return phi([(when, past), (frozenset({(key, not holds)}), node)])

    def write(self, tensor: Tensor, place: Place, form: str, silent: bool = False) -> Write:
        """Overwrite a tensor's storage: what nodes saved of it is spoiled, where the paths agree."""
        write = Write(place, self.here.path, form, silent or tensor.counter is not None, tensor.counter)
        write.unrecorded = self.grad_mode.grad is not True or form == "callee"
        write.later, write.lean = self.reports.repeat, self.reports.granted
        again = self._again()
        if form != "step":
            write.moment = self.timeline.note("writes", (tensor,), place, self.here.path)
        self.trail.tick()
        self._note(tensor, write, silent, again)
        return write

    def _note(self, tensor: Tensor, write: Write, silent: bool, again: bool) -> None:
        """Let a memory see a write, and each of those whose memory this is."""
        storage = tensor.storage
        storage.writes.append(write)
        if storage.shown and not all(contradicts(path, write.path) for path in storage.shown):
            self.reports.silence(write.place, "whether what an operation kept is this memory isn't known")
        if not again:
            self._spoil_all(tensor, write, silent)
        for guard, part in storage.parts:
            if (both := meet(write.path, guard)) is not None:
                seen = Write(write.place, both, write.form, write.silent, part.counter)
                seen.unrecorded, seen.later, seen.lean = write.unrecorded, write.later, write.lean
                write.parts.append(seen)
                self._note(part, seen, silent, again)

    def _spoil_all(self, tensor: Tensor, write: Write, silent: bool) -> None:
        """Spoil what was saved of a memory, where the paths agree."""
        here = write.path
        partly: list[Saved] = []
        for saved in tensor.storage.savers:
            if write.counter is not saved.counter and not write.silent:
                continue  # saved through `.data`, written by its first name
            if contradicts(here, saved.path):
                continue
            if write.form == "data" and not _reached(saved, tensor):
                continue
            if implies(here, saved.tested):
                self._spoil(saved, write, silent)
            else:
                partly.append(saved)
        if len(partly) > 1 and covered(here, [saved.tested for saved in partly]):
            for saved in partly:  # each arm of a branch has kept it
                self._spoil(saved, write, silent)

    def _spoil(self, saved: Saved, write: Write, silent: bool) -> None:
        """Note that what a node keeps isn't what it was."""
        if saved.node.spoiled is None:
            saved.node.spoiled = []
        saved.node.spoiled.append(Spoil(saved, write, silent or write.counter is not saved.counter))
        self.spoils = stamp()

    def _again(self) -> bool:
        """Whether this runs under a test of memory that was written under that test before: it runs once."""
        tested = (
            [storage for key, _ in self.here.path for storage in self.tested.about.get(key, ())]
            if self.tested.about
            else []
        )
        return any(
            storage in self.tested.about.get(key, ())
            for storage in tested
            for write in storage.writes
            for key, _ in write.path
        )

    def rebase(self, tensor: Tensor, node: Node) -> None:
        """Give a tensor that was written in place the history of the write."""
        trail = self.trail
        if (shown := (tensor.base or tensor).maybe) is not None and node.requires is not False:
            self._may_show(shown, node)
        for part in _parts(tensor):
            self._may_be_written(part, node)
        if tensor.base is not None and tensor.view != "loose":
            node = self._through_base(tensor.base, node)
        generation = tensor.storage.generation + 1
        tensor.storage.generation = generation
        trail.set(tensor, "generation", generation)
        trail.set(tensor, "node", node)
        trail.set(tensor, "requires", node.requires)
        trail.set(tensor, "lean", node.lean)
        if tensor.leaf and node.requires is not False:
            trail.set(tensor, "leaf", node.requires is None and None)

    def anew(self, view: Tensor, node: Node) -> None:
        """What torch refuses to write to a view is a result of its own for what follows: nothing does, as it
        is."""
        self.trail.set(view, "node", node)
        self.trail.set(view, "requires", node.requires)
        self.trail.set(view, "leaf", node.requires is None and None)

    def _may_show(self, tensor: Tensor, node: Node) -> None:
        """What may be the same memory may have learned a history."""
        for one in (tensor, tensor.base, tensor.maybe):
            if one is not None and one.requires is False:
                joined = Node("maybe", node.place, (one.node, node), None)
                joined.may, joined.lean = True, node.lean
                self.trail.set(one, "node", joined)
                self.trail.set(one, "requires", None)
                self.trail.set(one, "leaf", None)

    def _may_be_written(self, tensor: Tensor, node: Node) -> None:
        """One of several tensors was written: this one may have the history of that from now on."""
        joined = Node("maybe", node.place, (tensor.node, node), tensor.requires)
        joined.may, joined.lean = True, tensor.lean
        if tensor.requires is not node.requires:
            joined.requires = tensor.requires or None
            self.trail.set(tensor, "requires", joined.requires)
            self.trail.set(tensor, "leaf", tensor.leaf and None)
        self.trail.set(tensor, "node", joined)

    def _through_base(self, base: Tensor, node: Node) -> Node:
        """A write to a view is one to its base: what the view shows from then on comes from there."""
        trail = self.trail
        above = Node(
            "copy_slices",
            node.place,
            (self.graph.history(base), node),
            either((base.requires, node.requires)),
        )
        above.path, above.doubted = self.here.path, node.doubted
        above.saves = above.writes = True
        above.lean = node.lean if base.requires is not True else base.lean
        trail.set(base, "node", above)
        if above.requires is not base.requires:
            trail.set(base, "requires", above.requires)
            trail.set(base, "lean", above.lean)
        if base.leaf and above.requires is not False:
            trail.set(base, "leaf", above.requires is None and None)
        seen = Node("view", node.place, (above,), above.requires)
        seen.path, seen.lean, seen.doubted = self.here.path, above.lean, above.doubted
        return seen


def _parts(tensor: Tensor) -> Iterator[Tensor]:
    """The tensors that are looked at as one, and what they show."""
    for _, part in tensor.storage.parts:
        yield from (one for one in (part, part.base, part.maybe) if one is not None)
        yield from _parts(part)


def _tensors(inputs: Sequence[Value]) -> list[Tensor]:
    given = [one for value in inputs for one in (value.items if isinstance(value, Seq) else (value,))]
    return [one for one in given if isinstance(one, Tensor)]


WRAPPING = having("wraps")
"""Operations that make a tensor of a number first, one that no inference mode has seen."""


def _passed_by(op: str, inputs: Sequence[Value]) -> Place:
    """Where the inference mode was entered that all operands come from: autograd passes them by."""
    if op.strip("_") in WRAPPING and any(type(value) is Const for value in inputs):
        return None
    entered = [one.storage.inference for one in _tensors(inputs)]
    return entered[0] if entered and all(place is not None for place in entered) else None
