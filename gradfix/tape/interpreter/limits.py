"""What bounds an execution: other files come from a resolver, work from a budget."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from gradfix.source import Source

Resolver: TypeAlias = "Callable[[str, str, int], Source | None]"
"""(importing file, dotted module, level) to the parsed first-party module, if it is one."""


DEPTH = 14
"""How deep calls are followed."""


class TooComplexError(Exception):
    """The work that a file may cost is used up."""
