"""What is looked for in the text where the tape is silent: a function for each reading of the messages."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping

from gradfix.tape.effects.nodes import EXPANDING
from gradfix.why.code import called, dotted
from gradfix.why.leaves import leaf_writes, leafless_results
from gradfix.why.messages import Reading
from gradfix.why.overwrites import overwriting
from gradfix.why.severed import converting, cutting, without_gradient
from gradfix.why.steps import keeping, stepping
from gradfix.why.suspects import Agreement, Case, Suspect
from gradfix.why.twice import carried, freed_before

RAISED_WITHIN = frozenset({"shared memory"})
"""Messages that a backward may raise about its own writes, of which the line that called it says nothing."""
COLLECTIONS: Mapping[str, tuple[type[ast.expr], ...]] = {
    "tuple": (ast.Tuple,), "list": (ast.List, ast.ListComp), "dict": (ast.Dict, ast.DictComp),
}  # fmt: skip
"""What an expression is that makes a collection, by the name of its type."""
OF_A_WRAPPER = ("strategy", "find_unused_parameters")
KEPT_OUT = re.compile(r"\.item\(|\.detach\(|\.data\b|float\(|\.numpy\(|\.tolist\(")
FILLED = "assuming that what is appended requires grad"
NO_REDUCTION = re.compile(r"reduction\s*=\s*['\"]none['\"]|reduce\s*=\s*False")


def raising(case: Case) -> Iterator[Suspect]:
    """The innermost line of the project on the way to what was raised."""
    spot = case.raised
    statement = case.statement(spot) if spot else None
    if spot is None or statement is None:
        return
    means = case.said.message
    if not case.reached or (case.walks(statement) and not means.raises_there):
        return
    if case.walks(statement) and means.name in RAISED_WITHIN:
        return
    sure = means.raises_there and re.search(means.shows, ast.unparse(statement)) is not None
    points = 8 if sure and spot.verified else 6 if sure else 4
    yield Suspect(
        spot.path, case.place(spot.path, statement), f"`{case.text(spot.path, statement)}`: {means.means}",
        (Agreement(points, "torch raised here"),), (), means.then, raised=sure and spot.verified,
    )  # fmt: skip


def filling(case: Case) -> Iterator[Suspect]:
    """Where tensors with a graph are put into a list that is an array later."""
    for step in case.way:
        call = step.statement.value if isinstance(step.statement, ast.Expr) else None
        if called(call) == "append" and not KEPT_OUT.search(ast.unparse(step.statement)):
            says = f"`{case.text(step.path, step.statement)}` keeps a tensor with its graph"
            agrees = (Agreement(6 - step.depth, "what is converted is filled here"),)
            place = case.place(step.path, step.statement)
            yield Suspect(step.path, place, says, agrees, (FILLED,), "append `.item()` or `.detach()` of it")


def reducing(case: Case) -> Iterator[Suspect]:
    """Where a loss is made that keeps its elements."""
    for step in case.way:
        text = ast.unparse(step.statement)
        if NO_REDUCTION.search(text):
            yield Suspect(
                step.path, case.place(step.path, step.statement),
                f"`{case.text(step.path, step.statement)}` asks for no reduction",
                (Agreement(6 - step.depth, "the loss is computed from it"),), (), "leave the reduction on",
            )  # fmt: skip
    yield from _built(
        case, ("DataParallel",), "each device returns a loss of its own", 3, "`.mean()` of the losses"
    )


def returning(case: Case) -> Iterator[Suspect]:
    """Functions on the way that return what has no backward: several values, or a collection of them."""
    kinds = COLLECTIONS.get(case.said.facts.get("type", ""), ())
    for step in case.way:
        value = step.statement.value if isinstance(step.statement, ast.Return) else None
        if isinstance(value, kinds):
            yield Suspect(
                step.path, case.place(step.path, step.statement),
                f"`{case.text(step.path, step.statement)}` returns more than the loss",
                (Agreement(max(7 - step.depth, 1), "the loss is what it returns"),), (),
                "take it apart where it is called, or return the loss alone",
            )  # fmt: skip


def wrapping(case: Case) -> Iterator[Suspect]:
    """Where the model is wrapped for several processes."""
    name, then = case.said.message.name, case.said.message.then
    if name == "overwritten":
        yield from keeping(case)
        return
    yield from _built(case, ("DistributedDataParallel", "DDP"), "wraps the model", 6, then)
    if name == "marked twice":
        again = ("checkpoint", "gradient_checkpointing_enable", "checkpoint_sequential")
        yield from _built(case, again, "runs a part of the model anew in backward", 5, "use_reentrant=False")
    for path, source in case.flow.sources.items():
        for node in ast.walk(source.tree):
            where = _wrapper_told(node)
            if where is not None:
                says = f"`{case.text(path, where)}` says how the model is wrapped"
                yield Suspect(
                    path,
                    case.place(path, where),
                    says,
                    (Agreement(6, "the message is of this wrapper"),),
                    (),
                    then,
                )


def _wrapper_told(node: ast.AST) -> ast.expr | None:
    """What says how a wrapper works: an argument of it, or a value kept under an argument's name."""
    if isinstance(node, ast.keyword) and node.arg in OF_A_WRAPPER:
        return None if isinstance(node.value, ast.Name) and node.value.id == node.arg else node.value
    named = isinstance(node, ast.Assign) and any(dotted(each) in OF_A_WRAPPER for each in node.targets)
    return node.value if isinstance(node, ast.Assign) and named else None


def _built(case: Case, names: tuple[str, ...], does: str, points: int, advice: str) -> Iterator[Suspect]:
    for path, source in case.flow.sources.items():
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Call) and called(node) in names and dotted(node.func):
                says = f"`{case.text(path, node)}`: {does}"
                yield Suspect(
                    path,
                    case.place(path, node),
                    says,
                    (Agreement(points, "the message is of it"),),
                    (),
                    advice,
                )


def calling(case: Case) -> Iterator[Suspect]:
    """Where an operation without a derivative is called."""
    operation = case.said.operation
    for step in case.way:
        for node in ast.walk(step.statement):
            if isinstance(node, ast.expr) and _is(operation, node):
                says = f"`{case.text(step.path, node)}` has no derivative"
                agrees = (Agreement(7, f"torch names {operation}, on the way to the loss"),)
                place = case.place(step.path, node)
                yield Suspect(step.path, place, says, agrees, (), case.said.message.then)


def _is(operation: str, node: ast.expr) -> bool:
    """Whether an expression is what a node is called after."""
    floors = isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv)
    return (floors and "floor" in operation) or called(node).replace("_", "").lower() == (operation or None)


def expanding(case: Case) -> Iterator[Suspect]:
    """Where several elements of a tensor become one piece of memory."""
    for step in case.way:
        for node in ast.walk(step.statement):
            if isinstance(node, ast.Call) and called(node) in EXPANDING:
                yield Suspect(
                    step.path, case.place(step.path, node),
                    f"`{case.text(step.path, node)}` lays several elements on one piece of memory",
                    (Agreement(max(6 - step.depth, 1), "the loss is computed from it"),),
                    ("assuming that its result or its gradient is written in place",), "`.clone()` it",
                )  # fmt: skip


def rereading(case: Case) -> Iterator[Suspect]:
    """What two backwards share."""
    yield from freed_before(case)


OF_A_BACKWARD: frozenset[Reading] = frozenset({"steps", "again", "carried"})
"""What is read around the backward that failed."""
READINGS: Mapping[Reading, Callable[[Case], Iterator[Suspect]]] = {
    "raised": raising,
    "writes": overwriting,
    "steps": stepping,
    "again": rereading,
    "carried": carried,
    "cuts": cutting,
    "reduction": reducing,
    "wrapped": wrapping,
    "calls": calling,
    "expands": expanding,
    "filled": filling,
    "no gradient": without_gradient,
    "leaf writes": leaf_writes,
    "results": leafless_results,
    "returns": returning,
    "converted": converting,
}
