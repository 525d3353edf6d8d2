"""Takes single statements out of a program's text."""

from __future__ import annotations

import ast


def removed(lines: list[str], node: ast.stmt) -> list[str] | None:
    """The lines without a statement; a pass stands in where the block would be empty."""
    rest = lines[: first_line(node) - 1] + lines[node.end_lineno :]
    if parses(rest):
        return rest
    with_pass = padded(lines, node)
    return with_pass if not isinstance(node, ast.Pass) and parses(with_pass) else None


def padded(lines: list[str], node: ast.stmt) -> list[str]:
    start = first_line(node)
    indent = lines[start - 1][: node.col_offset]
    return [*lines[: start - 1], f"{indent}pass", *lines[node.end_lineno :]]


def first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(d.lineno for d in decorators)])


def parses(lines: list[str]) -> bool:
    try:
        ast.parse("\n".join(lines))
    except SyntaxError:
        return False
    return True
