"""Tells a backward which parameters it is for: those of the optimizer that steps after it."""

from __future__ import annotations

import re

import libcst as cst
from libcst import matchers as m

from gradfix.defects import Defect, Span
from gradfix.rewriting.arguments import keyword
from gradfix.rewriting.statements import Anchor, anchor, between, text_of, with_argument
from gradfix.rule import Edit, Fix
from gradfix.tree import Tree

OWNER = re.compile(r"([\w.]+(?:\[\w+\])?)\.parameters\(")


def aimed(tree: Tree, later: cst.Call, optimizer: str, defect: Defect) -> Fix | None:
    """The later backward told which parameters it is for, where it reaches them without what is broken."""
    spared = defect.facts.get("spared")
    if not optimizer or not isinstance(spared, tuple) or optimizer not in spared:
        return None
    inputs = inputs_of(tree, later, optimizer, "")
    if not inputs or keyword(later, "inputs") is not None:
        return None
    new = with_argument(later, "inputs", inputs)
    return Fix((Edit(later, new),), tree.code(new))


def call_at(tree: Tree, place: object) -> cst.Call | None:
    return tree.at(place, cst.Call) if isinstance(place, Span) else None


def later_step(tree: Tree, later: cst.Call, defect: Defect) -> cst.Call | None:
    """The later backward's own step: the one that the tape saw, else the next in the same body."""
    seen = call_at(tree, defect.facts.get("later_step"))
    if seen is not None:
        return seen
    following = between(tree, anchor(tree, later), None)
    calls = (m.findall(place, m.Call()) for place in following if is_step(tree, place))
    return next((call for found in calls for call in found if isinstance(call, cst.Call)), None)


def stepped(tree: Tree, call: cst.Call | None) -> str:
    """The optimizer of a step: `opt` of `opt.step()` and of `scaler.step(opt)`."""
    if call is None or not isinstance(call.func, cst.Attribute):
        return ""
    return tree.code(call.args[0].value if call.args else call.func.value)


def is_step(tree: Tree, place: Anchor) -> bool:
    return re.fullmatch(r"[\w.]+\.step\(.*\)", text_of(tree, place), re.DOTALL) is not None


def inputs_of(tree: Tree, later: cst.Call, optimizer: str, others: str) -> str:
    """The parameters that the later backward is for, as an expression that can be read where it stands."""
    given, built = held(tree, optimizer)
    text = given or others
    seen = built is None or tree.function(built) in (None, tree.function(later)) or _on_self(text)
    if text and seen and "{" not in text and not text.isidentifier():
        return text if text.startswith(("[", "list(")) else f"list({text})"
    return f'[p for group in {optimizer}.param_groups for p in group["params"]]' if optimizer else ""


def _on_self(text: str) -> bool:
    owners = OWNER.findall(text)
    return bool(owners) and all(owner.startswith("self.") for owner in owners)


def held(tree: Tree, optimizer: str) -> tuple[str, cst.CSTNode | None]:
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


def overlap(text: str, other: str) -> bool:
    """Whether two parameter expressions share a module, or one holds the other's."""
    one, two = ([f"{owner}." for owner in OWNER.findall(side)] for side in (text, other))
    return any(a.startswith(b) or b.startswith(a) for a in one for b in two)
