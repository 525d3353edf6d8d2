"""Where a graph may have been cut on the way to a loss, or why a place got no gradient."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from gradfix.tape.effects.nodes import CUTTING
from gradfix.why.code import Scope, bound, called, covers, holder, scopes, statements
from gradfix.why.flow import Step
from gradfix.why.project import Spot
from gradfix.why.suspects import Agreement, Case, Suspect

UNRECORDED = re.compile(r"\bno_grad\b|\binference_mode\b|set_grad_enabled\(\s*(?:False|[a-z_]\w*[^)]*)\)")
FROZEN = re.compile(
    r"\.requires_grad_\(\s*False\s*\)|\.requires_grad\s*=\s*False|\.volatile\s*=\s*True|volatile=True"
)
AROUND = "assuming that no other way leads around it"
INSIDE = "assuming that a call in the block runs the backward that failed"
ADVICE = "leave it out on the way to the loss"


def cutting(case: Case) -> Iterator[Suspect]:
    """The cuts on the way from the loss to what should learn."""
    seen: set[tuple[str, int]] = set()
    for step in case.way:
        yield from _in_step(case, step)
        for suspect in _around(case, step):
            if (key := (suspect.path, suspect.span.line)) not in seen:
                seen.add(key)
                yield suspect
    for spot in case.spots:
        yield from _under(case, spot)
    yield from _freezing(case)
    if not case.spots and not case.way:
        yield from _anywhere(case)


def converting(case: Case) -> Iterator[Suspect]:
    """What on the way makes something else than a tensor."""
    for step in case.way:
        for suspect in _in_step(case, step):
            if "plain number" in suspect.says or "numpy" in suspect.says:
                yield suspect


def _near(step: Step, points: int) -> int:
    """What is farther from the loss counts less."""
    return max(points - step.depth - step.distance // 3, 1)


def _in_step(case: Case, step: Step) -> Iterator[Suspect]:
    """What in a statement cuts what it computes."""
    value = getattr(step.statement, "value", None)
    if value is None:
        return
    for node in _values(value):
        points, does = CUTTING.get(called(node), (0, ""))
        if isinstance(node, ast.Attribute) and node.attr == "data" and not isinstance(node.ctx, ast.Store):
            points, does = 5, "cuts the graph"
        if isinstance(node, ast.Compare) and node is value:
            points, does = 3, "compares, which has no gradient"
        if does and points and isinstance(node, ast.expr):
            agrees = [Agreement(_near(step, points), "the loss is computed from it")]
            yield Suspect(
                step.path, case.place(step.path, node),
                f"`{case.text(step.path, node)}` {does}", tuple(agrees),
                (AROUND,), ADVICE,
            )  # fmt: skip


def _values(value: ast.AST) -> Iterator[ast.AST]:
    """The parts of an expression that its value is made of: no indices and no conditions."""
    yield value
    inner: list[ast.AST] = []
    if isinstance(value, ast.Subscript):
        inner = [value.value]
    elif isinstance(value, ast.IfExp):
        inner = [value.body, value.orelse]
    elif isinstance(value, ast.Compare) or (
        isinstance(value, ast.Call) and called(value) in ("size", "len", "print", "format", "range", "type")
    ):
        inner = []
    else:
        inner = list(ast.iter_child_nodes(value))
    for each in inner:
        yield from _values(each)


def _around(case: Case, step: Step) -> Iterator[Suspect]:
    """Blocks and decorators under which nothing is recorded of what is computed."""
    for expression in _unrecorded(step.scope, step.statement.lineno):
        says = f"nothing is recorded under `{case.text(step.path, expression)}`"
        line = case.line(step.path, step.statement.lineno)
        agrees = (Agreement(_near(step, 6), f"{line}, on the way, runs under it"),)
        advice = "run the forward outside of it"
        yield Suspect(step.path, case.place(step.path, expression), says, agrees, (AROUND,), advice)


def _anywhere(case: Case) -> Iterator[Suspect]:
    """Blocks that record nothing of a call, where no backward is in sight: one of the calls runs it."""
    for path, source in case.flow.sources.items():
        for scope in scopes(source.tree):
            for block in (each for each in statements(scope) if isinstance(each, ast.With)):
                for expression in _unrecorded(scope, block.body[0].lineno):
                    says = f"nothing is recorded under `{case.text(path, expression)}`"
                    agrees = (Agreement(2, "no backward is in these files: one of the calls runs it"),)
                    place = case.place(path, expression)
                    yield Suspect(path, place, says, agrees, (INSIDE,), "call it outside of the block")


def _under(case: Case, spot: Spot) -> Iterator[Suspect]:
    """The same of a call on the way to what was raised."""
    for expression in _unrecorded(case.scope(spot), spot.line):
        says = f"nothing is recorded under `{case.text(spot.path, expression)}`"
        line = case.line(spot.path, spot.line)
        agrees = (Agreement(6, f"the call of {line}, inside which it failed, runs under it"),)
        advice = "make the call outside of it, or under `torch.enable_grad()`"
        yield Suspect(spot.path, case.place(spot.path, expression), says, agrees, (), advice)


def _unrecorded(scope: Scope, line: int) -> Iterator[ast.expr]:
    """What switches recording off for a line of a scope."""
    found: list[ast.expr] = list(getattr(scope, "decorator_list", ()))
    for each in statements(scope):
        if isinstance(each, ast.With) and covers(each, line):
            found += [item.context_expr for item in each.items]
        elif isinstance(each, ast.Expr) and called(each.value) == "set_grad_enabled" and each.lineno < line:
            found.append(each.value)
    for expression in found:
        text = ast.unparse(expression)
        if UNRECORDED.search(text) and "set_grad_enabled(True)" not in text:
            yield expression


def _freezing(case: Case) -> Iterator[Suspect]:
    """What freezes parameters, anywhere in the files."""
    for path, source in case.flow.sources.items():
        for scope in scopes(source.tree):
            for each in statements(scope):
                text = ast.unparse(each) if isinstance(each, ast.Assign | ast.Expr) else ""
                if FROZEN.search(text):
                    yield Suspect(
                        path, case.place(path, each), f"`{case.text(path, each)}` freezes",
                        (Agreement(3, "what is frozen starts no graph"),),
                        ("assuming that it freezes all that this loss is computed with",),
                        "leave what is to be trained unfrozen",
                    )  # fmt: skip


def without_gradient(case: Case) -> Iterator[Suspect]:
    """Where a tensor was made whose gradient is None: the result of an operation."""
    spot = case.raised
    statement = case.statement(spot) if spot else None
    if spot is None or statement is None:
        return
    scope = case.scope(spot)
    for node in ast.walk(statement):
        if isinstance(node, ast.Attribute) and node.attr == "grad" and (name := holder(node.value)):
            for each in statements(scope):
                if name in bound(each) and _recomputed(each, name):
                    line = case.line(spot.path, spot.line)
                    yield Suspect(
                        spot.path, case.place(spot.path, each),
                        f"`{case.text(spot.path, each)}` makes another tensor, and no leaf",
                        (Agreement(5, f"the gradient of `{name}` is read at {line}"),),
                        ("assuming that it is this tensor whose gradient is None",),
                        "ask for the gradient of what was made last: `.detach().requires_grad_()`",
                    )  # fmt: skip


def _recomputed(statement: ast.stmt, name: str) -> bool:
    """Whether a binding makes the result of an operation, not a leaf."""
    value = getattr(statement, "value", None)
    if not isinstance(statement, ast.Assign) or value is None or name.startswith("self."):
        return False
    text = ast.unparse(value)
    marked = (
        "requires_grad" in text
        and isinstance(value, ast.BinOp | ast.Call)
        and not text.endswith(("requires_grad=True)", "requires_grad_()", "requires_grad_(True)"))
    )
    return marked or (
        name in {n.id for n in ast.walk(value) if isinstance(n, ast.Name)} and ".grad" not in text
    )
