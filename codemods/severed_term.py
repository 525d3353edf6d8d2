"""One term of the loss has lost its graph while the total still has one.

What breaks: `ce + 0.1 * penalty.item()` has the right value, and its gradient knows nothing of the penalty.
Nothing raises; the parameters behind that term are trained without it, or not at all.

Rewrite: as for a whole loss that was cut: `penalty.item()` becomes `penalty`, `torch.tensor([a, b]).sum()`
becomes `torch.stack([a, b]).sum()`, `kl.detach()` becomes `kl`. It is unsafe where what is cut off only is
taken for a module that learns and the optimizers hold others, where other losses train some of it, and where
the other terms train all that was detached.

Left alone: factors and weights that are constants on purpose (`a.detach() / b.detach()` in front of a term,
focal weights, baselines), straight-through estimators and other corrections of a value, targets that another
term has too, the other side of a term, and terms whose graph reaches nothing that is trained. A difference to
what was detached, taken element by element, is a suspect: it may be one to a target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradfix.rewriting.rejoin import cut_of, rejoined
from gradfix.rule import Decline, Fix, Options, Rule

if TYPE_CHECKING:
    from gradfix.defects import Defect
    from gradfix.tree import Tree


def rewrite(defect: Defect, tree: Tree, options: Options) -> Fix | Decline:
    """Give the term its graph back."""
    return rejoined(cut_of(defect), tree)


RULE = Rule(
    code="GF207",
    message="`{culprit}` takes this term out of the gradient, although the loss around it still has one",
    rewrite=rewrite,
    sometimes_unsafe=True,
)
