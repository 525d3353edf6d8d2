"""What is as likely wrong as meant, and no rule is about: whoever asks why nothing is said is told."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradfix.spelling import SWITCH
from gradfix.tape.domain.events import Add, Clear, Use
from gradfix.tape.interpreter.inside import all_in

if TYPE_CHECKING:
    from gradfix.tape.domain.events import Backward
    from gradfix.tape.domain.torch_values import Optimizer
    from gradfix.tape.interpreter.interpreter import Interpreter
    from gradfix.tape.interpreter.names import Names
    from gradfix.tape.interpreter.occasions import AttributeBound, ModuleCleared

FEW = 8
"""How many leaves of an optimizer are looked at: a backward that is for it fills them alike."""
ONE_WAY = "only what requires grad is told here whether it does, so none does again; no rule is about that"
EACH_TIME = "a module is cleared here each time, also where no step is due; no rule is about that"
ALONG = "this fills what another optimizer steps for a backward of its own as well; no rule is about that"


def switched_one_way(vm: Interpreter, bound: AttributeBound) -> None:
    """`if p.requires_grad: p.requires_grad = wanted`."""
    node = bound.node
    if bound.name != SWITCH or not isinstance(node, ast.Assign) or isinstance(node.value, ast.Constant):
        return
    target = ast.dump(node.targets[0]).replace("Store()", "Load()")
    for test in _around(vm.names, node):
        if isinstance(test, ast.If) and ast.dump(test.test) == target:
            vm.reports.silence(vm.here.at(node), ONE_WAY)


def cleared_each_time(vm: Interpreter, told: ModuleCleared) -> None:
    """`module.zero_grad()` where `accumulate` has the steps and clears of an optimizer wait."""
    for block in _around(vm.names, told.node):
        for item in block.items if isinstance(block, ast.With) else ():
            func = item.context_expr.func if isinstance(item.context_expr, ast.Call) else None
            if isinstance(func, ast.Attribute) and func.attr == "accumulate":
                vm.reports.silence(vm.here.at(told.node), EACH_TIME)


def _around(names: Names, node: ast.AST) -> Iterator[ast.AST]:
    """The statements of the running code that something stands in."""
    code = names.frame.code
    for one in all_in(code.node if code is not None else names.program.tree):
        if isinstance(one, (ast.If, ast.With)) and any(inner is node for inner in all_in(one)):
            yield one


def steps_along(vm: Interpreter) -> None:
    """At the end: backwards that fill what two optimizers step, one of which has another backward."""
    used = {id(one): _used_by(one) for one in vm.machine.optimizers.known if one.stepped}
    for one in used.values():
        for other in used.values():
            both = one.keys() & other.keys()
            if one is not other and both == other.keys() and both < one.keys():
                for event in both:
                    vm.reports.silence(one[event].place, ALONG)


def _used_by(optimizer: Optimizer) -> dict[int, Backward]:
    """The backwards whose gradients an optimizer has stepped along, by place."""
    found: dict[int, Backward] = {}
    for leaf in optimizer.leaves[:FEW]:
        due: dict[int, Backward] = {}
        for event in leaf.slot.events if leaf.slot is not None else ():
            if isinstance(event, Add) and event.must and not event.backward.returns:
                due[id(event.backward.place)] = event.backward
            elif isinstance(event, Use) and event.by is optimizer:
                found |= due
                due = {}
            elif isinstance(event, Clear) and event.must:
                due = {}
    return found
