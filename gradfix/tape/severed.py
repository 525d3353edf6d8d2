"""Graphs that end before their leaves: where they were cut, and which cut was not meant."""

from __future__ import annotations

from collections.abc import Iterator

from gradfix.tape.defects import Fact, Impact, Span
from gradfix.tape.events import Add, Backward, on_path, partings
from gradfix.tape.graph import Node, Tensor
from gradfix.tape.operations import Operations
from gradfix.tape.paths import ALWAYS, Path, contradicts
from gradfix.tape.reports import span_of
from gradfix.tape.values import Foreign, Lean, Place, Truth

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
NO_GRAPH = "element 0 of tensors does not require grad and does not have a grad_fn"


class Severed(Operations):
    """The machine that can say why no gradient arrives."""

    backwards: list[tuple[Backward, Tensor]]
    """Every real backward, with its root."""
    rewraps: list[tuple[Node, Backward]]
    """Leaves made of converted values that a backward reached."""

    # -- severed graphs ------------------------------------------------------------------------------------

    def _severed_on_some_paths(self, root: Tensor, node: Node, event: Backward) -> None:
        """The root lost its graph in one arm of a branch."""
        whole = event.path
        for guard in partings(node):
            if not contradicts(guard, whole) and on_path(node, whole | guard) is False:
                event.path = whole | guard
                self._severed(root, node, event)
        event.path = whole

    def _severed(self, root: Tensor, node: Node, event: Backward) -> None:
        self.severed(node, event, root.lean, NO_GRAPH)

    def severed(self, node: Node, event: Backward, lean: Lean, says: str) -> None:
        """Say what keeps the root of a backward out of every graph."""
        if any(holds and key in self.graph_tests for key, holds in event.path):
            return  # it runs only where a test has found a graph
        nearest = list(self.cuts(node, event.path))
        cuts = list({id(cut.cut_place): cut for cut in reversed(nearest)}.values())[::-1]
        sure = [cut for cut in cuts if self.behind(cut) is True]
        chosen = sure or [cut for cut in cuts if self.behind(cut) is None and cut.cut != "data"]
        here = (event.place, "backward runs here")
        if self.blames_rebinding(node):
            return
        if len(chosen) >= 1 and (sure or len(chosen) == 1):
            terms = {id(term) for term in self._additive(node)}
            whole = [cut for cut in chosen if id(cut) in terms]
            for cut in whole if whole == chosen else chosen[:1]:
                self.report_cut(cut, event, [here], says=says, likely=not sure)
        elif not cuts:
            self.leafless.append((node, event, event.path, lean))
        else:
            self.silence(
                event.place, "several cuts lie behind this backward; which one was meant isn't known"
            )

    def blames_rebinding(self, node: Node) -> bool:
        """Whether a leaf whose name was bound to a result explains it."""
        raise NotImplementedError

    leafless: list[tuple[Node, Backward, Path, Lean]]
    """Roots that nothing behind requires grad for: which leaf was meant is known at the end."""

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

    def _factory_below(self, node: Node) -> Place:
        """The one call that made what a tensor was computed from."""
        factories = [one for one in self.below(node) if one.leaf is not None]
        return factories[0].place if len(factories) == 1 else node.place

    def leafless_roots(self, wanted: list[Tensor]) -> None:
        """At the end: the tensors that should have been leaves are those whose gradient somebody wants."""
        for node, event, path, lean in self.leafless:
            below = {id(one): one for one in self.below(node)}
            meant = [t for t in wanted if id(t.node) in below and t.requires is False]
            places = list({id(t): (self._factory_below(t.node), t.name) for t in meant}.values())
            if not places:
                leaves = [one.leaf for one in below.values() if one.leaf is not None]
                only = len(leaves) == 1 and leaves[0].dtype not in ("int", "bool")
                places = [(event.place, "")] if len(leaves) != 1 else [(leaves[0].place, "")] if only else []
            for place, name in places:
                steps = [(place, "requires no grad"), (event.place, "backward runs here")]
                self.report("no_leaf_requires_grad", place, steps, says=NO_GRAPH, when=path, lean=lean,
                            facts={"backward": self.span(event.place), "misspelt": "",
                                   "target": name})  # fmt: skip

    def report_cut(self, cut: Node, event: Backward, steps: list[tuple[Place, str]], *, says: str = "",
                   likely: bool = False, kind: str = "", impact: Impact = "crashes") -> None:  # fmt: skip
        """Report the cut that keeps gradients from everything behind it."""
        kind = kind or KIND_OF_CUT.get(cut.cut, "")
        culprit = cut.cut_place
        facts: dict[str, Fact] = {
            "form": cut.cut,
            "backward": self.span(event.place),
            "rewrap": None,
            "logged": (),
        }
        facts.update(cut.facts or {})
        if kind == "forward_in_no_grad":
            forward = self.span(cut.place)
            facts.update(
                form=self.mode_form(culprit),
                mode=cut.cut,
                forward=(forward,) if forward else (),
            )
            steps = [(cut.place, "runs here without being recorded"), *steps]
        elif kind == "non_differentiable_loss":
            facts["op"] = cut.op
        behind = next((parent.place for parent in cut.parents if parent.requires is not False), None)
        steps = [(behind, "the graph up to here"), (culprit, "cut here"), *steps]
        self.report(kind, culprit, steps, says=says, lean=cut.lean | event.lean, likely=likely,
                    when=event.path, facts=facts, impact=impact)  # fmt: skip

    def mode_form(self, place: Place) -> str:
        """with, decorator or statement."""
        return {"With": "with", "AsyncWith": "with", "Call": "statement"}.get(
            type(place).__name__, "decorator"
        )

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

    def _rewrapped(self, root: Tensor, node: Node, event: Backward) -> None:
        """A severed result that was told to require grad: no error, and no gradient behind it."""
        for leaf in (node, *self._additive(node)):
            if leaf.leaf is None or leaf.cut != "requires_grad" or leaf.requires is not True:
                continue
            if leaf is not node and any(_copied(parent).cut in DETACHES for parent in leaf.parents):
                continue  # `x.detach().requires_grad_()` makes a new leaf of x, which is what it is for
            cuts = [cut for parent in leaf.parents for cut in self.cuts(parent) if self.behind(cut) is True]
            if cuts:
                facts: dict[str, Fact] = {
                    "target": (leaf.facts or {}).get("target", ""),
                    "cut": self.span(cuts[0].cut_place),
                    "cut_kind": KIND_OF_CUT.get(cuts[0].cut, ""),
                }
                steps = [(cuts[0].cut_place, "cut here"), (event.place, "backward runs here")]
                self.report("requires_grad_on_result", leaf.cut_place, steps, impact="trains wrong",
                            lean=cuts[0].lean, when=event.path, facts=facts)  # fmt: skip

    def rewrapped_leaves(self, read: list[Tensor], reached: set[int]) -> None:
        """At the end: leaves made of converted results, whose gradient nobody reads and nobody passes on."""
        for leaf, event in self.rewraps:
            tensor = leaf.leaf
            if tensor is None or leaf.cut not in CONVERSIONS | MODES or leaf.requires is not True:
                continue
            if tensor.parameter and not any(root is tensor for _, root in self.backwards):
                continue
            if self.behind(leaf) is not True or any(tensor is one for one in read):
                continue
            lost = {id(one) for parent in leaf.parents for one in self.leaves_behind(parent)}
            pointless = any(one is event and root is tensor for one, root in self.backwards)
            if lost and (pointless or not lost <= reached):
                others = [one.slot for one in self.every_leaf if one is not tensor and one.slot]
                adds = [add for slot in others for add in slot.events if isinstance(add, Add)]
                alone = not any(add.backward.met is event.met for add in adds)
                kind = "" if alone else "severed_term"
                here = (event.place, "backward runs here")
                self.report_cut(leaf, event, [here], impact="trains wrong", kind=kind)

    every_leaf: list[Tensor]

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

    def severed_terms(self, reached: set[int]) -> None:
        """At the end: terms of a loss that lost their graph while the loss has one."""
        for event, root in self.backwards:
            if root.requires is False:
                continue
            for term in self._additive(self.history(root)):
                if term.requires is not False or not term.cut or self.behind(term) is not True:
                    continue
                if any(-1 < parent.clean < event.number for parent in self._nearest_graph(term)):
                    continue  # made of an earlier turn's graph: a baseline, not a term
                lost = {id(leaf) for leaf in self.leaves_behind(term)} & self.trained()
                meant = any(one.cut in DETACHES for one in self._between(term))
                if (term.cut in CONVERSIONS and not meant and self._adjacent(term)) or (
                    term.cut in DETACHES and lost - reached
                ):
                    self.report_cut(term, event, [(event.place, "backward runs here without it")],
                                    kind="severed_term", impact="trains wrong")  # fmt: skip

    def trained(self) -> set[int]:
        """The leaves that somebody wants to train: an optimizer holds them."""
        raise NotImplementedError

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

    def span(self, place: Place) -> Span | None:
        """A place's span as a fact; None in another file."""

        return None if place is None or isinstance(place, Foreign) else span_of(place)


def _copied(node: Node) -> Node:
    """What a node is a copy of, in whatever form."""
    while node.op in COPIES and not node.cut and len(node.parents) == 1:
        node = node.parents[0]
    return node
