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
    from gradfix.tape.domain.definitions import Scope
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
    stack, seen = [function], set[int]()
    while stack and len(seen) < MANY:
        value = stack.pop()
        if isinstance(value, (Bound, Partial)):
            value = value.function
        if not isinstance(value, Function) or id(value) in seen:
            continue
        seen.add(id(value))
        for owner in map(_target, all_in(value.code.node)):
            held = _held(value, owner)
            if isinstance(held, (Seq, Map)):
                yield held
        for scope in _scopes(value):
            stack.extend(strangers.names.these(scope, names_read(strangers.program, value.code.node)))


def _target(node: ast.AST) -> ast.expr | None:
    """What a node puts something into, or takes it out of."""
    match node:
        case ast.Subscript(owner, _, ast.Store() | ast.Del()):
            return owner
        case ast.Call(ast.Attribute(owner, name)) if name in FILLING:
            return owner
    return None


def _held(function: Function, owner: ast.expr | None) -> Value | None:
    """What is named so around a function."""
    match owner:
        case ast.Name(name):
            return next((scope.names[name] for scope in _scopes(function) if name in scope.names), None)
        case ast.Attribute(ast.Name() as inner, name):
            held = _held(function, inner)
            return held.attrs.get(name) if isinstance(held, Instance) else None
    return None


def _scopes(function: Function) -> Iterator[Scope]:
    scope: Scope | None = function.scope
    while scope is not None:
        yield scope
        scope = scope.outer if scope.outer is not None or scope is scope.globals else scope.globals
