"""A test for each finding that was mended: by the shortest way to its lines that shows it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from gradfix.driver.making import Maker
from gradfix.driver.recipe import Driver, Recipe, Target
from gradfix.driver.targets import above, to_line
from gradfix.outcome import Outcome
from gradfix.plan import Plan
from gradfix.proof import all_but, claims
from gradfix.regression.mended import Kept, Mended, Unkept
from gradfix.regression.trial import Bench
from gradfix.rule import Finding
from gradfix.source import Source, parse
from gradfix.verify import Claim, Launcher, Limits

MOST_WAYS = 3
"""Ways to one finding that are tried."""
NO_WAY = "its lines are in no function or class that a test could call"


@dataclass(frozen=True, slots=True)
class Leaving:
    """What is needed to leave tests behind."""

    plan: Plan
    launcher: Launcher
    limits: Limits

    def tests(self, outcomes: Sequence[Outcome]) -> Iterator[Kept | Unkept]:
        """What became of the test of each mended finding."""
        for outcome in outcomes:
            if outcome.written and outcome.before is not None and not outcome.cells:
                for claim in claims(outcome):
                    yield self._of(outcome, claim)

    def _of(self, outcome: Outcome, claim: Claim) -> Kept | Unkept:
        mended = self._mended(outcome, claim)
        found = parse(claim.path, mended.before)
        ways = to_line(claim.path, found.tree, claim.line) if isinstance(found, Source) else []
        last: Kept | Unkept = Unkept(mended, NO_WAY)
        for way in ways[:MOST_WAYS]:
            made = self._driver(way, claim, mended.after)
            if isinstance(made, str):
                last = Unkept(mended, made)
                continue
            if why := unfit(made.recipe):
                last = Unkept(mended, why)
                continue
            for recipe in named(made.recipe):
                last = Bench(self.launcher, self.limits).kept(mended, recipe)
                if isinstance(last, Kept):
                    return last
        return last

    def _driver(self, way: Target, claim: Claim, text: bytes) -> Driver | str:
        """What comes to the lines of a finding once it is mended, or why nothing does."""
        made = Maker(self.launcher, self.limits).made([way], {claim.path: text})[0]
        return made if isinstance(made, Driver) else f"{way.shown}: {made.reason}"

    def _mended(self, outcome: Outcome, claim: Claim) -> Mended:
        """One finding, with the text in which it alone is left."""
        finding = _finding(outcome, claim)
        before = all_but(claim, outcome, self.plan) or outcome.before or b""
        return Mended(
            claim.path, outcome.path, finding.code, claim.line, finding.message, before, outcome.after or b""
        )


def unfit(recipe: Recipe) -> str:
    """Why nobody would keep a test that takes this; nothing, of one that may be kept."""
    if recipe.stood:
        return f"it takes packages that aren't installed ({', '.join(recipe.stood)})"
    if recipe.at_home:
        return "what it calls goes to a GPU, and there is none"
    return "what it calls fails behind its first steps, for other reasons" if recipe.steps else ""


def named(recipe: Recipe) -> Iterator[Recipe]:
    """The recipe with its target named from the top of the project, as its tests would; then as it is."""
    target = recipe.target
    top = next((each for each in above(target.root) if is_top(each)), target.root)
    words = os.path.relpath(target.path, top).removesuffix(".py").split(os.sep)
    inner = words[:-1] if words[-1] == "__init__" else words
    if top != target.root and inner[0] != "src" and all(word.isidentifier() for word in inner):
        yield replace(recipe, target=replace(target, root=top, module=".".join(inner)))
    yield recipe


def is_top(folder: str) -> bool:
    """Whether a project begins here."""
    return any(os.path.exists(os.path.join(folder, mark)) for mark in (".git", "pyproject.toml", "setup.py"))


def _finding(outcome: Outcome, claim: Claim) -> Finding:
    return next(one for one in outcome.findings if (one.rule, one.span.line) == (claim.kind, claim.line))
