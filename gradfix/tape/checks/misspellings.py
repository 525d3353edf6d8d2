"""Switches that autograd never reads: `requires_grad` misspelt, or set on a module."""

from __future__ import annotations

import ast

from gradfix.tape.domain.definitions import Class, Instance
from gradfix.tape.domain.graph import Tensor
from gradfix.tape.domain.torch_values import Layer, Opaque, Weights
from gradfix.tape.domain.values import Const, Value
from gradfix.tape.interpreter.interpreter import Interpreter
from gradfix.tape.interpreter.occasions import AttributeBound
from gradfix.tape.torch.modules import leaves

RIGHT = "requires_grad"
SLIPS = frozenset({
    "requiregrad", "requiresgrads", "requiresgradient", "requiregrads", "requiregradient", "requiredgrad",
    "requresgrad", "requriesgrad", "reqiuresgrad",
})  # fmt: skip


def misspelt(vm: Interpreter, bound: AttributeBound) -> None:
    """An attribute that looks like requires_grad and isn't, or is set on a module, where it means nothing."""
    owner, name, value, node = bound
    on_module = isinstance(owner, (Layer, Opaque)) or (isinstance(owner, Instance) and owner.module)
    if name != RIGHT and not _close(name):
        return
    if isinstance(owner, Instance) and (
        name.startswith("_") or _reads_it(owner.cls, name) or _handed_in(vm, owner, node)
    ):
        return
    if name == RIGHT:
        if not on_module:
            return
        if isinstance(value, Const) and value.value and _trains(vm, owner):
            return
    elif not (isinstance(owner, (Tensor, Weights)) or on_module):
        return
    if isinstance(node, ast.Assign):
        lean = frozenset({"B"}) if isinstance(owner, Opaque) else frozenset()
        vm.report("requires_grad_misspelt", vm.at(node),
                  [(vm.at(node), "sets an attribute that autograd never reads")],
                  impact="trains wrong", lean=lean,
                  facts={"attribute": name, "on": "module" if on_module else "tensor"})  # fmt: skip


def _handed_in(vm: Interpreter, owner: Instance, node: ast.AST) -> bool:
    """Whether a method keeps an argument of its own under that name: a setting, not a switch."""
    code = vm.frame.code
    if vm.frame.receiver is not owner or code is None or not isinstance(node, ast.Assign):
        return False
    given = code.node.args
    names = {arg.arg for arg in (*given.posonlyargs, *given.args, *given.kwonlyargs)}
    return isinstance(node.value, ast.Name) and node.value.id in names


def _trains(vm: Interpreter, module: Value) -> bool:
    """Whether every parameter of a module requires grad already."""
    return all(leaf.requires is True for leaf in leaves(vm, module)[0])


def _reads_it(cls: Class, name: str) -> bool:
    """Whether a class has a use of its own for the attribute."""
    return cls.lookup(name) is not None or any(
        isinstance(node, ast.Attribute)
        and node.attr == name
        and isinstance(node.ctx, ast.Load)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
        for node in ast.walk(cls.node)
    )


def _close(name: str) -> bool:
    """Whether a name is one or two slips away from requires_grad."""
    bare = name.replace("_", "").lower()
    if bare == "requiresgrad":
        return name != RIGHT
    return bare in SLIPS
