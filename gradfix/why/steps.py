"""Who may have stepped weights that a later backward still needs, and who writes buffers behind its back."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradfix.tape.effects.nodes import WEIGHTS
from gradfix.why.code import COMPOUND, Scope, bound, called, covers, dotted, loops_at, statements
from gradfix.why.project import Spot
from gradfix.why.suspects import Agreement, Case, Suspect

WRAPPERS = ("DistributedDataParallel", "DDP")


def stepping(case: Case) -> Iterator[Suspect]:
    """Optimizer steps that change weights which a later backward still needs."""
    if not may_be_weight(case):
        return
    if case.backward is None:
        return
    inner = case.spots.index(case.backward)
    for outward, spot in enumerate(reversed(case.spots[: inner + 1])):
        yield from _steps_around(case, spot, -min(outward, 2))


def _steps_around(case: Case, spot: Spot, less: int) -> Iterator[Suspect]:
    """The steps before a line, nearest first; where there are none, the first behind it in the same loop."""
    scope = case.scope(spot)
    steps = [each for each in statements(scope) if _is_step(case, each) and not covers(each, spot.line)]
    before = [each for each in steps if each.lineno < spot.line]
    around = loops_at(scope, spot.line)[-1:]
    later = [
        each
        for each in steps
        if each.lineno > spot.line and any(covers(loop, each.lineno) for loop in around)
    ]
    for step in [*before[::-1][:2], *later[:1]]:
        agrees = (*_of_step(case, scope, spot, step), Agreement(less, "the backward itself is further in"))
        assumes = ("assuming that it steps weights which this loss was computed with",)
        failed = case.text(spot.path, _stated(case, spot))
        yield Suspect(
            spot.path, case.place(spot.path, step),
            f"`{case.text(spot.path, step)}` changes weights before `{failed}`", agrees, assumes,
            "run every backward that needs these weights before the step, or compute the loss anew behind it",
        )  # fmt: skip


def _stated(case: Case, spot: Spot) -> ast.stmt:
    return case.statement(spot) or ast.Pass(
        lineno=spot.line, col_offset=0, end_lineno=spot.line, end_col_offset=0
    )


def may_be_weight(case: Case) -> bool:
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
        yield Agreement(1, "it had been written before it was saved, as weights are")
    if step.lineno > spot.line:
        yield from _of_later_step(case, scope, spot, step)
        return
    yield Agreement(2, "it stands between other work and this backward")
    yield from _of_nets(case, spot, step, step.lineno)
    early = [each for each in case.way if each.scope is scope and each.statement.lineno < step.lineno]
    direct = [each for each in early if each.depth == 0 and any(map(called, ast.walk(each.statement)))]
    if direct:
        made = min(each.statement.lineno for each in direct)
        yield Agreement(2, f"the loss was computed before it, from {case.line(spot.path, made)} on")


def _of_nets(case: Case, spot: Spot, step: ast.stmt, before: int) -> Iterator[Agreement]:
    """Whether what the optimizer was given is what the loss was computed with before a line."""
    stepped = {net for name in _steppers(case, step) for net in case.flow.optimised.get(name, ())}
    if not stepped:
        return
    used: dict[str, int] = {}
    own = (each for each in statements(case.scope(spot)) if before < each.lineno < spot.line)
    anew = {name for each in own for name in bound(each)}
    for each in case.way:
        made = bound(each.statement)
        if each.path == spot.path and each.statement.lineno < before and not (made and made <= anew):
            for node in (one for one in ast.walk(each.statement) if isinstance(one, ast.Call)):
                name = dotted(node.func).removesuffix(".forward").rpartition(".")[2]
                used.setdefault(name, each.statement.lineno)
    both = sorted(stepped & used.keys())
    if both:
        line = case.line(spot.path, used[both[0]])
        yield Agreement(4, f"it steps `{both[0]}`, with which {line} computed the loss")


def _steppers(case: Case, step: ast.stmt) -> Iterator[str]:
    """What holds the optimizers that a statement steps: the receiver, or what a function is given."""
    for call in (node for node in ast.walk(step) if isinstance(node, ast.Call)):
        if isinstance(call.func, ast.Attribute) and called(call) in ("step", "optimizer_step"):
            yield (dotted(call.func.value) or ast.unparse(call.func.value)).rpartition(".")[2]
        for argument in (*call.args, *(word.value for word in call.keywords)):
            yield dotted(argument).rpartition(".")[2]


def _of_later_step(case: Case, scope: Scope, spot: Spot, step: ast.stmt) -> Iterator[Agreement]:
    """A step behind the backward, which the next round of the loop runs into."""
    loop = loops_at(scope, spot.line)[-1]
    own = [step.statement for step in case.way if step.scope is scope and step.depth == 0]
    once = [each for each in own if each.lineno < loop.lineno and _computes(each)]
    if once:
        line = case.line(spot.path, once[0].lineno)
        yield Agreement(5, f"the loss hangs on {line}, which runs once before the loop around both")
        yield from _of_nets(case, spot, step, loop.lineno)
    else:
        yield Agreement(-1, "it stands behind the backward, in the same loop")


def _computes(statement: ast.stmt) -> bool:
    """Whether a statement may run a network: it calls something that is given a value."""
    if not isinstance(statement, ast.Assign | ast.AugAssign):
        return False
    calls = [node for node in ast.walk(statement.value) if isinstance(node, ast.Call)]
    return any(
        call.args and dotted(call.func).startswith(("self.", "net", "model", "gen", "G", "D"))
        for call in calls
    )


def _is_step(case: Case, statement: ast.stmt) -> bool:
    """Whether a statement steps an optimizer, as far as names and classes tell."""
    if isinstance(statement, COMPOUND):
        return False
    for call in (node for node in ast.walk(statement) if isinstance(node, ast.Call)):
        if called(call) in ("step", "optimizer_step") and isinstance(call.func, ast.Attribute):
            held = dotted(call.func.value) or ast.unparse(call.func.value)
            last = held.rpartition(".")[2].lower()
            made = case.flow.built.get(held.rpartition(".")[2], set())
            if any(word in held.lower() for word in ("opt", "scaler", "accelerator", "engine")):
                return "sched" not in last
            if made & {"Adam", "SGD", "AdamW", "RMSprop", "Adagrad", "LBFGS"}:
                return True
        elif case.steps(call):
            return True
    return False


def keeping(case: Case) -> Iterator[Suspect]:
    """DistributedDataParallel, which writes buffers anew at every forward."""
    facts = case.said.facts
    if "version" not in facts or case.said.operation or "," in facts.get("shape", ""):
        return
    agrees = (Agreement(4, "a vector that no operation has made: a batch norm's buffer is one"),)
    says = "DistributedDataParallel copies rank 0's buffers over the others at every forward"
    assumes = ("assuming that the model runs more than once before its backward",)
    for path, source in case.flow.sources.items():
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Call) and called(node) in WRAPPERS and not _keeps_buffers(node):
                advice = "broadcast_buffers=False, or one forward for each backward"
                yield Suspect(path, case.place(path, node), says, agrees, assumes, advice)


def _keeps_buffers(call: ast.Call) -> bool:
    return any(word.arg == "broadcast_buffers" for word in call.keywords)
