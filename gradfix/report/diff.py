"""One unified diff of all rewrites: the exact bytes for `git apply`, colours for a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TextIO

from gradfix.patch import Counts, count, unified
from gradfix.report.screen import Line, Piece, harmless, write

if TYPE_CHECKING:
    from gradfix.outcome import Outcome, Run, View

STYLES = (("---", "bold"), ("+++", "bold"), ("@@", "cyan"), ("-", "red"), ("+", "green"))


def _patch(outcome: Outcome) -> bytes:
    if outcome.after is None:
        return b""
    return unified(outcome.path, outcome.before or b"", outcome.after)


def counted(run: Run) -> Counts:
    """Count files, hunks and lines from the diff itself."""
    return count(b"".join(map(_patch, run.outcomes)))


def _line(text: str, named: bool) -> Line:
    """Colour a line by its first sign; file names stand in the first two lines only."""
    style = next((style for sign, style in STYLES[0 if named else 2 :] if text.startswith(sign)), "")
    return [Piece("\t".join(map(harmless, text.removesuffix("\r").split("\t"))), style)]


def _coloured(outcome: Outcome) -> Iterable[Line]:
    lines = _patch(outcome).decode(outcome.encoding.removesuffix("-sig"), "replace").split("\n")[:-1]
    return (_line(text, number < 2) for number, text in enumerate(lines))


def _exact(content: bytes, stream: TextIO) -> None:
    """Write bytes past the stream's encoding where it has a binary side."""
    binary = getattr(stream, "buffer", None)
    if binary is None:
        stream.write(content.decode("utf-8", "replace"))
        return
    stream.flush()
    binary.write(content)


def render(run: Run, stream: TextIO, view: View) -> None:
    """Print the diff; nothing where nothing is rewritten."""
    for outcome in run.outcomes:
        if view.colour:
            write(stream, _coloured(outcome), colour=True)
        else:
            _exact(_patch(outcome), stream)
