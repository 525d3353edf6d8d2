"""The parameters of modules, kept once they were gathered, until somebody writes what they were read from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradfix.tape.domain.graph import Tensor
    from gradfix.tape.domain.values import Value

PARTS = frozenset({"items", "leaf", "open"})
"""The attributes that say which parts a module has, or whether one is a leaf."""
KINDS = frozenset({"built", "module"})
"""What makes a module of what isn't known, wherever it is a part."""
MOST = 4096
"""How many writes are remembered."""


class Written:
    """Whose parts were written, in order, by identity."""

    __slots__ = ("era", "owners")

    def __init__(self) -> None:
        self.owners: list[int] = []
        self.era = 0
        """How often all of it was forgotten: what was gathered before that isn't known to hold."""

    def note(self, owner: object) -> None:
        """One was written."""
        self.owners.append(id(owner))

    def note_all(self, owners: Iterable[object]) -> None:
        """Several were written, or are again what they were before."""
        self.owners.extend(map(id, owners))
        if len(self.owners) > MOST:
            self.forget()

    def forget(self) -> None:
        """Any of them may have been written."""
        self.owners.clear()
        self.era += 1


class Gathered:
    """The parameters of a module, and what they were read from."""

    __slots__ = ("as_of", "complete", "era", "ids", "leaves", "read", "value")

    def __init__(self, value: Value, leaves: dict[int, Tensor], complete: bool, read: set[int]) -> None:
        self.value = value
        self.leaves = [*leaves.values()]
        self.complete = complete
        self.ids = frozenset(leaves)
        self.read = read | self.ids
        self.as_of = self.era = -1


class Gatherings:
    """What was gathered under one journal, by what it was gathered from."""

    def __init__(self, written: Written) -> None:
        self.written = written
        self.kept: dict[int, Gathered] = {}

    def of(self, value: Value) -> Gathered | None:
        """What was gathered from a value, where it would be the same now."""
        found, written = self.kept.get(id(value)), self.written
        if found is None or found.era != written.era:
            return None
        now = len(written.owners)
        if found.as_of < now and not found.read.isdisjoint(written.owners[found.as_of :]):
            return None
        found.as_of = now
        return found

    def keep(self, found: Gathered) -> None:
        """Keep what has just been gathered."""
        found.as_of, found.era = len(self.written.owners), self.written.era
        self.kept[id(found.value)] = found
