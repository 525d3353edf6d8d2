"""Results whose gradient somebody asked for by name, and that have no graph, or that no backward comes to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradfix.defects import NOTHING, Role
from gradfix.tape.domain.events import Backward
from gradfix.tape.domain.graph import upstream
from gradfix.tape.domain.values import NONE, Unknown
from gradfix.tape.domain.why import fact
from gradfix.tape.machine.cuts import DETACHES, MODES, behind, nearest_cuts
from gradfix.tape.torch.tensors import called

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator

    from gradfix.tape.domain.graph import Node, Tensor
    from gradfix.tape.domain.values import Args, Kwargs, Place, Value
    from gradfix.tape.machine.machine import Machine

RETAINED = "can't retain_grad on Tensor that has requires_grad=False"
HOOKED = "cannot register a hook on a tensor that doesn't require gradient"
IS_NONE = "'NoneType' object"


def retain_grad(machine: Machine, tensor: Tensor, args: Args, kwargs: Kwargs, node: ast.AST) -> Value:
    _refused_without_graph(machine, tensor, machine.here.at(node), RETAINED)
    machine.trail.set(tensor, "retained", True)
    return NONE


def hook(machine: Machine, tensor: Tensor, args: Args, kwargs: Kwargs, node: ast.AST) -> Value:
    if called(node, "") == "register_hook":
        _refused_without_graph(machine, tensor, machine.here.at(node), HOOKED)
    machine.leaves.hooked = True
    return Unknown(fact("a hook"))


def _refused_without_graph(machine: Machine, tensor: Tensor, place: Place, says: str) -> None:
    """A call that torch refuses where its tensor requires no grad: say which cut keeps it from that."""
    path = machine.here.path
    tested = {key for key, _ in machine.tested.graph_tests}
    if tensor.requires is not False or any(key in tested for key, _ in path):
        return
    node = machine.graph.history(tensor)
    cuts = list(nearest_cuts(node, path))
    if len(cuts) == 1 and cuts[0].cut in DETACHES | MODES and behind(cuts[0]) is True:
        event = Backward(place, path, retain=False, virtual=False, lean=NOTHING)
        machine.severed.report_cut(cuts[0], event, [(place, Role.ASKED)], says=says, root=node)


def read_and_not_reached(machine: Machine, owner: Tensor, place: Place) -> None:
    """The gradient of a result that was told to keep it is read: say which cut every backward ended at."""
    backwards = machine.severed.backwards
    roots = [event.start or machine.graph.history(root) for event, root in backwards]
    own = machine.graph.history(owner)
    walked = [one for root in roots for one in _walked(root)]
    if not roots or any(one is own or one.may or one.requires is None for one in walked):
        return
    cuts = {id(one): one for one in walked if one.cut and any(each is own for each in _kept_from(one))}
    if len(cuts) == 1 and (cut := next(iter(cuts.values()))).cut in DETACHES:
        steps = [(backwards[-1][0].place, Role.WITHOUT), (place, Role.GRAD_IS_NONE)]
        machine.severed.report_cut(cut, backwards[-1][0], steps, says=IS_NONE)


def _walked(root: Node) -> Iterator[Node]:
    """What a backward comes to, and the cuts at which it ends."""
    return upstream([root], lambda one: () if one.cut else one.parents)


def _kept_from(cut: Node) -> Iterator[Node]:
    return upstream(cut.parents, lambda one: () if one.cut else one.parents)
