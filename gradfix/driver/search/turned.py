"""Where a try ran through and never came to its lines: the same with what is tested there turned round."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from torch import nn

from gradfix.driver.search.conditions import Conditions
from gradfix.driver.search.drafts import Draft, parts
from gradfix.driver.search.sources import parameters
from gradfix.driver.values import Argument, Config, Entries, Made, Number, Value

if TYPE_CHECKING:
    from gradfix.driver.search.walk import Walk


def turned(walk: Walk, draft: Draft, subject: Any, asked: Conditions) -> Iterator[Draft]:
    """The likeliest first: what is given already, flags, what has a default."""
    if "training" in asked.names:
        yield replace(draft, training=not draft.training, edits=draft.edits + 1)
    yield from _given(draft, asked)
    for part, function, this in _functions(walk, subject):
        held = {one.name for one in getattr(draft, part) or ()}
        for name, one in parameters(function).items():
            if (
                name in asked.names - held
                and one.default is not one.empty
                and one.kind is not one.VAR_KEYWORD
            ):
                values = list(_values(walk, function, name, this, asked, part == "build"))
                for at, value in enumerate(values):
                    yield _with(draft, part, Argument(name, value), tuple(values[at + 1 :]))


def _functions(walk: Walk, subject: Any) -> Iterator[tuple[str, Any, Any]]:
    if walk.target.form == "function":
        yield "call", walk.thing, None
        return
    name = walk.target.method or ("forward" if isinstance(subject, nn.Module) else "__call__")
    if subject is not None:
        yield "call", getattr(subject, name), subject
    yield "build", walk.thing, None


def _with(draft: Draft, part: str, argument: Argument, rest: tuple[Value, ...]) -> Draft:
    """The same with one argument more."""
    given = getattr(draft, part) or ()
    others = {**draft.others, (part, len(given)): rest}
    return replace(draft.given(part, (*given, argument)), edits=draft.edits + 1, others=others)


def _values(
    walk: Walk, function: Any, name: str, this: Any, asked: Conditions, building: bool
) -> Iterator[Value]:
    """What turns a default round."""
    default = parameters(function)[name].default
    compared = [one for one in asked.constants.get(name, ()) if one is not None and one != default]
    if isinstance(default, bool):
        yield Number(not default)
        return
    yield from (Number(one, free=False) for one in compared if isinstance(one, (str, int, float)))
    if default is None:
        facts, annotation = walk.facts(function, name, this)
        found = walk.proposer.of(facts, annotation, building)
        yield from [one for one in found if one != Number(None)][:4]
    elif not isinstance(default, (str, type(None))):
        yield from (Number(one) for one in (1, 0, 2) if one != default)
        yield Number(None)


def _given(draft: Draft, asked: Conditions) -> Iterator[Draft]:
    """What is given already and is tested."""
    for path, argument in draft.arguments():
        yield from _turned(draft, path, argument.name, argument.value, asked)


def _turned(draft: Draft, path: Any, name: str, value: Value, asked: Conditions) -> Iterator[Draft]:
    if isinstance(value, Number) and value.free and name in asked.names:
        if isinstance(value.value, bool):
            yield draft.changed({path: Number(not value.value)})
        for one in asked.constants.get(name, ()):
            if one != value.value and isinstance(one, (str, int, float, type(None))):
                yield draft.changed({path: Number(one)})
    names = _names(value)
    for index, one in enumerate(parts(value)):
        yield from _turned(draft, (*path, index), names[index] if names else name, one, asked)
    if name in asked.names:
        other = draft.other(path)
        if other is not None:
            yield other


def _names(value: Value) -> list[str]:
    """By what the parts of a value are read."""
    if isinstance(value, Config):
        return [name for name, _ in value.attributes]
    if isinstance(value, Entries):
        return [key.strip("'\"") for key, _ in value.entries]
    return [one.name for one in value.arguments] if isinstance(value, Made) else []
