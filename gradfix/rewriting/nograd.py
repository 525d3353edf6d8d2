"""Puts updates of leaves under `with torch.no_grad():`, the ones that stand together in one block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import libcst as cst

from gradfix.rewriting.names import binds, walk
from gradfix.rule import Decline, Edit, Fix
from gradfix.tree import Tree

Update: TypeAlias = Callable[[cst.BaseSmallStatement], "list[cst.BaseSmallStatement] | None"]
"""What a small statement becomes under no_grad; None: it is no update."""

LOOKUPS = ("parameters", "named_parameters", "buffers", "values", "items", "keys")
PAIRINGS = ("zip", "enumerate", "list", "tuple", "reversed", "sorted")
NO_TORCH = Decline("put the statement under `with torch.no_grad():`; torch has no name in this file")


def under_no_grad(tree: Tree, small: cst.BaseSmallStatement, update: Update) -> Fix | Decline:
    """The fix that wraps a small statement, and the updates directly after it."""
    context = _context(tree)
    if context is None:
        return NO_TORCH
    name, imports = context
    edits = _wrapped(tree, small, update, name)
    new = update(small) or [small]
    says = "; ".join(" ".join(tree.code(each).rstrip("; ").split()) for each in new)
    return Fix((*imports, *edits), f"with {name}(): {says}")


def in_no_grad(tree: Tree, node: cst.CSTNode) -> bool:
    """Whether a `with` or a decorator around the node turns gradients off."""
    for above in tree.ancestors(node):
        if isinstance(above, cst.With) and any(_turns_off(tree, item.item) for item in above.items):
            return True
        if isinstance(above, cst.FunctionDef):
            return any(_turns_off(tree, each.decorator) for each in above.decorators)
    return False


def _turns_off(tree: Tree, node: cst.CSTNode) -> bool:
    name = tree.code(node).partition("(")[0].rpartition(".")[2]
    return name in ("no_grad", "inference_mode")


def _wrapped(tree: Tree, small: cst.BaseSmallStatement, update: Update, name: str) -> list[Edit]:
    holder = tree.parent(small)
    if isinstance(holder, cst.SimpleStatementSuite):
        return _in_one_line_body(tree, small, holder, update, name)
    assert isinstance(holder, cst.SimpleStatementLine)
    if len(holder.body) > 1:
        return [Edit(holder, cst.FlattenSentinel(_split(holder, small, update, name)))]
    run = _run(tree, holder, update)
    loop = _whole_loop(tree, run)
    if loop is not None:
        body = [_updated(line, update) for line in run]
        flat = [line for each in body for line in each]
        inner = loop.with_changes(body=loop.body.with_changes(body=flat), leading_lines=())
        return [Edit(loop, _with(name, [inner], loop.leading_lines))]
    lines = [line for each in run for line in _updated(each, update)]
    beside = _beside(tree, run, name)
    if beside is not None:
        gone = [Edit(line, cst.FlattenSentinel([])) for line in run]
        return [Edit(beside, _joining(tree, beside, run, lines)), *gone]
    first = lines[0].with_changes(leading_lines=())
    block = _with(name, [first, *lines[1:]], holder.leading_lines)
    return [Edit(holder, block), *(Edit(line, cst.FlattenSentinel([])) for line in run[1:])]


def _run(tree: Tree, line: cst.SimpleStatementLine, update: Update) -> list[cst.SimpleStatementLine]:
    """The line and the updates that follow it directly."""
    block = tree.block(line)
    at = next(i for i, each in enumerate(block) if each is line)
    run = [line]
    for each in block[at + 1 :]:
        lone = isinstance(each, cst.SimpleStatementLine) and len(each.body) == 1
        if not lone or not isinstance(each, cst.SimpleStatementLine) or update(each.body[0]) is None:
            break
        run.append(each)
    return run


def _beside(tree: Tree, run: Sequence[cst.SimpleStatementLine], name: str) -> cst.With | None:
    """The block of the same kind that stands directly before or behind these lines."""
    block = tree.block(run[0])
    at = next(i for i, each in enumerate(block) if each is run[0])
    for each in (*block[at - 1 : at], *block[at + len(run) : at + len(run) + 1]):
        if isinstance(each, cst.With) and isinstance(each.body, cst.IndentedBlock) and len(each.items) == 1:
            item = each.items[0]
            if item.asname is None and tree.code(item.item) == f"{name}()":
                return each
    return None


def _joining(
    tree: Tree, beside: cst.With, run: Sequence[cst.SimpleStatementLine], lines: list[cst.SimpleStatementLine]
) -> cst.With:
    """A block with these lines in it too."""
    block, own = tree.block(run[0]), list(beside.body.body)
    places = [i for i, each in enumerate(block) if each is beside or each is run[0]]
    if block[places[0]] is beside:
        return beside.with_changes(body=beside.body.with_changes(body=[*own, *map(_inside, lines)]))
    first, second = lines[0].with_changes(leading_lines=()), own[0]
    above = [*beside.leading_lines, *_leading(second)]  # type: ignore[arg-type]
    own[0] = second.with_changes(leading_lines=[_blank(each) for each in above])
    body = [first, *map(_inside, lines[1:]), *own]
    return beside.with_changes(body=beside.body.with_changes(body=body), leading_lines=run[0].leading_lines)


def _inside(line: cst.SimpleStatementLine) -> cst.SimpleStatementLine:
    return line.with_changes(leading_lines=[_blank(each) for each in line.leading_lines])


def _updated(line: cst.SimpleStatementLine, update: Update) -> list[cst.SimpleStatementLine]:
    """A line with its statement replaced; the end-of-line comment goes with the last of several."""
    new = update(line.body[0]) or [line.body[0]]
    lines = [cst.SimpleStatementLine([each]) for each in new[:-1]]
    lines.append(line.with_changes(body=[new[-1]]))
    if len(lines) > 1:
        lines[0] = lines[0].with_changes(leading_lines=line.leading_lines)
        lines[-1] = lines[-1].with_changes(leading_lines=())
    return lines


def _whole_loop(tree: Tree, run: Sequence[cst.SimpleStatementLine]) -> cst.For | None:
    """The loop whose body is nothing but these updates."""
    block = tree.parent(run[0])
    loop = tree.parent(block) if isinstance(block, cst.IndentedBlock) else None
    if not isinstance(loop, cst.For) or loop.orelse is not None or len(tree.block(run[0])) != len(run):
        return None
    return loop if _lookup(loop.iter) else None


def _lookup(node: cst.BaseExpression) -> bool:
    """Whether an expression only fetches tensors, so that no_grad makes no difference to it."""
    if isinstance(node, (cst.List, cst.Tuple)):
        return all(_lookup(element.value) for element in node.elements)
    if isinstance(node, cst.Attribute):
        return _lookup(node.value)
    if not isinstance(node, cst.Call):
        return isinstance(node, cst.Name)
    if isinstance(node.func, cst.Attribute):
        return node.func.attr.value in LOOKUPS and _lookup(node.func.value)
    pairing = isinstance(node.func, cst.Name) and node.func.value in PAIRINGS
    return pairing and all(_lookup(arg.value) for arg in node.args)


def _in_one_line_body(
    tree: Tree, small: cst.BaseSmallStatement, suite: cst.SimpleStatementSuite, update: Update, name: str
) -> list[Edit]:
    """`if x: w += 1`: the loop as a whole, or the body as a block."""
    compound = tree.parent(suite)
    if (
        isinstance(compound, cst.For)
        and compound.orelse is None
        and len(suite.body) == 1
        and _lookup(compound.iter)
    ):
        new = update(small) or [small]
        inner = compound.with_changes(body=suite.with_changes(body=_joined(new)), leading_lines=())
        return [Edit(compound, _with(name, [inner], compound.leading_lines))]
    line = cst.SimpleStatementLine(suite.body, trailing_whitespace=suite.trailing_whitespace)
    return [Edit(suite, cst.IndentedBlock(_split(line, small, update, name)))]


def _joined(smalls: Sequence[cst.BaseSmallStatement]) -> list[cst.BaseSmallStatement]:
    semicolon = cst.Semicolon(whitespace_after=cst.SimpleWhitespace(" "))
    return [*(each.with_changes(semicolon=semicolon) for each in smalls[:-1]), smalls[-1]]


def _split(
    line: cst.SimpleStatementLine, small: cst.BaseSmallStatement, update: Update, name: str
) -> list[cst.BaseStatement]:
    """A line of several statements: those before, the update in its block, those after."""
    at = next(i for i, each in enumerate(line.body) if each is small)
    inside = [cst.SimpleStatementLine([_alone(each)]) for each in update(small) or [small]]
    parts: list[cst.BaseStatement] = [_with(name, inside)]
    if at:
        before = [*line.body[: at - 1], _alone(line.body[at - 1])]
        parts.insert(0, cst.SimpleStatementLine(before))
    if at + 1 < len(line.body):
        parts.append(
            cst.SimpleStatementLine(line.body[at + 1 :], trailing_whitespace=line.trailing_whitespace)
        )
    else:
        inside[-1] = inside[-1].with_changes(trailing_whitespace=line.trailing_whitespace)
        parts[-1] = _with(name, inside)
    parts[0] = parts[0].with_changes(leading_lines=line.leading_lines)
    return parts


def _alone(small: cst.BaseSmallStatement) -> cst.BaseSmallStatement:
    return small.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)


def _with(
    name: str, body: Sequence[cst.BaseStatement], leading_lines: Sequence[cst.EmptyLine] = ()
) -> cst.With:
    item = cst.WithItem(cst.parse_expression(f"{name}()"))
    body = [line.with_changes(leading_lines=[_blank(each) for each in _leading(line)]) for line in body]
    return cst.With([item], cst.IndentedBlock(body), leading_lines=leading_lines)


def _leading(line: cst.BaseStatement) -> Sequence[cst.EmptyLine]:
    assert isinstance(line, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
    return line.leading_lines


def _blank(line: cst.EmptyLine) -> cst.EmptyLine:
    """A blank line that stays blank when its block is indented."""
    return line if line.comment else line.with_changes(indent=False)


def _context(tree: Tree) -> tuple[str, list[Edit]] | None:
    """How this file says `torch.no_grad`, and the import that it needs for that."""
    if tree.torch is not None:
        return f"{tree.torch}.no_grad", []
    imported = next(_no_grad_itself(tree), None)
    if imported is not None:
        return imported, []
    if "torch" in binds(tree.module):
        return None
    for line in tree.module.body:
        if isinstance(line, cst.SimpleStatementLine) and _from_torch(line):
            new = cst.SimpleStatementLine(
                [cst.Import([cst.ImportAlias(cst.Name("torch"))])], leading_lines=line.leading_lines
            )
            return "torch.no_grad", [
                Edit(line, cst.FlattenSentinel([new, line.with_changes(leading_lines=())]))
            ]
    return None


def _no_grad_itself(tree: Tree) -> Iterator[str]:
    """The name under which `from torch import no_grad` is known."""
    for line in tree.module.body:
        for small in line.body if isinstance(line, cst.SimpleStatementLine) else ():
            if isinstance(small, cst.ImportFrom) and not isinstance(small.names, cst.ImportStar):
                root = tree.code(small.module) if small.module is not None else ""
                for alias in small.names if root == "torch" else ():
                    if alias.evaluated_name == "no_grad":
                        yield alias.evaluated_alias or "no_grad"


def _from_torch(line: cst.SimpleStatementLine) -> bool:
    for small in line.body:
        if isinstance(small, cst.Import) and any(a.evaluated_name.startswith("torch.") for a in small.names):
            return True
        if isinstance(small, cst.ImportFrom) and small.module is not None and not small.relative:
            return next(node.value for node in walk(small.module) if isinstance(node, cst.Name)) == "torch"
    return False
