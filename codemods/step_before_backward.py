"""An optimizer's step changes parameters that a later backward still needs.

Two losses share part of a graph (a generator and a discriminator, an actor and a critic). The first one's
step writes its parameters in place, then the second one's backward needs their old values and raises
"modified by an inplace operation". The popular cure, both steps behind both backwards, runs; but the second
backward also adds to the gradients of the first network, whose step then follows both losses.

The rewrite moves the step behind the later backward and, where that backward reaches the stepped parameters
too, tells it which parameters it is for: `g_loss.backward(inputs=list(G.parameters()))`. Each network gets
the gradient that it would have had. Where something between reads what the step has changed (an
evaluation, a moving average), the later backward moves before the step instead. The fix is unsafe where a
call between isn't known, as it may read them too. Where both losses are for one optimizer, its step after
the first goes; that is unsafe, as the parameters move once where they would have moved twice. A step before
its own backward moves behind it, with what changes or reads the parameters between the two; so does,
unsafely, one that no step follows behind the later backward. What a module's `__init__` computes of
parameters, and a loop keeps by `retain_graph=True`, moves into the method that reads it.

Left alone: losses built after the step, graphs that share nothing, values that backward doesn't need.
"""

from __future__ import annotations

from dataclasses import replace

import libcst as cst

from gradfix.defects import Defect
from gradfix.defects.ordered import EarlyStep
from gradfix.rewriting.aimed import (
    aimed,
    call_at,
    inputs_of,
    later_step,
    later_steps,
    stepped,
    steps_again,
)
from gradfix.rewriting.arguments import keyword, without_argument
from gradfix.rewriting.late import stuck
from gradfix.rewriting.made_once import where_read
from gradfix.rewriting.order import (
    CLOSURE,
    VALUES,
    Order,
    beside_of,
    calls_of,
    last_change,
    order_of,
    stands_alone,
    takes_closure,
    within,
)
from gradfix.rewriting.statements import (
    Anchor,
    Draft,
    anchor,
    between,
    names_in,
    node_of,
    path,
    text_of,
    together,
    with_argument,
)
from gradfix.rewriting.states import LOOPS, carrier, detached
from gradfix.rule import Decline, Fix, Options, Rule
from gradfix.tree import Tree

BY_HAND = "build the later loss after this step, or step after the later backward with gradients of its own"
FREED = "this backward frees the graph that it meets again: detach what is carried over"
CARRIED = "detach what one iteration carries into the next: its graph needs the old parameters"
MERGED = "the parameters move once, along both losses, where they would have moved twice"
TWICE = "what moves the parameters is then the step behind this backward alone"
BOTH = "the step then follows the later loss as well"
UNKNOWN = "it isn't known what else between the two reads these parameters or their gradients"
ITS_OWN = frozenset({"steps", "schedules", "clears"})
"""What goes where the step goes."""
SIMPLE = (cst.SimpleStatementLine, cst.BaseSmallStatement)
LATE = frozenset({"fills", "scales"})
"""What the later backward would meet too late, before the step."""
SPOILS = frozenset({"fills", "changes", "scales", "clears"})
"""What the step would meet too late, behind the later backward."""


def rewrite(defect: Defect, tree: Tree, options: Options) -> Fix | Decline:
    facts = defect.told(EarlyStep)
    step, later = call_at(tree, defect.culprit), call_at(tree, facts.backward)
    if step is None or later is None:
        return Decline(BY_HAND)
    if takes_closure(tree, step, facts.optimizer):
        return Decline(CLOSURE)
    if facts.backward == facts.step_backward:
        return (
            _left_to_the_next(tree, step, later, facts.optimizer)
            or _behind_its_own(tree, step, later, defect)
            or _carried(tree, later, defect)
        )
    optimizer = facts.optimizer
    later_optimizer = stepped(tree, later_step(tree, later))
    moving = _moving(tree, step, later, defect)
    if moving is not None and later_optimizer == optimizer:
        return _merged(tree, moving, step, optimizer)
    steppers = later_steps(tree, later, facts)
    fix = _moved(tree, moving, later, steppers, defect) if moving else Decline(BY_HAND)
    if isinstance(fix, Fix) and not fix.unsafe:
        return fix
    late = _behind_both(tree, step, later, defect) if not later_optimizer else None
    return aimed(tree, later, steppers, facts.spared, facts.frozen) or late or fix


def _left_to_the_next(tree: Tree, step: cst.Call, later: cst.Call, optimizer: str) -> Fix | None:
    """The same optimizer steps again behind its backward, at once or each so many turns: one is too many."""
    first = anchor(tree, step)
    behind = any(place in between(tree, first, None) for place in path(tree, later))
    if not behind or not stands_alone(first, step) or not steps_again(tree, later, optimizer):
        return None
    fix = _merged(tree, [first], step, optimizer)
    return replace(fix, unsafe=TWICE) if isinstance(fix, Fix) else None


def _behind_its_own(tree: Tree, step: cst.Call, later: cst.Call, defect: Defect) -> Fix | None:
    """The step stands before its own backward, and would use in one turn what the turn before has left."""
    state = defect.told(EarlyStep).carried is not None or carrier(tree, later) is not None
    if state or keyword(later, "retain_graph") is not None:
        return None
    order = order_of(tree, defect)
    row = _passed(tree, step, later, order)
    if row is None:
        return None
    after = _following(row, order, anchor(tree, later))
    known = order.known and all(touch.known for place in row for touch in order.under(place))
    quiet = known and not any(order.kinds(place) & VALUES for place in row if place not in after)
    return _behind(
        tree, [anchor(tree, step), *after], later, "" if quiet and not order.elsewhere() else UNKNOWN
    )


def _following(row: list[Anchor], order: Order, backward: Anchor) -> list[Anchor]:
    """What reads or writes the parameters that the step has changed, if it can go behind the backward too."""
    after = [place for place in row if order.kinds(place) and order.kinds(place) <= VALUES]
    staying = [place for place in row if place not in after]
    return [] if stuck(after, staying, backward) else after


def _behind_both(tree: Tree, step: cst.Call, later: cst.Call, defect: Defect) -> Fix | None:
    """Nothing steps after the later backward, which fills what this step is for."""
    facts, order = defect.told(EarlyStep), order_of(tree, defect)
    row = _passed(tree, step, later, order)
    if row is None:
        return None
    cleared = any("clears" in order.kinds(place) for place in row)
    first_is_anothers = any(within(span, tree.span(place)) for place in row for span in facts.steps)
    return _behind(tree, [anchor(tree, step)], later, BOTH) if first_is_anothers or not cleared else None


def _passed(tree: Tree, step: cst.Call, later: cst.Call, order: Order) -> list[Anchor] | None:
    """What a step passes on its way behind a backward; None where it doesn't go there alone."""
    first, last = anchor(tree, step), anchor(tree, later)
    if together(tree, step, later) != (first, last) or last not in between(tree, first, None):
        return None
    if not stands_alone(first, step) or not isinstance(last, SIMPLE):
        return None
    row = between(tree, first, last)
    met = {kind for place in row for kind in order.kinds(place)}
    return None if met & {"looks", "changes", "scales", "anything"} else row


def _behind(tree: Tree, moving: list[Anchor], later: cst.Call, unsafe: str) -> Fix:
    draft, target = Draft(tree), anchor(tree, later)
    behind = last_change(tree, target)
    for place in moving:
        draft.move_after(place, behind)
    says = "; ".join(text_of(tree, place).splitlines()[0] for place in moving)
    return Fix(draft.edits(), f"{says} after {text_of(tree, target)}", unsafe)


def _merged(tree: Tree, moving: list[Anchor], step: cst.Call, optimizer: str) -> Fix | Decline:
    """Both backwards are for one optimizer: it steps once, after the later one."""
    own = len(moving) == 1 and stands_alone(moving[0], step)
    if not own or tree.code(cst.ensure_type(step.func, cst.Attribute).value) != optimizer:
        return Decline(BY_HAND)
    draft = Draft(tree)
    draft.remove(moving[0])
    return Fix(draft.edits(), f"remove {text_of(tree, moving[0])}", MERGED)


def _moved(
    tree: Tree, moving: list[Anchor], later: cst.Call, steppers: list[str], defect: Defect
) -> Fix | Decline:
    """The step behind the later backward, or that before the step where something between reads."""
    facts = defect.told(EarlyStep)
    inputs = inputs_of(tree, later, steppers, facts.frozen)
    if not inputs or facts.shared or facts.optimizer in steppers:
        return Decline(BY_HAND)
    new = with_argument(later, "inputs", inputs) if keyword(later, "inputs") is None else later
    order = order_of(tree, defect)
    passed = [one for one in between(tree, moving[0], anchor(tree, later)) if one not in moving]
    kinds = {kind for place in passed for kind in order.kinds(place)}
    sure = order.known and not order.elsewhere() and facts.shared is False
    sure = sure and all(touch.known for place in (*passed, *moving) for touch in order.under(place))
    apart = kinds & (VALUES | SPOILS) or any(not isinstance(place, SIMPLE) for place in moving)
    fix = _lifted(tree, moving[0], later, new, defect) if apart or not sure else None
    if fix is None and not apart:
        fix = _reordered(tree, moving, later, new)
    return replace(fix, unsafe="" if sure else UNKNOWN) if fix is not None else _left(tree, passed, order)


def _left(tree: Tree, passed: list[Anchor], order: Order) -> Decline:
    """Why neither of the two moves."""
    reads = [place for place in passed if order.kinds(place) & VALUES]
    if not reads:
        return Decline(BY_HAND)
    said = text_of(tree, reads[0]).splitlines()[0]
    return Decline(f"step behind the later backward, and `{said}` behind the step: it reads what changes")


def _lifted(tree: Tree, step: Anchor, later: cst.Call, new: cst.Call, defect: Defect) -> Fix | None:
    """The later backward, and what clears for it, before the step; the rest stays behind that."""
    order, beside = order_of(tree, defect), beside_of(tree, defect)
    last = anchor(tree, later)
    row = between(tree, step, last)
    clearing = [place for place in row if not order.under(place) and _clears(tree, place, beside)]
    staying = [place for place in row if place not in clearing]
    needed = names_in(later) & set[str]().union(*(names_in(place) for place in staying))
    met = {kind for place in staying for kind in (*beside.kinds(place), *(order.kinds(place) & LATE))}
    if needed or met - {"anything"}:
        return None
    draft = Draft(tree)
    if new is not later:
        draft.swap(later, new)
    for place in (*clearing, last):
        draft.move_before(place, step)
    return Fix(draft.edits(), f"{tree.code(new)} before {text_of(tree, step)}")


def _clears(tree: Tree, place: Anchor, beside: Order) -> bool:
    """Whether a statement does nothing but clear gradients of the later backward's."""
    touches = beside.under(place)
    small = place.body[0] if isinstance(place, cst.SimpleStatementLine) else place
    if not isinstance(small, cst.Expr) or not touches:
        return False
    return all(touch.kind == "clears" and touch.span == tree.span(small.value) for touch in touches)


def _carried(tree: Tree, backward: cst.Call, defect: Defect) -> Fix | Decline:
    """The graph of one iteration is carried into the next, or was made once by a constructor: detach the
    state, or make it where it is read, and keep the graph no longer."""
    kept, facts = keyword(backward, "retain_graph"), defect.told(EarlyStep)
    loops = [place for place in path(tree, backward) if isinstance(place, LOOPS)]
    around = loops[-1] if loops else tree.function(backward)
    before = around is not None and facts.saved is not None and not within(facts.saved, tree.span(around))
    if kept is None:
        return Decline(BY_HAND if before else FREED)
    alone = len(calls_of(loops[-1] if loops else tree.module, "backward")) == 1
    new = without_argument(backward, kept) if alone else backward
    if (anew := where_read(tree, facts.saved, facts.draws, (backward, new) if alone else None)) is not None:
        return anew
    assign = node_of(tree, facts.carried) or carrier(tree, backward)
    if not isinstance(assign, cst.Assign) or not loops:
        return Decline(BY_HAND if before else CARRIED)
    return detached(tree, backward, new, assign)


def _reordered(tree: Tree, moving: list[Anchor], later: cst.Call, new: cst.Call) -> Fix:
    draft, target = Draft(tree), anchor(tree, later)
    if new is not later:
        draft.swap(later, new)
    for statement in moving:
        draft.move_after(statement, target)
    says = "; ".join([tree.code(new), *(text_of(tree, statement) for statement in moving)])
    return Fix(draft.edits(), says)


def _moving(tree: Tree, step: cst.Call, later: cst.Call, defect: Defect) -> list[Anchor] | None:
    """The step and what follows it that belongs to it: its zero_grad, its scheduler, the next early step."""
    first, last = anchor(tree, step), anchor(tree, later)
    if together(tree, step, later) != (first, last) or last not in between(tree, first, None):
        return None
    if not isinstance(first, SIMPLE) or not isinstance(last, SIMPLE):
        return None
    return [first, *(place for place in between(tree, first, last) if _belongs(tree, place, defect))]


def _belongs(tree: Tree, place: Anchor, defect: Defect) -> bool:
    """Whether a statement goes where the step goes, and is about nothing else."""
    if any(within(span, tree.span(place)) for span in defect.told(EarlyStep).steps):
        return True
    kinds = order_of(tree, defect).kinds(place)
    return bool(kinds & ITS_OWN) and not kinds & VALUES and not beside_of(tree, defect).kinds(place)


RULE = Rule(
    code="GF105",
    message="`{culprit}` changes parameters that a later backward still needs",
    sometimes_unsafe=True,
    rewrite=rewrite,
)
