"""An optimizer's step changes parameters that a later backward still needs.

Two losses share part of a graph (a generator and a discriminator, an actor and a critic). The first one's
step writes its parameters in place, then the second one's backward needs their old values and raises
"modified by an inplace operation". The popular cure, both steps behind both backwards, runs; but the second
backward also adds to the gradients of the first network, whose step then follows both losses.

The rewrite moves the step behind the later backward and, where that backward reaches the stepped parameters
too, tells it which parameters it is for: `g_loss.backward(inputs=list(G.parameters()))`. Each network gets
the gradient that it would have had. Left alone: losses built after the step, graphs that share nothing,
values that backward doesn't need.
"""

from __future__ import annotations

import re

import libcst as cst
from libcst import matchers as m

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
from gradfix.rule import Decline, Fix, Options, Rule
from gradfix.tape.defects import Defect, Span
from gradfix.tree import Tree

BY_HAND = "build the later loss after this step, or step after the later backward with gradients of its own"
OWNER = re.compile(r"([\w.]+(?:\[\w+\])?)\.parameters\(")


def rewrite(defect: Defect, tree: Tree, options: Options) -> Fix | Decline:
    step, later = (_call(tree, place) for place in (defect.culprit, defect.facts.get("backward")))
    if step is None or later is None:
        return Decline(BY_HAND)
    if defect.facts["backward"] == defect.facts.get("step_backward"):
        return _carried(tree, later, defect)
    optimizer = str(defect.facts.get("optimizer") or "")
    later_optimizer = _stepped(tree, _later_step(tree, later, defect))
    moving = _moving(tree, step, later, optimizer)
    if moving is None or later_optimizer == optimizer:
        return Decline(BY_HAND)
    inputs = ""
    if defect.facts.get("pollutes") is not False or defect.facts.get("later_step") is None:
        inputs = _inputs(tree, later, later_optimizer, str(defect.facts.get("others") or ""))
        if not inputs or _overlap(_held(tree, optimizer)[0], inputs):
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


def _call(tree: Tree, place: object) -> cst.Call | None:
    return tree.at(place, cst.Call) if isinstance(place, Span) else None


def _later_step(tree: Tree, later: cst.Call, defect: Defect) -> cst.Call | None:
    """The later backward's own step: the one that the tape saw, else the next in the same body."""
    seen = _call(tree, defect.facts.get("later_step"))
    if seen is not None:
        return seen
    following = between(tree, anchor(tree, later), None)
    calls = (m.findall(place, m.Call()) for place in following if _is_step(tree, place))
    return next((call for found in calls for call in found if isinstance(call, cst.Call)), None)


def _stepped(tree: Tree, call: cst.Call | None) -> str:
    """The optimizer of a step: `opt` of `opt.step()` and of `scaler.step(opt)`."""
    if call is None or not isinstance(call.func, cst.Attribute):
        return ""
    return tree.code(call.args[0].value if call.args else call.func.value)


def _moving(tree: Tree, step: cst.Call, later: cst.Call, optimizer: str) -> list[Anchor] | None:
    """The step and what follows it that belongs to it: its zero_grad, its scheduler."""
    first, last = anchor(tree, step), anchor(tree, later)
    if together(tree, step, later) != (first, last) or last not in between(tree, first, None):
        return None
    following = between(tree, first, last)
    belongs = [place for place in following if _mentions(tree, place, optimizer) or _is_step(tree, place)]
    simple = all(
        isinstance(place, (cst.SimpleStatementLine, cst.BaseSmallStatement)) for place in (*belongs, last)
    )
    return [first, *belongs] if simple else None


def _mentions(tree: Tree, place: Anchor, name: str) -> bool:
    return bool(name) and re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", text_of(tree, place)) is not None


def _is_step(tree: Tree, place: Anchor) -> bool:
    return re.fullmatch(r"[\w.]+\.step\(.*\)", text_of(tree, place), re.DOTALL) is not None


def _passes(tree: Tree, moving: list[Anchor], target: Anchor, names: tuple[str, str, str]) -> bool:
    """Whether nothing between the step and its new place reads the parameters or clears their gradients."""
    optimizer, later_optimizer, inputs = names
    own = OWNER.findall(_held(tree, optimizer)[0])
    for place in between(tree, moving[0], target):
        text = text_of(tree, place)
        cleared = re.search(r"([\w.]+)\.(?:zero_grad|update)\(", text)
        if place in moving:
            continue
        if any(_mentions(tree, place, owner) for owner in own):
            return False
        if cleared and cleared[1] != later_optimizer and cleared[1] not in OWNER.findall(inputs):
            return False
    return True


def _inputs(tree: Tree, later: cst.Call, optimizer: str, others: str) -> str:
    """The parameters that the later backward is for, as an expression that can be read where it stands."""
    held, built = _held(tree, optimizer)
    text = held or others
    seen = built is None or tree.function(built) in (None, tree.function(later)) or _on_self(text)
    if text and seen and "{" not in text and not text.isidentifier():
        return text if text.startswith(("[", "list(")) else f"list({text})"
    return f'[p for group in {optimizer}.param_groups for p in group["params"]]' if optimizer else ""


def _on_self(text: str) -> bool:
    owners = OWNER.findall(text)
    return bool(owners) and all(owner.startswith("self.") for owner in owners)


def _held(tree: Tree, optimizer: str) -> tuple[str, cst.CSTNode | None]:
    """What an optimizer was given when it was built, and where that was."""
    found = []
    for node in m.findall(tree.module, m.Assign()):
        if isinstance(node, cst.Assign) and len(node.targets) == 1:
            built = _built(tree, node.targets[0].target, node.value, optimizer)
            found += [(tree.code(built.args[0].value), node)] if built is not None and built.args else []
    return found[0] if len(found) == 1 else ("", None)


def _built(tree: Tree, target: cst.CSTNode, value: cst.CSTNode, name: str) -> cst.Call | None:
    """The call whose result a name is assigned, inside `a, b = f(), g()` too."""
    if (
        isinstance(target, cst.Tuple)
        and isinstance(value, cst.Tuple)
        and len(target.elements) == len(value.elements)
    ):
        pairs = zip(target.elements, value.elements, strict=True)
        return next(
            (call for t, v in pairs if (call := _built(tree, t.value, v.value, name)) is not None), None
        )
    return value if isinstance(value, cst.Call) and tree.code(target) == name else None


def _overlap(text: str, other: str) -> bool:
    """Whether two parameter expressions share a module, or one holds the other's."""
    one, two = ([f"{owner}." for owner in OWNER.findall(side)] for side in (text, other))
    return any(a.startswith(b) or b.startswith(a) for a in one for b in two)


RULE = Rule(
    code="GF105",
    message="`{culprit}` changes parameters that a later backward still needs",
    rewrite=rewrite,
)
