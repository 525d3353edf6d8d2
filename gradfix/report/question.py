"""Asks at a terminal what to do with a finding: shows its evidence and its diff, and takes one letter."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from gradfix.outcome import Run, View
from gradfix.patch import unified
from gradfix.report import text
from gradfix.report.cells import placed
from gradfix.report.diff import drawn
from gradfix.report.screen import Line, Piece, write

if TYPE_CHECKING:
    from gradfix.review import Answer, Question

ANSWERS: dict[str, tuple[Answer, str]] = {
    "y": ("take", "take this fix"),
    "n": ("skip", "leave this finding as it is"),
    "i": ("ignore", "silence it by a comment on its line"),
    "a": ("rest", "take this fix and all other safe ones in this file"),
    "d": ("leave", "leave this finding and all others in this file"),
    "q": ("quit", "leave this finding and all others; what was taken is written"),
}
TAKING = {"y", "a"}
HELP = "?"


@dataclass(frozen=True, slots=True)
class Terminal:
    """Where questions are asked, and from where answers come."""

    out: TextIO
    answers: TextIO
    colour: bool

    def __call__(self, question: Question) -> Answer:
        """Ask until the answer is one; where no more can come, it is to stop."""
        write(self.out, [[]], colour=False)
        shown = Run((question.outcome,), "diff")
        text.render(placed(shown, "text"), self.out, View(colour=self.colour))
        write(self.out, _diff(placed(shown, "diff")), self.colour)
        possible = [key for key in ANSWERS if question.outcome.after is not None or key not in TAKING]
        while True:
            write(self.out, [_prompt(question, possible)], self.colour, end=" ")
            self.out.flush()
            line = self.answers.readline()
            if not line:
                write(self.out, [[]], colour=False)
                return "quit"
            if (key := line.strip().lower()) in possible:
                return ANSWERS[key][0]
            write(self.out, ([Piece(f"{key} - {ANSWERS[key][1]}", "bold")] for key in possible), self.colour)


def _diff(run: Run) -> Iterator[Line]:
    """What taking the fix would do; the file's name stands above already."""
    for outcome in run.outcomes:
        if outcome.after is not None:
            yield from drawn(unified(outcome.path, outcome.before or b"", outcome.after), outcome.encoding)[
                2:
            ]


def _prompt(question: Question, possible: list[str]) -> Line:
    unsafe = question.finding.applicability == "unsafe"
    ask = f"Take this {'unsafe ' if unsafe else ''}fix" if "y" in possible else "No fix to take: what now"
    keys = ",".join((*possible, HELP))
    return [Piece(f"({question.number}/{question.of}) {ask} [{keys}]?", "bold yellow" if unsafe else "bold")]
