"""What the recorder must know about torch's functions: which cut, which only add, which merely ask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from gradfix.tape.effects.operations import having, in_all_forms, told

_t: Any = torch
_T: Any = torch.Tensor


def _methods(*names: str) -> set[Any]:
    return {getattr(_T, name) for name in names if hasattr(_T, name)}


QUESTIONS: set[Any] = _methods(
    "size", "dim", "numel", "nelement", "stride", "is_contiguous", "is_floating_point", "is_complex",
    "type", "storage_offset", "data_ptr", "element_size", "ndimension", "get_device", "__len__",
    "__repr__", "__format__", "__bool__", "__hash__", "register_hook", "untyped_storage", "is_pinned",
    "retain_grad", "is_shared", "has_names", "is_inference", "dense_dim", "sparse_dim", "_is_view",
) | {
    getattr(_T, name).__get__ for name in (
        "shape", "dtype", "device", "layout", "ndim", "is_cuda", "is_cpu", "is_sparse", "is_quantized",
        "is_meta", "is_nested", "_version", "output_nr", "names", "itemsize", "nbytes", "retains_grad",
    ) if hasattr(getattr(_T, name, None), "__get__")
}  # fmt: skip
"""Calls that neither write nor make a value."""

NUMBERS: dict[Any, str] = {
    _T.item: "item",
    _T.tolist: "tolist",
    _T.numpy: "numpy",
    _T.__array__: "numpy",
    **{getattr(_T, name): "float" for name in ("__float__", "__int__", "__index__", "__complex__")},
}
"""Conversions that leave torch, by the form that the rule knows."""

GETTERS = {
    name: getattr(_T, name).__get__ for name in ("grad", "data", "requires_grad", "is_leaf", "grad_fn")
}
SETTERS = {name: getattr(_T, name).__set__ for name in ("grad", "data", "requires_grad")}
FROM_DATA = having("from-data")
ADDITIVE = in_all_forms(having("additive") | having("copies") | having("detaches")) | FROM_DATA
ADDITIVE |= {"__getitem__", "requires_grad_"}
"""Calls whose result is a sum of their arguments (or a part of it)."""
SCALING = in_all_forms(having("scales"))
"""Additive as long as the other factor is a plain number."""
NO_GRADIENT = in_all_forms(frozenset(told("gives")))
"""Calls that torch cannot differentiate."""
FLAT = having("flat")
"""Calls whose gradient is zero everywhere."""


def name_of(func: Any) -> str:
    """The name that a user would know a torch function by."""
    return str(getattr(func, "__name__", "") or func)


def in_place(name: str) -> bool:
    """Whether a call of this name writes to its first argument."""
    return name == "__setitem__" or name.startswith("__i") or (name.endswith("_") and name[-2:] != "__")


KINDS: dict[type, int] = {}
"""Type -> 1: a tensor, 2: may hold some, 0: neither. isinstance is slow for what is no tensor."""


def _kind(value: Any) -> int:
    found = KINDS[type(value)] = 1 if isinstance(value, _T) else 2 * isinstance(value, (list, tuple))
    return found


def _of(value: Any, found: list[Any]) -> None:
    """Those in a list, and in the lists in it."""
    for item in value[:64]:
        kind = KINDS.get(type(item))
        if kind is None:
            kind = _kind(item)
        if kind == 1:
            found.append(item)
        elif kind:
            _of(item, found)


def tensors(args: Any, kwargs: dict[str, Any] | None) -> list[Any]:
    """The tensors among the arguments of a call, in lists too."""
    found: list[Any] = []
    kinds = KINDS
    for value in (*args, *kwargs.values()) if kwargs else args:
        kind = kinds.get(type(value))
        if kind is None:
            kind = _kind(value)
        if kind == 1:
            found.append(value)
        elif kind:
            _of(value, found)
    return found


def versioned(args: Any, kwargs: dict[str, Any] | None) -> tuple[list[Any], list[int]]:
    """The same with the version of each, in one loop: every call asks."""
    found: list[Any] = []
    before: list[int] = []
    kinds = KINDS
    try:
        for value in (*args, *kwargs.values()) if kwargs else args:
            kind = kinds.get(type(value))
            if kind is None:
                kind = _kind(value)
            if kind == 1:
                found.append(value)
                before.append(value._version)
            elif kind:
                _of(value, found)
                before += versions(found[len(before) :])
        return found, before
    except RuntimeError:
        found = tensors(args, kwargs)
        return found, versions(found)


SUMS: dict[Any, str] = {}
"""Function -> whether it adds up; asked once each."""


def additive(func: Any, args: Any) -> bool:
    """Whether a result is the sum of the arguments, up to a number."""
    sums = SUMS.get(func)
    if sums is None:
        name = name_of(func)
        sums = SUMS[func] = "always" if name in ADDITIVE else "scaled" if name in SCALING else "never"
    return sums == "always" or (sums == "scaled" and any(not isinstance(a, torch.Tensor) for a in args))


def version(value: Any) -> int:
    """A tensor's version; inference tensors keep none."""
    try:
        return int(value._version)
    except RuntimeError:
        return -1


def versions(values: list[Any]) -> list[int]:
    """The versions of many tensors."""
    try:
        return [value._version for value in values]
    except RuntimeError:
        return [version(value) for value in values]


def storage(value: Any) -> int:
    """What tells storages apart while they live; 0 for tensors without one."""
    try:
        return int(value.untyped_storage()._cdata)
    except (RuntimeError, NotImplementedError, AttributeError):
        return 0


def floats(value: Any) -> bool:
    """Whether a tensor could require a gradient."""
    return bool(value.dtype.is_floating_point or value.dtype.is_complex)


set_grad_enabled: Callable[..., Any] = _t._C._set_grad_enabled
