"""What turns of a loop that aren't run leave behind: nobody knows what."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gradfix.defects import Convention
from gradfix.tape.domain.definitions import Instance
from gradfix.tape.domain.graph import Tensor
from gradfix.tape.domain.torch_values import Optimizer
from gradfix.tape.domain.values import UNDEFINED, Const, Map, Seq, Unknown
from gradfix.tape.domain.why import fact
from gradfix.tape.interpreter.inside import all_in
from gradfix.tape.python.containers import may_lose
from gradfix.tape.python.telling_turns import unlike

if TYPE_CHECKING:
    from gradfix.tape.domain.values import Value
    from gradfix.tape.interpreter.interpreter import Interpreter

UNSEEN = fact("what a loop leaves that isn't run to its end")


def leave_in_doubt(vm: Interpreter, node: ast.AST) -> None:
    """A loop that wasn't run to its end leaves nobody knows what in the names that it binds and in lists."""
    for one in all_in(node):
        if not isinstance(getattr(one, "ctx", None), ast.Store):
            continue
        if isinstance(one, ast.Name):
            vm.names.store(one.id, Unknown(UNSEEN, (vm.names.load(one.id),)))
            continue
        owner = one.value if isinstance(one, (ast.Subscript, ast.Attribute)) else None
        held = vm.names.load(owner.id) if isinstance(owner, ast.Name) else None
        if isinstance(one, ast.Subscript) and isinstance(held, (Seq, Map)):
            may_lose(vm.trail, held)
        elif isinstance(one, ast.Attribute) and isinstance(held, Instance) and one.attr in held.attrs:
            vm.trail.put(held, held.attrs, one.attr, Unknown(UNSEEN, (held.attrs[one.attr],)))


def bound_in(vm: Interpreter, node: ast.AST) -> dict[str, Value]:
    """What the names hold by now that a loop binds."""
    stored = {one.id for one in all_in(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    held = vm.names.scope.names
    return {name: held[name] for name in sorted(stored) if name in held and held[name] is not UNDEFINED}


def lean_on_a_turn(vm: Interpreter, before: dict[str, Value]) -> None:
    """After a loop that may not run at all, what it has bound anew is there if it has run."""
    for name, held in before.items():
        now = vm.names.scope.names.get(name)
        if isinstance(now, Tensor) and now is not held and Convention.E not in now.lean:
            vm.trail.set(now, "lean", now.lean | {Convention.E})
            vm.trail.learn(now.node, "lean", now.node.lean | {Convention.E})


def pass_over(vm: Interpreter, node: ast.For, before: Value | None, after: Value | None) -> None:
    """Between two turns that are run, others may do what the first of them hasn't done."""
    if not (isinstance(node.target, ast.Name) and isinstance(before, Const) and isinstance(after, Const)):
        return
    if not isinstance(before.value, int) or not isinstance(after.value, int):
        return
    for one in unlike(vm, node, node.target.id, before.value, after.value):
        leave_in_doubt(vm, one)
        if any(isinstance(each, ast.Call) and not _steps(vm, each.func) for each in all_in(one)):
            vm.machine.gradients.clear(vm.machine.leaves.every_leaf, None, must=False)


def _steps(vm: Interpreter, called: ast.expr) -> bool:
    """Whether it is the step of an optimizer: that clears nothing."""
    match called:
        case ast.Attribute(ast.Name(name), "step"):
            optimizer = vm.names.load(name)
            return isinstance(optimizer, Optimizer) and not optimizer.own
    return False
