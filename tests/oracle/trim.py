"""Takes single statements out of a program's text."""

from __future__ import annotations

import ast


def removed(lines: list[str], node: ast.stmt) -> list[str] | None:
    start = first_line(node)
    indent = lines[start - 1][: node.col_offset]
    rest = lines[: start - 1] + lines[node.end_lineno :]
    if parses(rest):
        return rest
    padded = [*lines[: start - 1], f"{indent}pass", *lines[node.end_lineno :]]
    return padded if not isinstance(node, ast.Pass) and parses(padded) else None


def first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(d.lineno for d in decorators)])


def parses(lines: list[str]) -> bool:
    try:
        ast.parse("\n".join(lines))
    except SyntaxError:
        return False
    return True
