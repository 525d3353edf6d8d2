"""Which `with`, decorator or statement has switched the graph off at this moment."""

from __future__ import annotations

from types import FrameType
from typing import Any

from gradfix.trace.places import Spot
from gradfix.trace.sources import Source, leaves
from gradfix.trace.state import State

MOST_INNER = 64
MOST_OPEN = 200


class Regions:
    """The grad modes entered and not left, innermost last; None: one that records."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.open: list[Source | None] = []

    def switched(self, enabled: bool, frame: FrameType | None) -> None:
        """torch's own switch was called: an entry or an exit."""
        if frame is not None and frame.f_code.co_name == "__exit__":
            if self.open:
                self.open.pop()
            return
        self.open.append(None if enabled else self._entered(frame))
        del self.open[:-MOST_OPEN]

    def inference(self, enter: bool, frame: FrameType | None) -> None:
        """inference_mode has a switch of its own."""
        if enter:
            self.open.append(self._entered(frame))
        elif self.open:
            self.open.pop()

    def _entered(self, frame: FrameType | None) -> Source:
        form, spot = "with", None
        kind = "forward_in_no_grad"
        frame = self._outermost(frame)
        mode = _mode_of(frame)
        while frame is not None and not self.state.places.is_user(frame.f_code.co_filename):
            name, file = frame.f_code.co_name, frame.f_code.co_filename
            # By what it holds: since 2.15 the wrapper is called after the mode that it enters.
            if file.endswith("_contextlib.py") and callable(frame.f_locals.get("func")):
                form, spot = "decorator", _decorated(frame)
                break
            if file.endswith("checkpoint.py") or "torch/autograd/function" in file:
                kind = "reentrant_checkpoint_cut"
            if name == "__init__" and mode == "set_grad_enabled":
                form = "statement"
            frame = frame.f_back
        if spot is None and frame is not None:
            spot = (frame.f_code, frame.f_lasti)
        return Source(kind, spot, f"{form} {mode}", at=self.state.count)

    def _outermost(self, frame: FrameType | None) -> FrameType | None:
        """torch's own modes switch by building another one: it is the outer one that was written."""
        back = frame.f_back if frame is not None else None
        if back is None or frame is None or back.f_code.co_name != "__enter__":
            return frame
        built = frame.f_code.co_name == "__init__"
        return back if built and not self.state.places.is_user(back.f_code.co_filename) else frame

    def keeps_out(self, lost: list[Any], spot: Spot | None) -> Source | None:
        """The region that keeps a call's result out of the graph; None: torch's own doing."""
        region = self.open[-1] if self.open else None
        if region is None:
            return None
        if not region.leaves:
            self.state.origins.cut(region)
        for value in lost:
            region.leaves |= leaves(value) if len(region.leaves) < 10_000 else set()
        region.scalar = all(value.numel() == 1 for value in lost)
        if spot is not None and len(region.inner) < MOST_INNER:
            region.inner.append(spot)
        return region


def _mode_of(frame: FrameType | None) -> str:
    """The class whose `__enter__` or `__init__` is running."""
    owner = (frame.f_locals.get("self") or frame.f_locals.get("mode")) if frame is not None else None
    return type(owner).__name__ if owner is not None else "set_grad_enabled"


def _decorated(frame: FrameType) -> Spot | None:
    """The first line of the decorated function: its topmost decorator."""
    func = frame.f_locals.get("func")
    code = getattr(func, "__code__", None)
    return (code, -1) if code is not None else None
