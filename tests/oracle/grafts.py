"""Takes a cut's sting: what the culprit of a severed graph gives is put into a graph again."""

from __future__ import annotations

import ast
from dataclasses import replace

import torch

from gradfix.defects import Span

from .programs import Program

MODES = ("no_grad", "inference_mode", "set_grad_enabled")


class Graft(torch.nn.Parameter):
    """The leaf that a graft ends in."""


def graft(value: object) -> object:
    """The same value, but in a graph."""
    if isinstance(value, torch.Tensor):
        with torch.inference_mode(False), torch.enable_grad():
            whole = value.clone() if value.is_floating_point() else value.float()
            return whole + Graft(torch.zeros(()))
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return graft(torch.tensor(float(value)))
    return [graft(each) for each in value] if isinstance(value, list) else value


def leaf(value: object) -> object:
    """The same value as a leaf that requires grad."""
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return value.detach().clone().requires_grad_()
    return value


def grafted(program: Program, span: Span, by: str = "graft__") -> Program | None:
    """The program with a culprit mended, or None where it isn't one that can be."""
    tree = ast.parse(program.source)
    node = next((one for one in ast.walk(tree) if _at(one, span)), None)
    if isinstance(node, (ast.With, ast.AsyncWith)):
        return _with_header(program, node)
    if isinstance(node, (ast.Assign, ast.AugAssign, ast.Return, ast.Expr)) and node.value is not None:
        node = node.value
    if not isinstance(node, ast.expr) or node.lineno != node.end_lineno:
        return None
    text = ast.get_source_segment(program.source, node) or ""
    decorates = any(node in getattr(one, "decorator_list", ()) for one in ast.walk(tree))
    if decorates:
        return _replaced(program, node, by)
    alone = any(isinstance(one, ast.Expr) and one.value is node for one in ast.walk(tree))
    if alone or any(mode in text.split("(")[0] for mode in MODES):
        return _replaced(program, node, "None")
    return _replaced(program, node, f"{by}({text})")


def _at(node: ast.AST, span: Span) -> bool:
    place = (getattr(node, name, None) for name in ("lineno", "col_offset", "end_lineno", "end_col_offset"))
    return tuple(place) == (span.line, span.column, span.end_line, span.end_column)


def _with_header(program: Program, node: ast.With | ast.AsyncWith) -> Program:
    lines = program.source.split("\n")
    lines[node.lineno - 1] = lines[node.lineno - 1][: node.col_offset] + "if True:"
    return replace(program, source="\n".join(lines))


def _replaced(program: Program, node: ast.expr, text: str) -> Program:
    lines = program.source.split("\n")
    line = lines[node.lineno - 1]
    lines[node.lineno - 1] = line[: node.col_offset] + text + line[node.end_col_offset :]
    return replace(program, source="\n".join(lines))
