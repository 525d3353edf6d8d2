"""The closing words of a run, for a person: what failed and why, what was found, what can be done."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from operator import itemgetter
from typing import TYPE_CHECKING, TextIO

from gradfix.report.cells import cell_path, placed
from gradfix.report.diff import counted, root
from gradfix.report.screen import Line, Piece, harmless, write
from gradfix.report.wording import impacts, plural
from gradfix.rule import Safety

if TYPE_CHECKING:
    from gradfix.outcome import Failure, Outcome, Run, View
    from gradfix.tape.analysis import Silence


READING = "What it shows of notebooks is for reading: `git apply --exclude '*.ipynb:*'` takes the rest."


def failed(outcome: Outcome, failure: Failure) -> Line:
    """Name a file that could not be worked on, with the reason."""
    cell = f":cell {failure.cell}" if failure.cell else ""
    line = f":{failure.line}" if failure.line else ""
    place = f"{harmless(outcome.path)}{cell}{line}: "
    return [
        Piece(place, "bold"),
        Piece("failed", "bold red"),
        Piece(f" ({failure.stage}): {harmless(failure.reason)}"),
    ]


def _note(outcome: Outcome, line: int, text: str) -> Line:
    place = f"{_place(outcome, line)}: " if line else f"{harmless(outcome.path)}: "
    return [Piece(place + harmless(text), "dim")]


def _place(outcome: Outcome, line: int) -> str:
    """A line of a file, or of a notebook's cell."""
    cell, own = outcome.at(line)
    return f"{harmless(cell_path(outcome, cell))}:{own}"


def _notes(outcome: Outcome) -> Iterator[Line]:
    """What only `--verbose` tells: where gradfix kept silent, and why."""
    if outcome.skipped:
        yield _note(outcome, 0, f"skipped: {outcome.skipped}")
    if outcome.too_complex:
        yield _note(outcome, 0, f"too complex: {outcome.too_complex}")
    for silence in outcome.silences:
        yield _note(outcome, silence.span.line, f"silent: {_told(silence)}")
    for unused in outcome.unused_suppressions:
        yield _note(outcome, unused.line, f"silences nothing: {unused.text}")


def _told(silence: Silence) -> str:
    """Why nothing is said, and what would settle it where that is known."""
    settled = f"; settled by {silence.unknown.settled_by}" if silence.unknown is not None else ""
    return silence.reason + settled


def _doubts(outcome: Outcome) -> Iterator[Line]:
    """The suppressions that may not do what was meant."""
    for each in outcome.doubtful_suppressions:
        place = f"{_place(outcome, each.line)}: "
        told = f" (`{harmless(each.text)}`): {harmless(each.doubt)}"
        yield [Piece(place, "bold"), Piece("warning", "bold yellow"), Piece(told)]


def _files(run: Run) -> str:
    gated = sum(outcome.gated for outcome in run.outcomes)
    skipped = sum(bool(outcome.skipped) for outcome in run.outcomes)
    failed = sum(1 for _ in run.failed())
    counts = {"without autograd": gated, "skipped": skipped, "failed": failed}
    said = [f"{count:,} {what}" for what, count in counts.items() if count]
    aside = f" ({', '.join(said)})" if said else ""
    of = f" of {_repositories(run)}" if run.repositories else ""
    return plural(len(run.outcomes), "file") + of + aside


def _repositories(run: Run) -> str:
    several = len(run.repositories)
    return "1 repository" if several == 1 else f"{several:,} repositories"


def _by_repository(run: Run) -> Iterator[Line]:
    """What there is in each of several repositories: those without anything aren't worth a line."""
    for path, part in run.repositories.items():
        fixed = sum(len(outcome.applied) for outcome in part.outcomes if outcome.written)
        left = [finding for _, finding in part.findings()]
        said = [f"{plural(fixed, 'finding')} {DONE.get(part.mode, 'fixed')}"] if fixed else []
        said += [f"{plural(len(left), 'finding')}{' left' if fixed else ''}: {impacts(left)}"] if left else []
        if said:
            yield [Piece(f"{harmless(path)}: ", "bold"), Piece(", ".join(said))]


def _offer(mended: int, unsafe: int, found: int) -> str:
    """Say which commands show and write the fixes: one may mend several findings."""
    if mended:
        some = "1 fix" if mended == 1 else f"{mended:,} fixes"
        fixes = {1: "the fix", 2: "both fixes"}.get(mended, "all fixes") if mended == found else some
        more = f"; {unsafe:,} more with --unsafe-fixes" if unsafe else ""
        return f" --diff shows {fixes}, --apply writes {'it' if mended == 1 else 'them'}{more}."
    return f" --unsafe-fixes --diff shows {plural(unsafe, 'rewrite')}." if unsafe else ""


def _listed(run: Run, view: View) -> str:
    found = [finding for _, finding in run.findings()]
    if not run.outcomes and not view.verbose:
        return ""
    left = [finding for outcome in run.outcomes for finding in outcome.remaining]
    unsafe = sum(finding.applicability == "unsafe" for finding in left)
    what = f": {impacts(found)}." if found else "."
    mended = sum(len(outcome.applied) for outcome in run.outcomes)
    offer = _offer(mended, unsafe, len(found))
    return f"{plural(len(found), 'finding')} in {_files(run)}{what}{offer}"


def _mended(run: Run, view: View) -> str:
    fixed = [finding for outcome in run.outcomes if outcome.written for finding in outcome.applied]
    files = sum(outcome.written for outcome in run.outcomes)
    left = [finding for _, finding in run.findings()]
    if not fixed and not left and not view.verbose:
        return ""
    done = f"{plural(len(fixed), 'finding')} fixed in {plural(files, 'file')}"
    if not left:
        return f"{done}."
    unsafe = sum(finding.applicability == "unsafe" for finding in left)
    offer = f" --unsafe-fixes rewrites {unsafe:,}." if unsafe else ""
    return f"{done}, {len(left):,} left: {impacts(left)}.{offer}"


def _fixed(outcome: Outcome) -> Iterator[Line]:
    """What was mended in a file, by the lines of its new text."""
    pairs = zip(outcome.fixed_at, outcome.applied, strict=True) if outcome.written else ()
    for line, finding in sorted(pairs, key=itemgetter(0)):
        said = f" ({finding.safety.value})" if finding.safety is Safety.UNSAFE else ""
        yield [
            Piece(f"{_place(outcome, line)}: ", "bold"),
            Piece(f"fixed{said}", "bold green"),
            Piece(f" {finding.code} {finding.rule}: {harmless(finding.says)}"),
        ]


def _reviewed(run: Run, view: View) -> str:
    """What somebody made of the findings: they have seen them, so none is listed again."""
    written = [outcome for outcome in run.outcomes if outcome.written]
    fixed = sum(len(outcome.applied) for outcome in written)
    silenced = sum(outcome.silenced for outcome in written)
    left = [finding for _, finding in run.findings()]
    files = sum(bool(outcome.applied) for outcome in written)
    done = [f"{plural(fixed, 'finding')} fixed in {plural(files, 'file')}"]
    done += [f"{silenced:,} silenced"] if silenced else []
    done += [f"{len(left):,} left: {impacts(left)}"] if left else []
    return f"{', '.join(done)}." if fixed or silenced or left or view.verbose else ""


def _silenced(run: Run, view: View) -> str:
    written = [outcome for outcome in run.outcomes if outcome.written]
    count = sum(len(outcome.applied) for outcome in written)
    return f"{plural(count, 'finding')} silenced in {plural(len(written), 'file')}."


def _proposed(run: Run, view: View) -> str:
    counts = counted(placed(run, "diff"))
    files = sum(outcome.after is not None for outcome in run.outcomes)
    remaining = [finding for outcome in run.outcomes for finding in outcome.remaining]
    unsafe = sum(finding.applicability == "unsafe" for finding in remaining)
    left = len(remaining) - unsafe
    more = (
        f"--unsafe-fixes --diff shows {plural(unsafe, 'rewrite')}{' more' * bool(counts.files)}."
        if unsafe
        else ""
    )
    by_hand = f"{plural(left, 'finding')} without a rewrite here: gradfix without --diff lists what to do."
    rest = " ".join(filter(None, (more, by_hand if left else "")))
    if not counts.files:
        return f"Nothing to rewrite. {rest}" if rest or view.verbose else ""
    hunks = f"{plural(files, 'file')}, {plural(counts.hunks, 'hunk')}"
    lines = f"{plural(counts.added, 'line')} added, {counts.removed:,} removed"
    writes = f"--apply writes {'it' if counts.hunks == 1 else 'them'}."
    reading = READING if any(one.cells and one.after is not None for one in run.outcomes) else ""
    return " ".join(filter(None, (f"{hunks}, {lines}.", writes, _begun(root(run)), reading, rest)))


def _begun(top: str) -> str:
    """Say where the diff is to be applied, where that is not here."""
    folder = shlex.quote(harmless(top))
    return f"The diff's names begin at {folder}: `git -C {folder} apply` takes it." if top else ""


DONE = {"add-ignore": "silenced"}
SAYINGS = {"list": _listed, "apply": _mended, "review": _reviewed, "add-ignore": _silenced, "diff": _proposed}


def render(run: Run, stream: TextIO, view: View) -> None:
    """Name the files that failed, then count; whoever asked for no list and gets nothing is told nothing."""
    lines = [failed(outcome, failure) for outcome, failure in run.failed()]
    lines += [doubt for outcome in run.outcomes for doubt in _doubts(outcome)]
    if view.verbose:
        lines += [note for outcome in run.outcomes for note in _notes(outcome)]
    if run.mode == "apply":
        lines += [fixed for outcome in run.outcomes for fixed in _fixed(outcome)]
    lines += _by_repository(run)
    if said := SAYINGS[run.mode](run, view):
        lines.append([Piece(said)])
    write(stream, lines, view.colour and stream.isatty())
