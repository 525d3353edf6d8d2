"""Takes a write's sting: the same statement out of place, or a write that saves nothing, on the same line."""

from __future__ import annotations

import ast
import re

FLAGS = ((r"inplace=True", "inplace=False"), (r"\(True\)", "(False)"), (r", True\)", ", False)"))
"""How modules and functionals are told to write in place."""


def out_of_place(source: str, line: int) -> str | None:
    """The program with the write at a line made out of place, or None where that isn't simple."""
    lines = source.split("\n")
    statements = (n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.stmt))
    statement = next((n for n in statements if n.lineno == line), None)
    new = rebound(statement) if statement is not None else None
    if new is None:
        return unflagged(source, line)
    assert statement is not None
    lines[line - 1] = lines[line - 1][: statement.col_offset] + ast.unparse(ast.fix_missing_locations(new))
    return "\n".join(lines)


def rebound(statement: ast.stmt) -> ast.stmt | None:
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        read = ast.Name(statement.target.id, ast.Load())
        return ast.Assign([statement.target], ast.BinOp(read, statement.op, statement.value), lineno=1)
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return rebound_call(statement.value)
    return None


def rebound_call(call: ast.Call) -> ast.stmt | None:
    """`x.add_(1)` as `x = x.add(1)`."""
    function = call.func
    if not (isinstance(function, ast.Attribute) and function.attr.endswith("_")):
        return None
    if not isinstance(function.value, ast.Name) or function.attr.endswith("__"):
        return None
    plain = ast.Call(ast.Attribute(function.value, function.attr[:-1], ast.Load()), call.args, call.keywords)
    return ast.Assign([ast.Name(function.value.id, ast.Store())], plain, lineno=1)


def unflagged(source: str, line: int) -> str | None:
    """Without the flags that ask for in place, where the line has any."""
    lines = source.split("\n")
    text = lines[line - 1]
    for flag, instead in FLAGS:
        text = re.sub(flag, instead, text)
    if text == lines[line - 1]:
        return None
    lines[line - 1] = text
    return "\n".join(lines)


def bare_write(source: str, line: int) -> str | None:
    """The program with a write at a line that keeps nothing for backward, or None where that isn't simple."""
    lines = source.split("\n")
    statements = (n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.stmt))
    statement = next((n for n in statements if n.lineno == line), None)
    written = target(statement) if statement is not None else None
    if statement is None or written is None:
        return None
    lines[line - 1] = f"{lines[line - 1][: statement.col_offset]}({ast.unparse(written)}).detach().add_(0)"
    return "\n".join(lines)


def target(statement: ast.stmt) -> ast.expr | None:
    """What a statement that binds no name writes."""
    if isinstance(statement, ast.AugAssign):
        return statement.target
    if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)):
        return None
    call = statement.value
    function = call.func
    if isinstance(function, ast.Attribute) and function.attr.endswith("_") and not is_module(function.value):
        return function.value
    return call.args[0] if call.args else None


def is_module(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("F", "torch", "nn")


def keeping(line: str) -> str:
    """A line whose backward keeps its graph."""
    return re.sub(r"(\.backward\(.*)\)", r"\1, retain_graph=True)", line).replace("(, ", "(")
