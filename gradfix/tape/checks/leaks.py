"""Graphs that are kept for nothing: totals and lists of results that nothing walks back."""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from gradfix.defects import NOTHING, Assumption, Convention, Role
from gradfix.defects.records import Kept
from gradfix.tape.domain.events import Backward
from gradfix.tape.domain.graph import Number, Tensor, upstream
from gradfix.tape.domain.paths import covered, implies
from gradfix.tape.domain.values import Alt, Const, Unknown, stamp
from gradfix.tape.interpreter.state import PutBy, Waiting
from gradfix.tape.machine.here import span_of

if TYPE_CHECKING:
    from gradfix.defects import Span
    from gradfix.tape.domain.graph import Node
    from gradfix.tape.domain.values import Value
    from gradfix.tape.interpreter.frames import Frame
    from gradfix.tape.interpreter.interpreter import Interpreter
    from gradfix.tape.interpreter.occasions import Added, Appended, AttributeNamed, ItemAdded
    from gradfix.tape.interpreter.state import Notes
    from gradfix.tape.machine.machine import Machine


LOSS = frozenset({Convention.C})
"""What is backpropagated and isn't known is taken for a loss, which is a tensor of one number."""


def adds_to(node: ast.expr, name: str) -> bool:
    return (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Add)
        and any(isinstance(side, ast.Name) and side.id == name for side in (node.left, node.right))
    )


def accumulating(vm: Interpreter, added: Added) -> None:
    """A total that takes a graph in at every turn of a loop."""
    name, held, right, result, node = added
    right = _as_tensor(right)
    if not vm.names.frame.loops or not vm.here.at_home or not _recorded(vm):
        return
    ways = [one for _, one in held.options] if isinstance(held, Alt) else [held]
    grows = any(isinstance(one, Tensor) and _grows(vm, one.born) for one in ways)
    vm.notes.grown[span_of(node)] = grows or vm.notes.grown.get(span_of(node), False)
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) and _walked_on_each(vm, right):
        vm.forks.on_each(right, lambda one: kept(vm, one, node.value, node, name, of=right))
        if isinstance(result, Tensor):
            vm.notes.totals.append((vm.graph.history(result), span_of(node)))
        return
    if grows and isinstance(node, ast.AugAssign):
        vm.forks.on_each(right, lambda one: _perhaps_kept(vm, one, node))
    if isinstance(held, Alt):
        return
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) and _undecided(right):
        waiting = vm.notes.added.setdefault(span_of(node), [])
        goes_on = bool(waiting) and waiting[-1].result is held and _grows(vm, waiting[-1].at)
        waiting.append(Waiting(vm.here.path, held, right, result, node, stamp(), goes_on))
        return
    if (
        isinstance(result, Tensor)
        and result.requires is True
        and isinstance(right, Tensor)
        and right.requires is True
    ):
        term = right
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp):
            sides = [vm.names.scope.names.get(s.id) if isinstance(s, ast.Name) and s.id != name else None
                     for s in (node.value.left, node.value.right)]  # fmt: skip
            term = next((side for side in sides if isinstance(side, Tensor)), right)
        elif not isinstance(node, ast.AugAssign) or not isinstance(node.op, ast.Add):
            return
        entries = vm.notes.accumulated.setdefault(span_of(node), [])
        if grows and entries and entries[-1][1] is held and entries[-1][3].clean >= 0:
            vm.notes.outlived.add(span_of(node))
        entries.append((name, result, vm.graph.history(result), vm.graph.history(term), node))


def _grows(vm: Interpreter, since: int) -> bool:
    """Whether what is so old goes on from turn to turn of a loop that may have many, or of a script's few."""
    frame: Frame | None = vm.names.frame
    assert frame is not None
    crossed = [loop for loop in frame.loops if since < loop.began]
    if not crossed or not all(loop.few for loop in crossed):
        return bool(crossed)
    if frame.code is not None and all(loop.few == "counted" for loop in crossed):
        return False  # a function of few turns that keeps them to itself
    if vm.here.path != frame.loops[0].path:
        return False  # in some of few turns: in one, perhaps
    while frame.caller is not None:
        frame = frame.caller
        if not all(loop.few for loop in frame.loops):
            return False
    return frame.code is None and all(loop.few for loop in vm.names.frame.loops)


def _as_tensor(value: Value) -> Value:
    """The tensor that a value is which nobody knew to be one before it was used."""
    return value.tensor if isinstance(value, Unknown) and value.tensor is not None else value


def _undecided(value: Value) -> bool:
    """Whether a later backward may show that a value had a graph all along."""
    return isinstance(value, (Unknown, Tensor)) and value.requires is None


def _recorded(vm: Interpreter) -> bool:
    """Whether a sum is surely recorded, and so keeps the graphs of its terms."""
    return vm.grad_mode.grad is True and vm.grad_mode.mode_in_doubt is False


def walked_already(machine: Machine, value: Value, but: Collection[int] = ()) -> Node | None:
    """The node of a result whose graph a backward has walked and freed: nobody can need it again.

    `but` are the nodes to look neither at nor behind.
    """
    if not isinstance(value, Tensor) or value.requires is False:
        return None
    if value.requires is None and not _proved(machine, machine.graph.history(value)):
        return None
    stack, seen = [machine.graph.history(value)], 0
    while stack and seen < 8:
        node = stack.pop(0)
        if id(node) in but:
            continue
        seen += 1
        if machine.backward.had_graph(node):
            return node
        freed = [path for _, path in node.freed or ()]
        if any(implies(machine.here.path, path) for path in freed) or covered(machine.here.path, freed):
            return node
        stack.extend(parent for parent in node.parents if parent.requires is True or _proved(machine, parent))
    return None


def _proved(machine: Machine, node: Node) -> bool:
    """Whether a backward has shown that what a node was surely recorded with had a graph."""
    for _ in range(NEAR):
        if machine.backward.had_graph(node):
            return True
        above = [one for one in node.parents if one.requires is not False]
        if node.requires is not None or node.may or node.cut or node.guards is not None or len(above) != 1:
            break
        node = above[0]
    return False


def _may_be_walked(machine: Machine, value: Value) -> bool:
    """Whether a value may be made of what a backward has walked."""
    if machine.graph.requires(value) is False:
        return False
    behind = islice(upstream(machine.graph.given(value)), FAR)
    return any(node.freed and node.requires is not False for node in behind)


BEHIND = 1000
"""How many nodes behind severed losses are looked through for totals that these were to walk."""
NEAR = 8
"""How many operations may lie between what is kept and what a backward has shown to have a graph."""
FAR = 40
"""How many nodes are looked through for one that was walked."""


def _walked_on_each(vm: Interpreter, value: Value) -> bool:
    """Whether a backward has walked a result, whichever of its alternatives it is."""
    walked: list[bool] = []
    vm.forks.on_each(
        value, lambda one: walked.append(walked_already(vm.machine, _as_tensor(one)) is not None)
    )
    return bool(walked) and all(walked)


def item_added(vm: Interpreter, added: ItemAdded) -> None:
    """`totals[name] += loss`: what is kept there may be a graph that nobody needs."""
    if vm.grad_mode.grad is True and isinstance(added.node.op, ast.Add):
        vm.forks.on_each(added.right, lambda one: _kept_there(vm, one, added))


def _kept_there(vm: Interpreter, right: Value, added: ItemAdded) -> None:
    """Whether that outlives the turn of a loop in which it was made, and holds nothing but totals."""
    right = _as_tensor(right)
    walked = walked_already(vm.machine, right)
    born = getattr(added.owner, "born", None)
    if walked is not None and born is not None and _recorded(vm) and _is_total(added.held):
        frame: Frame | None = vm.names.frame
        while frame is not None:
            if any(born < loop.began < walked.born for loop in frame.loops):
                target = vm.reports.text(added.node.target)
                kept(vm, right, added.node.value, added.node, target, of=added.right)
                return
            frame = frame.caller
    if _may_be_walked(vm.machine, right):
        vm.reports.silence(vm.here.at(added.node), "whether what is put by keeps a graph isn't known")


def _is_total(held: Value) -> bool:
    """Whether a value is one that sums are made of, and no object that makes of them what it likes."""
    if isinstance(held, Alt):
        return all(_is_total(option) for _, option in held.options)
    known = isinstance(held, Const) and isinstance(held.value, (int, float))
    return known or (isinstance(held, Tensor) and held.grad_of is None)


def kept(
    vm: Interpreter, value: Value, expression: ast.AST, node: ast.AST, target: str, *, of: Value | None = None
) -> None:
    """A result is put by after its graph was walked: the graph stays in memory for nothing. `of`: the values
    of which it is one."""
    value = _as_tensor(value)
    freed = walked_already(vm.machine, value)
    if freed is None:
        _perhaps_kept(vm, value, node)
    if freed is None or not vm.here.at_home or not isinstance(value, Tensor):
        return
    draft = vm.reports.draft(
        "graph_leak",
        node,
        [(freed.place, Role.KEPT_GRAPH), (vm.here.at(node), Role.KEPT)],
        Kept(value=span_of(expression), target=target, number=of is not None and _number_on_some_path(of)),
        lean=vm.graph.lean(value) | (LOSS if value.requires is None else NOTHING),
        when=vm.here.path,
        account=vm.machine.leaves.accounts.of(Assumption.NOBODY_ELSE_WALKS, ()),
    )
    if draft is not None:
        vm.notes.put_by.append(PutBy(draft, vm.graph.history(value), next(Backward.numbers)))
    _through_totals(vm.notes, value, span_of(node))


def _perhaps_kept(vm: Interpreter, value: Value, node: ast.AST) -> None:
    """Say of what is put by that it may keep a graph."""
    if _may_be_walked(vm.machine, _as_tensor(value)):
        vm.reports.silence(vm.here.at(node), "whether what is put by keeps a graph isn't known")


def _through_totals(notes: Notes, value: Value, span: Span) -> None:
    """Note whether what is put by here keeps its graph through totals alone, at every turn."""
    totals = {id(total): place for total, place in notes.totals}
    totals |= {id(entry[2]): place for place, entries in notes.accumulated.items() for entry in entries}
    direct = walked_already(notes.machine, value, totals) is not None
    places = set() if direct else set(totals.values())
    notes.through_totals[span] = places if notes.through_totals.get(span, places) else set()


def appended(vm: Interpreter, put: Appended) -> None:
    """`losses.append(loss)` at every turn of a loop."""
    if not _grows(vm, put.into.born):
        return
    if _number_on_some_path(put.value):
        vm.reports.silence(vm.here.at(put.call), "what is put by is a plain number on another path")
        return
    vm.forks.on_each(put.value, lambda one: kept(vm, one, put.call.args[0], put.call, ""))


def _number_on_some_path(value: Value) -> bool:
    """Whether somebody has made a number of it on a path: there it has nothing that could be detached."""
    return isinstance(value, Alt) and any(isinstance(one, (Const, Number)) for _, one in value.options)


def kept_on_attribute(vm: Interpreter, named: AttributeNamed) -> None:
    """`self.total = self.total + loss`."""
    target, node = named
    value = node.value if isinstance(node, ast.Assign) else None
    if _recorded(vm) and isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        for own, added in ((value.left, value.right), (value.right, value.left)):
            if (
                isinstance(own, ast.Attribute)
                and ast.dump(own.value) == ast.dump(target.value)
                and own.attr == target.attr
            ):
                if isinstance(added, ast.Name):
                    kept(vm, vm.names.load(added.id), added, node, vm.reports.text(target))
                return


def leaked(entries: Sequence[Interpreter]) -> None:
    """At the end: what was put by with a graph that nobody wanted any more."""
    put_by = [(vm, one) for vm in entries for one in vm.notes.put_by]
    # What a later backward wanted is a part of the next loss, not a souvenir.
    wanted = {one.draft.culprit for _, one in put_by if one.root.clean > one.when}
    grown = {span for vm in entries for span, grew in vm.notes.grown.items() if grew}
    small = {span for vm in entries for span in vm.notes.grown} - grown
    kept = {one.draft.culprit for _, one in put_by} - wanted - small
    summed = {span for vm in entries for span in vm.notes.outlived}
    through: dict[Span, set[Span]] = {}
    for vm in entries:
        for span, totals in vm.notes.through_totals.items():
            through[span] = totals if through.get(span, totals) else set()
    for span, totals in through.items():
        if totals - {span} and totals - {span} <= kept | summed:
            kept.discard(span)  # a total without its graphs has none to keep here
    for vm, one in put_by:
        if one.draft.culprit in kept:
            vm.reports.note(one.draft, one.draft.facts, vm.reports.granted)


def shown_later(vm: Interpreter) -> None:
    """At the end: totals of what later backwards have shown to have a graph, and freed."""
    for entries in vm.notes.added.values():
        first = entries[0]
        if not any(one.goes_on for one in entries) or not _is_total(first.held):
            continue
        if all(_shown(vm.machine, one) for one in entries) and not any(
            _wanted(vm.machine, one) for one in entries
        ):
            assert isinstance(first.node.target, ast.Name)
            facts = Kept(value=span_of(first.node.value), target=first.node.target.id)
            steps = [(first.node.value, Role.KEPT_GRAPH), (first.node, Role.TOTAL)]
            account = vm.machine.leaves.accounts.of(Assumption.NOBODY_ELSE_WALKS, ())
            lean = LOSS | vm.graph.lean(first.right)
            vm.reports.report("graph_leak", first.node, steps, facts, lean=lean, account=account)


def _shown(machine: Machine, one: Waiting) -> bool:
    value = _as_tensor(one.right)
    return isinstance(value, Tensor) and machine.backward.had_graph(machine.graph.history(value), one.path)


def _wanted(machine: Machine, one: Waiting) -> bool:
    """Whether a backward starts from the total itself, or from what was made of it."""
    total = _as_tensor(one.result)
    return isinstance(total, Tensor) and id(machine.graph.history(total)) in machine.backward.proved


def never_walked(vm: Interpreter) -> None:
    """At the end: totals whose graph was kept and never walked, though what they add was."""
    severed = [vm.graph.history(root) for _, root in vm.machine.severed.backwards if root.requires is False]
    meant = {id(node) for node in islice(upstream(severed), BEHIND)}
    for span, entries in vm.notes.accumulated.items():
        if len(entries) < 2:
            continue
        nodes = [total for _, _, total, _, _ in entries]
        if any(node.clean >= 0 or id(node) in meant for node in nodes):
            continue  # walked, or a backward would walk it if nothing was cut off
        if span not in vm.notes.outlived:
            continue
        name, _, _, added, node = entries[0]
        value = node.value if isinstance(node, (ast.AugAssign, ast.Assign)) else None
        if isinstance(value, ast.BinOp):
            value = value.right if isinstance(value.left, ast.Name) and value.left.id == name else value.left
        kept = [(added.place, Role.KEPT_GRAPH), (node, Role.TOTAL)]
        facts = Kept(value=span_of(value) if value else None, target=name)
        handed = vm.strangers.passed_on
        whys = [handed[id(node)] for node in nodes if id(node) in handed]
        account = vm.machine.leaves.accounts.of(Assumption.NOBODY_ELSE_WALKS, whys)
        vm.reports.report("graph_leak", node, kept, facts, lean=added.lean, account=account)
