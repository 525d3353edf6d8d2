"""Where graphs end: the cuts below a node, what lies behind them, and what they are kinds of."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, TypedDict

from gradfix.tape.domain.graph import upstream
from gradfix.tape.domain.paths import ALWAYS, contradicts
from gradfix.tape.domain.values import either
from gradfix.tape.effects.operations import also_in_place, having, where

if TYPE_CHECKING:
    from gradfix.tape.domain.graph import Node, Tensor
    from gradfix.tape.domain.paths import Path
    from gradfix.tape.domain.values import Truth
    from gradfix.tape.machine.histories import Graph

CONVERSIONS = having("converts") | {"float", "math", "tensor", "tensor_of_list", "Variable", "Parameter"}
DETACHES = also_in_place(having("detaches"))
MODES = frozenset({"no_grad", "inference_mode", "set_grad_enabled"})
ASKED = "autograd.grad"
"""The gradients that were asked for without a graph of their own."""
DIFFERENTIATED = "differentiated"
"""What makes the gradients that are asked for together with a graph of their own."""
PASSING_NONE = ("constant", "vanishes", "sample", "drawn")
"""How an operation without a gradient cuts."""
KIND_OF_CUT = {
    **dict.fromkeys([ASKED], "gradient_without_graph"),
    **dict.fromkeys(CONVERSIONS, "converted_loss_path"),
    **dict.fromkeys(DETACHES, "detached_loss_path"),
    **dict.fromkeys(MODES, "forward_in_no_grad"),
    **dict.fromkeys(PASSING_NONE, "non_differentiable_loss"),
}
MANY = 2000
"""How many nodes of a sum are looked through, each on each way to it."""
CHOOSING = frozenset({"argmax", "argmin"})
"""What says by an index which elements are best."""
SUMS = also_in_place(having("additive")) | having("copies") | {"scale", "phi"}
"""Operations of torch and of the machine whose result is a sum, perhaps of one."""
LOSSES = where("shape", "loss", "loss-by-row", "loss-by-class")
WEIGHS = having("weighs")
SCALES = also_in_place(having("scales"))
COPIES = having("copies")


def in_order(node: Node) -> Iterator[Node]:
    """A node and all that went into it, in order."""
    return upstream([node], _in_order)


def nodes_below(node: Node) -> list[Node]:
    """The same, all at once."""
    return list(in_order(node))


def up_to(node: Node, ends: Collection[Node]) -> Iterator[Node]:
    """A node and what went into it, but for what lies behind some nodes."""
    ids = {id(end) for end in ends}
    return upstream([node], lambda one: () if id(one) in ids else _in_order(one))


def nearest_cuts(node: Node, path: Path = ALWAYS, limit: int = 2000) -> Iterator[Node]:
    """The cuts nearest to a node that requires no grad, in the order of the operands."""
    ends: set[int] = set()

    def onward(node: Node) -> Iterable[Node]:
        guards = node.guards or (ALWAYS,) * len(node.parents)
        above = zip(reversed(node.parents), reversed(guards), strict=True)
        return () if id(node) in ends else [one for one, guard in above if not contradicts(guard, path)]

    for one in islice(upstream([node], onward), limit):
        if one.cut and behind(one) is not False:
            ends.add(id(one))
            yield one


def all_cuts(node: Node, limit: int = 2000, but: Collection[str] = ()) -> Iterator[Node]:
    """Every cut below a node, whether the node has a graph or not, and none behind these kinds of them."""
    below = upstream([node], lambda one: () if one.cut in but else _in_order(one))
    return (one for one in islice(below, limit) if one.cut)


def behind(cut: Node) -> Truth:
    """Whether a graph ends at this cut."""
    return either(node.requires for node in upstream(cut.parents, _if_unrecorded))


def leaves_behind(node: Node, but: Collection[str] = ()) -> list[Tensor]:
    """The leaves that a node was made from, through cuts or not, but for some kinds of them."""
    found = upstream([node], lambda one: () if one.cut in but else one.parents)
    return [one.leaf for one in found if one.leaf is not None and one.requires is not False]


def terms_of(node: Node) -> Iterator[Node]:
    """The terms of a sum, scaled or averaged."""
    for one in upstream([node], terms_in):
        if (one.leaf is not None or one.cut) and not terms_in(one):
            yield one


def terms_by_way(node: Node, path: Path) -> Iterator[tuple[Node, Path]]:
    """The same, each with the path on which it is one: where arms of a branch join, each has its own sum."""
    return ((one, when) for one, when in summands_by_way(node, path) if one.leaf is not None or one.cut)


def summands_by_way(node: Node, path: Path) -> Iterator[tuple[Node, Path]]:
    """The terms of a sum, whatever they are made of, each with the path on which it is one."""
    stack = [(node, path)]
    seen: set[tuple[int, Path]] = set()
    while stack:
        one, when = stack.pop()
        above = terms_in(one)
        if (id(one), when) in seen or len(seen) > MANY:
            continue
        seen.add((id(one), when))
        if not above:
            yield one, when
            continue
        guards = one.guards[::-1] if one.guards else (ALWAYS,) * len(above)
        ways = zip(above, guards, strict=True)
        stack.extend((parent, when | guard) for parent, guard in ways if not contradicts(guard, when))


def summands(node: Node) -> Iterator[Node]:
    """The terms of a sum, whatever they are made of."""
    return (one for one in summed(node) if not terms_in(one))


def summed(node: Node) -> Iterator[Node]:
    """The terms of a sum, and the sums that it is made of."""
    return upstream([node], terms_in)


def adjacent(cut: Node) -> bool:
    """Whether nothing but conversions lies between a cut and the graph."""
    stack, seen = [cut], 0
    while stack and seen < 50:
        node = stack.pop()
        seen += 1
        if any(parent.requires is True for parent in node.parents):
            return True
        stack.extend(parent for parent in node.parents if parent.cut)
    return False


class Chosen(TypedDict, total=False):
    """The facts of a choice: see NoGradient."""

    rank: int | None
    width: int | None
    learnt: bool


def choosing(cut: Node) -> Chosen:
    """How an index was taken, of it and of what is made of it alone."""
    index = next((one for one in (cut, *cut.parents) if one.op in CHOOSING), None)
    if index is None:
        return {}
    facts = index.facts or {}
    learnt = bool(index.parents) and index.parents[0].requires is True
    return Chosen(rank=facts.get("rank"), width=facts.get("width"), learnt=learnt)


def unrecorded(cut: Node) -> list[Node]:
    """A cut and the unrecorded nodes behind it: a detach among them says that the cut is meant."""
    found: list[Node] = []
    stack = [cut]
    while stack and len(found) < 50:
        node = stack.pop()
        found.append(node)
        stack.extend(parent for parent in node.parents if parent.requires is False)
    return found


def unrecorded_with(cut: Node, root: Node, path: Path) -> tuple[list[Node], bool]:
    """All of a loss that one mode has kept from being recorded, without the targets of losses; and whether
    some of it may be meant as a constant."""
    together = [one for one in nearest_cuts(root, path) if one.cut_place is cut.cut_place]
    ours = {id(one) for one in together}
    targets: set[int] = set()
    doubtful = False
    for node in upstream([root], lambda one: () if id(one) in ours else one.parents):
        if id(node) in ours or len(node.parents) < 2 or node.op not in LOSSES | WEIGHS:
            continue
        first, second = ({id(one) for one in nearest_cuts(each, path)} & ours for each in node.parents[:2])
        if node.op in LOSSES:
            targets |= second - first
        elif first - second and second - first:
            doubtful = True
    return [one for one in together if id(one) not in targets] or [cut], doubtful


def nearest_graph(cut: Node) -> list[Node]:
    """The recorded nodes next to a cut."""
    near = upstream(cut.parents, lambda node: () if node.requires is True else node.parents)
    return [node for node in near if node.requires is True]


def _in_order(node: Node) -> Iterator[Node]:
    return reversed(node.parents)


def _if_unrecorded(node: Node) -> tuple[Node, ...]:
    return node.parents if node.requires is False else ()


def terms_in(node: Node) -> tuple[Node, ...]:
    """What a node is the sum of, or one times a number: what makes its graph unsure may be no number."""
    if node.cut or not (node.op in SUMS or (node.op in SCALES and len(node.parents) == 1)):
        return ()
    if node.op in SCALES and node.requires is None and node.parents[0].requires is False:
        return ()
    return node.parents[::-1]


def copied(node: Node) -> Node:
    """What a node is a copy of, in whatever form."""
    while node.op in COPIES and not node.cut and len(node.parents) == 1:
        node = node.parents[0]
    return node


def made_unrecorded(graph: Graph, tensor: Tensor) -> bool:
    """Whether a tensor would have a graph if nothing kept it from being recorded here."""
    if graph.grad_mode.grad is not False:
        return False
    cuts = nearest_cuts(graph.history(tensor), graph.here.path)
    return any(cut.cut in MODES and behind(cut) is not False for cut in cuts)
