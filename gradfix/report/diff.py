"""One unified diff of all rewrites: the exact bytes for `git apply`, colours for a terminal."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TextIO

from gradfix.finder import shared_root, shown
from gradfix.patch import Counts, count, unified
from gradfix.report.screen import Line, Piece, harmless, write

if TYPE_CHECKING:
    from gradfix.outcome import Outcome, Run, View

STYLES = (("---", "bold"), ("+++", "bold"), ("@@", "cyan"), ("-", "red"), ("+", "green"))


def root(run: Run) -> str:
    """The folder that the diff's names begin at; "": the working directory."""
    return shared_root(_target(outcome) for outcome in run.outcomes if outcome.after is not None)


def _target(outcome: Outcome) -> str:
    """The file that is rewritten, where the path is a link to it or leads through one: git follows none."""
    return shown(os.path.realpath(outcome.path))


def _patch(outcome: Outcome, top: str) -> bytes:
    if outcome.after is None:
        return b""
    name = os.path.relpath(_target(outcome), top) if top else _target(outcome)
    return unified(name, outcome.before or b"", outcome.after)


def counted(run: Run) -> Counts:
    """Count files, hunks and lines from the diff itself."""
    return count(b"".join(_patch(outcome, "") for outcome in run.outcomes))


def _line(text: str, named: bool) -> Line:
    """Colour a line by its first sign; file names stand in the first two lines only."""
    style = next((style for sign, style in STYLES[0 if named else 2 :] if text.startswith(sign)), "")
    return [Piece("\t".join(map(harmless, text.removesuffix("\r").split("\t"))), style)]


def drawn(patch: bytes, encoding: str) -> list[Line]:
    """A diff of one file as lines for a terminal, its name in the first two."""
    lines = patch.decode(encoding.removesuffix("-sig"), "replace").split("\n")[:-1]
    return [_line(text, number < 2) for number, text in enumerate(lines)]


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
    top = root(run)
    for outcome in run.outcomes:
        if view.colour:
            write(stream, drawn(_patch(outcome, top), outcome.encoding), colour=True)
        else:
            _exact(_patch(outcome, top), stream)
