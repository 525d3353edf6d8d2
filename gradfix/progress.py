"""A progress bar on standard error: for a terminal, and for work that lasts longer than a second."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

PATIENCE = 1.0
PAUSE = 0.1


class Bar:
    """Counts files or repositories; drawn by rich, without a thread of its own, as processes may fork."""

    def __init__(self, visible: bool, what: str = "files") -> None:
        self.visible = visible
        self.what = what
        self.total = self.done = 0
        self.since = self.drawn = time.monotonic()
        self.progress: Progress | None = None

    def start(self, total: int) -> Bar:
        """Say how many there are."""
        self.total = total
        return self

    def __call__(self, done: int) -> None:
        """Count those that are done with."""
        self.done += done
        now = time.monotonic()
        if self.visible and now - self.since > PATIENCE and now - self.drawn > PAUSE:
            self.drawn = now
            self._draw()

    def _draw(self) -> None:
        if self.progress is None:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress

            columns = ("gradfix", BarColumn(), MofNCompleteColumn(), self.what)
            console = Console(file=sys.stderr)
            self.progress = Progress(*columns, console=console, auto_refresh=False, transient=True)
            self.task = self.progress.add_task("", total=self.total)
            self.progress.start()
        self.progress.update(self.task, completed=self.done, refresh=True)

    def __enter__(self) -> Bar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.progress is not None:
            self.progress.stop()
