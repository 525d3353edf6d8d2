"""Nothing that backward reaches requires grad.

What breaks: a tensor that is made without `requires_grad=True` is a constant. When the loss is made of
constants alone, `backward()` raises "element 0 of tensors does not require grad", and the `.grad` that the
code reads stays None. `torch.autograd.grad(out, x)` likewise has no gradient for an `x` that requires none.

Rewrite: `requires_grad=True` for the tensor whose `.grad` is read, that is updated by hand, is given to an
optimizer or differentiated for. Where the call takes no such keyword, or the tensor is computed further in
the same expression, `.requires_grad_()` is put behind it, so that the name holds the leaf. Integer literals
get a float dtype, since integers carry no gradient. Where a loop binds the name anew and differentiates for
it, `.requires_grad_()` is called at the start of each turn. A model that was frozen after it got a new
layer is frozen before. It is unsafe where a view of the tensor is written in place: a leaf that requires
grad may not take that.

Left alone: constants beside something that does require grad: batches, masks, noise, frozen factors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from gradfix.defects.severed import NoLeaf
from gradfix.rewriting.arguments import keyword, with_keyword
from gradfix.rewriting.late import frozen_before, unfrozen
from gradfix.rewriting.names import walk
from gradfix.rewriting.seats import dotted, put, shown
from gradfix.rewriting.turns import leaf_each_turn
from gradfix.rewriting.uncut import all_numbers, method_of, on
from gradfix.rule import Decline, Fix, Options, Rule
from gradfix.tape.effects.operations import having, told, where

if TYPE_CHECKING:
    from gradfix.defects import Defect
    from gradfix.tree import Tree

TAKES_KEYWORD = having("takes-requires-grad")
FROM_LITERALS = {name: int(at) for name, at in told("literals").items()}
INTEGERS = {"long", "int", "int8", "int16", "int32", "int64", "uint8", "short", "bool"}
WRITTEN = "a view of it is written in place, which a leaf that requires grad may not take"
MAKES_INTEGERS = where("dtype", "int", "bool")


def rewrite(defect: Defect, tree: Tree, options: Options) -> Fix | Decline:
    """Make the tensor a leaf that requires grad."""
    call, facts = tree.at(defect.culprit, cst.Call), defect.told(NoLeaf)
    if facts.unasked:
        return unfrozen(tree, defect.culprit)
    if facts.made:
        return frozen_before(tree, defect.culprit, facts.made)
    made: cst.BaseExpression | None = call or tree.at(defect.culprit, cst.BinaryOperation)
    if made is None or defect.culprit == facts.backward:
        return Decline("give what should learn requires_grad=True, or unfreeze it")
    if facts.asked and (each := leaf_each_turn(tree, made, facts.asked)) is not None:
        return each
    leaf = {made: _switched_on(made)} if call is None else _leaf(tree, call)
    if isinstance(leaf, Decline):
        return leaf
    edits = put(tree, leaf)
    if not edits:
        return Decline("give the tensor that should learn requires_grad=True: this one has it")
    return Fix(edits, shown(tree, edits), WRITTEN if facts.written else "")


def _leaf(tree: Tree, call: cst.Call) -> dict[cst.BaseExpression, cst.BaseExpression] | Decline:
    name = dotted(call.func).rpartition(".")[2]
    if name in MAKES_INTEGERS or _integer_dtype(call):
        return Decline(
            "integers carry no gradient: make this tensor of a float dtype, with requires_grad=True"
        )
    outer = _wrapped(tree, call)
    top = _computed(tree, outer)
    floats = _with_floats(tree, call, name)
    if top is not outer:
        changed = top.deep_replace(call, floats) if floats is not call else top
        assert isinstance(changed, cst.BaseExpression)
        return {top: _switched_on(changed)}
    if outer is not call:
        return {outer: _asked(outer)}
    return {call: _asked(floats) if name in TAKES_KEYWORD else _switched_on(floats)}


def _wrapped(tree: Tree, call: cst.Call) -> cst.Call:
    """The `Variable(...)` around the call, where there is one."""
    arg = tree.parent(call)
    outer = tree.parent(arg) if isinstance(arg, cst.Arg) else None
    wraps = isinstance(outer, cst.Call) and dotted(outer.func).rpartition(".")[2] == "Variable"
    return outer if wraps and isinstance(outer, cst.Call) else call


def _computed(tree: Tree, node: cst.BaseExpression) -> cst.BaseExpression:
    """The whole expression computed from the call: `torch.randn(3, 2) * 0.01`, `torch.ones(3).to(device)`."""
    top = node
    for above in tree.ancestors(node):
        if isinstance(above, (cst.BinaryOperation, cst.UnaryOperation)) or method_of(above, top):
            assert isinstance(above, cst.BaseExpression)
            top = above
        elif not isinstance(above, cst.Attribute):
            break
    return top


def _asked(call: cst.Call) -> cst.Call:
    """The call with `requires_grad=True`."""
    said = keyword(call, "requires_grad")
    if said is None:
        return with_keyword(call, "requires_grad", "True")
    args = [arg.with_changes(value=cst.Name("True")) if arg is said else arg for arg in call.args]
    return call.with_changes(args=args)


def _switched_on(value: cst.BaseExpression) -> cst.Call:
    return on(cst.Attribute(value, cst.Name("requires_grad_")), value)


def _integer_dtype(call: cst.Call) -> bool:
    dtype = keyword(call, "dtype")
    return dtype is not None and dotted(dtype.value).rpartition(".")[2] in INTEGERS


def _with_floats(tree: Tree, call: cst.Call, name: str) -> cst.Call:
    """The call with a float dtype where its literals are integers."""
    first = FROM_LITERALS.get(name)
    if first is None or keyword(call, "dtype") is not None:
        return call
    values = [arg.value for arg in call.args[first:] if arg.keyword is None]
    integral = bool(values) and all(all_numbers(value) for value in values)
    if not integral or any(isinstance(node, cst.Float) for value in values for node in walk(value)):
        return call
    return with_keyword(call, "dtype", f"{tree.torch or 'torch'}.float32")


RULE = Rule(
    code="GF204",
    message="nothing that {sought} requires grad: `{culprit}` makes a constant",
    rewrite=rewrite,
    sometimes_unsafe=True,
)
