"""A place that may be at fault, with what of the message agrees with it and what one would have to assume."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeAlias

from gradfix.defects import Span
from gradfix.rule import Finding
from gradfix.source import placed_in
from gradfix.why.code import (
    COMPOUND,
    Definition,
    Scope,
    called,
    covers,
    scope_at,
    scopes,
    span_of,
    statement_at,
    statements,
)
from gradfix.why.flow import MOST_ALIKE, Flow, Step
from gradfix.why.frames import Frame
from gradfix.why.project import Project, Spot
from gradfix.why.said import Said

Sure: TypeAlias = Literal["shown", "likely", "possible"]
"""Shown: the tape or torch itself says so of this line. Likely: it agrees by far better than all others."""
BACKWARDS = ("backward", "manual_backward", "grad", "backward_", "scale_loss")
OF_MODULES = frozenset({"train", "eval", "forward", "cuda", "to", "apply"})
ROOTS = ("training_step", "compute_loss", "shared_step", "_step", "closure")
"""Functions of which a framework backpropagates what they return."""
MOST_SUPPOSED = 40


@dataclass(frozen=True, slots=True)
class Agreement:
    """Something that the message or the trace says and that fits a place."""

    points: int
    says: str


@dataclass(frozen=True, slots=True)
class Suspect:
    """A place that would explain the message."""

    path: str
    span: Span
    """Columns in characters."""
    says: str
    agrees: tuple[Agreement, ...] = ()
    assumes: tuple[str, ...] = ()
    advice: str = ""
    finding: Finding | None = None
    raised: bool = False
    """Whether torch itself raised at it, and the message means the line that raised."""
    code: str = ""
    """The line as the trace quotes it, where the file isn't at hand."""

    told: bool = True
    """Whether the paste says enough for the text alone to make it likely: a frame, or an operation."""

    @property
    def points(self) -> int:
        """How well it agrees, less what it takes for granted."""
        return sum(each.points for each in self.agrees) - len(self.assumes)

    def joined(self, other: Suspect) -> Suspect:
        """One place that was found in two ways: the tape's words count, both ways' agreements do."""
        first, second = (self, other) if self.finding or not other.finding else (other, self)
        agrees = tuple({each.says: each for each in (*second.agrees, *first.agrees)}.values())
        assumes = first.assumes if first.finding else second.assumes and first.assumes
        return replace(
            first,
            agrees=agrees,
            assumes=assumes,
            advice=first.advice or second.advice,
            raised=first.raised or second.raised,
        )


@dataclass(frozen=True)
class Case:
    """All that is known of a failure."""

    said: Said
    project: Project
    flow: Flow
    spots: tuple[Spot, ...]
    """The frames in the project's files, from the outermost in."""
    forward: tuple[Spot, ...]
    """The same of anomaly mode's second traceback."""
    supposed: bool = False
    """Whether the frames are supposed: the paste names none, and this backward may be the one."""

    @property
    def raised(self) -> Spot | None:
        """The innermost line of the project on the way to what was raised."""
        return self.spots[-1] if self.spots else None

    def tree(self, path: str) -> ast.Module:
        """A file's `ast`."""
        return self.flow.sources[path].tree

    def scope(self, spot: Spot) -> Scope:
        """The function that a line is in."""
        return scope_at(self.tree(spot.path), spot.line)

    def unrecorded(self, scope: Scope, statement: ast.stmt) -> bool:
        """Whether a statement stands under no_grad."""
        withs = [each for each in statements(scope) if isinstance(each, ast.With)]
        around = [each for each in withs if covers(each, statement.lineno)]
        words = [ast.unparse(item.context_expr) for each in around for item in each.items]
        words += [ast.unparse(each) for each in getattr(scope, "decorator_list", ())]
        return any("no_grad" in word or "inference_mode" in word for word in words)

    def statement(self, spot: Spot) -> ast.stmt | None:
        """The statement that a line is in."""
        return statement_at(self.scope(spot), spot.line)

    def line(self, path: str, number: int) -> str:
        """A line as a sentence names it: in a notebook by its cell."""
        cell, line = placed_in(self.project.cells.get(path, ()), number)
        return f"line {line}" if cell is None else f"line {line} of cell {cell}"

    def place(self, path: str, node: ast.stmt | ast.expr) -> Span:
        """Where a node stands, with columns in characters."""
        return self.flow.sources[path].places.in_characters(span_of(node))

    def text(self, path: str, node: ast.stmt | ast.expr) -> str:
        """The first line of a node's text."""
        return " ".join(self.flow.sources[path].places.text(span_of(node)).partition("\n")[0].split())

    @property
    def reached(self) -> bool:
        """Whether the line that raised is among the files: not only the way to it."""
        own = [frame for frame in self.said.trace.frames if not frame.foreign]
        found = {spot.frame for spot in self.spots}
        return not own or own[-1] in found or any(frame in found for frame in self.said.trace.frames[-1:])

    @property
    def stepping(self) -> frozenset[str]:
        """The functions of the project that step an optimizer themselves."""
        return self.flow.doing("step", "optimizer_step")

    @property
    def walking(self) -> frozenset[str]:
        """The functions of the project that run backward themselves."""
        return self.flow.doing("backward", "manual_backward")

    @cached_property
    def each(self) -> list[Case]:
        """The failure; of a bare message, once for each backward that it may have been raised by."""
        if self.spots:
            return [self]
        chains = [chain for path in self.flow.sources for chain in self._chains(path)]
        return [replace(self, spots=chain, supposed=True) for chain in chains[:MOST_SUPPOSED]]

    def _chains(self, path: str) -> Iterator[tuple[Spot, ...]]:
        """The backwards of a file, each behind the calls that may have led to it."""
        for scope in scopes(self.tree(path)):
            for statement in statements(scope):
                if not isinstance(statement, COMPOUND) and any(map(is_backward, ast.walk(statement))):
                    inner = _supposed(path, statement)
                    callers = self._callers(getattr(scope, "name", ""))
                    yield from ((caller, inner) for caller in callers)
                    if not callers:
                        yield (inner,)

    def _callers(self, name: str) -> list[Spot]:
        """Where a function of the project is called, by its name; nowhere, if too many have that name."""
        if not name or name in OF_MODULES or len(self.flow.named.get(name, ())) > MOST_ALIKE:
            return []
        return [_supposed(path, statement) for path, statement in self.flow.calling.get(name, ())]

    def walks(self, statement: ast.stmt) -> bool:
        """Whether a statement runs backward, or calls what does."""
        nodes = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
        return any(is_backward(node) or _runs(node, self.walking) for node in nodes)

    def steps(self, call: ast.Call) -> bool:
        """Whether a call runs a function of the project that steps an optimizer."""
        return _runs(call, self.stepping)

    @cached_property
    def backward(self) -> Spot | None:
        """The innermost line that runs backward."""
        for spot in reversed(self.spots):
            statement = self.statement(spot)
            if statement is not None and any(map(is_backward, ast.walk(statement))):
                return spot
        return next((spot for spot in reversed(self.spots) if self._walks_at(spot)), None)

    def _walks_at(self, spot: Spot) -> bool:
        statement = self.statement(spot)
        return statement is not None and self.walks(statement)

    @cached_property
    def way(self) -> list[Step]:
        """What the value that failed was computed from, the nearest first."""
        if self.supposed or not self.spots:
            return self._supposed_way()
        spot = self.backward
        if spot is not None and (statement := self.statement(spot)) is not None:
            return self.flow.back(spot.path, self.scope(spot), statement)
        if roots := self._roots():
            return self.flow.of_functions(roots)
        spot = self.raised
        statement = self.statement(spot) if spot else None
        return self.flow.back(spot.path, self.scope(spot), statement) if spot and statement else []

    def _roots(self) -> list[tuple[str, Definition]]:
        return [each for name in ROOTS for each in self.flow.named.get(name, ())]

    def _supposed_way(self) -> list[Step]:
        """The same from a backward and the calls that lead to it; without frames, from every one."""
        if not self.spots:
            ways = [self.flow.of_functions(self._roots()), *(each.way for each in self.each)]
        else:
            told = [(spot, self.statement(spot)) for spot in reversed(self.spots)]
            ways = [self.flow.back(one.path, self.scope(one), each) for one, each in told if each]
        places: dict[tuple[str, int], Step] = {}
        for step in (step for way in ways for step in way):
            places.setdefault((step.path, id(step.statement)), step)
        return list(places.values())


def _supposed(path: str, statement: ast.stmt) -> Spot:
    return Spot(Frame(path, statement.lineno), path, statement.lineno)


def _runs(call: ast.Call, functions: frozenset[str]) -> bool:
    """Whether a call runs one of these functions, and no method that every module has."""
    name = called(call)
    return name in functions and (isinstance(call.func, ast.Name) or name not in OF_MODULES)


def is_backward(node: ast.AST) -> bool:
    """Whether a call runs backward."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute | ast.Name):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
    if name == "grad":
        return isinstance(node.func, ast.Name) or "autograd" in ast.unparse(node.func)
    return name in BACKWARDS


def merged(suspects: Iterable[Suspect], files: Iterable[str], failed: Spot | None = None) -> list[Suspect]:
    """Each place once, the one that agrees best first, then what is nearest to the line that failed."""
    near = {path: number for number, path in enumerate(files)}
    found: dict[tuple[str, int], Suspect] = {}
    for suspect in suspects:
        key = (suspect.path, suspect.span.line)
        found[key] = found[key].joined(suspect) if key in found else suspect

    def rank(one: Suspect) -> tuple[int, int, int, int, Span]:
        away = abs(failed.line - one.span.line) if failed is not None and failed.path == one.path else 0
        return -one.points, len(one.assumes), near.get(one.path, len(near)), away, one.span

    return sorted(found.values(), key=rank)
