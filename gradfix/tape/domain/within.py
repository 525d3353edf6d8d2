"""State that differs inside of something only: it is entered and left in one way, exceptions included."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradfix.tape.domain.trail import Trail


class Within:
    """A block in which some attributes of an object hold something else; what is journalled stays so.

    What the block itself does to these attributes ends with it. Where it is left by an exception, the
    branches that were open in it are undone.
    """

    __slots__ = ("before", "depth", "journalled", "now", "owner", "trail")

    def __init__(self, owner: object, trail: Trail, now: Mapping[str, object]) -> None:
        self.owner = owner
        self.trail = trail
        self.now = now

    def __enter__(self) -> None:
        owner, trail = self.owner, self.trail
        self.depth = len(trail.frames)
        self.journalled = getattr(owner, "JOINS", None)
        before: dict[str, object] = {}
        for name, content in self.now.items():
            before[name] = getattr(owner, name)
            if self.journalled and name in self.journalled:
                trail.set(owner, name, content)  # type: ignore[arg-type]
            else:
                setattr(owner, name, content)
        self.before = before

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        owner, trail = self.owner, self.trail
        if kind is not None:
            while len(trail.frames) > self.depth:
                trail.undo()
        for name, content in self.before.items():
            if self.journalled and name in self.journalled:
                trail.set(owner, name, content)  # type: ignore[arg-type]
            else:
                setattr(owner, name, content)
