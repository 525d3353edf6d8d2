"""Finds the hidden state that carries a graph from one iteration into the next, and detaches it."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

import libcst as cst

from gradfix.rewriting import shapes as m
from gradfix.rewriting.statements import Draft, anchor, expression, names_in, path, siblings
from gradfix.rule import Decline, Edit, Fix
from gradfix.tape.effects.operations import layers_told
from gradfix.tree import Tree

CUT_FOR_ALL = "whoever reads this state gets no gradient through it"
LOOPS = (cst.For, cst.While)
LAYERS = {kind: state == "pair" for kind, state in layers_told("state").items()}
"""Recurrent layers, and whether their state is a tuple."""


def detached(tree: Tree, backward: cst.Call, new: cst.Call, assign: cst.Assign) -> Fix | Decline:
    """Detach what an assignment carries, once backward has run; `new` is what backward's call becomes."""
    states = _states(tree, assign)
    values = [_detached(tree, name, states) for name in states]
    if None in values or not states:
        named = states[0] if states else "the state"
        return Decline(f"detach {named} after this backward: the tensor, or each part of the tuple")
    if tree.function(assign) is not tree.function(backward):
        return _where_read(tree, assign, dict(zip(states, values, strict=True)))
    text = f"{', '.join(states)} = {', '.join(map(str, values))}"
    draft = Draft(tree)
    draft.after(anchor(tree, backward), text)
    if new is not backward:
        draft.swap(backward, new)
    return Fix(draft.edits(), text)


def carrier(tree: Tree, backward: cst.Call) -> cst.Assign | None:
    """The one assignment that gives a call what it gave an iteration ago: in the loop, or on an object."""
    loops = [place for place in path(tree, backward) if isinstance(place, LOOPS)]
    if not loops:
        return None
    found = [
        node for node in m.findall(loops[-1].body, m.Assign(value=m.Call())) if isinstance(node, cst.Assign)
    ]
    carriers = [node for node in found if _states(tree, node) and not _set_before(tree, node)]
    carriers = [node for node in carriers if _feeds(loops[-1], _states(tree, node), backward)]
    carriers = carriers or _on_objects(tree)
    return carriers[0] if len(carriers) == 1 else None


def _feeds(loop: cst.BaseCompoundStatement, states: Sequence[str], backward: cst.Call) -> bool:
    """Whether what a backward starts from may be made of some state, by the names that its loop binds."""
    kinds = m.Assign() | m.AugAssign() | m.AnnAssign() | m.For() | m.Expr()
    rows = [(_bound_by(node), names_in(node)) for node in m.findall(loop.body, kinds)]
    feeding, before = names_in(backward), set[str]()
    while feeding != before:
        before = set(feeding)
        feeding.update(*(read for bound, read in rows if bound & feeding))
    return any("." in state or state in feeding for state in states)


def _bound_by(node: cst.CSTNode) -> set[str]:
    """The names that a statement may give something new: a call, those that it is called on or given."""
    if isinstance(node, cst.Assign):
        return set[str]().union(*(names_in(target) for target in node.targets))
    return (
        names_in(node.target) if isinstance(node, (cst.AugAssign, cst.AnnAssign, cst.For)) else names_in(node)
    )


def _on_objects(tree: Tree) -> list[cst.Assign]:
    """The assignments of that kind to attributes of `self`."""
    found = [
        node for node in m.findall(tree.module, m.Assign(value=m.Call())) if isinstance(node, cst.Assign)
    ]
    return [node for node in found if any(state.startswith("self.") for state in _states(tree, node))]


def _set_before(tree: Tree, assign: cst.Assign) -> bool:
    """Whether the iteration itself sets the state before the assignment reads it."""
    states = set(_states(tree, assign))
    row = siblings(tree, anchor(tree, assign))
    earlier = row[: row.index(anchor(tree, assign))]
    written = (target for place in earlier for target in m.findall(place, m.AssignTarget()))
    return any(states & {tree.code(node) for node in _flat(_target(target))} for target in written)


def _target(node: cst.CSTNode) -> cst.CSTNode:
    return node.target if isinstance(node, cst.AssignTarget) else node


def _where_read(tree: Tree, assign: cst.Assign, values: dict[str, str | None]) -> Fix | Decline:
    """The state lives on an object that backward's function does not see: cut it where it comes in."""
    looped = any(isinstance(place, LOOPS) for place in path(tree, assign))
    unset = any(f"{state} = None" in tree.source for state in values)
    reads = [node for node in _below(assign.value) if tree.code(node) in values]
    if unset and not looped and _left_alone(tree, assign, values):
        return _where_kept(tree, assign, values)
    if looped or unset or not reads:
        return Decline(f"detach {', '.join(values)} after each backward")
    edits = tuple(Edit(node, expression(tree, str(values[tree.code(node)]))) for node in reads)
    return Fix(edits, ", ".join(map(str, values.values())), CUT_FOR_ALL)


def _left_alone(tree: Tree, assign: cst.Assign, values: Container[str]) -> bool:
    """Whether a method has no use for the state that it keeps, once it has that."""
    if any(not isinstance(each.target, (cst.Tuple, cst.List)) for each in assign.targets):
        return False  # the state itself is what was computed
    function = tree.function(assign)
    if function is None:
        return False
    end = tree.span(assign).end_line, tree.span(assign).end_column
    used = (tree.span(node) for node in _below(function) if tree.code(node) in values)
    return not any((each.line, each.column) > end for each in used)


def _where_kept(tree: Tree, assign: cst.Assign, values: dict[str, str | None]) -> Fix:
    """The state begins as nothing, which can't be detached: what is kept of it is."""
    text = f"{', '.join(values)} = {', '.join(map(str, values.values()))}"
    draft = Draft(tree)
    draft.after(anchor(tree, assign), text)
    return Fix(draft.edits(), text, CUT_FOR_ALL)


def _states(tree: Tree, assign: cst.Assign) -> list[str]:
    """What the assignment both reads and writes."""
    callee = assign.value.func if isinstance(assign.value, cst.Call) else None
    read = {tree.code(node) for node in _below(assign.value) if node is not callee}
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


def _detached(tree: Tree, state: str, states: Sequence[str]) -> str | None:
    nested = False if len(states) > 1 else _is_tuple(tree, state)
    if nested is None:
        return None
    part = "part" if state == "h" else "h"
    return f"tuple({part}.detach() for {part} in {state})" if nested else f"{state}.detach()"


def _is_tuple(tree: Tree, state: str) -> bool | None:
    """Whether a state is a tuple of tensors, by what it starts as or the file's recurrent layers."""
    kinds = {_kind(tree, value) for value in _starts(tree, state)} - {None}
    if len(kinds) != 1:
        calls = (call for call in m.findall(tree.module, m.Call()) if isinstance(call, cst.Call))
        kinds = {LAYERS.get(_last_name(call.func)) for call in calls} - {None}
    return kinds.pop() if len(kinds) == 1 else None


def _starts(tree: Tree, state: str) -> Iterator[cst.BaseExpression]:
    for node in m.findall(tree.module, m.Assign()):
        if isinstance(node, cst.Assign) and any(tree.code(target.target) == state for target in node.targets):
            yield node.value


def _kind(tree: Tree, value: cst.CSTNode | None) -> bool | None:
    if isinstance(value, cst.Tuple):
        return True
    if not isinstance(value, cst.Call):
        return None
    made = tree.torch is not None and tree.torch in names_in(value.func)
    return False if made else _returned(tree, _last_name(value.func))


def _returned(tree: Tree, name: str) -> bool | None:
    """What a function of this file (`init_hidden`) returns."""
    kinds: set[bool | None] = set()
    for function in m.findall(tree.module, m.FunctionDef(name=m.Name(name))):
        for node in m.findall(function, m.Return()):
            value = node.value if isinstance(node, cst.Return) else None
            made = isinstance(value, cst.Call) and tree.torch in names_in(value.func)
            kinds.add(True if isinstance(value, cst.Tuple) else False if made else None)
    return kinds.pop() if len(kinds) == 1 else None


def _last_name(func: cst.CSTNode) -> str:
    return func.attr.value if isinstance(func, cst.Attribute) else getattr(func, "value", "")
