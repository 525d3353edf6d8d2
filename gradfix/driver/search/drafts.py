"""A recipe while it is looked for: what is tried next, and every place in it that may be changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from gradfix.driver.values import Argument, Config, Entries, Items, Made, Number, Returns, Tensor, Value

Path = tuple[Any, ...]
"""`build` or `call`, the number of the argument, then further in."""


@dataclass(frozen=True, slots=True)
class Draft:
    """What one try is made of."""

    build: tuple[Argument, ...] | None = None
    call: tuple[Argument, ...] | None = None
    """None: to be proposed once the object is there."""
    others: dict[Path, tuple[Value, ...]] = field(default_factory=dict)
    """What else a place might be given."""
    training: bool = True
    carries: bool = False
    at_home: bool = False
    """Whether what would go to a GPU stays where it is."""
    edits: int = 0
    """How far it is from the first one."""

    def key(self) -> tuple[object, ...]:
        """By what two are the same."""
        return self.build, self.call, self.training, self.carries, self.at_home

    def arguments(self) -> Iterator[tuple[Path, Argument]]:
        """All arguments with their places."""
        for part in ("build", "call"):
            for index, one in enumerate(getattr(self, part) or ()):
                yield (part, index), one

    def leaves(self) -> Iterator[tuple[Path, Value]]:
        """All values that are made of no others, with their places."""
        for path, one in self.arguments():
            yield from leaves(path, one.value)

    def at(self, path: Path) -> Value:
        """The value at a place."""
        value = (getattr(self, path[0]) or ())[path[1]].value
        for step in path[2:]:
            value = parts(value)[step]
        return value  # type: ignore[no-any-return]

    def changed(self, changes: dict[Path, Value], cost: int = 1) -> Draft:
        """The same with other values at some places."""
        found = self
        for path, value in changes.items():
            arguments = list(getattr(found, path[0]) or ())
            one = arguments[path[1]]
            arguments[path[1]] = replace(one, value=put(one.value, path[2:], value))
            found = found.given(path[0], tuple(arguments))
        return replace(found, edits=self.edits + cost)

    def given(self, part: str, arguments: tuple[Argument, ...]) -> Draft:
        """The same with other arguments, to build or to call."""
        return replace(self, build=arguments) if part == "build" else replace(self, call=arguments)

    def other(self, path: Path) -> Draft | None:
        """The next that a place might be given; None: there is nothing left."""
        waiting = self.others.get(path, ())
        if not waiting:
            return None
        return replace(self.changed({path: waiting[0]}), others={**self.others, path: waiting[1:]})


def parts(value: Value) -> tuple[Value, ...]:
    """What a value is made of, in order."""
    if isinstance(value, Items):
        return value.items
    if isinstance(value, Entries):
        return tuple(one for _, one in value.entries)
    if isinstance(value, Config):
        return tuple(one for _, one in value.attributes)
    if isinstance(value, Returns):
        return (value.value,)
    return tuple(one.value for one in value.arguments) if isinstance(value, Made) else ()


def put(value: Value, path: Path, new: Value) -> Value:
    """The same value with another one further in; batches that are alike stay so."""
    if not path:
        return new
    step, rest = path[0], path[1:]
    inner = list(parts(value))
    alike = isinstance(value, Items) and value.form == "list" and len(set(inner)) == 1
    inner[step] = put(inner[step], rest, new)
    if alike:
        inner = [inner[step]] * len(inner)
    if isinstance(value, Items):
        return replace(value, items=tuple(inner))
    if isinstance(value, Entries):
        return replace(
            value, entries=tuple((key, one) for (key, _), one in zip(value.entries, inner, strict=True))
        )
    if isinstance(value, Config):
        named = zip(value.attributes, inner, strict=True)
        return replace(value, attributes=tuple((name, one) for (name, _), one in named))
    if isinstance(value, Returns):
        return Returns(inner[0])
    assert isinstance(value, Made)
    given = zip(value.arguments, inner, strict=True)
    return replace(value, arguments=tuple(replace(one, value=new) for one, new in given))


def leaves(path: Path, value: Value) -> Iterator[tuple[Path, Value]]:
    """The innermost values with their places."""
    inner = parts(value)
    if not inner:
        yield path, value
    for index, one in enumerate(inner):
        yield from leaves((*path, index), one)


@dataclass(frozen=True, slots=True)
class Size:
    """A number that may be changed: a size of a tensor, or a number that something is built with."""

    path: Path
    size: int
    at: int | None = None
    """Which dimension of the tensor; None: a number itself."""
    shape: tuple[int, ...] = ()
    """That of the whole tensor."""

    @property
    def ndim(self) -> int:
        """How many dimensions the tensor has."""
        return len(self.shape)

    def set(self, draft: Draft, size: int) -> dict[Path, Value]:
        """The change that makes it another one."""
        value = draft.at(self.path)
        if isinstance(value, Tensor) and self.at is not None:
            shape = (*value.shape[: self.at], size, *value.shape[self.at + 1 :])
            return {self.path: replace(value, shape=shape)}
        return {self.path: Number(size)}


def sizes(draft: Draft) -> Iterator[Size]:
    """All of them, those of tensors first."""
    found = list(draft.leaves())
    for path, value in found:
        if isinstance(value, Tensor):
            for at in reversed(range(len(value.shape))):
                yield Size(path, value.shape[at], at, value.shape)
    for path, value in found:
        if isinstance(value, Number) and value.free and type(value.value) is int:
            yield Size(path, value.value)
