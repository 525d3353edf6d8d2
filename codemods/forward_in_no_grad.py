"""The loss was built where autograd records nothing: under `no_grad`, `inference_mode` or
`set_grad_enabled(False)`.

What breaks: results of operations under these modes have no graph, so `backward()` raises "element 0 of
tensors does not require grad". Tensors made under `inference_mode` cannot even be saved for a later backward.

Rewrite: the block dissolves and its statements move out, comments with them; of several contexts only the one
that stops the recording goes; a decorator or a `torch.set_grad_enabled(False)` statement is removed. What
stands before or behind the loss and needs no graph (targets of another network, metrics, in-place updates)
stays in the block. `set_grad_enabled(flag)` is told what the `if` around the backward asks; that is unsafe
where the function has another backward.

Left alone: validation, targets, teachers and frozen features under `no_grad` next to a loss with a graph of
its own, and modes that are decided while the program runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradfix.defects.records import Unrecorded
from gradfix.rewriting.dissolve import recorded
from gradfix.rewriting.flags import as_tested
from gradfix.rule import Decline, Fix, Options, Rule

if TYPE_CHECKING:
    from gradfix.defects import Defect
    from gradfix.tree import Tree


def rewrite(defect: Defect, tree: Tree, options: Options) -> Fix | Decline:
    """Let autograd record what the loss is made of."""
    facts = defect.told(Unrecorded)
    return as_tested(tree, defect.culprit, facts.backward) or recorded(tree, defect.culprit, facts.forward)


RULE = Rule(
    code="GF203",
    message="the loss is built under `{mode}`, so there is no graph for backward() to walk",
    sometimes_unsafe=True,
    rewrite=rewrite,
)
