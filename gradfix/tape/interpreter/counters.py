"""Tests that count: `(i + 1) % n == 0` holds in no two turns next to each other, unless n is one."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gradfix.tape.domain.values import Const, Unknown
from gradfix.tape.domain.why import INDEX, RANGE
from gradfix.tape.machine.tested import Count

if TYPE_CHECKING:
    from collections.abc import Hashable

    from gradfix.tape.domain.paths import Key
    from gradfix.tape.domain.values import Value
    from gradfix.tape.machine.tested import Tested


def note_count(tested: Tested, key: Key, node: ast.Compare, value: Value) -> None:
    """Remember which turn a test singles out, where it tests what is left of the number of a turn."""
    remainder = node.left
    if not isinstance(remainder, ast.BinOp) or not isinstance(remainder.op, ast.Mod) or len(node.ops) > 1:
        return
    if not isinstance(node.ops[0], ast.Eq) or not isinstance(value, Unknown) or len(value.holds) != 2:
        return
    counter, number = value.holds
    at = _at(remainder.left, counter)
    if at is not None and not (isinstance(number, Const) and number.value in (0, 1, -1)):
        known = isinstance(number, Const)
        tested.counts[key] = Count(node, number.value if isinstance(number, Const) else id(number), known,
                                   at, tuple(tested.turns[:-1]))  # fmt: skip
        tested.keep_alive.append(counter)


def _at(text: ast.expr, counter: Value) -> Hashable | None:
    """Which turn it is: a number, or what an index is that isn't known; None where something else counts."""
    if isinstance(text, ast.BinOp) and isinstance(text.op, (ast.Add, ast.Sub)):
        if isinstance(counter, Const):
            return _at(ast.Name(""), counter)
        parts = counter.holds if isinstance(counter, Unknown) else ()
        indices = [one for one in parts if not isinstance(one, Const)]
        return _at(ast.Name(""), indices[0]) if len(indices) == 1 and len(parts) == 2 else None
    if not isinstance(text, ast.Name):
        return None
    if isinstance(counter, Const):
        return counter.value if type(counter.value) is int else None
    if isinstance(counter, Unknown) and (counter.why is INDEX or counter.why.of is RANGE):
        return "index", id(counter)
    return None
