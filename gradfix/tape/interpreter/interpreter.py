"""The abstract tape: executes a module's `ast` on a simulated autograd.

Autograd is a machine with few rules, and each bug in gradfix's scope breaks one of them. So nothing is
matched here: the program is executed, on values that stand for tensors, and the machine below notices what
torch would notice. Take a block that everybody has written:

    1  def forward(self, x):
    2      out = F.relu(self.bn(self.conv(x)))
    3      if self.residual:
    4          out += x
    5      return out

*Values* (`values`, `graph`, `histories`). `x` is an argument nobody gave: an Unknown, of which convention D
says that it requires grad. `self.conv` is a Layer with two leaves; calling it makes a Tensor with a Node
(what went in) and a Storage (the memory). The effects table says that conv keeps its input (`keeping`), so
the node is put among that storage's `savers`; relu keeps its *result*, so the storage of `out` gets a saver
as well. `self.residual` is not known either, but it is the same Unknown each time it is read, which is what
makes path conditions possible.

*Paths* (`paths`, `forks`, `conditions`). Line 3 can't be decided. Both arms run on the same state, one
after the other, each under its own literal: `{residual}` and `{not residual}`. While an arm runs, the
`trail` notes every cell it overwrites; at its end the state is put back, and after the last arm each cell
gets what it held at the end of each arm, as an Alt of guarded options (a Node becomes a phi). Events are
not undone: a save, a write, a backward carries the path on which it happened, and two events concern each
other only where their paths don't contradict.

*Writes* (`machine`, `operations`). Line 4 is `out.add_(x)`: the version of out's storage goes up, and every
saver whose path is implied by the write's is spoiled: whenever line 4 runs, relu's result is lost. Had the
save been under a flag that the write isn't under, nothing would be certain, and nothing would be said. The
tensor then gets the write's node as its history; views of the same storage rebuild theirs when they are
next looked at, as in torch.

*Backward* (`backward`, `gradients`). Line 5 hands `out` to callers who, by convention D, backpropagate it:
a virtual Backward walks the graph, meets relu's node, finds it spoiled, and reports the chain of places
(saved 2, overwritten 4) under the condition `self.residual`. A real `loss.backward()` does more: it frees
what it walked, adds a contribution to the gradient slot of each leaf, and where the root has no graph it
looks for the *cut* (`cuts`: a node that ends gradients and knows how) which keeps the graph away. A step
uses the slots; a contribution that an earlier step has used already is stale, one that was cleared before
any step is erased.

*Sure and unsure.* Every fact is True, False or None. Only True may lead to a defect. What isn't known is
read in the way that silences: an unknown call may write what it is given, may clear gradients, may or may
not be made of its arguments. A fact that leans on a convention (A to G) carries its letters along, and what
it leads to is likely, not certain.

*Work.* Loops run twice, so that what one turn leaves behind meets the next; inside a later turn, loops run
once, so that nesting costs a sum and not a product. Calls are followed to a bounded depth, and not for ever
where the same is asked again and again (`often`). Each entry (`entries`: the module itself, then each class
and function that nobody called and that holds a possible culprit) has a share of a budget in proportion to
the file. What exceeds it is reported as too complex."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from gradfix.tape.domain.definitions import Code
from gradfix.tape.domain.graph import Tensor
from gradfix.tape.domain.values import UNDEFINED, Args, Foreign, Kwargs, Place, Unknown, Value
from gradfix.tape.domain.within import Within
from gradfix.tape.interpreter.aliases import sees_write, written_expression
from gradfix.tape.interpreter.frames import Frame
from gradfix.tape.interpreter.grad_switches import EachMode, Parted, Switches, with_rest
from gradfix.tape.interpreter.granted import leaning_on_it
from gradfix.tape.interpreter.limits import TooComplexError
from gradfix.tape.interpreter.occasions import Occasion
from gradfix.tape.interpreter.program import Program
from gradfix.tape.interpreter.state import Notes, Strangers
from gradfix.tape.machine.histories import Scoped
from gradfix.tape.machine.recording import UNSET

if TYPE_CHECKING:
    from typing_extensions import Unpack

DEPTH = 14
"""How deep calls are followed."""


Evaluate: TypeAlias = "Callable[[Interpreter, Any], Value]"
Execute: TypeAlias = "Callable[[Interpreter, Any], str | None]"
"""How the block ended, or None where it goes on."""
Call: TypeAlias = "Callable[[Interpreter, Any, Args, Kwargs, Any], Value]"
Judge: TypeAlias = "Callable[[Interpreter, Any], object]"


@dataclass(frozen=True, slots=True)
class Handlers:
    """Who does what: one explicit table, made where all rooms are known."""

    evaluate: Mapping[type[ast.AST], Evaluate]
    execute: Mapping[type[ast.AST], Execute]
    calls: Mapping[type[Value], Call]
    """Who answers a call, by what is called; for Value itself: who answers where nobody else does."""
    methods: Mapping[str, Callable[[Interpreter, Tensor, Args, Kwargs, ast.AST], Value]]
    """Methods of tensors that the recorded effects can't describe."""
    told: Mapping[type[Occasion], Sequence[Judge]]
    """Who judges what models tell of."""


class Around(Scoped, total=False):
    """What differs inside of something only, as far as it is Python's."""

    frame: Frame
    file: str
    later_turn: bool
    statement: ast.AST | None
    compared: ast.AST | None
    looped: ast.AST | None
    at_yield: Callable[[Value], object] | None
    root: Code | None
    uncalled: bool
    exported: bool
    floor: int
    each_modes: int
    stack: list[Code]
    modes: list[tuple[Any, ...]]
    turns: list[int]


class Interpreter(Switches, Notes, Strangers):
    """The machine with Python on it, for one entry: the module itself, or what is entered after it."""

    def __init__(
        self, program: Program, handlers: Handlers, work: int, before: Interpreter | None = None
    ) -> None:
        Switches.__init__(self, program, before)
        Notes.__init__(self, before)
        Strangers.__init__(self, before)
        self.handlers = handlers
        self.evaluate = handlers.evaluate
        self.execute = handlers.execute
        self.work = work
        self.share = work
        """The work that it began with."""
        self.unfinished = False
        """Whether not all of it was run: what is missing may be in what wasn't."""
        self.floor = 0
        """How much work must be left over by what is being done."""
        self.abroad = work // 2
        """How much work calls into other files may still cost."""
        self.too_long: set[int] = set()
        """Functions of other files that cost more than they may."""
        self.stack: list[Code] = []
        self.modes: list[tuple[Any, ...]] = []
        """The grad modes outside the with statements that are running, innermost last."""
        self.later_turn = False
        """Whether loops met here run one turn only: the loop around them is in a later turn of its own."""
        self.statement: ast.AST | None = None
        """The call that the present expression statement consists of."""
        self.times: dict[int, int] = {}
        """How often each function was called."""
        self.past: dict[Any, Any] = {}
        """What following calls of each kind has cost."""

    def within(self, **now: Unpack[Around]) -> Within:
        """A block in which this is so, and as it was after it."""
        return Within(self, self.trail, now)

    def eval(self, node: ast.expr) -> Value:
        """The value of an expression."""
        self.work -= 1
        if self.work < self.floor:
            raise TooComplexError
        handler = self.evaluate.get(type(node))
        return handler(self, node) if handler is not None else Unknown("an expression that isn't followed")

    def compared_side(self, node: ast.Compare) -> Value:
        """The left side of a comparison, which may be looked at only to see whether it is None."""
        if not isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            return self.eval(node.left)
        with self.within(compared=node.left):
            return self.eval(node.left)

    def run(self, statements: Sequence[ast.stmt]) -> str | None:
        """Execute a block; how it ended, or None where it runs off its end."""
        for i, statement in enumerate(statements):
            self.work -= 1
            if self.grad is None and self.several_modes():
                return self.execute[EachMode](self, EachMode([*statements[i:]], []))
            if isinstance(statement, ast.If) and i + 1 < len(statements) and self.parts_ways(statement):
                self.frame.partings += 1
                return self.execute[Parted](self, with_rest(statement, statements[i + 1 :]))
            handler = self.execute.get(type(statement))
            if handler is not None and (ended := handler(self, statement)) is not None:
                return ended
        return None

    def call(self, callee: Value, args: Args, kwargs: Kwargs, node: Any) -> Value:
        """Call any value."""
        answer = self.handlers.calls.get(type(callee)) or self.handlers.calls[Value]
        if self.taken and id(callee) in self.taken:
            return leaning_on_it(self, lambda: answer(self, callee, args, kwargs, node))
        return answer(self, callee, args, kwargs, node)

    def call_unknown(self, callee: Value, args: Args, kwargs: Kwargs, node: Any) -> Value:
        """Call what isn't known to be anything."""
        return self.handlers.calls[Value](self, callee, args, kwargs, node)

    def tell(self, occasion: Occasion) -> None:
        """Something has happened that others may want to judge."""
        for judge in self.handlers.told.get(type(occasion), ()):
            judge(self, occasion)

    def unknown(self, why: str, *holds: Value) -> Unknown:
        """A value that isn't decided, made from others."""
        return Unknown(why, tuple(value for value in holds if not isinstance(value, type(UNDEFINED))))

    def is_statement(self, node: ast.AST) -> bool:
        """Whether a call stands alone, so that its effect lasts."""
        return self.statement is node

    def written(self, place: Place) -> ast.expr | None:
        """The expression of the analysed file that a statement or call writes."""
        return None if place is None or isinstance(place, Foreign) else written_expression(self, place)

    def sees_write(self, tensor: Tensor, place: Place) -> bool:
        """Whether a name other than the written one shows the same memory later on."""
        return sees_write(self, tensor, place)

    def for_others(self, leaf: Tensor) -> bool:
        """Whether a parameter that nobody has trained is written by what was entered on its own."""
        return self.uncalled and leaf.parameter and leaf.slot is None and self.mode is UNSET

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
