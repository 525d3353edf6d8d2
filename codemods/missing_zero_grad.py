"""A step uses gradients to which an earlier step's gradients were added.

`backward()` adds to `.grad`. When nothing clears it between two steps, the second step moves the parameters
along both gradients, the third along three, and the training drifts without a word. `zero_grad()` is rarely
just absent: it stands before the loop, in the other branch, or belongs to the other optimizer.

The rewrite puts `optimizer.zero_grad()` before the first backward of the iteration; where a step waits for
several backwards (`if (i + 1) % n == 0: optimizer.step()`), after the step and what still looks at the
gradients; that is unsafe where other functions may look at them later. Where another branch of the same
condition steps the same optimizer, it goes before the condition; it is unsafe where that branch may step. A
call that stands right before the loop moves in. For updates written by hand it sets `w.grad = None` after
the update (before the backward where the update binds the name to a new tensor), or calls the module's
`zero_grad()` where gradients are read later. Left alone: gradients cleared anywhere between the steps (at the
end of the iteration, by the model, in a helper, in a closure), accumulation over several batches before one
step, and gradients that no step uses.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from gradfix.defects import Defect
from gradfix.defects.ordered import NotCleared
from gradfix.rewriting import shapes as m
from gradfix.rewriting.branches import before_all
from gradfix.rewriting.names import visible
from gradfix.rewriting.order import Order, calls_of, order_of
from gradfix.rewriting.statements import Anchor, Draft, anchor, between, node_of, path, siblings, text_of
from gradfix.rewriting.zeroing import clearing, zeroing_place
from gradfix.rule import Decline, Fix, Options, Rule
from gradfix.tree import Tree

LOOKS = frozenset({"looks", "changes", "scales", "anything"})
"""What wants the gradients that the step has used, or may."""


def rewrite(defect: Defect, tree: Tree, options: Options) -> Fix | Decline:
    facts = defect.told(NotCleared)
    backward = tree.at(defect.culprit, cst.Call)
    step = node_of(tree, facts.step)
    if backward is None or step is None:
        return Decline("clear the gradients before the iteration's first backward")
    optimizer = facts.optimizer
    owner = _read_afterwards(tree, step)
    if not optimizer and owner:
        side, place = zeroing_place(tree, backward, step, "")
        draft = Draft(tree)
        (draft.before if side == "before" else draft.after)(place, f"{owner}.zero_grad()")
        return Fix(draft.edits(), f"{owner}.zero_grad()")
    if not optimizer:
        return _by_hand(tree, anchor(tree, step), facts.parameters, anchor(tree, backward))
    if not visible(tree, backward, optimizer):
        return Decline("clear the gradients before the iteration's first backward")
    draft = Draft(tree)
    side, place = zeroing_place(tree, backward, step, optimizer)
    if (
        side == "after"
        and tree.function(backward) is not tree.function(step)
        and _steps_twice(tree, optimizer)
    ):
        side, place = "before", anchor(tree, backward)
    clear, half = clearing(tree, optimizer), ""
    if facts.early:
        return _in_order(tree, anchor(tree, step), anchor(tree, backward), clear)
    if side == "before":
        place, half = before_all(tree, place, optimizer)
    outside = _before_the_loop(tree, place, clear) if side == "before" else None
    if outside is not None:
        draft.move_before(outside, place)
    elif side == "before":
        draft.before(place, clear)
        if isinstance(place, cst.SimpleStatementLine):
            draft.under_heading(place, anchor(tree, step))
    else:
        order = order_of(tree, defect)
        last = _after_readers(tree, place, order)
        following = between(tree, last, None)
        if following and text_of(tree, following[0]) == clear:
            return Decline("clear what the step before this loop has used, before the loop")
        draft.after(last, clear)
        return Fix(draft.edits(), clear, _unsafe(order))
    return Fix(draft.edits(), clear, half)


def _steps_twice(tree: Tree, optimizer: str) -> bool:
    """Whether an optimizer steps at several places: clearing behind one leaves what another has used."""
    steps = (call for call in calls_of(tree.module, "step") if isinstance(call.func, cst.Attribute))
    return sum(tree.code(cst.ensure_type(call.func, cst.Attribute).value) == optimizer for call in steps) > 1


def _in_order(tree: Tree, step: Anchor, backward: Anchor, clear: str) -> Fix | Decline:
    """The step behind the backward that it stands before, and the clearing in its place."""
    row = siblings(tree, step)
    if backward not in row or row.index(step) + 1 != row.index(backward):
        return Decline("move the step behind its backward, and clear the gradients before that")
    draft = Draft(tree)
    draft.before(backward, clear)
    draft.move_after(step, backward)
    return Fix(draft.edits(), f"{clear}; {text_of(tree, step)} after {text_of(tree, backward)}")


def _unsafe(order: Order) -> str:
    """Whether somebody elsewhere looks at gradients that are cleared as soon as the step has used them."""
    if any(touch.kind in LOOKS for touch in order.elsewhere()):
        return "another function looks at these gradients after the step"
    return "" if order.known else "it isn't known who else looks at these gradients after the step"


def _before_the_loop(tree: Tree, place: Anchor, clear: str) -> Anchor | None:
    """The same call directly before the loop, where it clears for the first iteration only."""
    loops = [above for above in path(tree, place)[:-1] if isinstance(above, (cst.For, cst.While))]
    row = siblings(tree, loops[-1]) if loops else []
    before = row[row.index(loops[-1]) - 1] if loops and row[0] is not loops[-1] else None
    return before if before is not None and text_of(tree, before) == clear else None


def _after_readers(tree: Tree, step: Anchor, order: Order) -> Anchor:
    """A gradient scaler's update belongs to its step, and so does what still looks at the gradients."""
    last = step
    for place in between(tree, step, None):
        kinds = order.kinds(place)
        if "fills" in kinds:
            break
        if kinds & LOOKS:
            last = place
    return last


def _by_hand(tree: Tree, update: Anchor, parameters: object, backward: Anchor) -> Fix | Decline:
    """Clear each parameter's gradient behind the last of the updates that stand together.

    An update that gives the name to a new tensor leaves the old one's gradient to whoever holds that: there
    it is cleared before the backward.
    """
    known = isinstance(parameters, tuple) and all(visible(tree, update, str(name)) for name in parameters)
    if not isinstance(parameters, tuple) or not parameters or not known:
        return Decline("set the .grad of what is updated to None after the update")
    last = update
    for following in between(tree, update, None):
        if not _is_update(following):
            break
        last = following
    clears = [f"{name}.grad = None" for name in parameters]
    draft = Draft(tree)
    if any(isinstance(place, cst.Assign) and _rebinds(tree, place, parameters) for place in _smalls(update)):
        draft.before(backward, *clears)
    else:
        draft.after(last, *clears)
    return Fix(draft.edits(), "; ".join(clears))


def _smalls(place: Anchor) -> Sequence[cst.BaseSmallStatement]:
    return place.body if isinstance(place, cst.SimpleStatementLine) else ()


def _rebinds(tree: Tree, place: cst.Assign, parameters: tuple[object, ...]) -> bool:
    return any(tree.code(target.target) in parameters for target in place.targets)


def _read_afterwards(tree: Tree, update: cst.CSTNode) -> str:
    """The module whose parameters a loop updates, where gradients are read after the training."""
    here = path(tree, update)
    loops = [above for above in here[:-1] if isinstance(above, cst.For)]
    parameters = m.Call(func=m.Attribute(attr=m.Name("parameters")), args=[])
    if not loops or not m.matches(loops[-1].iter, parameters):
        return ""
    owner = cst.ensure_type(cst.ensure_type(loops[-1].iter, cst.Call).func, cst.Attribute).value
    read = any(_names_gradient(place) for place in between(tree, here[0], None))
    return tree.code(owner) if read else ""


def _is_update(place: Anchor) -> bool:
    small = place.body[0] if isinstance(place, cst.SimpleStatementLine) else place
    return isinstance(small, (cst.AugAssign, cst.Assign, cst.Expr)) and _names_gradient(small)


def _names_gradient(place: cst.CSTNode) -> bool:
    return bool(m.findall(place, m.Attribute(attr=m.Name("grad"))))


RULE = Rule(
    code="GF401",
    message="`{culprit}` adds to gradients that a step has already used",
    sometimes_unsafe=True,
    rewrite=rewrite,
)
