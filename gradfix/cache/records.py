"""Records as JSON and back: what comes back is of the type that was asked for, or nothing comes back.

Whoever can put a file into a project's folder can put a cache there. So it is read as data, by the types that
the fields have, and never as anything that could run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache, partial
from types import NoneType, UnionType
from typing import Any, Literal, NoReturn, TypeAlias, Union, get_args, get_origin, get_type_hints

from gradfix import defects
from gradfix.defects.reasons import Reason
from gradfix.neighbours import Reading

Read: TypeAlias = Callable[[Any], Any]

NAMED: dict[str, Any] = {**vars(defects), "Reason": Reason, "Reading": Reading, "Verdict": NoReturn}
"""What records name that is imported for type checkers only; nothing is kept of what a judge says."""


class UnlikeError(Exception):
    """Something that isn't of the type that it should be."""


def written(value: object) -> object:
    """A value as JSON has it: of a record its fields, without those at the end that are as by default."""
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, tuple):
        return [written(one) for one in value]
    if not is_dataclass(value):
        return value
    said = [(getattr(value, field.name), field.default) for field in fields(value)]
    while said and said[-1][0] == said[-1][1]:
        said.pop()
    return [written(one) for one, _ in said]


@cache
def reader(kind: Any) -> Read:
    """What reads a value of a type."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Literal:
        return partial(_one_of, arguments)
    if origin in (Union, UnionType):
        (other,) = (one for one in arguments if one is not NoneType)
        return partial(_maybe, reader(other))
    if origin is tuple:
        return _tuple(arguments)
    if kind is bytes:
        return _bytes
    if isinstance(kind, type) and issubclass(kind, Enum):
        return partial(_member, kind)
    return partial(_record if is_dataclass(kind) else _plain, kind)


def _tuple(arguments: tuple[Any, ...]) -> Read:
    if arguments[1:] == (...,):
        return partial(_several, reader(arguments[0]))
    return partial(_each, tuple(map(reader, arguments)))


def _record(kind: Any, value: Any) -> Any:
    readers, least = _fields(kind)
    if type(value) is not list or not least <= len(value) <= len(readers):
        raise UnlikeError(kind)
    return kind(*(read(part) for read, part in zip(readers, value, strict=False)))


@cache
def _fields(kind: Any) -> tuple[tuple[Read, ...], int]:
    """What reads the fields of a record, once there is one to read, and how many have no default."""
    hints = get_type_hints(kind, localns=NAMED)
    least = sum(field.default is MISSING for field in fields(kind))
    return tuple(reader(hints[field.name]) for field in fields(kind)), least


def _plain(kind: Any, value: Any) -> Any:
    if type(value) is not kind:
        raise UnlikeError(kind)
    return value


def _maybe(other: Read, value: Any) -> Any:
    return None if value is None else other(value)


def _one_of(words: Iterable[Any], value: Any) -> Any:
    if value not in words:
        raise UnlikeError(words)
    return value


def _bytes(value: Any) -> bytes:
    return bytes(_plain(str, value), "latin-1")


def _member(kind: type[Enum], value: Any) -> Enum:
    return kind[_plain(str, value)]


def _several(one: Read, value: Any) -> tuple[Any, ...]:
    return tuple(map(one, _plain(list, value)))


def _each(readers: tuple[Read, ...], value: Any) -> tuple[Any, ...]:
    return tuple(read(part) for read, part in zip(readers, _plain(list, value), strict=True))
