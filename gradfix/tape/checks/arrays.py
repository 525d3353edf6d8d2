"""Arrays of numpy that are asked for of what requires grad: torch refuses them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradfix.defects import Role
from gradfix.defects.records import OfGraph
from gradfix.tape.domain.paths import tested
from gradfix.tape.machine.grad_mode import UNSET

if TYPE_CHECKING:
    from gradfix.tape.interpreter.interpreter import Interpreter
    from gradfix.tape.interpreter.occasions import ArrayAsked

REFUSED = "Can't call numpy() on Tensor that requires grad"


def array_of_graph(vm: Interpreter, told: ArrayAsked) -> None:
    """An array of what surely requires grad: where nobody but the file itself decides what is recorded."""
    tensor, node = told
    made = vm.graph.history(tensor)
    doubted = made.doubted or vm.grad_mode.mode_in_doubt is not False
    if vm.grad_mode.mode is UNSET and tested(vm.here.path) != vm.here.path:
        return  # who enters this may do so where nothing is recorded
    if vm.graph.requires(tensor) is not True or tensor.lean or made.lean or vm.running.uncalled or doubted:
        return
    here = vm.here.at(node)
    vm.reports.report(
        "numpy_of_graph",
        here,
        [(made.place, Role.GRAPH), (here, Role.REFUSED)],
        OfGraph(target=tensor.name),
        when=vm.here.path - vm.here.assumed,
        says=REFUSED,
    )
