"""What `gradfix why` says: what the message means, who is at fault, what of it agrees, and the rewrite."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from textwrap import wrap
from typing import TYPE_CHECKING, Any, TextIO

from gradfix.explain import address
from gradfix.report.cells import culprits_by_cell, in_cell
from gradfix.report.frame import drawn, elsewhere
from gradfix.report.quotes import quotes
from gradfix.report.screen import Line, Piece, cells, columns, harmless, write
from gradfix.report.wording import certainty, label, remedy, way_out
from gradfix.source import placed_in

if TYPE_CHECKING:
    from gradfix.outcome import View
    from gradfix.why.answers import Answer, Culprit
    from gradfix.why.project import Spot
    from gradfix.why.said import Said

MARGIN = " " * 6
FOUND = "the tape finds it"
"""What goes without saying of a place that has a rule's code."""
MOST = 3
SURE = {
    "shown": ("the line at fault", "bold red"),
    "likely": ("most likely", "bold yellow"),
    "possible": ("could be", "yellow"),
}
DIFF = (("+++", "bold"), ("---", "bold"), ("@@", "cyan"), ("-", "red"), ("+", "green"))
SILENT = "no line of the project's files explains it"
UNRELATED = "it fails for a reason that has nothing to do with gradients, as far as gradfix can tell"


def render(answer: Answer, stream: TextIO, view: View) -> None:
    """Write the answer in the format that was asked for."""
    if view.output_format == "json":
        json.dump(fields(answer), stream, indent=2)
        stream.write("\n")
        return
    write(stream, list(_lines(answer, columns())), view.colour)


def _lines(answer: Answer, width: int) -> Iterator[Line]:
    if answer.error:
        yield from _paragraph("", answer.error, width)
        return
    if answer.raised:
        yield [Piece(harmless(answer.raised)[: width - 1], "bold")]
        yield from _paragraph("", UNRELATED, width)
        return
    if answer.said is not None:
        yield from _message(answer, answer.said, width)
    elif answer.heading:
        yield [Piece(harmless(answer.heading), "bold")]
    for number, culprit in enumerate(culprits_by_cell(answer)[:MOST], 1):
        yield []
        yield from _culprit(answer, culprit, number, width)
    yield from _closing(answer, width)


def _message(answer: Answer, said: Said, width: int) -> Iterator[Line]:
    means = said.message.means
    yield from ([Piece(text, "bold")] for text in wrap(f"{means[:1].upper()}{means[1:]}.", width))
    told = list(_facts(said))
    if told:
        yield from _paragraph("torch says", "; ".join(told), width)
    for name, spots in (("raised at", answer.spots), ("forward at", answer.forward)):
        if spots:
            yield from _paragraph(name, _where(spots[-1], answer), width)
    yield from _paragraph("proven", said.message.proves, width)


def _facts(said: Said) -> Iterator[str]:
    facts = said.facts
    if "type" in facts and "shape" in facts:
        yield f"{facts['type']} [{facts['shape']}]"
    if "operation" in facts:
        output = f"output {facts['output']} of " if "output" in facts else ""
        yield f"{output}{facts['operation']}"
    if "version" in facts:
        yield f"saved at version {facts['expected']}, now at {facts['version']}"
    if said.trace.operation:
        yield f"the backward of {said.trace.operation} failed"


def _where(spot: Spot, answer: Answer) -> str:
    cell, line = placed_in(answer.cells.get(spot.path, ()), spot.line)
    moved = spot.moved and spot.frame.line not in (0, line)
    then = f" (line {spot.frame.line} in the traceback)" if moved else ""
    code = f"  {spot.frame.code}" if spot.frame.code else ""
    return f"{in_cell(spot.path, cell)}:{line}{then}{code}"


def _paragraph(name: str, text: str, width: int, style: str = "dim") -> Iterator[Line]:
    hang = len(name) + 2 if name else 0
    for index, part in enumerate(wrap(harmless(text), width - 2 - hang, break_long_words=False) or [""]):
        first = f"{name}: " if name and index == 0 else " " * hang
        yield [Piece("  "), Piece(first, style), Piece(part)]


def _culprit(answer: Answer, culprit: Culprit, number: int, width: int) -> Iterator[Line]:
    suspect = culprit.suspect
    words, style = SURE[culprit.sure]
    rule = f" {suspect.finding.code}" if suspect.finding else ""
    yield [
        Piece(f"{number}. "),
        Piece(f"{harmless(suspect.path)}:{suspect.span.line}", "bold"),
        Piece(rule, "bold red"),
        Piece(f" [{words}{_how(culprit)}]", style),
    ]
    yield from ([Piece(MARGIN + text)] for text in wrap(harmless(suspect.says), width - len(MARGIN)))
    yield from _frame(culprit, width)
    for agreement in sorted(suspect.agrees, key=lambda each: -each.points):
        if agreement.points > 0 and agreement.says != FOUND:
            yield from _indented("agrees", agreement.says, width, "cyan")
    for assumption in suspect.assumes:
        yield from _indented("if", assumption.removeprefix("assuming that "), width, "yellow")
    if suspect.finding is not None and way_out(suspect.finding):
        yield from _indented(label(suspect.finding), way_out(suspect.finding), width, "green")
    elif suspect.advice:
        yield from _indented("by hand", suspect.advice, width, "green")
    if number == 1 and culprit.diff:
        yield from _patch(culprit)


def _how(culprit: Culprit) -> str:
    finding = culprit.suspect.finding
    return f", {certainty(finding)}, {remedy(finding)}" if finding else ""


def _frame(culprit: Culprit, width: int) -> Iterator[Line]:
    finding = culprit.suspect.finding
    texts = culprit.texts
    if finding is not None and culprit.suspect.path in texts:
        yield from drawn(quotes(finding, texts[culprit.suspect.path], None), width)
        yield from elsewhere(finding, texts, width)
        return
    line = culprit.suspect.span.line
    lines = texts.get(culprit.suspect.path, ())
    text = lines[line - 1].strip() if 0 < line <= len(lines) else culprit.suspect.code
    if text:
        yield [Piece(f"{line:>5} | ", "dim"), Piece(_cut(harmless(text.expandtabs(4)), width - 9), "red")]


def _cut(text: str, room: int) -> str:
    return text if cells(text) <= room else text[: room - 3] + "..."


def _indented(name: str, text: str, width: int, style: str) -> Iterator[Line]:
    hang = len(name) + 2
    parts = wrap(harmless(text), width - len(MARGIN) - hang, break_long_words=False)
    for index, part in enumerate(parts):
        yield [Piece(MARGIN), Piece(f"{name}: " if index == 0 else " " * hang, style), Piece(part)]


def _patch(culprit: Culprit) -> Iterator[Line]:
    text = culprit.diff.decode(culprit.encoding.removesuffix("-sig"), "replace")
    for line in text.split("\n")[:-1]:
        style = next((style for sign, style in DIFF if line.startswith(sign)), "")
        shown = "\t".join(map(harmless, line.rstrip("\r").split("\t")))
        yield [Piece("  "), Piece(shown, style)] if shown.strip() else []


def _closing(answer: Answer, width: int) -> Iterator[Line]:
    yield []
    more = len(answer.culprits) - MOST
    if more > 0:
        yield [Piece(f"{more} more would explain it less well; --output-format json lists them.", "dim")]
    if not answer.culprits and answer.said is not None:
        yield from _paragraph("", f"{SILENT}.", width)
    if answer.said is not None and not _settled(answer):
        if not answer.spots and answer.said.trace.frames:
            yield from _paragraph(
                "files",
                "none of the traceback's frames was found below the working directory; "
                "name the project's folder: gradfix why TRACE FOLDER",
                width,
            )
        if all(culprit.suspect.advice != answer.said.message.then for culprit in answer.culprits[:1]):
            yield from _paragraph("next", answer.said.message.then, width, "green")
    elif answer.advice:
        yield from _paragraph("next", answer.advice, width, "green")


def _settled(answer: Answer) -> bool:
    return bool(answer.culprits) and answer.culprits[0].sure == "shown"


def fields(answer: Answer) -> dict[str, Any]:
    """The answer as JSON."""
    said = answer.said
    return {
        "message": said.message.name if said else None,
        "error": answer.error or None,
        "raised": said.trace.said if said else answer.raised or None,
        "means": said.message.means if said else None,
        "proves": said.message.proves if said else None,
        "next": said.message.then if said else answer.advice or None,
        "facts": dict(said.facts) if said else {},
        "failed_operation": (said.trace.operation or None) if said else None,
        "frames": [_spot(spot, answer) for spot in answer.spots],
        "forward": [_spot(spot, answer) for spot in answer.forward],
        "culprits": [_fields(culprit, answer) for culprit in answer.culprits],
    }


def _spot(spot: Spot, answer: Answer) -> Mapping[str, Any]:
    cell, line = placed_in(answer.cells.get(spot.path, ()), spot.line)
    return {
        "filename": spot.path,
        "cell": cell,
        "row": line,
        "in_traceback": {"filename": spot.frame.path, "row": spot.frame.line},
        "function": spot.frame.function or None,
        "moved": spot.moved,
    }


def _fields(culprit: Culprit, answer: Answer) -> Mapping[str, Any]:
    suspect, finding = culprit.suspect, culprit.suspect.finding
    cells, span = answer.cells.get(suspect.path, ()), suspect.span
    cell, line = placed_in(cells, span.line)
    return {
        "filename": suspect.path,
        "cell": cell,
        "location": {"row": line, "column": span.column + 1},
        "end_location": {"row": placed_in(cells, span.end_line)[1], "column": span.end_column + 1},
        "sure": culprit.sure,
        "code": finding.code if finding else None,
        "name": finding.rule if finding else None,
        "certainty": finding.certainty if finding else None,
        "url": address(finding.rule) if finding else None,
        "message": suspect.says,
        "agrees": [each.says for each in suspect.agrees if each.points > 0],
        "disagrees": [each.says for each in suspect.agrees if each.points < 0],
        "points": suspect.points,
        "assumptions": [each.removeprefix("assuming that ") for each in suspect.assumes],
        "advice": (way_out(finding) if finding else "") or suspect.advice or None,
        "diff": culprit.diff.decode(culprit.encoding.removesuffix("-sig"), "replace") or None,
    }
