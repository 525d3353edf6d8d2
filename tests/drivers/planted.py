"""Bugs for library files: those of tests/injection, and what goes wrong where nobody calls backward."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

sys.path.insert(0, str(Path(__file__).parents[1]))

from injection.bugs import BUGS as OF_SCRIPTS
from injection.bugs import Injected, Program

Planted: TypeAlias = Injected


def of_layers(program: Program) -> Iterator[ast.Assign]:
    """Statements of a `forward` that assign what a part of the module returns."""
    for node in ast.walk(program.tree):
        if isinstance(node, ast.FunctionDef) and node.name == "forward":
            for each in ast.walk(node):
                match each:
                    case ast.Assign(
                        targets=[ast.Name()],
                        value=ast.Call(func=ast.Attribute(value=ast.Name(id="self"))),
                    ):
                        yield each


def layer_detached(program: Program) -> Iterator[Injected]:
    for node in of_layers(program):
        _, end = program.span(node.value)
        yield Injected("layer detached", node.lineno, program.changed((end, end, ".detach()")))


def layer_in_no_grad(program: Program) -> Iterator[Injected]:
    for node in of_layers(program):
        lines = program.whole_lines(node)
        if lines:
            text = program.text.encode()[lines[0] : lines[1]].decode()
            head = f"{program.indent(node)}with {program.torch}.no_grad():\n"
            body = "".join(f"    {line}" for line in text.splitlines(keepends=True))
            yield Injected("layer in no_grad", node.lineno, program.changed((*lines, head + body)))


def layers_in_a_list(program: Program) -> Iterator[Injected]:
    for node in ast.walk(program.tree):
        match node:
            case ast.Assign(
                targets=[ast.Attribute(value=ast.Name(id="self"))],
                value=ast.Call(func=func, args=[ast.List() | ast.ListComp() as inner]) as call,
            ) if ast.unparse(func).endswith("ModuleList"):
                text = program.changed((*program.span(call), program.code(inner)))
                yield Injected("layers in a list", node.lineno, text)


def result_written(program: Program) -> Iterator[Injected]:
    """What an activation saved is written over in the next line."""
    saving = ("sigmoid", "tanh", "softmax", "exp")
    for node in ast.walk(program.tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=func)) if ast.unparse(
                func
            ).endswith(saving):
                if (lines := program.whole_lines(node)) and program.scope(node) is not program.tree:
                    more = f"{program.indent(node)}{name} *= 2\n"
                    text = program.changed((lines[1], lines[1], more))
                    yield Injected("result written", node.lineno + 1, text)


def loss_rebuilt(program: Program) -> Iterator[Injected]:
    """What a `forward` or a loss function returns is made anew of its number."""
    for node in ast.walk(program.tree):
        match node:
            case ast.Return(value=ast.Name(id=name)) if "loss" in name.lower():
                code = f"{program.torch}.tensor({name}.item(), requires_grad=True)"
                assert node.value is not None
                text = program.changed((*program.span(node.value), code))
                yield Injected("loss rebuilt", node.lineno, text)


BUGS: dict[str, Callable[[Program], Iterator[Injected]]] = {
    **OF_SCRIPTS,
    "layer detached": layer_detached,
    "layer in no_grad": layer_in_no_grad,
    "layers in a list": layers_in_a_list,
    "result written": result_written,
    "loss rebuilt": loss_rebuilt,
}


def planted(text: str) -> Iterator[Injected]:
    """A library file with one bug in it, once for each place that has room for one."""
    try:
        program = Program(text)
    except (SyntaxError, ValueError):
        return
    for bug in BUGS.values():
        yield from bug(program)
