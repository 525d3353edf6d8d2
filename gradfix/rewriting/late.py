"""Moves writes to leaves behind the backward that needs them as they were, and freezing before new layers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from gradfix.defects import Span
from gradfix.defects.written import Overwritten
from gradfix.rewriting.arguments import with_keyword
from gradfix.rewriting.inplaces import writes_in_place
from gradfix.rewriting.names import binds, reads, walk
from gradfix.rewriting.order import VALUES, Order
from gradfix.rewriting.statements import Anchor, Draft, between, node_of, siblings, text_of, together
from gradfix.rule import Decline, Edit, Fix
from gradfix.tree import Tree

AFTER = Decline("change the parameter after backward")
BETWEEN = "what stands between the two then meets the parameters as they were"
FROZEN = Decline("freeze the model before it gets the layers that are to learn, or unfreeze those")
TANGLED = "what moves and what stays share a value that one of them may change"
UNKNOWN = "it isn't known what else between the two reads these parameters"
GOING = (cst.Return, cst.Yield, cst.Break, cst.Continue, cst.Await)


def behind_backward(tree: Tree, facts: Overwritten) -> Fix | Decline:
    """The whole statement that writes a leaf, and those like it that follow, behind the backward."""
    write, backward = node_of(tree, facts.under), node_of(tree, facts.backward)
    pair = together(tree, write, backward) if write is not None and backward is not None else None
    if pair is None or pair[1] not in between(tree, pair[0], None):
        return AFTER
    first, last = pair
    order = Order(tree, facts.until)
    passed = between(tree, first, last)
    moving = [first, *(place for place in passed if writes_only(order, place))]
    staying = [place for place in passed if place not in moving]
    if not writes_only(order, first) or order.kinds(last) - {"fills"} or stuck(moving, staying, last):
        return AFTER
    draft = Draft(tree)
    for place in moving:
        draft.move_after(place, last)
    says = "; ".join(text_of(tree, place).splitlines()[0] for place in moving)
    unsafe = _unsafe(order, staying) or (TANGLED if _tangled(tree, moving, staying) else "")
    return Fix(draft.edits(), f"{says} after {text_of(tree, last)}", unsafe)


def frozen_before(tree: Tree, culprit: Span, made: Sequence[Span]) -> Fix | Decline:
    """What freezes a model, moved before the statements that give it the layers which are to learn."""
    freezing = node_of(tree, culprit)
    pairs = [together(tree, node, freezing) for span in made if freezing and (node := node_of(tree, span))]
    whole = [pair for pair in pairs if pair is not None and replaces(pair[0])]
    if not whole or len(whole) < len(made) or len({id(pair[1]) for pair in whole}) > 1:
        return FROZEN
    row, last = siblings(tree, whole[0][1]), whole[0][1]
    first = min((pair[0] for pair in whole), key=row.index)
    passed = between(tree, first, last)
    if row.index(first) > row.index(last) or stuck([last], [first, *passed], first):
        return FROZEN
    draft = Draft(tree)
    draft.move_before(last, first)
    return Fix(draft.edits(), f"{text_of(tree, last).splitlines()[0]} before {text_of(tree, first)}")


def unfrozen(tree: Tree, culprit: Span) -> Fix | Decline:
    """What freezes what it makes unless it is told otherwise, told otherwise."""
    call = tree.at(culprit, cst.Call)
    if call is None or any(arg.star for arg in call.args):
        return FROZEN
    new = with_keyword(call, "freeze", "False")
    return Fix((Edit(call, new),), " ".join(tree.code(new).split()))


def replaces(place: Anchor) -> bool:
    """Whether a statement gives a part of something a new value."""
    small = place.body[0] if isinstance(place, cst.SimpleStatementLine) else place
    targets = [each.target for each in small.targets] if isinstance(small, cst.Assign) else []
    return bool(targets) and all(isinstance(one, (cst.Attribute, cst.Subscript)) for one in targets)


def writes_only(order: Order, place: Anchor) -> bool:
    """Whether a statement writes the leaves, and does nothing with their gradients."""
    kinds = order.kinds(place)
    return "writes" in kinds and kinds <= VALUES


def stuck(moving: Sequence[Anchor], staying: Sequence[Anchor], target: Anchor) -> bool:
    """Whether statements can't go behind a target and what stays before it: they give those a name or take
    one from them, say where to go on, or are blocks and the target shares its line."""
    made, used = _names(moving)
    bound, read = _names([*staying, target])
    goes_on = any(isinstance(one, GOING) for place in moving for one in walk(place))
    blocks = any(isinstance(place, cst.BaseCompoundStatement) for place in moving)
    crowded = blocks and isinstance(target, cst.BaseSmallStatement)
    return bool(made & (read | bound) or used & bound) or goes_on or crowded


def _names(places: Sequence[cst.CSTNode]) -> tuple[set[str], set[str]]:
    bound = {name for place in places for name in binds(place)}
    return bound, {name for place in places for name in reads(place)}


def _tangled(tree: Tree, moving: Sequence[Anchor], staying: Sequence[Anchor]) -> bool:
    """Whether one of two groups of statements may write to what the other one reads."""
    own = set(binds(tree.module))
    went, stayed = ({name for one in places for name in reads(one)} for places in (moving, staying))
    shared = went & stayed
    return any(shared.intersection(_changed(node, own)) for one in (*moving, *staying) for node in walk(one))


def _changed(node: cst.CSTNode, own: set[str]) -> Iterator[str]:
    """The names of what an expression may write to: in place, or by a function of this file."""
    if writes_in_place(node):
        yield next(reads(node.func if isinstance(node, cst.Call) else node), "")
    elif isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value in own:
        yield from (name for arg in node.args for name in reads(arg))


def _unsafe(order: Order, staying: Sequence[Anchor]) -> str:
    if not order.known or any(not touch.known for place in staying for touch in order.under(place)):
        return UNKNOWN
    return BETWEEN if any(order.kinds(place) - {"fills", "clears"} for place in staying) else ""
