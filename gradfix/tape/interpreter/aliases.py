"""Other names for the same memory: who would see an in-place write."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from gradfix.tape.domain.definitions import Instance
from gradfix.tape.domain.graph import Tensor, are_apart
from gradfix.tape.domain.values import Alt, External, Foreign, Map, Seq, Unknown
from gradfix.tape.interpreter.inside import all_in

if TYPE_CHECKING:
    from gradfix.tape.domain.graph import Storage
    from gradfix.tape.domain.values import Place, Value
    from gradfix.tape.interpreter.frames import Frame
    from gradfix.tape.interpreter.names import Names
    from gradfix.tape.interpreter.program import Program


class Shown(NamedTuple):
    """What a write changes."""

    storages: frozenset[Storage]
    tensor: Tensor


def sees_write(names: Names, tensor: Tensor, place: Place) -> bool:
    """Whether a name other than the written one shows this memory, and is read afterwards."""
    if place is None or isinstance(place, Foreign):
        return True
    written: ast.AST | None = written_expression(names, place)
    while isinstance(written, ast.Subscript):
        written = written.value
    memory = memory_of(tensor)
    frame: Frame | None = names.frame
    inner = True
    while frame is not None:
        receiver = frame.receiver
        for name, value in frame.scope.names.items():
            if value is receiver or type(value) not in HOLDING:
                continue
            if inner and isinstance(written, ast.Name) and written.id == name:
                continue
            seen = not inner or _is_learned(value) or type(value) is Unknown
            if (seen or _read_later(names.program, frame, name, place)) and _gives(value, memory, written):
                return True
        if isinstance(receiver, Instance) and _held_by(receiver, memory, written if inner else None):
            return True
        frame, inner = frame.caller, False
    return False


def _gives(value: Value, memory: Shown, written: ast.AST | None) -> bool:
    """Whether a name's value gives access to any of these storages, but for the attribute that is written."""
    if isinstance(value, Instance):
        return _held_by(value, memory, written)
    if type(value) is Unknown and value.children and isinstance(written, ast.Attribute):
        kept = (one for name, one in value.children.items() if name != written.attr)
        return any(shows(one, memory, 1) for one in kept)
    return shows(value, memory)


def memory_of(tensor: Tensor) -> Shown:
    """What a write to a tensor changes."""
    return Shown(frozenset(_memory(tensor)), tensor)


def read_again(names: Names, place: Place) -> bool:
    """Whether the name that a call writes through is read behind the call, before it is bound anew."""
    written = written_expression(names, place) if isinstance(place, ast.AST) else None
    while isinstance(written, ast.Subscript):
        written = written.value
    if not isinstance(written, ast.Name) or not isinstance(place, ast.AST):
        return False
    frame = names.frame
    owner: ast.AST = (frame.code.node if frame.code is not None else None) or names.program.tree
    around = _statement_around(names.program, owner, place)
    if around is not None:
        if _reads(around, written.id, {id(one) for one in all_in(place)}):
            return True
        if written.id in _bound(around):
            return False
    return _read_later(names.program, frame, written.id, place)


def _statement_around(program: Program, owner: ast.AST, place: ast.AST) -> ast.AST | None:
    """The statement that holds a place in a piece of code; none of them holds another."""
    table = program.around.get(id(owner))
    if table is None:
        small = (one for one in all_in(owner) if isinstance(one, SMALL))
        table = program.around[id(owner)] = {id(part): one for one in small for part in all_in(one)}
    return table.get(id(place))


SMALL = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return)


def _reads(statement: ast.AST, name: str, but: set[int]) -> bool:
    """Whether a statement reads a name outside of some of its parts."""
    if (
        isinstance(statement, ast.AugAssign)
        and isinstance(statement.target, ast.Name)
        and statement.target.id == name
    ):
        return True
    loads = (one for one in all_in(statement) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load))
    return any(one.id == name and id(one) not in but for one in loads)


def _bound(statement: ast.AST) -> set[str]:
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return {one.id for one in targets if isinstance(one, ast.Name)}


def written_expression(names: Names, place: ast.AST) -> ast.expr | None:
    """What an assignment or call writes in place: an item's owner where it writes an item."""
    node: ast.AST | None = place
    if isinstance(node, ast.AugAssign):
        node = node.target
    elif isinstance(node, ast.Assign):
        node = node.targets[0]
        if isinstance(node, ast.Subscript):
            node = node.value
    elif isinstance(node, ast.Call):
        keywords = [keyword.value for keyword in node.keywords if keyword.arg == "out"]
        if keywords:
            node = keywords[0]
        elif isinstance(node.func, ast.Attribute) and not _of_a_package(names, node.func.value):
            node = node.func.value if node.func.attr.endswith("_") else (node.args[0] if node.args else None)
        else:
            node = node.args[0] if node.args else None
    return node if isinstance(node, ast.expr) else None


def _of_a_package(names: Names, node: ast.expr) -> bool:
    """Whether a dotted name starts at an imported package: `F.relu_(h)` writes its argument."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and isinstance(names.load(node.id), External)


def _is_learned(value: Value) -> bool:
    """Whether a value is a leaf that gets a gradient: whoever steps it reads it."""
    return isinstance(value, Tensor) and value.leaf is True and value.requires is True


SHOWING = frozenset({Tensor, Unknown, Alt, Seq, Map})
"""What can give access to a tensor's memory by itself."""
HOLDING = SHOWING | {Instance}


def _memory(tensor: Tensor) -> Iterator[Storage]:
    """The memory of a tensor, and what it may be instead."""
    one: Tensor | None = tensor
    while one is not None:
        yield one.storage
        one = one.maybe


def shows(value: Value, memory: Shown, depth: int = 0) -> bool:
    """Whether a value gives access to any of these storages."""
    if isinstance(value, Unknown):
        kept = (value.children or {}).values() if depth < 2 else ()
        if any(shows(one, memory, depth + 1) for one in kept if type(one) in HOLDING):
            return True
        return value.tensor is not None and shows(value.tensor, memory, depth)
    if isinstance(value, Tensor):
        return not are_apart(value, memory.tensor) and not memory.storages.isdisjoint(_memory(value))
    if isinstance(value, Alt):
        return any(shows(option, memory, depth) for _, option in value.options)
    if depth < 2 and isinstance(value, Seq):
        return any(shows(item, memory, depth + 1) for item in value.items if type(item) in HOLDING)
    if depth < 2 and isinstance(value, Instance):
        return any(shows(item, memory, depth + 1) for item in value.attrs.values() if type(item) in HOLDING)
    if depth < 2 and isinstance(value, Map):
        return any(shows(item, memory, depth + 1) for item in value.items.values())
    return False


def _held_by(receiver: Instance, memory: Shown, written: ast.AST | None) -> bool:
    own = written.attr if isinstance(written, ast.Attribute) else ""
    for name, value in receiver.attrs.items():
        if type(value) in HOLDING and name != own and shows(value, memory, isinstance(value, Instance)):
            return True
    return False


def _read_later(program: Program, frame: Frame, name: str, place: ast.AST) -> bool:
    """Whether a name is loaded after a place, or anywhere in a loop around it."""
    if frame.loops:
        return any(True for _ in _loads(program, frame, name))
    return any(line > place.lineno for line in _loads(program, frame, name))  # type: ignore[attr-defined]


def _loads(program: Program, frame: Frame, name: str) -> list[int]:
    owner: ast.AST | None = frame.code.node if frame.code is not None else program.tree
    return names_read(program, owner).get(name, []) if owner is not None else [10**9]


def names_read(program: Program, owner: ast.AST) -> dict[str, list[int]]:
    """The names that a piece of code reads, with the lines on which it does."""
    table = program.loads.get(id(owner))
    if table is None:
        table = program.loads[id(owner)] = {}
        for node in all_in(owner):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                table.setdefault(node.id, []).append(node.lineno)
    return table
