"""Convention A where the loader isn't known: what a loop takes out of an argument carries no gradient.

`for x, y in loader` says nothing of x and y, so a loss made of `model(x).detach()` and `y` may have a graph
through y. It is taken to have none where such elements are all that is left beside a cut, and where something
lies behind the cut that could have learnt: the result of a call.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from gradfix.defects import Convention
from gradfix.defects.reasons import What
from gradfix.tape.domain.values import Seq, Unknown
from gradfix.tape.domain.within import Within
from gradfix.tape.machine.cuts import in_order
from gradfix.tape.machine.severed import NO_GRAPH
from gradfix.tape.strangers.data_alone import from_elsewhere, is_element

if TYPE_CHECKING:
    from gradfix.tape.domain.graph import Node
    from gradfix.tape.domain.values import Value
    from gradfix.tape.interpreter.interpreter import Interpreter
    from gradfix.tape.interpreter.occasions import Walked
    from gradfix.tape.interpreter.state import Strangers

MOST = 400
"""How many nodes are looked at."""


def take_out(strangers: Strangers, element: Value) -> None:
    """Note what a loop takes out of a value that came in from elsewhere."""
    if isinstance(element, Seq):
        for item in element.items:
            take_out(strangers, item)
    elif isinstance(element, Unknown) and element.part and len(element.holds) == 1:
        source = element.holds[0]
        if isinstance(source, Unknown) and not source.part and _came_in(strangers, source):
            strangers.elements[id(element)] = element


def _came_in(strangers: Strangers, source: Unknown) -> bool:
    """Whether a value may be a loader: no operation computed it, nor is it made of what has a graph."""
    computed = source.tensor is not None or source.why.what in (What.COMPUTED, What.OPERATION)
    return not computed and not strangers.graph.given(source)


def severed_but_for_batches(vm: Interpreter, walked: Walked) -> None:
    """Report the cut that leaves nothing to a loss but elements of a loader."""
    root, event = walked
    if root.requires is not None or not vm.strangers.elements:
        return
    node = vm.graph.history(root)
    if _nothing_but_cuts(vm.strangers, node):
        with Within(event, vm.trail, {"lean": event.lean | {Convention.A}}):
            vm.machine.severed.severed(node, event, event.lean, NO_GRAPH)


def _nothing_but_cuts(strangers: Strangers, root: Node) -> bool:
    """Whether a root is made of cuts with something behind them that could have learnt, and of no more."""
    cuts = 0
    for cut in _cuts(strangers, root):
        if cut is None or not _learns(strangers, cut):
            return False
        cuts += 1
    return cuts > 0


def _cuts(strangers: Strangers, root: Node) -> Iterator[Node | None]:
    """The cuts that a root is made of, and None for anything else that may have a graph."""
    stack, seen = [root], {id(root)}
    while stack:
        node = stack.pop()
        if node.cut:
            yield node if node.requires is False else None  # what was made of it may require grad by itself
            continue
        value = node.facts.get("value") if node.facts else None
        if isinstance(value, Unknown) and is_element(strangers, value):
            continue
        open_end = node.may or (node.requires is None and not node.parents)
        if open_end or node.requires is True or len(seen) > MOST:
            yield None
        for parent in node.parents:
            if id(parent) not in seen:
                seen.add(id(parent))
                stack.append(parent)


def _learns(strangers: Strangers, cut: Node) -> bool:
    """Whether something behind a cut could have learnt: what a call returned."""
    for node in islice(in_order(cut), MOST):
        value = node.facts.get("value") if node.facts else None
        if node.requires is True or node.op in ("module", "call"):
            return True
        made = strangers.results.get(id(value)) if isinstance(value, Unknown) else None
        if made is not None and not from_elsewhere(made[2]):
            return True
    return False
