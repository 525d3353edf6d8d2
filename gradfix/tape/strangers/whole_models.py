"""Whole models: who trains them, and what they do to their data before the first layer.

Of any module that is entered on its own, its input is taken to require grad, and its output to be
backpropagated (convention D). Both are true of a block, which stands between other blocks. A class that
nothing in its file builds in, and that has layers of its own, is as likely the whole model: what it does to
its input before the first of these layers is preparation of data. And a class that runs backward by itself,
on something else than what it returns, is asked for its output when it has been trained.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradfix.tape.domain.graph import Tensor
from gradfix.tape.domain.torch_values import Layer
from gradfix.tape.domain.values import Alt, Unknown
from gradfix.tape.interpreter.inside import all_in
from gradfix.tape.machine.cuts import leaves_behind
from gradfix.tape.torch.modules import children, leaves

if TYPE_CHECKING:
    from gradfix.tape.domain.definitions import Instance
    from gradfix.tape.domain.values import Value
    from gradfix.tape.interpreter.names import Names
    from gradfix.tape.interpreter.program import Program
    from gradfix.tape.machine.machine import Machine


def is_whole(names: Names, instance: Instance, results: list[Value]) -> bool:
    """Whether a module is built into no other one, and its results come out of layers of its own."""
    if names.program.built_in is None:
        names.program.built_in = built_in(names.program.tree)
    if instance.cls.node.name in names.program.built_in:
        return False
    layers = [child for _, child in children(instance) if not isinstance(child, Tensor)]
    if any(map(_lost, layers)):
        return True
    inside = {id(leaf) for layer in layers for leaf in leaves(names.machine, layer)[0]}
    nodes = [node for result in results for node in names.machine.graph.nodes(result)] if inside else []
    return any(id(leaf) in inside for node in nodes for leaf in leaves_behind(node))


def is_loss(machine: Machine, instance: Instance, result: Value) -> bool:
    """Whether a module learns nothing itself and makes one number of what it is given (convention C)."""
    ways = [one for _, one in result.options] if isinstance(result, Alt) else [result]
    one_number = any(isinstance(way, Tensor) and way.shape == () for way in ways)
    return one_number and leaves(machine, instance) == ([], True)


def _lost(layer: Value) -> bool:
    """Whether a container holds a layer of which nothing is known, or may: it may have parameters."""
    if isinstance(layer, Alt):
        return any(_lost(option) for _, option in layer.options)
    items = (layer.items or {}).values() if isinstance(layer, Layer) else ()
    within = [one for item in items for one in _options(item)]
    strange = any(isinstance(one, Unknown) and one.module is None and not one.origin for one in within)
    return strange or (isinstance(layer, Layer) and layer.open) or any(map(_lost, within))


def _options(item: Value) -> list[Value]:
    return [option for _, option in item.options] if isinstance(item, Alt) else [item]


def built_in(module: ast.Module) -> frozenset[str]:
    """The names that classes use, or that calls are given: of what is part of something else."""
    found: set[str] = set()
    for statement in module.body:
        if isinstance(statement, ast.ClassDef):
            found |= {name for name in _names(statement) if name != statement.name}
        else:
            for call in (one for one in all_in(statement) if isinstance(one, ast.Call)):
                for given in (*call.args, *(keyword.value for keyword in call.keywords)):
                    found.update(_names(given) if not isinstance(given, ast.Call) else ())
    return frozenset(found)


def _names(node: ast.AST) -> Iterator[str]:
    return (one.id for one in all_in(node) if isinstance(one, ast.Name))


def methods_called(program: Program, node: ast.ClassDef) -> frozenset[str]:
    """The names of methods that a class calls somewhere, read once; "" where it calls its own object."""
    known = program.called.get(id(node))
    if known is None:
        calls = [one.func for one in all_in(node) if isinstance(one, ast.Call)]
        itself = any(isinstance(func, ast.Name) and func.id == "self" for func in calls)
        names = [func.attr for func in calls if isinstance(func, ast.Attribute)]
        known = program.called[id(node)] = frozenset([*names, ""] if itself else names)
    return known


def called_on_itself(node: ast.ClassDef) -> frozenset[str]:
    """The names of the methods that a class calls on its own object, or on that as one of a base."""
    calls = [one.func for one in all_in(node) if isinstance(one, ast.Call)]
    return frozenset([func.attr for func in calls if isinstance(func, ast.Attribute) and _itself(func.value)])


def _itself(owner: ast.expr) -> bool:
    if isinstance(owner, ast.Call):
        owner = owner.func
    return isinstance(owner, ast.Name) and owner.id in ("self", "cls", "super")


def trains_itself(program: Program, node: ast.ClassDef) -> bool:
    """Whether a class runs backward, and never on what it would return to a caller."""
    called = methods_called(program, node)
    return "backward" in called and "forward" not in called and "" not in called
