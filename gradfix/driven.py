"""Where no run comes to a finding, gradfix writes a driver for its lines, and the judge goes by that."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from gradfix.driver.making import Maker
from gradfix.driver.recipe import Driver, Target, Undriven
from gradfix.driver.targets import to_line
from gradfix.driver.written import summary
from gradfix.outcome import Outcome
from gradfix.source import Source, parse
from gradfix.verify import Claim, Command, JudgeOptions, Launcher, Limits, Verdict, judge
from gradfix.verify.judge import together

OUT_OF_REACH = ("not reached", "could not run")
"""What a file's own run may say that a driver may say better."""
MOST_WAYS = 3
"""Ways to one finding that are tried."""
Alone = Callable[[Claim], "Mapping[str, bytes] | None"]


@dataclass(frozen=True, slots=True)
class Driving:
    """The findings of one file, whose texts are known before and after."""

    outcome: Outcome
    alone: Alone
    launcher: Launcher
    limits: Limits

    @property
    def path(self) -> str:
        return os.path.abspath(self.outcome.path)

    def judged(self, verdicts: Sequence[Verdict], claims: Sequence[Claim]) -> list[Verdict]:
        """The same verdicts, those of findings that were out of reach replaced by what a driver shows."""
        found = parse(self.path, self.outcome.before or b"")
        by_claim = {(verdict.kind, verdict.line): verdict for verdict in verdicts if verdict.kind}
        if not isinstance(found, Source) or found.notebook is not None:
            return list(verdicts)
        for claim in claims:
            verdict = by_claim.get((claim.kind, claim.line))
            if verdict is not None and verdict.verdict in OUT_OF_REACH:
                by_claim[claim.kind, claim.line] = self._driven(claim, verdict, found)
        said = list(by_claim.values())
        if said == [verdict for verdict in verdicts if verdict.kind]:
            return list(verdicts)
        return [*(together(one.path, said) for one in verdicts if not one.kind), *said]

    def _driven(self, claim: Claim, verdict: Verdict, source: Source) -> Verdict:
        """What the first driver says by which the finding shows; else the last one that came to its lines."""
        reasons: list[str] = []
        best = verdict
        ways = to_line(self.path, source.tree, claim.line)[:MOST_WAYS]
        for driver in self._drivers(ways, claim, reasons):
            said = self._by(driver, claim)
            if said.verdict not in (*OUT_OF_REACH, "not reproduced"):
                return said
            best = said if said.verdict == "not reproduced" else best
        if best is verdict and reasons:
            return replace(verdict, reason=f"{verdict.reason}; no driver: {reasons[0]}")
        return best

    def _drivers(self, ways: Sequence[Target], claim: Claim, reasons: list[str]) -> Iterator[Driver]:
        before = {self.path: self.outcome.before or b""}
        maker = Maker(self.launcher, self.limits)
        for way in ways:
            lines = tuple(range(claim.line, max(claim.line, claim.end_line) + 1))
            made = maker.made([replace(way, lines=lines)], before)[0]
            if isinstance(made, Undriven):
                reasons.append(f"{way.shown}: {made.reason}")
            else:
                yield made

    def _by(self, driver: Driver, claim: Claim) -> Verdict:
        """The judge's word on one finding, before and after under the same driver."""
        own = {driver.path: driver.text.encode()}
        before = {self.path: self.outcome.before or b"", **own}
        after = {self.path: self.outcome.after or b"", **own}

        def alone(claim: Claim) -> Mapping[str, bytes] | None:
            texts = self.alone(claim)
            return {**texts, **own} if texts is not None else None

        options = JudgeOptions([claim], alone, driver.recipe.target.root, limits=self.limits)
        said = judge(before, after, Command("script", driver.path), options, self.launcher)
        verdict = next(one for one in said if one.kind)
        return replace(
            verdict, driver=driver.text, assumed=driver.recipe.assumed,
            reason=f"{verdict.reason}; by a driver: {summary(driver.recipe)}",
        )  # fmt: skip
