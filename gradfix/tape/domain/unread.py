"""What of another file of the project nobody has asked for yet: its statements, by the names they bind."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

DEFINING = (
    ast.Import,
    ast.ImportFrom,
    ast.FunctionDef,
    ast.ClassDef,
    ast.Assign,
    ast.AnnAssign,
    ast.If,
    ast.Try,
)
"""Statements of another file that define what it exports; the rest is its own business."""
FILLING = (
    rb"(?<![\w.])%s\s*"
    rb"(?:\.(?:append|add|extend|insert|update|setdefault|pop|remove|clear)\(|\[.*\]\s*=(?!=))"
)
"""How a container is filled or emptied that has a name."""
FILES = 256
"""Of how many files it is kept what their statements bind."""
NAMES = 1 << 10
"""Of how many names it is kept whether their files say that something is put into them."""


class Stated:
    """What the statements of a file bind, as its text says."""

    __slots__ = ("binding", "bound", "in_order", "stars", "statements")

    def __init__(self, tree: ast.Module) -> None:
        self.statements: list[ast.stmt] = []
        self.bound: list[tuple[str, ...]] = []
        """The names that each of them binds."""
        self.stars: list[tuple[str, int]] = []
        """The modules of which everything is imported, by name and level."""
        self.binding: dict[str, list[int]] = {}
        """By name, the statements that bind it or put something into what it is bound to."""
        for statement in tree.body:
            if isinstance(statement, ast.ImportFrom) and statement.names[0].name == "*":
                self.stars.append((statement.module or "", statement.level))
            elif isinstance(statement, DEFINING):
                names = tuple(dict.fromkeys(bound(statement)))
                for name in names:
                    self.binding.setdefault(name, []).append(len(self.statements))
                self.statements.append(statement)
                self.bound.append(names)
        self.in_order = any(self._rebound(name, places) for name, places in self.binding.items())
        """Whether what a name is bound to depends on when it is read."""

    def _rebound(self, name: str, places: Sequence[int]) -> bool:
        """Whether a name is read between two statements that bind it."""
        if len(places) < 2:
            return False
        between = self.statements[places[0] + 1 : places[-1] + 1]
        return any(name in _read(statement) for statement in between)


@lru_cache(FILES)
def stated(tree: ast.Module) -> Stated:
    """What the statements of a file bind, looked up once."""
    return Stated(tree)


class Unread:
    """A file of which only that is executed which somebody asks for."""

    __slots__ = ("done", "missing", "path", "stars", "stated")

    def __init__(self, path: str, stated: Stated) -> None:
        self.path = path
        self.stated = stated
        self.done: set[int] = set()
        """The statements that were executed."""
        self.stars = [*stated.stars]
        """The modules of which everything was imported, also under conditions that were met."""
        self.missing: set[str] = set()
        """Names that aren't bound here."""

    def due(self, name: str) -> Iterator[tuple[ast.stmt, tuple[str, ...]]]:
        """The statements to execute before a name is read, each when it is its turn, and what they bind."""
        places: Iterable[int] = self.stated.binding.get(name, ())
        if self.stated.in_order:
            places = range(len(self.stated.statements))
        for place in places:
            if place not in self.done:
                self.done.add(place)
                yield self.stated.statements[place], self.stated.bound[place]


def bound(statement: ast.AST) -> Iterator[str]:
    """The names that a statement binds, or puts something into."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield statement.name
    elif isinstance(statement, (ast.Import, ast.ImportFrom)):
        for alias in statement.names:
            yield alias.asname or alias.name.partition(".")[0]
    else:
        if isinstance(statement, ast.Expr):
            yield from _read(statement)  # a call may change what it is given
        for part in ast.iter_child_nodes(statement):
            if isinstance(part, (ast.stmt, ast.ExceptHandler, ast.expr)):
                yield from bound(part) if not isinstance(part, ast.expr) else _stored(part)


def _stored(expression: ast.expr) -> Iterator[str]:
    for part in ast.walk(expression):
        if isinstance(part, (ast.Name, ast.Attribute, ast.Subscript)) and isinstance(part.ctx, ast.Store):
            root: ast.expr = part
            while isinstance(root, (ast.Attribute, ast.Subscript)):
                root = root.value
            if isinstance(root, ast.Name):
                yield root.id


def _read(statement: ast.AST) -> set[str]:
    """The names that a statement reads when it runs, not when what it defines is called."""
    found: set[str] = set()
    stack: list[ast.AST] = [statement]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found.add(node.id)
        inside = ast.iter_child_nodes(node)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            inside = iter([*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)])
        elif isinstance(node, ast.Lambda):
            inside = iter(())
        stack.extend(inside)
    return found


@lru_cache(NAMES)
def filled_later(content: bytes, name: str) -> bool:
    """Whether a file says anywhere that something is put into what a name is bound to."""
    text = name.encode()
    if content.count(text) < 2:
        return False
    return re.search(FILLING % re.escape(text), content) is not None
