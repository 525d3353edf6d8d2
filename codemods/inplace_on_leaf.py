"""An in-place operation writes to a leaf that requires grad, or to a view of one.

torch raises "a leaf Variable that requires grad is being used in an in-place operation": the leaf's history
would begin after the write, and its `.grad` would belong to a tensor that no longer exists.

Updates by hand and initialisation go under `with torch.no_grad():`, neighbours in one block; a loop that
does nothing else goes in as a whole. Written out of place they would leave the name on a tensor that is no
leaf, and whose `.grad` stays None. A leaf that only serves as a start value (`total = torch.zeros(3,
requires_grad=True)`, then `total += x`) is written out of place; that is unsafe where another name sees the
write and would keep the old values.

Left alone: writes under `no_grad`, through `.data` and to `.grad`, `nn.init` (it turns gradients off
itself), and writes before `requires_grad_()`.
"""

from __future__ import annotations

import libcst as cst

from gradfix.defects import Defect
from gradfix.defects.written import WrittenLeaf
from gradfix.rewriting.nograd import under_no_grad
from gradfix.rewriting.outofplace import NOT_FOUND, out_of_place, writing
from gradfix.rewriting.updates import updates_by_hand
from gradfix.rule import Decline, Fix, Options, Rule
from gradfix.tree import Tree

HELD = Decline("a module keeps a parameter in this place; use the result under a name of its own")

FROZEN = Decline("only a leaf can be frozen, as it is later on; give the result a name of its own")


def rewrite(defect: Defect, tree: Tree, options: Options) -> Fix | Decline:
    told = defect.told(WrittenLeaf)
    if told.role == "value":
        if told.parameter and "." in told.target.partition("[")[0]:
            return HELD
        if told.frozen:
            return FROZEN
        return out_of_place(defect, tree, options)
    node = writing(defect, tree)
    small = tree.small_statement(node) if node is not None else None
    if small is None:
        return NOT_FOUND
    if isinstance(node, cst.Call) and not isinstance(small, cst.Expr):
        return Decline("update the leaf on a line of its own, under `with torch.no_grad():`")
    return under_no_grad(
        tree,
        small,
        lambda other: (
            [other] if other is small or updates_by_hand(other) or _alike(tree, small, other) else None
        ),
    )


def _alike(tree: Tree, small: cst.BaseSmallStatement, other: cst.BaseSmallStatement) -> bool:
    """Whether two statements write to parts of one tensor: `b[:, 4] += 1` and `b[:, 5:] += 2`."""
    places = [_whole(each.target) for each in (small, other) if isinstance(each, cst.AugAssign)]
    return len(places) == 2 and tree.code(places[0]) == tree.code(places[1])


def _whole(place: cst.BaseExpression) -> cst.BaseExpression:
    while isinstance(place, cst.Subscript):
        place = place.value
    return place


RULE = Rule(
    code="GF103",
    message="`{culprit}` writes in place to a leaf that requires grad",
    rewrite=rewrite,
    sometimes_unsafe=True,
)
