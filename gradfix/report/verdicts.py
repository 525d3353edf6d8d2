"""The judge's verdicts for a person: what was seen, what arrives, and the norms before and after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TextIO

from gradfix.report.screen import Line, Piece, harmless, write

if TYPE_CHECKING:
    from gradfix.outcome import Outcome, Run, View
    from gradfix.verify import Verdict

STYLES = {"flows": "bold green", "flows partly": "bold yellow", "worse": "bold red", "no change": "bold red"}
MOST = 8


def norm(value: float | None) -> str:
    """A gradient norm in a few signs."""
    return "none" if value is None else f"{value:.3g}"


def _said(verdict: Verdict) -> Line:
    place = f":{verdict.line}: {verdict.kind}" if verdict.kind else ""
    return [
        Piece(f"{harmless(verdict.path)}{place}: "),
        Piece(verdict.verdict, STYLES.get(verdict.verdict, "bold")),
        Piece(f" ({harmless(verdict.reason)})"),
    ]


def _gradients(verdict: Verdict) -> Iterator[Line]:
    names = sorted(verdict.before.keys() | verdict.after.keys())
    changed = [name for name in names if verdict.before.get(name) != verdict.after.get(name)]
    for name in changed[:MOST]:
        before, after = norm(verdict.before.get(name)), norm(verdict.after.get(name))
        yield [Piece(f"    gradient of {harmless(name)}: {before} -> {after}", "dim")]
    if len(changed) > MOST:
        yield [Piece(f"    and {len(changed) - MOST} more", "dim")]


def _worth_saying(verdicts: Sequence[Verdict]) -> Iterator[Verdict]:
    """All but the word on the only finding of a file that says what the word on the file has said."""
    words = [(verdict.path, verdict.verdict, verdict.reason) for verdict in verdicts]
    findings = Counter(verdict.path for verdict in verdicts if verdict.kind)
    for verdict, word in zip(verdicts, words, strict=True):
        if not (verdict.kind and findings[verdict.path] == 1 and words.count(word) > 1):
            yield verdict


def _of(outcome: Outcome) -> Iterator[Line]:
    for verdict in _worth_saying(outcome.verdicts):
        yield _said(verdict)
        if not verdict.kind:
            yield from _gradients(verdict)
            for held in verdict.held_back:
                yield [Piece(f"    held back: {harmless(held)}", "dim")]


def render(run: Run, stream: TextIO, view: View) -> None:
    """Write the verdicts of all files."""
    lines = [line for outcome in run.outcomes for line in _of(outcome)]
    write(stream, lines, view.colour and stream.isatty())
