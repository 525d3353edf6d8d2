"""What it says of an argument that somebody is given it."""

from __future__ import annotations

import inspect
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import torch
from torch import nn

from gradfix.driver.search import layers
from gradfix.driver.search.facts import Facts
from gradfix.driver.search.roles import INDICES, LABELLED, MASKS, OF_TORCH, SHARES
from gradfix.driver.search.sources import parameters

if TYPE_CHECKING:
    from gradfix.driver.search.uses import Reader

FACTORIES = frozenset(("zeros", "ones", "empty", "randn", "rand", "full", "arange", "eye", "linspace"))
SEQUENCES = (len, enumerate, zip, list, tuple, iter, sum, sorted, reversed, map)
NUMBERS = (int, float, round, abs, max, min, pow)
GATHERERS = frozenset(("cat", "stack", "concat", "concatenate", "hstack", "vstack", "dstack"))
PATHS = frozenset(("os", "posixpath", "ntpath", "pathlib", "shutil", "io", "_io"))
NUMBERED = frozenset(("normal_", "uniform_", "clamp", "clamp_", "fill_", "clamp_min", "clamp_max"))
"""Methods of tensors that take numbers."""
FILES = {"load": 0, "save": 1}
"""Of torch, what takes a path, and where."""
SECOND = frozenset(("target", "labels"))
is_torch = layers.is_torch


def lazy(owner: Any) -> bool:
    """Whether its attributes are better not asked for: some are made when they are."""
    return not isinstance(owner, nn.Module) and not inspect.ismodule(owner) and not isinstance(owner, type)


def gathers(callee: Any) -> bool:
    """Whether it puts tensors of a list together."""
    return is_torch(callee) and getattr(callee, "__name__", "") in GATHERERS


def gives_items(callee: Any) -> bool:
    """Whether a loop over what it makes is one over the items of what it is given: as bars of progress do."""
    if callee in (enumerate, zip, list, iter, reversed, tuple):
        return True
    path = getattr(sys.modules.get(getattr(callee, "__module__", None) or ""), "__file__", None) or ""
    return isinstance(callee, Mock) or ("site-packages" in path and not is_torch(callee))


def through(callee: Any) -> bool:
    """Whether what comes out of a call has the shape of what goes in."""
    if isinstance(callee, layers.THROUGH):
        return True
    name = getattr(callee, "__name__", "")
    return is_torch(callee) and name in (
        "relu",
        "gelu",
        "silu",
        "tanh",
        "sigmoid",
        "dropout",
        "softmax",
        "float",
    )


def method(name: str, position: int, facts: Facts, more: bool = False) -> None:
    """It is given to a method of what isn't known: of a tensor, if tensors have one of that name."""
    if more and position == 0 and name in ("view", "reshape", "expand"):
        facts.roles.append("count")  # of examples in a batch
        return
    if name in NUMBERED:
        facts.number += 1
        facts.roles.append("share")
        return
    if name in ("masked_fill", "masked_fill_", "masked_select") and position == 0:
        facts.mask += 1
    elif name in ("gather", "scatter", "scatter_", "index_select", "index_add") and position == 1:
        facts.index += 1
    elif name in ("to", "cuda") and position == 0:
        facts.device += 1
    elif name in ("view", "reshape", "repeat", "expand"):
        facts.roles.append("width")
    elif name in ("matmul", "bmm", "mm", "view_as", "expand_as", "add_", "mul_", "copy_"):
        facts.tensor += 1


@dataclass(frozen=True, slots=True)
class Handed:
    """Who gets it: at a position or by a name, how deep in calls, and whose method that is."""

    callee: Any
    position: int
    name: str
    deep: int
    cls: Any = None


def told(reader: Reader, handed: Handed) -> None:
    """What it says that this callee gets it."""
    facts, callee = reader.facts, handed.callee
    if isinstance(callee, nn.Module):
        _module(reader, handed)
    elif callee is range:
        facts.roles.append("count")
    elif callee in SEQUENCES:
        facts.sequence += 1
    elif getattr(callee, "__module__", "") in PATHS:
        facts.roles.append("path")
    elif callee in NUMBERS:
        facts.number += 1
    elif is_torch(callee):
        _of_torch(callee, handed.position, handed.name, facts)
    elif isinstance(callee, type):
        _into(reader, replace(handed, callee=callee.__init__, cls=callee), None)  # type: ignore[misc]
    elif inspect.isroutine(callee):
        _into(reader, handed, getattr(callee, "__self__", None))


def _module(reader: Reader, handed: Handed) -> None:
    module = layers.first(handed.callee)
    if is_torch(type(module)):
        _loss_or_layer(module, handed.position, handed.name, reader.facts)
        return
    reader.facts.tensor += 1 if handed.position == 0 else 0
    _into(reader, replace(handed, callee=module.forward, cls=type(module)), module)


def _loss_or_layer(module: Any, position: int, name: str, facts: Facts) -> None:
    kind = type(module).__name__
    second = position == 1 or name in SECOND
    if kind in LABELLED and second:
        facts.label += 1
    elif kind in SHARES:
        facts.share += 1
    else:
        layers.taken(module, position, facts)


def _into(reader: Reader, handed: Handed, this: Any) -> None:
    """Into a function of the project."""
    function, name = handed.callee, handed.name
    names = list(parameters(function))
    if not inspect.ismethod(function) and names[:1] == ["self"]:
        names = names[1:]
    if not name and 0 <= handed.position < len(names):
        name = names[handed.position]
    if name in names:
        cls = handed.cls if this is None or not isinstance(this, handed.cls or ()) else type(this)
        reader.parameter(function, name, this, cls, handed.deep + 1)


def _of_torch(callee: Any, position: int, name: str, facts: Facts) -> None:
    """Into torch."""
    called = getattr(callee, "__name__", "")
    if called == "tensor" or called == "as_tensor":
        return
    if called in FILES and position == FILES[called]:
        facts.roles.append("path")
        return
    if called in FACTORIES:
        facts.roles.append("width")
        return
    built = isinstance(callee, type)
    if not name:
        names = [one for one in parameters(callee) if one not in ("self", "args", "kwargs")]
        name = names[position] if 0 <= position < len(names) else ""
    if built and issubclass(callee, nn.Sequential | nn.ModuleList):
        facts.module += 1
    elif built:
        if name in OF_TORCH:
            facts.roles.append(OF_TORCH[name])
    elif name in parameters(callee) and parameters(callee)[name].annotation in (int, float, "int", "float"):
        facts.number += 1
        if name in OF_TORCH:
            facts.roles.append(OF_TORCH[name])
    else:
        _function(called, position, name, facts)


def _function(called: str, position: int, name: str, facts: Facts) -> None:
    if called in GATHERERS and position == 0:
        facts.sequence += 1
    elif called == "embedding" and position == 0:
        facts.index += 1
    elif called == "one_hot":
        facts.index += position == 0
    elif name in INDICES or (called in ("gather", "scatter", "index_select") and position == 2):
        facts.index += 1
    elif name in MASKS or (called in ("where", "masked_fill") and position == (called != "where")):
        facts.mask += 1
    elif called in LABELLED and (position == 1 or name in SECOND):
        facts.label += 1
    elif called in SHARES:
        facts.share += 1
    elif name in OF_TORCH and position != 0:
        facts.roles.append(OF_TORCH[name])
    elif called.startswith(("manual_", "set_", "get_", "is_")):
        facts.number += 1
    elif position == 0 or name in ("input", "other", "tensor", "weight", "target", "query", "key", "value"):
        facts.tensor += 1
    elif hasattr(torch, called) and position == 1:
        facts.number += 1
