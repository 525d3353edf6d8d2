"""Backward on the machine: what it walks, what it frees, and which leaves it reaches."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from gradfix.defects import NOTHING, Convention, Role
from gradfix.defects.reasons import What
from gradfix.defects.records import BackwardUnrecorded
from gradfix.defects.severed import NoGradient
from gradfix.tape.domain.events import Add
from gradfix.tape.domain.graph import upstream
from gradfix.tape.domain.in_graph import live_arms, surely
from gradfix.tape.domain.paths import ALWAYS, contradicts, implies
from gradfix.tape.domain.values import Const, Unknown, stamp
from gradfix.tape.domain.why import Why
from gradfix.tape.domain.within import Within
from gradfix.tape.effects import shapes
from gradfix.tape.effects.operations import having
from gradfix.tape.machine.guarded import Guarded
from gradfix.tape.machine.raising import Raising
from gradfix.tape.machine.reach import MANY, leading, remember
from gradfix.tape.machine.rewraps import rewrapped
from gradfix.tape.machine.undecided import how_many, without_graph
from gradfix.tape.machine.unreduced import facts_of

if TYPE_CHECKING:
    from gradfix.tape.domain.events import Backward
    from gradfix.tape.domain.graph import Node, NodeFacts, Tensor
    from gradfix.tape.domain.paths import Path
    from gradfix.tape.domain.values import Lean
    from gradfix.tape.machine.early_steps import EarlySteps
    from gradfix.tape.machine.python import Python
    from gradfix.tape.machine.recording import Recording
    from gradfix.tape.machine.severed import Severed

SURE, BY_USE, BESIDE = 2, 1, 0
"""How a node is part of a backward: for sure, or because nothing else can be meant (convention C), or only
perhaps: beside a leaf that it surely fills, and beside what is meant, something else can."""
WAYS = 3
"""On how many different paths one backward looks at a node again."""
FAR = 40
"""How many operations are looked through for what was asked to require grad."""
NO_WAY = "no way from here to what gradients are asked for is seen"
STEPPED_BETWEEN = "whether a step since the backward before this changed what it needs isn't known"
UNDERIVED = having("underived")
NO_SCALAR = "grad can be implicitly created only for scalar outputs"


class Ahead:
    """What a backward has still to come to: what it surely visits first, then what may be part of it."""

    __slots__ = ("beside", "by_use", "guarded", "sure")

    def __init__(self, start: Node, arms: Sequence[Path], path: Path) -> None:
        self.sure: list[tuple[Node, Path]] = [(start, arm - path) for arm in arms]
        self.guarded = Guarded()
        """What it surely visits on some paths."""
        self.by_use: list[tuple[Node, Path]] = [] if self.sure else [(start, ALWAYS)]
        self.beside: list[tuple[Node, Path]] = []

    def left(self, virtual: bool) -> bool:
        """Whether something is left; of a backward that is only thought of, of what it surely visits."""
        return bool(self.sure or self.guarded.order or ((self.by_use or self.beside) and not virtual))

    def take(self) -> tuple[int, Node, Path]:
        """The next node, how it is part of the backward, and on which path."""
        if self.sure:
            return SURE, *self.sure.pop()
        if self.guarded.order:
            return (SURE, *self.guarded.pop())
        return (BY_USE, *self.by_use.pop()) if self.by_use else (BESIDE, *self.beside.pop())

    def put(self, node: Node, when: Path, level: int) -> None:
        """One more."""
        if level == SURE and when:
            self.guarded.add(node, when)
        else:
            (self.beside, self.by_use, self.sure)[level].append((node, when))


class Backwards:
    """Backward as it runs."""

    def __init__(
        self, severed: Severed, recording: Recording, early_steps: EarlySteps, python: Python
    ) -> None:
        self.severed = severed
        self.recording = recording
        self.supposed = early_steps.optimizers.supposed
        """When steps were that may have been of any leaves, in the numbers of the backwards."""
        self.raising = Raising(severed, early_steps, python)
        self.graph = severed.graph
        self.here = severed.here
        self.reports = severed.reports
        self.trail = recording.trail
        self.timeline = recording.timeline
        self.grad_mode = recording.grad_mode
        self.frees = stamp()
        """When a backward last freed what it walked."""
        self.proved: dict[int, tuple[Node, Path]] = {}
        """What wasn't known to have a graph, and had one that a backward has walked and freed."""

    def run(
        self, root: Tensor, event: Backward, *, whole: bool = True, only: list[Tensor] | None = None
    ) -> None:
        """Run backward from `root`: `whole` False where a gradient is given, `only` the leaves asked for."""
        node = self.graph.history(root)
        event.assumed = self.here.assumed
        event.root = root
        event.start = node
        if node.op == "scale" and node.facts:
            event.scaler = node.facts
        event.aimed = event.aimed or tuple(only or ())
        if not event.virtual:
            self.timeline.on = True
            event.moment = self.timeline.note("fills", (event,), event.place, event.path)
            self.severed.backwards.append((event, root))
        if root.requires is False:
            if not event.virtual:
                self.severed.severed_root(root, node, event)
                without_graph(self.reports, node, event)
            return
        if not event.virtual:
            if root.requires is None:
                self.severed.severed_on_some_paths(root, node, event)
            if whole:
                self._each_wants_scalar(root, event)
            if self.grad_mode.grad is False and root.requires is True:
                here = [(event.place, Role.BACKWARD)]
                facts = BackwardUnrecorded(backward=self.reports.span(event.place))
                self.reports.report(
                    "backward_in_no_grad", self.grad_mode.grad_off[1], here, facts, when=event.path
                )
            rewrapped(self.severed, root, node, event)
            if only and node.cut and node.leaf is not None:
                self.severed.rewraps.append((node, event))
        self._walk(root, node, event, only)
        freed = event.retain is False and not event.virtual and only is None
        if root.requires is None and freed and whole:  # what is given a gradient may be a leaf
            self._prove(node, event)
        if not event.virtual and root.requires is None:
            self.reports.silence(event.place, "whether this has a graph isn't known", node)
        elif event.strange:
            self.reports.silence(event.place, "not all that this may reach is known", node)

    def _prove(self, node: Node, event: Backward) -> None:
        """A backward that went through has found a graph, whoever made that; so has the one operand that can
        have brought it."""
        left: Node | None = None if event.raised else node
        while left is not None and left.guards is None and not left.branch and not left.cut:
            self.proved[id(left)] = left, event.path
            self.reports.findings.terms.tensors.setdefault(id(left), (left, []))[1].append(event.path)
            left = self._only_operand(left)

    def _only_operand(self, node: Node) -> Node | None:
        """The operand without which a node would have no graph, where that is sure."""
        value = (node.facts or {}).get("value")
        if not isinstance(value, Unknown):
            brought = [one for one in node.parents if one.requires is not False]
            return brought[0] if len(brought) == 1 and (node.op == "scale" or not node.may) else None
        self.graph.tensor_of(value)
        made_of = [one for one in value.holds if type(one) is not Const]
        if value.part and value.why.what is What.COMPUTED and len(made_of) == 1:
            return self.graph.tensor_of(made_of[0]).node if isinstance(made_of[0], Unknown) else None
        return None

    def had_graph(self, node: Node, path: Path | None = None) -> bool:
        """Whether a backward has shown on a path that a node had a graph, and freed that."""
        shown = self.proved.get(id(node))
        here = self.here.path if path is None else path
        return shown is not None and shown[0] is node and implies(here, shown[1])

    def _each_wants_scalar(self, root: Tensor, event: Backward) -> None:
        """The same of each tensor that the root is one of, where these are too many to be kept apart."""
        self.wants_scalar(root, event)
        for guard, part in root.storage.parts if root.shape is None else ():
            if not contradicts(guard, event.path) and self.graph.requires(part) is True:
                with Within(event, self.trail, {"path": event.path | guard}):
                    self.wants_scalar(part, event)

    def wants_scalar(self, root: Tensor, event: Backward, taken: Lean = NOTHING) -> None:
        """Say so where a root that is given no gradient is more than one number."""
        known: NodeFacts = self.graph.history(root).facts or {}
        several = known.get("several") or shapes.many(root.shape)
        unreduced = several is None and bool(known.get("unreduced"))
        if several is None and not unreduced and Convention.C not in root.lean:
            how_many(self.reports, event, root)
        if several or unreduced:
            made = (root.place, Role.MADE_LARGE)
            lean = taken | (root.lean | {Convention.C} if unreduced else root.lean)
            scalar = facts_of(self.reports, self._root_text(event), self.graph.history(root))
            self.reports.report("non_scalar_backward", event.place, [made], scalar, lean=lean,
                        when=event.path, says=NO_SCALAR)  # fmt: skip

    def _root_text(self, event: Backward) -> str:
        """The source text of what backward runs on: a method's owner, what a function is given first, or what
        is returned to who runs it. The method is given nothing where one number is wanted."""
        func, given = getattr(event.place, "func", None), getattr(event.place, "args", None)
        named = [
            one.value for one in getattr(event.place, "keywords", ()) if one.arg in ("outputs", "tensors")
        ]
        given = named or given
        function = given and not (isinstance(given[0], ast.Constant) and given[0].value is None)
        root = given[0] if given and function else getattr(func or event.place, "value", None)
        return self.reports.text(root, self.reports.findings.main) if root is not None else ""

    def _walk(self, root: Tensor, start: Node, event: Backward, only: list[Tensor] | None) -> None:
        """Visit what backward visits; what is surely part of it is seen as such even if met before."""
        seen = event.met
        arms = live_arms(start, event.path) if root.requires is None else [event.path]
        ahead = Ahead(start, arms, event.path)
        wanted = None if only is None else {id(leaf) for leaf in only}
        walked = None if only is None else self._ways(start, event, only)
        surely = walked and leading(self.graph, start, only or [])
        again = (self.recording.spoils, self.frees) if self._leaves_all(event, only) else None
        frees = event.retain is False and not event.virtual
        while ahead.left(event.virtual):
            level, node, when = ahead.take()
            if surely is not None and level == SURE and id(node) not in surely:
                level = BY_USE  # what isn't known may lead to what is asked for, or not
            if node.requires is False or (walked is not None and id(node) not in walked):
                continue
            if again and level == SURE and not when and node.reach is not None and node.reach[0] == again:
                self._reach_all(node.reach[1], event, root.lean)
                continue
            before, here = seen.get(id(node)), event.path | when if when else event.path
            if before is not None and (len(before) >= WAYS or any(one <= here for one in before)):
                continue
            seen[id(node)] = (*before, here) if before else (here,)
            if not event.virtual:
                if self.supposed or node.op in UNDERIVED:
                    self._note(node, event, when if level == SURE else None)
                if surely is None or level == SURE:
                    node.clean = event.number
                if node.doubted:
                    event.doubted = True
            if node.leaf is not None:
                if not event.virtual and (wanted is None or id(node.leaf) in wanted):
                    self._reach(node, level, event, root.lean, when)
                continue
            if level != SURE:
                event.strange = True
            if node.op == "module" and not event.virtual:
                self._through_module(node, event)
            if level == SURE and self.raising.stops(node, event, root.lean, when):
                continue
            if level == BY_USE and not event.virtual:
                self.raising.by_use(node, event, root.lean, when)
            for parent, above, guard in self._above(node, level, here):
                ahead.put(parent, when | guard, above)
            if frees and level == SURE and node.saves:
                self._free(node, event, when)
        if event.virtual and (ahead.by_use or ahead.beside):
            self.raising.perhaps(start, [node for node, _ in (*ahead.by_use, *ahead.beside)])
        if again and len(seen) > MANY and not event.doubted:
            remember(start, again)
        if frees:
            self.frees = stamp()

    def _ways(self, start: Node, event: Backward, only: list[Tensor]) -> set[int]:
        """What lies on the ways to the leaves that are asked for."""
        walked = leading(self.graph, start, only, perhaps=True)
        if not event.virtual and id(start) not in walked:
            self.reports.silence(event.place, NO_WAY, Why(What.BACKWARD))
        return walked

    def _note(self, node: Node, event: Backward, when: Path | None) -> None:
        """Say what isn't known of a node, or that a backward surely comes to what has no derivative."""
        if self.supposed and node.leaf is None and -1 < node.clean < self.supposed[-1]:
            self.reports.silence(event.place, STEPPED_BETWEEN, Why(What.OPTIMIZER))
        if node.op in UNDERIVED and when is None:
            self.reports.silence(
                event.place, f"whether this comes to {node.op} isn't known, which has no derivative"
            )
        elif node.op in UNDERIVED and event.root is not None:
            steps = [(node.place, Role.CUT), (event.place, Role.BACKWARD)]
            facts = NoGradient(op=node.op, backward=self.reports.span(event.place))
            self.reports.report("non_differentiable_loss", node.place, steps, facts,
                        lean=event.root.lean | node.lean | event.lean, when=event.path | (when or ALWAYS),
                        says=f"derivative for aten::{node.op} is not implemented")  # fmt: skip

    def _free(self, node: Node, event: Backward, when: Path) -> None:
        if node.freed is None:
            node.freed = []
        node.freed.append((event, self.here.path | when))

    def _through_module(self, node: Node, event: Backward) -> None:
        """Say of a module whose class isn't known, and whose weights were written since it ran, that what it
        kept isn't known."""
        weights = [parent.leaf.storage.writes for parent in node.parents if parent.leaf is not None]
        if any(writes and writes[-1].born > node.born for writes in weights):
            self.reports.silence(
                event.place, "what a module keeps that isn't known, and was stepped since it ran", node
            )

    @staticmethod
    def _leaves_all(event: Backward, only: list[Tensor] | None) -> bool:
        """Whether a backward changes nothing of the graph, so that the next one needn't look at it again."""
        return only is None and not event.virtual and event.retain is not False

    def _reach_all(self, leaves: tuple[Node, ...], event: Backward, lean: Lean) -> None:
        for leaf in leaves:
            if id(leaf) not in event.met:
                event.met[id(leaf)] = (event.path,)
                leaf.clean = event.number
                self._reach(leaf, SURE, event, lean, ALWAYS)

    def _reach(self, node: Node, level: int, event: Backward, lean: Lean, when: Path) -> None:
        """A gradient arrives at a leaf; by two ways, one of them is always open."""
        assert node.leaf is not None
        adds = node.leaf.gradient().events
        if adds and isinstance(adds[-1], Add) and adds[-1].backward is event:
            adds[-1].path = event.path
            return
        if not node.cut:
            event.delivered = True
        elif level == SURE:
            self.severed.rewraps.append((node, event))
        lean = lean | node.lean | event.lean
        if event.doubted:
            lean = lean | self.raising.in_doubt(node, event)
        if level != SURE:
            lean = lean | {Convention.C}
        else:
            event.anchored = True
        must = not event.returns and (level == SURE or (level == BY_USE and not event.anchored))
        adds.append(Add(event, must, lean, event.path | when))

    def _above(self, node: Node, level: int, path: Path) -> Iterator[tuple[Node, int, Path]]:
        """What backward visits after a node, how that is part of it, and under which guard."""
        guards = node.guards or (ALWAYS,) * len(node.parents)
        sure = level == SURE and not node.may
        past = node.requires is None and node.facts is not None and "past" in node.facts
        else_by = BESIDE if past else min(level, BY_USE) if level != BY_USE else self._by_use(node)
        for parent, guard in zip(reversed(node.parents), reversed(guards), strict=True):
            if contradicts(guard, path):
                continue
            if sure and parent.requires is None and surely(parent):
                for arm in live_arms(parent, path | guard):
                    yield parent, SURE, arm - path
            elif parent.requires is True and not past:
                yield parent, SURE if sure else min(level, BY_USE), guard - path
            else:
                yield parent, else_by, guard - path

    def _by_use(self, node: Node) -> int:
        """How what may have a graph is part of a backward that comes to a node only by use: where another
        operand has one, and the node is there for that, it is enough to be meant."""
        if node.requires is True and not node.may and any(one.requires is True for one in node.parents):
            return BESIDE
        return BESIDE if len(node.parents) > 1 and any(map(self._asked, node.parents)) else BY_USE

    def _asked(self, operand: Node) -> bool:
        """Whether somebody asked for a leaf that an operand may be made of."""
        leaves = self.severed.leaves
        return bool(leaves.asked) and any(
            leaves.may_learn(node.facts["value"])
            for node in islice(upstream([operand], _perhaps), FAR)
            if node.facts is not None and "value" in node.facts
        )


def _perhaps(node: Node) -> tuple[Node, ...]:
    """What went into a node that may have a graph."""
    return node.parents if node.requires is None else ()
