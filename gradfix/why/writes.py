"""In-place writes as they stand in the text, and which operation made what they write."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from gradfix.tape.effects.nodes import INPLACE_AT, MADE_BY, OPERATORS
from gradfix.why.code import Scope, bound, called, dotted, holder, statements, targets
from gradfix.why.flow import Flow

Form: TypeAlias = Literal["augmented", "item", "method", "keyword", "module"]
NO_WRITES = frozenset({"requires_grad_", "retain_grad_", "share_memory_", "train_", "eval_", "_"})
UNNOTICED = re.compile(r"\.data\b|\.grad\b|\.detach\(\)\.numpy\(\)|\.items\b")
"""What bumps no version of a tensor in the graph, or writes to gradients."""
NOT_A_TENSOR = re.compile(
    r"^(?:[\d.+-]+|\[.*\]|\{.*\}|(?:dict|list|set|len|int|str|range|defaultdict|OrderedDict|Counter|time\.\w+)\(.*\)"
    r"|(?:np|numpy)\..*|['\"f].*['\"]|None|True|False|.*\.(?:item|tolist|numpy|size|numel|cpu\(\)\.numpy)\(.*\))$",
    re.S,
)


@dataclass(frozen=True, slots=True)
class Write:
    """A write in place."""

    node: ast.stmt | ast.expr
    statement: ast.stmt
    name: str
    """What holds the written tensor: `x`, `self.h`."""
    form: Form


def writes(scope: Scope) -> Iterator[Write]:
    """The writes of a scope that autograd would notice, as far as the text tells."""
    plain = plain_names(scope)
    for statement in statements(scope):
        for write in _in(statement):
            named = bool(write.name) and write.name not in plain and not _of_a_collection(scope, write)
            if named and not UNNOTICED.search(_written(write)):
                yield write


def _of_a_collection(scope: Scope, write: Write) -> bool:
    """Whether a write goes to a list or to an entry of a dict, as its own text tells."""
    if isinstance(write.node, ast.AugAssign):
        return isinstance(write.node.value, ast.List | ast.ListComp | ast.JoinedStr | ast.Tuple)
    target = write.node.targets[0] if isinstance(write.node, ast.Assign) else None
    while isinstance(target, ast.Attribute):
        target = target.value
    if not isinstance(target, ast.Subscript):
        return False
    key = target.slice
    if isinstance(key, ast.Constant) and isinstance(key.value, str):
        return True
    around = (each for each in statements(scope) if isinstance(each, ast.For))
    keys = {name for each in around if _keys(each, write.name) for name in bound(each)}
    return isinstance(key, ast.Name) and key.id in keys


def _keys(loop: ast.For, name: str) -> bool:
    """Whether a loop goes over the keys of what a name holds."""
    over = loop.iter
    if isinstance(over, ast.Call) and called(over) in ("keys", "items", "list", "sorted"):
        over = over.func.value if isinstance(over.func, ast.Attribute) else over.args[0]
    return holder(over) == name


def _written(write: Write) -> str:
    if isinstance(write.node, ast.AugAssign):
        return ast.unparse(write.node.target)
    if isinstance(write.node, ast.Assign):
        return ast.unparse(write.node.targets[0])
    return ast.unparse(write.node.func) if isinstance(write.node, ast.Call) else ""


def _in(statement: ast.stmt) -> Iterator[Write]:
    if isinstance(statement, ast.AugAssign):
        yield Write(statement, statement, holder(statement.target), "augmented")
    elif isinstance(statement, ast.Assign):
        for target in targets(statement):
            if isinstance(target, ast.Subscript):
                yield Write(statement, statement, holder(target), "item")
    for call in _calls(statement):
        name = called(call)
        if name.endswith("_") and not name.startswith("_") and name not in NO_WRITES:
            if isinstance(call.func, ast.Attribute) and not dotted(call.func.value).endswith("init"):
                yield Write(call, statement, holder(call.func.value), "method")
        elif _flagged(call) and call.args and not name[:1].isupper():
            yield Write(call, statement, holder(call.args[0]), "keyword")


def _calls(statement: ast.stmt) -> Iterator[ast.Call]:
    """The calls of a statement's own line, those of statements in it left out."""
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop(0)
        inner = [each for each in ast.iter_child_nodes(node) if not isinstance(each, ast.stmt)]
        waiting += [each for each in inner if not isinstance(each, ast.Lambda)]
        if isinstance(node, ast.Call):
            yield node


def _flagged(call: ast.Call) -> bool:
    """Whether a call says `inplace=True`."""
    return any(
        word.arg == "inplace" and isinstance(word.value, ast.Constant) and word.value.value is True
        for word in call.keywords
    )


def _pairs(statement: ast.stmt, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What a statement assigns to with what it gets, tuples taken apart on both sides."""
    every = list(targets(statement))
    parts = value.elts if isinstance(value, ast.Tuple) and len(value.elts) == len(every) else ()
    yield from zip(every, parts or [value] * len(every), strict=True)


def counts(statement: ast.AST) -> bool:
    """Whether a statement adds a whole number, as counters do."""
    value = statement.value if isinstance(statement, ast.AugAssign) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, int)


def plain_names(scope: Scope) -> set[str]:
    """The names that hold numbers, strings, lists or arrays wherever the scope binds them."""
    plain: set[str] = set()
    for _ in range(2):  # what is added to a number may be a number by a later line's word
        kinds: dict[str, set[bool]] = {}
        for name, value in _bindings(scope):
            kinds.setdefault(name, set()).add(_is_plain(value, plain))
        plain = {name for name, found in kinds.items() if found == {True}}
    return plain


def _bindings(scope: Scope) -> Iterator[tuple[str, ast.expr]]:
    """What is bound in a scope, with what is added to it."""
    for statement in statements(scope):
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            for target, value in _pairs(statement, statement.value):
                if (name := holder(target)) and not isinstance(target, ast.Subscript):
                    yield name, value
        elif isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            yield from (
                () if isinstance(statement.value, ast.Constant) else [(statement.target.id, statement.value)]
            )


def _is_plain(value: ast.expr, plain: set[str]) -> bool:
    known = isinstance(value, ast.Name) and value.id in plain
    return known or NOT_A_TENSOR.match(ast.unparse(value)) is not None


def modules_in_place(tree: ast.Module) -> Iterator[ast.Call]:
    """The calls that build a module which writes over its input: `nn.ReLU(inplace=True)`, `nn.ReLU(True)`."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and called(node)[:1].isupper()
            and (_flagged(node) or _positional(node))
        ):
            yield node


def switches_in_place(statement: ast.Assign) -> bool:
    """Whether a statement switches a module to writing over its input: `m.inplace = True`."""
    target, value = statement.targets[0], statement.value
    on = isinstance(value, ast.Constant) and value.value is True
    return on and isinstance(target, ast.Attribute) and target.attr == "inplace"


def _positional(call: ast.Call) -> bool:
    at = INPLACE_AT.get(called(call))
    if at is None or len(call.args) <= at:
        return False
    given = call.args[at]
    return isinstance(given, ast.Constant) and given.value is True


def made_by(flow: Flow, scope: Scope, name: str, line: int) -> set[str]:
    """Words for what made a name's value last before a line: operations, functions, classes of layers."""
    own = [each for each in statements(scope) if name in bound(each) and each.lineno < line]
    own = [each for each in own if isinstance(each, ast.Assign | ast.AugAssign | ast.AnnAssign)]
    return words(flow, own[-1]) if own else set()


def words(flow: Flow, statement: ast.stmt) -> set[str]:
    """Words for the operations of a statement's value, the last of a chain of calls first of all."""
    found: set[str] = set()
    if isinstance(statement, ast.AugAssign):
        found.add(OPERATORS.get(type(statement.op), ""))
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
        return {"item"}
    for node in ast.walk(getattr(statement, "value", statement) or statement):
        if isinstance(node, ast.BinOp):
            found.add(OPERATORS.get(type(node.op), ""))
        elif isinstance(node, ast.Subscript):
            found.add("subscript")
        elif isinstance(node, ast.Call):
            name = called(node) or _element(node)
            found |= {name.lower().replace("_", ""), *(cls.lower() for cls in flow.built.get(name, ()))}
    return found - {""}


def _element(call: ast.Call) -> str:
    """What holds the module of which an element is called: `layers` for `self.layers[0](x)`."""
    return dotted(call.func.value).rpartition(".")[2] if isinstance(call.func, ast.Subscript) else ""


def fits(operation: str, made: set[str]) -> bool:
    """Whether words for what made a value can mean an operation."""
    if not operation:
        return False
    beginnings = (operation, *MADE_BY.get(operation, ()))
    return any(word.startswith(beginnings) for word in made)
