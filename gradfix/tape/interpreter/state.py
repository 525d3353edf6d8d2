"""What an entry notes while it runs, and what strangers got from it: made anew for each from the module's."""

from __future__ import annotations

import ast
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, NamedTuple

from gradfix.tape.domain.values import stamp

if TYPE_CHECKING:
    from gradfix.defects import Span
    from gradfix.defects.records import Kept, Misspelt, Unregistered
    from gradfix.tape.domain.definitions import Class, Hook
    from gradfix.tape.domain.graph import Node, Tensor
    from gradfix.tape.domain.paths import Path
    from gradfix.tape.domain.values import Lean, Place, Unknown, Value
    from gradfix.tape.domain.why import Why
    from gradfix.tape.effects.frameworks import Row
    from gradfix.tape.interpreter.names import Names
    from gradfix.tape.machine.machine import Machine
    from gradfix.tape.machine.reports import Draft


class PutBy(NamedTuple):
    """A result that is kept after its graph was walked: a leak, unless a later backward wants it."""

    draft: Draft[Kept]
    root: Node
    when: int


class Waiting(NamedTuple):
    """A value that was added to a total before it is known whether it has a graph."""

    path: Path
    held: Value
    right: Value
    result: Value
    node: ast.AugAssign
    at: int
    goes_on: bool
    """Whether it is added to what an earlier turn left, of a loop that may have many."""


class Homeless(NamedTuple):
    """Leaves in a plain container of a module, and what may have registered them all the same."""

    inside: list[Tensor]
    items: list[Value]
    place: Place
    facts: Unregistered
    whys: tuple[Why, ...]
    cls: Class


class Switched(NamedTuple):
    """A switch that autograd never reads, and what it was to do: in vain, unless that is so in the end."""

    draft: Draft[Misspelt]
    owner: Value
    wanted: Value
    called: str
    """What the owner is called there."""


class Notes:
    """What is noted while a program runs, and judged when something else has happened or at the end."""

    def __init__(self, machine: Machine, before: Notes | None) -> None:
        self.machine = machine
        self.here = machine.here
        self.reports = machine.reports
        self.accumulated: dict[Span, list[Any]] = {}
        self.added: dict[Span, list[Waiting]] = {}
        """What was added to totals and may turn out to have a graph."""
        self.grown: dict[Span, bool] = {}
        """Totals, and whether they were seen to go on from turn to turn of a loop that may have many."""
        self.outlived: set[Span] = set()
        """Totals to which more was added after a backward had walked what was added before."""
        self.put_by: list[PutBy] = []
        """Results that were put by after their graph was walked."""
        self.totals: list[tuple[Node, Span]] = []
        """The sums that results were added to after their graph was walked, and where."""
        self.through_totals: dict[Span, set[Span]] = {}
        """What was put by and keeps a walked graph through such sums alone, with the places of those."""
        self.plain_leaves: list[tuple[Any, str, Tensor, Tensor]] = []
        """Tensors of modules that require grad, and are no parameters."""
        self.replacements: list[tuple[Value, Value, Place, int]] = []
        self.homeless: list[Homeless] = []
        """Layers in plain containers of a module, as long as nobody else registers them."""
        self.switched: list[Switched] = []
        """Switches that were set where autograd never looks."""
        self.switches_asked: list[tuple[Value, ast.AST]] = []
        """Modules of which somebody has asked how such a switch is set, and where."""
        self.asked_for: list[Tensor] = [*before.asked_for] if before else []
        """Results of which somebody has asked whether they have a gradient."""
        self.buffers: set[tuple[int, Any]] = {*before.buffers} if before else set()
        """The attributes of objects that are registered as buffers."""
        self.began = stamp() if before is not None else 0
        """When this was entered: what is older may have changed since, by what nobody calls here."""
        self.on_behalf = False
        """Whether objects are built for those who would use them elsewhere."""
        self.stand_ins: dict[int, Value] = {}
        """The object that was built for all of its class, and of the classes that are made of it."""
        self.taken: dict[int, Value] = {}
        """Values that are taken for granted (convention F)."""
        self.replaced: dict[int, tuple[Value, Lean]] = {**before.replaced} if before else {}
        """Parts of modules, or what may hold some, in the place of which others may stand."""
        self.parallel: dict[int, Value] = {**before.parallel} if before else {}
        """Modules that were wrapped to run on several devices: `.module` of the wrapping is what it holds."""
        self.type_tests: dict[tuple[object, ...], Value] = {}
        """Whether tensors and lists are of classes that aren't known."""
        self.unsure: dict[int, tuple[Value, Lean]] = {}
        """Modules that were put in a mode which isn't known, with what it takes that this is training."""


class Strangers:
    """What code that isn't known was given, and what came back from it."""

    def __init__(self, names: Names, before: Strangers | None) -> None:
        self.names = names
        self.program = names.program
        self.machine = machine = names.machine
        self.here = machine.here
        self.reports = machine.reports
        self.trail = machine.trail
        self.timeline = machine.timeline
        self.graph = machine.graph
        self.passed_on: dict[int, Why] = {**before.passed_on} if before else {}
        """Nodes whose tensors were returned or given to calls that aren't known, and to which."""
        self.hooks: dict[tuple[int, int], Hook] = {**before.hooks} if before else {}
        """The functions that run in the calls of modules, by the identity of both."""
        self.kept: dict[Hashable, dict[int, Value]] = {**before.kept} if before else {}
        """What each package, or what isn't known to be of one, was handed for good."""
        self.early: list[Any] = []
        """Steps of supposed optimizers that came before their backward."""
        self.wrapped: dict[int, tuple[Value, Row, tuple[Value, ...]]] = {**before.wrapped} if before else {}
        """Modules that a framework has wrapped, with what else it was given."""
        self.supposed: dict[int, Any] = {**before.supposed} if before else {}
        """Values that are taken for optimizers by their use."""
        self.loose: dict[int, Value] = {**before.loose} if before else {}
        """What was handed to calls that aren't known."""
        self.results: dict[int, tuple[Value, ast.AST, Value]] = {**before.results} if before else {}
        """What calls that aren't known have returned, and the calls."""
        self.elements: dict[int, Value] = {**before.elements} if before else {}
        """What loops have taken out of values that came in from elsewhere."""
        self.imported: list[Unknown] = [*before.imported] if before else []
        """Modules that were imported as they are: whoever imports them too, has them."""
        self.told: dict[int, Value] = {**before.told} if before else {}
        """What isn't known and was told, or may have been told, to require grad."""
        self.fed: set[int] = {*before.fed} if before else set()
        """Calls through whose results a backward has run."""
