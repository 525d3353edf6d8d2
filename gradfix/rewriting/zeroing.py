"""Where in a training loop the gradients are to be cleared."""

from __future__ import annotations

import libcst as cst

from gradfix.rewriting import shapes as m
from gradfix.rewriting.order import calls_of
from gradfix.rewriting.statements import Anchor, anchor, between, names_in, path, together
from gradfix.tape.effects.operations import having
from gradfix.tree import Tree


def zeroing_place(tree: Tree, backward: cst.CSTNode, step: cst.CSTNode, optimizer: str) -> tuple[str, Anchor]:
    """Where gradients are to be cleared, and on which side: before the iteration's first backward.

    Where the step waits for several backwards, or its place alone sees the optimizer: after the step.
    """
    here, there = anchor(tree, backward), anchor(tree, step)
    if tree.function(backward) is not tree.function(step):
        return ("before", here) if _closure(tree, backward, step) else ("after", there)
    pair = together(tree, backward, step)
    if pair is None:
        return "after", there
    first, last = pair
    row = between(tree, first, None)
    waits = last is not there and last in row and _counts(last)
    waits = waits or any(_goes_on(place) for place in between(tree, first, last) if last in row)
    inner = path(tree, step)[path(tree, step).index(last) :]
    bound = any(
        isinstance(place, cst.For) and optimizer.split(".")[0] in names_in(place.target) for place in inner
    )
    return ("after", there) if waits or bound else ("before", first)


def clearing(tree: Tree, optimizer: str) -> str:
    """`optimizer.zero_grad()`, with the arguments that all other calls of the file have."""
    calls = calls_of(tree.module, "zero_grad")
    given = {", ".join(tree.code(arg).rstrip(", ") for arg in call.args) for call in calls}
    return f"{optimizer}.zero_grad({given.pop() if len(given) == 1 else ''})"


def _counts(place: Anchor) -> bool:
    """Whether a condition lets several backwards pass: one that always steps, or looks for NaN, does not."""
    if not isinstance(place, cst.If) or names_in(place.test) & having("alarms"):
        return False
    return place.orelse is None or not all(calls_of(arm, "step") for arm in (place.body, place.orelse))


def _goes_on(place: cst.CSTNode) -> bool:
    """Whether a turn may end here before its step, for another reason than that the gradients are no good."""
    if isinstance(place, cst.Continue):
        return True
    if isinstance(place, (cst.For, cst.While, cst.FunctionDef, cst.ClassDef, cst.Lambda)):
        return False
    if isinstance(place, cst.If) and names_in(place.test) & having("alarms"):
        return place.orelse is not None and _goes_on(place.orelse)
    return any(_goes_on(child) for child in place.children)


def _closure(tree: Tree, backward: cst.CSTNode, step: cst.CSTNode) -> bool:
    """Whether the step calls the function that runs backward, as LBFGS does."""
    function = tree.function(backward)
    calls = (call for call in m.findall(step, m.Call()) if isinstance(call, cst.Call))
    return function is not None and any(
        function.name.value in names_in(arg.value) for call in calls for arg in call.args
    )
