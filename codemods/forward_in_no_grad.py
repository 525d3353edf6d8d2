"""The loss was built where autograd records nothing: under `no_grad`, `inference_mode` or
`set_grad_enabled(False)`.

What breaks: results of operations under these modes have no graph, so `backward()` raises "element 0 of
tensors does not require grad". Tensors made under `inference_mode` cannot even be saved for a later backward.

Rewrite: the block dissolves and its statements move out, comments with them; of several contexts only the one
that stops the recording goes; a decorator or a `torch.set_grad_enabled(False)` statement is removed. What
stands before or behind the loss and needs no graph (targets of another network, metrics, in-place updates)
stays in the block, and so does the target of a loss whose prediction leaves it; where two values of the block
are subtracted or multiplied the fix is unsafe, as one of them may be a constant. What is made under
`inference_mode` and is a constant of a loss that has a graph (a target, a teacher's answer) is made under
`no_grad` instead: it stays a constant, and may be saved. `set_grad_enabled(flag)` is told what the `if`
around the backward asks; that is unsafe where the function has another backward. Where another cut keeps the
same gradient back, it is done by hand.

Left alone: validation, targets, teachers and frozen features under `no_grad` next to a loss with a graph of
its own, and modes that are decided while the program runs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from gradfix.defects.severed import Unrecorded
from gradfix.rewriting.dissolve import leaves_block, recorded
from gradfix.rewriting.flags import as_tested
from gradfix.rewriting.seats import dotted, one_line
from gradfix.rule import Decline, Edit, Fix, Options, Rule

if TYPE_CHECKING:
    from gradfix.defects import Defect, Span
    from gradfix.tree import Tree

ASKED = "what runs here asks whether gradients are recorded, and may compute something else then"
REFUSED = "something here is done without a graph that torch refuses, or keeps, where it is recorded"
DOUBTFUL = "two values of this block meet in the loss, and one of them may be a constant"


def rewrite(defect: Defect, tree: Tree, options: Options) -> Fix | Decline:
    """Let autograd record what the loss is made of, or save what is a constant of it."""
    facts = defect.told(Unrecorded)
    if facts.saved:
        return _constant(tree, defect.culprit)
    if (told := as_tested(tree, defect.culprit, facts.backward)) is not None:
        return told
    fix = recorded(tree, defect.culprit, facts.forward)
    why = DOUBTFUL if facts.doubtful else _relied_upon(tree, defect.culprit, facts)
    return replace(fix, unsafe=fix.unsafe or why) if isinstance(fix, Fix) else fix


def _relied_upon(tree: Tree, culprit: Span, facts: Unrecorded) -> str:
    """Why what leaves the block may need that nothing is recorded there."""
    if any(span is None or leaves_block(tree, culprit, facts.forward, span) for span in facts.asking):
        return ASKED
    if any(span is None or leaves_block(tree, culprit, facts.forward, span) for span in facts.refused):
        return REFUSED
    return ""


def _constant(tree: Tree, culprit: Span) -> Fix | Decline:
    """`no_grad` for `inference_mode`: what it makes stays a constant, which a graph may save."""
    node = tree.at(culprit, cst.With, cst.BaseExpression)
    items = [each.item for each in node.items] if isinstance(node, cst.With) else [node]
    for item in items:
        named = item.func if isinstance(item, cst.Call) else item
        if item is None or not isinstance(named, (cst.Name, cst.Attribute)):
            continue
        if dotted(named).rpartition(".")[2] != "inference_mode":
            continue
        if isinstance(named, cst.Attribute):
            mode: cst.BaseExpression = named.with_changes(attr=cst.Name("no_grad"))
        elif tree.torch is not None:
            mode = cst.parse_expression(f"{tree.torch}.no_grad")
        else:
            break
        new = cst.Call(mode)
        return Fix((Edit(item, new),), one_line(tree.code(new)))
    return Decline("make it under no_grad: what inference_mode makes can't be saved for a backward")


RULE = Rule(
    code="GF203",
    message="{what} is built under `{mode}`, so there is no graph {wanted}",
    sometimes_unsafe=True,
    rewrite=rewrite,
)
