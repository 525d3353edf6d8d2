"""Writes that torch refuses whatever is trained: to memory that is shown twice, to what was made in inference
mode, and by `out=` what would have to be recorded."""

from __future__ import annotations

import ast
from dataclasses import replace
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
    from gradfix.tape.domain.paths import Path
    from gradfix.tape.domain.values import Lean, Place
    from gradfix.tape.machine.histories import Graph
    from gradfix.tape.machine.python import Python

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

    def __init__(
        self, graph: Graph, python: Python, written: Callable[[Tensor, Place, str], Written]
    ) -> None:
        self.graph = graph
        self.python = python
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
            lean = self._moved(target) | self._entered_about(target.storage.inference)
            inferred = replace(self._facts(target, place, form), why="inference", what=OF_INFERENCE)
            self._report(place, steps, inferred, INFERENCE, target.lean | lean)
            return True
        looked = form in ("augassign", "method") and node.op.endswith("_") and node.op not in UNLOOKED
        if looked and repeats(target):
            steps = [(target.place, Role.MADE), (place, Role.WRITTEN)]
            shared = replace(self._facts(target, place, form), why="shared", what=REPEATED)
            self._report(place, steps, shared, SHARED, target.lean | self._moved(target))
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

    def _entered_about(self, mode: Place) -> Lean:
        """The same of a write to what a mode elsewhere has made: it may well be meant for that mode alone."""
        lean = self._entered()
        return lean | {Assumption.RECORDED_HERE} if lean and not self.python.in_this_function(mode) else lean

    def _moved(self, target: Tensor) -> Lean:
        """What it takes that a tensor of a module has the memory that it was made with."""
        base = target.base if target.base is not None else target
        here = self.python.in_this_function(base.place)
        return NOTHING if here or not self.python.on_a_module(target) else frozenset({Assumption.NOT_MOVED})

    def _facts(self, target: Tensor, place: Place, form: str) -> RefusedWrite:
        """The facts of a write, with the name that holds all of the memory where an item of it is written."""
        facts = RefusedWrite(**self.written(target, place, form).named())
        expression, node = self.python.written(place), target.node
        whole = expression
        while isinstance(whole, ast.Subscript) and node.parents and node.place in (whole, place):
            whole, node = whole.value, node.parents[0]
        if whole is not None and whole is not expression:
            return replace(facts, target=self.reports.text(whole, self.reports.findings.main))
        return facts

    def _inferred(self, target: Tensor) -> bool:
        if target.leaf is True and target.requires is not False and self.grad_mode.grad is not False:
            return False  # of a leaf that requires grad torch says that first
        normal = self.grad_mode.inference is False and self.grad_mode.mode_in_doubt is False
        return normal and target.counter is None and of_inference(target, self.here.path)


def of_inference(tensor: Tensor, path: Path) -> bool:
    """Whether a tensor was made in inference mode for sure."""
    storage, base = tensor.storage, tensor.base if tensor.base is not None else tensor
    if storage.inference is None or storage.parts or tensor.view == "loose" or tensor.maybe is not None:
        return False
    if base.parameter or (base.node.op == "einsum" and len(base.node.parents) < 2):
        return False  # made anew outside of the mode; a view of what may be older
    return implies(path, storage.inferred)


def repeats(tensor: Tensor) -> bool:
    """Whether a tensor shows one place of memory as several elements for sure."""
    if tensor.base is None or tensor.maybe is not None or tensor.shape is None or 0 in tensor.shape:
        return False
    if (sizes := strides.known(tensor.shape)) is not None and tensor.strides is not None:
        return any(size > 1 and step == 0 for size, step in zip(sizes, tensor.strides, strict=True))
    return (tensor.node.facts or {}).get("repeats") is tensor.shape  # not what it was given since
