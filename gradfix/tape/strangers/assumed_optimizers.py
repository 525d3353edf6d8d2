"""Optimizers that nobody has seen being made: what is cleared and stepped is one, whatever it holds.

`def train(model, loader, optimizer, criterion)` says nothing of its arguments, but what has `zero_grad()` and
`step()` called on it holds some leaves, and every backward may fill them. So it gets one leaf that stands for
them all, to which every backward adds. Only what is wrong for any leaves is reported: a step that finds
nothing as what arrived was cleared, a step on what an earlier step has used. Whatever else could fill or
clear them (a call that isn't known, another `zero_grad()`, a look at `.grad`) is a doubt, and silences. Calls
that only make what is backpropagated later on (`criterion(model(x), y)`) are known by their place: in the
turn before, a backward ran through what they returned.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from gradfix.defects.reasons import What
from gradfix.tape.domain.definitions import Class, Instance
from gradfix.tape.domain.events import Add, Backward, Clear, Doubt, Use
from gradfix.tape.domain.graph import Tensor, upstream
from gradfix.tape.domain.torch_values import Layer, Optimizer, Weights
from gradfix.tape.domain.values import Seq, Unknown
from gradfix.tape.domain.why import Why, why_of
from gradfix.tape.machine.account import newest_call, why_of_call
from gradfix.tape.machine.cuts import in_order
from gradfix.tape.machine.here import span_of
from gradfix.tape.strangers.assumed_steps import BY_USE, nothing_left, too_early, used_before
from gradfix.tape.strangers.data_alone import inside, of_data_alone
from gradfix.tape.strangers.own_forwards import passes_by

if TYPE_CHECKING:
    from gradfix.tape.domain.graph import Node
    from gradfix.tape.domain.values import Place, Truth, Value
    from gradfix.tape.interpreter.interpreter import Interpreter
    from gradfix.tape.interpreter.names import Names
    from gradfix.tape.interpreter.occasions import Walked
    from gradfix.tape.interpreter.state import Strangers
    from gradfix.tape.machine.machine import Machine

MADE_OF = 4
"""Through how many values the parameters are looked for that an optimizer was made with."""
DEEP = 200
"""How many values are looked through for the calls that a loss is made by."""


class Supposed:
    """A value that is taken for an optimizer."""

    __slots__ = ("complete", "given", "optimizer", "owners", "value")

    def __init__(self, value: Unknown, optimizer: Optimizer) -> None:
        self.value = value
        self.owners = tuple(_owners(value))
        """The value and what it is an attribute of."""
        self.optimizer = optimizer
        given = list(_given(value))
        self.given = {id(leaf) for leaves, _ in given for leaf in leaves} if given else None
        """The parameters that it was made with, as far as they are known."""
        self.complete = bool(given) and all(complete for _, complete in given)
        """Whether these are all."""

    @property
    def leaf(self) -> Tensor:
        """The one leaf that stands for all it holds."""
        return self.optimizer.leaves[0]


def supposed(strangers: Strangers, value: Unknown, node: ast.AST) -> Supposed:
    """The optimizer that a value is, with what has happened to its gradients so far."""
    found = strangers.supposed.get(id(value))
    if found is None:
        leaf = strangers.graph.leaf(None, None)
        optimizer = Optimizer("", [leaf], False, strangers.here.at(node))
        optimizer.lean = BY_USE
        strangers.timeline.on = True
        if id(value) not in strangers.timeline.schedules:
            strangers.timeline.strange = True
        strangers.machine.gradients.stand_ins.append(leaf)
        found = strangers.supposed[id(value)] = Supposed(value, optimizer)
        events = leaf.gradient().events
        if id(value) in strangers.loose:
            events.append(Doubt(None, strangers.here.path, newest_call(strangers.timeline)))
        else:
            ran = [
                (event, root)
                for event, root in strangers.machine.severed.backwards
                if root.requires is not False
            ]
            before = [(event, Passed(strangers, strangers.names, root)) for event, root in ran]
            others = [passed.arrived(event, found) for event, passed in before if not passed.beside(found)]
            events.extend([*others, *_calls_since(strangers, found, others)])
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and strangers.here.at_home:
        strangers.trail.set(found.optimizer, "name", strangers.reports.text(node.func.value))
    return found


def _calls_since(strangers: Strangers, own: Supposed, arrived: Sequence[Add | Doubt]) -> list[Doubt]:
    """The calls that may have used what arrived before anything was known of an optimizer, since it is there:
    each may be the step of another one, for which that was."""
    newest = next((one.backward.moment for one in reversed(arrived) if isinstance(one, Add)), None)
    made = {id(strangers.results[id(one)][1]) for one in own.owners if id(one) in strangers.results}
    since: list[Doubt] = []
    for call in strangers.timeline.strangers:
        if newest is not None and call.number > newest.number:
            place = call.place if isinstance(call.place, ast.AST) else None
            since.append(Doubt(place, call.path, why_of_call(call)))
        if id(call.place) in made:
            since.clear()
    return since


def clear_supposed(strangers: Strangers, value: Unknown, node: ast.AST) -> None:
    """`optimizer.zero_grad()`: its own gradients for sure, those of others perhaps."""
    own = supposed(strangers, value, node)
    doubted(strangers, None, but=own)
    strangers.timeline.note("clears", own.optimizer.leaves, strangers.here.at(node), strangers.here.path)
    strangers.timeline.note("anything", (value,), strangers.here.at(node), strangers.here.path)
    own.leaf.gradient().events.append(Clear(strangers.here.at(node), strangers.here.path, True))


def step_supposed(strangers: Strangers, value: Unknown, node: ast.AST) -> None:
    """`optimizer.step()`."""
    own = supposed(strangers, value, node)
    _note_step(strangers.machine, own, node)
    events = own.leaf.gradient().events
    if any(isinstance(event, Clear) and event.must for event in events):
        nothing_left(strangers, own, events, node)
    elif why_of(value).what is not What.RUN_TIME and not any(isinstance(event, Use) for event in events):
        strangers.reports.silence(
            strangers.here.at(node),
            "what this holds isn't known, nor whether somebody else clears it",
            why_of(value),
        )
    used_before(strangers, own, events, node)
    events.append(Use(strangers.here.at(node), strangers.here.path, own.optimizer, strangers.timeline.newest))
    strangers.trail.deeds += 1
    now = next(Backward.numbers)
    strangers.machine.optimizers.steps.append(now)
    strangers.machine.optimizers.supposed.append(now)


def _note_step(machine: Machine, own: Supposed, node: ast.AST) -> None:
    """Tell the step of what may be an optimizer of any leaves, or the scheduler of a known one."""
    known = machine.timeline.schedules.get(id(own.value))
    if known is not None and isinstance(known[1], Optimizer):
        machine.timeline.note("schedules", known[1].leaves, machine.here.at(node), machine.here.path)
    else:
        machine.timeline.note("may step", (own.value,), machine.here.at(node), machine.here.path)
    machine.timeline.step(own.optimizer.leaves, machine.here.at(node), machine.here.path)


def doubted(
    strangers: Strangers, call: ast.AST | None, why: Why | None = None, but: Supposed | None = None
) -> None:
    """Something that isn't known may have filled or cleared any gradient."""
    strangers.trail.deeds += len(strangers.supposed)
    for one in strangers.supposed.values():
        if one is not but:
            one.leaf.gradient().events.append(Doubt(call, strangers.here.path, why))


def let_go(strangers: Strangers, value: Value) -> None:
    """A value was handed to what isn't known: so were the optimizers that can be had from it."""
    strangers.loose[id(value)] = value
    for one in strangers.supposed.values():
        if value in one.owners:
            one.leaf.gradient().events.append(
                Doubt(None, strangers.here.path, newest_call(strangers.timeline))
            )


def _given(value: Value, deep: int = MADE_OF) -> Iterator[tuple[Sequence[Tensor], bool]]:
    """The parameters that a value was made with, by way of whatever was made of them, and whether these are
    all."""
    if isinstance(value, (Weights, Optimizer)):
        yield value.leaves, value.complete
    elif isinstance(value, Tensor) and value.parameter:
        yield [value], True
    elif isinstance(value, (Unknown, Seq)) and deep:
        if isinstance(value, Seq) and value.open:
            yield [], False
        for held in value.holds if isinstance(value, Unknown) else value.items:
            yield from _given(held, deep - 1)


def _owners(value: Value) -> Iterator[Value]:
    """A value and what it is an attribute of."""
    for _ in range(8):
        yield value
        if not isinstance(value, Unknown) or len(value.holds) != 1:
            return
        value = value.holds[0]


class Passed:
    """What a backward passes from a root on, looked at once for all supposed optimizers."""

    def __init__(self, strangers: Strangers, names: Names, root: Tensor) -> None:
        self.strangers = strangers
        self.names = names
        self.root = root
        self.node = names.machine.graph.history(root)

    @cached_property
    def nodes(self) -> list[Node]:
        """The nodes that it passes, as far as the leaves."""
        return list(islice(filter(_passes, upstream([self.node], _onward)), DEEP))

    @cached_property
    def below(self) -> list[Node]:
        """All that went into the root, as far as it is looked through."""
        return list(islice(in_order(self.node), DEEP))

    @cached_property
    def for_data(self) -> bool:
        """Whether nothing that an optimizer can hold is seen to be in it."""
        return of_data_alone(self.strangers, self.below)

    @cached_property
    def ends(self) -> list[Node]:
        """The leaves that it comes to, and what else it goes no further from."""
        return [node for node in self.nodes if node.leaf is not None or not any(map(_passes, node.parents))]

    @cached_property
    def cut_off(self) -> bool:
        """Whether all that a root was made of, as far as that is known, was cut off or not recorded."""
        ends = [node for node in self.nodes if not any(map(_passes, node.parents))]
        return bool(ends) and all(any(map(_cut_off, node.parents)) for node in ends)

    @cached_property
    def made_here(self) -> bool:
        """Whether all that can be filled was made by the running function."""
        code = self.names.frame.code
        if code is None:
            return False
        leaves = [node.leaf for node in self.ends if node.leaf is not None]
        lines = range(code.node.lineno, (code.node.end_lineno or 0) + 1)
        return (
            len(self.nodes) < DEEP
            and len(leaves) == len(self.ends)  # what ends in no leaf was made of what isn't known
            and not any(node.may for node in self.nodes)
            and not any(leaf.parameter and leaf.place is None for leaf in leaves)
            and all((line := _line(leaf.place)) in lines or line == 0 for leaf in leaves)
        )

    def reaches(self, leaves: set[int]) -> Truth:
        """Whether some leaves are among those that it passes; None: they may be behind what isn't known."""
        if any(id(node.leaf) in leaves for node in self.ends if node.leaf is not None):
            return True
        whole = len(self.nodes) < DEEP and all(node.leaf is not None for node in self.ends)
        return False if whole and not any(node.may for node in self.nodes) else None

    def beside(self, one: Supposed) -> bool:
        """Whether a backward fills nothing that an optimizer can hold: what was made after it, say."""
        known = one.given if one.complete else None
        if self.cut_off or (known is not None and self.reaches(known) is False):
            return True
        if self._younger(one.value) and not any(node.may for node in self.nodes):
            return True
        since = self.names.frame.scope.born
        return any(getattr(value, "born", 0) < since for value in one.owners) and self.made_here

    def _younger(self, value: Unknown) -> bool:
        """Whether it comes to leaves alone, and all of them were made when an optimizer was there already."""
        born = [node.leaf.born if node.leaf is not None else 0 for node in self.ends]
        return len(self.nodes) < DEEP and bool(born) and min(born) > value.born

    def _without(self, value: Unknown) -> bool:
        """Whether an optimizer was made of objects, and nothing that they hold is seen to bring gradients."""
        objects = list(_objects(value))
        if not objects or any(node.op == "module" for node in self.below):
            return False
        behind = list(_behind(self.strangers, self.below, by_whom=True))
        met = {id(node.leaf) for node in self.ends} | {id(one) for one in behind}
        return len(behind) < DEEP and met.isdisjoint(id(one) for one in _parts(objects))

    def arrived(self, event: Backward, one: Supposed) -> Add | Doubt:
        """What it may have brought; one of data alone may be for what of it was told to require grad."""
        if self.for_data:
            return Doubt(None, event.path, Why(What.BACKWARD, "", event.place))
        other = one.given is not None and not self.reaches(one.given)
        if other or self._younger(one.value) or self._without(one.value):
            return Doubt(None, event.path, Why(What.BACKWARD, "", event.place))
        return Add(event, True, BY_USE)


def filled(vm: Interpreter, walked: Walked) -> None:
    """A backward has run: it may have filled the gradients of every supposed optimizer."""
    root, event = walked
    if root.requires is False or not vm.strangers.supposed:
        return
    passed = Passed(vm.strangers, vm.names, root)
    calls = set(_calls_behind(vm.strangers, passed.below))
    vm.strangers.fed.update(calls)
    for one in vm.strangers.supposed.values():
        if not passed.beside(one):
            arrival = passed.arrived(event, one)
            if isinstance(arrival, Add):
                too_early(vm.strangers, one, event, calls)
            one.leaf.gradient().events.append(arrival)


def _line(place: Place) -> int:
    """The line of a place in this file; 0 for what was no leaf before the function made it one."""
    return span_of(place).line if isinstance(place, ast.AST) else 0 if place is None else -1


def _onward(node: Node) -> tuple[Node, ...]:
    past = node.op == "module" and node.facts is not None and "past" in node.facts
    return node.parents if _passes(node) and node.leaf is None and not past else ()


def _passes(node: Node) -> bool:
    """What is told to require grad where a backward comes by is no more likely to be held than not."""
    return node.requires is not False and node.op != "requires_grad_"


def _cut_off(node: Node) -> bool:
    """Whether a cut is all that a value comes from, by operations that record nothing after it."""
    while not node.cut and node.requires is False and len(node.parents) == 1:
        (node,) = node.parents
    return bool(node.cut)


def _calls_behind(strangers: Strangers, below: Sequence[Node]) -> Iterator[int]:
    """The calls whose results a root was made of."""
    for value in _behind(strangers, below):
        if id(value) in strangers.results:
            yield id(strangers.results[id(value)][1])


def _behind(strangers: Strangers, below: Sequence[Node], by_whom: bool = False) -> Iterator[Value]:
    """The values that nodes were made of where these aren't known, and perhaps what was called for them."""
    stack: list[Value] = []
    for node in below:
        if node.facts and isinstance(node.facts.get("value"), Unknown):
            stack.append(node.facts["value"])
    seen: set[int] = set()
    while stack and len(seen) < DEEP:
        value = stack.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        yield value
        if by_whom and id(value) in strangers.results:
            callee = strangers.results[id(value)][2]
            stack.extend([] if passes_by(callee) else [callee])
        stack.extend(inside(value))


def _objects(value: Value, deep: int = MADE_OF) -> Iterator[Value]:
    """The objects and modules that a value was made of, where it isn't known which of their parameters it has
    got, or the class of one that was made out of sight."""
    if isinstance(value, (Class, Instance, Layer)):
        yield value
    elif isinstance(value, Unknown) and deep:
        for held in value.holds:
            yield from _objects(held, deep - 1)


def _parts(objects: Sequence[Value]) -> Iterator[Value]:
    """Objects and what they hold, and what that holds."""
    stack: list[Value] = [*objects]
    seen: set[int] = set()
    while stack:
        value = stack.pop()
        if id(value) not in seen:
            seen.add(id(value))
            yield value
            stack.extend(value.attrs.values() if isinstance(value, (Instance, Layer)) else inside(value))
            stack.extend((value.items or {}).values() if isinstance(value, Layer) else ())
