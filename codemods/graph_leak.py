"""A running total of losses keeps the graph of every iteration alive.

`total += loss` makes the total a result of all losses so far, and with it every saved tensor of every
iteration stays in memory although nobody ever runs backward through it. Memory grows until it ends.

The rewrite adds the loss without its graph, `total += loss.detach()`, which stays on its device; `.item()`
where the value is plainly used as a number, as where numpy gets the list. It is unsafe where the value is a
plain number on another way, or begins as one that only loops and branches make a tensor. Left alone: totals
and lists that are backpropagated, and values without a graph.
"""

from __future__ import annotations

import libcst as cst

from gradfix.defects import Defect
from gradfix.defects.records import Kept
from gradfix.rewriting import shapes as m
from gradfix.rewriting.numpytwins import array_function
from gradfix.rewriting.perhaps_numbers import may_be_number
from gradfix.rewriting.seats import dotted
from gradfix.rewriting.statements import method_call
from gradfix.rule import Decline, Edit, Fix, Options, Rule
from gradfix.tree import Tree

NUMBER = "on another way it is a plain number, which has no such method"
PERHAPS_NUMBER = (
    "what is added stays a plain number, which has no such method, where a loop before it has no turn"
)


def rewrite(defect: Defect, tree: Tree, options: Options) -> Fix | Decline:
    facts = defect.told(Kept)
    value = tree.at(facts.value, cst.BaseExpression) if facts.value is not None else None
    if value is None:
        return Decline("add the .detach()ed value to the total")
    number = _backpropagated(tree, value) and _read_by_numpy(tree, value, facts.target)
    cut = method_call(value, "item" if number else "detach")
    doubt = NUMBER if facts.number else PERHAPS_NUMBER if may_be_number(tree, value) else ""
    return Fix((Edit(value, cut),), " ".join(tree.code(cut).split()), doubt)


def _backpropagated(tree: Tree, value: cst.BaseExpression) -> bool:
    """Whether the value has one element, as a backward without a gradient runs on it."""
    run = m.Call(func=m.Attribute(attr=m.Name("backward")))
    calls = [call for call in m.findall(tree.module, run) if isinstance(call, cst.Call)]
    given = [call for call in calls if all(arg.keyword is not None for arg in call.args)]
    roots = [cst.ensure_type(call.func, cst.Attribute).value for call in given]
    return any(tree.code(root) == tree.code(value) for root in roots)


def _read_by_numpy(tree: Tree, value: cst.BaseExpression, target: str) -> bool:
    """Whether what is kept is given to numpy, which takes no tensor from a device, and to nobody else who may
    want tensors."""
    holder = target or _list(tree, value)
    scope = tree.module if "." in holder else tree.function(value) or tree.module
    calls = [call for call in m.findall(scope, m.Call()) if isinstance(call, cst.Call)]
    given = [call for call in calls if any(tree.code(arg.value) == holder for arg in call.args)]
    reads = [one for one in m.findall(scope, m.Attribute()) if isinstance(one, cst.Attribute)]
    puts = all(one.attr.value == "append" for one in reads if tree.code(one.value) == holder)
    by_numpy = [array_function(tree, call.func)[0] == "numpy" for call in given]
    return bool(holder) and puts and any(by_numpy) and not any(_makes_tensors(tree, call) for call in given)


def _makes_tensors(tree: Tree, call: cst.Call) -> bool:
    return dotted(call.func).partition(".")[0] == (tree.torch or "torch")


def _list(tree: Tree, value: cst.BaseExpression) -> str:
    """What the value is appended to."""
    call = next((above for above in tree.ancestors(value) if isinstance(above, cst.Call)), None)
    return tree.code(call.func.value) if call is not None and isinstance(call.func, cst.Attribute) else ""


RULE = Rule(
    code="GF403",
    message="`{culprit}` keeps the graph of every iteration in memory",
    rewrite=rewrite,
    sometimes_unsafe=True,
)
