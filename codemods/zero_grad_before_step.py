"""Gradients are erased after backward has computed them and before the step that was to use them.

`loss.backward(); optimizer.zero_grad(); optimizer.step()` steps with nothing: the parameters stay as they
are (or follow momentum and weight decay alone). The same happens when `zero_grad()` runs for every micro-
batch while the step comes after several of them: only the last one counts.

The rewrite moves the call before the iteration's first backward, or behind the step where the step waits
for several backwards; where gradients are cleared there already, the call just goes. A step that comes
before its backward moves behind it. It is unsafe where it isn't known what else clears or measures them,
where a later backward needs what the step will then change, and where something behind that backward writes
to the parameters by hand, as the step may belong behind that too. Left alone: clearing after the step,
clearing what one network's loss has left in another one, and gradients that were only to be measured.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from gradfix.defects import Defect
from gradfix.defects.ordered import EarlyClear
from gradfix.rewriting import shapes as m
from gradfix.rewriting.arguments import keyword
from gradfix.rewriting.inplaces import writes_in_place
from gradfix.rewriting.names import binds, reads, walk
from gradfix.rewriting.nograd import in_no_grad
from gradfix.rewriting.order import (
    CLOSURE,
    VALUES,
    Order,
    calls_of,
    filled_of,
    last_change,
    order_of,
    takes_closure,
)
from gradfix.rewriting.statements import Anchor, Draft, anchor, between, node_of, path, siblings, text_of
from gradfix.rewriting.zeroing import zeroing_place
from gradfix.rule import Decline, Fix, Options, Rule
from gradfix.tree import Tree

DATA = m.Attribute(attr=m.Name("data"))
SIMPLE = (cst.SimpleStatementLine, cst.BaseSmallStatement)
BY_HAND = "move the zero_grad before the iteration's first backward, or behind the step"
SPOILS = "the step then changes what a later backward needs"
WRITTEN = "what stands behind it writes to the parameters too, and may have to come first"
SOMETIMES = "what a backward under a condition brings isn't erased any more either"
UNKNOWN = "it isn't known what else clears or measures these gradients"
BESIDE = "take this step out, or move the zero_grad behind it: the step comes again behind a later backward"


def rewrite(defect: Defect, tree: Tree, options: Options) -> Fix | Decline:
    facts = defect.told(EarlyClear)
    call = tree.at(defect.culprit, cst.Call)
    backward = node_of(tree, facts.backward)
    step = node_of(tree, facts.step)
    if call is None or backward is None or step is None:
        return Decline(BY_HAND)
    zero = anchor(tree, call)
    side, place = zeroing_place(tree, backward, step, facts.optimizer)
    if text_of(tree, zero) != tree.code(call) or not _always_runs(tree, zero, place):
        return Decline(BY_HAND)
    filled, order = filled_of(tree, defect), order_of(tree, defect)
    if tree.function(backward) is not tree.function(step):
        side, place = _written_here(filled, zero) or (side, place)
    if _has_another(filled, zero, step):
        return Decline(BESIDE)
    if (late := _late(filled, zero, step, backward)) is not None:
        if takes_closure(tree, step, facts.optimizer):
            return Decline(CLOSURE)
        if (lifted := _lifted(order, *late)) is not None:
            return lifted
        again = facts.spoils and any(keyword(one, "retain_graph") for one in calls_of(late[1], "backward"))
        return _behind(order, *late, SPOILS if again else "")
    if side == "before":
        place = _behind_measuring(order, place, zero)
        if (behind := _behind_step(order, filled, zero, place, step)) is not None:
            side, place = "after", behind
    return _moved(order, zero, (side, place), facts.spoils)


def _written_here(filled: Order, zero: Anchor) -> tuple[str, Anchor] | None:
    """The first backward that stands beside the clearing itself, where another function's is erased too: that
    one is not known to be for this step."""
    row = siblings(filled.tree, zero)
    found = (
        one for one in row[: row.index(zero)] if "fills" in filled.kinds(one) and calls_of(one, "backward")
    )
    return next((("before", one) for one in found), None)


def _late(
    filled: Order, zero: Anchor, step: cst.CSTNode, backward: cst.CSTNode
) -> tuple[Anchor, Anchor] | None:
    """The step and the last of the backwards behind it, whose gradients the next turn's zero_grad erases."""
    row = siblings(filled.tree, zero)
    stepping, late = anchor(filled.tree, step), anchor(filled.tree, backward)
    if stepping not in row or late not in row:
        return None
    if any(calls_of(one, "step") for one in row[row.index(late) : row.index(zero)]):
        late = _its_own(filled, row[row.index(stepping) + 1 :]) or late  # the first one was for that step
    cleared, stepped, first = row.index(zero), row.index(stepping), row.index(late)
    if not (cleared < stepped < first or stepped < first < cleared):
        return None
    ends = [i for i, one in enumerate(row) if i > first and _steps_or_clears(one)]
    behind = row[stepped + 1 : min(ends, default=len(row))]
    last = [one for one in behind if one is late or "fills" in filled.kinds(one)][-1]
    return stepping, last_change(filled.tree, last)


def _its_own(filled: Order, behind: Sequence[Anchor]) -> Anchor | None:
    """The backward behind a step before anybody else steps or clears: that before the clearing may have been
    for others, whose gradients are in the way."""
    ends = [i for i, one in enumerate(behind) if _steps_or_clears(one)]
    row = behind[: min(ends, default=len(behind))]
    return next((one for one in row if "fills" in filled.kinds(one) and calls_of(one, "backward")), None)


def _lifted(order: Order, step: Anchor, last: Anchor) -> Fix | None:
    """A lone backward before the step, where something between the two reads what the step leaves: an
    evaluation, a moving average."""
    passed = between(order.tree, step, last)
    kinds = {kind for one in passed for kind in order.kinds(one)}
    known = order.known and all(touch.known for one in passed for touch in order.under(one))
    own = set(reads(last)) & {name for one in passed for name in binds(one)}
    alone = isinstance(last, SIMPLE) and calls_of(last, "backward") and not own
    if not (known and kinds and kinds <= VALUES and alone):
        return None
    draft = Draft(order.tree)
    draft.move_before(last, step)
    return Fix(draft.edits(), f"{text_of(order.tree, last)} before {text_of(order.tree, step)}")


def _behind(order: Order, step: Anchor, last: Anchor, unsafe: str) -> Fix:
    """The step behind the last of its backwards; what writes to the parameters there may be for before it."""
    tree, draft = order.tree, Draft(order.tree)
    draft.move_after(step, last)
    written = any(_may_write(order, one) for one in between(tree, last, None) if one is not step)
    says = f"{text_of(tree, step)} after {text_of(tree, last).splitlines()[0]}"
    return Fix(draft.edits(), says, unsafe or (WRITTEN if written else ""))


def _may_write(order: Order, place: Anchor) -> bool:
    """Whether a statement writes to the parameters by hand, or unrecorded to what isn't known."""
    touches = order.under(place)
    if touches or not isinstance(place, cst.BaseCompoundStatement):
        return any(touch.kind == "writes" for touch in touches)
    written = [node for node in walk(place) if writes_in_place(node)]
    return any(in_no_grad(order.tree, node) or m.findall(node, DATA) for node in written)


def _steps_or_clears(place: Anchor) -> bool:
    """Whether a statement is another optimizer's, or this one's: what is filled behind it is for that."""
    return bool(calls_of(place, "step") or calls_of(place, "zero_grad"))


def _has_another(filled: Order, zero: Anchor, step: cst.CSTNode) -> bool:
    """Whether the same step comes again behind a backward of its own: then this one may be the wrong one."""
    row, stepping = siblings(filled.tree, zero), anchor(filled.tree, step)
    behind = row[row.index(stepping) + 1 :] if stepping in row else []
    fills = [i for i, one in enumerate(behind) if "fills" in filled.kinds(one)]
    later = [text_of(filled.tree, one) for one in behind[fills[0] + 1 :]] if fills else []
    return text_of(filled.tree, stepping) in later


def _behind_measuring(order: Order, place: Anchor, zero: Anchor) -> Anchor:
    """The backward after the last look at gradients: those that were looked at are not for the step."""
    row = siblings(order.tree, place)
    found = row[row.index(place) : row.index(zero)] if zero in row[row.index(place) :] else []
    looks = [i for i, one in enumerate(found) if "looks" in order.kinds(one)]
    later = [one for one in found[looks[-1] + 1 :] if "fills" in order.kinds(one)] if looks else []
    return later[0] if later else place


def _behind_step(
    order: Order, filled: Order, zero: Anchor, place: Anchor, step: cst.CSTNode
) -> Anchor | None:
    """The step, where the clearing before this backward is no help to the backwards that come after it."""
    row = siblings(order.tree, place)
    stepping = next((above for above in path(order.tree, step) if above in row), None)
    earlier = _cleared_before(order, zero, place)
    if earlier is None or stepping is None:
        return None
    others = [*row[: row.index(earlier)], *row[row.index(stepping) + 1 :]]
    return stepping if any("fills" in filled.kinds(one) for one in others) else None


def _moved(order: Order, zero: Anchor, to: tuple[str, Anchor], spoils: bool) -> Fix:
    tree, (side, place) = order.tree, to
    draft, clear = Draft(tree), text_of(tree, zero)
    if side == "before" and _cleared_before(order, zero, place) is not None:
        draft.remove(zero)
    elif side == "before":
        draft.move_before(zero, place)
    else:
        draft.move_after(zero, place)
    says = f"{clear} {side} {text_of(tree, place).splitlines()[0]}"
    unsafe = SOMETIMES if side == "before" and isinstance(place, cst.If) else ""
    return Fix(draft.edits(), says, unsafe or (SPOILS if spoils else "" if order.known else UNKNOWN))


def _always_runs(tree: Tree, zero: Anchor, place: Anchor) -> bool:
    """Whether nothing but loops stands between the call and the body that it is to move to or from."""
    if tree.function(zero) is not tree.function(place):
        return False
    shared = set(path(tree, place))
    return all(
        isinstance(above, (cst.For, cst.While, cst.With)) or above in shared
        for above in path(tree, zero)[:-1]
    )


def _cleared_before(order: Order, zero: Anchor, place: Anchor) -> Anchor | None:
    """What clears the same gradients before the backward already."""
    row = siblings(order.tree, place)
    earlier = row[: row.index(place)]
    ran = [i for i, other in enumerate(earlier) if "fills" in order.kinds(other)]
    since = earlier[ran[-1] + 1 :] if ran else earlier
    clears = [other for other in since if other is not zero and _clears(order, other)]
    return clears[-1] if clears else None


def _clears(order: Order, place: Anchor) -> bool:
    """Whether a statement always clears all of the gradients."""
    return isinstance(place, SIMPLE) and any(
        touch.kind == "clears" and touch.whole and touch.known for touch in order.under(place)
    )


RULE = Rule(
    code="GF402",
    message="`{culprit}` erases gradients before the step has used them",
    sometimes_unsafe=True,
    rewrite=rewrite,
)
