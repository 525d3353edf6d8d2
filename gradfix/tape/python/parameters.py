"""Arguments by the names of the parameters that they are given for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradfix.defects.reasons import What
from gradfix.tape.domain.narrowing import there
from gradfix.tape.domain.values import Map, Seq, Unknown
from gradfix.tape.domain.why import Why

if TYPE_CHECKING:
    from gradfix.tape.domain.definitions import Function
    from gradfix.tape.domain.values import Args, Kwargs, Value


def _unsettles(arg: Value, named: bool) -> bool:
    """Whether it isn't known which parameters get this argument and those after it."""
    return (type(arg) is Seq and arg.kind == "star") or (named and not there(arg))


def bind_parameters(
    function: Function, args: Args, kwargs: Kwargs, *, filled: bool = False
) -> dict[str, Value]:
    """Arguments by parameter name; what isn't given has its default, unless somebody else fills that."""
    a = function.code.node.args
    names, every = function.code.names, function.code.every
    bound: dict[str, Value] = {} if filled else dict(function.defaults)
    star = next((i for i, arg in enumerate(args) if _unsettles(arg, i < len(names))), None)
    given = args
    if star is not None:
        given = args[:star]
        for name in names[len(given) :]:
            bound[name] = Unknown(Why(What.ARGUMENT, name))
    bound.update(zip(names, given, strict=False))
    if a.vararg is not None:
        bound[a.vararg.arg] = Seq("tuple", list(given[len(names) :]), open=star is not None)
    extra: dict[Any, Value] = {}
    for name, value in kwargs.items():
        if name in every:
            bound[name] = value
        elif name != "**":
            extra[name] = value
    if a.kwarg is not None:
        bound[a.kwarg.arg] = Map(extra, open="**" in kwargs)
    for name in every:
        if name not in bound or ("**" in kwargs and name not in kwargs and name in function.defaults):
            bound[name] = Unknown(Why(What.ARGUMENT, name))
    return bound
