"""An update by hand leaves the name on a tensor that is no longer the leaf.

`w = w - lr * w.grad` makes a new tensor. It is not a leaf (or, under `no_grad`, needs no gradient at all),
so the next backward fills no `.grad` for it: the second turn of the loop fails on None, or nothing is
trained any more.

The update becomes `with torch.no_grad(): w -= lr * w.grad`, which changes the leaf itself; neighbours share
a block. An expression that is not of the form `w <op> ...` goes through `w.copy_(...)`.
The fix is unsafe where another name holds the leaf, since that name sees the update too.

Left alone: other names (`fast = w - lr * g`, as meta-learning does), and results that are made leaves again
with `.detach().requires_grad_()`.
"""

from __future__ import annotations

from dataclasses import replace

import libcst as cst

from gradfix.defects import Defect
from gradfix.defects.records import Rebound
from gradfix.rewriting.nograd import Update, in_no_grad, under_no_grad
from gradfix.rewriting.outofplace import says
from gradfix.rewriting.updates import in_place_updates, rebinds_by_hand
from gradfix.rule import Decline, Edit, Fix, Options, Rule
from gradfix.tree import Tree


def rewrite(defect: Defect, tree: Tree, options: Options) -> Fix | Decline:
    node = tree.at(defect.culprit, cst.Assign)
    new = in_place_updates(tree, node) if node is not None else None
    if node is None or new is None:
        return Decline("update the leaf in place, under `with torch.no_grad():`")
    fix = (
        _already_off(tree, node, new)
        if in_no_grad(tree, node)
        else under_no_grad(tree, node, _update(tree, node))
    )
    if isinstance(fix, Fix) and defect.told(Rebound).aliased:
        return replace(fix, unsafe="another name holds this leaf, and then sees the update")
    return fix


def _already_off(tree: Tree, node: cst.Assign, new: list[cst.BaseSmallStatement]) -> Fix | Decline:
    if len(new) > 1:
        return Decline("update each leaf in place, on a line of its own")
    return Fix((Edit(node, new[0]),), says(tree, new[0]))


def _update(tree: Tree, first: cst.Assign) -> Update:
    def update(small: cst.BaseSmallStatement) -> list[cst.BaseSmallStatement] | None:
        if isinstance(small, cst.Assign) and (small is first or rebinds_by_hand(small)):
            return in_place_updates(tree, small)
        return None

    return update


RULE = Rule(
    code="GF106",
    message="`{culprit}` leaves {target} on a tensor that is no leaf",
    rewrite=rewrite,
    sometimes_unsafe=True,
)
