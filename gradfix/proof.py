"""What --verify adds to a session: every rewrite goes to the judge, and only what flows is written."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing import active_children
from typing import Literal

from gradfix import engine, session
from gradfix.driven import Driving
from gradfix.driver.given import Project
from gradfix.outcome import Outcome, Run
from gradfix.plan import Plan
from gradfix.pool import usable_cpus
from gradfix.rule import Finding
from gradfix.verify import Claim, Command, JudgeOptions, Launcher, Limits, Verdict, judge
from gradfix.verify.lanes import Lanes, room
from gradfix.verify.launch import NOTEBOOK

LENIENT = {"flows", "not reached", "not reproduced"}
"""What `--verify=lenient` writes: what flows, and what a run that was seen through has not shown."""


FEW = 32
"""So many files are read sooner than torch is imported, and both can go on at once."""


@dataclass(frozen=True, slots=True)
class Proving:
    """How the user wants rewrites to be verified."""

    strictness: Literal["strict", "lenient"] = "strict"
    command: Command | None = None
    """What exercises the files; None: each file is a script of its own."""
    python: str | None = None
    limits: Limits = field(default_factory=Limits)
    seconds: float = 600.0
    """For all runs together."""

    def accepts(self, verdicts: Sequence[Verdict]) -> bool:
        """Whether a file with these verdicts is written."""
        words = {verdict.verdict for verdict in verdicts if not verdict.kind}
        return bool(words) and words <= ({"flows"} if self.strictness == "strict" else LENIENT)


Advance = Callable[[int], session.Advance]


def proved(request: session.Request, proving: Proving, advance: Advance) -> Run:
    """A run whose rewrites were verified before anything is written."""
    with Launcher(proving.python, seconds=proving.seconds) as launcher:
        bench = Bench(request.plan, proving, launcher)
        wide = room(proving.limits, usable_cpus())

        def counted(files: int) -> session.Advance:
            launcher.wide = wide and files > 1 and proving.command is None
            if 0 < files <= FEW:
                launcher.begin()
            return advance(files)

        with Lanes(bench.script, launcher, wide) as lanes:

            def heard(outcome: Outcome) -> None:
                if proving.command is None and (changes(outcome) or unmended(outcome)):
                    lanes.add(outcome)
                    if not active_children():  # a process with threads is not to be forked
                        lanes.begin()

            found = session.run(replace(request, mode="diff"), counted, heard)
            bench.read.set()
            changed = [outcome for outcome in found.outcomes if changes(outcome)]
            verdicts = bench.together(changed) if proving.command is not None else dict(lanes.answers())
    outcomes = [_judged_by(one, tuple(verdicts.get(one.path, ()))) for one in found.outcomes]
    if request.mode == "apply":
        outcomes = [request.delivered(_accepted(outcome, proving)) for outcome in outcomes]
    return replace(found, outcomes=tuple(outcomes), mode=request.mode)


def changes(outcome: Outcome) -> bool:
    """Whether there is a rewrite to be judged by a run."""
    return outcome.after is not None and not outcome.failure and not outcome.cells


def unmended(outcome: Outcome) -> list[Finding]:
    """The findings that torch may settle though nothing is rewritten for them."""
    if outcome.before is None or outcome.failure or outcome.cells:
        return []
    mended = {(claim.kind, claim.line) for claim in claims(outcome)}
    return [one for one in outcome.findings if (one.rule, one.span.line) not in mended]


@dataclass(frozen=True, slots=True)
class Bench:
    """What every judgement needs."""

    plan: Plan
    proving: Proving
    launcher: Launcher
    read: threading.Event = field(default_factory=threading.Event)
    """Set when all files are read: the engine does one thing at a time."""
    projects: dict[str, Project] = field(default_factory=dict)
    """What was read of each root, for drivers."""
    rewriting: threading.Lock = field(default_factory=threading.Lock)

    def script(self, outcome: Outcome, launcher: Launcher) -> tuple[str, list[Verdict]]:
        """The judgement on one file, which is a script of its own."""
        command = Command("script", os.path.abspath(outcome.path))
        said = _judged([outcome], command, replace(self, launcher=launcher)) if changes(outcome) else []
        left = unmended(outcome)
        if left:
            driving = Driving(outcome, lambda _: None, launcher, self.proving.limits, self.projects)
            said += driving.settled(left)
        return outcome.path, [replace(verdict, path=outcome.path) for verdict in said]

    def together(self, changed: Sequence[Outcome]) -> dict[str, list[Verdict]]:
        """One judgement for all files, which a command drives."""
        assert self.proving.command is not None
        said = _judged(changed, self.proving.command, self) if changed else []
        names = {os.path.abspath(outcome.path): outcome.path for outcome in changed}
        return {name: [replace(v, path=name) for v in said if v.path == full] for full, name in names.items()}


def _judged(outcomes: Sequence[Outcome], command: Command, bench: Bench) -> list[Verdict]:
    before = _texts(outcomes, lambda outcome: outcome.before)
    after = _texts(outcomes, lambda outcome: outcome.after)
    by_path = {os.path.abspath(outcome.path): outcome for outcome in outcomes}

    def alone(claim: Claim) -> Mapping[str, bytes] | None:
        bench.read.wait()
        with bench.rewriting:
            text = all_but(claim, by_path[claim.path], bench.plan)
        return {**after, claim.path: text} if text is not None else None

    options = JudgeOptions(
        claims=[claim for outcome in outcomes for claim in claims(outcome)],
        alone=alone,
        limits=bench.proving.limits,
    )
    if bench.proving.command is not None:
        return judge(before, after, command, options, bench.launcher)
    driving = Driving(outcomes[0], alone, bench.launcher, bench.proving.limits, bench.projects)
    said = driving.unrun(options.claims) or judge(before, after, command, options, bench.launcher)
    return driving.judged(said, options.claims)


def all_but(claim: Claim, outcome: Outcome, plan: Plan) -> bytes | None:
    """The text with all mended but one finding (failing that, one rule); None: there is nothing else."""
    wanted = next((one for one in outcome.findings if _is(one, claim)), None)
    if wanted is None or outcome.before is None:
        return None
    alone = Counter({(wanted.code, wanted.span.line): 1})
    kept = engine.fix(outcome.path, outcome.before, plan, alone)
    if kept.after == outcome.after:
        kept = engine.fix(outcome.path, outcome.before, plan.without(claim.kind))
    return kept.after if kept.after != outcome.after else None


def _is(finding: Finding, claim: Claim) -> bool:
    return (finding.rule, finding.span.line) == (claim.kind, claim.line)


def _texts(outcomes: Sequence[Outcome], text: Callable[[Outcome], bytes | None]) -> Mapping[str, bytes]:
    return {os.path.abspath(outcome.path): text(outcome) or b"" for outcome in outcomes}


def claims(outcome: Outcome) -> list[Claim]:
    """The findings that the new text claims to mend."""
    path = os.path.abspath(outcome.path)
    mended = [one for one in outcome.findings if one in outcome.applied]
    for later in outcome.applied:
        if later not in outcome.findings:
            mended += [one for one in outcome.findings if _moved(one, later) and one not in mended][:1]
    return [Claim(path, one.rule, one.span.line, one.span.end_line) for one in mended]


def _moved(finding: Finding, later: Finding) -> bool:
    """Whether an earlier rewrite has only moved a finding down or up, before its own turn came."""
    return (finding.rule, finding.message) == (later.rule, later.message)


def _judged_by(outcome: Outcome, verdicts: tuple[Verdict, ...]) -> Outcome:
    """An outcome with what the judge says of it: what he finds worse is not called safe any more."""
    if outcome.cells and outcome.after is not None:
        return replace(outcome, verdicts=(Verdict(outcome.path, "could not run", NOTEBOOK),))
    worse = [verdict.reason for verdict in verdicts if verdict.verdict == "worse" and not verdict.kind]
    judged = replace(outcome, verdicts=verdicts)
    return judged.refused(f"the run with it was worse: {worse[0]}") if worse else judged


def _accepted(outcome: Outcome, proving: Proving) -> Outcome:
    """What was proved; the rest stays as it is."""
    rewritten = outcome.after is not None and not outcome.failure
    return outcome.unmended if rewritten and not proving.accepts(outcome.verdicts) else outcome
