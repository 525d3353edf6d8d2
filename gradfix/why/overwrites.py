"""Who may have written over what an operation saved: writes and steps, held against what the message says."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradfix.why.code import LOOPS, Scope, bound, called, covers, dotted, holder, loops_at, read, statements
from gradfix.why.project import Spot
from gradfix.why.suspects import Agreement, Case, Suspect, is_backward
from gradfix.why.writes import Write, fits, made_by, modules_in_place, scopes, words, writes

SAME = "assuming that what it writes is the tensor that was saved"
LEAST = 3
"""A write of which less agrees is no suspect."""
WEIGHTS = frozenset({"t", "transpose", "permute", "asstrided", "view", "numpyt"})
"""What makes a layer's view of its weight, which is what a step writes over."""
VIEWS = frozenset(
    {"asstrided", "select", "slice", "unbind", "split", "index", "view", "copyslices", "unsafeview"}
)
OUTER = (7, 6, 5, 4)
"""What it counts that a write fits the innermost forward line of the project, the one around it ..."""


def overwriting(case: Case) -> Iterator[Suspect]:
    """The writes in place of which something agrees with the message."""
    on_the_way = {(step.path, step.scope): step for step in reversed(case.way)}
    for path, source in case.flow.sources.items():
        for scope in scopes(source.tree):
            for write in writes(scope):
                agrees = tuple(_agreements(case, path, scope, write, (path, scope) in on_the_way))
                if sum(each.points for each in agrees) >= LEAST:
                    yield Suspect(
                        path,
                        case.place(path, write.node),
                        f"`{case.text(path, write.node)}` writes `{write.name}` in place",
                        agrees,
                        (SAME,),
                        "make it out of place",
                    )
        yield from _modules(case, path)


def _agreements(case: Case, path: str, scope: Scope, write: Write, on_the_way: bool) -> Iterator[Agreement]:
    operation = case.said.operation
    line = write.statement.lineno
    yield from _with_forward(case, path, scope, write)
    if fits(operation, made_by(case.flow, scope, write.name, line)):
        yield Agreement(5, f"torch names {operation}, and that is what made `{write.name}`")
    if write.form == "item" and operation in VIEWS:
        points = 5 if operation == "copyslices" else 3
        yield Agreement(points, f"{operation} is what assigning to a part of a tensor leaves behind")
    if on_the_way:
        yield Agreement(2, "it is on the way to the loss")
    elif write.form == "augmented" and isinstance(write.statement, ast.AugAssign):
        yield Agreement(-1, "it is not seen on the way to the loss")
    if any(write.name in bound(step.statement) and step.scope is scope for step in case.way):
        yield Agreement(2, f"the loss is computed from `{write.name}`")
    spot = case.raised
    if spot is not None and (path, scope) == (spot.path, case.scope(spot)) and line < spot.line:
        yield Agreement(1, "it stands in the function that failed, before the line that raised")
    if _unrecorded(scope, line):
        yield Agreement(-2, "nothing is recorded where it stands")


def _with_forward(case: Case, path: str, scope: Scope, write: Write) -> Iterator[Agreement]:
    """What anomaly mode's forward lines say of a write."""
    for spot, points in zip(reversed(case.forward), OUTER, strict=False):
        if spot.path != path or case.scope(spot) is not scope:
            continue
        statement = case.statement(spot)
        if statement is None or write.name not in bound(statement) | read(statement):
            continue
        after = write.statement.lineno > spot.line or write.statement is statement
        around = any(covers(loop, write.statement.lineno) for loop in loops_at(scope, spot.line))
        if after or around:
            where = "behind" if after else "in the loop of"
            said = f"it stands {where} line {spot.line}, whose operation failed, and writes a tensor of it"
            yield Agreement(points if after else points - 2, said)
        return


def _unrecorded(scope: Scope, line: int) -> bool:
    """Whether a line stands under no_grad."""
    around = [each for each in statements(scope) if isinstance(each, ast.With) and covers(each, line)]
    words = [ast.unparse(item.context_expr) for each in around for item in each.items]
    words += [ast.unparse(each) for each in getattr(scope, "decorator_list", ())]
    return any("no_grad" in word or "inference_mode" in word for word in words)


def _modules(case: Case, path: str) -> Iterator[Suspect]:
    """Modules that write over their input."""
    for call in modules_in_place(case.tree(path)):
        agrees = tuple(_of_module(case, path, call))
        if sum(each.points for each in agrees) >= LEAST:
            says = f"`{case.text(path, call)}` builds a module that writes over its input"
            yield Suspect(
                path, case.place(path, call), says, agrees, (SAME,), "build it without inplace=True"
            )


def _of_module(case: Case, path: str, call: ast.Call) -> Iterator[Agreement]:
    holders = {
        target.rpartition(".")[2]
        for node in ast.walk(case.tree(path))
        if isinstance(node, ast.Assign) and covers(node, call.lineno)
        for target in map(dotted, node.targets)
        if target
    }
    for spot, points in zip(reversed(case.forward), OUTER, strict=False):
        used = [s for s in statements(case.scope(spot)) if _calls_one(s, holders) and s.lineno >= spot.line]
        if spot.path == path and used and _shares(case, spot, used):
            yield Agreement(
                points - 1, f"it runs behind line {spot.line}, whose operation failed, on a tensor of it"
            )
            break
    operation, name = case.said.operation, called(call).lower()
    if operation and operation.startswith(name):
        yield Agreement(3, f"torch names {operation}")
    elif operation and any(fits(operation, made) for made in _inputs(case, path, holders)):
        yield Agreement(4, f"torch names {operation}, and that is what makes the module's input")
    if any(step.path == path for step in case.way):
        yield Agreement(1, "its file is on the way to the loss")


def _shares(case: Case, spot: Spot, used: list[ast.stmt]) -> bool:
    statement = case.statement(spot)
    names = bound(statement) | read(statement) if statement else set()
    return any(names & {name for name in read(each) if not name.startswith("self.")} for each in used)


def _calls_one(statement: ast.stmt, holders: set[str]) -> bool:
    return any(called(node) in holders for node in ast.walk(statement) if isinstance(node, ast.Call))


def _inputs(case: Case, path: str, holders: set[str]) -> Iterator[set[str]]:
    """Words for what makes the inputs of modules that are held by these names."""
    for scope in scopes(case.tree(path)):
        for statement in statements(scope):
            for call in (node for node in ast.walk(statement) if called(node) in holders):
                if isinstance(call, ast.Call) and call.args:
                    inner = holder(call.args[0])
                    yield words(case.flow, ast.Expr(call.args[0]))
                    yield made_by(case.flow, scope, inner, statement.lineno + 1) if inner else set()


def stepping(case: Case) -> Iterator[Suspect]:
    """Optimizer steps that change weights which a later backward still needs."""
    spot = case.backward
    if spot is None or not _may_be_weight(case):
        return
    scope = case.scope(spot)
    steps = [each for each in statements(scope) if _is_step(case, each)]
    before = [each for each in steps if each.lineno < spot.line]
    around = loops_at(scope, spot.line)
    later = [each for each in steps if around and each.lineno > spot.line]
    for step in [*before[::-1][:2], *([] if before else later[:1])]:
        agrees = tuple(_of_step(case, scope, spot, step))
        assumes = ("assuming that it steps weights which this loss was computed with",)
        says = f"`{case.text(spot.path, step)}` changes weights before `{case.text(spot.path, _stated(case, spot))}`"
        yield Suspect(
            spot.path, case.place(spot.path, step), says, agrees, assumes,
            "run every backward that needs these weights before the step, or compute the loss anew behind it",
        )  # fmt: skip


def _stated(case: Case, spot: Spot) -> ast.stmt:
    return case.statement(spot) or ast.Pass(
        lineno=spot.line, col_offset=0, end_lineno=spot.line, end_col_offset=0
    )


def _may_be_weight(case: Case) -> bool:
    """Whether what was overwritten can be a weight: made by no operation, or a view of one."""
    return case.said.message.name == "overwritten" and case.said.operation in {"", *WEIGHTS}


def _of_step(case: Case, scope: Scope, spot: Spot, step: ast.stmt) -> Iterator[Agreement]:
    facts = case.said.facts
    if case.said.operation in ("t", "transpose", "asstrided") and facts.get("shape", "").count(",") == 1:
        yield Agreement(
            4, "what was written over is a view of a matrix, as a linear layer takes one of its weight"
        )
    elif "shape" in facts and not case.said.operation:
        yield Agreement(3, "no operation has made what was written over: a weight or a buffer")
    if int(facts.get("expected", 0)) >= 1:
        yield Agreement(
            1, f"it had been written {facts['expected']} times before it was saved, as weights are"
        )
    if step.lineno > spot.line:
        yield Agreement(-1, "it stands behind the backward, in the same loop")
        return
    yield Agreement(2, "it stands between other work and this backward")
    early = [each for each in case.way if each.scope is scope and each.statement.lineno < step.lineno]
    direct = [each for each in early if each.depth == 0 and any(map(called, ast.walk(each.statement)))]
    if direct:
        made = min(each.statement.lineno for each in direct)
        yield Agreement(2, f"the loss was computed before it, from line {made} on")


def _is_step(case: Case, statement: ast.stmt) -> bool:
    """Whether a statement steps an optimizer, as far as names and classes tell."""
    if isinstance(statement, ast.If | ast.With | ast.Try | LOOPS):
        return False
    for call in (node for node in ast.walk(statement) if called(node) in ("step", "optimizer_step")):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            held = dotted(call.func.value) or ast.unparse(call.func.value)
            last = held.rpartition(".")[2].lower()
            made = case.flow.built.get(held.rpartition(".")[2], set())
            if any(word in held.lower() for word in ("opt", "scaler", "accelerator", "engine")):
                return "sched" not in last
            if made & {"Adam", "SGD", "AdamW", "RMSprop", "Adagrad", "LBFGS"}:
                return True
    return False


def keeping(case: Case) -> Iterator[Suspect]:
    """DistributedDataParallel, which writes buffers anew at every forward."""
    facts = case.said.facts
    if case.said.message.name != "overwritten" or case.said.operation or facts.get("shape", "").count(","):
        return
    for path, source in case.flow.sources.items():
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Call) and called(node) in ("DistributedDataParallel", "DDP"):
                if not any(word.arg == "broadcast_buffers" for word in node.keywords):
                    yield Suspect(
                        path, case.place(path, node),
                        "DistributedDataParallel copies rank 0's buffers over the others at every forward",
                        (Agreement(4, "a vector that no operation has made: a batch norm's buffer is one"),),
                        ("assuming that the model runs more than once before its backward",),
                        "broadcast_buffers=False, or one forward for each backward",
                    )  # fmt: skip


def other_backwards(scope: Scope, spot: Spot) -> list[ast.stmt]:
    """The other statements of a scope that run backward."""
    return [
        each
        for each in statements(scope)
        if not isinstance(each, ast.If | ast.With | ast.Try | LOOPS | ast.FunctionDef)
        and any(map(is_backward, ast.walk(each)))
        and not covers(each, spot.line)
    ]
