"""Where no run comes to a finding, gradfix writes a driver for its lines, and the judge goes by that."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Literal

from gradfix.defects import Convention, kind_of
from gradfix.defects.kinds import Family
from gradfix.defects.reasons import What
from gradfix.driver.elsewhere import healer
from gradfix.driver.given import Project
from gradfix.driver.making import SECONDS, Maker, drawn_up
from gradfix.driver.recipe import Driver, Recipe, Undriven
from gradfix.driver.targets import to_line
from gradfix.driver.written import summary
from gradfix.outcome import Outcome
from gradfix.rule import Finding
from gradfix.source import Source, parse
from gradfix.verify import Claim, Command, JudgeOptions, Launcher, Limits, Verdict, judge
from gradfix.verify.judge import FINE, WITHOUT_BACKWARD, shown, together
from gradfix.verify.launch import Job
from gradfix.verify.lines import Lines
from gradfix.verify.verdicts import Facts, facts

OUT_OF_REACH = ("not reached", "could not run")
"""What a file's own run may say that a driver may say better."""
SEEN = ("flows", "flows partly", "seen under torch")
UNSHOWN = (*OUT_OF_REACH, "not reproduced")
DEFINING = (ast.Import, ast.ImportFrom, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
LIKELY = "; no more than likely, without "
IDLE = "nothing in this file runs them"
BY = "; by a driver: "
FAILED = ("seen before: the program failed", "the program fails as before", "the program still fails")
STEPS = 12
MOST_WAYS = 3
"""Ways to one finding that are tried."""
ELSEWHERE = frozenset(
    (What.ARGUMENT, What.CALLER, What.SUBCLASS, What.FRAMEWORK, What.ATTRIBUTE, What.MODULE)
)
"""What isn't known because it is not in what a driver runs: no run of a driver decides it."""
Alone = Callable[[Claim], "Mapping[str, bytes] | None"]


@dataclass(slots=True)
class Driving:
    """The findings of one file, whose texts are known before and after."""

    outcome: Outcome
    alone: Alone
    launcher: Launcher
    limits: Limits
    projects: dict[str, Project] = field(default_factory=dict)
    """What was read of each root."""
    reasons: list[str] = field(default_factory=list)
    """Why there was no driver."""

    @property
    def path(self) -> str:
        return os.path.abspath(self.outcome.path)

    @property
    def before(self) -> dict[str, bytes]:
        return {self.path: self.outcome.before or b""}

    def limits_of(self, driver: Driver) -> Limits:
        """A driver takes few steps by itself: what comes after the last of them belongs to it, mostly."""
        most = driver.recipe.steps or max(self.limits.max_steps, STEPS)
        return replace(self.limits, max_steps=most)

    def judged(self, verdicts: Sequence[Verdict], claims: Sequence[Claim]) -> list[Verdict]:
        """The same verdicts, those of findings that were out of reach replaced by what a driver shows."""
        source = self.source()
        by_claim = {(verdict.kind, verdict.line): verdict for verdict in verdicts if verdict.kind}
        for claim in claims if source is not None else ():
            verdict = by_claim.get((claim.kind, claim.line))
            if source is not None and verdict is not None and left_open(verdict):
                said = self._best(claim, verdict, source, self._mended)
                by_claim[claim.kind, claim.line] = refuted(said, self._finding(claim))
        all_said = list(by_claim.values())
        if all_said == [verdict for verdict in verdicts if verdict.kind]:
            return list(verdicts)
        return [*(together(one.path, all_said) for one in verdicts if not one.kind), *all_said]

    def _finding(self, claim: Claim) -> Finding | None:
        places = ((one.rule, one.span.line) for one in self.outcome.findings)
        return dict(zip(places, self.outcome.findings, strict=True)).get((claim.kind, claim.line))

    def source(self) -> Source | None:
        """The file as it was, if it can be driven."""
        return self._parsed(self.outcome.before or b"")

    def _parsed(self, text: bytes) -> Source | None:
        found = parse(self.path, text)
        return found if isinstance(found, Source) and found.notebook is None else None

    def settled(self, findings: Sequence[Finding]) -> list[Verdict]:
        """What torch shows of findings that nothing is rewritten for, suspects among them."""
        source = self.source()
        if source is None:
            return []
        own = None if idle(source) else self._ran()
        said = []
        for finding in findings:
            claim = Claim(self.path, finding.rule, finding.span.line, finding.span.end_line)
            verdict = Verdict(self.path, "not reached", IDLE, claim.kind, claim.line)
            if own is not None:
                word, reason = shown(own, claim, self.outcome.before or b"", self.limits)
                verdict = replace(verdict, verdict=word, reason=reason)
            if left_open(verdict):
                verdict = self._best(claim, verdict, source, self._shown)
            said.append(refuted(decided(verdict, finding), finding))
        return said

    def _ran(self) -> Facts:
        """The file as the script that it is."""
        job = Job(Command("script", self.path), os.getcwd(), self.before, self.limits)
        return facts(self.launcher.run(job))

    def unrun(self, claims: Sequence[Claim]) -> list[Verdict] | None:
        """The verdicts of a run that would do nothing; None: it might do something."""
        source = self.source()
        if source is None or not idle(source):
            return None
        whole = Verdict(self.path, "not reached", IDLE)
        return [whole, *(replace(whole, kind=claim.kind, line=claim.line) for claim in claims)]

    def _best(
        self, claim: Claim, verdict: Verdict, source: Source, by: Callable[[Driver, Claim], Verdict]
    ) -> Verdict:
        """What the first driver says by which the finding shows; else the last one that came to its lines."""
        self.reasons = []
        best = verdict
        for driver in self._variants(source, claim):
            said = self._in_whose_hands(by(driver, claim), driver, claim)
            if said.verdict not in UNSHOWN:
                return said
            best = said if said.verdict == "not reproduced" else best
        if best is verdict and self.reasons:
            return replace(verdict, reason=f"{verdict.reason}; no driver: {self.reasons[0]}")
        return best

    def _in_whose_hands(self, verdict: Verdict, driver: Driver, claim: Claim) -> Verdict:
        """A driver that makes up who steps doesn't confirm that nobody does, unless the project shows it."""
        source = self.source()
        seen = verdict.verdict in SEEN and kind_of(claim.kind).stepped
        if not seen or source is None:
            return verdict
        project = self.projects[driver.recipe.target.root]
        who = healer(driver.recipe, project, source.tree, claim.line)
        return unsettled(verdict, who) if who else verdict

    def _variants(self, source: Source, claim: Claim) -> Iterator[Driver]:
        """Each driver, and the same with inputs that carry a gradient, where the finding supposes that."""
        finding = self._finding(claim)
        supposed = finding is not None and Convention.D.name in finding.conventions
        for driver in self._drivers(source, claim):
            yield driver
            if supposed and not driver.recipe.carries:
                yield drawn_up(replace(driver.recipe, carries=True))

    def _drivers(self, source: Source, claim: Claim) -> Iterator[Driver]:
        """Found where all is mended, if that can be: what stops a run there is no defect that is known."""
        texts = [self.outcome.before or b""]
        if self.outcome.after is not None:
            texts.insert(0, self.outcome.after)
        for text in texts:
            there, found = self._parsed(text), False
            for driver in self._made(text, there, claim) if there is not None else ():
                found = True
                yield driver
            if not found:  # what can't be called when it is mended can't be called before
                return

    def _made(self, text: bytes, source: Source, claim: Claim) -> Iterator[Driver]:
        maker = Maker(self.launcher, self.limits, projects=self.projects)
        lines = Lines(text, self.outcome.before or b"")
        first, last = (lines.before(line) for line in (claim.line, max(claim.line, claim.end_line)))
        ways = to_line(self.path, source.tree, first, last)
        ways[1:1] = [one for way in ways[:1] for one in maker.inherited(way)][:1]
        for way in ways[:MOST_WAYS]:
            made = maker.made([replace(way, loss=loss_of(claim))], {self.path: text})[0]
            maker = replace(maker, seconds=SECONDS / 2)  # the first way is the best one
            if isinstance(made, Undriven):
                self.reasons.append(f"{way.shown}: {made.reason}")
            else:
                yield made

    def _mended(self, driver: Driver, claim: Claim) -> Verdict:
        """The judge's word on one finding, before and after under the same driver."""
        own = {driver.path: driver.text.encode()}
        after = {self.path: self.outcome.after or b"", **own}

        def alone(claim: Claim) -> Mapping[str, bytes] | None:
            texts = self.alone(claim)
            return {**texts, **own} if texts is not None else None

        options = JudgeOptions([claim], alone, driver.recipe.target.root, limits=self.limits_of(driver))
        command = Command("script", driver.path)
        said = judge({**self.before, **own}, after, command, options, self.launcher)
        verdict = by_driver(next(one for one in said if one.kind), driver)
        # What fails before for another reason than a broken rule, fails because of the driver.
        unfit = verdict.reason.startswith(FAILED) or verdict.verdict == "could not run"
        return replace(verdict, verdict="not reached") if unfit else verdict

    def _shown(self, driver: Driver, claim: Claim) -> Verdict:
        """What one run of a driver shows of a finding."""
        texts = {**self.before, driver.path: driver.text.encode()}
        job = Job(Command("script", driver.path), driver.recipe.target.root, texts, self.limits_of(driver))
        seen = facts(self.launcher.run(job))
        word, reason = shown(seen, claim, self.outcome.before or b"", self.limits)
        return by_driver(Verdict(self.path, word, reason, claim.kind, claim.line), driver)


def loss_of(claim: Claim) -> Literal["", "parts", "whole"]:
    """How what is returned has to be a loss, for a finding to be one: of no size, or that nothing reaches."""
    traits = kind_of(claim.kind)
    if traits.family is Family.SEVERED:
        return "parts"
    return "whole" if traits.refused and not traits.pair and traits.family is None else ""


def left_open(verdict: Verdict) -> bool:
    """Whether a driver may say more: a run that backpropagates nothing can't show what breaks then."""
    return verdict.verdict in OUT_OF_REACH or verdict.reason.startswith(WITHOUT_BACKWARD)


def by_driver(verdict: Verdict, driver: Driver) -> Verdict:
    """A verdict with the driver that it goes by."""
    recipe: Recipe = driver.recipe
    reason = f"{verdict.reason}{BY}{summary(recipe)}"
    if recipe.stood:
        reason += f"{LIKELY}{', '.join(recipe.stood)} (not installed)"
    elif recipe.framed:
        reason += f"{LIKELY}the trainer of its framework"
    return replace(verdict, driver=driver.text, assumed=recipe.assumed, reason=reason)


def decided(verdict: Verdict, finding: Finding) -> Verdict:
    """A driver leaves open what only those know who are not in it."""
    missing = [reason for reason in finding.unknowns if reason.root.what in ELSEWHERE]
    if verdict.verdict != "seen under torch" or not verdict.driver or not missing:
        return verdict
    return unsettled(verdict, missing[0].told)


def unsettled(verdict: Verdict, who: str) -> Verdict:
    """What a driver has shown, and somebody who is not in it may heal."""
    told = f"{verdict.reason}; but {who} is not in it, and may supply what is missing"
    return replace(verdict, verdict="undecided", reason=told)


def refuted(verdict: Verdict, finding: Finding | None) -> Verdict:
    """A finding that was certain, and that torch doesn't show where its lines run through, is our defect."""
    certain = finding is not None and finding.certainty == "certain" and not finding.condition
    stood = LIKELY in verdict.reason
    if not (finding and certain and verdict.driver and verdict.reason.startswith(FINE)) or stood:
        return verdict
    line = f"{finding.code} {finding.rule} was certain and {verdict.reason.partition(BY)[2]} doesn't show it"
    told = f"this is a defect of gradfix, please report it: {line} (gradfix {version('gradfix')})"
    return replace(verdict, reason=f"{verdict.reason}; {told}")


def idle(source: Source) -> bool:
    """Whether a file only defines: run as a script, it would do nothing."""
    return all(isinstance(node, DEFINING) or _plain(node) for node in source.tree.body)


def _plain(node: ast.stmt) -> bool:
    """A constant, a doc string, an alias."""
    calls = any(isinstance(one, ast.Call) for one in ast.walk(node))
    return isinstance(node, ast.Assign | ast.AnnAssign | ast.Expr) and not calls
