"""Loops: which elements they are run for, and how a turn ends."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from gradfix.defects.reasons import What
from gradfix.tape.domain.definitions import Instance, Suspended
from gradfix.tape.domain.events import Backward
from gradfix.tape.domain.graph import Number, Tensor
from gradfix.tape.domain.torch_values import Layer, Opaque
from gradfix.tape.domain.values import Alt, Const, Range, Seq, Undefined, Unknown, stamp
from gradfix.tape.domain.why import Why, fact
from gradfix.tape.domain.within import Within
from gradfix.tape.interpreter.conditions import condition
from gradfix.tape.interpreter.early_exits import Few, Loop, enter, jumps, rejoin, take
from gradfix.tape.interpreter.inside import all_in
from gradfix.tape.machine.here import span_of
from gradfix.tape.machine.leaves import is_added
from gradfix.tape.python.generators import leaves_early, looped, resume
from gradfix.tape.python.passed_over import bound_in, lean_on_a_turn, leave_in_doubt, pass_over
from gradfix.tape.python.telling_turns import telling_turns
from gradfix.tape.strangers.handed_out import may_take_out
from gradfix.tape.strangers.loader_batches import take_out
from gradfix.tape.torch.elements import EXACT, MANY, any_two, elements, gone_through, part, told_apart
from gradfix.tape.torch.param_groups import asking, doubt_asked, spread, spread_asking

if TYPE_CHECKING:
    from gradfix.tape.domain.paths import Path
    from gradfix.tape.domain.values import Value
    from gradfix.tape.interpreter.interpreter import Interpreter

FEW = 16
"""How many turns may be known to be run for what they add up to be small."""
DEEP = 4
"""Loops around more than so many others run one turn: what a second one leaves behind is met by those."""


def for_statement(vm: Interpreter, node: ast.For | ast.AsyncFor) -> str | None:
    source = looped(vm, node)
    if isinstance(source, Suspended):
        return _in_step(vm, node, source)
    source = told_apart(source)
    if isinstance(source, Alt):
        options = [(guard, option) for guard, option in source.options if not isinstance(option, Undefined)]
        known = any(type(option) is not Unknown for _, option in options)
        if known and len(options) <= 3:
            return vm.forks.fork([(guard, partial(_over, vm, node, option)) for guard, option in options])
        source = Unknown(Why(What.ALTERNATIVES, "several iterables"), tuple(option for _, option in options))
    return _over(vm, node, source)


def _in_step(vm: Interpreter, node: ast.For | ast.AsyncFor, source: Suspended) -> str | None:
    """A loop whose turns are run as its generator yields."""
    ways = jumps(vm.switches, node, node.body)
    with Within(vm.names.frame, vm.trail, {"loops": [*vm.names.frame.loops, Loop(None)]}):
        resume(vm, source, lambda value: _turn(vm, node, value, "continue" in ways))
    return vm.run(node.orelse)


def _over(vm: Interpreter, node: ast.For | ast.AsyncFor, source: Value) -> str | None:
    turns, certain = elements(vm, source, node.iter)
    if turns is None:
        turns, certain = any_two(source), False
    if not turns:
        return vm.run(node.orelse)
    most = EXACT
    if isinstance(source, Range) and isinstance(node.target, ast.Name) and len(source.range) > len(turns):
        most = EXACT + 1  # the last one besides
        turns = [Const(number) for number in telling_turns(vm, node, node.target.id, source.range)]
    whole = turns
    exact = certain and (len(turns) <= most or _distinct(turns))
    count = len(turns)
    if not exact:
        turns = [*turns[:2], *_objects(turns[2:FEW])]
    if vm.running.later_turn and not (certain and len(turns) <= most) and not _tests_count(node, turns):
        turns = [next((turn for turn in turns if _trained(turn)), turns[0])]
    some = isinstance(source, Seq) and source.some
    since, asked = (
        next(Backward.numbers),
        asking(vm.machine, turns) if some or len(turns) < len(whole) else [],
    )
    if some:
        vm.reports.findings.sifted[span_of(node)] = None
    more = not exact or (isinstance(source, Range) and len(source.range) > len(turns))
    number = len(source.range) if isinstance(source, Range) else len(whole)
    few: Few = ("counted" if isinstance(source, Range) else "known") if certain and number <= FEW else ""
    tested = vm.machine.tested
    with tested.within(cut=stamp() if more else tested.cut, floors=tested.floors | _floors(turns)):
        ended = _turns(vm, node, turns, certain, exact and len(turns) == count, few)
    spread(vm.machine, since, turns, whole)
    gone_through(vm.trail, source, whole=not any(map(leaves_early, node.body)))
    if some:
        doubt_asked(vm.machine, asked, since)
    _leave_out(vm, turns, whole, node)
    rest = source.items if isinstance(source, Seq) else whole
    may_take_out(vm.trail, [one for one in _objects(rest) if one not in turns])
    spread_asking(vm.machine, asked, whole, sure=len(node.body) == 1 and not isinstance(node.body[0], ast.If))
    if not exact and isinstance(node.target, ast.Name) and isinstance(source, (Range, Number, Unknown)):
        vm.names.store(
            node.target.id,
            part(source) if isinstance(source, Unknown) else Unknown(fact("the last of a loop")),
        )
    return ended


def _objects(turns: Sequence[Value]) -> list[Value]:
    """Those that a loop meets for sure and that may keep something: objects of the source."""
    known = [one.items[-1] if isinstance(one, Seq) and one.items else one for one in turns]
    return [turn for turn, one in zip(turns, known, strict=True) if isinstance(one, Instance)]


def _floors(turns: Sequence[Value]) -> dict[Hashable, int]:
    """How far the end lies that a loop counts to, as a second turn of it is run."""
    later = turns[1:] if len(turns) == 2 else []
    numbers = [one for turn in later for one in (turn.items if isinstance(turn, Seq) else [turn])]
    counts = [one for one in numbers if isinstance(one, Unknown) and one.offset and one.least is not None]
    return {
        one.offset[0]: one.least - one.offset[1] for one in counts if one.offset and one.least is not None
    }


def _tests_count(node: ast.For | ast.AsyncFor, turns: Sequence[Value]) -> bool:
    """Whether the first of two turns is told from later ones by their number, which a test looks at."""
    names = [node.target, *getattr(node.target, "elts", ())]
    later = turns[-1].items if isinstance(turns[-1], Seq) else turns[-1:]
    if len(turns) != 2 or not any(isinstance(one, Unknown) and one.least is not None for one in later):
        return False
    counted = {one.id for one in names if isinstance(one, ast.Name)}
    tests = [one.test for one in all_in(node) if isinstance(one, (ast.If, ast.IfExp))]
    return any(isinstance(one, ast.Name) and one.id in counted for test in tests for one in all_in(test))


def _leave_out(vm: Interpreter, turns: Sequence[Value], whole: Sequence[Value], node: ast.AST) -> None:
    """Modules that a loop isn't run for have a share in what it makes, and so in later backwards."""
    ran = {id(turn) for turn in turns}
    rest = [turn for turn in whole if id(turn) not in ran and _of_modules(turn)]
    if rest:
        vm.timeline.leave_out(rest, vm.here.at(node), vm.here.path)


def _of_modules(turn: Value) -> bool:
    if isinstance(turn, (Seq, Alt)):
        inside = turn.items if isinstance(turn, Seq) else [option for _, option in turn.options]
        return any(map(_of_modules, inside))
    return isinstance(turn, (Layer, Instance, Opaque))


def _trained(turn: Value) -> bool:
    """Whether a parameter has got a gradient, so that it shows what an update does."""
    if isinstance(turn, Seq):
        return any(_trained(item) for item in turn.items)
    return isinstance(turn, Tensor) and is_added(turn)


def _distinct(turns: Sequence[Value]) -> bool:
    return len(turns) <= MANY and not all(isinstance(turn, Const) for turn in turns)


def _turns(
    vm: Interpreter,
    node: ast.For | ast.AsyncFor | ast.While,
    turns: Sequence[Value | None],
    certain: bool,
    exact: bool,
    few: Few = "",
    unended: bool = False,
) -> str | None:
    before = {} if certain else bound_in(vm, node)
    with vm.here.within(path=vm.here.path):
        loop = Loop(enter(vm) if "break" in jumps(vm.switches, node, node.body) else None, few)
        for height, outer in enumerate(reversed(vm.names.frame.loops), 1):
            outer.inner = max(outer.inner, height)
        with Within(vm.names.frame, vm.trail, {"loops": [*vm.names.frame.loops, loop]}):
            i, ended = _each_turn(vm, node, turns, certain, exact)
        if unended and ended is None and (loop.whole is None or not loop.whole.left):
            leave_in_doubt(vm, node)
        if ended in (None, "done"):
            ended = vm.run(node.orelse)
        elif ended == "break":
            ended = None
        elif not (i == 0 and certain) and not exact:
            ended = None  # it is not known that the loop runs at all
        if loop.whole is not None and rejoin(vm.machine, loop.whole, ended is None):
            ended = None
        left = vm.here.path
    if exact:
        vm.here.go_on(left)
    if ended is None:
        lean_on_a_turn(vm, before)
    return ended


def _each_turn(
    vm: Interpreter,
    node: ast.For | ast.AsyncFor | ast.While,
    turns: Sequence[Value | None],
    certain: bool,
    exact: bool,
) -> tuple[int, str | None]:
    """Run the turns: the number of the last one, and how it ended."""
    path, later, repeat, loop = (
        vm.here.path,
        vm.running.later_turn,
        vm.reports.repeat,
        vm.names.frame.loops[-1],
    )
    parts = bool(jumps(vm.switches, node, node.body) & {"break", "continue"})
    for i, value in enumerate(turns):
        if i > 0 and not exact and loop.inner > DEEP:
            return i, None
        if i > 1 and isinstance(node, ast.While) and not exact and loop.whole is not None and loop.whole.left:
            return i, None
        if i > 0 and isinstance(node, ast.For):
            pass_over(vm, node, turns[i - 1], value)
        running = vm.machine.tested.turns if exact else [*vm.machine.tested.turns, stamp()]
        again = repeat or (i > 0 and not certain)
        with (
            vm.running.within(later_turn=later or i > 0),
            vm.reports.within(repeat=again),
            vm.machine.tested.within(turns=running),
        ):
            ended = _turn(vm, node, value, parts)
        if not exact and (loop.whole is None or not loop.whole.left):
            last = i + 1 == len(turns) or ended is not None
            vm.here.go_on(path if last else path | _lasting(vm, vm.here.path))
        if ended is not None:
            return i, ended
    return len(turns) - 1, None


def _lasting(vm: Interpreter, path: Path) -> Path:
    """What was found out in a turn, where all others have left, and is as true in the next one."""
    picks = vm.machine.tested.picks
    return frozenset(literal for literal in path if literal[0] not in picks)


def _turn(
    vm: Interpreter, node: ast.For | ast.AsyncFor | ast.While, value: Value | None, parts: bool
) -> str | None:
    """One turn of a loop: how the loop ended by it, or None where it goes on."""
    loop = vm.names.frame.loops[-1]
    exits = enter(vm) if parts else None
    with Within(loop, vm.trail, {"turn": exits, "path": vm.here.path, "began": stamp()}):
        if not isinstance(node, ast.While) and value is not None:
            take_out(vm.strangers, value)
            for one in value.items if isinstance(value, Seq) else (value,):
                if isinstance(one, Unknown):
                    vm.machine.tested.drawn[id(one)] = vm.machine.tested.turns[-1]
            vm.assign(node.target, value, node)
        ended = _while_turn(vm, node) if isinstance(node, ast.While) else vm.run(node.body)
    if exits is None:
        return None if ended == "continue" else ended
    if ended == "break" and exits.left and loop.whole is not None:
        take(vm, loop.whole, "break")
        ended = "parted"
    goes_on = ended in (None, "continue") or any(how == "continue" for how, _, _ in exits.left)
    somebody = rejoin(vm.machine, exits, ended not in ("raise", "parted", "return"))
    if goes_on:
        return None
    return "break" if somebody and ended != "done" else ended


def _while_turn(vm: Interpreter, node: ast.While) -> str | None:
    known, yes, _ = condition(vm, node.test)
    if known is False:
        return "done"
    vm.here.go_on(vm.here.path | yes)
    return vm.run(node.body)


def while_statement(vm: Interpreter, node: ast.While) -> str | None:
    known, _, _ = condition(vm, node.test)
    if known is False:
        return vm.run(node.orelse)
    endless = isinstance(node.test, ast.Constant)
    counted = known is True and not endless and _near(vm, node.test, EXACT + 1)
    turns = [None] * (EXACT + 1 if counted else 2)
    if endless:
        turns = [None] * (EXACT + 1)
    elif vm.running.later_turn and not counted:
        turns = turns[:1]
    return _turns(
        vm,
        node,
        turns,
        counted,
        exact=counted,
        few="counted" if counted else "",
        unended=known is True and not counted,
    )


def _only_looks(side: ast.expr) -> bool:
    """Whether it does nothing when it is asked once more."""
    if isinstance(side, ast.Call):
        return isinstance(side.func, ast.Name) and side.func.id == "len" and all(map(_only_looks, side.args))
    if isinstance(side, ast.BinOp):
        return _only_looks(side.left) and _only_looks(side.right)
    return isinstance(side, (ast.Name, ast.Constant))


def _near(vm: Interpreter, test: ast.expr, most: int) -> bool:
    """Whether two numbers are compared that are few steps apart: a count and where it ends."""
    if not isinstance(test, ast.Compare):
        return False
    sides = [vm.eval(side) for side in (test.left, *test.comparators) if _only_looks(side)]
    known = [one.value for one in sides if isinstance(one, Const) and isinstance(one.value, (int, float))]
    return len(known) == 2 == len(test.comparators) + 1 and abs(known[1] - known[0]) <= most
