"""What models tell of as it happens, so that checks and assumptions can judge it: nobody calls those."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from gradfix.tape.domain.definitions import Instance
    from gradfix.tape.domain.events import Backward
    from gradfix.tape.domain.graph import Tensor
    from gradfix.tape.domain.values import Args, Seq, Value


class NameBound(NamedTuple):
    """A name is about to be bound to a value that makes a difference."""

    name: str
    value: Value
    node: ast.AST


class AttributeBound(NamedTuple):
    """`owner.name = value`, for one owner."""

    owner: Value
    name: str
    value: Value
    node: ast.AST


class Compared(NamedTuple):
    """`owner.name == value` stands as a statement of its own, somewhere that nothing shows it."""

    owner: Value
    name: str
    value: Value
    node: ast.AST


class SwitchAsked(NamedTuple):
    """A module, or what may be one, is asked whether it requires grad: what torch never reads."""

    owner: Value
    node: ast.AST


class PassedOver(NamedTuple):
    """What stands under a test isn't run: the test is known not to hold."""

    node: ast.If


class Dropped(NamedTuple):
    """A statement makes a tensor of others, and nobody keeps it."""

    result: Tensor
    node: ast.expr


class AttributeNamed(NamedTuple):
    """An attribute is the target of an assignment, whoever its owner is."""

    target: ast.Attribute
    node: ast.AST


class Added(NamedTuple):
    """`name += right` has made `result` out of `held`."""

    name: str
    held: Value
    right: Value
    result: Value
    node: ast.AST


class ItemAdded(NamedTuple):
    """`owner[key] += right` or `owner.name += right`, and what stood there before."""

    owner: Value
    held: Value
    right: Value
    node: ast.AugAssign


class Appended(NamedTuple):
    """A value is put into a list, as one argument of a call."""

    into: Seq
    value: Value
    call: ast.Call


class Replaced(NamedTuple):
    """Something else is put where a module or parameter was."""

    old: Value
    new: Value
    node: ast.AST


class PutSomewhere(NamedTuple):
    """Something is put into a module, or into what was taken from one, it isn't known where."""

    owner: Value
    put: Value
    node: ast.AST


class Built(NamedTuple):
    """The constructor of a module has run."""

    instance: Instance


class GradientRead(NamedTuple):
    """`.grad` is read."""

    owner: Tensor
    node: ast.AST


class GradientSet(NamedTuple):
    """`.grad` is assigned."""

    owner: Tensor
    node: ast.AST


class ArrayAsked(NamedTuple):
    """`tensor.numpy()`, not forced."""

    tensor: Tensor
    node: ast.AST


class GradientsAsked(NamedTuple):
    """`torch.autograd.grad(outputs, inputs)`."""

    outputs: Value
    inputs: Value
    node: ast.Call


class Walked(NamedTuple):
    """A backward has walked from a root."""

    root: Tensor
    event: Backward


class ModuleCleared(NamedTuple):
    """`module.zero_grad()`."""

    node: ast.AST


class StrangerStepped(NamedTuple):
    """A scaler steps what isn't known to be an optimizer."""

    stepped: Value
    node: ast.AST


class CheckpointRun(NamedTuple):
    """A function has run under reentrant checkpointing on inputs none of which requires grad."""

    result: Value
    args: Args
    node: ast.Call


Occasion = (
    NameBound
    | AttributeBound
    | Compared
    | SwitchAsked
    | PassedOver
    | Dropped
    | AttributeNamed
    | Added
    | ItemAdded
    | Appended
    | ArrayAsked
    | PutSomewhere
    | Replaced
    | Built
    | GradientRead
    | GradientSet
    | GradientsAsked
    | Walked
    | ModuleCleared
    | StrangerStepped
    | CheckpointRun
)
