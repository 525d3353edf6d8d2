"""`requires_grad` is switched on for a result that has lost its graph: the error goes away and nothing is
trained.

What breaks: `loss.requires_grad = True` on a loss without a graph makes a leaf of it. `backward()` then fills
`loss.grad` and no parameter gets a gradient.

Rewrite: the switch goes, together with the cut that it covers up: the `.detach()`, the conversion or the
`no_grad`. Where the cut cannot be taken out, there is no fix: without the switch torch says again what is
wrong.

Left alone: inputs that are made leaves on purpose (adversarial examples, gradient penalties, saliency) and
detached copies whose own gradient is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from gradfix.defects.severed import OnResult
from gradfix.rewriting.rejoin import any_cut
from gradfix.rewriting.seats import put, shown, vanished
from gradfix.rewriting.surrogates import advice_at
from gradfix.rewriting.uncut import bare
from gradfix.rule import Decline, Edit, Fix, Options, Rule

if TYPE_CHECKING:
    from gradfix.defects import Defect
    from gradfix.tree import Tree


def rewrite(defect: Defect, tree: Tree, options: Options) -> Fix | Decline:
    """Take out the switch and the cut in one fix."""
    cut = defect.told(OnResult).cut
    if cut is None:
        return Decline("remove it, and compute the loss from tensors that are in the graph")
    joined = any_cut(tree, cut)
    if isinstance(joined, Decline):
        instead = advice_at(tree, tree.at(cut, cst.BaseExpression))
        return Decline(
            f"remove it; {instead}" if instead else f"remove it, and mend the cut: {joined.reason}"
        )
    switched = _without_switch(defect, tree, joined)
    says = f"{shown(tree, switched)}; {joined.says}" if switched else joined.says
    return Fix((*switched, *joined.edits), says)


def _without_switch(defect: Defect, tree: Tree, joined: Fix) -> tuple[Edit, ...]:
    node = tree.at(defect.culprit, cst.BaseExpression)
    small = tree.small_statement(node) if node is not None else None
    if node is None:
        small = tree.at(defect.culprit, cst.BaseSmallStatement)
    if small is None or any(_same_place(tree, node or small, edit.old) for edit in joined.edits):
        return ()
    if node is None or (tree.parent(node) is small and isinstance(small, cst.Expr)):
        return vanished(tree, small)
    return put(tree, {node: bare(node)})


def _same_place(tree: Tree, switch: cst.CSTNode, edited: cst.CSTNode) -> bool:
    """Whether one of the two nodes lies in the other, so that the cut's edit takes the switch with it."""
    return switch is edited or edited in tree.ancestors(switch) or switch in tree.ancestors(edited)


RULE = Rule(
    code="GF206",
    message="`{culprit}` only silences the error: `{target}` has lost its graph, nothing behind it learns",
    rewrite=rewrite,
)
