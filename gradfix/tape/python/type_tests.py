"""`isinstance`: whether a value is of a class, as far as both are known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradfix.tape.domain.definitions import Class, Instance
from gradfix.tape.domain.graph import Tensor
from gradfix.tape.domain.torch_values import Layer, Opaque
from gradfix.tape.domain.values import Const, External, Map, Seq, Unknown
from gradfix.tape.domain.why import fact
from gradfix.tape.interpreter.modes import LIBRARIES

if TYPE_CHECKING:
    from gradfix.tape.domain.values import Truth, Value
    from gradfix.tape.interpreter.state import Notes

PLAIN = {f"builtins.{one.__name__}": one for one in (bool, bytes, complex, float, int, object, str)}
"""Python's own classes of constants."""
TENSOR_PATHS = frozenset({"torch.Tensor", "torch.autograd.Variable"})


def type_test(notes: Notes, value: Value, kinds: Value) -> Value:
    """Whether a value is of a class that isn't known: all tensors of one sort are, or none is."""
    if not isinstance(value, (Tensor, Seq)) or not isinstance(kinds, External):
        return Unknown(fact("a type test"))
    sort = (value.leaf, value.parameter) if isinstance(value, Tensor) else (value.kind,)
    return notes.type_tests.setdefault((kinds.path, *sort), Unknown(fact("a type test")))


TENSORS = External("torch.Tensor")


def is_tensor(notes: Notes, value: Value) -> Value:
    """`torch.is_tensor(value)`."""
    known = is_instance(value, TENSORS)
    return type_test(notes, value, TENSORS) if known is None else Const(known)


def is_instance(value: Value, kinds: Value) -> Truth:
    if isinstance(kinds, Seq):
        answers = [is_instance(value, kind) for kind in kinds.items]
        return True if True in answers else (None if None in answers else False)
    if isinstance(kinds, Class) and isinstance(value, Instance):
        return _descends(value.cls, kinds)
    if isinstance(kinds, Class) and isinstance(value, (Layer, Tensor, Seq, Map, Const)):
        return False
    if not isinstance(kinds, External):
        return None
    path = kinds.path
    if path.partition(".")[0] not in LIBRARIES:
        return None
    if isinstance(value, Unknown) and value.requires is True and path in TENSOR_PATHS:
        return True
    if isinstance(value, Tensor):
        return path in TENSOR_PATHS or (None if path.startswith("torch.") else False)
    if isinstance(value, (Seq, Map, Const)):
        return _is_plain(value, path)
    if isinstance(value, Layer):
        return _is_layer(value, path)
    if isinstance(value, (Instance, Opaque)) and path == "torch.nn.Module":
        return value.module if isinstance(value, Instance) else True
    return _is_own(value.cls, path) if isinstance(value, Instance) else None


def _is_own(cls: Class, path: str) -> Truth:
    """Whether an object of a class that is written here is one of a class of torch as well."""
    bases = {*cls.externals()}
    if path in bases:
        return True
    plain = bases <= {"torch.nn.Module", "builtins.object"} and not cls.opaque_base()
    return False if plain and path.startswith("torch.nn.") else None


def _is_plain(value: Seq | Map | Const, path: str) -> Truth:
    """Whether a value of Python's own is one of this class; the standard library has more."""
    if not path.startswith(("builtins.", "torch.", "numpy.")):
        return None
    if isinstance(value, Const) and path in PLAIN:
        return isinstance(value.value, PLAIN[path])
    names = {"list": "list", "tuple": "tuple", "set": "set"}
    own = (
        names.get(value.kind, "")
        if isinstance(value, Seq)
        else ("dict" if isinstance(value, Map) else type(value.value).__name__)
    )
    return own == path.removeprefix("builtins.") if own else None


def _is_layer(value: Layer, path: str) -> Truth:
    """Whether a layer is one of this class: several layers may have one base."""
    if path == "torch.nn.Module":
        return True
    name = path.rpartition(".")[2]
    return None if name.startswith("_") or name in ("RNNBase", "RNNCellBase") else name == value.kind


def _descends(cls: Class, ancestor: Class) -> Truth:
    if cls is ancestor:
        return True
    answers = [_descends(base, ancestor) if isinstance(base, Class) else None for base in cls.bases]
    return True if True in answers else (None if None in answers and cls.opaque_base() else False)
