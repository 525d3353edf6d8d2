"""Writes that torch refuses whatever is trained: to memory that is shown twice, to what was made in inference
mode, and by `out=` what would have to be recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradfix.defects import NOTHING, Assumption, Convention, Role
from gradfix.defects.written import RefusedWrite
from gradfix.tape.domain.paths import implies, tested
from gradfix.tape.effects import strides
from gradfix.tape.effects.operations import having, in_place
from gradfix.tape.machine.grad_mode import UNSET

if TYPE_CHECKING:
    from collections.abc import Callable

    from gradfix.defects.written import Written
    from gradfix.tape.domain.graph import Node, Tensor
    from gradfix.tape.domain.values import Lean, Place
    from gradfix.tape.machine.histories import Graph

SHARED = "more than one element of the written-to tensor refers to a single memory location"
INFERENCE = "Inplace update to inference tensor outside InferenceMode is not allowed"
OUT = "functions with out=... arguments don't support automatic differentiation"
UNLOOKED = in_place(having("takes-repeated"))
"""Writes that don't look at how the elements lie."""
REFUSING = having("refuses-out")
BY_HAND = frozenset({"augassign", "method", "setitem", "keyword"})
"""What a statement of the program writes."""


REPEATED = "a tensor of which several elements lie in one place"
OF_INFERENCE = "a tensor that was made in inference mode"
UNFOLLOWED = "`out=`, which autograd doesn't follow"


class RefusedWrites:
    """What torch refuses to write, no gradient asked for."""

    def __init__(self, graph: Graph, written: Callable[[Tensor, Place, str], Written]) -> None:
        self.graph = graph
        self.here = graph.here
        self.reports = graph.reports
        self.grad_mode = graph.grad_mode
        self.written = written
        """What a rewrite has to know of a write."""

    def in_place(self, target: Tensor, node: Node, place: Place, form: str) -> bool:
        """Whether torch refuses a write in place for the memory that it goes to."""
        if target.data_of is not None or form not in BY_HAND:
            return False
        if self._inferred(target):
            steps = [(target.storage.inference, Role.MADE_IN_INFERENCE), (place, Role.WRITTEN)]
            facts = RefusedWrite(
                **self.written(target, place, form).named(), why="inference", what=OF_INFERENCE
            )
            self._report(place, steps, facts, INFERENCE, target.lean | self._entered())
            return True
        looked = form in ("augassign", "method") and node.op.endswith("_") and node.op not in UNLOOKED
        if looked and repeats(target):
            steps = [(target.place, Role.MADE), (place, Role.WRITTEN)]
            facts = RefusedWrite(**self.written(target, place, form).named(), why="shared", what=REPEATED)
            self._report(place, steps, facts, SHARED, target.lean)
            return True
        return False

    def by_out(self, out: Tensor, node: Node, place: Place) -> bool:
        """Whether torch refuses to put a result into `out=`, as that would have to be recorded."""
        mode = self.grad_mode
        if node.op not in REFUSING or mode.grad is not True or mode.mode_in_doubt is not False:
            return False
        if node.requires is not True and self.graph.requires(out) is not True:
            return False
        lean = node.lean | out.lean
        if self._entered() or Convention.D in lean:  # as often it is inference alone that it is meant for
            lean = lean | {Assumption.RECORDED_HERE}
        facts = RefusedWrite(**self.written(out, place, "out").named(), why="out", what=UNFOLLOWED)
        self._report(place, [(place, Role.WRITTEN)], facts, OUT, lean)
        return True

    def _report(
        self, place: Place, steps: list[tuple[Place, Role]], facts: RefusedWrite, says: str, lean: Lean
    ) -> None:
        if self.reports.handled(place):
            lean = lean | {Assumption.NOT_HANDLED}
        self.reports.report("write_refused", place, steps, facts, lean=lean, when=self.here.path, says=says)

    def _entered(self) -> Lean:
        """What it takes that no mode was entered around what is entered by itself."""
        by_itself = self.grad_mode.mode is UNSET and tested(self.here.path) != self.here.path
        return frozenset({Convention.G}) if by_itself else NOTHING

    def _inferred(self, target: Tensor) -> bool:
        storage = target.storage
        if target.leaf is True and target.requires is not False and self.grad_mode.grad is not False:
            return False  # of a leaf that requires grad torch says that first
        return (
            storage.inference is not None
            and not storage.parts
            and target.view != "loose"
            and target.maybe is None
            and target.counter is None
            and self.grad_mode.inference is False
            and self.grad_mode.mode_in_doubt is False
            and implies(self.here.path, storage.inferred)
        )


def repeats(tensor: Tensor) -> bool:
    """Whether a tensor shows one place of memory as several elements for sure."""
    if tensor.base is None or tensor.maybe is not None:
        return False
    if (sizes := strides.known(tensor.shape)) is not None and tensor.strides is not None:
        return any(size > 1 and step == 0 for size, step in zip(sizes, tensor.strides, strict=True))
    return bool((tensor.node.facts or {}).get("repeats"))
