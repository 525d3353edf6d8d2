"""A gradient is clipped, scaled or cleaned out of place, and what comes out is thrown away.

What breaks: `p.grad.clamp(-1, 1)` makes a new tensor. As a statement of its own it changes nothing: the step
uses the gradient as backward left it, and whatever the line was to prevent happens.

Rewrite: the method that writes in place, `p.grad.clamp_(-1, 1)`; unsafe, since the steps become what the line
says for the first time. Left alone: results that anybody keeps, passes on or shows; views, norms and copies;
the top level of a file, where a notebook may show what a line gives.
"""

from __future__ import annotations

import libcst as cst

from gradfix.defects import Defect
from gradfix.defects.records import EditDropped
from gradfix.rule import Decline, Edit, Fix, Options, Rule, Safety
from gradfix.tape.effects import table
from gradfix.tree import Tree

BY_HAND = Decline("write the gradient in place, or assign to it what this returns")
UNSAFE = "the steps have used this gradient as it was so far"


def rewrite(defect: Defect, tree: Tree, options: Options) -> Fix | Decline:
    """The same in place."""
    call, method = tree.at(defect.culprit, cst.Call), defect.told(EditDropped).method
    if call is None or not isinstance(call.func, cst.Attribute) or call.func.attr.value != method:
        return BY_HAND
    in_place = cst.Name(f"{method}_")
    new = call.with_deep_changes(call.func, attr=in_place)
    if tree.code(call.func.value) == tree.torch and in_place.value not in table.names("function"):
        if not call.args or call.args[0].keyword is not None or call.args[0].star:
            return BY_HAND
        gradient, *others = call.args
        new = call.with_changes(func=cst.Attribute(gradient.value, in_place), args=others)
    return Fix((Edit(call, new),), tree.code(new), UNSAFE)


RULE = Rule(
    code="GF405",
    message="`{culprit}` leaves the gradient as it is: what it returns is dropped",
    safety=Safety.UNSAFE,
    rewrite=rewrite,
)
