"""Puts one bug at a time into a healthy program: a text of its own for every place where it could be made.

The places are found on the `ast` and edited as bytes, so that nothing else of the layout moves.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

Node: TypeAlias = "ast.expr | ast.stmt"
Change: TypeAlias = "tuple[int, int, str]"
"""A stretch of the program in bytes, and what stands there instead."""

REDUCTIONS = ("mean", "sum")
LOSSES = ("mse_loss", "l1_loss", "smooth_l1_loss", "cross_entropy", "nll_loss", "binary_cross_entropy")
LOSS_CLASSES = (
    "MSELoss",
    "L1Loss",
    "SmoothL1Loss",
    "CrossEntropyLoss",
    "NLLLoss",
    "BCELoss",
    "BCEWithLogitsLoss",
)


@dataclass(frozen=True, slots=True)
class Injected:
    """A healthy program with one bug in it."""

    bug: str
    line: int
    text: str
    reduction: str = "sum"
    """What the project sums its losses up by."""


class Program:
    """A healthy program, its statements and where they stand."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree = ast.parse(text)
        self.lines = text.encode().splitlines(keepends=True)

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        return {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    @cached_property
    def blocks(self) -> list[list[ast.stmt]]:
        """Every run of statements: bodies, else-branches and the rest."""
        fields = [value for node in ast.walk(self.tree) for _, value in ast.iter_fields(node)]
        return [each for each in fields if isinstance(each, list) and each and isinstance(each[0], ast.stmt)]

    @cached_property
    def torch(self) -> str:
        """The name that the program gives torch."""
        imports = [node for node in ast.walk(self.tree) if isinstance(node, ast.Import)]
        imported = [each for node in imports for each in node.names]
        return next((each.asname or each.name for each in imported if each.name == "torch"), "torch")

    @cached_property
    def foreign(self) -> set[str]:
        """Names of imports and of classes."""
        nodes = list(ast.walk(self.tree))
        imports = [node for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom))]
        names = {each.asname or each.name for node in imports for each in node.names}
        return names | {node.name for node in nodes if isinstance(node, ast.ClassDef)}

    @cached_property
    def stands_in(self) -> set[int]:
        """The lines of classes that stand in for a package which others have written."""
        assigned = [node for node in ast.walk(self.tree) if isinstance(node, ast.Assign)]
        pairs = [(target, one.value) for one in assigned for target in one.targets]
        made = {ast.unparse(target) for target, value in pairs if _makes_module(value)}
        owned = [(t, v) for t, v in pairs if isinstance(t, ast.Attribute) and ast.unparse(t.value) in made]
        given = {value.id for _, value in owned if isinstance(value, ast.Name)}
        classes = [node for node in self.tree.body if isinstance(node, ast.ClassDef) and node.name in given]
        used = {one.id for each in classes for one in ast.walk(each) if isinstance(one, ast.Name)}
        classes += [node for node in self.tree.body if isinstance(node, ast.ClassDef) and node.name in used]
        return {line for one in classes for line in range(one.lineno, (one.end_lineno or one.lineno) + 1)}

    def scope(self, node: ast.AST) -> ast.AST:
        """The function, or the module, that a node runs in."""
        while not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.Module)):
            node = self.parents[node]
        return node

    def span(self, node: Node) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self._offset(node.lineno, node.col_offset), self._offset(node.end_lineno, node.end_col_offset)

    def code(self, node: Node) -> str:
        start, end = self.span(node)
        return self.text.encode()[start:end].decode()

    def whole_lines(self, statement: ast.stmt) -> tuple[int, int] | None:
        """The lines of a statement that stands alone on them."""
        start, end = self.span(statement)
        assert statement.end_lineno is not None
        first, last = self._offset(statement.lineno, 0), self._offset(statement.end_lineno + 1, 0)
        content = self.text.encode()
        before, behind = content[first:start].strip(), content[end:last].strip()
        return (first, last) if not before and (not behind or behind.startswith(b"#")) else None

    def indent(self, statement: ast.stmt) -> str:
        return self.lines[statement.lineno - 1][: statement.col_offset].decode()

    def changed(self, *changes: Change) -> str:
        content = self.text.encode()
        for start, end, new in sorted(changes, reverse=True):
            content = content[:start] + new.encode() + content[end:]
        return content.decode()

    def _offset(self, line: int, column: int) -> int:
        return sum(map(len, self.lines[: line - 1])) + column


def _makes_module(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and ast.unparse(value.func).endswith("ModuleType")


def inject(bug: str, text: str) -> Iterator[Injected]:
    """The program with a bug, once for each place that has room for it."""
    seen, program = {text}, Program(text)
    for injected in BUGS[bug](program):
        if injected.text not in seen and injected.line not in program.stands_in:
            seen.add(injected.text)
            yield injected


def zero_grad_deleted(program: Program) -> Iterator[Injected]:
    for block, statement in _calls(program, "zero_grad"):
        if lines := program.whole_lines(statement):
            left = "" if len(block) > 1 else program.indent(statement) + "pass\n"
            yield Injected("zero_grad deleted", statement.lineno, program.changed((*lines, left)))


def zero_grad_after_backward(program: Program) -> Iterator[Injected]:
    """A zero_grad that stood before a backward, or behind its step, stands between the two."""
    for block, statement in _calls(program, "zero_grad"):
        events = [each for each in block if each is statement or _is_event(each)]
        here = events.index(statement)
        before = events[here + 1 : here + 3]
        behind = events[max(here - 2, 0) : here]
        for pair in (before, behind):
            if len(pair) == 2 and _calls_method(pair[0], "backward") and _calls_method(pair[1], "step"):
                yield from _moved(program, "zero_grad after backward", statement, pair[0])


def _is_event(statement: ast.stmt) -> bool:
    return _calls_method(statement, "backward") or _calls_method(statement, "step")


def early_step(program: Program) -> Iterator[Injected]:
    """A step that stood behind two backwards stands between them."""
    for block, step in _calls(program, "step"):
        before = [each for each in block[: block.index(step)] if _calls_method(each, "backward")]
        for backward in before[:-1]:
            yield from _moved(program, "step before the second backward", step, backward)


def prediction_detached(program: Program) -> Iterator[Injected]:
    for node in _predictions(program):
        _, end = program.span(node)
        yield Injected("prediction detached", node.lineno, program.changed((end, end, ".detach()")))


def reduction_dropped(program: Program) -> Iterator[Injected]:
    """The reduction that makes the loss one number; those of its terms are other bugs."""
    for loss in _losses(program):
        node = _unscaled(loss)
        match node:
            case ast.Call(func=ast.Attribute(attr=name), args=[], keywords=[]) if name in REDUCTIONS:
                dot = program.text.encode().rindex(b".", 0, program.span(node.func)[1])
                text = program.changed((dot, program.span(node)[1], ""))
                yield Injected("reduction dropped", node.lineno, text, name)
    yield from _unreduced(program)


def forward_in_no_grad(program: Program) -> Iterator[Injected]:
    loaded = {program.parents[each] for each in _predictions(program) if isinstance(each, ast.Call)}
    built = {program.parents[each] for each in _losses(program)}
    for statement in loaded | built:
        if isinstance(statement, ast.Assign) and (lines := program.whole_lines(statement)):
            start, end = lines
            body = _indented(program, program.text.encode()[start:end].decode())
            head = f"{program.indent(statement)}with {program.torch}.no_grad():\n"
            text = program.changed((start, end, head + body))
            yield Injected("forward in no_grad", statement.lineno, text)


def rebuilt_from_item(program: Program) -> Iterator[Injected]:
    """A loss that is rebuilt from its number just before backward."""
    for _, statement in _calls(program, "backward"):
        root = statement.value.func.value  # type: ignore[attr-defined]
        if _weighted(statement):
            continue
        lines = program.whole_lines(statement)
        if isinstance(root, ast.Name) and lines:
            made = f"{root.id} = {program.torch}.tensor({root.id}.item(), requires_grad=True)\n"
            text = program.changed((lines[0], lines[0], program.indent(statement) + made))
            yield Injected("rebuilt from item", statement.lineno, text)


def _weighted(statement: ast.Expr) -> bool:
    """Whether backward is given a gradient: then what it runs on is no single number."""
    call = statement.value
    assert isinstance(call, ast.Call)
    return bool(call.args) or any(each.arg == "gradient" for each in call.keywords)


def written_in_place(program: Program) -> Iterator[Injected]:
    for node in ast.walk(program.tree):
        match node:
            case ast.Assign(targets=[target], value=ast.BinOp(left=left) as value):
                behind = program.text.encode()[program.span(left)[1] : program.span(node)[1]].decode().strip()
                same = (
                    ast.unparse(target) == ast.unparse(left) and value.end_col_offset == node.end_col_offset
                )
                if same and behind[0] in "+-*/" and behind[1] == " ":
                    new = f"{program.code(target)} {behind[0]}={behind[1:]}"
                    text = program.changed((*program.span(node), new))
                    yield Injected("written in place", node.lineno, text)


BUGS: dict[str, Callable[[Program], Iterator[Injected]]] = {
    "zero_grad deleted": zero_grad_deleted,
    "zero_grad after backward": zero_grad_after_backward,
    "step before the second backward": early_step,
    "prediction detached": prediction_detached,
    "reduction dropped": reduction_dropped,
    "forward in no_grad": forward_in_no_grad,
    "rebuilt from item": rebuilt_from_item,
    "written in place": written_in_place,
}


def _calls(program: Program, method: str) -> Iterator[tuple[list[ast.stmt], ast.Expr]]:
    """Statements that only call this method, with the block that they stand in."""
    for block in program.blocks:
        for statement in block:
            if isinstance(statement, ast.Expr) and _calls_method(statement, method):
                yield block, statement


def _calls_method(statement: ast.stmt, method: str) -> bool:
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=name))):
            return name == method
    return False


def _moved(program: Program, bug: str, statement: ast.stmt, behind: ast.stmt) -> Iterator[Injected]:
    """The statement, cut out and put behind another one."""
    lines, target = program.whole_lines(statement), program.whole_lines(behind)
    if lines and target:
        text = program.text.encode()[lines[0] : lines[1]].decode()
        new = text if text.endswith("\n") else text + "\n"
        yield Injected(bug, statement.lineno, program.changed((*lines, ""), (target[1], target[1], new)))


def _losses(program: Program) -> list[ast.expr]:
    """The expressions whose value is backpropagated."""
    found: list[ast.expr] = []
    for node in ast.walk(program.tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="backward")):
                found += _assigned(program, name, program.scope(node))
            case ast.Call(func=ast.Attribute(value=root, attr="backward")):
                found.append(root)
    return found


def _assigned(program: Program, name: str, scope: ast.AST) -> list[ast.expr]:
    """What a name is assigned in a function."""
    values: list[ast.expr] = []
    for node in ast.walk(scope):
        match node:
            case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
                if program.scope(node) is scope:
                    values.append(value)
    return values


def _predictions(program: Program) -> list[ast.expr]:
    """What the losses are computed from: results of the program's own models, where made and where used."""
    found: dict[ast.expr, None] = {}
    for loss in _losses(program):
        scope = program.scope(loss)
        for node in ast.walk(loss):
            if isinstance(node, ast.Name) and not _called(program, node) and node is not loss:
                made = [each for each in _assigned(program, node.id, scope) if _of_a_model(program, each)]
                found |= dict.fromkeys([node, *made] if made else [])
            elif isinstance(node, ast.Call) and _of_a_model(program, node):
                found[node] = None
    return list(found)


def _called(program: Program, name: ast.Name) -> bool:
    parent = program.parents[name]
    return isinstance(parent, ast.Call) and parent.func is name


def _of_a_model(program: Program, value: ast.expr) -> bool:
    """Say whether a value comes from calling no import, no class, no method of a tensor and no builtin."""
    match value:
        case ast.Call(func=ast.Name(id=name)):
            return name not in program.foreign and not hasattr(builtins, name)
        case ast.Call(func=ast.Attribute(value=ast.Name(id="self"))):
            return True
    return False


def _unscaled(loss: ast.expr) -> ast.expr:
    """The expression whose multiple a loss is."""
    match loss:
        case ast.UnaryOp(operand=inner):
            return _unscaled(inner)
        case ast.BinOp(left=ast.Constant(), op=ast.Mult(), right=inner):
            return _unscaled(inner)
        case ast.BinOp(left=inner, op=ast.Mult() | ast.Div(), right=ast.Constant()):
            return _unscaled(inner)
    return loss


def _unreduced(program: Program) -> Iterator[Injected]:
    """Loss functions and loss classes that are told not to reduce."""
    for node in ast.walk(program.tree):
        match node:
            case ast.Call(func=ast.Attribute(attr=name), keywords=keywords) if name in LOSSES + LOSS_CLASSES:
                if any(each.arg == "reduction" for each in keywords):
                    continue
                end = program.span(node)[1] - 1
                comma = ", " if node.args or keywords else ""
                text = program.changed((end, end, f'{comma}reduction="none"'))
                yield Injected("reduction dropped", node.lineno, text, "mean")


def _indented(program: Program, lines: str) -> str:
    unit = "\t" if "\n\t" in program.text else "    "
    return "".join(unit + line for line in lines.splitlines(keepends=True))
