"""Where graphs end: the cuts below a node, what lies behind them, and what they are kinds of."""

from __future__ import annotations

from collections.abc import Iterator

from gradfix.tape.graph import Node, Tensor
from gradfix.tape.operations import Operations
from gradfix.tape.paths import ALWAYS, Path, contradicts
from gradfix.tape.values import Truth

CONVERSIONS = frozenset(
    {"item", "tolist", "numpy", "float", "math", "tensor", "tensor_of_list", "Variable", "Parameter"}
)
DETACHES = frozenset({"detach", "data", "detach_"})
MODES = frozenset({"no_grad", "inference_mode", "set_grad_enabled"})
KIND_OF_CUT = {
    **dict.fromkeys(CONVERSIONS, "converted_loss_path"),
    **dict.fromkeys(DETACHES, "detached_loss_path"),
    **dict.fromkeys(MODES, "forward_in_no_grad"),
    "constant": "non_differentiable_loss",
    "vanishes": "non_differentiable_loss",
    "sample": "non_differentiable_loss",
    "drawn": "non_differentiable_loss",
}
SUMS = frozenset(
    {
        "add",
        "sub",
        "neg",
        "sum",
        "mean",
        "stack",
        "cat",
        "__radd__",
        "add_",
        "sub_",
        "scale",
        "phi",
        "view",
        "squeeze",
        "reshape",
    }
)
SCALES = frozenset({"mul", "div", "truediv", "mul_", "div_", "__rmul__", "true_divide"})
COPIES = frozenset({
    "clone", "contiguous", "to", "cuda", "cpu", "float", "double", "half", "type", "view", "reshape",
    "flatten", "squeeze", "unsqueeze", "repeat", "expand",
})  # fmt: skip


class Cuts(Operations):
    """The machine that can look through a graph and behind its cuts."""

    def below(self, node: Node) -> list[Node]:
        """A node and all that went into it, in order."""
        seen: dict[int, Node] = {}
        stack = [node]
        while stack:
            node = stack.pop()
            if id(node) not in seen:
                seen[id(node)] = node
                stack.extend(reversed(node.parents))
        return list(seen.values())

    def cuts(self, node: Node, path: Path = ALWAYS, limit: int = 2000) -> Iterator[Node]:
        """The cuts nearest to a node that requires no grad, in the order of the operands."""
        seen: set[int] = set()
        stack = [node]
        while stack and len(seen) < limit:
            node = stack.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            if node.cut and self.behind(node) is not False:
                yield node
                continue
            guards = node.guards or (ALWAYS,) * len(node.parents)
            above = zip(reversed(node.parents), reversed(guards), strict=True)
            stack.extend(parent for parent, guard in above if not contradicts(guard, path))

    def all_cuts(self, node: Node, limit: int = 2000) -> Iterator[Node]:
        """Every cut below a node, whether the node has a graph or not."""
        seen: set[int] = set()
        stack = [node]
        while stack and len(seen) < limit:
            node = stack.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            if node.cut:
                yield node
            stack.extend(reversed(node.parents))

    def behind(self, cut: Node) -> Truth:
        """Whether a graph ends at this cut."""
        seen: set[int] = set()
        stack = list(cut.parents)
        unknown = False
        while stack:
            node = stack.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            if node.requires is True:
                return True
            if node.requires is None:
                unknown = True
            else:
                stack.extend(node.parents)
        return None if unknown else False

    def leaves_behind(self, node: Node) -> list[Tensor]:
        """The leaves that a node was made from, through cuts or not."""
        seen: set[int] = set()
        found: list[Tensor] = []
        stack = [node]
        while stack:
            node = stack.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            if node.leaf is not None and node.requires is not False:
                found.append(node.leaf)
            stack.extend(node.parents)
        return found

    def _additive(self, node: Node) -> Iterator[Node]:
        """The terms of a sum, scaled or averaged."""
        seen: set[int] = set()
        stack = [node]
        while stack:
            node = stack.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            if node.op in SUMS and not node.cut:
                stack.extend(reversed(node.parents))
            elif node.op in SCALES and len(node.parents) == 1 and not node.cut:
                stack.extend(node.parents)
            elif node.leaf is not None or node.cut:
                yield node

    @staticmethod
    def _adjacent(cut: Node) -> bool:
        """Whether nothing but conversions lies between a cut and the graph."""
        stack, seen = [cut], 0
        while stack and seen < 50:
            node = stack.pop()
            seen += 1
            if any(parent.requires is True for parent in node.parents):
                return True
            stack.extend(parent for parent in node.parents if parent.cut)
        return False

    def _between(self, cut: Node) -> list[Node]:
        """A cut and the unrecorded nodes behind it: a detach among them says that the cut is meant."""
        found: list[Node] = []
        stack = [cut]
        while stack and len(found) < 50:
            node = stack.pop()
            found.append(node)
            stack.extend(parent for parent in node.parents if parent.requires is False)
        return found

    def _nearest_graph(self, cut: Node) -> list[Node]:
        """The recorded nodes next to a cut."""
        found: list[Node] = []
        stack = list(cut.parents)
        seen: set[int] = set()
        while stack:
            node = stack.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            if node.requires is True:
                found.append(node)
            else:
                stack.extend(node.parents)
        return found


def copied(node: Node) -> Node:
    """What a node is a copy of, in whatever form."""
    while node.op in COPIES and not node.cut and len(node.parents) == 1:
        node = node.parents[0]
    return node
