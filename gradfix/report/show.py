"""What a command prints on its two streams: the report on `out`, failures and counts on `err`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Protocol, TextIO, cast

from gradfix.report.cells import placed

if TYPE_CHECKING:
    from gradfix.outcome import Run, View


class Format(Protocol):
    """A module of this room: it writes a run to a stream."""

    def render(self, run: Run, stream: TextIO, view: View) -> None:
        """Write the run."""


def load(name: str) -> Format:
    """Import the module of one format, so that a command pays only for the one that it uses."""
    return cast(Format, import_module(f"gradfix.report.{name}"))


def chosen(run: Run, view: View) -> str:
    """Name the module that writes the report."""
    if run.mode == "diff":
        return "diff"
    return "statistics" if view.statistics else view.output_format


def show(run: Run, view: View, out: TextIO, err: TextIO) -> None:
    """Print all that a command has to say."""
    if run.mode != "review":
        load(chosen(run, view)).render(placed(run, chosen(run, view)), out, view)
    out.flush()
    if any(outcome.verdicts for outcome in run.outcomes):
        load("verdicts").render(run, err, view)
    load("summary").render(run, err, view)
    err.flush()
