"""The project's own fixtures with their drivers cut off: is the verdict the one that the script had?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gradfix.config import Config
from gradfix.engine import fix
from gradfix.outcome import Outcome
from gradfix.plan import Plan, plan_for
from gradfix.proof import Proving, proved
from gradfix.session import Request

from .cutting import library

FIXTURES = Path(__file__).parents[2] / "fixtures"
Sort = Literal["before", "keep"]
SEEN = ("flows", "flows partly", "seen under torch")
"""The words of a judge who has seen the gradient lost, and arrive."""


@dataclass(frozen=True, slots=True)
class Said:
    """A fixture without its driver, and what was said of it."""

    rule: str
    name: str
    word: str
    reason: str
    listed: bool = False
    """Whether it is a finding already for who only reads it: what made it healthy was in the script."""


def plan(rule: str, suspects: bool = True) -> Plan:
    """A rule beside the usual ones, with all that it would write, suspects among what it lists."""
    config = Config(FIXTURES, unsafe_fixes=True, suspects=suspects)
    return plan_for(config.with_options(extend_select=(rule,)))


def cut(sort: Sort, folder: Path, only: str = "", every: int = 1) -> dict[str, list[Path]]:
    """Write the fixtures without their drivers, those that say something then, by rule; or one of so many."""
    found: dict[str, list[Path]] = {}
    for path in sorted(FIXTURES.glob(f"{only or '*'}/*/{sort}.py"))[::every]:
        text, rule = library(path.read_text("utf-8")), path.parent.parent.name
        if text and (sort == "keep" or finds(rule, text)):
            own = folder / rule / path.parent.name
            own.mkdir(parents=True)
            (own / "cut.py").write_text(text, "utf-8")
            found.setdefault(rule, []).append(own / "cut.py")
    return found


def finds(rule: str, text: str) -> bool:
    """Whether the finding is still there when the driver is gone."""
    outcome = fix("cut.py", text.encode(), plan(rule))
    return any(each.rule == rule for each in outcome.findings)


def said(sort: Sort, folder: Path, seconds: float = 900.0, only: str = "", every: int = 1) -> Iterator[Said]:
    """What is said of each."""
    for rule, paths in cut(sort, folder, only, every).items():
        request = Request(tuple(map(str, paths)), "list", plan(rule), jobs=1)
        run = proved(request, Proving(seconds=seconds), lambda _: lambda _: None)
        for outcome in run.outcomes:
            yield one(rule, outcome)


def one(rule: str, outcome: Outcome) -> Said:
    """The word on the rule's own finding; of a healthy text, on any."""
    name = Path(outcome.path).parent.name
    own = [verdict for verdict in outcome.verdicts if verdict.kind == rule] or outcome.verdicts
    best = sorted(own, key=lambda verdict: verdict.verdict not in SEEN)
    listed = any(each.rule == rule and each.certainty != "suspect" for each in outcome.findings)
    if not best:
        return Said(rule, name, "no verdict", ", ".join(each.message for each in outcome.findings))
    return Said(rule, name, best[0].verdict, best[0].reason, listed)


def table(found: Sequence[Said]) -> str:
    """By rule: how many have which word."""
    words = sorted({one.word for one in found}, key=lambda word: (word not in SEEN, word))
    rules = sorted({one.rule for one in found})
    head = f"{'rule':32}{'fixtures':>9}" + "".join(f"{word:>16}" for word in words)
    return "\n".join([head, *(row(rule, found, words) for rule in (*rules, "all"))])


def row(rule: str, found: Sequence[Said], words: Sequence[str]) -> str:
    own = [one.word for one in found if rule in (one.rule, "all")]
    return f"{rule:32}{len(own):9}" + "".join(f"{own.count(word):16}" for word in words)
