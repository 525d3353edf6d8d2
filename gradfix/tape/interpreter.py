"""The abstract tape: executes a module's `ast` on a simulated autograd.

Autograd is a machine with few rules, and each bug in gradfix's scope breaks one of them. So nothing is
matched here: the program is executed, on values that stand for tensors, and the machine below notices what
torch would notice. Take a block that everybody has written:

    1  def forward(self, x):
    2      out = F.relu(self.bn(self.conv(x)))
    3      if self.residual:
    4          out += x
    5      return out

*Values* (`values`). `x` is an argument nobody gave: an Unknown, of which convention D says that it requires
grad. `self.conv` is a Layer with two leaves; calling it makes a Tensor with a Node (what went in) and a
Storage (the memory). The effects table says that conv keeps its input, so the node is put among that
storage's `savers`; relu keeps its *result*, so the storage of `out` gets a saver as well. `self.residual`
is not known either, but it is the same Unknown each time it is read, which is what makes path conditions
possible.

*Paths* (`paths`, `conditions`). Line 3 can't be decided. Both arms run on the same state, one after the
other, each under its own literal: `{residual}` and `{not residual}`. While an arm runs, the `trail` notes
every cell it overwrites; at its end the state is put back, and after the last arm each cell gets what it
held at the end of each arm, as an Alt of guarded options (a Node becomes a phi). Events are not undone: a
save, a write, a backward carries the path on which it happened, and two events concern each other only
where their paths don't contradict.

*Writes* (`machine`, `operations`). Line 4 is `out.add_(x)`: the version of out's storage goes up, and every
saver whose path is implied by the write's is spoiled: whenever line 4 runs, relu's result is lost. Had the
save been under a flag that the write isn't under, nothing would be certain, and nothing would be said. The
tensor then gets the write's node as its history; views of the same storage rebuild theirs when they are
next looked at, as in torch.

*Backward* (`backward`, `gradients`). Line 5 hands `out` to callers who, by convention D, backpropagate it:
a virtual Backward walks the graph, meets relu's node, finds it spoiled, and reports the chain of places
(saved 2, overwritten 4) under the condition `self.residual`. A real `loss.backward()` does more: it frees
what it walked, adds a contribution to the gradient slot of each leaf, and where the root has no graph it
looks for the *cut* (a node that ends gradients and knows how) which keeps the graph away. A step uses the
slots; a contribution that an earlier step has used already is stale, one that was cleared before any step
is erased.

*Sure and unsure.* Every fact is True, False or None. Only True may lead to a defect. What isn't known is
read in the way that silences: an unknown call may write what it is given, may clear gradients, may or may
not be made of its arguments. A fact that leans on a convention (A to G) carries its letters along, and what
it leads to is likely, not certain.

*Work.* Loops run twice, so that what one turn leaves behind meets the next; inside a later turn, loops run
once, so that nesting costs a sum and not a product. Calls are followed to a bounded depth, and each entry
(`entries`: the module itself, then each class and function that nobody called and that holds a possible
culprit) has a share of a budget in proportion to the file. What exceeds it is reported as too complex."""

from __future__ import annotations

import ast
import gc
import re
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from gradfix.tape.defects import Defect, Fact, Span
from gradfix.tape.definitions import Code, Function, Package, Scope
from gradfix.tape.effects import Effect
from gradfix.tape.events import Backward, on_path, partings
from gradfix.tape.exits import Exits, Loop
from gradfix.tape.frameworks import ROWS, Row
from gradfix.tape.gradients import Gradients
from gradfix.tape.graph import Node, Tensor
from gradfix.tape.overloads import Bound
from gradfix.tape.paths import ALWAYS, Path, meet
from gradfix.tape.reports import span_of
from gradfix.tape.trail import Changes, alternatives, narrowed, possible
from gradfix.tape.values import (
    NOTHING,
    UNDEFINED,
    Alt,
    Const,
    Foreign,
    Lean,
    Place,
    Seq,
    Unknown,
    Value,
    stamp,
)

if TYPE_CHECKING:
    from gradfix.source import Source

Resolver: TypeAlias = "Callable[[str, str, int], Source | None]"
"""(importing file, dotted module, level) to the parsed first-party module, if it is one."""

DEPTH = 14
"""How deep calls are followed."""
SELDOM = 50_000
"""After how many new objects cycles are looked for."""


@dataclass(frozen=True, slots=True)
class Silence:
    """Something that the tape looked at and could not decide."""

    span: Span
    reason: str


@dataclass(frozen=True, slots=True)
class Analysis:
    """What the tape found in one file."""

    defects: tuple[Defect, ...]
    silences: tuple[Silence, ...] = ()
    too_complex: str = ""
    """Why the analysis was not finished, "" when it was."""


class TooComplexError(Exception):
    """The work that a file may cost is used up."""


class Frame:
    """One activation of a function: what it returned, and on which paths."""

    __slots__ = (
        "aliases",
        "caller",
        "code",
        "entry",
        "exits",
        "loops",
        "owner",
        "partings",
        "receiver",
        "returns",
        "scope",
        "yields",
    )

    def __init__(self, scope: Scope, code: Code | None, entry: Path) -> None:
        self.scope = scope
        self.caller: Frame | None = None
        self.code = code
        self.entry = entry
        self.returns: list[tuple[Path, Value]] = []
        self.yields: list[Value] | None = None
        self.exits: Exits | None = None
        """The ways out of it, where it can be left in one arm of a branch."""
        self.loops: list[Loop] = []
        """The loops that are running, innermost last."""
        self.receiver: Value | None = None
        self.owner: Any = None
        self.partings = 0
        self.aliases: dict[str, Scope] = {}
        """Names declared global or nonlocal, and where they live."""


SWITCHES = frozenset({"requires_grad", "requires_grad_", "detach_"})
"""What changes whether a tensor that already exists requires grad."""
MODE = "set_grad_enabled"
"""What changes, as a statement, whether anything after it is recorded."""
WORDS = re.compile(rb"\b(?:requires_grad_?|detach_|set_grad_enabled)\b")
PARTINGS = 2
"""How often a function's remainder is run once more for that."""


class Parted(ast.If):
    """A branch with what follows it in both arms: its test is not one that was written around all of that."""


def _switches(node: ast.AST) -> bool:
    """Whether what follows may require grad after this where it doesn't without it."""
    if isinstance(node, ast.Attribute):
        return node.attr in SWITCHES
    called = node.value.func if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None
    return isinstance(called, ast.Attribute) and called.attr == MODE


def _with_rest(statement: ast.If, rest: Sequence[ast.stmt]) -> ast.If:
    """A branch with what follows it moved into both arms."""
    moved = Parted(statement.test, [*statement.body, *rest], [*statement.orelse, *rest])
    return ast.copy_location(moved, statement)


Evaluate: TypeAlias = "Callable[[Interpreter, Any], Value]"
Execute: TypeAlias = "Callable[[Interpreter, Any], str | None]"

EVALUATE: dict[type[ast.AST], Evaluate] = {}
EXECUTE: dict[type[ast.AST], Execute] = {}


def evaluates(*kinds: type[ast.AST]) -> Callable[[Evaluate], Evaluate]:
    """Register how an expression is evaluated."""

    def register(function: Evaluate) -> Evaluate:
        EVALUATE.update(dict.fromkeys(kinds, function))
        return function

    return register


def executes(*kinds: type[ast.AST]) -> Callable[[Execute], Execute]:
    """Register how a statement is executed: it answers how the block ended, or None where it goes on."""

    def register(function: Execute) -> Execute:
        EXECUTE.update(dict.fromkeys(kinds, function))
        return function

    return register


class Interpreter(Gradients):
    """The machine with Python on it."""

    def __init__(self, file: str, lines: Sequence[bytes], work: int, resolve: Resolver | None) -> None:
        super().__init__(file, lines)
        self.module: ast.Module | None = None
        self.resolve = resolve
        self.work = work
        self.floor = 0
        """How much work must be left over by what is being done."""
        self.abroad = work // 2
        """How much work calls into other files may still cost."""
        self.too_long: set[int] = set()
        """Functions of other files that cost more than they may."""
        self.frame = Frame(Scope({}, None, None), None, ALWAYS)
        self.stack: list[Code] = []
        self.handed: list[Value] = []
        """Tensors given to calls that aren't known, while a forward is entered on its own."""
        self.accumulated: dict[Span, list[Any]] = {}
        self.put_by: list[tuple[Span, Node, int]] = []
        """Results that were put by after their graph was walked, and when."""
        self.passed_on: set[int] = set()
        """Nodes whose tensors were returned or given to calls that aren't known."""
        self.rebound: dict[int, tuple[Tensor, Tensor, ast.AST]] = {}
        self.read_grads: list[Tensor] = []
        self.plain_leaves: list[tuple[Any, str, Tensor, Tensor]] = []
        """Tensors of modules that require grad, and are no parameters."""
        self.replacements: list[tuple[Value, Value, Place]] = []
        self.loads: dict[int, dict[str, list[int]]] = {}
        self.functions: list[Function] = []
        self.parting: dict[int, bool] = {}
        self.switching: dict[str, list[int]] = {}
        """The lines of each file with a word of what switches."""
        self.jumps: dict[int, frozenset[str]] = {}
        self.modes: list[tuple[Any, ...]] = []
        """The grad modes outside the with statements that are running, innermost last."""
        self.unfinished: list[type[Exception]] = []
        """Why entries were left before their end."""
        self.stars: list[str] = []
        self.import_files: dict[str, str] = {}
        self.resolved: dict[str, Value | None] = {}
        self.packages: dict[str, Package] = {}
        self.later_turn = False
        """Whether loops met here run one turn only: the loop around them is in a later turn of its own."""
        self.codes: dict[int, Code] = {}
        self.classes: list[Any] = []
        self.memo: dict[Any, tuple[Value, Any, Any]] = {}
        """What calls returned that did nothing else, as long as nothing has happened since."""
        self.memo_clock = 0
        self.unbound: dict[str, Value] = {}
        self.statement: ast.AST | None = None
        """The call that the present expression statement consists of."""
        self.moved = False
        """Whether something was moved to a device."""
        self.hooked = False
        self.homeless: list[tuple[list[int], Place, dict[str, Fact]]] = []
        """Layers in plain containers of a module, as long as nobody else registers them."""
        self.exported = False
        """Whether a function of autograd was run that has no backward."""
        self.froze = False
        """Whether parameters were told to require no grad."""
        self.keep_alive: list[Value] = []
        """What path conditions are about: their keys are identities."""
        self.rows: Mapping[str, Row] = ROWS
        """What is known of frameworks."""
        self.wrapped: dict[int, tuple[Value, Row, tuple[Value, ...]]] = {}
        """Modules that a framework has wrapped, with what else it was given."""
        self.supposed: dict[int, Any] = {}
        """Values that are taken for optimizers by their use."""
        self.early: list[Any] = []
        """Steps of such values that came before their backward."""
        self.loose: dict[int, Value] = {}
        """What was handed to calls that aren't known."""
        self.results: dict[int, tuple[Value, ast.AST]] = {}
        """What calls that aren't known have returned, and the calls."""
        self.elements: dict[int, Value] = {}
        """What loops have taken out of values that came in from elsewhere."""
        self.fed: set[int] = set()
        """Calls through whose results a backward has run."""
        self.root: Code | None = None
        """The function whose result a framework backpropagates."""

    @property
    def scope(self) -> Scope:
        """The names of the running function."""
        return self.frame.scope

    # -- expressions and statements ------------------------------------------------------------------------

    def eval(self, node: ast.expr) -> Value:
        """The value of an expression."""
        self.work -= 1
        if self.work < self.floor:
            raise TooComplexError
        handler = EVALUATE.get(type(node))
        return handler(self, node) if handler is not None else Unknown("an expression that isn't followed")

    def run(self, statements: Sequence[ast.stmt]) -> str | None:
        """Execute a block; how it ended, or None where it runs off its end."""
        for i, statement in enumerate(statements):
            self.work -= 1
            if isinstance(statement, ast.If) and i + 1 < len(statements) and self.parts_ways(statement):
                self.frame.partings += 1
                return EXECUTE[Parted](self, _with_rest(statement, statements[i + 1 :]))
            handler = EXECUTE.get(type(statement))
            if handler is not None and (ended := handler(self, statement)) is not None:
                return ended
        return None

    def parts_ways(self, statement: ast.If) -> bool:
        """Whether what follows is run after each arm of a branch."""
        return self.frame.partings < PARTINGS and self.switches(statement)

    def switches(self, statement: ast.If) -> bool:
        """Whether the arms differ in what requires grad."""
        known = self.parting.get(id(statement))
        if known is None:
            known = type(statement) is Parted or self._may_switch(statement)
            if known:
                inside = (node for part in (*statement.body, *statement.orelse) for node in ast.walk(part))
                known = any(map(_switches, inside))
            self.parting[id(statement)] = known
        return known

    def _may_switch(self, statement: ast.If) -> bool:
        """Whether the text of a branch has a word of what switches."""
        lines = self.switching.get(self.file)
        if lines is None:
            text = enumerate(self.sources[self.file], 1)
            lines = self.switching[self.file] = [i for i, line in text if WORDS.search(line)]
        at = bisect_left(lines, statement.lineno)
        return at < len(lines) and lines[at] <= (statement.end_lineno or statement.lineno)

    def each(self, value: Value, operation: Callable[[Value], Value]) -> Value:
        """Apply an operation to a value, to each alternative on its own path."""
        if type(value) is not Alt:
            return operation(value)
        base, assumed = self.path, self.assumed
        feasible = possible(value, base)
        if len(feasible) < 2:
            return operation(feasible[0][1] if feasible else UNDEFINED)
        options: list[tuple[Path, Value]] = []
        self.trail.spread -= len(feasible)
        try:
            for both, option in feasible:
                added = both - base
                self.path, self.assumed = both, assumed | added
                options.append((added, operation(option)))
        finally:
            self.path, self.assumed = base, assumed
        return alternatives(options, self.trail.limit)

    def on_each(self, value: Value, effect: Callable[[Value], object]) -> None:
        """Do something to a value, to each alternative on its own path."""

        def apply(one: Value) -> Value:
            effect(one)
            return one

        self.each(value, apply)

    def fork(self, arms: Sequence[tuple[Path, Callable[[], str | None]]]) -> str | None:
        """Run arms that exclude each other on the same state, and join what they leave."""
        base = self.path
        feasible = [(guard, run, both) for guard, run in arms if (both := meet(base, guard)) is not None]
        if len(feasible) == 1:
            return feasible[0][1]()
        live: list[tuple[Path, Changes]] = []
        ended: list[str] = []
        for guard, run, both in feasible:
            self.trail.open(stamp())
            self.path = both
            try:
                how = run()
            finally:
                left = self.path
                self.path = base
                changes = self.trail.undo()
            if how is None:
                live.append((guard | (left - base), changes))
            else:
                ended.append(how)
        if not live:
            return "raise" if all(how == "raise" for how in ended) else "parted"
        if len(live) == 1 and ended:
            self.trail.merge([(ALWAYS, live[0][1])])
            self.path = base | live[0][0]
        else:
            self.trail.merge([(guard, changes) for guard, changes in live])
        return None

    def operate(self, op: str, effect: Effect, bound: Bound, place: Place, form: str = "method") -> Value:
        """Run an operation; what it writes may be in a graph on some paths only."""
        act = super().operate
        if not effect.writes:
            return act(op, effect, bound, place, form)
        return self.parted(bound.get(effect.writes[0]), lambda: act(op, effect, bound, place, form))

    def parted(self, target: Value | None, write: Callable[[], Value]) -> Value:
        """Write to a tensor, once on the paths where it is in a graph and once on the others."""
        guards = self._guards(target) if isinstance(target, Tensor) else ()
        if not guards:
            return write()
        results: list[tuple[Path, Value]] = []

        def arm(guard: Path) -> None:
            results.append((guard, write()))

        held, self.narrow = self.narrow, True
        self.fork([(guard, partial(arm, guard)) for guard in guards])
        self.narrow = held
        return alternatives(results)

    def _guards(self, target: Tensor) -> tuple[Path, ...]:
        """The paths on which a tensor's memory has different histories, where one is in a graph."""
        owner = target.base if target.base is not None and target.view != "loose" else target
        node = self.history(owner)
        if owner.requires is not None or self.requires(owner) is not None:
            return ()
        guards = partings(node)
        return guards if any(on_path(node, self.path | guard) for guard in guards) else ()

    # -- names ---------------------------------------------------------------------------------------------

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
        if value is None:
            return UNDEFINED
        return narrowed(value, self.path) if type(value) is Alt else value

    def store(self, name: str, value: Value) -> None:
        """Bind a name in the running function."""
        frame, trail = self.frame, self.trail
        own = frame.scope
        scope = frame.aliases.get(name, own) if frame.aliases else own
        if scope is not own:  # a name of the running function is nobody else's business
            trail.clock += 1
        trail.fill(scope, scope.names, name, value)

    def carried(self, node: Node, earlier: Backward, event: Backward) -> dict[str, Fact]:
        """The name outside the running function that gives each of its calls the same graph."""
        own = self.frame.scope
        scope = None if earlier.place is not event.place else own.outer or own.globals
        while scope is not None and scope is not own:
            for name, value in scope.names.items():
                if isinstance(value, Tensor) and value.node is node:
                    return {"outside": name}
            scope = scope.outer
        return {}

    def unknown(self, why: str, *holds: Value) -> Unknown:
        """A value that isn't decided, made from others."""
        return Unknown(why, tuple(value for value in holds if not isinstance(value, type(UNDEFINED))))

    def is_statement(self, node: ast.AST) -> bool:
        """Whether a call stands alone, so that its effect lasts."""
        return self.statement is node

    def escape(self, value: Value) -> None:
        """Hand a value to code that isn't known: it may change whatever can be changed."""
        from gradfix.tape.escapes import escape

        escape(self, value)

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

    @staticmethod
    def memo_key(code: Code, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Any:
        """What tells two calls of a function apart."""
        return (
            id(code),
            tuple(
                value.value if isinstance(value, Const) and _plain(value.value) else id(value)
                for value in args
            ),
            tuple((name, id(value)) for name, value in kwargs.items()),
        )

    def written(self, place: Place) -> ast.expr | None:
        """The expression of the analysed file that a statement or call writes."""
        from gradfix.tape.aliases import written_expression

        return None if place is None or isinstance(place, Foreign) else written_expression(self, place)

    def in_tuple(self, place: Place) -> bool:
        """Whether what is written is an element of a tuple, to which nothing can be assigned."""
        node = self.written(place)
        held = node.value if isinstance(node, ast.Subscript) else None
        owner = self.load(held.id) if isinstance(held, ast.Name) else None
        return isinstance(owner, Seq) and owner.kind == "tuple"

    def blames_rebinding(self, node: Node) -> bool:
        """Whether a leaf whose name was bound to a result explains a severed root."""
        below = {id(one) for one in self.below(node)}
        for value, held, statement in self.rebound.values():
            if id(value.node) in below and not (value.leaf is True and value.requires is True):
                self.report(
                    "leaf_rebound",
                    statement,
                    [(held.place, "the leaf"), (statement, "its name is bound to another tensor here")],
                    facts={"target": held.name},
                    says="element 0 of tensors does not require grad and does not have a grad_fn",
                )
                return True
        return False

    def sees_write(self, tensor: Tensor, place: Place) -> bool:
        """Whether a name other than the written one shows the same memory later on."""
        from gradfix.tape.aliases import sees_write

        return sees_write(self, tensor, place)


def _plain(value: Any) -> bool:
    return isinstance(value, (str, bool)) or value is None


def analyse(source: Source, resolve: Resolver | None = None, rows: Mapping[str, Row] = ROWS) -> Analysis:
    """Execute a module on the tape and collect the defects; `rows` is what is known of frameworks."""
    from gradfix.tape.entries import analyse_module

    before = gc.get_threshold()
    if before[0]:  # nearly all that an analysis makes lives until its end
        gc.set_threshold(max(before[0], SELDOM), *before[1:])
    try:
        return analyse_module(source, resolve, rows)
    finally:
        gc.set_threshold(*before)


__all__ = ["NOTHING", "Analysis", "Interpreter", "Lean", "Mapping", "Seq", "Silence", "analyse", "span_of"]
