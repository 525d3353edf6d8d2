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

from collections.abc import Iterator

import libcst as cst
from libcst import matchers as m

from gradfix.rule import Decline, Edit, Fix, Options, Rule, Safety
from gradfix.statements import Draft, anchor, expression, path, with_argument
from gradfix.tape.defects import Defect, Span
from gradfix.tree import Tree

LOOPS = (cst.For, cst.While)
LAYERS = {"LSTM": True, "LSTMCell": True, "GRU": False, "GRUCell": False, "RNN": False, "RNNCell": False}
"""Recurrent layers, and whether their state is a tuple."""


def rewrite(defect: Defect, tree: Tree, options: Options) -> Fix | Decline:
    call = tree.at(defect.culprit, cst.Call)
    if call is None:
        return Decline("pass retain_graph=True to the earlier backward")
    carried = defect.facts.get("carried")
    if isinstance(carried, Span):
        assign = tree.at(carried, cst.Assign)
        return (
            _detach(defect, tree, call, assign)
            if assign
            else Decline("detach the state between the iterations")
        )
    if defect.facts.get("again") == defect.culprit and _steps_in_loop(tree, call):
        return Decline(
            "compute the loss inside the loop, or after each step it is the loss of old parameters"
        )
    return _retain(call, tree)


def _retain(call: cst.Call, tree: Tree) -> Fix | Decline:
    if any(arg.star for arg in call.args):
        return Decline("pass retain_graph=True to this backward")
    given = [number for number, arg in enumerate(call.args) if arg.keyword is None]
    place = 2 if m.matches(call.func, m.Attribute(m.Attribute(attr=m.Name("autograd")))) else 1
    true = cst.Name("True")
    if len(given) > place:
        args = [arg.with_changes(value=true) if n == place else arg for n, arg in enumerate(call.args)]
        new = call.with_changes(args=args)
    else:
        new = with_argument(call, "retain_graph", true)
    return Fix((Edit(call, new),), " ".join(tree.code(new).split()))


def _steps_in_loop(tree: Tree, call: cst.Call) -> bool:
    loops = [place for place in path(tree, call) if isinstance(place, LOOPS)]
    return bool(loops) and ".step(" in tree.code(loops[-1])


def _detach(defect: Defect, tree: Tree, call: cst.Call, assign: cst.Assign) -> Fix | Decline:
    states = _states(tree, assign) or [str(defect.facts.get("state") or "")]
    if not all(states):
        return Decline("detach the state between the iterations")
    values = [_detached(tree, state, states) for state in states]
    if None in values:
        return Decline(f"detach {states[0]} after this backward: the tensor, or each part of the tuple")
    if tree.function(assign) is not tree.function(call):
        return _detach_where_read(tree, assign, dict(zip(states, values, strict=True)))
    text = f"{', '.join(states)} = {', '.join(map(str, values))}"
    draft = Draft(tree)
    draft.after(anchor(tree, call), text)
    return Fix(draft.edits(), text)


def _detach_where_read(tree: Tree, assign: cst.Assign, values: dict[str, str | None]) -> Fix | Decline:
    """The state lives on an object that backward's function does not see: cut it where it comes in."""
    looped = any(isinstance(place, LOOPS) for place in path(tree, assign))
    unset = any(f"{state} = None" in tree.source for state in values)
    if looped or unset:
        return Decline(f"detach {', '.join(values)} after each backward")
    reads = [node for node in _below(assign.value) if tree.code(node) in values]
    edits = tuple(Edit(node, expression(tree, str(values[tree.code(node)]))) for node in reads)
    return (
        Fix(edits, ", ".join(map(str, values.values())), Safety.UNSAFE)
        if edits
        else Decline("detach the state")
    )


def _states(tree: Tree, assign: cst.Assign) -> list[str]:
    """What the assignment both reads and writes."""
    read = {tree.code(node) for node in _below(assign.value)}
    written = [tree.code(node) for target in assign.targets for node in _flat(target.target)]
    return [name for name in written if name in read]


def _below(value: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    for node in m.findall(value, m.Name() | m.Attribute()):
        if isinstance(node, (cst.Name, cst.Attribute)):
            yield node


def _flat(target: cst.CSTNode) -> Iterator[cst.CSTNode]:
    if not isinstance(target, (cst.Tuple, cst.List)):
        yield target
        return
    for element in target.elements:
        yield from _flat(element.value)


def _detached(tree: Tree, state: str, states: list[str]) -> str | None:
    nested = False if len(states) > 1 else _is_tuple(tree, state)
    if nested is None:
        return None
    part = "part" if state == "h" else "h"
    return f"tuple({part}.detach() for {part} in {state})" if nested else f"{state}.detach()"


def _is_tuple(tree: Tree, state: str) -> bool | None:
    """Whether a state is a tuple of tensors, by what it starts as or the file's recurrent layers."""
    kinds = {_kind(tree, assign.value) for assign in _starts(tree, state)} - {None}
    if len(kinds) != 1:
        made = m.findall(tree.module, m.Call())
        kinds = {LAYERS.get(_last_name(call.func)) for call in made if isinstance(call, cst.Call)} - {None}
    return kinds.pop() if len(kinds) == 1 else None


def _starts(tree: Tree, state: str) -> Iterator[cst.Assign]:
    for node in m.findall(tree.module, m.Assign()):
        if isinstance(node, cst.Assign) and any(tree.code(target.target) == state for target in node.targets):
            yield node


def _kind(tree: Tree, value: cst.CSTNode | None) -> bool | None:
    if isinstance(value, cst.Tuple):
        return True
    if not isinstance(value, cst.Call):
        return None
    if tree.torch and tree.code(value.func).startswith(f"{tree.torch}."):
        return False
    return _returned(tree, _last_name(value.func))


def _returned(tree: Tree, name: str) -> bool | None:
    """What a function of this file (`init_hidden`) returns."""
    kinds: set[bool | None] = set()
    for function in m.findall(tree.module, m.FunctionDef(name=m.Name(name))):
        for node in m.findall(function, m.Return()):
            value = node.value if isinstance(node, cst.Return) else None
            kinds.add(True if isinstance(value, cst.Tuple) else _made_by_torch(tree, value))
    return kinds.pop() if len(kinds) == 1 else None


def _made_by_torch(tree: Tree, value: cst.CSTNode | None) -> bool | None:
    made = (
        isinstance(value, cst.Call)
        and tree.torch is not None
        and tree.code(value).startswith(f"{tree.torch}.")
    )
    return False if made else None


def _last_name(func: cst.CSTNode) -> str:
    return func.attr.value if isinstance(func, cst.Attribute) else getattr(func, "value", "")


RULE = Rule(
    code="GF302",
    message="`{culprit}` frees a graph that a later backward needs",
    rewrite=rewrite,
)
