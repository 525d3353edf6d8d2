"""Variants of a program that make a silent fault loud: a write through `.data` seen, a cut taken away."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import TypeGuard

from .programs import Program


def variant(program: Program, source: str) -> Program:
    return replace(program, source=source)


def is_statement(node: ast.AST) -> TypeGuard[ast.stmt]:
    return isinstance(node, ast.stmt)


def with_loud_write(program: Program, line: int) -> Program:
    """The same program, where the write through `.data` at that line bumps the version.

    Where the line writes to a name that holds a `.data`, every `.data` is made to.
    """
    source = rewritten(program.source, lambda n: loud(n) if getattr(n, "lineno", 0) == line else None)
    return everywhere_loud(program) if source == program.source else variant(program, source)


def everywhere_loud(program: Program) -> Program:
    """The same program, where every write through `.data` bumps the version."""
    return variant(program, rewritten(program.source, lambda node: loud(node) or detached_read(node)))


def detached_read(node: ast.AST) -> ast.AST | None:
    return detached(node) if isinstance(node, ast.Attribute) and is_data(node) else None


def rewritten(source: str, change: Callable[[ast.AST], ast.AST | None]) -> str:
    """Source text with some nodes changed and every statement still on its own line."""

    class Changer(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            new = change(node)
            if new is not None:
                return ast.copy_location(new, node)
            visited: ast.AST = self.generic_visit(node)
            return visited

    lines = source.split("\n")
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and not hasattr(node, "body"):
            before = ast.dump(node)
            new = Changer().visit(node)
            if ast.dump(new) != before:
                indent = lines[node.lineno - 1][: node.col_offset]
                lines[node.lineno - 1 : node.end_lineno] = [
                    indent + ast.unparse(ast.fix_missing_locations(new))
                ]
    return "\n".join(lines)


def loud(node: ast.AST) -> ast.stmt | None:
    """The statement with `.detach()` for `.data`, or None where it does not write through `.data`."""
    if isinstance(node, ast.AugAssign) and is_data(node.target):
        name = type(node.op).__name__.lower().replace("mult", "mul").replace("div", "truediv")
        return call(f"__i{name}__", detached(node.target), node.value)
    if isinstance(node, ast.Assign) and is_data(node.targets[0]):
        return call("copy_", detached(node.targets[0]), node.value)
    if isinstance(node, (ast.Assign, ast.AugAssign)):
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        return loud_index(node, target)
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return loud_call(node.value)
    return None


def loud_index(node: ast.Assign | ast.AugAssign, target: ast.expr) -> ast.stmt | None:
    if not (isinstance(target, ast.Subscript) and is_data(target.value)):
        return None
    indexed = ast.Subscript(detached(target.value), target.slice, ast.Store())
    if isinstance(node, ast.Assign):
        return ast.Assign([indexed], node.value)
    return ast.AugAssign(indexed, node.op, node.value)


def loud_call(node: ast.Call) -> ast.stmt | None:
    function = node.func
    if isinstance(function, ast.Attribute) and function.attr.endswith("_") and is_data(function.value):
        return ast.Expr(
            ast.Call(ast.Attribute(detached(function.value), function.attr), node.args, node.keywords)
        )
    return None


def is_data(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "data" and not is_grad(node.value)


def is_grad(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "grad"


def detached(node: ast.expr) -> ast.expr:
    assert isinstance(node, ast.Attribute)
    return ast.Call(ast.Attribute(node.value, "detach"), [], [])


def call(method: str, owner: ast.expr, argument: ast.expr) -> ast.Expr:
    return ast.Expr(ast.Call(ast.Attribute(owner, method), [argument], []))


DETACHES = ("detach", "detach_")
METHODS = (*DETACHES, "item", "tolist", "numpy")
FUNCTIONS = ("float", "Variable", "tensor", "as_tensor", "from_numpy", "Tensor", "Parameter")


def without_cuts(program: Program, lines: range) -> Program | None:
    """The same program without the cuts on some lines, or None where none can be taken away."""

    def change(node: ast.AST) -> ast.AST | None:
        return uncut(node) if isinstance(node, ast.expr) and node.lineno in lines else None

    source = rewritten(program.source, change)
    return None if source == program.source else variant(program, source)


def without_flags(program: Program, line: int) -> Program:
    """The same program, where nothing on a line is told to require grad; names are bound as before."""
    source = rewritten(program.source, lambda n: unflagged(n) if getattr(n, "lineno", 0) == line else None)
    return variant(program, source)


def unflagged(node: ast.AST) -> ast.AST | None:
    """What is left of `x.requires_grad_()` and of `x.requires_grad = True`."""
    if isinstance(node, ast.Assign) and getattr(node.targets[0], "attr", "") == "requires_grad":
        return ast.Pass()
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.value if node.func.attr == "requires_grad_" else None
    return None


def uncut(node: ast.expr) -> ast.expr | None:
    """What is left when all cuts around and inside an expression are gone; None where it isn't a cut."""
    inner = kept(node)
    if inner is None:
        return None
    return uncut(inner) or inner


def kept(node: ast.expr) -> ast.expr | None:
    """What a cut was made from."""
    if isinstance(node, ast.Attribute) and node.attr == "data":
        return node.value
    if not isinstance(node, ast.Call):
        return None
    function = node.func
    if isinstance(function, ast.Attribute) and function.attr in METHODS:
        return function.value
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if name not in FUNCTIONS or not node.args:
        return None
    if isinstance(node.args[0], ast.List):
        return ast.Call(ast.Attribute(ast.Name("torch"), "stack"), [node.args[0]], [])
    return node.args[0]


def uncut_node(node: ast.AST) -> ast.AST | None:
    """The same of any node."""
    return uncut(node) if isinstance(node, ast.expr) else None
