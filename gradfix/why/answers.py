"""From a paste to an answer: what torch's message means, what it proves, and who explains it, best first."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gradfix import engine, files, gate
from gradfix.config import Config
from gradfix.defects import kind_of
from gradfix.findings import LONGEST_CULPRIT
from gradfix.patch import unified
from gradfix.plan import Plan
from gradfix.rule import Finding, TextEdit
from gradfix.source import Cells, Source, by_cell, parse
from gradfix.why.flow import Flow
from gradfix.why.frames import Frame
from gradfix.why.pasted import lines
from gradfix.why.project import Project, Spot
from gradfix.why.readings import OF_A_BACKWARD, READINGS
from gradfix.why.said import Said, said_in
from gradfix.why.steps import may_be_weight
from gradfix.why.suspects import Agreement, Case, Sure, Suspect, merged
from gradfix.why.traces import traces

MOST_FILES = 40
MOST_WITHOUT_FRAMES = 600
MOST_PLAYED = 150
"""The files that are played where no frame says which."""
MOST_TOLD = 10
LEAST_TOLD = 2
"""A place of which less agrees isn't worth a word."""
LEAST_OF_BARE = 1
"""The same where the paste says so little that little can agree."""
LEAST_LIKELY = 8
AHEAD = 2
"""By how much the first has to agree better than the next to be called likely."""
FOUND = "the tape finds it"
ALLOWED = 1
"""What it counts that the tape sees a write which it takes to be legal."""
SHORTEST = 3
TAPE = 9
"""What the tape's own word counts, less one for each step down the list of kinds."""


@dataclass(frozen=True, slots=True)
class Culprit:
    """A suspect as a user reads it."""

    suspect: Suspect
    sure: Sure
    diff: bytes = b""
    encoding: str = "utf-8"
    texts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The lines of the files that it and its evidence lie in."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What can be said of a paste."""

    said: Said | None
    culprits: tuple[Culprit, ...] = ()
    spots: tuple[Spot, ...] = ()
    forward: tuple[Spot, ...] = ()
    heading: str = ""
    """What was asked, where it wasn't a traceback."""
    advice: str = ""
    error: str = ""
    """Why nothing can be said, and what to do."""
    raised: str = ""
    """What a traceback says that isn't about gradients."""
    cells: Mapping[str, Cells] = field(default_factory=dict)
    """Of each notebook the cells, with the line of its program that they stand behind."""

    @property
    def exit_code(self) -> int:
        """0: nothing to blame; 1: a line is named; 2: there was nothing to read."""
        return 2 if self.error else int(bool(self.culprits))


NOTHING_PASTED = (
    "no traceback in it: give the whole output from `Traceback (most recent call last)` on; "
    "`python PROGRAM 2>&1 | gradfix why -` takes it as it comes"
)
CUT_OFF = "the traceback ends before its last line, which says what was raised: give that line too"


def answer(text: str, paths: Sequence[str], plan: Plan) -> Answer:
    """Say who is at fault, as far as the files at these paths tell."""
    found = traces(lines(text))
    said = said_in(found, text)
    if said is None:
        if not found:
            return Answer(None, error=NOTHING_PASTED)
        if not found[-1].said:
            return Answer(None, error=CUT_OFF)
        return Answer(None, raised=found[-1].said)
    project = Project(paths, plan.config)
    spots = _own(project, said.trace.frames)
    forward = _own(project, said.trace.forward)
    case = Case(said, project, _flow(project, [*spots, *forward]), spots, forward)
    quoted = [] if case.reached and spots else _quoted(case)
    told = bool(spots or said.operation)
    reading = (replace(each, told=told) for each in _read(case))
    suspects = merged([*reading, *_played(case, plan), *quoted], case.flow.sources, case.raised)
    least = LEAST_TOLD if told else LEAST_OF_BARE
    worth = [each for each in suspects if each.points >= least]
    culprits = tuple(_told(each, worth, project) for each in worth[:MOST_TOLD])
    return Answer(said, culprits, spots, forward, cells=project.cells)


def _own(project: Project, frames: Iterable[Frame]) -> tuple[Spot, ...]:
    """The frames that lie in the project, each where its text has it."""
    spots = (project.spot(frame) for frame in frames)
    return tuple(spot for spot in spots if spot.found and project.source(spot.path))


def _flow(project: Project, spots: Sequence[Spot]) -> Flow:
    """The files of the frames and what they import; without frames all of a small project."""
    starts = dict.fromkeys(spot.path for spot in reversed(spots))
    if not starts:
        starts = dict.fromkeys(project.files) if len(project.files) <= MOST_WITHOUT_FRAMES else {}
    reached = project.reached(starts, MOST_FILES) if spots else list(starts)
    read = ((path, project.source(path)) for path in reached)
    return Flow({path: source for path, source in read if source is not None})


def _read(case: Case) -> Iterator[Suspect]:
    """What the text says by itself; of a bare message, for each backward that may have raised it."""
    for reading in case.said.message.readings:
        for one in case.each if reading in OF_A_BACKWARD else [case]:
            for suspect in READINGS[reading](one):
                yield _supposed(suspect, one, len(case.each)) if one.supposed else suspect


def _supposed(suspect: Suspect, case: Case, among: int) -> Suspect:
    """A suspect that stands with the backward that is supposed to have failed."""
    spot = case.spots[-1]
    where = f"{spot.path}, " if spot.path != suspect.path else ""
    told = f"assuming that it was the backward of {where}{case.line(spot.path, spot.line)}"
    return replace(suspect, assumes=(*suspect.assumes, told)) if among > 1 else suspect


def wide(config: Config) -> Config:
    """Every rule with its suspects, as the failure is a fact; nothing is rewritten over and over."""
    return replace(config, select=("ALL",), ignore=(), suspects=True, min_certainty="likely")


def found_in(path: str, plan: Plan) -> tuple[tuple[Finding, ...], bytes]:
    """All that the tape says of a file, suspects too."""
    content = files.read(path)
    if not isinstance(content, bytes) or not gate.passes(content, plan.config.frameworks):
        return (), b""
    return engine.fix(path, content, replace(plan, config=wide(plan.config))).findings, content


def _played(case: Case, plan: Plan) -> Iterator[Suspect]:
    """What the tape says of the files, where it would explain the message."""
    kinds = case.said.message.kinds
    few = case.spots or len(case.flow.sources) <= MOST_PLAYED
    for path in case.flow.sources if kinds and few else ():
        for finding in found_in(path, plan)[0]:
            if finding.rule in kinds:
                yield _of_finding(case, path, finding, kinds.index(finding.rule))


def _of_finding(case: Case, path: str, finding: Finding, rank: int) -> Suspect:
    style = kind_of(finding.rule).style
    agrees = [Agreement(ALLOWED if style else TAPE - min(rank, 5), FOUND)]
    if finding.certainty == "suspect":
        agrees.append(Agreement(-3, "the tape only suspects it"))
    agrees += _of_weights(case, finding)
    agrees += _agreements(case, path, finding)
    assumes = tuple(f"assuming that {each}" for each in finding.assumptions)
    return Suspect(path, finding.span, finding.message, tuple(agrees), assumes, "", finding)


def _of_weights(case: Case, finding: Finding) -> Iterator[Agreement]:
    """Whether what was written over is what a step writes: a weight, or a layer's view of one."""
    if case.said.message.name != "overwritten" or "version" not in case.said.facts:
        return
    weight = kind_of(finding.rule).weights
    if case.said.operation in ("t", "transpose") and not weight:
        yield Agreement(-4, "torch names a layer's view of its weight, and this writes no weight")
    elif not case.said.operation and not weight:
        yield Agreement(-3, "torch says that no operation has made what was written over")
    elif weight and may_be_weight(case):
        yield Agreement(3, "what was written over is a weight, as far as the message tells")


def _agreements(case: Case, path: str, finding: Finding) -> Iterator[Agreement]:
    """What of the trace and the message fits a finding."""
    told = {(path, line) for line in range(finding.span.line, finding.span.end_line + 1)}
    told |= {(step.path or path, step.span.line) for step in finding.evidence}
    back = case.backward
    if back is not None and (back.path, back.line) in told:
        yield Agreement(4, f"it ends at {case.line(back.path, back.line)}, where it failed")
    elif back is not None and any(step.role.name.startswith("BACKWARD") for step in finding.evidence):
        yield Agreement(-2, "its backward is another one")
    raised = case.raised
    if raised is not None and (raised.path, raised.line) in told and raised != back:
        yield Agreement(3, f"{case.line(raised.path, raised.line)} is on the way to what was raised")
    near = [spot for spot in case.forward if (spot.path, spot.line) in told]
    if near:
        yield Agreement(4, f"anomaly mode names {case.line(near[-1].path, near[-1].line)}")
    if len(case.said.operation) >= SHORTEST and any(
        _mentions(case, path, step.path, step.span.line) for step in finding.evidence
    ):
        yield Agreement(3, f"its lines name {case.said.operation}, as torch does")
    if any(step.path == path for step in case.way) or any(spot.path == path for spot in case.spots):
        yield Agreement(1, "it is on the way to the loss")


def _mentions(case: Case, path: str, other: str | None, line: int) -> bool:
    """Whether a line names the operation that the message names."""
    lines = case.project.lines(other or path)
    text = lines[line - 1] if 0 < line <= len(lines) else ""
    return case.said.operation in text.lower().replace("_", "")


def _quoted(case: Case) -> Iterator[Suspect]:
    """The line as the trace quotes it, where its file isn't at hand and torch raises at the culprit."""
    frames = [frame for frame in case.said.trace.frames if frame.path and not frame.foreign]
    if not frames or "raised" not in case.said.message.readings or not frames[-1].code:
        return
    frame, means = frames[-1], case.said.message
    code = frame.code[:LONGEST_CULPRIT]
    from gradfix.defects import Span

    place = Span(frame.line, 0, frame.line, 0)
    yield Suspect(
        frame.path, place, f"`{code}`: {means.means}", (Agreement(4, "torch raised here"),),
        ("assuming that the file still is what the traceback quotes",), means.then, code=frame.code,
    )  # fmt: skip


def _told(suspect: Suspect, among: Sequence[Suspect], project: Project) -> Culprit:
    """A suspect with how sure it is among the others, and its rewrite."""
    source = project.source(suspect.path) if not suspect.code else None
    diff = _diff(suspect, source) if source is not None else b""
    steps = suspect.finding.evidence if suspect.finding else ()
    paths = dict.fromkeys([suspect.path, *(step.path for step in steps if step.path)]) if source else {}
    texts = {path: project.shown(path) for path in paths}
    return Culprit(suspect, _sure(suspect, among), diff, source.encoding if source else "utf-8", texts)


def _sure(suspect: Suspect, among: Sequence[Suspect]) -> Sure:
    """How sure the best is, among the others; which of a pair is to change is left open."""
    first, rest = among[0], among[1:]
    if suspect is not first or (suspect.finding is None and not suspect.told):
        return "possible"
    finding = suspect.finding
    if finding is not None and kind_of(finding.rule).pair:
        return "possible"
    equals = any(other.points >= suspect.points for other in rest)
    proven = (
        finding is not None
        and finding.certainty != "suspect"
        and not kind_of(finding.rule).style
        and any(each.points >= 3 and each.says != FOUND for each in suspect.agrees)
    )
    if suspect.raised or (proven and not equals):
        return "shown"
    ahead = not rest or suspect.points >= rest[0].points + AHEAD
    return "likely" if suspect.points >= LEAST_LIKELY and ahead else "possible"


def _diff(suspect: Suspect, source: Source) -> bytes:
    """The rewrite of this one place."""
    edits = suspect.finding.edits if suspect.finding else ()
    if not edits:
        return b""
    after = source.encode(edited(source.text, edits))
    path = suspect.path if not os.path.isabs(suspect.path) else os.path.relpath(suspect.path)
    if source.notebook is None:
        return unified(path, source.content, after)
    written = parse(suspect.path, after)
    assert isinstance(written, Source)  # it was rewritten within its cells
    new = by_cell(written)
    return b"".join(unified(f"{path}:cell {n}", text, new[n]) for n, text in by_cell(source).items())


def edited(text: str, edits: Iterable[TextEdit]) -> str:
    """A text with some of its stretches replaced."""
    from gradfix.places import lines as split

    starts = [0]
    for line in split(text):
        starts.append(starts[-1] + len(line))
    for edit in sorted(edits, key=lambda each: (each.line, each.column), reverse=True):
        start = starts[edit.line - 1] + edit.column - 1
        end = starts[edit.end_line - 1] + edit.end_column - 1
        text = text[:start] + edit.text + text[end:]
    return text
