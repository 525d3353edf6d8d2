"""Truth of expressions: known, or the path conditions under which they hold and fail."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Hashable, Mapping
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from gradfix.defects.reasons import What
from gradfix.tape.domain.alternatives import spelt_out
from gradfix.tape.domain.definitions import Class, Function, Instance
from gradfix.tape.domain.events import Empty
from gradfix.tape.domain.graph import Number, Tensor
from gradfix.tape.domain.narrowing import narrowed, there
from gradfix.tape.domain.paths import ALWAYS, Equals, Path, Settled
from gradfix.tape.domain.torch_values import Layer, Optimizer
from gradfix.tape.domain.values import (
    Alt,
    Const,
    External,
    Map,
    Range,
    Seq,
    Truth,
    Undefined,
    Unknown,
    counted,
)
from gradfix.tape.effects import table
from gradfix.tape.interpreter.counters import note_count
from gradfix.tape.interpreter.granted import TAKEN, is_granted

if TYPE_CHECKING:
    from gradfix.tape.domain.graph import Storage
    from gradfix.tape.domain.values import Value
    from gradfix.tape.interpreter.interpreter import Interpreter
    from gradfix.tape.interpreter.state import Notes
    from gradfix.tape.machine.machine import Machine
    from gradfix.tape.machine.tested import Tested

Verdict = tuple[Truth, Path, Path]
"""Whether it holds, the path on which it does, and the path on which it doesn't."""

YES: Verdict = (True, ALWAYS, ALWAYS)
NO: Verdict = (False, ALWAYS, ALWAYS)

COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}


FEW = 32
"""How many values are looked through for the memory that a test is about."""


def condition(vm: Interpreter, node: ast.expr) -> Verdict:
    """What is known of a test."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        known, yes, no = condition(vm, node.operand)
        return (None if known is None else not known), no, yes
    if isinstance(node, ast.BoolOp):
        return _joined(vm, node)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return _comparison(vm, node)
    return truth(vm.notes, vm.eval(node), node)


def _joined(vm: Interpreter, node: ast.BoolOp) -> Verdict:
    """Of tests that go on as long as they hold (`and`), or as long as they fail (`or`)."""
    every = isinstance(node.op, ast.And)
    onward: Path = ALWAYS
    ends: list[Path] = []
    for part in node.values:
        with vm.here.within(path=vm.here.path | onward):
            known, yes, no = condition(vm, part)
        if known is not None and known is not every:
            return NO if every else YES
        if known is None:
            onward |= yes if every else no
            ends.append(no if every else yes)
    if not ends:
        return YES if every else NO
    end = ends[0]
    if len(ends) > 1:
        where = ("and" if every else "or", onward)  # wherever it stands
        key = Settled(where, (onward,) if every else ends, ends if every else (onward,))
        vm.reports.findings.texts.setdefault(key, vm.reports.text(node))
        vm.reports.findings.tests.setdefault(key, node)
        picks = vm.machine.tested.picks
        if turn := max(picks.get(part, 0) for way in (onward, *ends) for part, _ in way):
            picks[key] = turn
        onward, end = onward | {(key, every)}, frozenset({(key, not every)})
    return (None, onward, end) if every else (None, end, onward)


def _comparison(vm: Interpreter, node: ast.Compare) -> Verdict:
    op = node.ops[0]
    left, right = vm.compared_side(node), vm.eval(node.comparators[0])
    negative = isinstance(op, (ast.NotEq, ast.IsNot, ast.NotIn))
    known = compared(left, right, op)
    if known is None and vm.machine.tested.floors:
        known = _short_of(vm.machine.tested.floors, left, right, type(op))
    if known is not None:
        if isinstance(left, External) and is_granted(vm.notes, left):
            vm.reports.lean_on(TAKEN)
        return YES if known else NO
    if isinstance(op, (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)):
        for subject, constant, text in ((left, right, node.left), (right, left, node.comparators[0])):
            if tellable(subject, constant):
                _, yes, no = equal(vm, node, text, subject, constant)
                return (None, no, yes) if negative else (None, yes, no)
    if isinstance(left, Alt) and isinstance(right, Const):
        verdict = _alternative(
            vm.machine,
            left,
            node,
            partial(_each_compared, vm, node, right),
            (type(op), _mark(right)),
            (type(op).__name__, right),
        )
    else:
        key = ("compare", type(op), _mark(left), _mark(right))
        verdict = _fresh(vm.machine, node, key, left, right)
        vm.reports.findings.terms.test(key, type(op).__name__, left, right)
        if _named_apart(left, right) and isinstance(op, (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)):
            vm.reports.findings.unlikely.add((key, not negative))
    if isinstance(op, (ast.Is, ast.IsNot)) and isinstance(right, Const) and right.value is None:
        _note_empty(left, vm.here.path | (verdict[2] if negative else verdict[1]))
    return verdict


def _each_compared(vm: Interpreter, node: ast.Compare, right: Const, option: Value) -> Verdict | None:
    """How one of several values compares with a constant: what isn't known equals it or doesn't."""
    op = node.ops[0]
    known = compared(option, right, op)
    if known is not None:
        return YES if known else NO
    if isinstance(op, (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)) and tellable(option, right):
        _, yes, no = equal(vm, node, node.left, option, right)
        return (None, no, yes) if isinstance(op, (ast.NotEq, ast.IsNot)) else (None, yes, no)
    return None


def tellable(subject: Value, constant: Value) -> bool:
    """Whether one value equals the other is a test of its own, which excludes all other constants."""
    return (
        isinstance(constant, Const)
        and isinstance(subject, (Unknown, Number, External))
        and _hashable(constant.value)
    )


def equal(vm: Interpreter, node: ast.AST, text: ast.expr, subject: Value, constant: Value) -> Verdict:
    """The paths on which a value that isn't known is this constant, and on which it isn't."""
    assert isinstance(constant, Const)
    tested = vm.machine.tested
    where = ("is" if constant.value is None else "==", _mark(subject))
    vm.reports.findings.texts.setdefault(where, vm.reports.text(text))
    tested.keep_alive.append(subject)
    key = Equals(where, constant.value)
    vm.reports.findings.tests.setdefault(key, node)
    vm.reports.findings.terms.test(key, "Is" if constant.value is None else "Eq", subject, constant)
    _note_subject(tested, key, subject)
    _note_turn(tested, key, subject)
    if isinstance(node, ast.Compare):
        note_count(tested, key, node, subject)
    return None, frozenset({(key, True)}), frozenset({(key, False)})


def _named_apart(left: Value, right: Value) -> bool:
    """Whether two values are what one owner calls differently, as the members of an enumeration are."""
    if isinstance(left, External) and isinstance(right, External):
        return left.path != right.path and left.path.rpartition(".")[0] == right.path.rpartition(".")[0]
    if not (isinstance(left, Unknown) and isinstance(right, Unknown)) or left is right:
        return False
    attributes = left.why.what is What.ATTRIBUTE and right.why.what is What.ATTRIBUTE
    return attributes and left.holds[:1] == right.holds[:1] and left.why.name != right.why.name


def _note_empty(value: Value, path: Path) -> None:
    """A gradient, or each that it may be, is known to be None on a path."""
    for guard, option in value.options if isinstance(value, Alt) else ((ALWAYS, value),):
        if isinstance(option, Tensor) and option.grad_of is not None:
            option.grad_of.gradient().events.append(Empty(path | guard))


def _mark(value: Value) -> Any:
    if isinstance(value, External):
        return value.path, "of a package"
    return value.value if isinstance(value, Const) and _hashable(value.value) else id(value)


def _hashable(value: Any) -> bool:
    return value is None or isinstance(value, (str, int, float, bool))


def _note_subject(tested: Tested, key: Any, value: Value) -> None:
    """Remember which memory a test looks at, or may, as what isn't known was made of it."""
    stack = [value]
    memory: dict[int, Storage] = {}
    for option in islice(stack, FEW):
        storage = option.storage if isinstance(option, Tensor) else getattr(option, "about", None)
        if storage is not None:
            memory[id(storage)] = storage
        if isinstance(option, (Tensor, Number)):
            tested.values.setdefault(key, []).append(option.node)
        elif isinstance(option, Alt):
            stack.extend(one for _, one in option.options)
            for before in {literal for guard, _ in option.options for literal, _ in guard}:
                memory.update([(id(one), one) for one in tested.about.get(before, ())])
        elif isinstance(option, Unknown) and storage is None:
            stack.extend(option.holds)
    if memory:
        memory.update([(id(one), one) for one in tested.about.get(key, ())])
        tested.about[key] = list(memory.values())


def _note_turn(tested: Tested, key: Any, value: Value) -> None:
    """Remember in which turn of a loop a test looks at something that this turn has made."""
    options = [one for _, one in value.options] if isinstance(value, Alt) else [value]
    born = max(getattr(one.node if isinstance(one, Number) else one, "born", 0) for one in options)
    made = (turn for turn in reversed(tested.turns) if turn < born)
    turn = tested.drawn.get(id(value)) or next(made, 0)
    if turn:
        tested.picks[key] = turn


def _fresh(machine: Machine, node: ast.expr, key: Any, *alive: Value) -> Verdict:
    machine.reports.findings.texts.setdefault(key, machine.reports.text(node))
    machine.reports.findings.tests.setdefault(key, node)
    machine.tested.keep_alive.extend(alive)
    for value in alive:
        _note_subject(machine.tested, key, value)
        _note_turn(machine.tested, key, value)
    return None, frozenset({(key, True)}), frozenset({(key, False)})


def compared(left: Value, right: Value, op: ast.cmpop) -> Truth:
    """The result of a comparison, where it is known."""
    if isinstance(op, (ast.In, ast.NotIn)):
        return _contained(left, right, isinstance(op, ast.NotIn))
    if isinstance(left, Const) and isinstance(right, Const):
        try:
            return bool(COMPARE[type(op)](left.value, right.value))
        except TypeError:
            return None
    if (known := _both_counted(left, right, type(op))) is not None:
        return known
    if isinstance(left, Unknown) and left.least is not None and isinstance(right, Const):
        return _at_least(left.least, right.value, type(op))
    if isinstance(right, Unknown) and right.least is not None and isinstance(left, Const):
        return _at_least(right.least, left.value, MIRRORED.get(type(op), type(op)))
    if isinstance(op, (ast.Is, ast.IsNot)):
        same = _identical(left, right)
        return same if same is None or isinstance(op, ast.Is) else not same
    if (
        isinstance(op, (ast.Eq, ast.NotEq))
        and isinstance(left, (Class, External))
        and type(left) is type(right)
    ):
        equal = _same_definition(left, right)
        return equal if equal is None or isinstance(op, ast.Eq) else not equal
    if isinstance(op, (ast.Eq, ast.NotEq)) and _never_none(left, right):
        return isinstance(op, ast.NotEq)
    return None


def _both_counted(left: Value, right: Value, op: type[ast.cmpop]) -> Truth:
    """How the last turn's count compares with what is counted from the same end."""
    if not _is_count(left):
        return _both_counted(right, left, MIRRORED.get(op, op)) if _is_count(right) else None
    count, other = counted(left), counted(right)
    if count is None or other is None or count[0] != other[0] or count[1] > other[1]:
        return None
    return bool(COMPARE[op](count[1], other[1])) if op in COMPARE else None


def _is_count(value: Value) -> bool:
    return isinstance(value, Unknown) and value.least is not None


def _short_of(floors: Mapping[Hashable, int], left: Value, right: Value, op: type[ast.cmpop]) -> Truth:
    """How a number compares with what is counted from an end that lies so far, as a second turn is run."""
    if isinstance(right, Const):
        return _short_of(floors, right, left, MIRRORED.get(op, op)) if isinstance(left, Unknown) else None
    key, by = counted(right) or (None, 0)
    if not isinstance(left, Const) or key not in floors:
        return None
    return _at_least(floors[key] + by, left.value, MIRRORED.get(op, op))


def _same_definition(left: Value, right: Value) -> Truth:
    """Whether two names of classes or packages are one: two that aren't read may well name the same value."""
    if isinstance(left, External) and isinstance(right, External):
        return True if left.path == right.path else (None if None in map(truthy, (left, right)) else False)
    return left is right


MIRRORED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Gt,
    ast.LtE: ast.GtE,
    ast.Gt: ast.Lt,
    ast.GtE: ast.LtE,
}


def _at_least(least: int, other: object, op: type[ast.cmpop]) -> Truth:
    """How a number compares of which it is known what it is at least."""
    if other is None:
        return {ast.Is: False, ast.Eq: False, ast.IsNot: True, ast.NotEq: True}.get(op)
    if not isinstance(other, (int, float)) or op in (ast.Is, ast.IsNot) or op not in COMPARE:
        return None
    if least > other:
        return bool(COMPARE[op](1, 0))
    return {ast.GtE: True, ast.Lt: False}.get(op) if least == other else None


def _never_none(left: Value, right: Value) -> bool:
    """Whether a tensor is compared with None, which no tensor equals, nor is that asked of each element."""
    tensor, other = (left, right) if isinstance(left, Tensor) else (right, left)
    return (
        isinstance(tensor, Tensor)
        and tensor.grad_of is None
        and isinstance(other, Const)
        and other.value is None
    )


def _identical(left: Value, right: Value) -> Truth:
    solid = (Tensor, Seq, Map, Instance, Layer, Function, Class, Optimizer, Range)
    if isinstance(left, Const) and isinstance(right, solid):
        return False
    if isinstance(right, Const) and isinstance(left, solid):
        return None if isinstance(left, Tensor) and left.grad_of is not None else False
    if isinstance(left, solid) and isinstance(right, solid):
        return left is right
    one, other = (left, right) if isinstance(left, External) else (right, left)
    if isinstance(one, External) and isinstance(other, Const) and _of_torch(one.path):
        return False
    return None


def _of_torch(path: str) -> bool:
    """Whether a name is that of an operation of torch, which is there whatever the version was built for."""
    where, _, name = path.rpartition(".")
    return (where == "torch" and bool(table.function(name))) or (
        where == "torch.nn.functional" and bool(table.functional(name))
    )


def _contained(left: Value, right: Value, negative: bool) -> Truth:
    if isinstance(left, Const):
        if isinstance(right, Map) and not right.open:
            held = right.items.get(left.value)
            return None if held is not None and not there(held) else (held is not None) is not negative
        if isinstance(right, Seq) and not right.open and all(isinstance(item, Const) for item in right.items):
            return (
                left.value in [item.value for item in right.items if isinstance(item, Const)]
            ) is not negative
        if isinstance(right, Const) and isinstance(right.value, str) and isinstance(left.value, str):
            return (left.value in right.value) is not negative
    return None


def truth(notes: Notes, value: Value, node: ast.expr) -> Verdict:
    """Truth of a value."""
    known = truthy(value)
    if known is not None and is_granted(notes, value):
        notes.reports.lean_on(TAKEN)  # until the function is left: what follows depends on it
    if known is not None:
        return YES if known else NO
    if isinstance(value, Seq) and not value.open and not all(map(there, value.items)):
        ways = spelt_out(value.items)  # what it lacks on some paths says where it is empty
        value = Alt(tuple((path, Seq(value.kind, items)) for path, items in ways)) if ways else value
    if isinstance(value, Alt):
        return _alternative(notes.machine, value, node, lambda option: _each_truth(notes, option, node))
    return _asked(notes, value, node)


def _each_truth(notes: Notes, option: Value, node: ast.expr) -> Verdict | None:
    known = truthy(option)
    if known is not None:
        return YES if known else NO
    return _asked(notes, option, node)


def _asked(notes: Notes, value: Value, node: ast.expr) -> Verdict:
    """The truth of one value that isn't known."""
    same = value.path if isinstance(value, External) else id(value)
    notes.reports.findings.terms.test(("true", same), "true", value)
    return _fresh(notes.machine, node, ("true", same), value)


def truthy(value: Value) -> Truth:
    """Whether a value is true, where it is known."""
    if isinstance(value, Const):
        return bool(value.value)
    if isinstance(value, Seq) and value.kind == "generator":
        return True
    if isinstance(value, (Seq, Map)):
        items = value.items if isinstance(value, Seq) else value.items.values()
        return True if any(map(there, items)) else None if value.open or items else False
    if isinstance(value, Range):
        return bool(value.range)
    if isinstance(value, Unknown):
        return True if value.least is not None and value.least > 0 else None
    if isinstance(value, Instance) and any(value.cls.lookup(name) for name in ("__bool__", "__len__")):
        return None
    if isinstance(value, (Layer, Instance)):
        return None if isinstance(value, Layer) and value.items is not None else True
    if isinstance(value, External):
        return True if _is_definition(value.path) else None
    if isinstance(value, (Function, Class, Optimizer)):
        return True
    return None


def _is_definition(path: str) -> bool:
    """Whether it names a package, a function or a class: what else a package holds may be False."""
    return "." not in path or path.startswith("builtins.") or _of_torch(path) or _class_of_torch(path)


def _class_of_torch(path: str) -> bool:
    name = path.rpartition(".")[2]
    return path.startswith("torch.") and name[:1].isupper() and not name.isupper()


def _alternative(
    machine: Machine,
    value: Alt,
    node: ast.expr,
    test: Callable[[Value], Verdict | None],
    what: Hashable = None,
    compared_by: tuple[str, Value] | None = None,
) -> Verdict:
    """A test whose answer depends on which alternative it is; `what` says what each is compared with."""
    path = machine.here.path
    narrow = narrowed(value, path)
    options = narrow.options if isinstance(narrow, Alt) else ((ALWAYS, narrow),)
    answers = [(guard, test(option)) for guard, option in options if not isinstance(option, Undefined)]
    told = [(guard, verdict) for guard, verdict in answers if verdict is not None]
    yes = [guard | when for guard, (known, when, _) in told if known is not False]
    no = [guard | when for guard, (known, _, when) in told if known is not True]
    if not no and len(told) == len(answers):
        return YES
    if not yes and len(told) == len(answers):
        return NO
    if len(yes) == 1 and len(no) == 1 and len(answers) == 2:
        return None, yes[0], no[0]
    same = ("true", tuple(id(option) for _, option in options), what)
    key = Settled(same, [path | guard for guard in yes], [path | guard for guard in no])
    _, holds, fails = _fresh(machine, node, key, value)
    if compared_by is not None:
        machine.reports.findings.terms.test(key, compared_by[0], value, compared_by[1])
    return None, holds | _unless(no), fails | _unless(yes)


def _unless(guards: list[Path]) -> Path:
    """Where none of these guards holds, as far as one literal can say it."""
    return frozenset((key, not holds) for guard in guards if len(guard) == 1 for key, holds in guard)
