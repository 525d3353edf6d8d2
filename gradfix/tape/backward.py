"""Backward on the machine: what it raises, what it frees, and which leaves it reaches."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

from gradfix.tape import shapes
from gradfix.tape.defects import Fact, Impact, Span
from gradfix.tape.operations import Operations
from gradfix.tape.paths import ALWAYS, Path, contradicts, implies
from gradfix.tape.values import NOTHING, Lean, Node, Number, Place, Spoil, Tensor, Truth, _stamp

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
SURE, BY_USE = 2, 1
"""How a node is part of a backward: for sure, or because nothing else can be meant (convention C)."""
NO_GRAPH = "element 0 of tensors does not require grad and does not have a grad_fn"
OVERWRITTEN = "one of the variables needed for gradient computation has been modified by an inplace operation"
TWICE = "Trying to backward through the graph a second time"
NO_SCALAR = "grad can be implicitly created only for scalar outputs"


def surely(node: Node) -> bool:
    """Whether a node is in a graph: for sure, or on one of the paths that it joins."""
    if node.requires is None and node.guards is not None:
        return any(surely(parent) for parent in node.parents)
    return node.requires is True


class Backward:
    """One call of backward (or, where a module's output is taken to be backpropagated, the wish for one)."""

    __slots__ = (
        "aimed",
        "assumed",
        "delivered",
        "lean",
        "met",
        "number",
        "path",
        "place",
        "retain",
        "scaler",
        "virtual",
    )
    numbers = count()

    def __init__(self, place: Place, path: Path, retain: Truth, virtual: bool, lean: Lean) -> None:
        self.place = place
        self.path = path
        self.retain = retain
        self.virtual = virtual
        self.lean = lean
        self.assumed: Path = ALWAYS
        """The part of the path that says which alternative of the root this is."""
        self.number = next(self.numbers)
        self.aimed = False
        """Whether it names the leaves that it is for."""
        self.delivered = False
        """Whether it reached a leaf that isn't merely a converted result."""
        self.met: set[int] = set()
        """The nodes that it visited, from all its roots."""
        self.scaler: dict[str, Any] | None = None
        """What a GradScaler multiplied the root with."""


class Add:
    """A contribution to a gradient slot."""

    __slots__ = ("backward", "born", "lean", "must", "path")

    def __init__(self, backward: Backward, must: bool, lean: Lean) -> None:
        self.backward = backward
        self.must = must
        self.path = backward.path
        self.lean = lean
        self.born = _stamp()


class Backwards(Operations):
    """The machine with backward on it."""

    backwards: list[tuple[Backward, Tensor]]
    """Every real backward, with its root."""

    def backward(
        self, root: Tensor, event: Backward, *, whole: bool = True, only: list[Tensor] | None = None
    ) -> None:
        """Run backward from `root`: `whole` False where a gradient is given, `only` the leaves asked for."""
        node = self.history(root)
        event.assumed = self.assumed
        if node.op == "scale" and node.facts:
            event.scaler = node.facts
        event.aimed = bool(only)
        if not event.virtual:
            self.backwards.append((event, root))
        if root.requires is False:
            if not event.virtual:
                self.stopped.append(event.path)
                self._severed(root, node, event)
            return
        if not event.virtual:
            if root.requires is None and node.guards is not None:
                self._severed_on_some_paths(root, node, event)
            several = shapes.many(root.shape)
            unreduced = several is None and bool(node.facts and node.facts.get("unreduced"))
            if whole and root.requires is True and (several or unreduced):
                made = (root.place, "made here, with more than one element")
                lean = root.lean | {"C"} if unreduced else root.lean
                self.report("non_scalar_backward", event.place, [made], lean=lean,
                             when=event.path, says=NO_SCALAR,
                            facts={"root": self._root_text(event), "reduction": ""})  # fmt: skip
            if self.grad is False and root.requires is True:
                self.report("backward_in_no_grad", self.grad_off[1], [(event.place, "backward runs here")],
                            impact="style", facts={"backward": self.span(event.place)})  # fmt: skip
            self._rewrapped(root, node, event)
            if only and node.cut and node.leaf is not None:
                self.rewraps.append((node, event))
        self._walk(root, node, event, only)

    def _root_text(self, event: Backward) -> str:
        func = getattr(event.place, "func", None)
        return self.text(func.value, self.main) if func is not None and hasattr(func, "value") else ""

    def _walk(self, root: Tensor, node: Node, event: Backward, only: list[Tensor] | None) -> None:
        """Visit what backward visits; what is surely part of it is seen as such even if met before."""
        seen = event.met
        known = surely(node) if root.requires is None else root.requires is True
        sure: list[tuple[Node, Path]] = [(node, ALWAYS)] if known else []
        guarded: list[tuple[Node, Path]] = []
        by_use: list[tuple[Node, Path]] = [] if sure else [(node, ALWAYS)]
        wanted = None if only is None else {id(leaf) for leaf in only}
        walked = None if only is None else self._leading(node, only)
        while sure or guarded or (by_use and not event.virtual):
            level = SURE if sure or guarded else BY_USE
            node, when = (sure or guarded or by_use).pop()
            if node.requires is False or id(node) in seen or (walked is not None and id(node) not in walked):
                continue
            seen.add(id(node))
            if not event.virtual:
                node.clean = event.number
            if node.leaf is not None:
                if not event.virtual and (wanted is None or id(node.leaf) in wanted):
                    self._reach(node, level, event, root.lean)
                continue
            if level == SURE and self._stops(node, event, root.lean, when):
                continue
            for parent, known, guard in self._above(node, level, event.path):
                if guard or when:
                    (guarded if known else by_use).append((parent, when | guard))
                else:
                    (sure if known else by_use).append((parent, ALWAYS))
            if level == SURE and event.retain is False and not event.virtual and node.saves:
                if node.freed is None:
                    node.freed = []
                node.freed.append((event, self.path))
        if not event.virtual and event.retain is False:
            self.frees += 1

    def _leading(self, root: Node, only: list[Tensor]) -> set[int]:
        """The nodes on the way from a root to the tensors that gradients are asked for."""
        targets = {id(self.history(tensor)) for tensor in only}
        leading: set[int] = set()
        stack: list[tuple[Node, bool]] = [(root, False)]
        opened: set[int] = set()
        while stack:
            node, done = stack.pop()
            if done:
                if any(id(parent) in leading or id(parent) in targets for parent in node.parents):
                    leading.add(id(node))
            elif id(node) not in opened:
                opened.add(id(node))
                stack.append((node, True))
                stack.extend((parent, False) for parent in node.parents)
        return leading | {id(tensor.node) for tensor in only if tensor.leaf}

    def _reach(self, node: Node, level: int, event: Backward, lean: Lean) -> None:
        """A gradient arrives at a leaf."""
        assert node.leaf is not None
        if node.cut:
            self.rewraps.append((node, event))
        else:
            event.delivered = True
        lean = lean | node.lean | event.lean
        if level == BY_USE:
            lean = lean | {"C"}
        node.leaf.gradient().events.append(Add(event, True, lean))

    rewraps: list[tuple[Node, Backward]]
    """Leaves made of converted values that a backward reached."""

    @staticmethod
    def _above(node: Node, level: int, path: Path) -> Iterator[tuple[Node, bool, Path]]:
        """What backward visits after a node, whether it surely does, and under which guard."""
        guards = node.guards or (ALWAYS,) * len(node.parents)
        sure = level == SURE and not node.may
        for parent, guard in zip(reversed(node.parents), reversed(guards), strict=True):
            if not contradicts(guard, path):
                yield parent, sure and surely(parent), guard - path

    def _stops(self, node: Node, event: Backward, lean: Lean, when: Path) -> bool:
        """Report what this node can't give back; True where backward goes no further."""
        for spoil in node.spoiled or ():
            paths = ((spoil.write.path, event.path), (spoil.saved.path, event.path), (when, spoil.write.path))
            if not any(contradicts(one, other) for one, other in paths):
                self._overwritten(spoil, event, lean, when)
        for earlier, path in node.freed or ():
            if earlier is not event and not contradicts(path, event.path | when) and not event.virtual:
                self._twice(node, earlier, event, lean, when)
                self.stopped.append(event.path)
                return True
        return False

    def _overwritten(self, spoil: Spoil, event: Backward, lean: Lean, guard: Path) -> None:
        write, saved = spoil.write, spoil.saved
        steps = [(saved.node.place, "saved here"), (write.place, "overwritten here")]
        if not event.virtual:
            steps.append((event.place, "backward runs here"))
        lean = lean | saved.lean | event.lean
        when = (write.path | guard | event.assumed) - (event.path - event.assumed)
        facts = {"saver": saved.node.op, "form": write.form, **write.facts}
        facts.setdefault("aliased", False)
        facts["save"] = self.span(saved.node.place)
        culprit = write.place
        kind = "inplace_overwrites_saved"
        if write.form == "step":
            kind = "step_before_backward"
            facts.update(self.step_facts(write, event))
        elif write.form == "module":
            kind = "inplace_module"
            culprit = write.facts.get("built", write.place)
            steps.append((culprit, "built here with inplace=True"))
        elif write.form == "buffer":
            return
        elif write.silent:
            kind = "write_through_data"
            facts["backward"] = self.span(event.place) if not event.virtual else None
            facts.setdefault("parameter", False)
        facts = {
            name: fact for name, fact in facts.items() if not hasattr(fact, "_fields") and name != "built"
        }
        self.report(kind, culprit, steps, lean=lean, when=when, facts=facts,
                    impact="trains wrong" if write.silent else "crashes",
                    says="" if write.silent else OVERWRITTEN)  # fmt: skip

    def step_facts(self, write: object, event: Backward) -> dict[str, Fact]:
        """What the rewrite of a step that came too early has to know."""
        raise NotImplementedError

    def _twice(self, node: Node, earlier: Backward, event: Backward, lean: Lean, guard: Path) -> None:
        steps = [
            (node.place, "part of both graphs"),
            (earlier.place, "frees it"),
            (event.place, "needs it again"),
        ]
        facts: dict[str, Fact] = {"again": self.span(event.place), "carried": None, "state": ""}
        facts.update(self.carried(node, earlier, event))
        self.report(
            "backward_twice",
            earlier.place,
            steps,
            lean=lean | node.lean,
            when=event.path,
            says=TWICE,
            facts=facts,
        )

    def carried(self, node: Node, earlier: Backward, event: Backward) -> dict[str, Fact]:
        """The hidden state that carries a graph from one turn of a loop to the next, if there is one."""
        return {}

    # -- severed graphs ------------------------------------------------------------------------------------

    def _severed_on_some_paths(self, root: Tensor, node: Node, event: Backward) -> None:
        """The root lost its graph in one arm of a branch."""
        whole = event.path
        for parent, guard in zip(node.parents, node.guards or (), strict=True):
            if parent.requires is False and not contradicts(guard, whole):
                event.path = whole | guard
                self._severed(root, parent, event)
        event.path = whole

    def _severed(self, root: Tensor, node: Node, event: Backward) -> None:
        self.severed(node, event, root.lean, NO_GRAPH)

    def severed(self, node: Node, event: Backward, lean: Lean, says: str) -> None:
        """Say what keeps the root of a backward out of every graph."""
        cuts = list({id(cut.cut_place): cut for cut in reversed(list(self.cuts(node)))}.values())[::-1]
        sure = [cut for cut in cuts if self.behind(cut) is True]
        chosen = sure or [cut for cut in cuts if self.behind(cut) is None]
        here = (event.place, "backward runs here")
        if self.blames_rebinding(node):
            return
        if len(chosen) >= 1 and (sure or len(chosen) == 1):
            terms = {id(term) for term in self._additive(node)}
            whole = [cut for cut in chosen if id(cut) in terms]
            for cut in whole if whole == chosen else chosen[:1]:
                self.report_cut(cut, event, [here], says=says, likely=not sure)
        elif not cuts:
            self.leafless.append((node, event, lean))
        else:
            self.silence(
                event.place, "several cuts lie behind this backward; which one was meant isn't known"
            )

    def blames_rebinding(self, node: Node) -> bool:
        """Whether a leaf whose name was bound to a result explains it."""
        raise NotImplementedError

    leafless: list[tuple[Node, Backward, Lean]]
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
        for node, event, lean in self.leafless:
            below = {id(one): one for one in self.below(node)}
            meant = [t for t in wanted if id(t.node) in below and t.requires is False]
            places = list({id(t): (self._factory_below(t.node), t.name) for t in meant}.values())
            if not places:
                leaves = [one.leaf for one in below.values() if one.leaf is not None]
                only = len(leaves) == 1 and leaves[0].dtype not in ("int", "bool")
                places = [(event.place, "")] if len(leaves) != 1 else [(leaves[0].place, "")] if only else []
            for place, name in places:
                steps = [(place, "requires no grad"), (event.place, "backward runs here")]
                self.report("no_leaf_requires_grad", place, steps, says=NO_GRAPH, when=event.path, lean=lean,
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

    def cuts(self, node: Node, limit: int = 2000) -> Iterator[Node]:
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
            stack.extend(reversed(node.parents))

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
            if leaf is not node and any(parent.cut in DETACHES for parent in leaf.parents):
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
                alone = not any(add.backward is event for add in adds)
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
                if (term.cut in CONVERSIONS and not meant) or (term.cut in DETACHES and lost - reached):
                    self.report_cut(term, event, [(event.place, "backward runs here without it")],
                                    kind="severed_term", impact="trains wrong")  # fmt: skip

    def trained(self) -> set[int]:
        """The leaves that somebody wants to train: an optimizer holds them."""
        raise NotImplementedError

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
        from gradfix.tape.machine import span_of
        from gradfix.tape.values import Foreign

        return None if place is None or isinstance(place, Foreign) else span_of(place)


__all__ = ["NOTHING", "Add", "Backward", "Backwards", "Number", "implies"]
