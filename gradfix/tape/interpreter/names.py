"""Names on the machine: what they are bound to in the running function, and whom that concerns."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, TypedDict

from gradfix.defects import Role
from gradfix.defects.records import Rebound
from gradfix.tape.domain.definitions import Scope
from gradfix.tape.domain.graph import Tensor, is_result
from gradfix.tape.domain.narrowing import narrowed
from gradfix.tape.domain.paths import ALWAYS
from gradfix.tape.domain.values import UNDEFINED, Alt, Foreign, Seq
from gradfix.tape.domain.within import Within
from gradfix.tape.interpreter.aliases import read_again, sees_write, written_expression
from gradfix.tape.interpreter.frames import Frame

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from gradfix.tape.domain.events import Backward
    from gradfix.tape.domain.graph import Node
    from gradfix.tape.domain.values import Place, Value
    from gradfix.tape.interpreter.program import Program
    from gradfix.tape.machine.machine import Machine


class Scoped(TypedDict, total=False):
    """What differs inside of something only."""

    frame: Frame
    since: int


class Names:
    """Python's names: what they are bound to in the running function."""

    def __init__(
        self,
        machine: Machine,
        program: Program,
        asked_for: Callable[[Scope, str], Value | None],
        before: Names | None,
    ) -> None:
        self.machine = machine
        self.asked_for = asked_for
        """What a name of a module is bound to by what of it is executed now."""
        self.program = program
        self.here = machine.here
        self.reports = machine.reports
        self.trail = machine.trail
        self.unbound: dict[str, Value] = {**before.unbound} if before else {}
        """Names that nothing binds here."""
        self.frame: Frame = before.frame if before else Frame(Scope({}, None, None), None, ALWAYS)
        self.rebound: dict[int, tuple[Tensor, Tensor, ast.AST]] = {**before.rebound} if before else {}
        self.since = 0
        """When the closure was called that a step calls again and again, in the numbers of births; 0 outside.
        What is older it meets again at its next call."""

    def within(self, **now: Unpack[Scoped]) -> Within:
        """A block in which this is so, and as it was after it."""
        return Within(self, self.trail, now)

    @property
    def scope(self) -> Scope:
        """The names of the running function."""
        return self.frame.scope

    def load(self, name: str) -> Value:
        """The value of a name."""
        innermost = scope = self.frame.scope
        value = scope.names.get(name)
        while value is None:
            if scope.outer is None:
                value = innermost.globals.names.get(name)
                break
            scope = scope.outer
            value = scope.names.get(name)
        if value is None and innermost.globals.unread is not None:
            value = self.asked_for(innermost.globals, name)
        if value is None:
            return UNDEFINED
        return narrowed(value, self.here.path) if type(value) is Alt else value

    def these(self, scope: Scope, names: Collection[str]) -> list[Value]:
        """What some names are bound to in a scope, those of them that are."""
        if scope.unread is not None:
            for name in names:
                if name not in scope.names:
                    self.asked_for(scope, name)
        return [value for name, value in scope.names.items() if name in names]

    def all_of(self, module: Scope) -> dict[str, Value]:
        """All names of a module."""
        for name in module.unread.stated.binding if module.unread is not None else ():
            if name not in module.names:
                self.asked_for(module, name)
        return module.names

    def store(self, name: str, value: Value) -> None:
        """Bind a name in the running function."""
        frame, trail = self.frame, self.trail
        own = frame.scope
        scope = frame.aliases.get(name, own) if frame.aliases else own
        if scope is not own:  # a name of the running function is nobody else's business
            trail.clock += 1
        trail.fill(scope, scope.names, name, value)

    def outside(self, node: Node, earlier: Backward, event: Backward) -> str:
        """The name outside the running function that gives each of its calls the same graph."""
        own = self.frame.scope
        scope = None if earlier.place is not event.place else own.outer or own.globals
        while scope is not None and scope is not own:
            for name, value in scope.names.items():
                if isinstance(value, Tensor) and value.node is node:
                    return name
            scope = scope.outer
        return ""

    def written(self, place: Place) -> ast.expr | None:
        """The expression of the analysed file that a statement or call writes."""
        return None if place is None or isinstance(place, Foreign) else written_expression(self, place)

    def sees_write(self, tensor: Tensor, place: Place) -> bool:
        """Whether a name other than the written one shows the same memory later on."""
        return sees_write(self, tensor, place)

    def meets_again(self, tensor: Tensor) -> bool:
        """Whether this memory is there already when a closure is called that will be called again."""
        if not self.since:
            return False
        oldest = _oldest(tensor)
        return oldest.storage.argument or oldest.born < self.since

    def lives_on(self, tensor: Tensor) -> bool:
        """Whether this memory is older than a loop that runs."""
        oldest = _oldest(tensor)
        frame: Frame | None = self.frame
        while frame is not None:
            if any(oldest.born < loop.began for loop in frame.loops):
                return True
            frame = frame.caller
        return False

    def read_again(self, place: Place) -> bool:
        """Whether the name that a call writes through is read behind it, before it is bound anew."""
        return read_again(self, place)

    def in_tuple(self, place: Place) -> bool:
        """Whether what is written is an element of a tuple, to which nothing can be assigned."""
        node = self.written(place)
        held = node.value if isinstance(node, ast.Subscript) else None
        owner = self.load(held.id) if isinstance(held, ast.Name) else None
        return isinstance(owner, Seq) and owner.kind == "tuple"

    def blames_rebinding(self, below: Iterable[Node]) -> bool:
        """Whether a leaf whose name was bound to a result explains a root with nothing but this below."""
        nodes = {id(one) for one in below}
        for value, held, statement in self.rebound.values():
            if id(value.node) in nodes and is_result(value):
                self.reports.report(
                    "leaf_rebound",
                    statement,
                    [(held.place, Role.THE_LEAF), (statement, Role.REBOUND)],
                    Rebound(target=held.name),
                    says="element 0 of tensors does not require grad and does not have a grad_fn",
                )
                return True
        return False


def _oldest(tensor: Tensor) -> Tensor:
    """What a view shows, at the end of all views."""
    while tensor.base is not None:
        tensor = tensor.base
    return tensor
