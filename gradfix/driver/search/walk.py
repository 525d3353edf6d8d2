"""The search itself: the try that came furthest is taken up first, until one runs through."""

from __future__ import annotations

import ast
import heapq
import inspect
import itertools
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from torch import nn

from gradfix.driver.recipe import Given, Recipe, Root, Target, Undriven, subject_of
from gradfix.driver.search import typed
from gradfix.driver.search.attempt import Result, Trial
from gradfix.driver.search.clock import TooLongError, in_time
from gradfix.driver.search.conditions import Conditions, conditions
from gradfix.driver.search.drafts import Draft, Path
from gradfix.driver.search.facts import Facts
from gradfix.driver.search.failures import blamed, edits
from gradfix.driver.search.named import named
from gradfix.driver.search.proposals import Proposer
from gradfix.driver.search.smaller import smaller
from gradfix.driver.search.sources import node_of, parameters, text, wanted
from gradfix.driver.search.stepping import is_optimizer, of_subject, repaired
from gradfix.driver.search.takenover import taken
from gradfix.driver.search.turned import turned
from gradfix.driver.search.uses import Reader
from gradfix.driver.values import Argument, Number, Source, Value, printed

GPU = re.compile(
    r"not compiled with CUDA|No CUDA GPUs|no NVIDIA driver|cannot access accelerator", re.IGNORECASE
)
MOST_NEXT = 12
"""What is kept of the edits that one failure suggests."""


def goes_backward(function: Any) -> bool:
    """Whether a function trains by itself."""
    found = node_of(function)
    walk = ast.walk(found[1]) if found is not None else ()
    return any(isinstance(one, ast.Attribute) and one.attr == "backward" for one in walk)


class Walk:
    """One target."""

    def __init__(
        self,
        target: Target,
        thing: Any,
        names: dict[str, Any],
        limits: tuple[int, float],
        options: dict[str, Value] | None = None,
    ) -> None:
        self.target = target
        self.thing = thing
        self.proposer = Proposer(names)
        self.trial = Trial(target, thing, names, self._read, options or {})
        self.most, seconds = limits
        self.until = time.process_time() + seconds
        self.tries = 0
        self.best: Result | None = None
        self.seen: set[Any] = set()
        self.given: dict[str, tuple[Given, ...]] = {}
        """What the project calls it with."""
        self.patience = 0.4 * seconds
        """The time of one try."""

    def found(self) -> Recipe | Undriven:
        """A recipe, or what stopped the try that came furthest."""
        order = itertools.count()
        heaps = [[(0, next(order), draft)] for draft in self.first()]
        while any(heaps):
            for heap in filter(None, heaps):  # whatever one call leads to, the others get their turn
                if self.tries >= self.most or time.process_time() >= self.until:
                    return Undriven(self.target, self._stopped(), self.tries)
                _, _, draft = heapq.heappop(heap)
                result = self._tried(draft)
                recipe = self._recipe(result) if result is not None else None
                if recipe is not None:
                    return recipe
                for weight, one in self._weighed(result) if result is not None else ():
                    heapq.heappush(heap, (weight, next(order), one))
        return Undriven(self.target, self._stopped(), self.tries)

    def _weighed(self, result: Result) -> Iterator[tuple[int, Draft]]:
        """What a try leads to, the nearest with the least weight."""
        if self.best is None or result.progress > self.best.progress:
            self.best = result
        phase, calls = result.progress
        near = 10_000 * phase + 10 * min(calls, 900)
        for at, one in enumerate(itertools.islice(self._next(result), MOST_NEXT)):
            yield 15 * one.edits + at - near, one

    def _stopped(self) -> str:
        if self.best is None or self.best.error is None:
            out = self.tries >= self.most or time.process_time() >= self.until
            return "the lines were never reached" if out else "nothing was left to try"
        error = self.best.error
        first = str(error).splitlines()[0] if str(error) else ""
        return f"{self.best.phase}: {type(error).__name__}: {first[:200]}"

    def _tried(self, draft: Draft) -> Result | None:
        """One try; None: it was made before. An object that is only just known gets its arguments."""
        if draft.key() in self.seen:
            return None
        self.seen.add(draft.key())
        self.tries += 1
        if draft.call is None:
            result = self._in_time(self.trial.build, draft)
            if result.error is not None or result.subject is None:
                return result
            draft = self._called(result.draft, result.subject)
            self.seen.add(draft.key())
        result = self._in_time(self.trial.run, draft)
        self.seen.add(result.draft.key())
        return result

    def _in_time(self, run: Callable[[Draft], Result], draft: Draft) -> Result:
        """A try that takes too long has failed like any other."""
        try:
            with in_time(self.patience):
                return run(draft)
        except TooLongError as error:
            return Result(draft, error=error)

    def first(self) -> Iterator[Draft]:
        """The first drafts."""
        if self.target.form == "function":
            own = self._called(Draft(), None)
            for one in self.given.get("build", ()):
                known = taken(self.proposer, self.thing, one, own.call or ())
                if known is not None and known != own.call:
                    yield replace(own, call=known)
            yield own
            return
        build, others = self.arguments(self.thing, "build", None)
        for one in self.given.get("build", ()):
            known = taken(self.proposer, self.thing, one, build)
            if known is not None and known != build:
                yield Draft(known, None, {}, edits=0)
        yield Draft(build, None, others)

    def _called(self, draft: Draft, subject: Any) -> Draft:
        if self.target.form == "function":
            call, others = self.arguments(self.thing, "call", None)
        else:
            name = self.target.method or ("forward" if isinstance(subject, nn.Module) else "__call__")
            function = getattr(subject, name)
            self.proposer.subject = tuple(self._modules(function, subject))
            call, others = self.arguments(function, "call", subject)
            for one in self.given.get("call", ()) if not self.target.method else ():
                call = taken(self.proposer, function, one, call) or call
        return replace(draft, call=call, others={**draft.others, **others})

    def _modules(self, function: Any, subject: Any) -> list[str]:
        """How a program says the modules of an object: those that a method has to do with, if it has."""
        named = [name for name, _ in of_subject(subject_of(self.target), subject)]
        found = node_of(function)
        own = {one.attr for one in ast.walk(found[1]) if isinstance(one, ast.Attribute)} if found else set()
        return [name for name in named if name.rpartition(".")[2] in own] or named

    def arguments(
        self, function: Any, part: str, this: Any
    ) -> tuple[tuple[Argument, ...], dict[Path, tuple[Value, ...]]]:
        """What is given for each parameter that has no default, and what else might be."""
        found: list[Argument] = []
        others: dict[Path, tuple[Value, ...]] = {}
        known = {name: self.facts(function, name, this) for name in wanted(function)}
        trains = part == "call" and goes_backward(function)
        self.proposer.siblings({name: facts for name, (facts, _) in known.items()})
        for name, (facts, annotation) in known.items():
            self.proposer.trains = trains
            values = self.proposer.of(facts, annotation, part == "build")
            self.proposer.trains = False
            others[part, len(found)] = tuple(values[1:])
            found.append(Argument(name, values[0], part == "build"))
        return tuple(found), others

    def facts(self, function: Any, name: str, this: Any) -> tuple[Facts, Any]:
        """What is known of a parameter: its uses, its annotation."""
        facts = Facts()
        cls = function if isinstance(function, type) else None
        taken: Any = function.__init__ if isinstance(function, type) else function  # type: ignore[misc]
        Reader(facts).parameter(taken, name, this, cls)
        return facts, typed.resolved(parameters(function)[name].annotation, taken)

    def _read(self, facts: Facts, building: bool) -> Value:
        return self.proposer.of(facts, inspect.Parameter.empty, building)[0]

    def _next(self, result: Result) -> Iterator[Draft]:
        if isinstance(result.error, TooLongError):
            yield from smaller(result.draft, self.thing)
            return
        if result.error is None:
            asked = conditions(text(self.target.path), self.target.lines)
            yield from turned(self, result.draft, result.subject, asked)
            return
        if GPU.search(str(result.error)) and not result.draft.at_home:
            yield replace(result.draft, at_home=True)
        yield from named(self, result)
        if "NoneType" in str(result.error):
            asked = Conditions(blamed(result.error, self.target.path))
            yield from turned(self, result.draft, result.subject, asked)
        for one in edits(result, self.target.path):
            same = one.build == result.draft.build
            yield one if same or result.phase == "build" else replace(one, call=one.call)

    def _recipe(self, result: Result) -> Recipe | None:
        """The recipe of a try that ran through; None: go on."""
        if result.phase != "done" or result.error is not None:
            return None
        draft = result.draft
        if self.target.lines and not result.reached & set(self.target.lines):
            return None
        if not result.flows and not draft.carries and not result.backwards and result.roots:
            carried = self.trial.run(replace(draft, carries=True))
            if carried.phase == "done" and carried.error is None and carried.flows:
                result, draft = carried, carried.draft
        result = self._stepping(result)
        draft = result.draft
        roots: tuple[Root, ...] = () if result.backwards else self._roots(result)
        return Recipe(
            target=self.target,
            build=draft.build,
            call=draft.call or (),
            roots=roots,
            learns=result.learns,
            carries=draft.carries,
            training=draft.training,
            at_home=draft.at_home,
            repeats=1 if result.backwards > 1 or result.steps else 2,
            steps=result.steps,
            assumed=tuple(self._assumed(draft)),
        )

    def _stepping(self, result: Result) -> Result:
        """The same with each optimizer over what it was seen to step, if that runs."""
        mended = repaired(result.draft, result.pairs)
        if mended == result.draft:
            return result
        again = self._in_time(self.trial.run, mended)
        lines = set(self.target.lines)
        reached = not lines or again.reached & lines
        return again if again.phase == "done" and again.error is None and reached else result

    def _roots(self, result: Result) -> tuple[Root, ...]:
        """What is backpropagated: of a plain function, what carries a gradient, or is said to be the loss."""
        loss = self.target.loss
        if loss and result.number:
            return (Root("", True),)
        if loss == "whole":
            return tuple(Root(root.path, True) for root in result.roots)
        return result.roots if self.target.form == "module" or result.flows or loss else ()

    def _assumed(self, draft: Draft) -> Iterator[str]:
        """The numbers and objects that nobody has said."""
        if draft.at_home:
            yield "what goes to a GPU stays on the CPU"
        for _, one in draft.arguments():
            if isinstance(one.value, Number) and one.value.free:
                yield f"{one.name}={printed(one.value)}"
            if isinstance(one.value, Source) and one.value.refers and not is_optimizer(one.value):
                yield f"{one.name} is a loss of all parameters"
