"""The loss went through a plain Python or numpy value, or through a constructor that copies values only.

What breaks: `.item()`, `float()`, `math.log()`, `.numpy()`, `torch.tensor(loss)`, `torch.tensor([l1, l2])`
and `Variable(t)` keep the value and drop the graph. With `requires_grad=True` on the copy, `backward()` runs
and fills the gradient of the copy alone: nothing raises and nothing is trained.

Rewrite: the conversion goes, and with it what makes a tensor of it again: `torch.tensor(loss.item(),
requires_grad=True)` becomes `loss`, `torch.tensor([l1, l2])` becomes `torch.stack([l1, l2])`, `math.log(x)`
and `np.log(x)` become `torch.log(x)`. Where the value is logged as well, it is converted at the log. It is
unsafe where what is cut off only is taken for a module that learns and the optimizers hold others. Where a
detach or a grad mode keeps the same gradient back, it is done by hand.

Left alone: numbers that are only logged, compared or stored; targets, returns and rewards;
`torch.as_tensor(t)`, which cuts nothing. Where numpy does something that torch has no exact twin of, the
finding says so and has no fix.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradfix.rewriting.rejoin import cut_of, rejoined
from gradfix.rule import Decline, Fix, Options, Rule

if TYPE_CHECKING:
    from gradfix.defects import Defect
    from gradfix.tree import Tree


def rewrite(defect: Defect, tree: Tree, options: Options) -> Fix | Decline:
    """Keep the tensor."""
    return rejoined(cut_of(defect), tree)


RULE = Rule(
    code="GF202",
    message="`{culprit}` keeps the value and drops the graph, so backward() cannot go on from here",
    rewrite=rewrite,
    sometimes_unsafe=True,
)
