"""What the other branches of a condition do along the gradients that one of them is to clear."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import libcst as cst

from gradfix.rewriting import shapes as m
from gradfix.rewriting.aimed import stepped
from gradfix.rewriting.calls import last_name
from gradfix.rewriting.order import calls_of
from gradfix.rewriting.statements import Anchor
from gradfix.tree import Tree

Steps = Literal["", "may step", "steps"]
HALF = "another branch may step along these gradients too, and isn't cleared"
LOOKS = frozenset({"unscale_", "print", "len"})
"""What is given an optimizer and doesn't step it."""


def before_all(tree: Tree, place: Anchor, optimizer: str) -> tuple[Anchor, str]:
    """The outermost condition around a place of which another branch steps each time without clearing, else
    the place itself; and why clearing there is half of it, if it is."""
    for above in tree.ancestors(place):
        if isinstance(above, (cst.For, cst.While, cst.FunctionDef)):
            break
        if isinstance(above, cst.If) and not isinstance(tree.parent(above), cst.If):
            own = set(tree.ancestors(place))
            others = {_steps(tree, one, optimizer) for one in _branches(above) if one not in own}
            if "may step" in others:
                return place, HALF
            place = above if "steps" in others else place
    return place, ""


def _branches(condition: cst.If) -> Iterator[cst.BaseSuite]:
    yield condition.body
    if isinstance(condition.orelse, cst.If):
        yield from _branches(condition.orelse)
    elif condition.orelse is not None:
        yield condition.orelse.body


def _steps(tree: Tree, branch: cst.BaseSuite, optimizer: str) -> Steps:
    """Whether a branch steps an optimizer each time that it runs, along gradients that it doesn't clear."""
    if calls_of(branch, "zero_grad"):
        return ""
    steps = [call for call in calls_of(branch, "step") if stepped(tree, call) == optimizer]
    if any(_each_time(tree, call, branch) for call in steps):
        return "steps"
    return "may step" if steps or any(_given(tree, branch, optimizer)) else ""


def _each_time(tree: Tree, call: cst.Call, branch: cst.BaseSuite) -> bool:
    """Whether nothing but `with` stands between a branch and a call."""
    for above in tree.ancestors(call):
        if above is branch:
            return True
        if isinstance(above, cst.BaseCompoundStatement) and not isinstance(above, cst.With):
            return False
    return False


def _given(tree: Tree, branch: cst.BaseSuite, optimizer: str) -> Iterator[bool]:
    """Whether a call gets the optimizer, which may step it."""
    for call in m.findall(branch, m.Call()):
        if isinstance(call, cst.Call) and last_name(call.func) not in LOOKS:
            yield any(tree.code(arg.value) == optimizer for arg in call.args)
