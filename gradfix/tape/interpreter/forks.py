"""Branches and alternatives: each runs on the same state on its own path, and what they leave is joined."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from gradfix.tape.domain.alternatives import alternatives
from gradfix.tape.domain.graph import Tensor
from gradfix.tape.domain.in_graph import on_path, partings
from gradfix.tape.domain.narrowing import possible
from gradfix.tape.domain.paths import ALWAYS, Arm, meet
from gradfix.tape.domain.values import UNDEFINED, Alt, stamp

if TYPE_CHECKING:
    from gradfix.tape.domain.effect import Effect
    from gradfix.tape.domain.paths import Chain, Path
    from gradfix.tape.domain.trail import Changes
    from gradfix.tape.domain.values import Place, Value
    from gradfix.tape.effects.overloads import Bound
    from gradfix.tape.interpreter.budget import Budget
    from gradfix.tape.machine.machine import Machine


class Forks:
    """What goes several ways at once."""

    def __init__(self, machine: Machine, budget: Budget) -> None:
        self.machine = machine
        self.budget = budget
        self.here = machine.here
        self.trail = machine.trail
        self.graph = machine.graph
        self.operations = machine.operations

    def each(self, value: Value, operation: Callable[[Value], Value]) -> Value:
        """Apply an operation to a value, to each alternative on its own path."""
        if type(value) is not Alt:
            return operation(value)
        base, assumed = self.here.path, self.here.assumed
        feasible = possible(value, base)
        if len(feasible) < 2:
            return operation(feasible[0][1] if feasible else UNDEFINED)
        options: list[tuple[Path, Value]] = []
        arms: list[tuple[Path, Changes]] = []
        self.trail.spread -= len(feasible)
        self.budget.spend(len(feasible))
        with self.here.within(path=base, assumed=assumed):
            choice = stamp()
            for i, (both, option) in enumerate(feasible):
                added = both - base
                self.here.go_on(both, assumed | added)
                self.trail.open(stamp())
                with self.here.within(arms=(*self.here.arms, (choice, i))):
                    options.append((added, operation(option)))
                arms.append((added, self.trail.undo_of(Tensor)))
        if any(changes for _, changes in arms):
            self.trail.merge(arms)
        return alternatives(options, self.trail.limit)

    def on_each(self, value: Value, effect: Callable[[Value], object]) -> None:
        """Do something to a value, to each alternative on its own path."""

        def apply(one: Value) -> Value:
            effect(one)
            return one

        self.each(value, apply)

    def fork(self, arms: Sequence[tuple[Path, Callable[[], str | None]]]) -> str | None:
        """Run arms that exclude each other on the same state, and join what they leave."""
        base = self.here.path
        feasible = [(guard, run, both) for guard, run in arms if (both := meet(base, guard)) is not None]
        if len(feasible) == 1:
            return feasible[0][1]()
        live: list[tuple[Path, Changes]] = []
        ended: list[str] = []
        with self.here.within(path=base):
            for guard, run, both in feasible:
                self.here.go_on(both)
                self.trail.open(stamp())
                how, left = run(), self.here.path
                changes = self.trail.undo()
                if how is None:
                    live.append((guard | (left - base), changes))
                else:
                    ended.append(how)
        if not live:
            return "raise" if all(how == "raise" for how in ended) else "parted"
        if len(live) == 1 and ended:
            self.trail.merge([(ALWAYS, live[0][1])])
            self.here.go_on(base | live[0][0])
        else:
            self.trail.merge([(guard, changes) for guard, changes in live])
        return None

    def chain(self, chain: Chain, arms: Sequence[tuple[int, Callable[[], str | None]]]) -> str | None:
        """Run the arms of a chain that a path leaves, and join what they leave."""
        base = self.here.path
        live: list[tuple[int, Path, Changes]] = []
        ended: list[str] = []
        for arm, run in arms:
            guard: Path = frozenset({(Arm(chain, arm), True)})
            if (both := meet(base, guard)) is None:
                continue
            with self.here.within(path=both):
                self.trail.open(stamp())
                how, left = run(), self.here.path
                changes = self.trail.undo()
            if how is None:
                live.append((arm, guard | (left - base), changes))
            else:
                ended.append(how)
        if not live:
            return "raise" if all(how == "raise" for how in ended) else "parted"
        chain.joined(sum(arm for arm, _, _ in live))
        if len(live) == 1:
            self.trail.merge([(ALWAYS, live[0][2])])
            self.here.go_on(base | live[0][1])
        else:
            self.trail.merge_arms(chain, live)
        return None

    def operate(self, op: str, effect: Effect, bound: Bound, place: Place, form: str = "method") -> Value:
        """Run an operation; what it writes may be in a graph on some paths only."""
        act = self.operations.operate
        if not effect.writes:
            return act(op, effect, bound, place, form)
        target = bound.get(effect.writes[0])
        if isinstance(target, Tensor) and target.grad_of is not None:  # by what may be zero
            self.machine.gradients.clear([target.grad_of], place, must=False)
        return self.parted(target, lambda: act(op, effect, bound, place, form))

    def parted(self, target: Value | None, write: Callable[[], Value]) -> Value:
        """Write to a tensor, once on the paths where it is in a graph and once on the others."""
        guards = self._guards(target) if isinstance(target, Tensor) else ()
        if not guards:
            return write()
        results: list[tuple[Path, Value]] = []

        def arm(guard: Path) -> None:
            results.append((guard, write()))

        with self.here.within(narrow=True):
            self.fork([(guard, partial(arm, guard)) for guard in guards])
        return alternatives(results)

    def _guards(self, target: Tensor) -> tuple[Path, ...]:
        """The paths on which a tensor's memory has different histories, where one is in a graph."""
        owner = target.base if target.base is not None and target.view != "loose" else target
        node = self.graph.history(owner)
        if owner.requires is not None or self.graph.requires(owner) is not None:
            return ()
        guards = partings(node)
        return guards if any(on_path(node, self.here.path | guard) for guard in guards) else ()
