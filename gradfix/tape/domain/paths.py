"""Path conditions: what has to hold for an event to happen, as a set of literals."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
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
            left = path.difference(one, other)
            if not left or all(
                type(key) is Settled and key.refuted(not there, one, other) for key, there in left
            ):
                return True
        return False


class Said(NamedTuple):
    """What a path says, as others ask it."""

    contrary: Path
    """Its literals turned round: one of them suffices to contradict it."""
    equal: dict[Key, list[Hashable]]
    """The constants that subjects equal."""
    settles: bool
    """Whether it has a literal that others settle: most have none."""


@lru_cache(1 << 14)
def _said(path: Path) -> Said:
    """What a path says, read once: few are asked often."""
    equal: dict[Key, list[Hashable]] = {}
    for key, holds in path:
        if holds and type(key) is Equals:
            equal.setdefault(key.subject, []).append(key.constant)
    contrary = frozenset([(key, not holds) for key, holds in path])
    return Said(contrary, equal, any(type(key) is Settled for key, _ in path))


def contradicts(one: Path, other: Path) -> bool:
    """Whether no run can satisfy both."""
    if not one or not other:
        return False
    if len(one) > len(other):
        one, other = other, one
    contrary, equal, settles = _said(one)
    if not contrary.isdisjoint(other):
        return True
    _, others, settled = _said(other)
    if others:
        for subject, constants in equal.items():
            known = others.get(subject)
            if known is not None and known != constants and any(each not in known for each in constants):
                return True
    return (settles and _refuted(one - other, one, other)) or (settled and _refuted(other, one, other))


def _refuted(literals: Path, one: Path, other: Path) -> bool:
    """Whether two paths together say the contrary of one of these literals that others settle."""
    return any(key.refuted(holds, one, other) for key, holds in literals if type(key) is Settled)


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
