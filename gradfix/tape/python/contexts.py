"""With statements: the block runs in the grad modes that are entered."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gradfix.tape.domain.definitions import Instance, Suspended
from gradfix.tape.domain.graph import Tensor
from gradfix.tape.domain.torch_values import Layer, Mode
from gradfix.tape.domain.values import UNDEFINED, Alt, Const, Unknown
from gradfix.tape.domain.why import fact
from gradfix.tape.interpreter.conditions import truth
from gradfix.tape.interpreter.modes import (
    doubt_mode,
    kept,
    lose_mode,
    may_set_mode,
    modes_of,
    of_torch,
    set_mode,
    unbound,
)
from gradfix.tape.python.generators import managed, resume
from gradfix.tape.strangers.handed_out import escape

if TYPE_CHECKING:
    from gradfix.tape.domain.paths import Path
    from gradfix.tape.domain.values import Value
    from gradfix.tape.interpreter.interpreter import Interpreter
    from gradfix.tape.interpreter.modes import Modes
    from gradfix.tape.interpreter.names import Names
    from gradfix.tape.interpreter.state import Notes


def with_statement(vm: Interpreter, node: ast.With | ast.AsyncWith) -> str | None:
    return _within(vm, node, node.items)


def _within(vm: Interpreter, node: ast.With | ast.AsyncWith, items: Sequence[ast.withitem]) -> str | None:
    """Enter what is left of the items, then run the block, and leave it in the modes of before."""
    with kept(vm):
        return _entered(vm, node, items)


def _entered(vm: Interpreter, node: ast.With | ast.AsyncWith, items: Sequence[ast.withitem]) -> str | None:
    """Enter one item after the other, then run the block."""
    before = modes_of(vm.grad_mode)
    for i, item in enumerate(items):
        value = vm.eval(item.context_expr)
        rest = items[i + 1 :]
        if isinstance(value, Alt) and all(isinstance(option, Mode) for _, option in value.options):
            return _each_mode(vm, node, value, rest)
        if isinstance(value, (Suspended, Instance)):
            return _managed(vm, node, value, item, rest)
        if isinstance(value, Mode):
            known, yes, no = _mode_truth(vm.notes, value, item.context_expr)
            if known is None:
                return _both_modes(vm, node, value, (yes, no), rest)
            set_mode(vm.machine, value.kind, known, vm.here.at(node))
        elif _any_mode(vm.names, value, item.context_expr):
            lose_mode(vm.machine, entered=True)
        elif may_set_mode(value):
            doubt_mode(vm.machine)
            if not isinstance(item.context_expr, ast.Call):  # who made it before runs now
                escape(vm.strangers, value)
        if item.optional_vars is not None and not isinstance(value, Mode):
            bound: Value = (
                value if isinstance(value, (Tensor, Layer)) else Unknown(fact("a context"), (value,))
            )
            vm.assign(item.optional_vars, bound, node)
    return _body(vm, node, before)


def _managed(
    vm: Interpreter,
    node: ast.With | ast.AsyncWith,
    manager: Suspended | Instance,
    item: ast.withitem,
    rest: Sequence[ast.withitem],
) -> str | None:
    """The block runs where the manager lets it run: in its modes, which it sets and takes back by itself."""

    def block(entered: Value) -> str | None:
        if item.optional_vars is not None:
            bound = entered if entered is not UNDEFINED else Unknown(fact("a context"), (manager,))
            vm.assign(item.optional_vars, bound, node)
        return _within(vm, node, rest)

    return resume(vm, manager, block) if isinstance(manager, Suspended) else managed(vm, manager, node, block)


def _any_mode(names: Names, value: Value, node: ast.expr) -> bool:
    """Whether it may be any mode of torch, or is one of several of which some set the grad mode."""
    if isinstance(value, Unknown):
        return unbound(names, node) or of_torch(value)
    return isinstance(value, Alt) and any(isinstance(option, Mode) for _, option in value.options)


def _body(vm: Interpreter, node: ast.With | ast.AsyncWith, before: Modes) -> str | None:
    """A with statement's block in the modes that it has set."""
    with vm.running.within(modes=[*vm.running.modes, before]):
        return vm.run(node.body)


def _each_mode(
    vm: Interpreter, node: ast.With | ast.AsyncWith, modes: Alt, rest: Sequence[ast.withitem]
) -> str | None:
    """A mode whose flag has alternatives: the block runs once for each of them."""

    def arm(mode: Value) -> str | None:
        before = modes_of(vm.grad_mode)
        assert isinstance(mode, Mode)
        set_mode(
            vm.machine, mode.kind, isinstance(mode.sets, Const) and bool(mode.sets.value), vm.here.at(node)
        )
        for item in rest:
            vm.eval(item.context_expr)
        return _body(vm, node, before)

    return vm.forks.fork([(guard, lambda mode=mode: arm(mode)) for guard, mode in modes.options])  # type: ignore[misc]


def _both_modes(
    vm: Interpreter,
    node: ast.With | ast.AsyncWith,
    mode: Mode,
    paths: tuple[Path, Path],
    rest: Sequence[ast.withitem],
) -> str | None:
    def arm(on: bool) -> str | None:
        before = modes_of(vm.grad_mode)
        set_mode(vm.machine, mode.kind, on, vm.here.at(node))
        for item in rest:
            vm.eval(item.context_expr)
        return _body(vm, node, before)

    return vm.forks.fork([(paths[0], lambda: arm(True)), (paths[1], lambda: arm(False))])


def _mode_truth(notes: Notes, mode: Mode, node: ast.expr) -> tuple[bool | None, Path, Path]:
    known, yes, no = truth(
        notes, mode.sets, node.args[0] if isinstance(node, ast.Call) and node.args else node
    )
    return known, yes, no
