"""What happens to leaves and their gradients by name: rebound, read, checkpointed."""

from __future__ import annotations

import ast

from gradfix.defects import Span
from gradfix.tape.checks.leaks import accumulating, adds_to
from gradfix.tape.checks.registration import replaced
from gradfix.tape.domain.definitions import Instance
from gradfix.tape.domain.graph import Node, Tensor
from gradfix.tape.domain.torch_values import Layer, Opaque, Optimizer
from gradfix.tape.domain.values import Alt, Args, Const, Kwargs, Place, Value
from gradfix.tape.interpreter.interpreter import Interpreter
from gradfix.tape.machine.reports import span_of
from gradfix.tape.torch.manual_steps import made_of_gradient

NOTED = frozenset({Optimizer, Alt, Tensor, Instance, Layer, Opaque})
"""What makes a difference when a name is bound to it."""


def rebinding(vm: Interpreter, name: str, value: Value, node: ast.AST) -> None:
    """A name is bound to another value."""
    if type(value) not in NOTED:
        return
    if isinstance(value, Optimizer) and not value.name:
        value.name = name
    held = vm.scope.names.get(name)
    if isinstance(value, Alt):
        _name_condition(vm, name, value)
    if isinstance(value, Tensor):
        if not value.name:
            value.name = name
        if isinstance(node, ast.Assign) and isinstance(held, (Tensor, Const)) and adds_to(node.value, name):
            accumulating(vm, name, held, value, value, node)
        if (
            isinstance(held, Tensor)
            and held is not value
            and held.requires is True
            and held.leaf is True
            and not (value.leaf is True and value.requires is True)
            and made_of_gradient(vm, value, held)
        ):
            vm.rebound[id(value)] = (value, held, node)
            if any(below.leaf is held for below in vm.below(value.node)):
                vm.use(held, vm.at(node), held, must=True, lean=held.lean)
        elif isinstance(held, Tensor) and id(held) in vm.rebound and vm.rebound[id(held)][2] is node:
            vm.rebound[id(value)] = (value, vm.rebound[id(held)][1], node)
    if (
        isinstance(held, (Instance, Layer, Opaque))
        and isinstance(value, (Instance, Layer, Opaque))
        and held is not value
    ):
        replaced(vm, held, value, node)


def _name_condition(vm: Interpreter, name: str, value: Alt) -> None:
    """Let a flag be called by its name where a condition is told."""
    for guard, option in value.options:
        if isinstance(option, Const) and option.value is True and len(guard) == 1:
            ((key, holds),) = guard
            if holds:
                vm.texts[key] = name


def wanted_gradient(vm: Interpreter, owner: Tensor, node: ast.AST) -> bool:
    """Somebody cares for a tensor's `.grad`: not to be had where its name was bound to a result."""
    bound = vm.rebound.get(id(owner))
    if bound is not None and not (owner.leaf is True and owner.requires is True):
        _, held, statement = bound
        vm.report("leaf_rebound", statement, [(held.place, "the leaf"),
                  (statement, "its name is bound to another tensor here"),
                  (vm.at(node), "and .grad is None here")], facts={"target": owner.name}, when=vm.path,
                  says="'NoneType' object")  # fmt: skip
        return True
    return False


NOT_A_LEAF = "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed"


def read_gradient(vm: Interpreter, owner: Tensor, node: ast.AST) -> None:
    """`.grad` is read: of a leaf it is what backward left there, of anything else it is None."""
    vm.read_grads.append(owner)
    if wanted_gradient(vm, owner, node):
        return
    if (
        owner.requires is True
        and owner.leaf is False
        and not owner.retained
        and vm.backwards
        and not vm.hooked
    ):
        known = [root for _, root in vm.backwards] + vm.asked_for
        if any(one is owner for one in known) or not _walked(vm, owner):
            return
        made = (owner.node.place, "made here, not a leaf")
        vm.report("grad_of_non_leaf", owner.node.place, [made, (vm.at(node), ".grad is None here")],
                  impact="crashes", when=vm.path, lean=owner.lean,
                  facts={"read": span_of(node), "target": owner.name,
                         "factory": factory_inside(vm, owner)},
                  says=NOT_A_LEAF)  # fmt: skip


def factory_inside(vm: Interpreter, result: Tensor) -> Span | None:
    """The call that makes the leaf, where a result is made of one in one expression."""
    factory = _factory(result.node)
    return vm.span(factory) if factory is not None and _inside(factory, result.node.place) else None


def _factory(node: Node) -> Place:
    """The one call at the start of a chain of operations."""
    while len(parents := [parent for parent in node.parents if parent.requires is True]) == 1:
        node = parents[0]
    return node.place if node.leaf is not None else None


def _walked(vm: Interpreter, owner: Tensor) -> bool:
    return vm.history(owner).clean >= 0


def _inside(inner: object, outer: object) -> bool:
    if not isinstance(inner, ast.AST) or not isinstance(outer, ast.AST):
        return False
    return any(node is inner for node in ast.walk(outer))


def checkpointed(vm: Interpreter, args: Args, kwargs: Kwargs, result: Value, node: ast.Call) -> Value:
    """Reentrant checkpointing walks only from inputs that require grad."""
    reentrant = kwargs.get("use_reentrant")
    if reentrant is None or not isinstance(reentrant, Const) or not reentrant.value:
        return result
    facts = [vm.requires(arg) for arg in args[1:]]
    if not facts or any(fact is not False for fact in facts) or vm.requires(result) is not True:
        return result
    given = [below for arg in args[1:] for below in vm.nodes(arg)]
    if any(vm.behind(cut) for below in given for cut in vm.cuts(below)):
        return vm.output(vm.node("checkpoint", vm.at(node), args[1:]))
    if vm.grad is True:
        vm.report("reentrant_checkpoint_cut", vm.at(node),
                  [(vm.at(node), "no input requires grad, so nothing inside is reached")],
                  impact="trains wrong", lean=vm.lean(result),
                  facts={"function": vm.text(node.args[0]) if node.args else ""})  # fmt: skip
    return result
