"""Every path from the loss to what should learn from it runs through a `.detach()`, a `.data` or a
`.detach_()`.

What breaks: a detached tensor shares the values and forgets how they were made. When no other path leads from
`backward()` to a leaf, torch raises "element 0 of tensors does not require grad".

Rewrite: the cut goes, the tensor stays: `z = y.detach()` becomes `z = y`, `loss = y.data.sum()` becomes `loss
= y.sum()`, the statement `y.detach_()` vanishes, and so does `y = y.detach()`. A later use that takes no
tensor with a graph, `z.numpy()` for one, gets the `.detach()` for itself. It is unsafe where what is cut off
only is taken for a module that learns and the optimizers hold others. Where another cut keeps the same
gradient back, one of them may be meant, and they are taken out by hand.

Left alone: cuts beside which the loss still has a graph of its own: a discriminator's `D(fake.detach())`,
targets of temporal differences, straight-through estimators, truncated backpropagation, moving averages,
logging.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradfix.rewriting.rejoin import cut_of, rejoined
from gradfix.rule import Decline, Fix, Options, Rule

if TYPE_CHECKING:
    from gradfix.defects import Defect
    from gradfix.tree import Tree


def rewrite(defect: Defect, tree: Tree, options: Options) -> Fix | Decline:
    """Take the cut out."""
    return rejoined(cut_of(defect), tree)


RULE = Rule(
    code="GF201",
    message="`{culprit}` cuts the graph between the loss and everything that backward() should reach",
    rewrite=rewrite,
    sometimes_unsafe=True,
)
