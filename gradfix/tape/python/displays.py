"""Displays and comprehensions: sequences and dicts written out or built in a loop."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gradfix.defects.reasons import What
from gradfix.tape.domain.alternatives import one_of
from gradfix.tape.domain.events import Backward
from gradfix.tape.domain.graph import Tensor
from gradfix.tape.domain.values import UNDEFINED, Const, Map, Seq, Unknown, unknown_of
from gradfix.tape.domain.why import Why, thing
from gradfix.tape.interpreter.aliases import names_read
from gradfix.tape.interpreter.conditions import condition
from gradfix.tape.interpreter.inside import all_in
from gradfix.tape.machine.deeds import deeds_in, doubt
from gradfix.tape.strangers.handed_out import escape
from gradfix.tape.torch.elements import elements, gone_through, part, some_of, told_apart
from gradfix.tape.torch.param_groups import spread
from gradfix.tape.torch.tensors import copied, gradient_of

if TYPE_CHECKING:
    from gradfix.tape.domain.values import Value
    from gradfix.tape.interpreter.interpreter import Interpreter
    from gradfix.tape.machine.histories import Graph

KINDS = {ast.ListComp: "list", ast.SetComp: "set", ast.GeneratorExp: "generator"}
ALIKE = Why(What.ELEMENT, "an element that is made like others")
LATER = thing("when somebody goes through this")


def display(vm: Interpreter, node: ast.Tuple | ast.List | ast.Set) -> Value:
    items: list[Value] = []
    open_ = some = False
    for element in node.elts:
        if isinstance(element, ast.Starred):
            source = vm.eval(element.value)
            inner, known = elements(vm, source, element)
            items.extend(inner if inner is not None else [part(source)])
            open_ = open_ or not known
            some = some or some_of(source)
            gone_through(vm.trail, source)
        else:
            items.append(vm.eval(element))
    return Seq(type(node).__name__.lower(), items, open_, node, some)


def mapping(vm: Interpreter, node: ast.Dict) -> Value:
    items: dict[Any, Value] = {}
    open_ = False
    for key, item in zip(node.keys, node.values, strict=True):
        value = vm.eval(item)
        name = vm.eval(key) if key is not None else None
        if name is None and isinstance(value, Map):
            items.update(value.items)
            open_ = open_ or value.open
        elif isinstance(name, Const):
            items[name.value] = value
        else:
            items[("unknown", id(item))] = value
            open_ = True
    return Map(items, open_, node)


def comprehension(vm: Interpreter, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Value:
    if isinstance(node, ast.GeneratorExp) and node is vm.running.kept and _does_something(node):
        return _asked_for_later(vm, node)
    source = told_apart(vm.eval(node.generators[0].iter))
    return vm.forks.each(source, lambda one: _listed(vm, node, one))


def _asked_for_later(vm: Interpreter, node: ast.GeneratorExp) -> Value:
    """What a generator expression does that is kept is done when somebody goes through it."""
    inside = all_in(node)
    bound = {one.id for one in inside if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    held = [vm.names.load(name) for name in names_read(vm.program, node) if name not in bound]
    for value in held:
        escape(vm.strangers, value)
    for deed, words in deeds_in(inside) if vm.here.at_home else ():
        doubt(vm.reports, deed, words, LATER)
    return Unknown(LATER, tuple(held))


def _does_something(node: ast.GeneratorExp) -> bool:
    """Whether it matters when the items of a generator expression are made: a call makes them."""
    return any(isinstance(one, ast.Call) for one in all_in(node.elt))


def _listed(vm: Interpreter, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, source: Value) -> Value:
    items: list[Value] = []
    asked: list[ast.expr] = []
    known = _generate(
        vm,
        node.generators,
        lambda: items.append(vm.eval(node.elt)),
        asked,
        source,
        lambda: items.append(unknown_of(ALIKE, *items)),
    )
    some = bool(asked) or some_of(source)
    listed = Seq(KINDS[type(node)], items, not known, node, some)
    for item in items:
        copied(gradient_of(item))
    return listed


def dict_comprehension(vm: Interpreter, node: ast.DictComp) -> Value:
    source = told_apart(vm.eval(node.generators[0].iter))
    return vm.forks.each(source, lambda one: _mapped(vm, node, one))


def _mapped(vm: Interpreter, node: ast.DictComp, source: Value) -> Value:
    items: dict[Any, Value] = {}

    def add() -> None:
        key, value = vm.eval(node.key), vm.eval(node.value)
        items[key.value if isinstance(key, Const) else ("unknown", len(items))] = value

    known = _generate(vm, node.generators, add, [], source)
    return Map(items, not known, node)


def _unlike(graph: Graph, turns: Sequence[Value]) -> list[Value]:
    """One turn of each kind: of what is in a graph, of what isn't, and of what may be."""
    kinds = {id(turn) if _learns(turn) else graph.requires(turn): turn for turn in reversed(turns)}
    return list(kinds.values())[::-1]


def _learns(turn: Value) -> bool:
    """Whether it is a parameter, of which each has a gradient of its own."""
    return isinstance(turn, Tensor) and turn.leaf is True and turn.parameter


def _generate(
    vm: Interpreter,
    generators: Sequence[ast.comprehension],
    add: Callable[[], object],
    asked: list[ast.expr],
    source: Value | None = None,
    leave_out: Callable[[], object] | None = None,
) -> bool:
    """Run a comprehension's loops, and note the tests that aren't known; whether every turn was seen."""
    if not generators:
        add()
        return True
    first = generators[0]
    source = source or one_of(told_apart(vm.eval(first.iter)))
    turns, known = elements(vm, source, first.iter)
    if turns is None:
        turns, known = [part(source)], False
    total = len(turns)
    whole = len(getattr(source, "range", turns))
    whole_turns, since = turns, next(Backward.numbers)
    turns = _unlike(vm.graph, turns) if vm.running.later_turn and total > 4 else turns[:64]
    known = known and len(turns) == whole
    bound = [node.id for node in all_in(first.target) if isinstance(node, ast.Name)]
    held = [(name, vm.names.scope.names.get(name, UNDEFINED)) for name in bound]
    ran = {id(turn) for turn in turns}
    for turn in whole_turns if leave_out is not None else turns:
        if id(turn) not in ran and leave_out is not None:
            leave_out()
            continue
        with vm.here.within(path=vm.here.path):
            vm.assign(first.target, turn, first.target)
            for test in first.ifs:
                truth, yes, _ = condition(vm, test)
                if truth is False:
                    break
                if truth is None:
                    known = False
                    asked.append(test)
                    vm.here.go_on(vm.here.path | yes)
            else:
                known = _generate(vm, generators[1:], add, asked) and known
    spread(vm.machine, since, turns, whole_turns)
    gone_through(vm.trail, source)
    for name, value in held:
        vm.names.store(name, value)
    return known
