"""Python's own functions that loop over values: enumerate, zip, map, filter, next."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from gradfix.defects.reasons import What
from gradfix.tape.domain.definitions import Function
from gradfix.tape.domain.torch_values import Weights
from gradfix.tape.domain.values import NONE, Const, Range, Seq, Unknown, unknown_of
from gradfix.tape.domain.why import INDEX, Why, fact
from gradfix.tape.strangers.handed_out import asked_for_later, escape
from gradfix.tape.torch.elements import elements, gone_through, index, length, part, some_of

if TYPE_CHECKING:
    from gradfix.tape.domain.trail import Trail
    from gradfix.tape.domain.values import Args, Value
    from gradfix.tape.interpreter.interpreter import Interpreter


MANY = 64
"""Of how many items each is asked whether it passes a filter."""


def iterating(vm: Interpreter, name: str, args: Args, node: ast.Call) -> Value:
    """Call one of them; what they are without arguments isn't known."""
    iterate = ITERATING.get(name)
    if iterate is None or len(args) < LEAST[name]:
        return args[0] if args else Unknown(fact(f"{name}()"))
    return iterate(vm, args, node)


def _enumerate(vm: Interpreter, args: Args, node: ast.Call) -> Value:
    items, known = _lazily(vm, args[0], node)
    given = args[1].value if len(args) > 1 and isinstance(args[1], Const) else 0
    start = given if isinstance(given, int) else 0
    counted = len(args) < 2 or isinstance(given, int)
    if items is None:
        items, known = [part(args[0]) for _ in range(2)], False
    over = args[0].range if isinstance(args[0], Range) else range(0)
    if len(over) > len(items):
        items, known = [Const(over[0]), index(min(over[1], over[-1]), (None, over[-1] + 1))], False
    if known and counted:
        counts: list[Value] = [Const(i + start) for i in range(len(items))]
    else:
        first = Const(start) if counted else Unknown(INDEX)
        key, by = (None, len(over)) if over else length(args[0]).offset or (None, 0)
        end = (key, by + start) if len(items) == 2 else None
        counts = [first, *(index(start + 1, end) if counted else Unknown(INDEX) for _ in items[1:])]
    pairs = [_pair(count, item) for count, item in zip(counts, items, strict=True)]
    return Seq("generator", pairs, open=not known, some=some_of(args[0]))


def _zip(vm: Interpreter, args: Args, node: ast.Call) -> Value:
    lazy = [*filter(_is_generator, args)]
    starred = any(isinstance(arg, ast.Starred) for arg in node.args)
    more = starred and any(isinstance(arg, Unknown) for arg in args)
    if len({*map(id, lazy)}) < len(lazy):  # one generator may be asked twice for each row
        return Seq("generator", [Seq("tuple", [part(arg) for arg in args])], open=True)
    columns = [_lazily(vm, arg, node, whole=len(args) == 1) for arg in args]
    known = all(whole for _, whole in columns)
    exact = [len(items) for items, whole in columns if items is not None and whole]
    seen = [len(items) for items, _ in columns if items is not None]
    rows = min(exact) if exact else max(seen, default=2)
    table = [
        [
            items[i] if items is not None and i < len(items) else part(arg)
            for (items, _), arg in zip(columns, args, strict=True)
        ]
        for i in range(rows)
    ]
    pairs: list[Value] = [Seq("tuple", row, open=more) for row in table]
    return Seq("generator", pairs, open=not known or more, some=some_of(*args))


def _filter(vm: Interpreter, args: Args, node: ast.Call) -> Value:
    """What passes, where it is known of each item whether it does."""
    if isinstance(args[1], Weights):
        return args[1] if _asks_what_requires_grad(args[0]) else part(args[1])
    items, known = elements(vm, args[1], node) if isinstance(args[1], Seq) else (None, False)
    if items is None or not known or len(items) > MANY:
        return Seq("generator", [part(args[1])], open=True)
    told = items if args[0] is NONE else [vm.call(args[0], [item], {}, node) for item in items]
    if not all(isinstance(one, Const) for one in told):
        return Seq("generator", [part(args[1])], open=True)
    passed = [item for item, one in zip(items, told, strict=True) if isinstance(one, Const) and one.value]
    return Seq("generator", passed, open=False)


def _asks_what_requires_grad(test: Value) -> bool:
    body = test.code.node.body if isinstance(test, Function) else None
    return isinstance(body, ast.Attribute) and body.attr == "requires_grad"


def _map(vm: Interpreter, args: Args, node: ast.Call) -> Value:
    if node is vm.running.kept:
        return asked_for_later(vm.strangers, *args)
    items, known = elements(vm, args[1], node)
    called = [vm.call(args[0], [item], {}, node) for item in (items or [part(args[1])])]
    return Seq("generator", called, open=not known, some=some_of(args[1]))


def _next(vm: Interpreter, args: Args, node: ast.Call) -> Value:
    if isinstance(args[0], Seq):
        return _taken_next(vm.trail, args[0])
    for held in args[0].holds if isinstance(args[0], Unknown) else ():
        escape(vm.strangers, held)  # a generator that isn't followed goes on
    items, _ = elements(vm, args[0], node)
    if isinstance(args[0], Weights) and args[0].leaves:
        return (
            args[0].leaves[0]
            if len(args[0].leaves) == 1
            else Unknown(Why(What.COMPUTED, "a parameter"), (args[0],))
        )
    return items[0] if items else part(args[0])


def _iter(vm: Interpreter, args: Args, node: ast.Call) -> Value:
    one = args[0]
    return (
        Seq("generator", list(one.items), one.open, some=one.some)
        if isinstance(one, Seq) and one.kind != "generator"
        else one
    )


def _taken_next(trail: Trail, source: Seq) -> Value:
    """The next item is taken out of what is gone through."""
    items = source.items
    if source.open or not items:
        return unknown_of(Why(What.ELEMENT, "the next item"), *items)
    trail.set(source, "items", items[1:])
    return items[0]


ITERATING: dict[str, Callable[[Interpreter, Args, ast.Call], Value]] = {
    "enumerate": _enumerate,
    "zip": _zip,
    "filter": _filter,
    "iter": _iter,
    "map": _map,
    "next": _next,
}
LEAST = {"enumerate": 1, "zip": 0, "filter": 2, "iter": 1, "map": 2, "next": 1}
"""How many arguments each of them takes at least."""


def _lazily(
    vm: Interpreter, value: Value, node: ast.AST, whole: bool = True
) -> tuple[list[Value] | None, bool]:
    """The elements of something looped over, long ranges cut to the turns that a loop runs."""
    if isinstance(value, Range) and len(value.range) > 4:
        return [Const(i) for i in value.range[:2]], False
    found = elements(vm, value, node)
    gone_through(vm.trail, value, whole)
    return found


def _is_generator(value: Value) -> bool:
    return isinstance(value, Seq) and value.kind == "generator"


def _pair(one: Value, other: Value) -> Value:
    return Seq("tuple", [one, other])
