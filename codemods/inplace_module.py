"""A module built with `inplace=True` overwrites what backward still needs.

`nn.ReLU(inplace=True)` after conv or batch norm saves memory and does no harm: those keep nothing of their
result. After tanh, sigmoid or softmax, or as the first operation of a block that is handed such a tensor,
it writes over what they saved, and so does `nn.Dropout(inplace=True)` after relu. Backward raises "one of
the variables needed for gradient computation has been modified by an inplace operation".

`inplace=True` is dropped where the module is built; a flag set later becomes False.

The fix is unsafe where the caller reads the edited tensor again: a shortcut taken before the relu would no
longer be rectified. Left alone: in-place modules that overwrite nothing that is needed.
"""

from __future__ import annotations

import libcst as cst

from gradfix.defects import Defect, Evidence, Role
from gradfix.defects.written import WrittenByModule
from gradfix.rewriting.calls import in_place_flag, is_true, last_name, without
from gradfix.rewriting.outofplace import SEEN, says
from gradfix.rewriting.twins import FLAG_OF_MODULE
from gradfix.rule import Decline, Edit, Fix, Options, Rule
from gradfix.tree import Tree

FOR_ITS_WRITE = Decline("this call is there for what it writes; bind its result instead, where that is read")
FROM_ELSEWHERE = Decline("the module takes its in-place flag from elsewhere; let it be False there")


def rewrite(defect: Defect, tree: Tree, options: Options) -> Fix | Decline:
    node = tree.at(defect.culprit, cst.Call, cst.Assign)
    if any(_discarded(tree, step) for step in defect.evidence):
        return FOR_ITS_WRITE
    unsafe = SEEN if defect.told(WrittenByModule).aliased else ""
    if isinstance(node, cst.Assign) and is_true(node.value):
        new = node.with_changes(value=cst.Name("False"))
        return Fix((Edit(node, new),), says(tree, new), unsafe)
    flag = in_place_flag(node, FLAG_OF_MODULE) if isinstance(node, cst.Call) else None
    if not isinstance(node, cst.Call) or flag is None or not is_true(flag.value):
        return FROM_ELSEWHERE
    call = without(node, flag) if _known(node) else _switched_off(node, flag)
    return Fix((Edit(node, call),), says(tree, call), unsafe)


def _discarded(tree: Tree, step: Evidence) -> bool:
    """Whether a call writes and nobody takes what it returns."""
    writes = step.role is Role.OVERWRITTEN and step.path is None
    call = tree.at(step.span, cst.Call) if writes else None
    return call is not None and isinstance(tree.parent(call), cst.Expr)


def _known(call: cst.Call) -> bool:
    """torch's own modules don't write in place unless told to; others may."""
    made = call.args[0].value if last_name(call.func) == "partial" and call.args else call.func
    return last_name(made) in FLAG_OF_MODULE


def _switched_off(call: cst.Call, flag: cst.Arg) -> cst.Call:
    off = flag.with_changes(value=cst.Name("False"))
    return call.with_changes(args=[off if arg is flag else arg for arg in call.args])


RULE = Rule(
    code="GF104", message="`{culprit}` overwrites what {saver} saved", rewrite=rewrite, sometimes_unsafe=True
)
