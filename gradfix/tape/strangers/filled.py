"""Lists and dicts that a function fills which others have: nobody knows when, nor whether."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradfix.tape.domain.definitions import Bound, Function, Instance, Partial
from gradfix.tape.domain.values import Map, Seq
from gradfix.tape.interpreter.aliases import names_read
from gradfix.tape.interpreter.inside import all_in

if TYPE_CHECKING:
    from gradfix.tape.domain.values import Value
    from gradfix.tape.interpreter.state import Strangers

MANY = 64
"""How many functions are looked through."""
FILLING = frozenset({
    "add", "append", "appendleft", "clear", "extend", "insert", "pop", "popitem", "remove", "setdefault",
    "update",
})  # fmt: skip


def stirred(strangers: Strangers, function: Value) -> None:
    """What a function fills may hold anything from here on, and a test of it comes out as nobody knows."""
    for value in _filled(strangers, function):
        if not value.open:
            strangers.trail.set(value, "open", True)
        strangers.reports.findings.stirred[id(value)] = value


def _filled(strangers: Strangers, function: Value) -> Iterator[Seq | Map]:
    """The lists and dicts that a function fills, or one that it names."""
    for one, _ in functions_in(strangers, function):
        for owner in map(_target, all_in(one.code.node)):
            filled = held(one, owner)
            if isinstance(filled, (Seq, Map)):
                yield filled


def functions_in(strangers: Strangers, value: Value) -> Iterator[tuple[Function, Value | None]]:
    """A function and those that it names, each with the object that it is a method of."""
    stack: list[tuple[Value, Value | None]] = [(value, None)]
    seen = set[int]()
    while stack and len(seen) < MANY:
        one, receiver = stack.pop()
        if isinstance(one, (Bound, Partial)):
            one, receiver = one.function, one.receiver if isinstance(one, Bound) else None
        if not isinstance(one, Function) or id(one) in seen:
            continue
        seen.add(id(one))
        yield one, receiver
        names = names_read(strangers.program, one.code.node)
        stack.extend(
            (held, None) for scope in one.scope.outward() for held in strangers.names.these(scope, names)
        )


def _target(node: ast.AST) -> ast.expr | None:
    """What a node puts something into, or takes it out of."""
    match node:
        case ast.Subscript(owner, _, ast.Store() | ast.Del()):
            return owner
        case ast.Call(ast.Attribute(owner, name)) if name in FILLING:
            return owner
    return None


def held(function: Function, owner: ast.expr | None) -> Value | None:
    """What is named so around a function."""
    match owner:
        case ast.Name(name):
            return next(
                (scope.names[name] for scope in function.scope.outward() if name in scope.names), None
            )
        case ast.Attribute(ast.Name() as inner, name):
            whole = held(function, inner)
            return whole.attrs.get(name) if isinstance(whole, Instance) else None
    return None
