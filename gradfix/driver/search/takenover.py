"""A call that the project has, taken over: what can be said of it, and our own proposals for the rest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gradfix.driver.recipe import Given
from gradfix.driver.search.proposals import Proposer
from gradfix.driver.search.sources import parameters
from gradfix.driver.search.stepping import optimizer
from gradfix.driver.values import Argument, Made, Value


def taken(
    proposer: Proposer, function: Any, given: Given, own: tuple[Argument, ...]
) -> tuple[Argument, ...] | None:
    """The arguments of a call that the project has, and our own; None: it is another function's."""
    known = parameters(function)
    names = [name for name, one in known.items() if one.kind is not one.VAR_KEYWORD]
    if len(given.args) > len(names) or any(known[name].kind is known[name].VAR_POSITIONAL for name in names):
        return None
    said = {**dict(zip(names, given.args, strict=False)), **dict(given.kwargs)}
    if not said.keys() <= known.keys():
        return None
    for at, stepped in given.steps:
        said[name_of(at, names)] = optimizer([name_of(one, names) for one in stepped])
    whole = {name: closed(proposer, value) for name, value in said.items()}
    filled = [replace(one, value=whole.pop(one.name, None) or one.value) for one in own]
    return (*filled, *(Argument(name, value) for name, value in whole.items() if value is not None))


def name_of(at: int | str, names: list[str]) -> str:
    """The parameter that is given by position or by name."""
    return names[at] if isinstance(at, int) else at


def closed(proposer: Proposer, value: Value | None) -> Value | None:
    """The same, with what its constructor takes besides."""
    if not isinstance(value, Made) or not value.open:
        return value
    names: dict[str, Any] = dict(proposer.near)
    try:
        for line in value.needs:
            exec(line, names)
        made = proposer.made(eval(value.callee, names))
    except Exception:  # whatever an import of the project's may raise
        return None
    if made is None:
        return None
    said = {one.name: one for one in value.arguments}
    own = [said.pop(one.name, one) for one in made.arguments]
    return Made(value.callee, (*own, *said.values()), value.needs)
