"""The abstract tape: executes a module's `ast` on a simulated autograd.

Autograd is a machine with few rules, and each bug in gradfix's scope breaks one of them. So nothing is
matched here: the program is executed, on values that stand for tensors, and the machine below notices what
torch would notice. Take a block that everybody has written:

    1  def forward(self, x):
    2      out = F.relu(self.bn(self.conv(x)))
    3      if self.residual:
    4          out += x
    5      return out

*Values* (`values`, `graph`, `histories`). `x` is an argument nobody gave: an Unknown, which is taken to
require grad (what hangs on that alone is a suspect). `self.conv` is a Layer with two leaves; calling it
makes a Tensor with a Node (what went in) and a Storage (the memory). The effects table says that conv keeps
its input (`keeping`), so the node is put among that storage's `savers`; relu keeps its *result*, so the
storage of `out` gets a saver as well. `self.residual` is not known either, but it is the same Unknown each
time it is read, which is what makes path conditions possible.

*Paths* (`paths`, `forks`, `conditions`). Line 3 can't be decided. Both arms run on the same state, one
after the other, each under its own literal: `{residual}` and `{not residual}`. While an arm runs, the
`trail` notes every cell it overwrites; at its end the state is put back, and after the last arm each cell
gets what it held at the end of each arm, as an Alt of guarded options (a Node becomes a phi). Events are
not undone: a save, a write, a backward carries the path on which it happened, and two events concern each
other only where their paths don't contradict.

*Writes* (`recording`, `operations`). Line 4 is `out.add_(x)`: the version of out's storage goes up, and every
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

*Parts.* The interpreter is put together of parts, and so is the machine below it (`machine`): each is given
those that it needs, and knows of no other. Where execution is (`here`), the journal (`trail`), what was found
(`reports`), the grad mode, the graph as values show it, what is recorded and kept, the optimizers, what
severs, what fills and uses gradients; above them names, forks, what strangers were given. What the machine
has to know of the program's text it asks through one protocol (`python`), which the interpreter fulfils. A
function takes the part that it uses; who evaluates an expression or calls a value takes the whole.

*Work.* Loops run twice, so that what one turn leaves behind meets the next; inside a later turn, loops run
once, so that nesting costs a sum and not a product. Calls are followed to a bounded depth, and not for ever
where the same is asked again and again (`repeated_calls`). Each entry (`entries`: the module itself, then
each class and function that nobody called and that holds a possible culprit) has a share of a budget in
proportion to its own size. What exceeds it is reported as too complex."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from gradfix.tape.domain.values import Unknown, Value
from gradfix.tape.domain.why import thing
from gradfix.tape.interpreter.budget import Budget
from gradfix.tape.interpreter.forks import Forks
from gradfix.tape.interpreter.grad_switches import EachMode, Parted, Switches, with_rest
from gradfix.tape.interpreter.granted import leaning_on_it
from gradfix.tape.interpreter.imports import asked_for
from gradfix.tape.interpreter.limits import TooComplexError
from gradfix.tape.interpreter.names import Names
from gradfix.tape.interpreter.running import Running
from gradfix.tape.interpreter.state import Notes, Strangers
from gradfix.tape.interpreter.whereabouts import in_this_function, on_a_module
from gradfix.tape.machine.grad_mode import UNSET
from gradfix.tape.machine.machine import Machine

if TYPE_CHECKING:
    from gradfix.tape.domain.events import Backward
    from gradfix.tape.domain.graph import Node, Tensor
    from gradfix.tape.domain.values import Args, Kwargs, Place
    from gradfix.tape.interpreter.dispatch import Handlers
    from gradfix.tape.interpreter.occasions import Occasion
    from gradfix.tape.interpreter.program import Program


class Interpreter:
    """Python on the machine, for one entry: the module itself, or what is entered after it."""

    def __init__(
        self, program: Program, handlers: Handlers, work: int, before: Interpreter | None = None
    ) -> None:
        self.program = program
        self.handlers = handlers
        self.evaluate = handlers.evaluate
        self.execute = handlers.execute
        self.machine: Machine = Machine(program.findings, self, before.machine if before else None)
        machine = self.machine
        self.here = machine.here
        self.reports = machine.reports
        self.trail = machine.trail
        self.timeline = machine.timeline
        self.grad_mode = machine.grad_mode
        self.graph = machine.graph
        self.names: Names = Names(
            machine, program, partial(asked_for, self), before.names if before else None
        )
        self.budget = Budget(work, machine.trail)
        self.forks = Forks(machine, self.budget)
        self.switches = Switches(self.names)
        self.notes: Notes = Notes(machine, before.notes if before else None)
        self.strangers: Strangers = Strangers(self.names, before.strangers if before else None)
        self.running = Running(machine.trail)

    def eval(self, node: ast.expr) -> Value:
        """The value of an expression."""
        budget = self.budget
        budget.work = left = budget.work - 1
        if left < budget.floor:
            raise TooComplexError
        handler = self.evaluate.get(type(node))
        return (
            handler(self, node)
            if handler is not None
            else Unknown(thing("an expression that isn't followed"))
        )

    def eval_kept(self, node: ast.expr) -> Value:
        """The value of an expression that is given a name or handed back: nothing goes through it yet."""
        if not isinstance(node, (ast.GeneratorExp, ast.Call)):
            return self.eval(node)
        with self.running.within(kept=node):
            return self.eval(node)

    def compared_side(self, node: ast.Compare) -> Value:
        """The left side of a comparison, which may be looked at only to see whether it is None."""
        if not isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            return self.eval(node.left)
        with self.running.within(compared=node.left):
            return self.eval(node.left)

    def run(self, statements: Sequence[ast.stmt]) -> str | None:
        """Execute a block; how it ended, or None where it runs off its end."""
        for i, statement in enumerate(statements):
            self.budget.work -= 1
            if self.grad_mode.grad is None and self.switches.several_modes():
                return self.execute[EachMode](self, EachMode([*statements[i:]], []))
            if (
                isinstance(statement, ast.If)
                and i + 1 < len(statements)
                and self.switches.parts_ways(statement)
            ):
                self.names.frame.partings += 1
                return self.execute[Parted](self, with_rest(statement, statements[i + 1 :]))
            handler = self.execute.get(type(statement))
            if handler is not None and (ended := handler(self, statement)) is not None:
                return ended
        return None

    def call(self, callee: Value, args: Args, kwargs: Kwargs, node: Any) -> Value:
        """Call any value."""
        answer = self.handlers.calls.get(type(callee)) or self.handlers.calls[Value]
        if self.notes.taken and id(callee) in self.notes.taken:
            return leaning_on_it(self.notes, lambda: answer(self, callee, args, kwargs, node))
        if self.notes.replaced and id(callee) in self.notes.replaced:
            with self.reports.within(granted=self.reports.granted | self.notes.replaced[id(callee)][1]):
                return answer(self, callee, args, kwargs, node)
        return answer(self, callee, args, kwargs, node)

    def call_unknown(self, callee: Value, args: Args, kwargs: Kwargs, node: Any) -> Value:
        """Call what isn't known to be anything."""
        return self.handlers.calls[Value](self, callee, args, kwargs, node)

    def attribute(self, owner: Value, name: str, node: ast.AST) -> Value:
        """Read `owner.name`."""
        return self.handlers.attribute(self, owner, name, node)

    def set_attribute(
        self, owner: Value, name: str, value: Value, node: ast.AST, *, augmented: bool = False
    ) -> None:
        """`owner.name = value`; augmented: as the end of `owner.name += ...`."""
        self.handlers.set_attribute(self, owner, name, value, node, augmented)

    def assign(self, target: ast.expr, value: Value, node: ast.AST) -> None:
        """Bind a target to a value."""
        self.handlers.assign(self, target, value, node)

    def tell(self, occasion: Occasion) -> None:
        """Something has happened that others may want to judge."""
        for judge in self.handlers.told.get(type(occasion), ()):
            judge(self, occasion)

    def written(self, place: Place) -> ast.expr | None:
        """The expression of the analysed file that a statement or call writes."""
        return self.names.written(place)

    def sees_write(self, tensor: Tensor, place: Place) -> bool:
        """Whether a name other than the written one shows the same memory later on."""
        return self.names.sees_write(tensor, place)

    def meets_again(self, tensor: Tensor) -> bool:
        """Whether the next call of a closure that is called several times meets the same memory."""
        return self.names.meets_again(tensor)

    def lives_on(self, tensor: Tensor) -> bool:
        """Whether the next turn of a loop that runs meets the same memory."""
        return self.names.lives_on(tensor)

    def in_tuple(self, place: Place) -> bool:
        """Whether what is written is an element of a tuple."""
        return self.names.in_tuple(place)

    def in_this_function(self, place: Place) -> bool:
        """Whether a place stands in the text of the function that runs."""
        return in_this_function(self.names, place)

    def on_a_module(self, tensor: Tensor) -> bool:
        """Whether a tensor hangs on a module, which may have been moved since."""
        return on_a_module(self.names, tensor)

    def for_others(self, leaf: Tensor) -> bool:
        """Whether a parameter that nobody has trained is written by what was entered on its own."""
        return self.running.uncalled and leaf.parameter and leaf.slot is None and self.grad_mode.mode is UNSET

    def outside(self, node: Node, earlier: Backward, event: Backward) -> str:
        """The name outside the running function that gives each of its calls the same graph."""
        return self.names.outside(node, earlier, event)

    def blames_rebinding(self, below: Iterable[Node]) -> bool:
        """Whether a leaf whose name was bound to a result explains a root with nothing but this below."""
        return self.names.blames_rebinding(below)
