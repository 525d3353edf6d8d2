"""Gradients that a gradient scaler has scaled are clipped, or stepped with, before they were unscaled.

After `scaler.scale(loss).backward()` the gradients are larger than the real ones by the scaler's factor
(65,536 at first). A bound that is meant for the real gradients then cuts them to almost nothing, and an
`optimizer.step()` of its own takes steps that are larger by that factor.

The rewrite calls `scaler.unscale_(optimizer)` before the clip (the scaler's step knows and does not unscale
again), or steps through the scaler. It is left to you where the scaler steps only now and then while every
micro-batch is clipped: unscaling twice for one step raises. Left alone: gradients unscaled before, and
losses that were never scaled.
"""

from __future__ import annotations

import libcst as cst

from gradfix.defects import Defect
from gradfix.defects.records import Scaled
from gradfix.rewriting import shapes as m
from gradfix.rewriting.names import visible
from gradfix.rewriting.statements import Draft, anchor, expression, home
from gradfix.rule import Decline, Fix, Options, Rule
from gradfix.tree import Tree


def rewrite(defect: Defect, tree: Tree, options: Options) -> Fix | Decline:
    call = tree.at(defect.culprit, cst.Call)
    facts = defect.told(Scaled)
    scaler, optimizer = facts.scaler, facts.optimizer
    if call is None or not scaler or not optimizer or not visible(tree, call, optimizer):
        return Decline("call the scaler's unscale_() on the optimizer before the gradients are used")
    if facts.form == "step" and tree.code(call.func) == f"{optimizer}.step":
        return _step_through(tree, call, scaler, optimizer)
    unscale = f"{scaler}.unscale_({optimizer})"
    if _seldom(tree, call, f"{scaler}.update()"):
        return Decline(f"put {unscale} and the clip where the scaler steps: it may run once a step")
    return _unscale_before(tree, call, unscale)


def _unscale_before(tree: Tree, call: cst.Call, unscale: str) -> Fix | Decline:
    """Move the unscaling that comes too late, or insert one."""
    draft, place = Draft(tree), anchor(tree, call)
    late = [anchor(tree, node) for node in _statements(tree, call, unscale)]
    if not late:
        draft.before(place, unscale)
    elif len(late) == 1 and home(tree, late[0]) is home(tree, place):
        draft.move_before(late[0], place)
    else:
        return Decline(f"move {unscale} before the clip; it may run once for each step only")
    return Fix(draft.edits(), unscale)


def _seldom(tree: Tree, call: cst.Call, update: str) -> bool:
    """Whether the scaler goes on to its next step more seldom than the gradients are clipped."""
    around = list(tree.ancestors(anchor(tree, call)))
    homes = [home(tree, anchor(tree, node)) for node in _statements(tree, call, update)]
    return bool(homes) and not any(one is body for one in homes for body in around)


def _step_through(tree: Tree, call: cst.Call, scaler: str, optimizer: str) -> Fix | Decline:
    if call.args:
        return Decline(f"{scaler}.step({optimizer}) takes no closure: unscale the gradients inside it")
    draft = Draft(tree)
    draft.swap(call, expression(tree, f"{scaler}.step({optimizer})"))
    if not _statements(tree, call, f"{scaler}.update()"):
        draft.after(anchor(tree, call), f"{scaler}.update()")
    return Fix(draft.edits(), f"{scaler}.step({optimizer})")


def _statements(tree: Tree, call: cst.Call, text: str) -> list[cst.Expr]:
    """The statements of the function (or module) around a call that read exactly so."""
    scope = tree.function(call) or tree.module
    found = m.findall(scope, m.Expr(value=m.Call()))
    return [node for node in found if isinstance(node, cst.Expr) and tree.code(node.value) == text]


RULE = Rule(
    code="GF404",
    message="`{culprit}` works on gradients that `{scaler}` has not unscaled",
    rewrite=rewrite,
)
