"""How a cell joins that holds different contents on different paths: each class says it of its own cells.

What isn't the same on all paths is read in the way that silences, so two cells of one Python type may have
to join differently: a list that may hold more on one path may hold more; a step that was made on one path
only wasn't made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol

if TYPE_CHECKING:
    from gradfix.tape.domain.values import Joins


class Born(Protocol):
    """What cells belong to: when it was made says which branches may have to restore it."""

    @property
    def born(self) -> int: ...


class Holder(Born, Protocol):
    """What has attributes that change: it says of each how it joins."""

    JOINS: ClassVar[Joins]
