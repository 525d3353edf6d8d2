"""What a value was computed from, read backwards through names, attributes and calls of the project.

This is a reading, not the tape: names are followed by their text, and whatever might define one counts. It
says where something that surely went wrong could have gone wrong.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from gradfix.source import Source
from gradfix.why.code import (
    COMPOUND,
    Definition,
    Scope,
    bound,
    called,
    class_at,
    classes,
    dotted,
    functions,
    holder,
    read,
    scopes,
    span_of,
    statements,
)

DEEPEST = 5
MOST_STEPS = 500
MOST_ALIKE = 3
"""More functions of one name than these are too many to mean one of them."""
FORWARD = ("forward", "__call__")


@dataclass(frozen=True, slots=True)
class Step:
    """A statement that a value hangs on."""

    path: str
    statement: ast.stmt
    scope: Scope
    depth: int
    """How many calls lie between it and the start."""
    distance: int
    """How many statements do."""


@dataclass
class Flow:
    """The files of a case with an index of what is defined in them."""

    sources: dict[str, Source]
    named: dict[str, list[tuple[str, Definition]]] = field(default_factory=lambda: defaultdict(list))
    forwards: dict[str, list[tuple[str, Definition]]] = field(default_factory=lambda: defaultdict(list))
    """By the name of their class."""
    built: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """The classes, by the names and attributes that hold what they make."""
    optimised: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """What an optimizer was given the parameters of, by the name that holds the optimizer."""
    found: dict[tuple[str, ...], frozenset[str]] = field(default_factory=dict)
    tables: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """The classes that a dict of them offers, by its name."""

    def __post_init__(self) -> None:
        for path, source in self.sources.items():
            for function in functions(source.tree):
                self.named[function.name].append((path, function))
            for cls in classes(source.tree):
                own = [each for each in cls.body if isinstance(each, ast.FunctionDef)]
                self.forwards[cls.name] += [(path, each) for each in own if each.name in FORWARD]
        for source in self.sources.values():
            self._tabulate(source.tree)
        for source in self.sources.values():
            self._index(source.tree)

    def doing(self, *names: str) -> frozenset[str]:
        """The functions of the project that call something of one of these names themselves."""
        if names not in self.found:
            self.found[names] = frozenset(
                name
                for name, own in self.named.items()
                if len(own) <= MOST_ALIKE and name not in names
                for _, function in own
                if any(called(node) in names for each in statements(function) for node in ast.walk(each))
            )
        return self.found[names]

    @cached_property
    def calling(self) -> dict[str, list[tuple[str, ast.stmt]]]:
        """The statements that call something, without others in them, by its name."""
        found: dict[str, list[tuple[str, ast.stmt]]] = defaultdict(list)
        for path, source in self.sources.items():
            for scope in scopes(source.tree):
                for each in statements(scope):
                    nodes = () if isinstance(each, COMPOUND) else ast.walk(each)
                    for name in {called(node) for node in nodes if isinstance(node, ast.Call)}:
                        found[name].append((path, each))
        return found

    def _tabulate(self, tree: ast.Module) -> None:
        for node in tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
                offered = {dotted(value).rpartition(".")[2] for value in node.value.values}
                for target in node.targets:
                    self.tables[dotted(target)] |= {name for name in offered if name[:1].isupper()}

    def _index(self, tree: ast.Module) -> None:
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign):
                made = {name for each in ast.walk(node.value) for name in self._made(each)}
                nets = {net for each in ast.walk(node.value) if (net := _owner(each))}
                for target in node.targets:
                    if name := dotted(target).rpartition(".")[2]:
                        self.built[name] |= made
                        self.optimised[name] |= nets

    def _made(self, node: ast.AST) -> set[str]:
        """The classes of which a call may make something."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript):
            return self.tables.get(dotted(node.func.value), set())
        return self._classes(called(node))

    def _classes(self, name: str) -> set[str]:
        """The classes that a call of this name may make: itself, or those that a function of it returns."""
        if name in self.forwards or name[:1].isupper():
            return {name}
        own = self.named.get(name, ()) if name else ()
        returned = (
            each for _, function in own for each in statements(function) if isinstance(each, ast.Return)
        )
        return {cls for each in returned for node in ast.walk(each) if (cls := called(node)) in self.forwards}

    def callees(self, call: ast.Call, path: str, scope: Scope) -> list[tuple[str, Definition]]:
        """The functions of the project that a call may run."""
        name = called(call)
        if not name:
            return []
        if name in self.forwards:
            return []  # making a module computes nothing
        own = [each for each in self.named.get(name, ()) if self._may_be(call, each, path, scope)]
        if own:
            return own if len(own) <= MOST_ALIKE else []
        return [each for cls in sorted(self.built.get(name, ())) for each in self.forwards.get(cls, ())]

    def _may_be(self, call: ast.Call, function: tuple[str, Definition], path: str, scope: Scope) -> bool:
        """Whether a function of the same name can be the one that is called."""
        if not (isinstance(call.func, ast.Attribute) and dotted(call.func.value) == "self"):
            return True
        here = class_at(self.sources[path].tree, getattr(scope, "lineno", 0))
        there = class_at(self.sources[function[0]].tree, function[1].lineno)
        return here is None or there is None or here is there or there.name in map(dotted, here.bases)

    def back(self, path: str, scope: Scope, start: ast.AST) -> list[Step]:
        """The statements that the value of an expression hangs on, the nearest first."""
        walk = _Walk(self)
        walk.reads(path, scope, start, 0, 0)
        while walk.waiting and len(walk.steps) < MOST_STEPS:
            walk.follow(*walk.waiting.pop(0))
        return list(walk.steps.values())

    def of_functions(self, found: Iterable[tuple[str, Definition]]) -> list[Step]:
        """The statements that what these functions return hangs on."""
        walk = _Walk(self)
        for path, function in found:
            walk.returned(path, function, 0, 0)
        while walk.waiting and len(walk.steps) < MOST_STEPS:
            walk.follow(*walk.waiting.pop(0))
        return list(walk.steps.values())


class _Walk:
    """A way back, breadth first."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.steps: dict[tuple[str, int, int], Step] = {}
        self.seen: set[tuple[str, int, str]] = set()
        self.waiting: list[tuple[str, Scope, str, int, int]] = []

    def reads(self, path: str, scope: Scope, node: ast.AST, depth: int, distance: int) -> None:
        """Go on with what an expression reads and calls."""
        for name in sorted(read(node)):
            key = (path, 0 if name.startswith("self.") else id(scope), name)
            if key not in self.seen:
                self.seen.add(key)
                self.waiting.append((path, scope, name, depth, distance))
        if depth >= DEEPEST:
            return
        for call in (each for each in ast.walk(node) if isinstance(each, ast.Call)):
            for other, function in self.flow.callees(call, path, scope):
                self.returned(other, function, depth + 1, distance + 1)

    def returned(self, path: str, function: Definition, depth: int, distance: int) -> None:
        """Go on with what a function returns."""
        if (path, id(function), "") in self.seen:
            return
        self.seen.add((path, id(function), ""))
        for statement in statements(function):
            if isinstance(statement, ast.Return) and statement.value is not None:
                self._add(path, statement, function, depth, distance)

    def follow(self, path: str, scope: Scope, name: str, depth: int, distance: int) -> None:
        """Go on with the statements that make what a name holds."""
        for place in self._scopes(path, scope, name):
            for statement in statements(place):
                if name in bound(statement) or fills(statement, name):
                    self._add(path, statement, place, depth, distance + 1)

    def _scopes(self, path: str, scope: Scope, name: str) -> Iterator[Scope]:
        """Where a name may be bound: for an attribute of `self`, all of its class."""
        tree = self.flow.sources[path].tree
        cls = class_at(tree, getattr(scope, "lineno", 0)) if name.startswith("self.") else None
        if cls is not None:
            yield from (each for each in functions(tree) if class_at(tree, each.lineno) is cls)
        else:
            yield scope
            if not isinstance(scope, ast.Module) and not any(name in bound(s) for s in statements(scope)):
                yield tree

    def _add(self, path: str, statement: ast.stmt, scope: Scope, depth: int, distance: int) -> None:
        at = span_of(statement)
        if (path, at.line, at.column) in self.steps:
            return
        self.steps[path, at.line, at.column] = Step(path, statement, scope, depth, distance)
        value = getattr(statement, "value", None) or getattr(statement, "iter", None)
        if isinstance(statement, ast.With | ast.AsyncWith | ast.If):
            return
        if value is not None:
            self.reads(path, scope, value, depth, distance)


def _owner(node: ast.AST) -> str:
    """Whose parameters an expression asks for: `net` for `self.net.parameters()`."""
    if not isinstance(node, ast.Call) or called(node) not in ("parameters", "named_parameters"):
        return ""
    return dotted(node.func).rpartition(".")[0].rpartition(".")[2]


def fills(statement: ast.stmt, name: str) -> bool:
    """Whether a call puts something into what a name holds: `losses.append(loss)`."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or not call.args:
        return False
    return holder(call.func.value) == name and called(call) in ("append", "extend", "add", "update", "insert")
