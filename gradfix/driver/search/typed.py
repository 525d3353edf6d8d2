"""What an annotation allows, whether it lives or is only text."""

from __future__ import annotations

import collections.abc
import enum
import inspect
import types
import typing
from typing import Any

import torch
from torch import nn

Known: typing.TypeAlias = "tuple[str, Any]"
"""A word for what is allowed, and what goes with it."""
NOTHING: Known = ("", None)
PLAIN = {int: "int", float: "float", bool: "flag", str: "string"}
SEQUENCES = (list, tuple, set, collections.abc.Sequence, collections.abc.Iterable, collections.abc.Iterator)
MAPPINGS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)


def resolved(annotation: Any, function: Any) -> Any:
    """What lives behind an annotation; the parameter's emptiness, where that can't be found."""
    if not isinstance(annotation, str):
        return annotation
    names = getattr(inspect.unwrap(getattr(function, "__func__", function)), "__globals__", {})
    try:
        return eval(annotation, dict(names))
    except Exception:
        return inspect.Parameter.empty


def known(annotation: Any) -> Known:
    """The word for it."""
    if annotation in (inspect.Parameter.empty, None, type(None), Any, object):
        return NOTHING
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return next((found for one in inner if (found := known(one)) != NOTHING), NOTHING)
    if origin is typing.Literal:
        return ("literal", inner)
    if origin is typing.Annotated:
        return known(inner[0])
    if origin is type or annotation is type:
        return ("class", None)
    if annotation in PLAIN:
        return (PLAIN[annotation], None)
    if (origin or annotation) in SEQUENCES:
        return ("tuple" if (origin or annotation) is tuple else "list", inner)
    if (origin or annotation) in MAPPINGS:
        return ("mapping", None)
    if (origin or annotation) in (collections.abc.Callable, typing.Callable):
        return ("callable", inner)
    return _of_class(annotation) if isinstance(annotation, type) else NOTHING


def _of_class(annotation: type) -> Known:
    if issubclass(annotation, torch.Tensor):
        return ("tensor", annotation)
    if issubclass(annotation, torch.optim.Optimizer):
        return ("optimizer", annotation)
    if issubclass(annotation, nn.Module):
        return ("module", annotation)
    if issubclass(annotation, enum.Enum):
        return ("enum", annotation)
    if annotation in (torch.device, torch.dtype):
        return (annotation.__name__, None)
    return ("object", annotation)
