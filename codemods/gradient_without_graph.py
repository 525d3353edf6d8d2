"""A gradient that the loss is made of was asked for without `create_graph=True`.

What breaks: `torch.autograd.grad(out, x)` returns constants. A gradient penalty, or the residual of a
differential equation, that is made of them has the right value and no gradient: a loss of such terms alone
can't be backpropagated, and beside others they train nothing, without a word.

Rewrite: `create_graph=True` for the call; unsafe where the loss then also reaches parameters that it isn't
seen to be for: another optimizer's, or those of a model that isn't known. Left alone: gradients that only
weigh terms which have a graph of their own, that a step or an attack uses, and `create_graph=False` where it
is written out.
"""

from __future__ import annotations

import libcst as cst

from gradfix.defects import Defect
from gradfix.defects.severed import WithoutGraph
from gradfix.rewriting.arguments import with_keyword
from gradfix.rule import Decline, Edit, Fix, Options, Rule
from gradfix.tree import Tree

OTHERS = "with it this loss may also reach parameters that it is not for"


def rewrite(defect: Defect, tree: Tree, options: Options) -> Fix | Decline:
    """Ask for the gradient with its graph."""
    call, facts = tree.at(defect.culprit, cst.Call), defect.told(WithoutGraph)
    if call is None or any(arg.star for arg in call.args):
        return Decline("ask for this gradient with create_graph=True")
    new = with_keyword(call, "create_graph", "True")
    return Fix((Edit(call, new),), tree.code(new), OTHERS if facts.others else "")


RULE = Rule(
    code="GF214",
    message="`{culprit}` gives a gradient without a graph, so backward() cannot go on from here",
    sometimes_unsafe=True,
    rewrite=rewrite,
)
