"""Which overload of an operation a call means, and its arguments by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from gradfix.tape.domain.graph import Number, Tensor
from gradfix.tape.domain.values import Const, Seq, Unknown, Value

if TYPE_CHECKING:
    from gradfix.tape.domain.effect import Effect

Bound = dict[str, Value]
NUMBER_TYPES = (bool, int, float, complex)


def bind(
    effect: Effect, args: Sequence[Value], kwargs: Mapping[str, Value], *, pairs: bool = False
) -> Bound | None:
    """Arguments by name; None where the overload doesn't take them. `pairs`: a number may be one for each
    dimension."""
    names = effect.args
    places = len(names) - effect.keyword
    if len(args) > places:
        # sizes and dims may be spread: x.permute(0, 1), x.view(2, 3)
        spread = args[places - 1 :]
        sizes = places > 0 and effect.kinds[places - 1] == "other"
        if not sizes or any(isinstance(arg, Tensor) for arg in spread):
            return None
        args = [*args[: places - 1], Seq("tuple", list(spread))]
    bound = dict(zip(names, args, strict=False))
    for name, value in kwargs.items():
        if name in ("axis",) and "dim" in names:
            name = "dim"
        if name == "keepdims":
            name = "keepdim"
        if name not in names and name not in ("out", "dtype", "device", "layout", "memory_format"):
            return None
        if name in bound:
            return None
        bound[name] = value
    for name, kind in zip(names, effect.kinds, strict=False):
        if name not in bound or _fits(kind, bound[name]):
            continue
        if not (pairs and kind == "number" and isinstance(bound[name], Seq)):
            return None
    return bound


def _fits(kind: str, value: Value) -> bool:
    given = type(value)
    if given is Unknown:
        return True
    if kind == "tensor":
        return given is Tensor or given is Number or (given is Const and not isinstance(value.value, str))  # type: ignore[attr-defined]
    if kind == "tensors":
        return given is Seq or given is Tensor
    if kind == "number":
        return plain_number(value) or (isinstance(value, Const) and value.value is None)
    return given is not Tensor


def choose(
    effects: Sequence[Effect], args: Sequence[Value], kwargs: Mapping[str, Value]
) -> tuple[Effect, Bound] | None:
    """The overload that a call means; where unknown arguments leave several, what all of them agree on."""
    fitting = [(effect, bound) for effect in effects if (bound := bind(effect, args, kwargs)) is not None]
    if not fitting:
        tried = [(effect, bind(effect, args, kwargs, pairs=True)) for effect in effects]
        fitting = [(effect, bound) for effect, bound in tried if bound is not None]
    fitting = [(effect, bound) for effect, bound in fitting if not effect.when or _holds(effect, bound)]
    asked = [pair for pair in fitting if all(name in pair[1] for name in (*pair[0].writes, *_out(pair[0])))]
    fitting = asked or fitting  # some functions have but one row, whose `out` may be left away
    whole = [
        (effect, bound) for effect, bound in fitting if all(n in bound for n in effect.args[: effect.needs])
    ]
    fitting = whole or fitting
    if len(fitting) <= 1:
        return fitting[0] if fitting else None
    if all(effect.when and not any(flag in bound for flag, _ in effect.when) for effect, bound in fitting):
        return fitting[0]  # the flag isn't given, and the row of its default comes first
    if not any(isinstance(value, Unknown) for _, bound in fitting for value in bound.values()):
        fitting.sort(key=lambda pair: _distance(*pair))
        if not fitting[0][0].when:
            return fitting[0]
        fitting = [pair for pair in fitting if pair[0].when]
    if len({(effect.results, effect.constant) for effect, _ in fitting}) > 1:
        return None  # one tensor or several, in a graph or not: nothing can be said of either
    return _agreed([effect for effect, _ in fitting]), fitting[0][1]


def _out(effect: Effect) -> tuple[str, ...]:
    return ("out",) if "out" in effect.args else ()


def _holds(effect: Effect, bound: Bound) -> bool:
    for flag, wanted in effect.when:
        value = bound.get(flag)
        if isinstance(value, Const) and bool(value.value) is not wanted:
            return False
    return True


def _distance(effect: Effect, bound: Bound) -> int:
    wrapped = sum(
        1
        for name, kind in zip(effect.args, effect.kinds, strict=False)
        if kind == "tensor" and name in bound and plain_number(bound[name])
    )
    return wrapped * 100 + len(effect.args)


def _agreed(effects: Sequence[Effect]) -> Effect:
    """What several rows of the table have in common, worked out once."""
    key = tuple(map(id, effects))
    if key not in AGREED:
        AGREED[key] = effects, _in_common(effects)
    return AGREED[key][1]


AGREED: dict[tuple[int, ...], tuple[Sequence[Effect], Effect]] = {}


def _in_common(effects: Sequence[Effect]) -> Effect:
    first = effects[0]
    saves = tuple(
        (what, common)
        for what, needed in first.saves
        if (common := _wanted(effects, what, needed)) or all((what, needed) in one.saves for one in effects)
    )
    views = {effect.view for effect in effects}
    selves = {effect.returns_self for effect in effects}
    return replace(
        first,
        saves=saves,
        view=first.view if len(views) == 1 else "maybe",
        returns_self=first.returns_self if len(selves) == 1 else "maybe",
        writes=tuple(name for name in first.writes if all(name in effect.writes for effect in effects)),
        vanishes=all(effect.vanishes for effect in effects),
        once=all(effect.once for effect in effects),
        shape=first.shape if len({effect.shape for effect in effects}) == 1 else "",
    )


def _wanted(effects: Sequence[Effect], what: str, needed: tuple[str, ...]) -> tuple[str, ...]:
    """The inputs of which any row saves this if one of them requires grad."""
    rows = [dict(effect.saves).get(what, ()) for effect in effects]
    return tuple(name for name in needed if all(name in row for row in rows))


def plain_number(value: Value) -> bool:
    """Whether a value is a Python number, known or converted."""
    return isinstance(value, Number) or (isinstance(value, Const) and isinstance(value.value, NUMBER_TYPES))
