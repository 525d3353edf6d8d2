"""Between the loss and the leaves stands an operation that has no gradient: argmax, a comparison, an integer
cast.

What breaks: argmax, comparisons and integer casts return tensors without a graph, so `backward()` raises;
`round()`, `sign()` and `floor()` keep the graph and their gradient is zero everywhere, so nothing raises and
nothing is trained. A whole term of a loss that is made of an argmax has no gradient either, and nothing
raises.

What stands in for the operation is a choice of the model. A rounding that a run has seen to pass nothing on
gets a straight-through estimator, `x + (x.round() - x).detach()`, and so does what is one for the best of
some scores and zero for the others, where it surely has their shape: `one_hot(p.argmax(-1), n) + (p -
p.detach())`. That is unsafe, as its gradient is that of x, or of the scores. The others are left to hand:
cross entropy on the logits for an argmax or an accuracy, a sigmoid for a threshold, Gumbel softmax for a
sampled index.

Left alone: metrics beside the loss, masks and indices that only select, and straight-through estimators.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from gradfix.defects.severed import NoGradient
from gradfix.rewriting.straight import best_through, straight_through
from gradfix.rewriting.surrogates import FAMILIES, advice
from gradfix.rule import Decline, Fix, Options, Rule, Safety

if TYPE_CHECKING:
    from gradfix.defects import Defect
    from gradfix.tree import Tree

SURROGATES = {
    "index": "take the loss from the scores themselves (cross entropy on the logits), or use "
    "torch.nn.functional.gumbel_softmax(logits, hard=True) where an index has to be chosen",
    "rounding": "round with a straight-through estimator: x + (x.round() - x).detach()",
    "comparison": "replace the comparison by a smooth one: torch.sigmoid((x - threshold) / temperature)",
    "cast": "compute the loss before the cast to integers",
    "sample": "use rsample() of the distribution, or the log probability of the sample times its reward",
}
ORDER = "take it from the sorted values, which torch.sort returns with a gradient: their order has none"


def rewrite(defect: Defect, tree: Tree, options: Options) -> Fix | Decline:
    """A rounding or a choice goes straight through; of the others, say what could stand in."""
    facts = defect.told(NoGradient)
    family = FAMILIES.get(facts.op, "comparison")
    node = tree.at(defect.culprit, cst.BaseExpression)
    fix = straight_through(tree, node) if family == "rounding" else best_through(tree, facts, node)
    general = ORDER if facts.op == "argsort" else SURROGATES[family]
    return fix or Decline(advice(tree, node, family) or general)


RULE = Rule(
    code="GF205",
    message="`{op}` has no gradient to pass on, so nothing before it learns: use a differentiable surrogate",
    rewrite=rewrite,
    safety=Safety.UNSAFE,
)
