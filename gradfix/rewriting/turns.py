"""Gives every turn of a loop a graph of its own: what builds it moves in, a running total stays outside, what
is differentiated for is a leaf each time."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from gradfix.defects import Span
from gradfix.rewriting import shapes as m
from gradfix.rewriting.names import binds, reads
from gradfix.rewriting.order import within
from gradfix.rewriting.seats import targets
from gradfix.rewriting.statements import Anchor, Draft, anchor, between, path, siblings, text_of
from gradfix.rewriting.states import LOOPS
from gradfix.rule import Decline, Edit, Fix
from gradfix.tree import Tree

OWN_LOSS = "each turn learns from its own loss, no longer from the sum of all so far"
DRAWS = "each turn then draws random numbers of its own"
LAST_TURN = "what is read behind the loop is then the last turn's"


def own_graph(
    tree: Tree, backward: cst.Call, built: Sequence[Span], drawn: Sequence[Span | None]
) -> Fix | None:
    """The statements that build a loss before its loop, moved to where the loop begins."""
    loop = next((one for one in reversed(path(tree, backward)) if isinstance(one, LOOPS)), None)
    if loop is None or not built or not isinstance(loop.body, cst.IndentedBlock):
        return None
    row = siblings(tree, loop)
    at = row.index(loop)
    first = at
    while first > 0 and _builds(tree, row[first - 1], built):
        first -= 1
    moving = row[first:at]
    inside = [span for one in moving for span in built if within(span, tree.span(one))]
    if not moving or len(inside) < len(built) or _rebinds(moving, loop):
        return None
    draft = Draft(tree)
    for one in moving:
        draft.move_before(one, siblings(tree, loop.body.body[0])[0])  # type: ignore[arg-type]
    bound = {name for one in moving for name in binds(one)}
    later = any(bound & set(reads(one)) for one in between(tree, loop, None))
    says = "; ".join(text_of(tree, one) for one in moving)
    before = [tree.span(one) for one in row[:first] if not isinstance(one, (cst.FunctionDef, cst.ClassDef))]
    draws = not all(span and any(within(span, outer) for outer in before) for span in drawn)
    return Fix(draft.edits(), f"inside the loop: {says}", DRAWS if draws else LAST_TURN if later else "")


def _builds(tree: Tree, place: Anchor, built: Sequence[Span]) -> bool:
    """Whether a statement does nothing but bind a name to a part of the graph."""
    small = place.body[0] if isinstance(place, cst.SimpleStatementLine) else place
    named = isinstance(small, cst.Assign) and all(isinstance(one.target, cst.Name) for one in small.targets)
    return named and any(within(span, tree.span(place)) for span in built)


def _rebinds(moving: Sequence[Anchor], loop: Anchor) -> bool:
    """Whether the loop binds a name that these statements use, or asks for one of theirs before each turn."""
    bound = {name for one in moving for name in binds(one)}
    head = loop.test if isinstance(loop, cst.While) else cst.ensure_type(loop, cst.For).iter
    names = bound | {name for one in moving for name in reads(one)}
    return bool(names & set(binds(loop)) or bound & set(reads(head)))


def own_loss(tree: Tree, backward: cst.Call) -> Fix | None:
    """A running total that is backpropagated each turn: the loss is, and the total gets its value."""
    root = backward.func.value if isinstance(backward.func, cst.Attribute) else None
    loop = next((one for one in reversed(path(tree, backward)) if isinstance(one, LOOPS)), None)
    if not isinstance(root, cst.Name) or loop is None:
        return None
    row = siblings(tree, anchor(tree, backward))
    added = [(one, loss) for one in row if (loss := _added(one, root.value)) is not None]
    bound = [name for name in binds(loop) if name == root.value]
    if len(added) != 1 or len(bound) != 1 or row.index(added[0][0]) > row.index(anchor(tree, backward)):
        return None
    loss = added[0][1]
    if loss.value not in {name for one in row[: row.index(added[0][0])] for name in binds(one)}:
        return None
    value = cst.Call(cst.Attribute(loss, cst.Name("detach")))
    edits = (Edit(loss, value), Edit(root, cst.Name(loss.value)))
    says = f"{root.value} += {loss.value}.detach(); {loss.value}.backward()"
    return Fix(edits, says, OWN_LOSS)


def leaf_each_turn(tree: Tree, made: cst.CSTNode, asked: Span | None) -> Fix | Decline | None:
    """A tensor made before a loop that binds its name anew each turn: every turn's one is to require grad."""
    small, call = tree.small_statement(made), asked and tree.at(asked, cst.Call)
    names = targets(small)
    if small is None or not call or len(names) != 1 or tree.function(call) is not tree.function(made):
        return None
    (name,) = names
    outer = set(tree.ancestors(made))
    loops = [one for one in path(tree, call) if isinstance(one, LOOPS) and one not in outer]
    loop = next((one for one in reversed(loops) if name in binds(one)), None)
    if loop is None or not isinstance(loop.body, cst.IndentedBlock):
        return None
    row = siblings(tree, loop.body.body[0])  # type: ignore[arg-type]
    at = next((i for i, one in enumerate(row) if one in path(tree, call)), None)
    says = f"{name}.requires_grad_()"
    if at is None or any(name in binds(one) for one in row[: at + 1]):
        return Decline(f"call `{says}` in each turn, before anything is computed of it")
    draft = Draft(tree)
    draft.before(row[0], says)
    return Fix(draft.edits(), f"in each turn: {says}")


def _added(place: Anchor, total: str) -> cst.Name | None:
    """The name that a statement adds to a total, and nothing else."""
    small = place.body[0] if isinstance(place, cst.SimpleStatementLine) else place
    if m.matches(small, m.AugAssign(target=m.Name(total), operator=m.AddAssign(), value=m.Name())):
        return cst.ensure_type(cst.ensure_type(small, cst.AugAssign).value, cst.Name)
    both = m.BinaryOperation(left=m.Name(total), operator=m.Add(), right=m.Name())
    if m.matches(small, m.Assign(targets=[m.AssignTarget(m.Name(total))], value=both)):
        value = cst.ensure_type(cst.ensure_type(small, cst.Assign).value, cst.BinaryOperation)
        return cst.ensure_type(value.right, cst.Name)
    return None
