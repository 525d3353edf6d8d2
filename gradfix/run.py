"""`gradfix run`: a program under the recorder, its broken rules to the codemods, until its gradients flow."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gradfix import engine, files
from gradfix.defects import KINDS, kind_of
from gradfix.defects.kinds import Family
from gradfix.outcome import Mode, Outcome
from gradfix.plan import Plan, tape
from gradfix.recorded import analysis_of, shown
from gradfix.rule import Finding
from gradfix.source import Failure
from gradfix.trace.report import RecordedDefect, Recording
from gradfix.verify import Command, Launcher, Limits, Verdict
from gradfix.verify.judge import Case, JudgeOptions, lasting, on_file
from gradfix.verify.launch import Job
from gradfix.verify.lines import kept_lines
from gradfix.verify.verdicts import Facts, cannot, facts

MOST_ROUNDS = 8
HANDED = "backward() was seen, only torch.autograd.grad, which hands out gradients and leaves .grad alone,"
ANYWHERE = "in this process, nor in one that it has started"
UNTOLD = "no gradient arrived, and why is silenced by the settings or a comment, or was asked for"


@dataclass(frozen=True, slots=True)
class Wish:
    """What to run and what may be done about it."""

    command: Command
    plan: Plan
    mode: Mode = "list"
    python: str | None = None
    limits: Limits = field(default_factory=Limits)
    echo: bool = True


@dataclass(frozen=True, slots=True)
class Told:
    """What came of it."""

    first: Facts
    last: Facts
    outcomes: tuple[Outcome, ...]
    foreign: tuple[Mapping[str, Any], ...] = ()
    """Defects whose culprit is in an installed library: never rewritten."""
    broken: str = ""
    """Why the program could not be run."""

    @property
    def exit_code(self) -> int:
        """0: gradients flow; 1: a defect, mended or not; 2: it could not be run."""
        if self.broken:
            return 2
        return int(bool(self.outcomes or self.foreign or unbounded(self.first)))


def notable(seen: Facts) -> list[Mapping[str, Any]]:
    """The defects of a recording that are more than style."""
    return [
        defect for defect in seen.defects if defect["kind"] in KINDS and not kind_of(defect["kind"]).style
    ]


def unbounded(seen: Facts) -> bool:
    """Whether a backward has left a gradient that is not finite."""
    return bool(seen.wild)


def causes(seen: Facts) -> list[Mapping[str, Any]]:
    """The defects to mend first: where a cut is known, the parameters behind it are only its effect."""
    found = notable(seen)
    effects = [defect for defect in found if kind_of(defect["kind"]).effect]
    cuts = [one for one in found if one not in effects and kind_of(one["kind"]).family is Family.SEVERED]
    return [defect for defect in found if not cuts or defect not in effects]


def unheard(seen: Facts) -> str:
    """Why a run of which no defect is told says nothing about gradients."""
    if unbounded(seen):
        return ""
    how = seen.recording["how"]
    if seen.failed and how != "exit":
        return "; ".join([f"the program failed ({seen.failure})", *seen.recording["apart"]])
    if notable(seen) and not seen.fine:
        return UNTOLD
    if how == "stopped" and not seen.fine:
        return (
            "it was stopped after enough steps, and until then no backward had given a gradient to a "
            "parameter; --max-steps lets it run longer"
        )
    if how in ("finished", "exit") and not seen.fine:
        return f"no {'backward was seen' if not seen.handed else HANDED} {ANYWHERE}"
    return ""


def with_style(plan: Plan) -> Plan:
    """A plan that also selects what is legal and only bad style."""
    selected = (*plan.config.extend_select, *sorted(name for name, kind in KINDS.items() if kind.style))
    return replace(plan, config=replace(plan.config, extend_select=selected))


def in_style(seen: Facts) -> list[Mapping[str, Any]]:
    """What torch allows and some forbid: backward under no_grad, any write on a tensor of the graph."""
    found: list[Mapping[str, Any]] = [one for one in seen.defects if kind_of(one["kind"]).style]
    writes = (event for event in seen.recording["events"] if event["event"] == "write")
    legal = [
        RecordedDefect(
            event="defect",
            kind="inplace_on_graph_tensor",
            place=event["place"],
            evidence=[],
            torch_says="",
            facts={},
        )
        for event in writes
    ]
    broken = [defect["place"] for defect in notable(seen)]
    return [defect for defect in (*found, *legal) if defect["place"] not in broken]


def run(wish: Wish, launcher: Launcher | None = None) -> Told:
    """Run, mend, run again; until it is clean, or nothing more can be rewritten."""
    with contextlib.ExitStack() as stack:
        rounds = Rounds(wish, launcher or stack.enter_context(Launcher(wish.python)))
        first = rounds.record()
        if unbounded(first):
            rounds.hunt = True
            first = rounds.record()
        broken = unheard(first) or cannot(first.recording, wish.limits.seconds, wish.limits.memory)
        if broken and not notable(first):
            return Told(first, first, (), broken=broken)
        last = rounds.mend(first)
        rounds.weigh(first, last)
    outcomes = tuple(rounds.outcome(path, first, last) for path in rounds.told())
    if not outcomes and not rounds.foreign:
        return Told(first, last, (), broken=broken)
    if wish.mode == "apply":
        outcomes = tuple(files.written(accepted(outcome)) for outcome in outcomes)
    return Told(first, last, outcomes, tuple(rounds.foreign))


class Rounds:
    """The texts as they stand after each round, and what was found on the way."""

    def __init__(self, wish: Wish, launcher: Launcher) -> None:
        self.wish = wish
        self.launcher = launcher
        self.cwd = os.getcwd()
        self.before: dict[str, bytes] = {}
        self.after: dict[str, bytes] = {}
        self.findings: dict[str, list[Finding]] = {}
        self.applied: dict[str, list[Finding]] = {}
        self.left: dict[str, tuple[Finding, ...]] = {}
        self.failures: dict[str, Failure] = {}
        self.foreign: list[Mapping[str, Any]] = []
        self.echo = wish.echo
        self.hunt = False
        self.changed = ""
        """What was changed besides the gradients that were lost."""

    def record(self) -> Facts:
        """The program with the texts as they stand; its output passes through the first time only."""
        job = Job(self.wish.command, self.cwd, self.after, self.wish.limits, self.echo, self.hunt)
        self.echo = False
        recording: Recording = self.launcher.run(job)
        return facts(recording)

    def mend(self, seen: Facts) -> Facts:
        """Hand each defect to its codemod, and look again."""
        for _ in range(MOST_ROUNDS):
            events: dict[str, list[Mapping[str, Any]]] = {}
            for event in [*causes(seen), *filter(self._selected, in_style(seen))]:
                events.setdefault(event["place"]["file"], []).append(event)
            changed = [path for path, found in events.items() if self._rewritten(path, found)]
            if not changed:
                return seen
            seen = self.record()
        return seen

    def _selected(self, event: Mapping[str, Any]) -> bool:
        return event["kind"] in self.wish.plan.rules(event["place"]["file"])

    def _rewritten(self, path: str, events: list[Mapping[str, Any]]) -> bool:
        text = self._text(path)
        if text is None:
            new = (event for event in events if event not in self.foreign)
            self.foreign.extend(filter(self._selected, new))
            return False
        outcome = self._fixed(path, text, events)
        known = self.findings.setdefault(path, [])
        if text == self.before[path]:
            known.extend(one for one in outcome.findings if one not in known)
        self.left[path] = outcome.findings
        if outcome.failure is not None:
            self.failures[path] = outcome.failure
        if outcome.after is None or outcome.after == text:
            return False
        self.after[path] = outcome.after
        self.applied.setdefault(path, []).extend(outcome.applied)
        return True

    def _fixed(self, path: str, text: bytes, events: list[Mapping[str, Any]]) -> Outcome:
        """The codemods on what was recorded; without the tape, where the tape fails on the file."""
        for play in (tape, None):
            plan = replace(self.wish.plan, analyse=analysis_of(path, text, events, play))
            outcome = engine.fix(path, text, plan)
            if outcome.failure is None or outcome.failure.stage != "tape":
                break
        return outcome

    def _text(self, path: str) -> bytes | None:
        """A file as it stands; None for what is not the user's to change."""
        if "site-packages" in path or "dist-packages" in path or not os.path.isfile(path):
            return None
        if path not in self.before:
            content = files.read(path)
            if isinstance(content, Failure):
                return None
            self.before[path] = content
        return self.after.get(path, self.before[path])

    def weigh(self, first: Facts, last: Facts) -> None:
        """What the rewrites have changed besides what was lost."""
        lines = {path: kept_lines(self.before[path], text) for path, text in self.after.items()}
        job = Job(self.wish.command, self.cwd, {}, self.wish.limits)
        if lines:
            self.changed = lasting(first, last, lines, lambda: self.launcher.run(job))

    def told(self) -> list[str]:
        """The files of which something is to be said."""
        return [path for path, findings in self.findings.items() if findings or path in self.failures]

    def outcome(self, path: str, first: Facts, last: Facts) -> Outcome:
        """What became of one file, with the judge's word on it."""
        before, after = self.before[path], self.after.get(path)
        applied = tuple(self.applied.get(path, ()))
        remaining = () if after is not None else self.left[path]
        outcome = Outcome(shown(path), tuple(self.findings[path]), before, after, remaining, applied)
        if after is None:
            return replace(outcome, failure=self.failures.get(path))
        lines = {path: kept_lines(before, after)}
        case = Case(first, last, lines, JudgeOptions(limits=self.wish.limits), self.before, self.changed)
        verdict: Verdict = replace(on_file(case, path, []), path=outcome.path)
        judged = replace(outcome, verdicts=(verdict,))
        return judged.refused(f"{JUDGE} {verdict.reason}") if verdict.verdict == "worse" else judged


JUDGE = "the run with it was worse:"


def accepted(outcome: Outcome) -> Outcome:
    """A file whose gradient was seen to arrive; the rest stays as it is."""
    flows = all(verdict.verdict in ("flows", "flows partly") for verdict in outcome.verdicts)
    return outcome if outcome.after is None or flows else outcome.unmended
