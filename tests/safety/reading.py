"""Which names each line of a program reads and writes, to know which value nobody reads any more."""

from __future__ import annotations

import ast
import types
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

SHAPES = frozenset({"shape", "size", "ndim", "dim", "numel", "device", "dtype", "new_zeros", "new_ones"})
"""What a tensor is asked that its values don't answer."""


@dataclass
class Touched:
    """The names that a line's statement gets before it runs, reads, and writes when it has run."""

    entered: set[str] = field(default_factory=set)
    read: set[str] = field(default_factory=set)
    written: set[str] = field(default_factory=set)


@dataclass
class Reads:
    """When each variable was read and written."""

    events: dict[str, list[tuple[int, bool]]] = field(default_factory=dict)
    """By function and name: the clock, and whether it was read."""
    shared: dict[str, int] = field(default_factory=dict)
    """When an inner function last read a name of an outer one."""

    def note(self, touched: Touched, code: types.CodeType, clock: int) -> None:
        for names, read in ((touched.entered, False), (touched.read, True), (touched.written, False)):
            for name in names:
                if name in code.co_freevars:
                    self.shared[name] = clock
                else:
                    self.events.setdefault(variable(code, name), []).append((clock, read))

    def later(self, name: str, clock: int) -> bool:
        """Whether the value that a variable holds is read after that."""
        if self.shared.get(name.rpartition(".")[2], 0) > clock:
            return True
        return next((read for at, read in self.events.get(name, ()) if at > clock), False)


def of_gradients(source: str) -> frozenset[int]:
    """The lines that get at some `.grad`."""
    found = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute))
    return frozenset(node.lineno for node in found if node.attr == "grad")


def variable(code: types.CodeType, name: str) -> str:
    """A name as holding.around says it."""
    return f"{code.co_name}.{name}" if name in (*code.co_varnames, *code.co_cellvars) else name


def touching(source: str) -> dict[int, Touched]:
    """What each line's statement reads, whole or in part, or writes in place, and what it assigns."""
    found: dict[int, Touched] = {}
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.stmt):
            continue
        here = found.setdefault(node.lineno, Touched())
        here.read |= read(node)
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            here.written |= stored(node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(node, ast.For) and not isinstance(node.body[0], (ast.For, ast.While)):
            # the line of the loop itself runs once more, at its end, and gives them nothing
            found.setdefault(node.body[0].lineno, Touched()).entered |= stored([node.target])
    return found


def read(node: ast.stmt) -> set[str]:
    heads = [node] if not hasattr(node, "body") else list(header(node))
    inner = [each for head in heads for each in ast.walk(head)]
    asked = {id(each.value) for each in inner if isinstance(each, ast.Attribute) and each.attr in SHAPES}
    loads = {
        each.id
        for each in inner
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load) and id(each) not in asked
    }
    augmented = isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)
    return loads | ({node.target.id} if augmented else set())  # type: ignore[attr-defined]


def stored(targets: Iterable[ast.expr]) -> set[str]:
    """The names themselves that are assigned."""
    whole: list[Any] = list(targets)
    found = set()
    while whole:
        one = whole.pop()
        if isinstance(one, (ast.Tuple, ast.List)):
            whole += one.elts
        elif isinstance(one, ast.Name):
            found.add(one.id)
    return found


def header(node: ast.stmt) -> Iterator[ast.AST]:
    """What a compound statement evaluates itself."""
    for name, value in ast.iter_fields(node):
        if name not in ("body", "orelse", "finalbody", "handlers"):
            yield from (
                each for each in (value if isinstance(value, list) else [value]) if isinstance(each, ast.AST)
            )
