"""Path conditions: what has to hold for an event to happen, as a set of literals."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

Key: TypeAlias = Hashable
Path: TypeAlias = frozenset[tuple[Key, bool]]

ALWAYS: Path = frozenset()


class Equals(NamedTuple):
    """The literal `subject == constant`; two of them with different constants exclude each other."""

    subject: Key
    constant: Hashable


class Settled:
    """The literal of a test whose answer follows from paths: `yes` where it holds, `no` where it fails.

    The same test is the same literal, whatever was known of it.
    """

    __slots__ = ("no", "where", "yes")

    def __init__(self, where: Key, yes: Sequence[Path], no: Sequence[Path]) -> None:
        self.where = where
        self.yes = yes
        self.no = no

    def __eq__(self, other: object) -> bool:
        return type(other) is Settled and self.where == other.where

    def __hash__(self) -> int:
        return hash(self.where)

    def refuted(self, holds: bool, one: Path, other: Path) -> bool:
        """Whether two paths together say the contrary."""
        for path in self.no if holds else self.yes:
            if all(_said(literal, one, other) for literal in path):
                return True
        return False


def _said(literal: tuple[Key, bool], one: Path, other: Path) -> bool:
    """Whether two paths together say so."""
    key, holds = literal
    return literal in one or literal in other or (type(key) is Settled and key.refuted(not holds, one, other))


def contradicts(one: Path, other: Path) -> bool:
    """Whether no run can satisfy both."""
    if not one or not other:
        return False
    if len(one) > len(other):
        one, other = other, one
    for literal in one:
        if literal in other:
            continue
        key, holds = literal
        if (key, not holds) in other:
            return True
        if holds and type(key) is Equals and _excluded(key, other):
            return True
        if type(key) is Settled and key.refuted(holds, one, other):
            return True
    return _settles(other) and any(
        key.refuted(holds, one, other) for key, holds in other if type(key) is Settled
    )


@lru_cache(1 << 14)
def _settles(path: Path) -> bool:
    """Whether a path has a literal that others settle: most have none, and are asked often."""
    return any(type(key) is Settled for key, _ in path)


def _excluded(key: Equals, path: Path) -> bool:
    for other, holds in path:
        if (
            holds
            and type(other) is Equals
            and other.subject == key.subject
            and other.constant != key.constant
        ):
            return True
    return False


def implies(strong: Path, weak: Path) -> bool:
    """Whether every run that satisfies `strong` satisfies `weak`."""
    return weak <= strong


FEW = 6
"""How many paths are put together to see whether one of them always holds."""


def covered(path: Path, by: Sequence[Path]) -> bool:
    """Whether every run that satisfies `path` satisfies one of a few others."""
    if len(by) > FEW:
        return False
    for one in by:
        if one <= path:
            return True
    left = [one for one in by if not contradicts(one, path)]
    if len(left) < 2:
        return False
    key = min(left, key=len).difference(path)
    subject = next(iter(key))[0]
    return covered(path | {(subject, True)}, left) and covered(path | {(subject, False)}, left)


def simplest(paths: Iterable[Path]) -> list[Path]:
    """The same paths: two that differ in how one test comes out are one, and none is part of another."""
    left, due = set(paths), list(paths)
    while due:
        path = due.pop()
        if path not in left:
            continue
        for key, holds in path:
            rest = path - {(key, holds)}
            twin = rest | {(key, not holds)}
            if rest in left or twin in left:
                left -= {path, twin}
                left.add(rest)
                due.append(rest)
                break
    return [one for one in left if not any(other < one for other in left)]


def meet(one: Path, other: Path) -> Path | None:
    """Both at once; None where no run can do that."""
    if not other or other <= one:
        return one
    return None if contradicts(one, other) else one | other
