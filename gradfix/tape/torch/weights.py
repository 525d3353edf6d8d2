"""The parameters of layers, made when they are first needed; one for all where they aren't known."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gradfix.defects import Assumption, Gap
from gradfix.tape.domain.graph import Node, Tensor
from gradfix.tape.domain.values import NONE, TRUE, Const, asked_shape

if TYPE_CHECKING:
    from gradfix.defects import Lean
    from gradfix.tape.domain.torch_values import Layer
    from gradfix.tape.domain.values import Place
    from gradfix.tape.machine.machine import Machine

FLAG_OFF = {"bias": "bias", "affine": "weight bias", "elementwise_affine": "weight bias"}


def weights(machine: Machine, node: ast.AST | None) -> Tensor:
    """One leaf that stands for all parameters of a module that isn't known."""
    tensor = machine.graph.leaf(machine.here.at(node) if node is not None else None, True)
    tensor.parameter = True
    machine.leaves.every_leaf.append(tensor)
    return tensor


MATRICES = {"Linear": ("out_features", "in_features"), "Embedding": ("num_embeddings", "embedding_dim")}
"""The layers whose weight is a matrix of the sizes that they are told."""


def parameters_of(machine: Machine, layer: Layer) -> dict[str, Tensor]:
    """A layer's own parameters, made when they are first needed."""
    if layer.effect is None or not layer.effect.parameters:
        return {}
    found: dict[str, Tensor] = {}
    off: list[str] = []
    unsaid: list[str] = []
    for flag, names in FLAG_OFF.items():
        given = layer.args.get(flag, TRUE)
        if not isinstance(given, Const):
            unsaid.extend(names.split())
        elif given.value is False:
            off.extend(names.split())
    for name in layer.effect.parameters:
        if name in off:
            continue
        value = layer.attrs.get(name)
        if value is None:
            tensor = machine.graph.leaf(layer.place, None if name in unsaid else True)
            tensor.parameter, tensor.dtype, tensor.layout = True, "float", True
            tensor.born = layer.born  # whichever branch it is first needed in
            machine.leaves.every_leaf.append(tensor)
            if name == "weight" and layer.kind in MATRICES:
                tensor.shape = asked_shape([layer.args.get(size, NONE) for size in MATRICES[layer.kind]])
            layer.attrs[name] = value = tensor
        if isinstance(value, Tensor):
            found[name] = value
    return found


def doubt_leaf(machine: Machine, leaf: Tensor, gap: Gap) -> None:
    """Somebody may have told a leaf that it needs no grad: what is made of it from here on leans on that."""
    _lean(machine, leaf, leaf.lean | {gap})


def trust_leaf(machine: Machine, leaf: Tensor) -> None:
    """An optimizer gets a leaf: whoever may have been told of it before has left it to be trained."""
    gaps = {one for one in leaf.lean if isinstance(one, Gap) and one.assumption is Assumption.SET_OTHERWISE}
    if gaps:
        _lean(machine, leaf, leaf.lean - gaps)


def _lean(machine: Machine, leaf: Tensor, lean: Lean) -> None:
    node = Node("leaf", leaf.place, (), leaf.requires)
    node.leaf = leaf
    node.lean, node.path = lean, machine.here.path
    machine.trail.set(leaf, "lean", lean)
    machine.trail.set(leaf, "node", node)


def set_leaf(
    machine: Machine, leaf: Tensor, wanted: bool | None, place: Place = None, *, unasked: bool = False
) -> None:
    """Let a leaf require grad, or not, or perhaps."""
    if leaf.requires is wanted:
        return
    node = Node("leaf", leaf.place, (), wanted)
    node.leaf = leaf
    node.lean, node.path = leaf.lean, machine.here.path
    if wanted is False:
        machine.leaves.told[id(leaf)] = leaf
        node.facts = {"frozen": place, "unasked": unasked}
    machine.trail.set(leaf, "requires", wanted)
    machine.trail.set(leaf, "node", node)
    change_others(machine, leaf, wanted)


def change_others(machine: Machine, stand_in: Tensor, wanted: bool | None) -> None:
    """What is done to the parameters of a module that isn't known may be done to those of another one."""
    stands_for = machine.leaves.stands_for.get(id(stand_in))
    inside = stands_for(machine.leaves.gatherings) if stands_for is not None else ()
    for leaf in [leaf for one in inside for leaf in one.leaves]:
        if leaf.requires is not wanted:
            set_leaf(machine, leaf, None)
