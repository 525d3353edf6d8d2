"""Path conditions: what has to hold for an event to happen, as a set of literals."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from typing_extensions import Self

Key: TypeAlias = Hashable
Path: TypeAlias = frozenset[tuple[Key, bool]]

ALWAYS: Path = frozenset()


class Equals(NamedTuple):
    """The literal `subject == constant`; two of them with different constants exclude each other."""

    subject: Key
    constant: Hashable


class Settled(tuple[Key]):
    """The literal of a test whose answer follows from paths: `yes` where it holds, `no` where it fails.

    The same test is the same literal, whatever was known of it: as a tuple it holds nothing but the test.
    """

    def __new__(cls, where: Key, yes: Sequence[Path], no: Sequence[Path]) -> Self:
        """The literal of this test."""
        return super().__new__(cls, (where,))

    def __init__(self, where: Key, yes: Sequence[Path], no: Sequence[Path]) -> None:
        self.yes = yes
        self.no = no
        self.deep = any(map(_settles, (*yes, *no)))
        """Whether these paths have literals that others settle."""

    def refuted(self, holds: bool, said: Path) -> bool:
        """Whether what is said settles the contrary."""
        contrary = self.no if holds else self.yes
        for path in contrary:
            if path <= said:
                return True
        return self.deep and any(all(_follows(literal, said) for literal in path) for path in contrary)


def _follows(literal: tuple[Key, bool], said: Path) -> bool:
    """Whether something is said, or settled by what is."""
    key, holds = literal
    return literal in said or (type(key) is Settled and key.refuted(not holds, said))


def contradicts(one: Path, other: Path) -> bool:
    """Whether no run can satisfy both."""
    if not one or not other:
        return False
    if len(one) > len(other):
        one, other = other, one
    for key, holds in one - other:
        if (key, not holds) in other:
            return True
        if holds and type(key) is Equals and _excluded(key, other):
            return True
    if not _settles(other) and not _settles(one):
        return False
    both = other | one
    return any(type(key) is Settled and key.refuted(holds, both) for key, holds in both)


@lru_cache(1 << 14)
def _settles(path: Path) -> bool:
    """Whether a path has a literal that others settle: most have none, and are asked often."""
    return any(type(key) is Settled for key, _ in path)


def _excluded(key: Equals, path: Path) -> bool:
    subject, constant = key
    for other, holds in path:
        if holds and type(other) is Equals and other[0] == subject and other[1] != constant:
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


def meet(one: Path, other: Path) -> Path | None:
    """Both at once; None where no run can do that."""
    if not other or other <= one:
        return one
    return None if contradicts(one, other) else one | other
