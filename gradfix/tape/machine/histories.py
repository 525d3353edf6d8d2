"""Which nodes a value carries, and whether it is in a graph: for sure, surely not, or on some paths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias, TypedDict

from gradfix.defects import Convention, Role
from gradfix.defects.leaning import weight
from gradfix.defects.written import Written, WrittenView
from gradfix.tape.domain.alternatives import phi
from gradfix.tape.domain.graph import Node, Number, Storage, Tensor
from gradfix.tape.domain.in_graph import on_path
from gradfix.tape.domain.paths import ALWAYS, implies
from gradfix.tape.domain.values import (
    NOTHING,
    UNDEFINED,
    Alt,
    Seq,
    Undefined,
    Unknown,
    either,
)
from gradfix.tape.domain.within import Within

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from gradfix.tape.domain.moments import Timeline
    from gradfix.tape.domain.paths import Path
    from gradfix.tape.domain.trail import Trail
    from gradfix.tape.domain.values import (
        Lean,
        Place,
        Truth,
        Value,
    )
    from gradfix.tape.machine.grad_mode import GradMode
    from gradfix.tape.machine.reports import Reports

Gathered: TypeAlias = "dict[int, Node | None]"
"""By unknown alternative, the node of what it may be made of."""
OWNING, HOLDING = frozenset({Tensor, Number, Unknown}), frozenset({Unknown, Seq, Alt})
"""What can have a history, and what can hold what has one."""
CARRYING = OWNING | HOLDING


class Scoped(TypedDict, total=False):
    """What differs inside of something only."""

    gathered: Gathered | None


def _spread(listed: Seq) -> list[Value]:
    """What is in a list, and in the lists that are in it."""
    found: list[Value] = []
    stack, seen = [*reversed(listed.items)], {id(listed)}
    while stack:
        item = stack.pop()
        if not isinstance(item, Seq):
            found.append(item)
        elif id(item) not in seen:
            seen.add(id(item))
            stack.extend(reversed(item.items))
    return found


def _sole(nodes: tuple[Node, ...]) -> Node:
    """The one node that stands for an alternative. What is no tensor is not one without a graph: where a
    tensor is needed, it isn't this."""
    if len(nodes) == 1:
        return nodes[0]
    node = Node("unknown", None, nodes, None)
    node.may = True
    return node


class Graph:
    """The graph as values show it: where each of them comes from."""

    def __init__(self, reports: Reports, trail: Trail, timeline: Timeline, grad_mode: GradMode) -> None:
        self.here = reports.here
        self.reports = reports
        self.trail = trail
        self.timeline = timeline
        self.grad_mode = grad_mode
        self.gathered: Gathered | None = None
        """Only while a value is gone through."""

    def within(self, **now: Unpack[Scoped]) -> Within:
        """A block in which this is so, and as it was after it."""
        return Within(self, self.trail, now)

    def history(self, tensor: Tensor) -> Node:
        """The node that made a tensor's present value; a view follows what was written to its base."""
        base = tensor.base
        if base is None or tensor.generation >= tensor.storage.generation or tensor.view == "loose":
            return tensor.node
        above = self.history(base)
        node = Node("view", tensor.place, (above,), above.requires)
        node.lean = above.lean
        self.trail.set(tensor, "node", node)
        self.trail.set(tensor, "generation", tensor.storage.generation)
        self.trail.set(tensor, "requires", base.requires)
        return node

    def stale_view(self, tensor: Tensor, used: Place) -> None:
        """One of several views is used after the memory below was written: torch won't rebuild its
        history."""
        write = tensor.storage.writes[tensor.seen]
        base = tensor.base
        if (
            base is None
            or base.requires is not True
            or self.grad_mode.grad is not True
            or self.grad_mode.mode_in_doubt is not False
            or write.silent
            or write.form == "step"
        ):
            return
        if write.place is tensor.place or not implies(self.here.path, write.path):
            return
        if Convention.D in base.lean and tensor.storage.argument:
            return
        written = write.written or Written(aliased=True)
        facts = WrittenView(
            form=write.form, target=written.target, aliased=written.aliased, maker=tensor.node.op
        )
        self.reports.report(
            "inplace_on_view_of_many",
            write.place,
            [(tensor.place, Role.MADE), (write.place, Role.WRITTEN), (used, Role.USED)],
            facts,
            lean=base.lean,
            when=self.here.path,
            says="is a view and its base or another view of its base has been modified inplace",
        )

    def requires(self, value: Value) -> Truth:
        """Whether a value is in a graph."""
        if isinstance(value, Tensor):
            if value.base is not None:
                self.history(value)
                if value.requires is not True and value.view != "loose" and value.base.requires is True:
                    return True  # it says so even if nothing goes through it
            if value.requires is None and (self.here.narrow or value.node.guards is not None):
                return on_path(value.node, self.here.path)
            if value.view == "no_grad" and value.node.leaf is value and value.base is not None:
                return value.base.requires
            return value.requires
        if isinstance(value, Unknown):
            return value.tensor.requires if value.tensor is not None else value.requires
        if isinstance(value, Seq):
            known = either(self.requires(item) for item in value.items if item is not value)
            if known is None and not value.open and self._whatever_is_there(value):
                return True
            return None if value.open and known is False else known
        if isinstance(value, Alt):
            facts = {self.requires(option) for _, option in value.options}
            return facts.pop() if len(facts) == 1 else None
        return False

    def _whatever_is_there(self, value: Seq) -> bool:
        """Whether all requires grad that a list holds on some path: of an empty one nothing is made."""
        ways = [item.options if isinstance(item, Alt) else ((ALWAYS, item),) for item in value.items]
        there = [one for options in ways for _, one in options if not isinstance(one, Undefined)]
        return all(one is not value and self.requires(one) is True for one in there) and bool(there)

    def put_into(self, owner: Unknown, value: Value) -> None:
        """What a graph was put into carries no gradient no longer for sure, nor what that is in."""
        inner: Value = owner
        if self.requires(value) is False:
            return
        while isinstance(inner, Unknown) and inner.requires is False:
            self.trail.set(inner, "requires", None)
            around = inner.holds[0] if inner.holds else UNDEFINED
            kept = around.children if isinstance(around, Unknown) else None
            inner = around if any(child is inner for child in (kept or {}).values()) else UNDEFINED

    def leaf(self, place: Place, requires: Truth, lean: Lean = NOTHING) -> Tensor:
        """A tensor that no operation made."""
        node = Node("leaf", place, (), requires)
        node.path = self.here.path
        node.lean = lean
        tensor = Tensor(node, Storage(), requires, leaf=True)
        node.leaf = tensor
        return tensor

    def tensor_of(self, value: Unknown) -> Tensor:
        """The tensor that an unknown value turns out to be when it is used as one."""
        if value.tensor is None:
            node = value.made or self.guess(value)
            tensor = Tensor(node, Storage(argument=True), value.requires, leaf=None)
            tensor.born = value.born  # whichever branch it is first used in
            self.trail.learn(value, "tensor", tensor)
            return tensor
        return value.tensor

    def guess(self, value: Unknown) -> Node:
        if value.options:
            return self._one_of(value)
        parents = tuple([node for held in value.holds for node in self.nodes(held)])
        known = value.guess
        if known is not None and known.parents == parents and known.requires is value.requires:
            return known
        node = Node("unknown", None, parents, value.requires)
        self.trail.learn(value, "guess", node)
        node.may = True
        node.lean = value.lean
        node.facts = {"value": value, "past": True} if value.method else {"value": value}
        return node

    def _one_of(self, value: Unknown) -> Node:
        """The history of what is one of too many values, by path; looked up once however many ways lead to
        it, and the same as long as these have the same histories."""
        if self.gathered is None:
            with self.within(gathered={}):
                return self._one_of(value)
        if (met := self.gathered.get(id(value))) is not None:
            return met
        made_of = [tuple(self.given(option)) for _, option in value.options]
        known = value.guess
        if known is None or known.facts is None or known.facts.get("made_of") != made_of:
            options = zip([path for path, _ in value.options], map(_sole, made_of), strict=True)
            known = phi(list(options), value)
            known.facts = {"value": value, "made_of": made_of}
            self.trail.learn(value, "guess", known)
        self.gathered[id(value)] = known
        return known

    def given(self, value: Value) -> list[Node]:
        """The nodes of an operand: what isn't known may be made of what it holds, or not."""
        if isinstance(value, Unknown) and value.bare is not True and self._own_node(value) is None:
            guess = self.guess(value)
            if guess.parents:
                return [guess]
            self.trail.learn(value, "bare", True)
            return []
        if isinstance(value, Seq) and any(isinstance(item, (Unknown, Seq)) for item in value.items):
            items = _spread(value)
            carried = (self.given(i) if isinstance(i, Unknown) else self.nodes(i) for i in items)
            return [node for nodes in carried for node in nodes]
        return self.nodes(value)

    def unheard(self, value: Value) -> list[Node]:
        """The nodes of those in a list of operands that nothing is known of: each may be in a graph."""
        found: dict[int, Node] = {}
        stack, seen = [value], {id(value)}
        while stack:
            one = stack.pop()
            if isinstance(one, Unknown):
                if one.requires is None and not self.given(one):
                    found[id(one)] = self.guess(one)
                continue
            inside = one.items if isinstance(one, Seq) else ()
            options = [option for _, option in one.options] if isinstance(one, Alt) else inside
            stack.extend(item for item in options if id(item) not in seen)
            seen.update(map(id, options))
        return [*found.values()]

    def nodes(self, value: Value) -> list[Node]:
        """The nodes that a value carries."""
        if type(value) not in CARRYING:
            return []
        if (own := self._own_node(value)) is not None:
            return [own]
        if isinstance(value, Unknown) and (value.bare is True or not value.holds):
            return []
        if self.gathered is not None:
            return self._walked(value, self.gathered)
        gathered: Gathered = {}
        with self.within(gathered=gathered):
            return self._walked(value, gathered)

    def _walked(self, value: Value, gathered: Gathered) -> list[Node]:
        """The nodes that are met on every way from a value to what it holds."""
        found: dict[int, Node] = {}
        seen: set[int] = set()
        stack, whole = [value], value
        while stack:
            value = stack.pop()
            if type(value) in OWNING and (own := self._own_node(value)) is not None:
                found[id(own)] = own
            elif type(value) not in HOLDING or id(value) in seen:
                continue
            elif isinstance(value, Unknown):
                if value.bare is True:
                    continue
                seen.add(id(value))
                if value.bare is None and value is not whole:
                    found.update([(id(node), node) for node in self._inside(value)])
                else:
                    stack.extend(value.holds[::-1])
            elif isinstance(value, Seq):
                seen.add(id(value))
                stack.extend(value.items[::-1])
            elif isinstance(value, Alt):
                seen.add(id(value))
                stack.extend(self._open(value, found, gathered))
        return list(found.values())

    def _inside(self, value: Unknown) -> list[Node]:
        """The nodes of what an unknown holds, gathered once and then kept as its own."""
        self.trail.learn(value, "bare", True)  # while it is gathered: what it holds may hold it in turn
        held = [node for inner in value.holds for node in self.nodes(inner)]
        self.trail.learn(value, "bare", not held)
        if held and not (len(held) == 1 and held[0].may):
            made = Node("unknown", None, tuple(dict.fromkeys(held)), value.requires)
            made.may, made.lean = True, value.lean
            self.trail.learn(value, "made", made)
            return [made]
        return held

    def _own_node(self, value: Value) -> Node | None:
        """The one node of a value that has a history of its own."""
        if isinstance(value, Unknown):
            if value.tensor is not None:
                return self.history(value.tensor)
            if value.made is not None or value.requires is not None:
                return value.made or self.guess(value)  # nobody has said yet that it is one tensor
        elif isinstance(value, Tensor):
            return self.history(value)
        elif isinstance(value, Number):
            return value.node
        return None

    def _open(self, value: Alt, found: dict[int, Node], gathered: Gathered) -> list[Value]:
        """Join the alternatives that have a history into one node; returns the others."""
        guarded: list[tuple[Path, Node]] = []
        others: list[Value] = []
        for path, option in value.options:
            own = self._own_node(option)
            if own is None and isinstance(option, Unknown) and option.bare is not True:
                own = self._gathered(option, gathered)
            guarded.extend([(path, own)] if own is not None else [])
            others.extend([option] if own is None else [])
        if guarded:
            joined = self._joined(value, guarded)
            found[id(joined)] = joined
        return others

    def _gathered(self, option: Unknown, gathered: Gathered) -> Node | None:
        """What an unknown alternative may be made of, looked up once however many ways lead to it."""
        if id(option) not in gathered:
            gathered[id(option)] = None
            with Within(option, self.trail, {"bare": True}):  # what it holds may hold it in turn
                guess = self.guess(option)
            gathered[id(option)] = guess if guess.parents else None
        return gathered[id(option)]

    @staticmethod
    def _joined(value: Alt, guarded: list[tuple[Path, Node]]) -> Node:
        """The same node each time, as long as the alternatives have the same ones."""
        made_of = [(node, node.requires) for _, node in guarded]
        if value.joined is None or value.joined[0] != made_of:
            value.joined = made_of, phi(guarded)
        return value.joined[1]

    def cut(self, how: str, source: Value, place: Place, at: Place = None) -> Node:
        """A node whose way to `source` carries no gradient."""
        if self.timeline.on:
            self.timeline.note("reads", (source,), place, self.here.path)
        node = Node(how, place, tuple(self.given(source)), False)
        node.cut = how
        node.cut_place = at or place
        node.path = self.here.path
        node.lean = self.lean(source).union(*(parent.lean for parent in node.parents))
        if self.grad_mode.grad is False:
            node.facts = {"within": self.grad_mode.grad_off[1]}
        return node

    def lean(self, value: Value) -> Lean:
        """What a value's requires-grad leans on."""
        if isinstance(value, (Tensor, Unknown, Number)):
            return value.node.lean if isinstance(value, Number) else value.lean
        return NOTHING

    def leaning(self, inputs: Sequence[Value]) -> Lean:
        """The fewest conventions that make one of the inputs require grad."""
        best: Lean | None = None
        for value in inputs:
            for one in value.items if isinstance(value, Seq) else (value,):
                if self.requires(one) is True:
                    lean = self.lean(one)
                    if not lean:
                        return NOTHING
                    best = lean if best is None or weight(lean) < weight(best) else best
        return best or NOTHING
