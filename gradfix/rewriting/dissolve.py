"""Takes statements out of `no_grad`: the block or decorator goes, what needs it stays in a smaller one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

import libcst as cst

from gradfix.defects import Span
from gradfix.rewriting.continued import moved_out
from gradfix.rewriting.names import binds, reads, walk
from gradfix.rewriting.seats import dotted, one_line, parts, vanished
from gradfix.rule import Decline, Edit, Fix
from gradfix.tape.effects.operations import having
from gradfix.tree import Tree

MODES = {"no_grad", "inference_mode", "set_grad_enabled"}
SELECTING = having("selects")
KNOWN_ROOMS = {"torch", "th", "nn", "F", "np", "math", "time", "random", "os"}
BUILTINS = {
    "len",
    "range",
    "int",
    "float",
    "list",
    "tuple",
    "dict",
    "zip",
    "enumerate",
    "iter",
    "next",
    "print",
}
DECIDED_LATER = "the grad mode is decided while the program runs: let it be on where the loss is built"
Line = cst.SimpleStatementLine | cst.BaseCompoundStatement
Segment = tuple[bool, list[Line]]


def recorded(tree: Tree, culprit: Span, forward: Iterable[Span]) -> Fix | Decline:
    """Let autograd record the statements at these spans, whatever kept it from doing so."""
    node = tree.at(culprit, cst.With)
    if node is not None:
        return _without_block(tree, node, _indices(tree, node, forward))
    expression = tree.at(culprit, cst.BaseExpression)
    if expression is None:
        return Decline("enable gradients here by hand")
    decorator = tree.parent(expression)
    if isinstance(decorator, cst.Decorator):
        says = f"remove `@{one_line(tree.code(expression))}`"
        return Fix((Edit(decorator, cst.RemoveFromParent()),), says)
    small = tree.small_statement(expression)
    if not isinstance(small, cst.Expr) or small.value is not expression or not _off(expression):
        return Decline(DECIDED_LATER)
    function = tree.function(expression)
    built = [inner for span in forward if (inner := tree.at(span)) is not None]
    if function is not None and built and all(function is not tree.function(inner) for inner in built):
        return Decline(f"`{function.name.value}` does so for all who call it: build the loss without it")
    return Fix(vanished(tree, small), f"remove `{one_line(tree.code(expression))}`")


def leaves_block(tree: Tree, culprit: Span, forward: Iterable[Span], place: Span) -> bool:
    """Whether what happens at a place is recorded once the forward is: all that doesn't stay in the block."""
    node = tree.at(culprit, cst.With)
    if node is None:
        return True
    at = _indices(tree, node, (place,))
    inside = _staying(tree, _lines(node), _indices(tree, node, forward))
    return not at or inside is None or not at <= inside


def backward_outside(tree: Tree, culprit: Span, backward: Span) -> Fix | Decline:
    """Move a backward call out of the block; what needs the block stays in it, before or behind."""
    node = tree.at(culprit, cst.With)
    at = _indices(tree, node, (backward,)) if node is not None else set()
    if node is None or not at or len(node.items) > 1:
        return Decline("call backward() outside of the block")
    body, where = _lines(node), min(at)
    kept_before = any(_keeps_before(line) for line in body[:where])
    kept_behind = any(_keeps_behind(line) for line in body[where + 1 :])

    def inside(index: int) -> bool:
        return kept_before if index < where else kept_behind if index > where else False

    return Fix((_split(node, inside),), f"{one_line(tree.text(backward))} outside of the block")


def _without_block(tree: Tree, node: cst.With, forward: set[int]) -> Fix | Decline:
    item = next((each for each in node.items if _is_mode(each.item)), None)
    if item is None:
        return Decline("build the loss outside of this block")
    if not _off(item.item):
        return Decline(DECIDED_LATER)
    body = _lines(node)
    inside = _staying(tree, body, forward)
    if inside is None:
        return Decline("split this block by hand: it builds the loss and writes in place between")
    if len(node.items) > 1:
        return _without_item(tree, node, item) if not inside else Decline("split this block by hand")
    says = f"the loss outside of `with {one_line(tree.code(item.item))}`"
    if not inside:
        says = f"dissolve `with {one_line(tree.code(item.item))}:`"
    return Fix((_split(node, lambda index: index in inside),), says)


def _staying(tree: Tree, body: Sequence[Line], forward: set[int]) -> set[int] | None:
    """Which lines of the block stay without grad; None if a write stands between those to be recorded."""
    if not forward:
        return set()
    recorded, constant = _feeding(tree, body, forward)
    learned = {name for index in recorded for name in binds(body[index])}
    first, last = min(recorded), max(recorded)
    if any(_writes(body[index]) for index in range(first, last) if index not in recorded):
        return None
    before = [index for index in range(first) if index in constant or _keeps_before(body[index])]
    behind: list[int] = []
    kept: set[str] = set()
    for index in range(last + 1, len(body)):
        used, bound = set(reads(body[index])), set(binds(body[index]))
        apart = not learned & used and (_calls(body[index]) or (kept & used and bound))
        if apart or _keeps_behind(body[index]):
            behind.append(index)
        kept |= bound - learned if apart else set()
    return {*constant, *_stretch(before), *_stretch(behind)}


def _feeding(tree: Tree, body: Sequence[Line], forward: set[int]) -> tuple[set[int], set[int]]:
    """The lines that the forward is made of, and those that give it constants: other networks' results."""
    constants = _constants(tree, body) - forward
    wanted: set[str] = set()
    recorded, constant = set(forward), set()
    for index in range(max(forward), -1, -1):
        line = body[index]
        if index not in forward and not wanted & {*binds(line), *_extends(line)}:
            continue
        if index in constants:
            constant.add(index)
            continue
        recorded.add(index)
        wanted |= set(reads(line))
    return recorded, constant


def _constants(tree: Tree, body: Sequence[Line]) -> set[int]:
    """The lines that run only networks whose parameters nobody asks for, next to others that are trained."""
    trained = _trained(tree)
    assigned = (node.target for node in walk(tree.module) if isinstance(node, cst.AssignTarget))
    objects = {dotted(part) for target in assigned for part in parts(target)}
    learning: set[str] = set()
    constants: set[int] = set()
    for index, line in enumerate(body):
        called = {dotted(node.func) for node in walk(line) if isinstance(node, cst.Call) and _opaque(node)}
        if called & trained or learning & set(reads(line)):
            learning |= {*binds(line), *_extends(line)}
        elif called and called <= objects:
            constants.add(index)
    return constants if learning else set()


def _trained(tree: Tree) -> set[str]:
    """What has its parameters asked for in this file, to be optimised or stepped by hand."""
    calls = (node for node in walk(tree.module) if isinstance(node, cst.Call))
    names = (dotted(call.func).rpartition(".") for call in calls)
    return {owner for owner, _, method in names if method == "parameters"}


def _extends(line: Line) -> set[str]:
    """The lists that a line appends to."""
    calls = (dotted(node.func) for node in walk(line) if isinstance(node, cst.Call))
    return {name.partition(".")[0] for name in calls if name.endswith((".append", ".extend"))}


def _stretch(indices: Sequence[int]) -> Sequence[int]:
    return range(indices[0], indices[-1] + 1) if indices else ()


def _without_item(tree: Tree, node: cst.With, item: cst.WithItem) -> Fix:
    edits = [Edit(item, cst.RemoveFromParent())]
    if node.items[-1] is item:
        edits.append(_edited_comma(node.items[-2].comma, item.comma))
    return Fix(tuple(edits), f"drop `{one_line(tree.code(item.item))}` from the with statement")


def _edited_comma(old: cst.Comma | cst.MaybeSentinel, last: cst.Comma | cst.MaybeSentinel) -> Edit:
    """The comma of the item that comes to stand last: none, or what stood behind the last one."""
    assert isinstance(old, cst.Comma)
    return Edit(old, last if isinstance(last, cst.Comma) else cst.RemoveFromParent())


def _split(node: cst.With, inside: Callable[[int], bool]) -> Edit:
    """The block cut into stretches that stay in it and stretches that leave it."""
    numbered = enumerate(_lines(node))
    segments: list[Segment] = [
        (stays, [line for _, line in group])
        for stays, group in groupby(numbered, lambda each: inside(each[0]))
    ]
    block = node.body
    footer = list(block.footer) if isinstance(block, cst.IndentedBlock) else []
    parts: list[cst.CSTNode] = []
    for index, (stays, lines) in enumerate(segments):
        last = index == len(segments) - 1
        if stays:
            parts.append(_block(node, lines, footer if last else []))
        else:
            parts += [*(moved_out(line, block) for line in lines), *(footer if last else [])]
    parts[0] = _led(parts[0], node.leading_lines)
    return Edit(node, cst.FlattenSentinel(parts))


def _block(node: cst.With, lines: Sequence[Line], footer: Sequence[cst.EmptyLine]) -> cst.With:
    """The same `with` around fewer statements; blank lines above the first of them go above it."""
    own = list(lines[0].leading_lines)
    blank = [line for line in own if line.comment is None]
    first = lines[0].with_changes(leading_lines=own[len(blank) :] if own[: len(blank)] == blank else own)
    body = node.body.with_changes(body=[first, *lines[1:]], footer=footer)
    return node.with_changes(body=body, leading_lines=blank)


def _led(first: cst.CSTNode, above: Sequence[cst.EmptyLine]) -> cst.CSTNode:
    own = list(getattr(first, "leading_lines", ()))
    while own and own[0].comment is None:
        own.pop(0)
    return first.with_changes(leading_lines=[*above, *own])


def _lines(node: cst.With) -> list[Line]:
    """The statements of the block, as lines of their own."""
    if isinstance(node.body, cst.IndentedBlock):
        return [line for line in node.body.body if isinstance(line, Line)]
    suite = node.body
    assert isinstance(suite, cst.SimpleStatementSuite)
    return [cst.SimpleStatementLine(suite.body, trailing_whitespace=suite.trailing_whitespace)]


def _indices(tree: Tree, node: cst.With, spans: Iterable[Span]) -> set[int]:
    """Which statements of the block hold these spans."""
    if not isinstance(node.body, cst.IndentedBlock):
        return {0}
    places = [(tree.span(line), index) for index, line in enumerate(node.body.body)]
    found = [{index for place, index in places if _covers(place, span)} for span in spans]
    return set[int]().union(*found) if all(found) else set()


def _covers(outer: Span, inner: Span) -> bool:
    start, end = (outer.line, outer.column), (outer.end_line, outer.end_column)
    return start <= (inner.line, inner.column) and (inner.end_line, inner.end_column) <= end


def _is_mode(item: cst.BaseExpression) -> bool:
    func = item.func if isinstance(item, cst.Call) else item
    return dotted(func).rpartition(".")[2] in MODES


def _off(item: cst.BaseExpression) -> bool:
    """Whether a grad mode is off for good, not by a condition."""
    if not isinstance(item, cst.Call) or not dotted(item.func).endswith("set_grad_enabled"):
        return True
    return len(item.args) == 1 and dotted(item.args[0].value) == "False"


def _keeps_before(line: Line) -> bool:
    """Whether a statement before the loss is meant to run without grad: a write, another module's call."""
    if _writes(line):
        return True
    return _calls(line)


def _calls(line: Line) -> bool:
    """Whether a statement gives a name to what a module or an unknown function returns."""
    assigns = any(isinstance(node, cst.Assign) for node in walk(line))
    return assigns and any(_opaque(node) for node in walk(line) if isinstance(node, cst.Call))


def _opaque(call: cst.Call) -> bool:
    name = dotted(call.func)
    root, _, rest = name.partition(".")
    if not name or root in KNOWN_ROOMS | BUILTINS:
        return False
    return not rest or root == "self"


def _keeps_behind(line: Line) -> bool:
    """Whether a statement behind the loss is meant to run without grad: a write, or a metric."""
    return _writes(line) or any(_measures(node) for node in walk(line) if isinstance(node, cst.Assign))


def _measures(assign: cst.Assign) -> bool:
    return any(
        isinstance(node, cst.Comparison) or (isinstance(node, cst.Attribute) and node.attr.value in SELECTING)
        for node in walk(assign.value)
    )


def _writes(line: Line) -> bool:
    """Whether a statement writes tensors in place."""
    return any(_write(node) for node in walk(line))


def _write(node: cst.CSTNode) -> bool:
    if isinstance(node, cst.AugAssign):
        return not _number(node.value)
    if isinstance(node, cst.Assign):
        return any(isinstance(each.target, cst.Subscript) for each in node.targets)
    if isinstance(node, cst.Expr) and isinstance(node.value, cst.Call):
        name = node.value.func.attr.value if isinstance(node.value.func, cst.Attribute) else ""
        return name.endswith("_") and not name.startswith("_")
    return False


def _number(value: cst.BaseExpression) -> bool:
    """Whether a value is plainly a number: a literal, `.item()`, `len()`, or a product with such a call."""
    if isinstance(value, cst.BinaryOperation):
        sides = (value.left, value.right)
        return all(map(_number, sides)) or any(isinstance(side, cst.Call) and _number(side) for side in sides)
    if isinstance(value, cst.Call):
        method = value.func.attr.value if isinstance(value.func, cst.Attribute) else ""
        return dotted(value.func) in BUILTINS or method in {"item", "size"}
    return isinstance(value, (cst.Integer, cst.Float))
