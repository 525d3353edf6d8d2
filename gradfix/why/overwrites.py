"""Who may have written over what an operation saved: writes and steps, held against what the message says."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradfix.tape.effects.nodes import ACTIVATIONS, KEEPS_ITS_RESULT, PARTS, VIEWS
from gradfix.why.code import (
    COMPOUND,
    Scope,
    bound,
    called,
    class_at,
    covers,
    dotted,
    holder,
    loops_at,
    names_of_imports,
    read,
    scopes,
    statements,
)
from gradfix.why.project import Spot
from gradfix.why.suspects import Agreement, Case, Suspect
from gradfix.why.writes import (
    Write,
    counts,
    fits,
    made_by,
    modules_in_place,
    switches_in_place,
    words,
    writes,
)

SAME = "assuming that what it writes is the tensor that was saved"
LEAST = 3
"""A write of which less agrees is no suspect."""
LEAST_OF_BARE = 2
"""The same where the paste says so little that little can agree."""
CHAINS = frozenset({"sequential", "modulelist", "moduledict"})
OUTER = (7, 6, 5, 4)
"""What it counts that a write fits the innermost forward line of the project, the one around it ..."""


def overwriting(case: Case) -> Iterator[Suspect]:
    """The writes in place of which something agrees with the message."""
    on_the_way = {(step.path, step.scope): step for step in reversed(case.way)}
    for path, source in case.flow.sources.items():
        for scope in scopes(source.tree):
            yield from _of_scope(case, path, scope, (path, scope) in on_the_way)
        yield from _modules(case, path)


def _of_scope(case: Case, path: str, scope: Scope, on_the_way: bool) -> Iterator[Suspect]:
    """The writes of a function; those to one tensor as one suspect, at the one that agrees best."""
    found: dict[str, list[tuple[int, Write, tuple[Agreement, ...]]]] = {}
    for write in writes(scope):
        if write.name in names_of_imports(case.tree(path)) or getattr(scope, "name", "") == "__init__":
            continue
        agrees = tuple(_agreements(case, path, scope, write, on_the_way))
        points = sum(each.points for each in agrees)
        if points >= (LEAST if case.spots or case.said.operation else LEAST_OF_BARE):
            found.setdefault(write.name, []).append((points, write, agrees))
    for name, every in found.items():
        _, best, agrees = max(every, key=lambda each: (each[0], -each[1].statement.lineno))
        others = [str(write.statement.lineno) for _, write, _ in every if write is not best]
        more = f", and so do lines {', '.join(others)}" if others else ""
        says = f"`{case.text(path, best.node)}` writes `{name}` in place{more}"
        yield Suspect(path, case.place(path, best.node), says, agrees, (SAME,), "make it out of place")


def _agreements(case: Case, path: str, scope: Scope, write: Write, on_the_way: bool) -> Iterator[Agreement]:
    operation = case.said.operation
    line = write.statement.lineno
    yield from _with_forward(case, path, scope, write)
    yield from _with_versions(case, scope, line)
    made = made_by(case.flow, scope, write.name, line)
    if fits(operation, made):
        points = 3 if operation in VIEWS else 5
        yield Agreement(points, f"torch names {operation}, and that is what made `{write.name}`")
    elif operation in ACTIVATIONS and made & CHAINS:
        yield Agreement(1, f"`{write.name}` comes out of a chain of modules, which may end in {operation}")
    if write.form == "item" and operation in PARTS:
        points = 5 if operation == "copyslices" else 2
        yield Agreement(points, f"{operation} is what assigning to a part of a tensor leaves behind")
    if on_the_way:
        yield Agreement(2, "it is on the way to the loss")
    elif case.spots and case.way and write.form == "augmented":
        yield Agreement(-1, "it is not seen on the way to the loss")
    elif _within_module(case, path, scope):
        yield Agreement(1, "it is part of a module")
    yield from _unlike_a_tensor(write)
    if not case.spots:
        yield from _saved_before(case, path, scope, write, made)
    if any(write.name in bound(step.statement) and step.scope is scope for step in case.way):
        yield Agreement(2, f"the loss is computed from `{write.name}`")
    spot = case.raised
    if spot is not None and (path, scope) == (spot.path, case.scope(spot)) and line < spot.line:
        yield Agreement(1, "it stands in the function that failed, before the line that raised")
    if case.unrecorded(scope, write.statement):
        yield Agreement(-2, "nothing is recorded where it stands")


def _unlike_a_tensor(write: Write) -> Iterator[Agreement]:
    """What speaks against a tensor: counters and settings are written in this way."""
    node = write.node
    if not isinstance(node, ast.AugAssign):
        return
    if counts(node):
        yield Agreement(-1, "counters are written in this way")
    if isinstance(node.target, ast.Attribute) and not write.name.startswith("self."):
        yield Agreement(-1, "it writes an attribute of something else")


def _saved_before(case: Case, path: str, scope: Scope, write: Write, made: set[str]) -> Iterator[Agreement]:
    """What may have saved a tensor before it is written: the operation that made it, or one that read it."""
    if not case.said.operation and any(word.startswith(KEEPS_ITS_RESULT) for word in made):
        yield Agreement(2, f"what made `{write.name}` keeps its result for backward")
    before = [each for each in statements(scope) if each.lineno < write.statement.lineno]
    made_at = max((each.lineno for each in before if write.name in bound(each)), default=0)
    for each in before:
        if each.lineno > made_at and not isinstance(each, COMPOUND) and write.name in _given(each):
            yield Agreement(2, f"{case.line(path, each.lineno)} has used it before, and may have saved it")
            return


def _given(statement: ast.stmt) -> set[str]:
    """The names that a statement gives to something that computes."""
    nodes = [node for node in ast.walk(statement) if isinstance(node, ast.Call | ast.BinOp)]
    return {name for node in nodes for name in read(node)}


def _with_forward(case: Case, path: str, scope: Scope, write: Write) -> Iterator[Agreement]:
    """What anomaly mode's forward lines say of a write."""
    for spot, points in zip(reversed(case.forward), OUTER, strict=False):
        if spot.path != path or case.scope(spot) is not scope:
            continue
        statement = case.statement(spot)
        if statement is None or write.name not in bound(statement) | read(statement):
            continue
        after = write.statement.lineno > spot.line or write.statement is statement
        around = any(covers(loop, write.statement.lineno) for loop in loops_at(scope, spot.line))
        if after or around:
            where = "behind" if after else "in the loop of"
            here = case.line(path, spot.line)
            said = f"it stands {where} {here}, whose operation failed, and writes a tensor of it"
            yield Agreement(points if after else points - 2, said)
        return


def _within_module(case: Case, path: str, scope: Scope) -> bool:
    """Whether a function is a method of a class that has a `forward`."""
    cls = class_at(case.tree(path), getattr(scope, "lineno", 0))
    return cls is not None and bool(case.flow.forwards.get(cls.name))


def _with_versions(case: Case, scope: Scope, line: int) -> Iterator[Agreement]:
    """What the versions say of a write: how often it ran, and whether an operation made what it writes."""
    facts = case.said.facts
    if "version" not in facts:
        return
    times = int(facts["version"]) - int(facts["expected"])
    if times > 1 and loops_at(scope, line):
        yield Agreement(2, f"it was written {times} times since it was saved, and this stands in a loop")
    if not case.said.operation or case.said.operation in ("t", "transpose"):
        yield Agreement(-2, "torch says that no operation has made what was written over")


def _modules(case: Case, path: str) -> Iterator[Suspect]:
    """Modules that write over their input."""
    for statement in ast.walk(case.tree(path)):
        if isinstance(statement, ast.Assign) and switches_in_place(statement):
            says = f"`{case.text(path, statement)}` has modules write over their input"
            switched = [Agreement(5, "every module that it meets overwrites what went into it")]
            if case.said.operation in ACTIVATIONS:
                switched.append(Agreement(2, f"torch names {case.said.operation}"))
            place = case.place(path, statement)
            yield Suspect(path, place, says, tuple(switched), (SAME,), "leave inplace off")
    for call in modules_in_place(case.tree(path)):
        agrees = tuple(_of_module(case, path, call))
        least = LEAST if case.spots or case.said.operation else LEAST_OF_BARE
        if sum(each.points for each in agrees) >= least:
            says = f"`{case.text(path, call)}` builds a module that writes over its input"
            yield Suspect(
                path, case.place(path, call), says, agrees, (SAME,), "build it without inplace=True"
            )


def _of_module(case: Case, path: str, call: ast.Call) -> Iterator[Agreement]:
    holders = {
        target.rpartition(".")[2]
        for node in ast.walk(case.tree(path))
        if isinstance(node, ast.Assign) and covers(node, call.lineno)
        for target in map(dotted, node.targets)
        if target
    }
    for spot, points in zip(reversed(case.forward), OUTER, strict=False):
        used = [s for s in statements(case.scope(spot)) if _calls_one(s, holders) and s.lineno >= spot.line]
        if spot.path == path and used and _shares(case, spot, used):
            yield Agreement(
                points - 1,
                f"it runs behind {case.line(path, spot.line)}, whose operation failed, on a tensor of it",
            )
            break
    operation, name = case.said.operation, called(call).lower()
    if operation and operation.startswith(name):
        yield Agreement(3, f"torch names {operation}")
    elif operation and any(fits(operation, made) for made in _inputs(case, path, holders)):
        yield Agreement(4, f"torch names {operation}, and that is what makes the module's input")
    if any(step.path == path for step in case.way):
        yield Agreement(1, "its file is on the way to the loss")
    if not case.spots and not operation:
        yield Agreement(1, "it writes over whatever goes into it")


def _shares(case: Case, spot: Spot, used: list[ast.stmt]) -> bool:
    statement = case.statement(spot)
    names = bound(statement) | read(statement) if statement else set()
    return any(names & {name for name in read(each) if not name.startswith("self.")} for each in used)


def _calls_one(statement: ast.stmt, holders: set[str]) -> bool:
    return any(called(node) in holders for node in ast.walk(statement) if isinstance(node, ast.Call))


def _inputs(case: Case, path: str, holders: set[str]) -> Iterator[set[str]]:
    """Words for what makes the inputs of modules that are held by these names."""
    for scope in scopes(case.tree(path)):
        for statement in statements(scope):
            for call in (node for node in ast.walk(statement) if called(node) in holders):
                if isinstance(call, ast.Call) and call.args:
                    inner = holder(call.args[0])
                    yield words(case.flow, ast.Expr(call.args[0]))
                    yield made_by(case.flow, scope, inner, statement.lineno + 1) if inner else set()
