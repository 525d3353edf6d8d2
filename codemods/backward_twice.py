"""Backward through a graph that an earlier backward has freed.

`backward()` frees the saved tensors of the graph that it has walked. A second backward through any part of
that graph raises, unless the first was told `retain_graph=True`. Where a hidden state carries the graph
from one iteration into the next, retaining it would only let it grow (and the next step would overwrite
what it saved): the state has to be detached between the iterations, which is what truncated backpropagation
through time means.

The rewrite says `retain_graph=True` on the earlier backward, or detaches the carried state after it. Left
alone: graphs that saved nothing, graphs built anew in each iteration, states detached already.
"""

from __future__ import annotations

import libcst as cst
from libcst import matchers as m

from gradfix.rewriting.statements import node_of, path, with_argument
from gradfix.rewriting.states import LOOPS, carrier, detached
from gradfix.rule import Decline, Edit, Fix, Options, Rule
from gradfix.tape.defects import Defect
from gradfix.tree import Tree


def rewrite(defect: Defect, tree: Tree, options: Options) -> Fix | Decline:
    call = tree.at(defect.culprit, cst.Call)
    if call is None:
        return Decline("pass retain_graph=True to the earlier backward")
    carried = node_of(tree, defect.facts.get("carried"))
    steps = defect.facts.get("again") == defect.culprit and _steps_in_loop(tree, call)
    if carried is None and steps:
        carried = carrier(tree, call)
    if isinstance(carried, cst.Assign):
        return detached(tree, call, call, carried, str(defect.facts.get("state") or ""))
    if carried is not None or steps:
        return Decline("build the whole graph inside the loop, or detach what it takes over from before")
    return _retain(call, tree)


def _retain(call: cst.Call, tree: Tree) -> Fix | Decline:
    if any(arg.star for arg in call.args):
        return Decline("pass retain_graph=True to this backward")
    given = [number for number, arg in enumerate(call.args) if arg.keyword is None]
    place = 2 if m.matches(call.func, m.Attribute(m.Attribute(attr=m.Name("autograd")))) else 1
    if len(given) > place:
        args = [
            arg.with_changes(value=cst.Name("True")) if n == place else arg for n, arg in enumerate(call.args)
        ]
        new = call.with_changes(args=args)
    else:
        new = with_argument(call, "retain_graph", "True")
    return Fix((Edit(call, new),), " ".join(tree.code(new).split()))


def _steps_in_loop(tree: Tree, call: cst.Call) -> bool:
    loops = [place for place in path(tree, call) if isinstance(place, LOOPS)]
    return bool(loops) and ".step(" in tree.code(loops[-1])


RULE = Rule(
    code="GF302",
    message="`{culprit}` frees a graph that a later backward needs",
    rewrite=rewrite,
)
