"""Path conditions: what has to hold for an event to happen, as a set of literals."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TypeAlias

Key: TypeAlias = Hashable
Path: TypeAlias = frozenset[tuple[Key, bool]]

ALWAYS: Path = frozenset()


@dataclass(frozen=True, slots=True)
class Equals:
    """The literal `subject == constant`; two of them with different constants exclude each other."""

    subject: Key
    constant: Hashable


def contradicts(one: Path, other: Path) -> bool:
    """Whether no run can satisfy both."""
    if not one or not other:
        return False
    if len(one) > len(other):
        one, other = other, one
    for key, holds in one:
        if (key, not holds) in other:
            return True
        if holds and isinstance(key, Equals) and _excluded(key, other):
            return True
    return False


def _excluded(key: Equals, path: Path) -> bool:
    return any(
        holds
        and isinstance(other, Equals)
        and other.subject == key.subject
        and other.constant != key.constant
        for other, holds in path
    )


def implies(strong: Path, weak: Path) -> bool:
    """Whether every run that satisfies `strong` satisfies `weak`."""
    return weak <= strong


def meet(one: Path, other: Path) -> Path | None:
    """Both at once; None where no run can do that."""
    if not other or other <= one:
        return one
    return None if contradicts(one, other) else one | other
