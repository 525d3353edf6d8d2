"""Where something stands: in the function that runs, on a module that may have been moved since."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradfix.tape.domain.definitions import Instance
from gradfix.tape.interpreter.aliases import memory_of, shows

if TYPE_CHECKING:
    from gradfix.tape.domain.graph import Tensor
    from gradfix.tape.domain.values import Place
    from gradfix.tape.interpreter.names import Names

DEEP = 3
"""How deep modules are looked into."""


def in_this_function(names: Names, place: Place) -> bool:
    """Whether a place stands in the text of the function that runs."""
    node = names.frame.code.node if names.frame.code is not None else None
    if node is None:
        return True
    if not isinstance(place, ast.AST) or not names.here.at_home:
        return False
    first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", None) or 0
    return first <= getattr(place, "lineno", 0) <= last


def on_a_module(names: Names, tensor: Tensor) -> bool:
    """Whether a tensor hangs on a module of the program: `.to()` and its kin give it other memory."""
    memory = memory_of(tensor)
    held = (value for one in _modules(names) for value in one.attrs.values())
    return any(shows(value, memory) for value in held)


def _modules(names: Names) -> Iterator[Instance]:
    """The modules that the running functions name, and those in them."""
    seen: set[int] = set()
    frame = names.frame
    while frame is not None:
        named = [value for scope in frame.scope.outward() for value in scope.names.values()]
        stack = [(value, 0) for value in (frame.receiver, *named)]
        while stack:
            value, depth = stack.pop()
            if not isinstance(value, Instance) or id(value) in seen:
                continue
            seen.add(id(value))
            if value.module:
                yield value
            if depth < DEEP:
                stack.extend((part, depth + 1) for part in value.attrs.values())
        if frame.caller is None:
            return
        frame = frame.caller
