"""A running total of losses keeps the graph of every iteration alive.

`total += loss` makes the total a result of all losses so far, and with it every saved tensor of every
iteration stays in memory although nobody ever runs backward through it. Memory grows until it ends.

The rewrite adds the loss without its graph, `total += loss.detach()`, which stays on its device. Left alone:
totals and lists that are backpropagated, and values without a graph.
"""

from __future__ import annotations

import libcst as cst

from gradfix.defects import Defect
from gradfix.defects.records import Kept
from gradfix.rewriting.statements import method_call
from gradfix.rule import Decline, Edit, Fix, Options, Rule
from gradfix.tree import Tree


def rewrite(defect: Defect, tree: Tree, options: Options) -> Fix | Decline:
    facts = defect.told(Kept)
    value = tree.at(facts.value, cst.BaseExpression) if facts.value is not None else None
    if value is None:
        return Decline("add the .detach()ed value to the total")
    cut = method_call(value, "detach")
    return Fix((Edit(value, cut),), " ".join(tree.code(cut).split()))


RULE = Rule(
    code="GF403",
    message="`{culprit}` keeps the graph of every iteration in memory",
    rewrite=rewrite,
)
