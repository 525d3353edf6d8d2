"""Classes that are modules by their shape, whatever base another package gives them.

They have a `forward` that is given something, let the base begin, and put layers on themselves that have
parameters (convention B).
"""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING

from gradfix.defects import NOTHING, Convention
from gradfix.tape.domain.definitions import Class, Function
from gradfix.tape.domain.values import External, Unknown
from gradfix.tape.effects import table
from gradfix.tape.effects.frameworks import ROWS
from gradfix.tape.interpreter.imports import canonical
from gradfix.tape.interpreter.inside import all_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gradfix.tape.domain.definitions import Scope
    from gradfix.tape.domain.values import Lean, Value

BY_SHAPE: Lean = frozenset({Convention.B})
TORCH = "torch.nn."
OWN = frozenset({"torch", "builtins", "object", *sys.stdlib_module_names})
"""What has no base that is a module, or says so."""


def has_its_shape(cls: Class) -> bool:
    """Whether a class of which a base can't be read is written as a module is."""
    if not any(map(_may_be_module, _bases(cls))):
        return False
    forward, init = cls.lookup("forward"), cls.lookup("__init__")
    if not isinstance(forward, Function) or not isinstance(init, Function) or not _given(forward):
        return False
    inside = all_in(init.code.node)
    return any(map(_lets_begin, inside)) and any(_puts_layer(one, init.scope) for one in inside)


def leaning_on_shape(cls: Class) -> Lean:
    """What is taken for granted of an object that is a module."""
    torch = any(path.startswith(TORCH) for path in cls.externals())
    return BY_SHAPE if not torch and has_its_shape(cls) else NOTHING


def _bases(cls: Class) -> Iterator[Value]:
    """The bases that are in no file at hand, its own and those of what it extends."""
    return (base for one in cls.order for base in one.bases if not isinstance(base, Class))


def _may_be_module(base: Value) -> bool:
    """Whether a base that can't be read may be a module: none of Python's own, none that is known as another
    package's."""
    if not isinstance(base, External):
        return isinstance(base, Unknown)
    return base.path.partition(".")[0] not in OWN and base.path.rpartition(".")[2] not in ROWS


def _given(forward: Function) -> bool:
    """Whether it is given something besides the object."""
    given = forward.code.node.args
    return len(given.posonlyargs) + len(given.args) > 1 or given.vararg is not None


def _lets_begin(node: ast.AST) -> bool:
    """Whether it is `super().__init__(...)`."""
    match node:
        case ast.Call(ast.Attribute(ast.Call(ast.Name("super")), "__init__")):
            return True
    return False


def _puts_layer(node: ast.AST, scope: Scope) -> bool:
    """Whether it puts a layer of torch that has parameters on the object."""
    match node:
        case ast.Assign([ast.Attribute(ast.Name("self"))], ast.Call(made)):
            path = _path(made, scope)
            effect = table.module(path.removeprefix(TORCH)) if path.startswith(TORCH) else None
            return effect is not None and bool(effect.parameters)
    return False


def _path(made: ast.expr, scope: Scope) -> str:
    """The dotted name of what is called, as far as imports say."""
    parts: list[str] = []
    while isinstance(made, ast.Attribute):
        parts.append(made.attr)
        made = made.value
    known = scope.globals.names.get(made.id) if isinstance(made, ast.Name) else None
    return canonical(".".join([known.path, *reversed(parts)])) if isinstance(known, External) else ""
