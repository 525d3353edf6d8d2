"""What happened to one file and to a whole run, as the reports read it.

The reports live in `gradfix.report`, behind one function that is imported only when there is something to
show: `gradfix.report.show.show(run: Run, view: View, out: TextIO, err: TextIO) -> None`. It prints findings
(or the diff, when `run.mode` is "diff") on `out`, failures and summaries on `err`. `gradfix.patch` makes
diffs (`unified(path, before, after) -> bytes`) and counts them (`count(diff) -> Counts`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from gradfix.neighbours import Reading
from gradfix.rule import Finding, Safety
from gradfix.source import Cells as Cells
from gradfix.source import Failure as Failure
from gradfix.source import Source, parse, placed_in
from gradfix.tape.analysis import Silence

if TYPE_CHECKING:
    from gradfix.verify import Verdict

Mode: TypeAlias = Literal["list", "diff", "apply", "review", "add-ignore"]
OutputFormat: TypeAlias = Literal["text", "concise", "json", "github", "gitlab", "sarif", "rdjson"]
"""What `--output-format` may be."""
RunFormat: TypeAlias = Literal["text", "json"]
"""What it may be for `gradfix run`."""


@dataclass(frozen=True, slots=True)
class UnusedSuppression:
    """A `# gradfix: ignore` comment that silences nothing."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class DoubtfulSuppression:
    """A `# gradfix: ignore` comment that may not do what was meant."""

    line: int
    text: str
    doubt: str
    """Why, and what to write."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What happened to one file. With a `failure` there is no `after`."""

    path: str
    """As the user will recognise it: relative to the working directory where the file lies below it."""
    findings: tuple[Finding, ...] = ()
    """What was found in `before`, suppressed ones left out, in order of place."""
    before: bytes | None = None
    """The file as it was read; kept only where there is a finding to show."""
    after: bytes | None = None
    """The complete new text, only where a rewrite exists."""
    remaining: tuple[Finding, ...] = ()
    """What is left in `after`; the same as `findings` where nothing is rewritten."""
    applied: tuple[Finding, ...] = ()
    """The findings that `after` mends, in the order in which they were rewritten."""
    fixed_at: tuple[int, ...] = ()
    """For each of `applied`, the line of `after` where its rewrite is."""
    encoding: str = "utf-8"
    """How `before` and `after` decode ("utf-8-sig" with a byte order mark)."""
    cells: Cells = ()
    """Of a notebook's cells, whose lines the findings count through, the number and the line before each."""
    cells_after: Cells = ()
    """The same in `after`."""
    failure: Failure | None = None
    gated: bool = False
    """True: nothing in it can concern autograd, so it was not parsed."""
    skipped: str = ""
    """Why the file was passed over on purpose (`# gradfix: skip-file`)."""
    suppressed: int = 0
    """How many findings `# gradfix: ignore` comments silence."""
    silenced: int = 0
    """How many findings somebody has silenced by comments in `after` when asked."""
    unused_suppressions: tuple[UnusedSuppression, ...] = ()
    doubtful_suppressions: tuple[DoubtfulSuppression, ...] = ()
    silences: tuple[Silence, ...] = ()
    """Where the tape could not decide and therefore says nothing; columns in characters from 0."""
    too_complex: str = ""
    """Where and why the tape gave up, "" when it did not."""
    written: bool = False
    """True: `after` is on disk, or what comes out in the place of standard input."""
    verdicts: tuple[Verdict, ...] = ()
    """What the judge says: of the file first, then of its findings. Empty unless asked for."""
    reading: Reading | None = None
    """What was read of other files for it, where that is to be known."""

    @property
    def unmended(self) -> Outcome:
        """The same with nothing rewritten."""
        return replace(self, after=None, applied=(), fixed_at=(), remaining=self.findings, silenced=0)

    def refused(self, reason: str) -> Outcome:
        """The same where the judge has found the new text worse: what was written in it is not safe."""
        applied = [(one.rule, one.message) for one in self.applied]

        def doubted(finding: Finding) -> Finding:
            written = finding.safety is Safety.SAFE and (finding.rule, finding.message) in applied
            return replace(finding, safety=Safety.UNSAFE, unsafe=reason) if written else finding

        return replace(
            self,
            findings=tuple(map(doubted, self.findings)),
            remaining=tuple(map(doubted, self.remaining)),
            applied=tuple(map(doubted, self.applied)),
        )

    def text(self, content: bytes) -> str:
        """The text whose lines count: of a notebook its cells, as they are there."""
        source = parse(self.path, content) if self.cells else None
        if isinstance(source, Source) and source.notebook is not None:
            return source.notebook.shown
        return content.decode(self.encoding, "replace")

    @property
    def shown(self) -> tuple[Finding, ...]:
        """The findings to list: those of the text that is on disk."""
        return self.remaining if self.written else self.findings

    @property
    def shown_bytes(self) -> bytes:
        """The text on disk, to which the places in `shown` refer."""
        return (self.after if self.written else self.before) or b""

    def at(self, line: int) -> tuple[int | None, int]:
        """The cell of a notebook in which a line of the text on disk is, and its line there."""
        cells = self.cells_after if self.written else self.cells
        return placed_in(cells, line)

    @property
    def lines(self) -> list[str]:
        """The lines of the text on disk, without their ends, split where Python splits them."""
        text = self.text(self.shown_bytes)
        return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


@dataclass(frozen=True, slots=True)
class RuleCard:
    """What a report may say about a rule."""

    code: str
    name: str
    summary: str
    """The first line of its documentation."""
    docs: str
    safety: Safety | None
    on_by_default: bool
    sometimes_unsafe: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """How the user wants to see a run."""

    output_format: OutputFormat = "text"
    colour: bool = False
    verbose: bool = False
    statistics: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """All outcomes of one invocation, in stable order."""

    outcomes: tuple[Outcome, ...]
    mode: Mode = "list"
    rules: Callable[[], tuple[RuleCard, ...]] = tuple
    """The rules that were selected, for the reports that list them."""
    repositories: Mapping[str, Run] = field(default_factory=dict)
    """Where several were listed, what came of each of them; together that is `outcomes`."""

    def findings(self) -> Iterator[tuple[Outcome, Finding]]:
        """Every finding to list, with its file."""
        return ((outcome, finding) for outcome in self.outcomes for finding in outcome.shown)

    def failed(self) -> Iterator[tuple[Outcome, Failure]]:
        """Every file that could not be worked on, with the reason."""
        return ((outcome, outcome.failure) for outcome in self.outcomes if outcome.failure)

    @property
    def unjudged(self) -> bool:
        """Whether a file was to be verified and no run could be judged."""
        return any(said.verdict == "could not run" for one in self.outcomes for said in one.verdicts)

    @property
    def exit_code(self) -> int:
        """0: nothing to report; 1: findings (with --diff: a diff); 2: a file failed, or could not be run."""
        if any(True for _ in self.failed()) or self.unjudged:
            return 2
        if self.mode == "add-ignore":
            return 0
        if self.mode == "diff":
            return int(any(outcome.after is not None for outcome in self.outcomes))
        return int(any(True for _ in self.findings()))
