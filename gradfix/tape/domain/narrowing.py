"""What is asked of a value with alternatives: whether it is there, and what it can be on a path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradfix.tape.domain.paths import ALWAYS, Path, meet
from gradfix.tape.domain.values import UNDEFINED, Alt, Seq, Undefined

if TYPE_CHECKING:
    from gradfix.tape.domain.paths import Key
    from gradfix.tape.domain.values import Value


def paired(one: Value, other: Value) -> Value:
    """A pair, which lacks where the second of it does."""
    if not isinstance(other, Alt) or there(other):
        return Seq("tuple", [one, other])
    return Alt(tuple((path, value if type(value) is Undefined else Seq("tuple", [one, value]))
                     for path, value in other.options))  # fmt: skip


def varying(value: Alt) -> frozenset[Key]:
    """What the alternatives of a value depend on."""
    return frozenset([key for guard, _ in value.options for key, _ in guard])


def there(value: Value) -> bool:
    """Whether an element or entry is there on every path."""
    if type(value) is not Alt:
        return type(value) is not Undefined
    return all(type(option) is not Undefined for _, option in value.options)


def possible(value: Alt, path: Path) -> list[tuple[Path, Value]]:
    """The options that a value has on a path, each with both paths at once."""
    if value.feasible is not None and value.feasible[0] is path:
        return value.feasible[1]
    found: list[tuple[Path, Value]] = []
    for guard, option in value.options:
        if type(option) is not Undefined and (both := meet(path, guard)) is not None:
            found.append((both, option))
    value.feasible = path, found
    return found


def narrowed(value: Value, path: Path) -> Value:
    """What a value can be on a path, without the options that can't hold there or that a name lacks there."""
    if type(value) is not Alt:
        return value
    feasible = possible(value, path)
    if len(feasible) == 1:
        return feasible[0][1]
    if not feasible:
        return UNDEFINED
    if len(feasible) == len(value.options) and path is ALWAYS:
        return value
    left = Alt(tuple([(both - path if path else both, option) for both, option in feasible]))
    left.feasible = path, feasible
    return left
