"""Activations of functions: their names, how they are left, and what they gave back."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradfix.tape.domain.definitions import Code, Scope
    from gradfix.tape.domain.paths import Path
    from gradfix.tape.domain.values import Value
    from gradfix.tape.interpreter.early_exits import Exits, Loop


class Frame:
    """One activation of a function: what it returned, and on which paths."""

    __slots__ = (
        "aliases",
        "at_yield",
        "caller",
        "code",
        "entry",
        "exits",
        "loops",
        "owner",
        "partings",
        "receiver",
        "returns",
        "scope",
        "yields",
    )

    def __init__(self, scope: Scope, code: Code | None, entry: Path) -> None:
        self.scope = scope
        self.caller: Frame | None = None
        self.code = code
        self.entry = entry
        self.returns: list[tuple[Path, Value]] = []
        self.yields: list[Value] | None = None
        self.at_yield: Callable[[Value], object] | None = None
        """What runs at its yields, where it runs in step with somebody."""
        self.exits: Exits | None = None
        """The ways out of it, where it can be left in one arm of a branch."""
        self.loops: list[Loop] = []
        """The loops that are running, innermost last."""
        self.receiver: Value | None = None
        self.owner: Any = None
        self.partings = 0
        self.aliases: dict[str, Scope] = {}
        """Names declared global or nonlocal, and where they live."""
