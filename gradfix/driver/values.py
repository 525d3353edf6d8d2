"""What arguments are given: values as data, that are printed as the source that a person would type."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Literal, TypeAlias

Kind: TypeAlias = Literal["float", "share", "ones", "index", "mask"]
"""What a tensor holds: numbers, numbers from 0 to 1, ones, whole numbers below `high`, truth values."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor of random numbers."""

    shape: tuple[int, ...]
    kind: Kind = "float"
    high: int = 2
    """Of an index: the first number that it never is."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number, a truth value, a string or None."""

    value: int | float | bool | str | None
    free: bool = True
    """Whether it was only tried, so that another one may be; False: the project says it."""


@dataclass(frozen=True, slots=True)
class Source:
    """An expression as the project has it, or a name of torch's."""

    text: str
    needs: tuple[str, ...] = ()
    """The import lines that its names take."""
    refers: str = ""
    """Other arguments, or the object that is called, whose names are in it."""


@dataclass(frozen=True, slots=True)
class Items:
    """A list or a tuple."""

    items: tuple[Value, ...]
    form: Literal["list", "tuple"] = "list"


@dataclass(frozen=True, slots=True)
class Entries:
    """A dict; its keys as source."""

    entries: tuple[tuple[str, Value], ...]


@dataclass(frozen=True, slots=True)
class Config:
    """An object of which only attributes are read."""

    attributes: tuple[tuple[str, Value], ...]


@dataclass(frozen=True, slots=True)
class Returns:
    """A function that takes whatever it is given, and returns this."""

    value: Value


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a call."""

    name: str
    """The parameter that it is for; `*` and `**` are no parameters."""
    value: Value
    keyword: bool = True
    """Whether it is passed by that name."""


@dataclass(frozen=True, slots=True)
class Made:
    """What a call makes: of a class or function of the project, or of torch."""

    callee: str
    arguments: tuple[Argument, ...] = ()
    needs: tuple[str, ...] = ()
    open: bool = False
    """Whether the project gives it more than can be said."""


Value: TypeAlias = "Tensor | Number | Source | Items | Entries | Config | Made | Returns"
SHAPES = (Tensor, Number, Source, Items, Entries, Config, Made, Returns, Argument)
NAMES = {each.__name__: each for each in SHAPES}
TORCH = "import torch"
NAMESPACE = "from types import SimpleNamespace"


def printed(value: Value) -> str:
    """The expression that makes it."""
    if isinstance(value, Tensor):
        return of_tensor(value)
    if isinstance(value, Number):
        return json.dumps(value.value) if isinstance(value.value, str) else repr(value.value)
    if isinstance(value, Source):
        return value.text
    if isinstance(value, Items):
        if value.form == "list" and len(value.items) > 1 and len({*value.items}) == 1 and random(value):
            return f"[{printed(value.items[0])} for _ in range({len(value.items)})]"
        inner = ", ".join(map(printed, value.items))
        return f"[{inner}]" if value.form == "list" else f"({inner}{',' * (len(value.items) == 1)})"
    if isinstance(value, Entries):
        return f"{{{', '.join(f'{key}: {printed(one)}' for key, one in value.entries)}}}"
    if isinstance(value, Returns):
        return f"lambda *_, **__: {printed(value.value)}"
    if isinstance(value, Config):
        return f"SimpleNamespace({', '.join(f'{name}={printed(one)}' for name, one in value.attributes)})"
    return f"{value.callee}({passed(value.arguments)})"


def random(value: Value) -> bool:
    """Whether there is a tensor in it, another one each time that it is made."""
    return isinstance(value, Tensor) or any(map(random, within(value)))


def of_tensor(value: Tensor) -> str:
    """How torch makes it."""
    sizes = ", ".join(map(str, value.shape))
    if value.kind == "index":
        return f"torch.randint({value.high}, ({sizes}{',' * (len(value.shape) == 1)}))"
    if value.kind == "mask":
        return f"torch.ones({sizes or '()'}, dtype=torch.bool)"
    made = {"float": "randn", "share": "rand", "ones": "ones"}[value.kind]
    return f"torch.{made}({sizes or '()'})"


def passed(arguments: tuple[Argument, ...]) -> str:
    """What stands between the parentheses of a call."""
    return ", ".join(
        f"{one.name}={printed(one.value)}" if one.keyword else printed(one.value) for one in arguments
    )


def needs(value: Value) -> Iterator[str]:
    """The import lines that its source takes."""
    if isinstance(value, Tensor):
        yield TORCH
    if isinstance(value, Config):
        yield NAMESPACE
    if isinstance(value, (Source, Made)):
        yield from value.needs
    for inner in within(value):
        yield from needs(inner)


def within(value: Value) -> Iterator[Value]:
    """The values that it is made of."""
    if isinstance(value, Items):
        yield from value.items
    elif isinstance(value, Entries):
        yield from (one for _, one in value.entries)
    elif isinstance(value, Config):
        yield from (one for _, one in value.attributes)
    elif isinstance(value, Returns):
        yield value.value
    elif isinstance(value, Made):
        yield from (one.value for one in value.arguments)


def referred(value: Value) -> Iterator[str]:
    """The names of other arguments that are in it."""
    if isinstance(value, Source):
        yield from value.refers.split()
    for inner in within(value):
        yield from referred(inner)


def to_json(value: Any) -> Any:
    """A value, or anything that has values in it, as plain JSON."""
    if is_dataclass(value) and not isinstance(value, type):
        inner = {one.name: to_json(getattr(value, one.name)) for one in fields(value)}
        return {"is": type(value).__name__, **inner}
    if isinstance(value, (list, tuple)):
        return [to_json(one) for one in value]
    return value


def from_json(data: Any, names: dict[str, Any] | None = None) -> Any:
    """What `to_json` was given, with tuples where it had sequences."""
    if isinstance(data, list):
        return tuple(from_json(one, names) for one in data)
    if not isinstance(data, dict):
        return data
    made = {**NAMES, **(names or {})}[data["is"]]
    return made(**{name: from_json(one, names) for name, one in data.items() if name != "is"})
