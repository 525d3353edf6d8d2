"""What happens to leaves and their gradients by name: rebound, read, checkpointed."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gradfix.defects import Assumption, Role
from gradfix.defects.records import Checkpointed, NonLeaf, Rebound
from gradfix.tape.checks.leaks import accumulating, adds_to
from gradfix.tape.domain.definitions import Instance
from gradfix.tape.domain.graph import Tensor, is_result, upstream
from gradfix.tape.domain.torch_values import Layer, Opaque
from gradfix.tape.domain.values import Const
from gradfix.tape.interpreter.occasions import Added, Replaced
from gradfix.tape.interpreter.origins import factory_inside
from gradfix.tape.machine.cuts import nodes_below
from gradfix.tape.torch.manual_steps import made_of_gradient
from gradfix.tape.torch.wanted import read_and_not_reached

if TYPE_CHECKING:
    from gradfix.tape.domain.graph import Node
    from gradfix.tape.interpreter.interpreter import Interpreter
    from gradfix.tape.interpreter.names import Names
    from gradfix.tape.interpreter.occasions import (
        CheckpointRun,
        GradientRead,
        GradientSet,
        NameBound,
    )
    from gradfix.tape.machine.account import Account
    from gradfix.tape.machine.histories import Graph
    from gradfix.tape.machine.machine import Machine
    from gradfix.tape.machine.reports import Reports


def rebinding(vm: Interpreter, bound: NameBound) -> None:
    """A name is bound to another value."""
    name, value, node = bound
    held = vm.names.scope.names.get(name)
    if isinstance(value, Tensor):
        if isinstance(node, ast.Assign) and isinstance(held, (Tensor, Const)) and adds_to(node.value, name):
            accumulating(vm, Added(name, held, value, value, node))
        if (
            isinstance(held, Tensor)
            and held is not value
            and held.requires is True
            and held.leaf is True
            and is_result(value)
            and made_of_gradient(vm.graph, value, held)
        ):
            vm.names.rebound[id(value)] = (value, held, node)
            if any(below.leaf is held for below in nodes_below(value.node)):
                vm.machine.gradients.use(held, vm.here.at(node), held, must=True, lean=held.lean)
        elif (
            isinstance(held, Tensor)
            and id(held) in vm.names.rebound
            and vm.names.rebound[id(held)][2] is node
        ):
            vm.names.rebound[id(value)] = (value, vm.names.rebound[id(held)][1], node)
    modules = (Instance, Layer, Opaque)
    if isinstance(held, modules) and isinstance(value, modules) and held is not value:
        vm.tell(Replaced(held, value, node))


def gradient_set(vm: Interpreter, told: GradientSet) -> None:
    """Somebody cares for a tensor's `.grad`: he puts something there."""
    _lost_by_name(vm.names, told.owner, told.node)


def _lost_by_name(names: Names, owner: Tensor, node: ast.AST) -> bool:
    """Say so where a `.grad` that somebody cares for isn't to be had: its name was bound to a result."""
    bound = names.rebound.get(id(owner))
    if bound is not None and is_result(owner) and owner.retained is False:
        _, held, statement = bound
        names.reports.report(
            "leaf_rebound",
            statement,
            [
                (held.place, Role.THE_LEAF),
                (statement, Role.REBOUND),
                (names.here.at(node), Role.AND_GRAD_IS_NONE),
            ],
            Rebound(target=owner.name),
            when=names.here.path,
            says="'NoneType' object",
        )
        return True
    return False


NOT_A_LEAF = "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed"


def gradient_read(vm: Interpreter, read: GradientRead) -> None:
    """`.grad` is read: of a leaf it is what backward left there, of anything else it is None."""
    owner, node = read
    vm.machine.gradients.read_grads.append(owner)
    asked = any(one is owner for one in vm.notes.asked_for)  # whether there is one
    if asked or _lost_by_name(vm.names, owner, node):
        return
    if owner.requires is True and owner.leaf is False and owner.retained is True:
        read_and_not_reached(vm.machine, owner, vm.here.at(node))
    handed = owner.requires is None and "handed" in (owner.node.facts or {})
    if (
        (handed or (owner.requires is True and owner.leaf is False))
        and owner.retained is not True
        and vm.machine.severed.backwards
        and not vm.machine.leaves.hooked
    ):
        known = [root for _, root in vm.machine.severed.backwards]
        if any(one is owner or _may_be(one.node, owner) for one in known):
            return
        if not _walked(vm.graph, owner, [vm.graph.history(root) for root in known]):
            return
        made = (owner.node.place, Role.MADE_NO_LEAF)
        lean = owner.lean
        if _made_by(owner.node).doubted and vm.grad_mode.mode_in_doubt is False:
            lean = lean | {Assumption.RECORDED_HERE}
        vm.reports.report("grad_of_non_leaf", owner.node.place, [made, (vm.here.at(node), Role.GRAD_IS_NONE)],
                  NonLeaf(target=owner.name, read=_read(vm.reports, node),
                          factory=factory_inside(vm.reports, owner)),
                  when=vm.here.path, lean=lean, says=NOT_A_LEAF,
                  account=_kept(vm.machine, owner))  # fmt: skip


def _read(reports: Reports, node: ast.AST) -> str:
    """What is asked for its gradient, as it is written."""
    return reports.text(node.value) if isinstance(node, ast.Attribute) else ""


def _made_by(node: Node) -> Node:
    """What made a result: writes to it, recorded or not, leave it a result."""
    while node.writes and node.parents:
        node = node.parents[0]
    return node


def _kept(machine: Machine, owner: Tensor) -> Account:
    """What may have told a result to keep its gradient."""
    accounts = machine.leaves.accounts
    whys = accounts.had([owner]) if owner.retained is None else ()
    return accounts.of(Assumption.NOBODY_ELSE_KEEPS, whys)


def _walked(graph: Graph, owner: Tensor, roots: list[Node]) -> bool:
    """Whether a backward has come to it for sure: through what isn't known it may not have."""
    node = graph.history(owner)
    if node.clean < 0:
        return False
    own = {id(node), *(id(parent) for parent in node.parents if node.op == "unknown")}
    surely = upstream(roots, lambda one: () if one.may or one.cut else one.parents)
    return any(id(one) in own for one in surely)


def _may_be(root: Node, owner: Tensor) -> bool:
    """Whether what isn't known may be one of the values that went into it: it may hand them back."""
    unknown, seen = [root], {id(root)}
    for node in unknown:
        if node.op != "unknown":
            continue
        if owner.node in node.parents:
            return True
        unknown += [parent for parent in node.parents if id(parent) not in seen]
        seen |= {id(parent) for parent in node.parents}
    return False


def checkpointed(vm: Interpreter, run: CheckpointRun) -> None:
    """No gradient reaches what runs under reentrant checkpointing on such inputs."""
    node = run.node
    if vm.grad_mode.grad is True:
        vm.reports.report("reentrant_checkpoint_cut", vm.here.at(node),
                  [(vm.here.at(node), Role.NOT_REACHED)],
                  Checkpointed(function=vm.reports.text(node.args[0]) if node.args else ""),
                  lean=vm.graph.lean(run.result))  # fmt: skip
