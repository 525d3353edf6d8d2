"""A reentrant checkpoint whose inputs need no gradient cuts off the parameters of the function that it runs.

Reentrant checkpoints look at their inputs only: where none of them requires grad (the batch, at the first
block of a network), the result requires none either, whatever parameters the function has. Those are never
trained; if nothing else carries a gradient, backward raises.

The rewrite says `use_reentrant=False`: this kind of checkpoint records the function as it is. Left alone:
checkpoints with an input that requires grad, and functions without parameters.
"""

from __future__ import annotations

import libcst as cst

from gradfix.defects import Defect
from gradfix.rewriting.statements import with_argument
from gradfix.rule import Decline, Edit, Fix, Options, Rule
from gradfix.tree import Tree


def rewrite(defect: Defect, tree: Tree, options: Options) -> Fix | Decline:
    call = tree.at(defect.culprit, cst.Call)
    if call is None or any(arg.star == "**" for arg in call.args):
        return Decline("pass use_reentrant=False to the checkpoint")
    return Fix((Edit(call, with_argument(call, "use_reentrant", "False")),), "use_reentrant=False")


RULE = Rule(
    code="GF213",
    message="`{culprit}` cuts the parameters of `{function}` off: no input requires grad",
    rewrite=rewrite,
)
