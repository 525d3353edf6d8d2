"""Expressions: operators, displays, comprehensions."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from typing import Any

from gradfix.tape.attributes import load_attribute
from gradfix.tape.calls import evaluate_call, make_function
from gradfix.tape.conditions import compared, condition, truth
from gradfix.tape.elements import elements, part
from gradfix.tape.functions import torch_function
from gradfix.tape.graph import Node, Number, Tensor
from gradfix.tape.interpreter import Interpreter, evaluates
from gradfix.tape.paths import meet
from gradfix.tape.stores import assign
from gradfix.tape.subscripts import load_item
from gradfix.tape.tensors import in_graph, method_call
from gradfix.tape.trail import alternatives, multiply, one_of
from gradfix.tape.values import (
    FALSE,
    NONE,
    TRUE,
    UNDEFINED,
    Alt,
    Const,
    Map,
    Seq,
    Slice,
    Undefined,
    Unknown,
    Value,
)

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


@evaluates(ast.Constant)
def constant(vm: Interpreter, node: ast.Constant) -> Value:
    if node.value is None:
        return NONE
    if node.value is True:
        return TRUE
    return FALSE if node.value is False else Const(node.value)


@evaluates(ast.Name)
def name(vm: Interpreter, node: ast.Name) -> Value:
    value = vm.load(node.id)
    if type(value) is Undefined:
        from gradfix.tape.builtin import builtin

        return builtin(vm, node.id)
    return value


@evaluates(ast.Attribute)
def attribute(vm: Interpreter, node: ast.Attribute) -> Value:
    owner = vm.eval(node.value)
    if type(owner) is not Alt:
        return load_attribute(vm, owner, node.attr, node)
    return vm.each(owner, lambda one: load_attribute(vm, one, node.attr, node))


@evaluates(ast.Subscript)
def subscript(vm: Interpreter, node: ast.Subscript) -> Value:
    owner = vm.eval(node.value)
    key = vm.eval(node.slice)
    if type(owner) is not Alt and type(key) is not Alt:
        return load_item(vm, owner, key, node)
    return vm.each(owner, lambda one: vm.each(key, lambda k: load_item(vm, one, k, node)))


@evaluates(ast.Slice)
def slice_(vm: Interpreter, node: ast.Slice) -> Value:
    bounds = [vm.eval(bound) if bound is not None else NONE for bound in (node.lower, node.upper, node.step)]
    return Slice(*bounds)


@evaluates(ast.BinOp)
def binary(vm: Interpreter, node: ast.BinOp) -> Value:
    left, right = vm.eval(node.left), vm.eval(node.right)
    if type(left) is not Alt and type(right) is not Alt:
        return operate(vm, type(node.op), left, right, node)
    if multiply(left, right):
        left, right = one_of(left), one_of(right)
    return vm.each(left, lambda a: vm.each(right, lambda b: operate(vm, type(node.op), a, b, node)))


def operate(vm: Interpreter, op: type[ast.operator], left: Value, right: Value, node: ast.AST) -> Value:
    """A binary operator on two single values."""
    name, compute = OPERATORS[op]
    if isinstance(left, Const) and isinstance(right, Const):
        return _computed(compute, left.value, right.value)
    for side in (left, right):
        if isinstance(side, Const) and side.value is None:
            return Unknown("arithmetic on None, which raises")
    left, right = in_graph(vm, left), in_graph(vm, right)
    if isinstance(left, Tensor):
        return method_call(vm, left, f"__{name}__", [right], {}, node)
    if isinstance(right, Tensor) and not isinstance(left, (Seq, Map)):
        return _reflected(vm, name, left, right, node)
    if isinstance(left, Seq):
        return _sequence(left, right, op)
    if isinstance(left, (Number, Const)) and isinstance(right, (Number, Const)):
        made = Node(name, node, tuple(vm.nodes(left) + vm.nodes(right)), False)
        return Number(
            made,
            vm.at(node),
            "array" if "array" in (getattr(left, "kind", ""), getattr(right, "kind", "")) else "number",
        )
    result = vm.unknown("arithmetic on what isn't known", left, right)
    result.part = True
    parents = (*vm.given(left), *vm.given(right))
    if parents:
        result.made = Node(name, vm.at(node), parents, None)
        result.made.may = True
    facts = (
        {vm.requires(left), vm.requires(right)}
        if isinstance(left, Unknown) and isinstance(right, Unknown)
        else set()
    )
    if facts == {False}:
        result.requires = False
    return result


FAILURES = (ArithmeticError, TypeError, ValueError, LookupError, AttributeError, MemoryError)
"""What a program's own arithmetic on constants raises."""


def _computed(compute: Callable[[Any, Any], Any], left: Any, right: Any) -> Value:
    if (
        isinstance(right, int)
        and abs(right) > 4096
        and compute in (operator.pow, operator.lshift, operator.mul)
        and (compute is not operator.mul or not isinstance(left, (int, float)))
    ):
        return Unknown("a large constant")
    try:
        return Const(compute(left, right))
    except FAILURES:
        return Unknown("arithmetic that fails")


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
        return Seq(left.kind, left.items + right.items, left.open or right.open)
    times = right.value if isinstance(right, Const) and isinstance(right.value, int) else None
    if op is ast.Mult and times is not None and not left.open and len(left.items) * times <= 64:
        return Seq(left.kind, left.items * times)
    return Seq(left.kind, list(left.items), open=True)


@evaluates(ast.UnaryOp)
def unary(vm: Interpreter, node: ast.UnaryOp) -> Value:
    if isinstance(node.op, ast.Not):
        known, _, _ = condition(vm, node.operand)
        return Unknown("a truth") if known is None else Const(not known)
    method, compute = UNARY[type(node.op)]

    def apply(value: Value) -> Value:
        value = in_graph(vm, value)
        if isinstance(value, Const):
            return _computed(lambda a, _: compute(a), value.value, None)
        if isinstance(value, Tensor):
            return method_call(vm, value, method, [], {}, node)
        if isinstance(value, Number):
            return Number(Node("neg", node, (value.node,), False), vm.at(node), value.kind)
        result = vm.unknown("arithmetic on what isn't known", value)
        result.part = True
        result.requires = value.requires if isinstance(value, Unknown) else None
        return result

    return vm.each(vm.eval(node.operand), apply)


@evaluates(ast.Compare)
def compare(vm: Interpreter, node: ast.Compare) -> Value:
    left = vm.eval(node.left)
    results: list[Value] = []
    for op, comparator in zip(node.ops, node.comparators, strict=True):
        right = vm.eval(comparator)
        results.append(_compare(vm, left, right, op, node))
        left = right
    if len(results) == 1:
        return results[0]
    if all(isinstance(result, Const) for result in results):
        return Const(all(result.value for result in results if isinstance(result, Const)))
    return Unknown("a comparison")


def _compare(vm: Interpreter, left: Value, right: Value, op: ast.cmpop, node: ast.Compare) -> Value:
    known = compared(left, right, op)
    if known is not None:
        return Const(known)
    method = COMPARISONS.get(type(op))
    if method and isinstance(left, Tensor):
        return method_call(vm, left, method, [right], {}, node)
    if method and isinstance(right, Tensor) and not isinstance(left, Alt):
        return method_call(vm, right, method, [left], {}, node)
    if len(node.ops) == 1:
        truth, yes, no = condition(vm, node) if _simple(left, right) else (None, None, None)
        if truth is None and yes and no:
            return alternatives([(yes, TRUE), (no, FALSE)])
    return Unknown("a comparison")


def _simple(left: Value, right: Value) -> bool:
    return isinstance(left, Unknown) and isinstance(right, Const)


@evaluates(ast.BoolOp)
def boolean(vm: Interpreter, node: ast.BoolOp) -> Value:
    """The operand that decides: `a or b` is a where a is true."""
    wanted = isinstance(node.op, ast.Or)
    return _decide(vm, node.values, wanted)


def _decide(vm: Interpreter, operands: Sequence[ast.expr], wanted: bool) -> Value:

    value = vm.eval(operands[0])
    if len(operands) == 1:
        return value
    known, yes, no = truth(vm, value, operands[0])
    if known is not None:
        return value if known is wanted else _decide(vm, operands[1:], wanted)
    stays, goes = (yes, no) if wanted else (no, yes)
    base = vm.path
    both = meet(base, goes)
    if both is None:
        return value
    vm.path = both
    rest = _decide(vm, operands[1:], wanted)
    vm.path = base
    return alternatives([(stays, value), (goes, rest)])


@evaluates(ast.IfExp)
def conditional(vm: Interpreter, node: ast.IfExp) -> Value:
    known, yes, no = condition(vm, node.test)
    if known is not None:
        return vm.eval(node.body if known else node.orelse)
    results: dict[bool, Value] = {}

    def arm(which: bool, expression: ast.expr) -> None:
        results[which] = vm.eval(expression)

    vm.fork([(yes, lambda: arm(True, node.body)), (no, lambda: arm(False, node.orelse))])
    if len(results) == 1:
        return next(iter(results.values()))
    return alternatives([(yes, results[True]), (no, results[False])])


@evaluates(ast.NamedExpr)
def named(vm: Interpreter, node: ast.NamedExpr) -> Value:
    value = vm.eval(node.value)
    assign(vm, node.target, value, node)
    return value


@evaluates(ast.Tuple, ast.List, ast.Set)
def display(vm: Interpreter, node: ast.Tuple | ast.List | ast.Set) -> Value:
    items: list[Value] = []
    open_ = False
    for element in node.elts:
        if isinstance(element, ast.Starred):
            inner, known = elements(vm, vm.eval(element.value), element)
            items.extend(inner or [])
            open_ = open_ or not known
        else:
            items.append(vm.eval(element))
    return Seq(type(node).__name__.lower(), items, open_, node)


@evaluates(ast.Dict)
def mapping(vm: Interpreter, node: ast.Dict) -> Value:
    items: dict[Any, Value] = {}
    open_ = False
    for key, item in zip(node.keys, node.values, strict=True):
        value = vm.eval(item)
        name = vm.eval(key) if key is not None else None
        if name is None and isinstance(value, Map):
            items.update(value.items)
            open_ = open_ or value.open
        elif isinstance(name, Const):
            items[name.value] = value
        else:
            items[("unknown", id(item))] = value
            open_ = True
    return Map(items, open_, node)


@evaluates(ast.ListComp, ast.SetComp, ast.GeneratorExp)
def comprehension(vm: Interpreter, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Value:
    source = vm.eval(node.generators[0].iter)
    return vm.each(source, lambda one: _listed(vm, node, one))


def _listed(vm: Interpreter, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, source: Value) -> Value:
    items: list[Value] = []
    known = _generate(vm, node.generators, lambda: items.append(vm.eval(node.elt)), source)
    return Seq("set" if isinstance(node, ast.SetComp) else "list", items, not known, node)


@evaluates(ast.DictComp)
def dict_comprehension(vm: Interpreter, node: ast.DictComp) -> Value:
    source = vm.eval(node.generators[0].iter)
    return vm.each(source, lambda one: _mapped(vm, node, one))


def _mapped(vm: Interpreter, node: ast.DictComp, source: Value) -> Value:
    items: dict[Any, Value] = {}

    def add() -> None:
        key, value = vm.eval(node.key), vm.eval(node.value)
        items[key.value if isinstance(key, Const) else ("unknown", len(items))] = value

    known = _generate(vm, node.generators, add, source)
    return Map(items, not known, node)


def _generate(
    vm: Interpreter,
    generators: Sequence[ast.comprehension],
    add: Callable[[], object],
    source: Value | None = None,
) -> bool:
    """Run a comprehension's loops; whether every turn of them was seen."""
    if not generators:
        add()
        return True
    first = generators[0]
    source = source or vm.eval(first.iter)
    turns, known = elements(vm, source, first.iter)
    if turns is None:
        turns, known = [part(source)], False
    total = len(turns)
    whole = len(getattr(source, "range", turns))
    turns = turns[:1] if vm.later_turn and total > 4 else turns[:64]
    known = known and len(turns) == whole
    target = first.target.id if isinstance(first.target, ast.Name) else ""
    held = vm.scope.names.get(target, UNDEFINED)
    path = vm.path
    for turn in turns:
        assign(vm, first.target, turn, first.target)
        for test in first.ifs:
            truth, yes, _ = condition(vm, test)
            if truth is False:
                break
            if truth is None:
                known = False
                vm.path = vm.path | yes
        else:
            known = _generate(vm, generators[1:], add) and known
        vm.path = path
    if target:
        vm.store(target, held)
    return known


@evaluates(ast.JoinedStr)
def formatted(vm: Interpreter, node: ast.JoinedStr) -> Value:
    for value in node.values:
        if isinstance(value, ast.FormattedValue):
            vm.eval(value.value)
    return Unknown("text")


@evaluates(ast.Await, ast.Starred)
def inner(vm: Interpreter, node: ast.Await | ast.Starred) -> Value:
    return vm.eval(node.value)


@evaluates(ast.Yield, ast.YieldFrom)
def yielded(vm: Interpreter, node: ast.Yield | ast.YieldFrom) -> Value:
    value = vm.eval(node.value) if node.value is not None else NONE
    if vm.frame.yields is None:
        vm.frame.yields = []
    vm.frame.yields.append(part(value) if isinstance(node, ast.YieldFrom) else value)
    return Unknown("what is sent to a generator")


@evaluates(ast.Lambda)
def lambda_(vm: Interpreter, node: ast.Lambda) -> Value:

    return make_function(vm, node)


@evaluates(ast.Call)
def call(vm: Interpreter, node: ast.Call) -> Value:

    return evaluate_call(vm, node)


def in_place_operator(vm: Interpreter, held: Value, right: Value, node: ast.AugAssign) -> Value:
    """`held op= right`: the same object where it is written in place, a new value elsewhere."""
    held = in_graph(vm, held)
    name, _ = OPERATORS[type(node.op)]
    if isinstance(held, Tensor) and not isinstance(node.op, ast.MatMult):  # `@=` makes a new tensor
        target = held
        return vm.each(
            right,
            lambda one: method_call(
                vm, target, f"__i{name}__", [in_graph(vm, one)], {}, node, form="augassign"
            ),
        )
    if isinstance(held, Seq) and held.kind == "list" and isinstance(node.op, ast.Add):
        added = right.items if isinstance(right, Seq) else []
        vm.trail.set(held, "items", held.items + added)
        if not isinstance(right, Seq) or right.open:
            vm.trail.set(held, "open", True)
        return held
    return vm.each(right, lambda one: operate(vm, type(node.op), held, one, node))
