"""An array of numpy is asked for of a tensor that requires grad.

What breaks: an array has no graph, so `out.cpu().numpy()` raises "Can't call numpy() on Tensor that requires
grad". It comes up where a prediction is plotted, measured or saved beside the training.

Rewrite: `.detach()`, before what only moves the tensor: `out.detach().cpu().numpy()`. Where the loss is made
of that array, GF202 says so. Left alone: what is computed under `no_grad`, `numpy(force=True)`, and functions
of which it isn't seen who calls them, and whether under `no_grad`.
"""

from __future__ import annotations

import libcst as cst

from gradfix.defects import Defect
from gradfix.rule import Decline, Edit, Fix, Options, Rule
from gradfix.tape.effects.operations import having
from gradfix.tree import Tree

MOVES = having("moves")


def rewrite(defect: Defect, tree: Tree, options: Options) -> Fix | Decline:
    """Take it out of the graph first."""
    call = tree.at(defect.culprit, cst.Call)
    if call is None or not isinstance(call.func, cst.Attribute) or call.func.attr.value != "numpy":
        return Decline("detach the tensor before the conversion")
    tensor = call.func.value
    while isinstance(tensor, cst.Call) and isinstance(tensor.func, cst.Attribute):
        if tensor.func.attr.value not in MOVES:
            break
        tensor = tensor.func.value
    new = call.deep_replace(tensor, cst.Call(cst.Attribute(tensor, cst.Name("detach"))))
    assert isinstance(new, cst.Call)
    return Fix((Edit(call, new),), " ".join(tree.code(new).split()))


RULE = Rule(
    code="GF304",
    message="`{culprit}` asks for an array of a tensor that requires grad",
    rewrite=rewrite,
)
