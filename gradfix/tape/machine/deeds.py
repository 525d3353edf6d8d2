"""The deeds of a file: its backwards, steps and writes in place, each with what was made of it.

Whoever comes to one says so here, with what it is done to. So at the end of each deed of the text it is known
whether it was come to at all, and whether all that it was done to was known. Where something was found, or a
rule has told its own reason, that is enough; of all others the reason is told from here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from gradfix.defects.reasons import What
from gradfix.tape.domain.graph import Node, Tensor, upstream
from gradfix.tape.domain.torch_values import Optimizer
from gradfix.tape.domain.values import Alt, External, Seq, Unknown
from gradfix.tape.domain.why import Why, why_of
from gradfix.tape.machine.here import span_of

if TYPE_CHECKING:
    from gradfix.tape.domain.values import Value
    from gradfix.tape.machine.reports import Reports

WALKED = "whether this has a graph isn't known"
FREED = "whether this frees its graph isn't known"
STEPPED = "what is stepped here isn't known"
WRITTEN = "whether what is written is in a graph isn't known"
BY_NAME = {"backward": WALKED, "manual_backward": WALKED, "step": STEPPED}
INITIALISERS = "init"
"""The module of torch whose functions write what no graph has saved yet."""
FAR = 200
"""How many operations are looked through for what isn't known."""
NO_WRITES = frozenset({"requires_grad_", "share_memory_", "_"})
"""What is spelt like a write in place and is none."""


def deed(node: ast.AST, asked: bool = False) -> str | None:
    """What isn't known of a deed where it isn't; None for what is none. The answer of what is given
    something and asked for an answer is an environment's: `state = env.step(action)`."""
    if isinstance(node, ast.AugAssign):
        return None if isinstance(node.op, ast.MatMult) else WRITTEN
    if isinstance(node, ast.Assign):
        return WRITTEN if any(map(_item, node.targets)) else None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    name = node.func.attr
    if getattr(node.func.value, "attr", getattr(node.func.value, "id", "")) == INITIALISERS:
        return None
    if name == "step" and asked and node.args:
        return None
    if name.endswith("_") and not name.endswith("__") and not name.startswith("_") and name not in NO_WRITES:
        return WRITTEN
    return BY_NAME.get(name)


def _item(target: ast.expr) -> bool:
    """Whether an element is written: an entry by its name is a mapping's."""
    if not isinstance(target, ast.Subscript):
        return False
    return not (isinstance(target.slice, ast.Constant) and isinstance(target.slice.value, str))


def deeds_in(nodes: list[ast.AST]) -> Iterator[tuple[ast.AST, str]]:
    """The deeds among some nodes, the outer ones first."""
    alone = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if (words := deed(node, id(node) not in alone)) is not None:
            yield node, words


def done(reports: Reports, node: ast.AST, *values: Value, asked: bool = False) -> None:
    """Note that a deed was come to, and why it isn't known what it is done to, if it isn't."""
    words = deed(node, asked) if reports.here.at_home else None
    if words is not None:
        note(reports, node, words, *values)


def note(reports: Reports, node: ast.AST, words: str, *values: Value) -> None:
    """The same of what is known to be one, however it is spelt."""
    why = next((why for why in map(unknown_in, values) if why is not None), None)
    if why is not None:
        doubt(reports, node, words, why)
    else:
        reports.findings.deeds.setdefault(span_of(node), (words, None))


def doubt(reports: Reports, node: ast.AST, words: str, why: Why) -> None:
    """Note what isn't known of a deed; what was noted first stays."""
    span, known = span_of(node), reports.findings.deeds
    if known.get(span, (words, None))[1] is None:
        known[span] = words, why


def unknown_in(value: Value) -> Why | None:
    """Why it isn't known what a value is, or one of its alternatives: no number, text or gradient."""
    stack = [value]
    while stack:
        one = stack.pop()
        if isinstance(one, Unknown):
            why = why_of(one)
            if why.what is not What.RUN_TIME and one.origin != "grad":
                return why
        if isinstance(one, Tensor) and one.data_of is not None and one.data_of.requires is None:
            return unknown_behind(one.data_of.node)
        if isinstance(one, External) and not one.path.startswith(("torch.", "builtins.")):
            return Why(What.IMPORT, f"`{one.path}`")
        if isinstance(one, Optimizer) and not one.complete:
            return Why(What.OPTIMIZER, f"`{one.name}`" if one.name else "", one.place)
        if isinstance(one, Alt):
            stack.extend(option for _, option in reversed(one.options))
        elif isinstance(one, Seq):
            stack.extend(reversed(one.items))
    return None


def unknown_behind(node: Node) -> Why | None:
    """Why the nearest unknown isn't known that a value was made of."""
    for one in islice(upstream([node]), FAR):
        value = (one.facts or {}).get("value")
        if value is not None:
            return why_of(value)
    return None
