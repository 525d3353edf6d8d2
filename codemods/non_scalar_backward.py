"""`backward()` on a tensor of several elements, without saying what the gradient of each is.

Autograd computes the gradient of one number. For a tensor of several elements it cannot know how to weigh
them, and raises "grad can be implicitly created only for scalar outputs". Most often the reduction was
forgotten: after an elementwise error, or with a loss that was built with `reduction="none"`.

The rewrite reduces at the backward: `z.sum().backward()`, or `.mean()` where the code itself or the
configuration (`reduction = "mean"`) says so. Left alone: one element, a `gradient=` argument, and losses of
unknown shape.
"""

from __future__ import annotations

import libcst as cst

from gradfix.rule import Decline, Edit, Fix, Options, Rule
from gradfix.statements import method_call
from gradfix.tape.defects import Defect
from gradfix.tree import Tree

SEVERAL = (cst.Tuple, cst.List, cst.ListComp, cst.GeneratorExp)


def rewrite(defect: Defect, tree: Tree, options: Options) -> Fix | Decline:
    call = tree.at(defect.culprit, cst.Call)
    root = _root(call, str(defect.facts.get("root", "")), tree) if call is not None else None
    if call is None or root is None or isinstance(root, SEVERAL):
        return Decline("reduce what backward runs on to one element, with .sum() or .mean()")
    reduced = method_call(root, str(defect.facts.get("reduction") or options.reduction))
    says = " ".join(tree.code(call).replace(tree.code(root), tree.code(reduced), 1).split())
    return Fix((Edit(root, reduced),), says)


def _root(call: cst.Call, text: str, tree: Tree) -> cst.BaseExpression | None:
    """What backward runs on: the owner of the method, or what a function that runs backward is given."""
    given = [arg.value for arg in call.args if arg.keyword is None and not arg.star]
    owner = call.func.value if isinstance(call.func, cst.Attribute) else None
    if given and (owner is None or tree.code(owner) != text == tree.code(given[0])):
        return given[0]
    if isinstance(call.func, cst.Attribute) and call.func.attr.value == "backward":
        return _unscaled(call.func.value)
    return given[0] if given else None


def _unscaled(owner: cst.BaseExpression) -> cst.BaseExpression:
    """The loss inside `scaler.scale(loss)`: it is reduced before it is scaled."""
    if not isinstance(owner, cst.Call) or not isinstance(owner.func, cst.Attribute):
        return owner
    return owner.args[0].value if owner.func.attr.value == "scale" and len(owner.args) == 1 else owner


RULE = Rule(
    code="GF301",
    message="`{root}` has more than one element, so backward needs a reduction or a gradient",
    rewrite=rewrite,
)
