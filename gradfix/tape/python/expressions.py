"""Expressions: names, attributes, subscripts, calls, and those that decide between others."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gradfix.tape.domain.alternatives import alternatives
from gradfix.tape.domain.paths import meet
from gradfix.tape.domain.values import FALSE, NONE, TRUE, Alt, Const, Slice, Undefined, Unknown
from gradfix.tape.domain.why import fact, thing
from gradfix.tape.interpreter.conditions import condition, truth
from gradfix.tape.python.builtin import builtin
from gradfix.tape.python.following import make_function
from gradfix.tape.python.subscripts import load_item
from gradfix.tape.torch.elements import part

if TYPE_CHECKING:
    from gradfix.tape.domain.values import Value
    from gradfix.tape.interpreter.interpreter import Interpreter


def constant(vm: Interpreter, node: ast.Constant) -> Value:
    if node.value is None:
        return NONE
    if node.value is True:
        return TRUE
    return FALSE if node.value is False else Const(node.value)


def name(vm: Interpreter, node: ast.Name) -> Value:
    value = vm.names.load(node.id)
    if type(value) is Undefined:
        return builtin(vm.names, node.id)
    return value


def attribute(vm: Interpreter, node: ast.Attribute) -> Value:
    owner = vm.eval(node.value)
    if type(owner) is not Alt:
        return vm.attribute(owner, node.attr, node)
    return vm.forks.each(owner, lambda one: vm.attribute(one, node.attr, node))


def subscript(vm: Interpreter, node: ast.Subscript) -> Value:
    owner = vm.eval(node.value)
    key = vm.eval(node.slice)
    if type(owner) is not Alt and type(key) is not Alt:
        return load_item(vm.machine, owner, key, node)
    return vm.forks.each(owner, lambda one: vm.forks.each(key, lambda k: load_item(vm.machine, one, k, node)))


def slice_(vm: Interpreter, node: ast.Slice) -> Value:
    bounds = [vm.eval(bound) if bound is not None else NONE for bound in (node.lower, node.upper, node.step)]
    return Slice(*bounds)


def boolean(vm: Interpreter, node: ast.BoolOp) -> Value:
    """The operand that decides: `a or b` is a where a is true."""
    wanted = isinstance(node.op, ast.Or)
    return _decide(vm, node.values, wanted)


def _decide(vm: Interpreter, operands: Sequence[ast.expr], wanted: bool) -> Value:
    value = vm.eval(operands[0])
    if len(operands) == 1:
        return value
    known, yes, no = truth(vm.notes, value, operands[0])
    if known is not None:
        return value if known is wanted else _decide(vm, operands[1:], wanted)
    stays, goes = (yes, no) if wanted else (no, yes)
    both = meet(vm.here.path, goes)
    if both is None:
        return value
    with vm.here.within(path=both):
        rest = _decide(vm, operands[1:], wanted)
    return alternatives([(stays, value), (goes, rest)])


def conditional(vm: Interpreter, node: ast.IfExp) -> Value:
    known, yes, no = condition(vm, node.test)
    if known is not None:
        return vm.eval(node.body if known else node.orelse)
    results: dict[bool, Value] = {}

    def arm(which: bool, expression: ast.expr) -> None:
        results[which] = vm.eval(expression)

    vm.forks.fork([(yes, lambda: arm(True, node.body)), (no, lambda: arm(False, node.orelse))])
    if len(results) < 2:  # none where nobody can come to either
        return next(iter(results.values()), Unknown(fact("what no path comes to")))
    return alternatives([(yes, results[True]), (no, results[False])])


def named(vm: Interpreter, node: ast.NamedExpr) -> Value:
    value = vm.eval(node.value)
    vm.assign(node.target, value, node)
    return value


def formatted(vm: Interpreter, node: ast.JoinedStr) -> Value:
    parts = [vm.eval(one.value) for one in node.values if isinstance(one, ast.FormattedValue)]
    made = Unknown(fact("text"))
    vm.reports.findings.terms.fact_of(made, *parts)
    return made


def inner(vm: Interpreter, node: ast.Await | ast.Starred) -> Value:
    return vm.eval(node.value)


def yielded(vm: Interpreter, node: ast.Yield | ast.YieldFrom) -> Value:
    value = vm.eval(node.value) if node.value is not None else NONE
    handed = part(value) if isinstance(node, ast.YieldFrom) else value
    if vm.names.frame.at_yield is not None:
        vm.names.frame.at_yield(handed)
        return Unknown(thing("what is sent to a generator"))
    if vm.names.frame.yields is None:
        vm.names.frame.yields = []
    vm.names.frame.yields.append(handed)
    return Unknown(thing("what is sent to a generator"))


def lambda_(vm: Interpreter, node: ast.Lambda) -> Value:
    return make_function(vm, node)
