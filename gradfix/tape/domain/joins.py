"""How a cell joins that holds different contents on different paths: each class says it of its own cells.

What isn't the same on all paths is read in the way that silences, so two cells of one Python type may have
to join differently: a list that may hold more on one path may hold more; a step that was made on one path
only wasn't made.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import ClassVar, Protocol, TypeAlias


class Join(Enum):
    """What a cell holds after several paths, each of which has left something else in it."""

    VALUE = auto()
    """A value: the alternatives."""
    ITEMS = auto()
    """A list of values: element by element."""
    ENTRIES = auto()
    """A dict of values: key by key."""
    NODE = auto()
    """A node of the graph: one whose parents are the alternatives."""
    TRUTH = auto()
    """True, False or None: None."""
    SOME = auto()
    """Whether something holds, where what isn't sure must count as true."""
    EVERY = auto()
    """Whether something holds, where what isn't sure must not count."""
    OLDEST = auto()
    """A generation: the oldest, which looks the base up again."""
    UNION = auto()
    """A set: what is in one of them."""
    AGREED = auto()
    """What all agree on, else None."""
    NAME = auto()
    """A name that all agree on, else none."""
    ALL = auto()
    """A list of things by identity: those of each, once."""
    MEMORY = auto()
    """A storage: one that nobody knows."""
    LEAVES = auto()
    """The parameters of a group: those of each, which aren't known to be all."""


Joins: TypeAlias = Mapping[str, Join]


class Born(Protocol):
    """What cells belong to: when it was made says which branches may have to restore it."""

    @property
    def born(self) -> int: ...


class Holder(Born, Protocol):
    """What has attributes that change: it says of each how it joins."""

    JOINS: ClassVar[Joins]
