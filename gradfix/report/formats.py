"""The names of the formats and what a command prints on its two streams."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, TextIO, cast

if TYPE_CHECKING:
    from gradfix.outcome import Run
    from gradfix.report.view import View

FORMATS: Mapping[str, str] = {
    "text": "gradfix.report.text",
    "concise": "gradfix.report.concise",
    "json": "gradfix.report.json",
    "github": "gradfix.report.github",
    "sarif": "gradfix.report.sarif",
    "rdjson": "gradfix.report.rdjson",
}
"""What `--output-format` takes. The modules beside them (`diff`, `statistics`, `summary`) render in the same way."""


class Format(Protocol):
    """A module that writes a run to a stream."""

    def render(self, run: Run, stream: TextIO, view: View) -> None:
        """Write the run."""


def load(name: str) -> Format:
    """Import the module of a format, or of `diff`, `statistics` or `summary`."""
    return cast(Format, import_module(FORMATS.get(name, f"gradfix.report.{name}")))


def show(run: Run, name: str, out: tuple[TextIO, View], err: tuple[TextIO, View]) -> None:
    """Print all that a command has to say: the report on `out`, the closing words on `err`."""
    stream, view = out
    if view.mode == "diff":
        load("diff").render(run, stream, view)
    elif view.statistics:
        load("statistics").render(run, stream, view)
    else:
        load(name).render(run, stream, view)
    load("summary").render(run, *err)
