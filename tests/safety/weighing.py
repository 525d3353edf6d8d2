"""One fix of a broken program before torch: by itself, or among the fixes of what hides it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import lru_cache
from pathlib import Path

from oracle.torchrun import BODIES, surroundings
from wild.judge import OF_AUTOGRAD

from gradfix.config import Config
from gradfix.defects.kinds import Family, kind_of
from gradfix.engine import fix
from gradfix.outcome import Outcome
from gradfix.plan import Plan, plan_for
from gradfix.rule import Finding, Safety

from .judging import (
    BREAKS,
    LEFT,
    OTHER,
    RIGHT,
    UNDECIDED,
    WRONG,
    Said,
    arrived,
    crash,
    judged,
    like,
    near,
    parting,
)
from .playing import PROGRAM, Play, Spared, play

PLAN = plan_for(Config(Path("/")), follows_imports=False)
BOLD = plan_for(Config(Path("/"), unsafe_fixes=True), follows_imports=False)
"""The same with unsafe fixes too."""
UNCOUNTED = "write_through_data"
OVERWRITTEN = ("inplace_overwrites_saved", "inplace_module")
REFUSED = ("inplace_on_leaf", "inplace_on_view_of_many")


@dataclass(frozen=True)
class Circumstances:
    """How a program is run: the words on its command line, or the truth of its flags."""

    argv: tuple[str, ...] = ()
    flags: tuple[bool, ...] | None = None
    driver: str = ""

    @lru_cache(maxsize=64)  # noqa: B019
    def play(self, source: str, *, cuts: bool = False, spared: Spared = "", allowed: bool = False) -> Play:
        """One run; what one fix has shown of a program, the next one meets again."""
        if self.flags is None:
            return play(source, list(self.argv), cuts=cuts, spared=spared, allowed=allowed)
        with surroundings(self.flags, BODIES["computes"]):
            words = sys.argv[1:]
            return play(source + self.driver, words, cuts=cuts, spared=spared, allowed=allowed)


@dataclass(frozen=True)
class Broken:
    """A program with a bug, how it is run, and what it was before the bug was put in."""

    source: str
    ways: tuple[Circumstances, ...]
    bug: str = ""
    healthy: str = ""
    further: tuple[Circumstances, ...] = ()
    """How it is run besides, where nothing shows what a fix does."""


def said(text: str, alone: Finding | None = None, others: tuple[Finding, ...] = ()) -> Outcome:
    """What gradfix says of a text, and what it writes when only one finding is to be mended."""
    known = Counter((each.code, each.span.line) for each in others)
    if alone is not None:
        known[alone.code, alone.span.line] -= 1
    return _fixed(text, frozenset((+known).items()))


@lru_cache(maxsize=64)
def _fixed(text: str, known: frozenset[tuple[tuple[str, int], int]], plan: Plan = PLAN) -> Outcome:
    return fix(PROGRAM, text.encode(), plan, Counter(dict(known)))


def weighed(broken: Broken, finding: Finding) -> tuple[Said, str]:
    """One fix by itself; where another defect hides what it does, with all others in place, safe or not."""
    source, after = broken.source, _alone(broken.source, finding)
    result = Said(UNDECIDED, "nothing is written for it alone")
    if after != source:
        result = _over_all(broken, finding, source, after)
    for text, whole, bold in _among_others(source, finding):
        if _settled(result):
            break
        found = [each for each in said(text).findings if _is(each, finding, source, text)]
        mended = whole or (_alone(text, found[0]) if found else text)
        if found and found[0].safety is Safety.SAFE and mended != text:
            answer = _over_all(broken, found[0], text, mended)
            if not bold or answer.verdict not in (UNDECIDED, LEFT, BREAKS):  # that may be the unsafe one
                result, after = answer, mended
        elif result.verdict != UNDECIDED:
            result = Said(UNDECIDED, result.about or "the others mend it too")
    return result, after


def _among_others(source: str, finding: Finding) -> Iterator[tuple[str, str, bool]]:
    """Texts in which all other findings are mended, and this one too; "" where it is to be, by itself.
    Whether unsafe fixes are among them."""
    for plan in (PLAN, BOLD):
        yield _mended(source, plan, finding), _mended(source, plan), plan is BOLD
    # what stands on the line of another one is mended with it: then all of its rule are left
    yield _mended(source, replace(BOLD, config=replace(BOLD.config, ignore=(finding.code,)))), "", True


def _alone(text: str, finding: Finding) -> str:
    after = said(text, finding, said(text).findings).after
    return text if after is None else after.decode()


def _settled(result: Said) -> bool:
    """Whether no other defect can have had a part in what is said."""
    if result.verdict == BREAKS:
        return not OF_AUTOGRAD.search(result.about)
    return result.verdict not in (UNDECIDED, LEFT)


def _mended(source: str, plan: Plan, but: Finding | None = None) -> str:
    """A text with all its rewrites, or with all but one."""
    left = frozenset() if but is None else frozenset({((but.code, but.span.line), 1)})
    after = _fixed(source, left, plan).after
    return source if after is None else after.decode()


def _is(each: Finding, finding: Finding, before: str, after: str) -> bool:
    return each.rule == finding.rule and each.span.line in _moved(before, after, {finding.span.line})


def _over_all(broken: Broken, finding: Finding, before: str, after: str) -> Said:
    """The worst that is said of a fix under any circumstances."""
    found = [under(broken, way, finding, before, after) for way in broken.ways]
    wrong = [each for each in found if each.verdict in WRONG]
    if wrong:
        # what one way leaves alone may be what another one shows
        real = [each for each in wrong if each.verdict != "left" or each.about]
        if real or all(each.verdict != RIGHT for each in found):
            return (real or wrong)[0]
    shown = next((each for each in found if each.verdict == RIGHT), None)
    further = (under(broken, way, finding, before, after) for way in broken.further if shown is None)
    return shown or next((each for each in further if each.verdict != UNDECIDED), found[0])


def under(broken: Broken, way: Circumstances, finding: Finding, before: str, after: str) -> Said:
    """What is said of a text in place of another one under some circumstances."""
    severed = kind_of(finding.rule).family is Family.SEVERED
    one, other = way.play(before, cuts=severed), way.play(after, cuts=severed)
    inferred = one.error is not None and "nference tensor" in one.error[0]
    hurt = one.error is not None and (finding.rule in OVERWRITTEN or inferred)
    spared = way.play(before, cuts=severed, spared="counted") if hurt else None
    result = judged(finding, before, one, other, spared)
    if one.error is not None and finding.rule in REFUSED and result.verdict == BREAKS:
        spared = way.play(before, allowed=True)
    if result.verdict in (LEFT, BREAKS) and other.error:
        about = _in_the_way(broken, way, after, other, spared if result.verdict == BREAKS else None)
        return Said(UNDECIDED, about) if about else result
    if result.verdict == OTHER and any(each.rule == UNCOUNTED for each in said(broken.source).findings):
        spared, other = (way.play(text, cuts=severed, spared="all") for text in (before, after))
        if arrived(finding, before, one, other, spared).verdict != OTHER:
            return Said(UNDECIDED, "a write that nothing counts gives another gradient too")
    return result


def _in_the_way(broken: Broken, way: Circumstances, after: str, other: Play, spared: Play | None) -> str:
    """What else ends the run of a rewritten text, if anything; `spared`: the run in which no write hurts."""
    assert other.error is not None
    healthy = way.play(broken.healthy) if broken.healthy else None
    if healthy is not None and healthy.error and like(healthy.error) == like(other.error):
        return "the program has a fault of its own"
    if any(crash(each, after, other) for each in said(after).findings) or _hindered(broken, after, other):
        return "another defect fails in the same words"  # which has no safe fix
    if spared is None:
        return ""
    if spared.error and like(spared.error) == like(other.error):
        return "the program has a fault of its own"
    if OF_AUTOGRAD.search(other.error[0]):
        others = way.play(after, spared="counted")  # where no write hurts: is it the same program?
        if not others.error and parting(spared, others) is None:
            return "another write is still in its way"
    return ""


def _hindered(broken: Broken, after: str, run: Play) -> bool:
    """Whether a rewritten text ends as a defect that was seen at first, without a safe fix, says."""
    left = [each for each in said(broken.source).findings if each.safety is not Safety.SAFE]
    words = [each for each in left if each.torch_says and run.error and each.torch_says in run.error[0]]
    moved = _moved(broken.source, after, {line for each in words for line in near(each)})
    return run.error is not None and bool(moved & set(run.error[1]))


def _moved(before: str, after: str, lines: set[int]) -> set[int]:
    """Where lines stand in a rewritten text, or what stands in their place."""
    found: set[int] = set()
    blocks = SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False).get_opcodes()
    for kind, first, end, start, stop in blocks:
        here = [line - first for line in lines if first < line <= end]
        if kind == "equal":
            found |= {start + line for line in here}
        elif kind == "replace" and here:
            found |= set(range(start + 1, stop + 1))
    return found
