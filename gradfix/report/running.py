"""What `gradfix run` says: the broken rules in the user's own lines, or a healthy program's gradients."""

from __future__ import annotations

import json
import linecache
import os
from collections.abc import Iterator
from io import StringIO
from typing import TYPE_CHECKING, Any, TextIO

from gradfix.outcome import Run, View
from gradfix.report.diff import render as diff
from gradfix.report.json import render as findings_as_json
from gradfix.report.screen import Line, Piece, harmless, write
from gradfix.report.summary import failed
from gradfix.report.text import render as listing
from gradfix.report.verdicts import norm
from gradfix.report.verdicts import render as verdicts
from gradfix.verify.verdicts import listed, unseen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gradfix.run import Told
    from gradfix.trace.report import sentence
from gradfix.verify.verdicts import Facts

MOST_ROWS = 40
MOST_UNNAMED = 4


def render(told: Told, mode: str, stream: TextIO, view: View) -> None:
    """Write the report in the format that was asked for."""
    if view.output_format == "json":
        json.dump(fields(told), stream, indent=2)
        stream.write("\n")
        return
    if told.broken:
        write(stream, [[Piece(f"could not run: {harmless(told.broken)}", "bold red")]], view.colour)
        return
    run = Run(told.outcomes, "list")
    if told.outcomes:
        unwritten = Run(tuple(_unwritten(told)), "list")
        listing(unwritten, stream, view)
    lines = [failed(outcome, failure) for outcome, failure in run.failed()]
    lines += [line for event in told.foreign for line in _foreign(event)]
    lines += _not_finite(told)
    write(stream, lines, view.colour)
    if mode == "diff":
        diff(run, stream, view)
    verdicts(run, stream, view)
    write(stream, [*_table(told.last), *_closing(told, mode)], view.colour)


def _unwritten(told: Told) -> Iterator[Any]:
    """The findings as they stand in the text before, also where that has been written over."""
    from dataclasses import replace

    for outcome in told.outcomes:
        yield replace(outcome, written=False, after=None)


def _not_finite(told: Told) -> Iterator[Line]:
    event = next((one for one in told.first.defects if one["kind"] == "not_finite"), None)
    if event is not None:
        place, facts = event["place"], event["facts"]
        yield [
            Piece(f"{_where(place)}: ", "bold"),
            Piece(f"{facts['op']} gives the first value that is not finite ({facts['in']})", "bold red"),
        ]
        yield [Piece(f"      {_code(place)}")]
        yield [
            Piece("      masking it afterwards does not help: 0 * inf is nan; keep its input away from there")
        ]


def _foreign(event: Mapping[str, Any]) -> Iterator[Line]:
    place = event["place"]
    yield [Piece(f"{_where(place)}: ", "bold"), Piece(event["kind"], "bold red")]
    yield [Piece("      in an installed library, which gradfix does not rewrite; from your code:")]
    for step in event["evidence"]:
        said = harmless(sentence(step, event["facts"]))
        yield [Piece(f"      {_where(step['place'])}: {_code(step['place'])}   <- {said}")]


def _where(place: Mapping[str, Any]) -> str:
    """A recorded place, from the working directory where it lies below it."""
    file = place["file"]
    near = os.path.relpath(file) if os.path.isabs(file) else file
    return f"{harmless(file if near.startswith(os.pardir) else near)}:{place['line']}"


def _code(place: Mapping[str, Any]) -> str:
    """The line itself."""
    return harmless(linecache.getline(place["file"], place["line"]).strip())


def _table(seen: Facts) -> Iterator[Line]:
    """Each parameter with its gradient, or the reason why it has none."""
    reasons = seen.recording["reasons"]
    aside = seen.unnamed if len(seen.unnamed) > MOST_UNNAMED else frozenset()
    names = [name for name in dict.fromkeys([*seen.norms, *reasons]) if name not in aside]
    width = max((len(name) for name in names[:MOST_ROWS]), default=0)
    for name in names[:MOST_ROWS]:
        value, why = seen.norms.get(name), reasons.get(name, "")
        text = f"  {harmless(name):<{width}}  {'not finite' if name in seen.wild else norm(value):>10}" + (
            f"  {harmless(why)}" if why else ""
        )
        yield [Piece(text, "" if value is not None or why == "frozen" else "red")]
    if len(names) > MOST_ROWS:
        yield [Piece(f"  and {len(names) - MOST_ROWS:,} more", "dim")]
    if aside:
        yield [Piece(f"  and {len(aside):,} tensors that no variable holds", "dim")]


def _closing(told: Told, mode: str) -> Iterator[Line]:
    recording = told.last.recording
    blind = unseen(recording)
    for note in [*recording["notes"], *([f"not looked into: {blind}"] if blind else [])]:
        yield [Piece(f"note: {harmless(note)}", "dim")]
    if told.last.failed and not told.outcomes:
        yield [Piece(f"the program failed: {harmless(told.last.failure)}", "bold red")]
    elif not told.exit_code:
        yield [_flowing(told.last)]
    elif any(outcome.written for outcome in told.outcomes):
        yield [Piece("written: " + ", ".join(harmless(o.path) for o in told.outcomes if o.written), "bold")]
    elif mode == "list" and any(outcome.after is not None for outcome in told.outcomes):
        yield [Piece("--diff shows the rewrite, --apply writes it.")]


def _flowing(seen: Facts) -> Piece:
    """That gradients flow; and where they don't, what is frozen, or whom nobody has seen step."""
    steps, missed, apart = seen.recording["steps"], seen.missed, seen.recording["apart"]
    still = [name for name, count in steps.items() if not count]
    frozen = [name for name, why in seen.recording["reasons"].items() if why == "frozen"]
    said = [f"gradients flow to {len(seen.fine)} of {len(seen.fine | missed)} parameters"] if missed else []
    said = said or ["gradients flow"]
    if frozen:
        said.append(f"frozen: {listed(frozen)}")
    if still:
        moved = listed([f"{count} of {name}" for name, count in steps.items() if count]) or "none"
        said.append(f"never stepped: {listed(still)} (steps seen: {moved})")
    said += apart
    return Piece(harmless("; ".join(said)), "bold yellow" if missed or still or apart else "bold green")


def fields(told: Told) -> dict[str, Any]:
    """The report as JSON."""
    text = StringIO()
    findings_as_json(Run(tuple(_unwritten(told)), "list"), text, View("json"))
    patch = StringIO()
    diff(Run(told.outcomes, "diff"), patch, View())
    recording = told.last.recording
    return {
        "flows": not told.exit_code
        and not told.last.missed
        and all(recording["steps"].values())
        and not recording["apart"],
        "steps": recording["steps"],
        "processes_differ": recording["apart"],
        "could_not_run": told.broken or None,
        "error": told.first.recording["error"],
        "findings": json.loads(text.getvalue()),
        "recorded": list(told.first.defects),
        "in_libraries": list(told.foreign),
        "gradients": dict(told.last.norms),
        "without_gradient": recording["reasons"],
        "verdicts": [v.to_json() for outcome in told.outcomes for v in outcome.verdicts],
        "written": [outcome.path for outcome in told.outcomes if outcome.written],
        "diff": patch.getvalue(),
        "notes": recording["notes"],
        "not_looked_into": recording["blind"],
        "torch": recording["torch"],
    }
