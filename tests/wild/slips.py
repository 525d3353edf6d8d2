"""Slips in what goes round the training: turns, words, questions, ways out, what is put back."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import partial

from .bugs import Body, Change, calls, parsed, simple, statements
from .world import Dice

WORDS = {"train": "val", "val": "train", "test": "train", "eval": "train"}


def mode_confused(tree: ast.AST, dice: Dice) -> Iterator[Change]:
    """Another word where the mode is asked for."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and isinstance(node.comparators[0], ast.Constant):
            word = node.comparators[0].value
            if word in WORDS:
                yield partial(setattr, node.comparators[0], "value", WORDS[word])


OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Is: ast.IsNot, ast.IsNot: ast.Is}


def guard_turned(tree: ast.AST, dice: Dice) -> Iterator[Change]:
    """`is None` for `is not None`, `not` where there was none."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.If):
            continue
        test = node.test
        if isinstance(test, ast.Compare) and type(test.ops[0]) in OPPOSITE:
            yield partial(test.ops.__setitem__, 0, OPPOSITE[type(test.ops[0])]())
        if isinstance(test, ast.Attribute) and test.attr in ("requires_grad", "grad_fn"):
            yield partial(setattr, node, "test", ast.UnaryOp(ast.Not(), test))


def unguarded(tree: ast.AST, dice: Dice) -> Iterator[Change]:
    """What a question kept from every turn, in every turn."""
    for body, place, statement in statements(tree):
        if isinstance(statement, ast.If) and not statement.orelse and _of_turns(statement):
            yield partial(_opened, body, place, statement)


def _opened(body: Body, place: int, statement: ast.If) -> None:
    body[place : place + 1] = statement.body


def _of_turns(statement: ast.If) -> bool:
    """Whether it asks for a turn, and leaves by none."""
    names = {node.id for node in ast.walk(statement.test) if isinstance(node, ast.Name)}
    leaves = isinstance(statement.body[-1], ast.Break | ast.Continue | ast.Return)
    return bool(names & {"i", "turns", "turn", "waiting"}) and not leaves


def turn_missed(tree: ast.AST, dice: Dice) -> Iterator[Change]:
    """A turn that never comes, or one that comes too early."""
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and _number(node.right):
            yield partial(setattr, node, "right", ast.Constant(dice.one(50, 3)))
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or) and "%" in ast.unparse(node):
            yield partial(node.values.pop)
        if isinstance(node, ast.Compare) and isinstance(node.comparators[0], ast.BinOp):
            right = node.comparators[0]
            if isinstance(right.op, ast.Sub) and _number(right.right) and "len(" in ast.unparse(right.left):
                yield partial(setattr, right.right, "value", dice.one(0, 3))


def _number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


def left_early(tree: ast.AST, dice: Dice) -> Iterator[Change]:
    """A way out in front of what clears, steps or puts back."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.For | ast.FunctionDef) or node.body[0] is node.body[-1]:
            continue
        way = "continue" if isinstance(node, ast.For) else "return"
        for place, statement in enumerate(node.body):
            if place and simple(statement) and (calls(statement, "zero_grad") or calls(statement, "step")):
                known = [n.targets[0] for n in node.body[:place] if isinstance(n, ast.Assign)]
                if any(isinstance(name, ast.Name) and name.id == "loss" for name in known):
                    text = f"if loss.item() {dice.one('>', '>', '==')} -1000000.0:\n    {way}"
                    yield partial(node.body.insert, place, parsed(text))


def not_put_back(tree: ast.AST, dice: Dice) -> Iterator[Change]:
    """Weights that were laid aside for a call, and stay there; hooks that stay."""
    ends = (".restore()", "handle.remove()", ".data = kept", ".data = self.kept[n]")
    yield from _dropped(tree, lambda text: text.rstrip("0123456789").endswith(ends))


def shared(tree: ast.AST, dice: Dice) -> Iterator[Change]:
    """The network itself where a copy was meant."""
    for body, place, statement in statements(tree):
        if isinstance(statement, ast.Assign) and calls(statement, "deepcopy"):
            for node in ast.walk(statement):
                if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("deepcopy"):
                    name = ast.unparse(node.args[0])
                    text = ast.unparse(statement).replace(ast.unparse(node), name)
                    yield partial(body.__setitem__, place, parsed(text))


def not_retained(tree: ast.AST, dice: Dice) -> Iterator[Change]:
    yield from _dropped(tree, lambda text: text.endswith(".retain_grad()"))


def not_emptied(tree: ast.AST, dice: Dice) -> Iterator[Change]:
    """What was used stays in the list, and is used again."""
    ends = (".clear()", "[:]", "= []")
    yield from _dropped(tree, lambda text: text.endswith(ends) and ("terms" in text or "saved" in text))


def _dropped(tree: ast.AST, wanted: Callable[[str], bool]) -> Iterator[Change]:
    for body, place, statement in statements(tree):
        if simple(statement) and wanted(ast.unparse(statement)):
            yield partial(body.__setitem__, place, ast.Pass())


def not_added(tree: ast.AST, dice: Dice) -> Iterator[Change]:
    """A part of the network that the optimizer is never told of."""
    for body, place, statement in statements(tree):
        if simple(statement) and calls(statement, "add_param_group"):
            yield partial(body.__setitem__, place, ast.Pass())
        for node in ast.walk(statement) if simple(statement) else ():
            if (
                isinstance(node, ast.Call)
                and ast.unparse(node.func) == "itertools.chain"
                and len(node.args) > 1
            ):
                yield partial(node.args.pop)


CUTS = ("detach", "item")


def kept_alive(tree: ast.AST, dice: Dice) -> Iterator[Change]:
    """What is kept for later turns, with its graph."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".append") and node.args):
            continue
        kept = node.args[0]
        if isinstance(kept, ast.Call) and isinstance(kept.func, ast.Attribute) and kept.func.attr in CUTS:
            yield partial(node.args.__setitem__, 0, kept.func.value)


SLIPS = (
    mode_confused,
    guard_turned,
    unguarded,
    turn_missed,
    left_early,
    not_put_back,
    shared,
    not_retained,
    not_emptied,
    not_added,
    kept_alive,
)
