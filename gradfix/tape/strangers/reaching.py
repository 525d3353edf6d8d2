"""What code that isn't known can get at: by what it is given, and by what the program leaves in the open."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from gradfix.tape.domain.definitions import Bound, Function, Instance, Method, Partial, Super
from gradfix.tape.domain.graph import Tensor
from gradfix.tape.domain.torch_values import Group, Layer, Opaque, Optimizer, Weights
from gradfix.tape.domain.values import Alt, External, Map, Seq, Unknown
from gradfix.tape.interpreter.aliases import names_read
from gradfix.tape.interpreter.inside import all_in
from gradfix.tape.interpreter.modes import LIBRARIES
from gradfix.tape.machine.touches import Touches
from gradfix.tape.torch.other_packages import SILENT_PACKAGES

if TYPE_CHECKING:
    from gradfix.tape.domain.moments import Moment
    from gradfix.tape.domain.values import Value
    from gradfix.tape.interpreter.interpreter import Interpreter
    from gradfix.tape.interpreter.names import Names
    from gradfix.tape.interpreter.running import Running

MANY = 2_000
"""How many values are looked through for leaves; in more than these there may be some."""


def watch(vm: Interpreter) -> None:
    """Let the machine answer what touches leaves, from its present timeline."""
    vm.machine.optimizers.touches = Touches(vm.timeline, Reaching(vm.names, vm.running), vm.reports.span)


class Reaching:
    """Who can get at leaves, in the program as it runs."""

    def __init__(self, names: Names, running: Running) -> None:
        self.names = names
        self.running = running

    def holds(self, values: Sequence[object], memory: frozenset[int]) -> bool:
        """Whether values hold leaves of this memory, or may."""
        stack, seen = list(values), set[int]()
        while stack:
            value = stack.pop()
            if id(value) in seen:
                continue
            seen.add(id(value))
            if len(seen) > MANY or (isinstance(value, Tensor) and id(value.storage) in memory):
                return True
            stack.extend(self._inside(value))
        return False

    @staticmethod
    def clearing(given: object) -> Iterator[Value]:
        """What of this is a function that clears gradients: itself, a method, or what it was made with."""
        if isinstance(given, (Method, Function)):
            if given.name == "zero_grad" if isinstance(given, Method) else _zeroes(given):
                yield given
        elif isinstance(given, (Bound, Partial)):
            yield from (given for _ in Reaching.clearing(given.function))
        elif isinstance(given, Instance):
            methods = (one for cls in given.cls.order for one in cls.attrs.values())
            if found := [one for one in methods if isinstance(one, Function) and _zeroes(one)]:
                yield from (given, *found)
        elif isinstance(given, (Seq, Unknown)):
            for one in given.items if isinstance(given, Seq) else given.holds:
                yield from Reaching.clearing(one) if not isinstance(one, (Seq, Unknown)) else ()

    def exposed(self, memory: frozenset[int], before: Iterable[Moment]) -> bool:
        """Whether code that was given nothing may get at leaves of this memory."""
        if any(self.holds(part, memory) for part in self._in_the_open()):
            return True
        return any(moment.deed == "anything" and self.holds(moment.what, memory) for moment in before)

    @staticmethod
    def stranger(callee: object) -> bool:
        """Whether it isn't known what code a call runs, or where that comes from."""
        if isinstance(callee, Function):
            return False
        path = callee.path if isinstance(callee, External) else getattr(callee, "origin", "")
        return not (path.partition(".")[0] in LIBRARIES or path.startswith(SILENT_PACKAGES))

    def _in_the_open(self) -> Iterator[list[Value]]:
        """What a module's code can name, and what came in from elsewhere."""
        frame = self.names.frame
        yield list(self.names.all_of(frame.scope.globals).values())
        while frame.caller is not None and frame.caller.code is not None:
            frame = frame.caller
        if self.running.uncalled:
            yield [frame.receiver, *frame.scope.names.values()] if frame.receiver else []

    def _inside(self, value: object) -> Iterable[Value]:
        """What can be got at through a value."""
        if isinstance(value, (Seq, Map)):
            return value.items if isinstance(value, Seq) else value.items.values()
        if isinstance(value, Alt):
            return [option for _, option in value.options]
        if isinstance(value, Tensor):
            return [part for _, part in value.storage.parts]
        if isinstance(value, (Optimizer, Weights)):
            return value.leaves
        if isinstance(value, Group):
            return [value.weights]
        if isinstance(value, (Layer, Instance)):
            parts = value.items if isinstance(value, Layer) else None
            return [*value.attrs.values(), *(parts or {}).values()]
        if isinstance(value, Opaque):
            return [value.of, value.weights, *value.children.values()]
        return self._of_code(value)

    def _of_code(self, value: object) -> Iterable[Value]:
        """What a function can get at, and what a value that isn't known was made with."""
        if isinstance(value, Unknown):
            plain = value.tensor is None and value.made is None and value.requires is None
            known = [one for one in (value.tensor, value.module) if one is not None]
            return [*known, *(value.children or {}).values(), *(value.holds if plain else ())]
        if isinstance(value, Bound):
            return [value.function, value.receiver]
        if isinstance(value, Partial):
            return [value.function, *value.args, *value.kwargs.values()]
        if isinstance(value, Function):
            return [*value.defaults.values(), *self._named(value)]
        return [value.receiver] if isinstance(value, (Method, Super)) else []

    def _named(self, function: Function) -> Iterator[Value]:
        """The values that a function's code names around it."""
        names = names_read(self.names.program, function.code.node)
        for scope in function.scope.outward():
            yield from self.names.these(scope, names)


def _zeroes(function: Function) -> bool:
    inside = all_in(function.code.node)
    return any(isinstance(one, ast.Attribute) and one.attr == "zero_grad" for one in inside)
