"""An optimizer's step changes parameters that a later backward still needs.

Two losses share part of a graph (a generator and a discriminator, an actor and a critic). The first one's
step writes its parameters in place, then the second one's backward needs their old values and raises
"modified by an inplace operation". The popular cure, both steps behind both backwards, runs; but the second
backward also adds to the gradients of the first network, whose step then follows both losses.

The rewrite moves the step behind the later backward and, where that backward reaches the stepped parameters
too, tells it which parameters it is for: `g_loss.backward(inputs=list(G.parameters()))`. Each network gets
the gradient that it would have had. Where both losses are for one optimizer, its step after the first goes;
that is unsafe, as the parameters move once where they would have moved twice.

Left alone: losses built after the step, graphs that share nothing, values that backward doesn't need.
"""

from __future__ import annotations

import re

import libcst as cst

from gradfix.defects import Defect, Span
from gradfix.rewriting.aimed import (
    OWNER,
    aimed,
    call_at,
    held,
    inputs_of,
    is_step,
    later_step,
    overlap,
    stepped,
)
from gradfix.rewriting.arguments import keyword, without_argument
from gradfix.rewriting.statements import (
    Anchor,
    Draft,
    anchor,
    between,
    node_of,
    path,
    text_of,
    together,
    with_argument,
)
from gradfix.rewriting.states import LOOPS, carrier, detached
from gradfix.rule import Decline, Fix, Options, Rule, Safety
from gradfix.tree import Tree

BY_HAND = "build the later loss after this step, or step after the later backward with gradients of its own"


def rewrite(defect: Defect, tree: Tree, options: Options) -> Fix | Decline:
    step, later = (call_at(tree, place) for place in (defect.culprit, defect.facts.get("backward")))
    if step is None or later is None:
        return Decline(BY_HAND)
    if defect.facts["backward"] == defect.facts.get("step_backward"):
        return _carried(tree, later, defect)
    optimizer = str(defect.facts.get("optimizer") or "")
    later_optimizer = stepped(tree, later_step(tree, later, defect))
    moving = _moving(tree, step, later, optimizer)
    if moving is not None and later_optimizer == optimizer:
        return _merged(tree, moving, optimizer)
    if moving is not None and not _cleared_along(tree, moving, defect):
        moving = None
    fix = _moved(tree, moving, later, (optimizer, later_optimizer), defect) if moving else Decline(BY_HAND)
    return fix if isinstance(fix, Fix) else aimed(tree, later, later_optimizer, defect) or fix


def _cleared_along(tree: Tree, moving: list[Anchor], defect: Defect) -> bool:
    """Whether the gradients are cleared by nothing that stays where it is: then a later step finds none."""
    cleared = defect.facts.get("cleared")
    spans = [place for place in cleared if isinstance(place, Span)] if isinstance(cleared, tuple) else []
    return all(any(_within(place, tree.span(statement)) for statement in moving) for place in spans)


def _within(inner: Span, outer: Span) -> bool:
    begins = (outer.line, outer.column) <= (inner.line, inner.column)
    return begins and (inner.end_line, inner.end_column) <= (outer.end_line, outer.end_column)


def _merged(tree: Tree, moving: list[Anchor], optimizer: str) -> Fix | Decline:
    """Both backwards are for one optimizer: it steps once, after the later one."""
    gone = [text_of(tree, place) for place in moving]
    if any(not re.fullmatch(r"[\w.]+\.step\(.*\)", text) or not text.startswith(optimizer) for text in gone):
        return Decline(BY_HAND)
    draft = Draft(tree)
    for place in moving:
        draft.remove(place)
    return Fix(draft.edits(), f"remove {'; '.join(gone)}", Safety.UNSAFE)


def _moved(
    tree: Tree, moving: list[Anchor], later: cst.Call, names: tuple[str, str], defect: Defect
) -> Fix | Decline:
    """The step behind the later backward."""
    optimizer, later_optimizer = names
    inputs = ""
    if defect.facts.get("pollutes") is not False or defect.facts.get("later_step") is None:
        inputs = inputs_of(tree, later, later_optimizer, str(defect.facts.get("others") or ""))
        if not inputs or overlap(held(tree, optimizer)[0], inputs):
            return Decline(BY_HAND)
    if not _passes(tree, moving, anchor(tree, later), (optimizer, later_optimizer, inputs)):
        return Decline(BY_HAND)
    return _reordered(tree, moving, later, inputs)


def _carried(tree: Tree, backward: cst.Call, defect: Defect) -> Fix | Decline:
    """The graph of one iteration is carried into the next: detach the state, and keep the graph no longer."""
    kept = keyword(backward, "retain_graph")
    if kept is None:
        return Decline("this backward frees the graph that it meets again: detach what is carried over")
    assign = node_of(tree, defect.facts.get("carried")) or carrier(tree, backward)
    if not isinstance(assign, cst.Assign):
        return Decline("detach what one iteration carries into the next: its graph needs the old parameters")
    loop = next(place for place in reversed(path(tree, backward)) if isinstance(place, LOOPS))
    alone = tree.code(loop).count("backward(") == 1
    new = without_argument(backward, kept) if alone else backward
    return detached(tree, backward, new, assign, str(defect.facts.get("state") or ""))


def _reordered(tree: Tree, moving: list[Anchor], later: cst.Call, inputs: str) -> Fix:
    draft, target, new = Draft(tree), anchor(tree, later), later
    if inputs and keyword(later, "inputs") is None:
        new = with_argument(later, "inputs", inputs)
        draft.swap(later, new)
    for statement in moving:
        draft.move_after(statement, target)
    return Fix(
        draft.edits(), "; ".join([tree.code(new), *(text_of(tree, statement) for statement in moving)])
    )


def _moving(tree: Tree, step: cst.Call, later: cst.Call, optimizer: str) -> list[Anchor] | None:
    """The step and what follows it that belongs to it: its zero_grad, its scheduler."""
    first, last = anchor(tree, step), anchor(tree, later)
    if together(tree, step, later) != (first, last) or last not in between(tree, first, None):
        return None
    following = between(tree, first, last)
    belongs = [place for place in following if _mentions(tree, place, optimizer) or is_step(tree, place)]
    simple = all(
        isinstance(place, (cst.SimpleStatementLine, cst.BaseSmallStatement)) for place in (*belongs, last)
    )
    return [first, *belongs] if simple else None


def _mentions(tree: Tree, place: Anchor, name: str) -> bool:
    return bool(name) and re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", text_of(tree, place)) is not None


def _passes(tree: Tree, moving: list[Anchor], target: Anchor, names: tuple[str, str, str]) -> bool:
    """Whether nothing between the step and its new place reads the parameters or clears their gradients."""
    optimizer, later_optimizer, inputs = names
    own = OWNER.findall(held(tree, optimizer)[0])
    for place in between(tree, moving[0], target):
        text = text_of(tree, place)
        cleared = re.search(r"([\w.]+)\.(?:zero_grad|update)\(", text)
        if place in moving:
            continue
        if any(_mentions(tree, place, owner) for owner in own):
            return False
        if cleared and cleared[1] != later_optimizer and cleared[1] not in OWNER.findall(inputs):
            others = held(tree, cleared[1])[0]
            if not own or not OWNER.search(others) or overlap(held(tree, optimizer)[0], others):
                return False
    return True


RULE = Rule(
    code="GF105",
    message="`{culprit}` changes parameters that a later backward still needs",
    sometimes_unsafe=True,
    rewrite=rewrite,
)
