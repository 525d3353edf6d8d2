"""A notebook's findings where people look for them, in its cells, and where tools do, in its file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING

from gradfix.defects import Evidence, Span
from gradfix.outcome import Cells, Outcome
from gradfix.places import lines
from gradfix.rule import TextEdit
from gradfix.source import Source, parse
from gradfix.source import by_cell as in_cells

if TYPE_CHECKING:
    from gradfix.defects.reasons import Reason
    from gradfix.notebook import Notebook
    from gradfix.outcome import Run
    from gradfix.rule import Finding
    from gradfix.why.answers import Answer, Culprit


def placed(run: Run, name: str) -> Run:
    """The run with the places of what lies in notebooks as a format has them."""
    if name in ("json", "statistics") or not any(outcome.cells for outcome in run.outcomes):
        return run
    return in_file(run) if name in ("github", "gitlab", "sarif", "rdjson") else by_cell(run)


def by_cell(run: Run) -> Run:
    """The run as if each cell of a notebook were a file of its own."""
    return replace(run, outcomes=tuple(one for outcome in run.outcomes for one in _by_cell(outcome)))


def cell_path(outcome: Outcome, cell: int | None) -> str:
    """How a place in a cell begins."""
    return in_cell(outcome.path, cell)


def in_cell(path: str, cell: int | None) -> str:
    """A path with the number of a cell."""
    return path if cell is None else f"{path}:cell {cell}"


def culprits_by_cell(answer: Answer) -> list[Culprit]:
    """The culprits of a traceback in the same way."""
    return [_culprit_by_cell(each, answer.cells.get(each.suspect.path, ())) for each in answer.culprits]


def _culprit_by_cell(culprit: Culprit, cells: Cells) -> Culprit:
    suspect, whole = culprit.suspect, culprit.texts.get(culprit.suspect.path, ())
    outcome = Outcome(suspect.path, cells=cells)
    cell, _ = outcome.at(suspect.span.line)
    if cell is None:
        return culprit
    path, ends = in_cell(suspect.path, cell), [*(start - 1 for _, start in cells[1:]), len(whole)]
    texts = {
        in_cell(suspect.path, number): whole[start:end]
        for (number, start), end in zip(cells, ends, strict=True)
    }
    finding = suspect.finding and finding_in_cell(suspect.finding, outcome, path)
    span = lowered(suspect.span, outcome)
    return replace(
        culprit,
        suspect=replace(suspect, path=path, span=span, finding=finding),
        texts={**culprit.texts, **texts},
    )


def _by_cell(outcome: Outcome) -> Iterator[Outcome]:
    if not outcome.cells or not outcome.before:
        yield outcome
        return
    before = _texts(outcome, outcome.shown_bytes)
    after = _texts(outcome, outcome.after) if outcome.after is not None and not outcome.written else before
    for number, text in before.items():
        path = cell_path(outcome, number)
        findings = [one for one in outcome.shown if outcome.at(one.span.line)[0] == number]
        yield Outcome(
            path,
            findings=tuple(finding_in_cell(finding, outcome, path) for finding in findings),
            before=text,
            after=after[number] if after[number] != text else None,
            verdicts=outcome.verdicts if after[number] != text else (),
        )


def _texts(outcome: Outcome, content: bytes) -> dict[int, bytes]:
    """The text of each cell, with an end to its last line."""
    source = parse(outcome.path, content)
    assert isinstance(source, Source) and source.notebook is not None  # it was read before
    return in_cells(source)


def finding_in_cell(finding: Finding, outcome: Outcome, path: str) -> Finding:
    """A finding with its lines counted from the beginning of cells; what lies in others has their names."""

    def placed(step: Evidence) -> Evidence:
        if step.path is not None:
            return step
        where = cell_path(outcome, outcome.at(step.span.line)[0])
        return replace(step, span=lowered(step.span, outcome), path=None if where == path else where)

    return replace(
        finding,
        span=lowered(finding.span, outcome),
        evidence=tuple(map(placed, finding.evidence)),
        unknowns=tuple(_known_in(reason, outcome) for reason in finding.unknowns),
    )


def _known_in(reason: Reason, outcome: Outcome) -> Reason:
    of = _known_in(reason.of, outcome) if reason.of is not None else None
    if reason.span is None or reason.path is not None:
        return replace(reason, of=of)
    where = cell_path(outcome, outcome.at(reason.span.line)[0])
    return replace(reason, of=of, span=lowered(reason.span, outcome), path=where)


def lowered(span: Span, outcome: Outcome) -> Span:
    return replace(span, line=outcome.at(span.line)[1], end_line=outcome.at(span.end_line)[1])


def in_file(run: Run) -> Run:
    """The run with the places of a notebook's findings as they are in its file, for tools that open that."""
    return replace(run, outcomes=tuple(map(_in_file, run.outcomes)))


def _in_file(outcome: Outcome) -> Outcome:
    source = parse(outcome.path, outcome.shown_bytes) if outcome.cells and outcome.before else None
    if not isinstance(source, Source) or source.notebook is None:
        return outcome
    findings = tuple(_filed(finding, outcome, source) for finding in outcome.shown)
    return replace(
        outcome, cells=(), before=outcome.shown_bytes, findings=findings, written=False, after=None
    )


def _filed(finding: Finding, outcome: Outcome, source: Source) -> Finding:
    notebook = source.notebook
    assert notebook is not None
    cell, line = outcome.at(finding.span.line)

    def placed(step: Evidence) -> Evidence:
        return step if step.path is not None else replace(step, span=notebook.in_file(step.span))

    return replace(
        finding,
        message=f"{finding.message} (cell {cell}, line {line})",
        span=notebook.in_file(finding.span),
        evidence=tuple(map(placed, finding.evidence)),
        unknowns=tuple(_known_in(reason, outcome) for reason in finding.unknowns),
        edits=_edits(finding, source, notebook),
    )


def _edits(finding: Finding, source: Source, notebook: Notebook) -> tuple[TextEdit, ...]:
    """The rewrite as one stretch of the file."""
    if not finding.edits:
        return ()
    old, new = notebook.raw, source.encode(_edited(source.text, finding.edits)).decode(source.encoding)
    rest = min(len(old), len(new))
    head = next((i for i in range(rest) if old[i] != new[i]), rest)
    tail = next((i for i in range(rest - head) if old[-1 - i] != new[-1 - i]), rest - head)
    first, last = notebook.place(head), notebook.place(len(old) - tail)
    return (TextEdit(first[0], first[1] + 1, last[0], last[1] + 1, new[head : len(new) - tail]),)


def _edited(text: str, edits: Iterable[TextEdit]) -> str:
    """A text with edits, which are placed by line and column."""
    starts = [0, *accumulate(map(len, lines(text)))]
    for edit in sorted(edits, key=lambda edit: (edit.line, edit.column), reverse=True):
        start, end = starts[edit.line - 1] + edit.column - 1, starts[edit.end_line - 1] + edit.end_column - 1
        text = text[:start] + edit.text + text[end:]
    return text
