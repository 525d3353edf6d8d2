"""Backward through a graph that an earlier backward has freed.

`backward()` frees the saved tensors of the graph that it has walked. A second backward through any part of
that graph raises, unless the first was told `retain_graph=True`. Where a hidden state carries the graph
from one iteration into the next, retaining it would only let it grow (and the next step would overwrite
what it saved): the state has to be detached between the iterations, which is what truncated backpropagation
through time means.

The rewrite says `retain_graph=True` on the earlier backward, or, where the later one meets that graph only on
its way to parameters that its own step doesn't touch, which parameters it is for
(`d_loss.backward(inputs=list(D.parameters()))`). It detaches the carried state after it. What builds a graph
before a loop moves into the loop, what a closure takes from outside into the closure, which LBFGS calls
several times for each step, and what a module's `__init__` computes of parameters into the method that reads
it. Where the state lives on an object, it is detached where it is read, which is
unsafe. So is a running total that is backpropagated each turn: the loss is, and the total gets its value. And
so is keeping a graph across a step that changes what its second backward needs, or may change it. Of the same
line twice in a row the second goes, which is unsafe: the gradients are then those of one. Where the later one
meets gradients that `torch.autograd.grad()` has handed back, as in a residual, these get a graph
(`create_graph=True`): unsafe, for they then teach, which a step towards an adversary isn't meant to do.

Left alone: graphs that saved nothing, graphs built anew in each iteration, states detached already.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from gradfix.defects import Defect
from gradfix.defects.records import Freed
from gradfix.rewriting import shapes as m
from gradfix.rewriting.aimed import aimed, call_at, later_steps
from gradfix.rewriting.arguments import with_keyword
from gradfix.rewriting.holders import same
from gradfix.rewriting.made_once import where_read
from gradfix.rewriting.order import calls_of
from gradfix.rewriting.seats import vanished
from gradfix.rewriting.statements import Draft, anchor, node_of, path, text_of, with_argument
from gradfix.rewriting.states import LOOPS, carrier, detached
from gradfix.rewriting.turns import own_graph, own_loss
from gradfix.rule import Decline, Edit, Fix, Options, Rule
from gradfix.tree import Tree

ONCE = "the gradients are then those of one backward"
TEACH = "what it returns then teaches, too; if that isn't meant, retain_graph=True is enough"
STEPPED = "the step between the two may change what the later backward needs"


def rewrite(defect: Defect, tree: Tree, options: Options) -> Fix | Decline:
    call = tree.at(defect.culprit, cst.Call)
    if call is None:
        return Decline("pass retain_graph=True to the earlier backward")
    facts = defect.told(Freed)
    if facts.returned and not any(arg.star for arg in call.args):
        new = with_keyword(call, "create_graph", "True")
        return Fix((Edit(call, new),), tree.code(new), TEACH)
    carried = node_of(tree, facts.carried)
    steps = facts.again == defect.culprit and _steps_in_loop(tree, call)
    if carried is None and steps:
        carried = carrier(tree, call)
    if isinstance(carried, cst.Assign):
        return detached(tree, call, call, carried)
    if (anew := where_read(tree, facts.shared, facts.draws)) is not None:
        return anew
    if carried is not None or steps:
        turn = own_loss(tree, call) or own_graph(tree, call, facts.built, facts.drawn) if steps else None
        return turn or Decline(
            "build the whole graph inside the loop, or detach what it takes over from before"
        )
    if facts.outside:
        return _built_inside(call, tree, facts.outside)
    if (once := _said_once(call, tree, facts)) is not None:
        return once
    return _only_its_own(call, tree, facts) or _retain(call, tree, STEPPED if facts.stepped else "")


def _said_once(call: cst.Call, tree: Tree, facts: Freed) -> Fix | None:
    """The same statement twice in a row, without the second."""
    again = call_at(tree, facts.again)
    first, second = tree.small_statement(call), tree.small_statement(again) if again is not None else None
    if not (isinstance(first, cst.Expr) and isinstance(second, cst.Expr)) or first is second:
        return None
    if not same(tree.code(first.value), tree.code(second.value)) or not _in_a_row(tree, first, second):
        return None
    return Fix(vanished(tree, second), "one backward, not two", ONCE)


def _in_a_row(tree: Tree, first: cst.CSTNode, second: cst.CSTNode) -> bool:
    """Whether one statement follows another, on its line or on the next one of its block."""
    one, other = tree.parent(first), tree.parent(second)
    if one is not other:
        first, second, one, other = one, other, tree.parent(one), tree.parent(other)
    held = getattr(one, "body", ())
    body = list(held) if isinstance(held, Sequence) else []  # a block on the line of its loop holds others
    return one is other and first in body and second in body and body.index(second) == body.index(first) + 1


def _only_its_own(call: cst.Call, tree: Tree, facts: Freed) -> Fix | None:
    """The later backward told which parameters it is for: it needn't enter the graph that was freed."""
    again = call_at(tree, facts.again)
    if again is None or again is call:
        return None
    return aimed(tree, again, later_steps(tree, again, facts), facts.spared, facts.frozen)


def _built_inside(call: cst.Call, tree: Tree, name: str) -> Fix | Decline:
    """A closure that is called several times builds its graph anew at each call."""
    function = tree.function(call)
    made = [
        node
        for node in m.findall(tree.module, m.Assign())
        if isinstance(node, cst.Assign) and _sets(node, name)
    ]
    reads = [
        node
        for node in m.findall(tree.module, m.Name(name))
        if not isinstance(tree.parent(node), cst.AssignTarget)
    ]
    if function is None or len(made) != 1 or any(tree.function(node) is not function for node in reads):
        return Decline(
            f"build {name} inside the function that runs backward, so that each call has its own graph"
        )
    body = function.body.body
    first = next(
        place for place in body if isinstance(place, cst.BaseCompoundStatement) or not _docstring(place)
    )
    draft = Draft(tree)
    draft.move_before(anchor(tree, made[0]), anchor(tree, first))
    return Fix(draft.edits(), text_of(tree, made[0]))


def _sets(node: cst.Assign, name: str) -> bool:
    return len(node.targets) == 1 and m.matches(node.targets[0].target, m.Name(name))


def _docstring(place: cst.CSTNode) -> bool:
    return m.matches(place, m.SimpleStatementLine([m.Expr(m.SimpleString())]))


def _retain(call: cst.Call, tree: Tree, unsafe: str) -> Fix | Decline:
    if any(arg.star for arg in call.args):
        return Decline("pass retain_graph=True to this backward")
    given = [number for number, arg in enumerate(call.args) if arg.keyword is None]
    place = 1
    if m.matches(call.func, m.Attribute(m.Attribute(attr=m.Name("autograd")))):
        place = 3 if m.matches(call.func, m.Attribute(attr=m.Name("grad"))) else 2
    if len(given) > place:
        args = [
            arg.with_changes(value=cst.Name("True")) if n == place else arg for n, arg in enumerate(call.args)
        ]
        new = call.with_changes(args=args)
    else:
        new = with_argument(call, "retain_graph", "True")
    return Fix((Edit(call, new),), " ".join(tree.code(new).split()), unsafe)


def _steps_in_loop(tree: Tree, call: cst.Call) -> bool:
    loops = [place for place in path(tree, call) if isinstance(place, LOOPS)]
    return bool(loops) and bool(calls_of(loops[-1], "step"))


RULE = Rule(
    code="GF302",
    message="`{culprit}` frees a graph that a later backward needs",
    sometimes_unsafe=True,
    rewrite=rewrite,
)
