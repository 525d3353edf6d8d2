"""The pipeline for one file, from source to edits, until nothing is left to apply. Pure; never raises."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Protocol, TypeAlias

from gradfix import garbage
from gradfix import suppressions as comments
from gradfix.applied import Applied
from gradfix.findings import Candidate, Seen, look
from gradfix.outcome import Outcome
from gradfix.patch import LineMap, unified
from gradfix.plan import Plan
from gradfix.rule import Finding
from gradfix.source import Failure, Foreign, Source, Stage, parse

ROUNDS = 12
"""More rounds than any chain of rewrites takes; a file that needs more is not settling."""

UNSETTLED = "the rewrite that usually mends this does not settle here"

Known: TypeAlias = "Counter[tuple[str, int]]"
"""Findings that are not to be shown or mended, as code and line."""


@dataclass(slots=True)
class Progress:
    """How far the work on a file has come, for the report of what stopped it."""

    stage: Stage = "parse"


class Choice(Protocol):
    """Who says what is done to a text next."""

    @property
    def plan(self) -> Plan:
        """What is looked for."""

    @property
    def rounds(self) -> int:
        """How often something may be done before it counts as not settling."""

    @property
    def withheld(self) -> Collection[str]:
        """The codes of rules that are known not to settle here."""

    def next(self, seen: Seen) -> tuple[str, list[Finding]]:
        """The text that comes next, and what is mended in it; the same text ends it."""


@dataclass(frozen=True, slots=True)
class Everything:
    """All that may be applied, as much of it at once as doesn't touch each other."""

    plan: Plan
    rounds: int = ROUNDS
    withheld: Collection[str] = ()

    def next(self, seen: Seen) -> tuple[str, list[Finding]]:
        """The text with one set of fixes that don't touch each other, and what they mend."""
        from gradfix.edits import apply, compatible

        wanted = [(c.finding, c.fix) for c in seen.candidates if c.fix and self.plan.applies(c.finding)]
        if not wanted or seen.tree is None:
            return seen.source.text, []
        chosen = [wanted[i] for i in compatible(seen.tree, [fix.edits for _, fix in wanted])]
        text = apply(seen.tree, [edit for _, fix in chosen for edit in fix.edits])
        return text, [finding for finding, _ in chosen]


class UnreadableError(Exception):
    """A rewritten text that is not Python."""


class UnsettledError(Exception):
    """A rule finds the same again in what it has rewritten."""

    def __init__(self, code: str) -> None:
        self.code = code


def fix(path: str, content: bytes, plan: Plan, known: Known | None = None) -> Outcome:
    """Find what breaks gradients in a file, and the complete text with everything mended that may be."""
    return chosen(path, content, Everything(plan), known)


def chosen(path: str, content: bytes, choice: Choice, known: Known | None = None) -> Outcome:
    """The same, with what somebody chooses."""
    return _guarded(path, lambda progress: _fix(path, content, choice, known or Counter(), progress))


def found(path: str, content: bytes, plan: Plan) -> Outcome:
    """Find what breaks gradients in a file, and leave for later how each would be mended."""

    def listing(progress: Progress) -> Outcome:
        seen = _looked(path, content, plan, progress, mending=False)
        return listed(path, seen) if isinstance(seen, Seen) else seen

    return _guarded(path, listing)


@garbage.seldom()
def _guarded(path: str, work: Callable[[Progress], Outcome]) -> Outcome:
    """The one place where a file's troubles end: the run goes on."""
    progress = Progress()
    try:
        return work(progress)
    except Exception as error:
        return Outcome(path, failure=Failure(progress.stage, _reason(error)))


def ignore(path: str, content: bytes, plan: Plan, known: Known | None = None) -> Outcome:
    """The outcome whose new text silences everything found today."""
    found = fix(path, content, plan, known)
    source = parse(path, content)
    if not found.findings or isinstance(source, Failure):
        return found
    lines: dict[int, set[str]] = {}
    for finding in found.findings:
        lines.setdefault(finding.span.line, set()).add(finding.code)
    after = source.encode(comments.added(source, lines))
    left = fix(path, after, plan)
    if left.failure is not None:
        return replace(found.unmended, failure=left.failure)
    silenced = tuple(finding for finding in found.findings if finding not in left.findings)
    silent = replace(found, after=after, remaining=left.findings, failure=None)
    return replace(silent, applied=silenced, fixed_at=())


def moves(old: Source, new: Source) -> LineMap:
    """Where the lines of an old text are in a new one."""
    return LineMap(unified("file", old.program, new.program))


def known(findings: Iterable[Finding], lines: LineMap) -> Known:
    """Findings of an earlier text, by the lines that they stand on in a later one."""
    return _moved(Counter((finding.code, finding.span.line) for finding in findings), lines)


def _looked(
    path: str, content: bytes, plan: Plan, progress: Progress, mending: bool = True
) -> Seen | Outcome:
    """The first look at a file; what came of it where there is nothing to look at."""
    source = parse(path, content)
    if isinstance(source, Foreign):
        return Outcome(path, skipped=source.reason)
    if isinstance(source, Failure):
        return Outcome(path, failure=source)
    silencing = comments.read(source)
    if silencing.skip_file:
        return Outcome(path, skipped="# gradfix: skip-file")
    progress.stage = "tape"
    return look(source, silencing, plan, mending)


def _fix(path: str, content: bytes, choice: Choice, known: Known, progress: Progress) -> Outcome:
    seen = _looked(path, content, choice.plan, progress)
    if isinstance(seen, Outcome):
        return seen
    first, source = without(known, seen), seen.source
    if not first.candidates:
        return listed(path, first)
    progress.stage = "rewrite"
    try:
        first, last, applied = _mended(first, choice, known)
    except UnreadableError as error:
        return replace(listed(path, first), failure=Failure("check", str(error)))
    after = last.source.content if last.source is not source else None
    told = replace(listed(path, first), after=after, cells_after=last.source.cells)
    return applied.told(replace(told, remaining=last.findings))


def listed(path: str, seen: Seen) -> Outcome:
    """An outcome in which nothing is rewritten."""
    return Outcome(
        path,
        findings=seen.findings,
        before=seen.source.content if seen.findings else None,
        remaining=seen.findings,
        encoding=seen.source.encoding,
        cells=seen.source.cells,
        suppressed=seen.suppressed,
        unused_suppressions=seen.unused,
        doubtful_suppressions=seen.doubtful,
        silences=seen.silences,
        too_complex=seen.too_complex,
    )


def _mended(first: Seen, choice: Choice, known: Known) -> tuple[Seen, Seen, Applied]:
    """The first look, the last one and what was rewritten, without the rules that would not settle here."""
    withheld = set(choice.withheld)
    while True:
        begun = _withholding(first, withheld)
        try:
            return begun, *_settled(begun, choice, known, withheld)
        except UnsettledError as error:
            withheld.add(error.code)


def _withholding(seen: Seen, withheld: Collection[str]) -> Seen:
    """A look in which the findings of some rules are for the user to mend."""
    if not withheld:
        return seen
    candidates = (
        Candidate(replace(c.finding, safety=None, says="", unsafe="", edits=(), decline=UNSETTLED), None)
        if c.fix and c.finding.code in withheld
        else c
        for c in seen.candidates
    )
    return replace(seen, candidates=tuple(candidates))


def _settled(first: Seen, choice: Choice, known: Known, withheld: Collection[str]) -> tuple[Seen, Applied]:
    """Rewrite and look again until nothing is left to apply."""
    seen = first
    applied = Applied()
    for _ in range(choice.rounds):
        text, mended = choice.next(seen)
        if text == seen.source.text:
            return seen, applied
        applied.add(mended)
        seen = _withholding(_again(first, seen.source.encode(text), choice.plan, known), withheld)
    raise UnsettledError(applied.findings[-1].code)


def _again(first: Seen, content: bytes, plan: Plan, known: Known) -> Seen:
    source = parse(first.source.path, content)
    if isinstance(source, Failure):
        raise UnreadableError(f"the rewritten text does not parse: {source.reason} (line {source.line})")
    seen = look(source, comments.read(source), plan)
    if not known:
        return seen
    return without(_moved(known, moves(first.source, source)), seen)


def _moved(known: Known, lines: LineMap) -> Known:
    """Known findings, by the lines that they stand on in a later text."""
    moved: Known = Counter()
    for (code, line), count in known.items():
        after = lines.after(line)
        if after is not None:
            moved[code, after] += count
    return moved


def without(known: Known, seen: Seen) -> Seen:
    """Leave out as many findings of a code on a line as were there before."""
    left = known.copy()
    fresh = []
    for candidate in seen.candidates:
        key = (candidate.finding.code, candidate.finding.span.line)
        if left[key] > 0:
            left[key] -= 1
        else:
            fresh.append(candidate)
    return replace(seen, candidates=tuple(fresh))


def _reason(error: Exception) -> str:
    """What went wrong and where in gradfix, on one line."""
    import traceback

    frame = traceback.extract_tb(error.__traceback__)[-1]
    said = " ".join(str(error).split())
    return f"{type(error).__name__}: {said} ({PurePath(frame.filename).name}:{frame.lineno})"
