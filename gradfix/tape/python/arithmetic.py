"""Operators: what Python's arithmetic and comparisons are to tensors and to plain values."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gradfix.defects.reasons import What
from gradfix.tape.domain.alternatives import alternatives, each_of, multiply, one_of, wide
from gradfix.tape.domain.graph import Node, Number, Tensor
from gradfix.tape.domain.values import FALSE, TRUE, Alt, Const, Map, Seq, Unknown, counted, unknown_of
from gradfix.tape.domain.why import Why, fact
from gradfix.tape.interpreter.conditions import compared, condition
from gradfix.tape.strangers.handed_out import escape
from gradfix.tape.torch.elements import gone_through, some_of
from gradfix.tape.torch.functions import torch_function
from gradfix.tape.torch.param_groups import written
from gradfix.tape.torch.tensors import gathered, in_graph, method_call

if TYPE_CHECKING:
    from collections.abc import Hashable

    from gradfix.tape.domain.paths import Path
    from gradfix.tape.domain.values import Value
    from gradfix.tape.interpreter.interpreter import Interpreter
    from gradfix.tape.interpreter.state import Strangers

FEW = 20
"""How many values are looked through for a call that made one of them."""
OPERATORS: dict[type[ast.operator], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("add", operator.add),
    ast.Sub: ("sub", operator.sub),
    ast.Mult: ("mul", operator.mul),
    ast.Div: ("truediv", operator.truediv),
    ast.FloorDiv: ("floordiv", operator.floordiv),
    ast.Mod: ("mod", operator.mod),
    ast.Pow: ("pow", operator.pow),
    ast.MatMult: ("matmul", operator.matmul),
    ast.BitAnd: ("and", operator.and_),
    ast.BitOr: ("or", operator.or_),
    ast.BitXor: ("xor", operator.xor),
    ast.LShift: ("lshift", operator.lshift),
    ast.RShift: ("rshift", operator.rshift),
}
UNARY: dict[type[ast.unaryop], tuple[str, Callable[[Any], Any]]] = {
    ast.USub: ("neg", operator.neg),
    ast.UAdd: ("positive", operator.pos),
    ast.Invert: ("bitwise_not", operator.invert),
}
COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
}


def binary(vm: Interpreter, node: ast.BinOp) -> Value:
    left, right = vm.eval(node.left), vm.eval(node.right)
    if type(left) is not Alt and type(right) is not Alt:
        return operate(vm, type(node.op), left, right, node)
    if multiply(left, right):
        left, right = one_of(left), one_of(right)
    return vm.forks.each(
        left, lambda a: vm.forks.each(right, lambda b: operate(vm, type(node.op), a, b, node))
    )


def operate(vm: Interpreter, op: type[ast.operator], left: Value, right: Value, node: ast.AST) -> Value:
    """A binary operator on two single values."""
    name, compute = OPERATORS[op]
    if isinstance(left, Const) and isinstance(right, Const):
        return _computed(compute, left.value, right.value)
    for side in (left, right):
        if isinstance(side, Const) and side.value is None:
            return Unknown(fact("arithmetic on None, which raises"))
    left, right = in_graph(vm.graph, left), in_graph(vm.graph, right)
    if op in (ast.Add, ast.Sub):
        gathered(left, right)
    if isinstance(left, Tensor):
        return method_call(vm, left, f"__{name}__", [right], {}, node)
    if isinstance(right, Tensor) and not isinstance(left, (Seq, Map)):
        return _reflected(vm, name, left, right, node)
    if isinstance(left, Seq):
        return _sequence(left, right, op)
    if isinstance(left, (Number, Const)) and isinstance(right, (Number, Const)):
        made = Node(name, node, tuple(vm.graph.nodes(left) + vm.graph.nodes(right)), False)
        array = "array" in (getattr(left, "kind", ""), getattr(right, "kind", ""))
        return Number(made, vm.here.at(node), "array" if array else "number")
    return _undecided(vm.strangers, name, left, right, node)


def _undecided(strangers: Strangers, name: str, left: Value, right: Value, node: ast.AST) -> Unknown:
    """Arithmetic on what isn't known: both sides may be in the result."""
    result = unknown_of(Why(What.COMPUTED, "arithmetic on what isn't known"), left, right)
    result.part = True
    strangers.names.reports.findings.terms.made(result, name, left, right)
    result.offset, result.least = _counted_on(name, left, right)
    parents = (*_operand(strangers, left), *_operand(strangers, right))
    if any(parent.op != "unknown" or parent.parents for parent in parents):
        result.made = Node(name, strangers.here.at(node), parents, None)
        result.made.may = True
    unknown = isinstance(left, Unknown) and isinstance(right, Unknown)
    if unknown and strangers.graph.requires(left) is False and strangers.graph.requires(right) is False:
        result.requires = False
    return result


def _counted_on(name: str, left: Value, right: Value) -> tuple[tuple[Hashable, int] | None, int | None]:
    """What is so much more or less than another number is counted from there, and is at least so much."""
    if name == "add" and isinstance(left, Const):
        left, right = right, left
    by = right.value if isinstance(right, Const) else None
    start = counted(left) if isinstance(left, Unknown) and name in ("add", "sub") else None
    if start is None or type(by) is not int or not isinstance(left, Unknown):
        return None, None
    by = by if name == "add" else -by
    return (start[0], start[1] + by), None if left.least is None else left.least + by


def _operand(strangers: Strangers, value: Value) -> list[Node]:
    """The nodes of an operand: what a call that isn't known has returned may be in a graph of its own."""
    nodes = strangers.graph.given(value)
    if not nodes and isinstance(value, Unknown) and value.requires is None and _returned(strangers, value):
        nodes = [strangers.graph.guess(value)]
    return nodes


def _returned(strangers: Strangers, value: Unknown) -> bool:
    """Whether a value comes out of a call that isn't known."""
    stack: list[Value] = [value]
    for _ in range(FEW):
        if not stack:
            return False
        one = stack.pop()
        if id(one) in strangers.results:
            return True
        stack.extend(one.holds if isinstance(one, Unknown) and one.part else ())
    return False


FAILURES = (ArithmeticError, TypeError, ValueError, LookupError, AttributeError, MemoryError)
"""What a program's own arithmetic on constants raises."""


def _computed(compute: Callable[[Any, Any], Any], left: Any, right: Any) -> Value:
    if (
        isinstance(right, int)
        and abs(right) > 4096
        and compute in (operator.pow, operator.lshift, operator.mul)
        and (compute is not operator.mul or not isinstance(left, (int, float)))
    ):
        return Unknown(fact("a large constant"))
    try:
        return Const(compute(left, right))
    except FAILURES:
        return Unknown(fact("arithmetic that fails"))


def _reflected(vm: Interpreter, name: str, left: Value, right: Tensor, node: ast.AST) -> Value:
    if name == "truediv":
        inverse = method_call(vm, right, "reciprocal", [], {}, node)
        return operate(vm, ast.Mult, inverse, left, node)
    if name == "pow":
        return torch_function(vm, "pow", [left, right], {}, node)
    if name == "sub":
        return method_call(vm, right, "__sub__", [left], {}, node)
    return method_call(vm, right, f"__{name}__", [left], {}, node)


def _sequence(left: Seq, right: Value, op: type[ast.operator]) -> Value:
    if op is ast.Add and isinstance(right, Seq):
        return Seq(left.kind, left.items + right.items, left.open or right.open, None, some_of(left, right))
    if op in (ast.Sub, ast.BitAnd, ast.BitXor):
        return _taken_from(left, right, op)
    times = right.value if isinstance(right, Const) and isinstance(right.value, int) else None
    if op is ast.Mult and times is not None and not left.open and len(left.items) * times <= 64:
        return Seq(left.kind, left.items * times, some=left.some)
    return Seq(left.kind, list(left.items), open=True, some=left.some)


def _taken_from(left: Seq, right: Value, op: type[ast.operator]) -> Value:
    """What is left of a set: without what is in the other one, where both are known."""
    known = isinstance(right, Seq) and not right.open and op is ast.Sub
    other = {id(item) for item in right.items} if isinstance(right, Seq) else set()
    if known and not any(isinstance(item, (Unknown, Alt)) for item in left.items):
        return Seq(
            left.kind, [item for item in left.items if id(item) not in other], left.open, None, left.some
        )
    return Unknown(Why(What.ELEMENT, "what is left of a set"), tuple(left.items))


def unary(vm: Interpreter, node: ast.UnaryOp) -> Value:
    if isinstance(node.op, ast.Not):
        known, _, no = condition(vm, node.operand)
        return _made(vm, fact("a truth"), "path", no) if known is None else Const(not known)
    method, compute = UNARY[type(node.op)]

    def apply(value: Value) -> Value:
        value = in_graph(vm.graph, value)
        if isinstance(value, Const):
            return _computed(lambda a, _: compute(a), value.value, None)
        if isinstance(value, Tensor):
            return method_call(vm, value, method, [], {}, node)
        if isinstance(value, Number):
            return Number(Node("neg", node, (value.node,), False), vm.here.at(node), value.kind)
        result = unknown_of(Why(What.COMPUTED, "arithmetic on what isn't known"), value)
        result.part = True
        vm.reports.findings.terms.made(result, method, value)
        result.requires = value.requires if isinstance(value, Unknown) else None
        return result

    return vm.forks.each(vm.eval(node.operand), apply)


def compare(vm: Interpreter, node: ast.Compare) -> Value:
    if len(node.ops) == 1 and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
        known, yes, no = condition(vm, node)  # so that it is the same test where it is made once more
        return Alt(((yes, TRUE), (no, FALSE))) if known is None else Const(known)
    left = vm.compared_side(node)
    results: list[Value] = []
    for op, comparator in zip(node.ops, node.comparators, strict=True):
        right = vm.eval(comparator)
        results.append(_compare(vm, left, right, op, node))
        left = right
    if len(results) == 1:
        return results[0]
    if all(isinstance(result, Const) for result in results):
        return Const(all(result.value for result in results if isinstance(result, Const)))
    return _made(vm, fact("a comparison"), "all", Seq("tuple", results))


def _made(vm: Interpreter, why: Why, op: str, *operands: Value | Path) -> Unknown:
    """A fact that isn't known, and what it was made of."""
    result = Unknown(why)
    vm.reports.findings.terms.made(result, op, *operands)
    return result


def _compare(vm: Interpreter, left: Value, right: Value, op: ast.cmpop, node: ast.Compare) -> Value:
    known = compared(left, right, op)
    if known is not None:
        return Const(known)
    method = COMPARISONS.get(type(op))
    if method and isinstance(left, Alt) and all(isinstance(one, Tensor) for _, one in left.options):
        given = one_of(right) if multiply(left, right) else right
        return vm.forks.each(
            left, lambda one: vm.forks.each(given, lambda two: _compare(vm, one, two, op, node))
        )
    if method and isinstance(left, Tensor):
        return method_call(vm, left, method, [right], {}, node)
    if method and isinstance(right, Tensor) and not isinstance(left, Alt):
        return method_call(vm, right, method, [left], {}, node)
    if len(node.ops) == 1:
        truth, yes, no = condition(vm, node) if _simple(left, right) else (None, None, None)
        if truth is None and yes and no:
            return alternatives([(yes, TRUE), (no, FALSE)])
    return _made(vm, fact("a comparison"), type(op).__name__, left, right)


def _simple(left: Value, right: Value) -> bool:
    return isinstance(left, Unknown) and isinstance(right, Const)


def in_place_operator(vm: Interpreter, held: Value, right: Value, node: ast.AugAssign) -> Value:
    """`held op= right`: the same object where it is written in place, a new value elsewhere."""
    if isinstance(held, Unknown) and held.options and held.tensor is None:  # too many to be kept apart
        if wide(held):
            return _one_of_any(vm, held, right, node)
        return vm.forks.each(Alt(held.options), lambda one: in_place_operator(vm, one, right, node))
    written(vm.machine, held, node)
    held = in_graph(vm.graph, held)
    if isinstance(node.op, (ast.Add, ast.Sub)) and not (
        isinstance(held, Tensor) and held.grad_of is not None
    ):
        gathered(right)
    name, _ = OPERATORS[type(node.op)]
    if isinstance(held, Tensor) and not isinstance(node.op, ast.MatMult):  # `@=` makes a new tensor
        target = held
        return vm.forks.each(
            right,
            lambda one: method_call(
                vm, target, f"__i{name}__", [in_graph(vm.graph, one)], {}, node, form="augassign"
            ),
        )
    if isinstance(held, Seq) and held.kind == "list" and isinstance(node.op, ast.Add):
        added = right.items if isinstance(right, Seq) else []
        vm.trail.set(held, "items", held.items + added)
        if not isinstance(right, Seq) or right.open:
            vm.trail.set(held, "open", True)
        if some_of(right):
            vm.trail.set(held, "some", True)
        gone_through(vm.trail, right)
        return held
    return _replaced(vm, held, right, node)


def _one_of_any(vm: Interpreter, held: Unknown, right: Value, node: ast.AugAssign) -> Value:
    """`held op= right` for one of any number: which tensor is written isn't known, so each may be."""
    found = each_of(held)
    vm.budget.spend(len(found))
    for one in found:
        if isinstance(one, Tensor):
            escape(vm.strangers, one)
    return _replaced(vm, held, one_of(right), node)


def _replaced(vm: Interpreter, held: Value, right: Value, node: ast.AugAssign) -> Value:
    """`held op= right` for what is no tensor: a new value."""
    if isinstance(held, Unknown) and vm.grad_mode.grad is not True:
        return held  # a tensor that is written where nothing is recorded is in the graph that it was in
    result = vm.forks.each(right, lambda one: operate(vm, type(node.op), held, one, node))
    if isinstance(held, Unknown) and isinstance(result, Tensor) and not result.storage.argument:
        result.storage.argument = True  # it may be what was written, which others may see
    return result
