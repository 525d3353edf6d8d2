"""Reads the graphs that torch has made: which leaves and nodes, where each was made, and what it saved."""

from __future__ import annotations

import re
from array import array
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import torch

from gradfix.trace.calls import storage
from gradfix.trace.places import Spot
from gradfix.trace.sources import behind, nodes

KEY = "gradfix"
"""Under which name a node says when and where it was made."""
AGAIN = "gradfix_again"
"""Whether it is the root of a backward that met what was freed."""
SAVED = "_raw_saved_"
MOST_FREED = 1_000_000
OF_LEAVES = 2**64 - 1
"""The number of every node that only collects the gradient of a leaf."""
Mark: TypeAlias = "tuple[Spot | None, int]"
"""A backward: its place, and which one it was."""


class Freed:
    """Which backward has freed which nodes, by the numbers that torch gives them: no node is touched."""

    def __init__(self) -> None:
        self.marks: deque[tuple[Mark, array[int]]] = deque()
        self.held = 0

    def add(self, nodes: list[Any], mark: Mark) -> None:
        """A backward went through these and kept nothing."""
        numbers = array("Q", [node._sequence_nr() for node in nodes])
        self.marks.append((mark, numbers))
        self.held += len(numbers)
        while self.held > MOST_FREED and len(self.marks) > 1:
            self.held -= len(self.marks.popleft()[1])

    def among(self, nodes: Iterable[Any]) -> dict[Any, Mark]:
        """Those of some nodes that are freed, with the backward that did it first."""
        wanted = {node._sequence_nr(): node for node in nodes}
        wanted.pop(OF_LEAVES, None)
        found: dict[Any, Mark] = {}
        for mark, numbers in self.marks:
            for number in wanted.keys() & numbers:
                found.setdefault(wanted[number], mark)
        return found


FREED = Freed()
"""For the process: a graph may outlive the recording in which it was freed."""


def walked(roots: list[Any]) -> tuple[list[Any], list[Any]]:
    """The leaves behind the roots, the roots themselves among them where they are leaves, and the nodes."""
    leaves, inner = behind(root.grad_fn for root in roots)
    leaves.extend(root for root in roots if root.is_leaf and root.requires_grad)
    return leaves, inner


def only(leaves: list[Any], inputs: Any) -> list[Any]:
    """`backward(inputs=...)` gives to no other leaf."""
    if inputs is None:
        return leaves
    wanted = {id(inputs)} if isinstance(inputs, torch.Tensor) else {id(value) for value in inputs}
    return [leaf for leaf in leaves if id(leaf) in wanted]


def placed(roots: list[Any]) -> list[tuple[Any, Spot | None, int]]:
    """Every node with its line and its time; inner nodes have those of the call they belong to."""
    found: list[tuple[Any, Spot | None, int]] = []
    at: dict[Any, tuple[int, Spot | None]] = {}
    for node, via in nodes(root.grad_fn for root in roots):
        if getattr(node, "variable", None) is not None:
            continue
        made = node.metadata.get(KEY) or at.get(via) or (0, None)
        at[node] = made
        found.append((node, made[1], made[0]))
    return found


def saved_names(node: Any) -> list[str]:
    """The values that a node saved, by name."""
    return [name[len(SAVED) :] for name in dir(type(node)) if name.startswith(SAVED)]


def lost(node: Any, name: str) -> list[tuple[int, str]]:
    """The storages under a saved name that were overwritten, with what torch says when they are asked for."""
    # What a custom Function saved is handed out by its public name alone.
    asked = f"_saved_{name}" if hasattr(type(node), f"_saved_{name}") else f"saved_{name}"
    words = refusal(lambda: getattr(node, asked))
    if not words:
        return []
    raw = raws(node, name)
    each = [(one, refusal(one.unpack)) for one in raw if hasattr(one, "unpack")] if len(raw) > 1 else []
    found = [(storage_of(one), said) for one, said in each if said]
    return found or [(storage_of(one), words) for one in raw]


def refusal(ask: Callable[[], Any]) -> str:
    """What torch says if a saved value was overwritten."""
    try:
        ask()
    except RuntimeError as error:
        return str(error) if "modified by an inplace operation" in str(error) else ""
    return ""


def raws(node: Any, name: str) -> list[Any]:
    """What a node keeps under a saved name: one value, or several."""
    try:
        raw = getattr(node, SAVED + name)
    except RuntimeError:
        return []
    return list(raw) if isinstance(raw, (tuple, list)) else [raw]


def held(node: Any, name: str) -> list[Any]:
    """The tensors under a saved name, whether or not torch still hands them out."""
    return [value for value in map(tensor_of, raws(node, name)) if value is not None]


def tensor_of(raw: Any) -> Any:
    """One saved value; None when it is gone, or no tensor."""
    value = getattr(raw, "data", None)
    found = value if isinstance(value, torch.Tensor) else unpacked(raw)
    return found if isinstance(found, torch.Tensor) else None


def storage_of(raw: Any) -> int:
    """The storage of one saved value; 0 when it is gone."""
    value = tensor_of(raw)
    return storage(value) if value is not None else 0


def unpacked(raw: Any) -> Any:
    """A saved value by way of a pack hook, for versions of torch that show it no other way."""
    seen: list[Any] = []

    def pack(value: Any) -> Any:
        seen.append(value)
        return value

    try:
        raw.register_hooks(pack, lambda value: value)
    except (RuntimeError, AttributeError):
        return None
    return seen[0] if seen else None


def op_of(node: Any) -> str:
    """The operation's name as users write it: ReluBackward0 -> relu; a custom Function's is its class."""
    own = getattr(type(node), "_forward_cls", None)
    if isinstance(own, type):
        return own.__name__
    name = re.sub(r"Backward\d*$", "", str(node.name()))
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
