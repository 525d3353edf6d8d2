"""Leaving early: break, continue and return take the state along, and it is joined in where they lead to.

What stands behind a jump runs on the other paths only, and so does what it changes. So a turn of a loop, and
a function, that can be left in one arm of a branch is journalled as a whole: each who leaves takes a copy of
what has been written since, and at the end each cell holds what it held for those who left and who stayed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from gradfix.tape.domain.paths import ALWAYS

if TYPE_CHECKING:
    from gradfix.tape.domain.definitions import Scope
    from gradfix.tape.domain.paths import Path
    from gradfix.tape.domain.trail import Changes
    from gradfix.tape.interpreter.grad_switches import Switches
    from gradfix.tape.interpreter.interpreter import Interpreter
    from gradfix.tape.machine.machine import Machine

ALL = 1 << 62
"""As the birth of a branch: whatever is written in it is noted, also of what was born in it."""
JUMPS: dict[type[ast.AST], str] = {ast.Break: "break", ast.Continue: "continue", ast.Return: "return"}
BLOCKS = (ast.With, ast.AsyncWith, ast.Try, ast.Match, getattr(ast, "TryStar", ast.Try))
PARTS = ("body", "handlers", "orelse", "finalbody", "cases")
MODES = ("grad", "mode", "inference", "mode_in_doubt")


class Exits:
    """Where a turn of a loop, a loop or a function is left: how, on which path, in which state."""

    __slots__ = ("depth", "left", "modes", "path")

    def __init__(self, depth: int, path: Path, modes: int) -> None:
        self.depth = depth
        self.path = path
        self.modes = modes
        self.left: list[tuple[str, Path, Changes]] = []


Few: TypeAlias = Literal["", "counted", "known"]


class Loop:
    """A loop that is running: the ways out of its present turn, and out of the whole."""

    __slots__ = ("began", "few", "inner", "path", "turn", "whole")

    def __init__(self, whole: Exits | None, few: Few = "") -> None:
        self.whole = whole
        self.few = few
        """Whether it is known to run some turns only, so that what they add up stays small: as many as are
        counted in the text, or as there is something to go through."""
        self.turn: Exits | None = None
        self.path = ALWAYS
        """The path on which the present turn began."""
        self.began = 0
        """When that turn began: what is older outlives it."""
        self.inner = 0
        """How many loops were met inside it, one in the other."""


def arms_of(node: ast.If) -> list[list[ast.stmt]]:
    """The bodies of one `elif` after the other, and what is run where none of the tests holds."""
    bodies = [node.body]
    while len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
        node = node.orelse[0]
        bodies.append(node.body)
    return [*bodies, node.orelse]


def jumps(switches: Switches, node: ast.AST, body: Sequence[ast.stmt]) -> frozenset[str]:
    """How a body can be left in one arm of a branch, by what kind of jump."""
    known = switches.program.jumps.get(id(node))
    if known is None:
        known = switches.program.jumps[id(node)] = frozenset(_nested(switches, body, switches.sets_mode()))
    return known


def _nested(switches: Switches, statements: Iterable[ast.AST], inside: bool) -> set[str]:
    """The jumps inside a branch, or behind one that parts the ways."""
    found: set[str] = set()
    for statement in statements:
        inside = inside or (isinstance(statement, ast.If) and switches.switches(statement))
        if type(statement) in JUMPS:
            found |= {JUMPS[type(statement)]} if inside else set()
        elif isinstance(statement, (ast.For, ast.While, ast.AsyncFor)):
            found |= _nested(switches, statement.body, True) & {"return"}
            found |= _nested(switches, statement.orelse, True)
        elif isinstance(statement, ast.If):
            found = found.union(*(_nested(switches, body, True) for body in arms_of(statement)))
        elif isinstance(statement, BLOCKS):
            for part in PARTS:
                found |= _nested(switches, getattr(statement, part, ()), True)
        elif isinstance(statement, (ast.ExceptHandler, ast.match_case)):
            found |= _nested(switches, statement.body, True)
    return found


def enter(vm: Interpreter) -> Exits:
    """Begin what can be left early."""
    exits = Exits(len(vm.trail.frames), vm.here.path, len(vm.running.modes))
    vm.trail.open(ALL)
    return exits


def leave(vm: Interpreter, how: str) -> str:
    """Jump: out of an arm the state goes along, else it is what the end is reached with."""
    loops, exits = vm.names.frame.loops, vm.names.frame.exits
    inner = next((way for loop in reversed(loops) if (way := loop.turn or loop.whole)), exits)
    target = exits
    if how != "return" and not loops:
        return how  # a jump without a loop, which Python refuses to compile: the function ends there
    if how != "return":
        target = loops[-1].turn if how == "continue" else loops[-1].whole or loops[-1].turn
    if target is None or inner is None:
        return how
    if len(vm.trail.frames) == inner.depth + 1 and (how != "return" or inner is exits):
        return how
    take(vm, target, how)
    return "parted"


def take(vm: Interpreter, exits: Exits, how: str) -> None:
    """Note the present state as one in which somebody left."""
    changes = vm.trail.since(exits.depth)
    if len(vm.running.modes) > exits.modes:
        for name, value in zip(MODES, vm.running.modes[exits.modes], strict=True):
            if (change := changes.get((id(vm.grad_mode), name))) is not None:
                change.new = value
    exits.left.append((how, vm.here.path, changes))


def rejoin(machine: Machine, exits: Exits, stays: bool, skip: Scope | None = None) -> bool:
    """Join those who left with those who stayed, on the path that they share; False where there is nobody."""
    if not exits.left:
        if stays:
            machine.trail.close()
        else:
            machine.trail.undo()
        return stays
    live = machine.trail.undo()
    arms = [(path, changes) for _, path, changes in exits.left]
    if stays:
        arms.append((machine.here.path, live))
    if skip is not None:
        arms = [(path, _without(changes, skip)) for path, changes in arms]
    alone = len(arms) == 1
    machine.trail.merge([(ALWAYS if alone else path - exits.path, changes) for path, changes in arms])
    machine.here.go_on(frozenset.intersection(*(path for path, _ in arms)))
    return True


def _without(changes: Changes, scope: Any) -> Changes:
    return {mark: change for mark, change in changes.items() if change.owner is not scope}
