"""Makes a disagreement small: statements are taken away as long as it stays."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from .compare import compare
from .comparison import Analyser, Disagreement
from .patience import HungError, patience
from .programs import Program
from .trim import parses, removed


def shrink(program: Program, found: Disagreement, analyse: Analyser, budget: int = 400) -> Program:
    """A smaller program that shows a disagreement of the same group."""

    def holds(candidate: Program) -> bool:
        try:
            with patience():
                result = compare(candidate, analyse)
        except (Exception, HungError):
            return False
        return result is not None and any(d.group == found.group for d in result.disagreements)

    at, smaller = 0, True
    for _ in range(budget):
        option = next(islice(candidates(program), at, None), None)
        if option is None:
            if not smaller:
                break
            at, smaller = 0, False
        elif holds(option):
            program, smaller = option, True
        else:
            at += 1
    return program


def candidates(program: Program) -> Iterator[Program]:
    """Programs with one statement, one block's frame, or one part of an expression less."""
    lines = program.source.split("\n")
    tree = ast.parse(program.source)
    statements = sorted(
        (node for node in ast.walk(tree) if isinstance(node, ast.stmt)),
        key=lambda node: (node.lineno - (node.end_lineno or 0), -node.lineno),
    )
    for node in statements:
        for new in (removed(lines, node), unframed(lines, node)):
            if new is not None:
                yield replace(program, source="\n".join(new))
    for source in simpler_expressions(program.source):
        yield replace(program, source=source)


def unframed(lines: list[str], node: ast.stmt) -> list[str] | None:
    """The body of a block without its header."""
    if not isinstance(node, (ast.If, ast.For, ast.While, ast.With)) or getattr(node, "orelse", None):
        return None
    body = [line[4:] for line in lines[node.body[0].lineno - 1 : node.end_lineno]]
    rest = lines[: node.lineno - 1] + body + lines[node.end_lineno :]
    return rest if parses(rest) else None


def simpler_expressions(source: str) -> Iterator[str]:
    """Each value replaced by one of its operands."""
    lines = source.split("\n")
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, (ast.Assign, ast.Return, ast.AugAssign))
            and node.value
            and node.lineno == node.end_lineno
        ):
            for part in parts(node.value):
                text, line = ast.get_source_segment(source, part), lines[node.lineno - 1]
                if text:
                    new = line[: node.value.col_offset] + text + line[node.value.end_col_offset :]
                    yield "\n".join([*lines[: node.lineno - 1], new, *lines[node.lineno :]])


def parts(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.Call):
        owner = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        return [part for part in [*owner, *node.args] if not isinstance(part, ast.Constant)]
    if isinstance(node, (ast.Subscript, ast.Attribute)):
        return [node.value]
    return []
