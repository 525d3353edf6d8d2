"""Generators and context managers run when they are run: up to the yield, then the block, then the rest."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from gradfix.tape.domain.definitions import Bound, Function, Instance
from gradfix.tape.domain.torch_values import Mode
from gradfix.tape.domain.values import NONE, UNDEFINED, Unknown, Value
from gradfix.tape.domain.why import thing
from gradfix.tape.domain.within import Within
from gradfix.tape.interpreter.modes import kept, modes_of, restore
from gradfix.tape.python.following import follow
from gradfix.tape.strangers.handed_out import escape

if TYPE_CHECKING:
    from gradfix.tape.domain.definitions import Suspended
    from gradfix.tape.interpreter.interpreter import Interpreter

Block = Callable[[Value], str | None]
"""What runs at a yield, and how it ended."""


def resume(vm: Interpreter, source: Suspended, block: Block) -> str | None:
    """Run a generator, and at each of its yields a block of the function that it is used in."""
    frame, file, site = vm.names.frame, vm.here.file, vm.timeline.site
    endings: list[str | None] = []
    paths = [vm.here.path]

    def at_yield(value: Value) -> None:
        with (
            vm.names.within(frame=frame),
            vm.here.within(file=file),
            Within(vm.timeline, vm.trail, {"site": site}),
        ):
            endings.append(block(value))
            paths.append(vm.here.path)

    given = (*source.args, *source.kwargs.values())
    if any(isinstance(mode, Mode) for mode, _ in source.function.decorators):
        block = in_modes(vm, block)  # they are set anew whenever it goes on, and only there
    with vm.running.within(at_yield=at_yield):
        follow(vm, source.function, list(source.args), source.kwargs, source.node, source.receiver)
    if not endings:  # it wasn't followed as far as that
        for value in given:
            escape(vm.strangers, value)
        return block(Unknown(thing("what a generator yields"), given))
    if len(endings) == 1 and paths[0] <= paths[1]:
        vm.here.go_on(paths[1])
    return None if None in endings else endings[-1]


def in_modes(vm: Interpreter, block: Block) -> Block:
    """A block that runs in the grad modes of now."""
    before = modes_of(vm.grad_mode)

    def run(value: Value) -> str | None:
        with kept(vm):
            restore(vm.machine, before)
            return block(value)

    return run


def looped(vm: Interpreter, node: ast.For | ast.AsyncFor) -> Value:
    """What a loop goes through; a generator that it can be run in step with isn't run before."""
    in_step = not any(map(leaves_early, node.body))
    with vm.running.within(looped=node.iter if in_step else None, kept=node.iter):
        source = vm.eval(node.iter)
        method = source.cls.lookup("__iter__") if isinstance(source, Instance) else None
        if not isinstance(source, Instance) or not isinstance(method, Function):
            return source
        return vm.call(Bound(source, method), [], {}, node.iter)


def leaves_early(statement: ast.AST) -> bool:
    """Whether a loop may end before what it goes through does."""
    if isinstance(statement, (ast.Break, ast.Return)):
        return True
    blocks = ("body", "orelse", "finalbody", "handlers", "cases")
    inner = [one for name in blocks for one in getattr(statement, name, ()) or ()]
    return any(map(leaves_early, inner))


def managed(vm: Interpreter, manager: Instance, node: ast.AST, block: Block) -> str | None:
    """Run a block between an object's `__enter__` and `__exit__`, where the source has both."""
    enter, leave = (manager.cls.lookup(name) for name in ("__enter__", "__exit__"))
    if not isinstance(enter, Function) or not isinstance(leave, Function):
        return block(UNDEFINED)
    ended = block(vm.call(Bound(manager, enter), [], {}, node))
    vm.call(Bound(manager, leave), [NONE, NONE, NONE], {}, node)
    return ended
