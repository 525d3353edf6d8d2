"""The arrays that numpy makes of nothing: their sizes and dtypes, where the call says them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from gradfix.tape.domain.values import NONE, Const, asked_shape
from gradfix.tape.effects import shapes
from gradfix.tape.effects.pieces import literal

if TYPE_CHECKING:
    from gradfix.tape.domain.values import Args, Kwargs, Shape

Made: TypeAlias = "tuple[Shape, str]"
SIZES = {"zeros": 0, "ones": 0, "empty": 0, "full": 0, "random.random": 0, "random.standard_normal": 0,
         "random.normal": 2, "random.uniform": 2, "random.randint": 2}  # fmt: skip
"""Where the sizes stand among the arguments; by name it is `size` or `shape`."""
SPREAD = frozenset({"random.rand", "random.randn"})
"""What is given each of its sizes for itself."""
WHOLE = frozenset({"random.randint", "random.permutation"})
"""What gives whole numbers."""


def made(name: str, args: Args, kwargs: Kwargs) -> Made:
    """What `numpy.name(...)` gives, as far as that is known."""
    return _sizes(name, args, kwargs), "int" if name in WHOLE and "dtype" not in kwargs else ""


def _sizes(name: str, args: Args, kwargs: Kwargs) -> Shape:
    first = args[0] if args else NONE
    if name in ("array", "asarray"):
        return literal(first) if not {"ndmin", "order"} & kwargs.keys() else None
    if name in SPREAD:
        return asked_shape(args) if args else None
    if name in ("arange", "random.permutation"):
        bounds = [one.value for one in args if isinstance(one, Const)]
        counted = shapes.counted(bounds) if bounds and len(bounds) == len(args) else None
        return None if counted is None or kwargs else (counted,)
    if name == "linspace" and not {"axis", "retstep"} & kwargs.keys():
        number = kwargs.get("num", args[2] if len(args) > 2 else Const(50))
        ends = args[:2]
        plain = len(ends) == 2 and all(isinstance(one, Const) for one in ends)
        return asked_shape([number]) if plain else None
    if name not in SIZES:
        return None
    sizes = kwargs.get("size", kwargs.get("shape", args[SIZES[name]] if len(args) > SIZES[name] else NONE))
    asked = asked_shape([sizes]) if sizes is not NONE else None
    return None if asked == (None,) else asked
