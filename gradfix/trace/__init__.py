"""The recorder: runs the real program under torch and records the facts that the tape simulates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradfix.trace.watching import Watched, assert_gradients_flow, watch

__all__ = ["Watched", "assert_gradients_flow", "watch"]


def __getattr__(name: str) -> Any:
    """Import torch only for those who watch: the judge reads recordings without it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from gradfix.trace import watching

    return getattr(watching, name)
