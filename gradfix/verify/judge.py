"""Runs a program before and after a rewrite, and says whether the gradient that was lost now arrives."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gradfix.defects import kind_of, same_family
from gradfix.trace.report import Recording
from gradfix.verify.consequences import consequences
from gradfix.verify.launch import Command, Job, Launcher, Limits
from gradfix.verify.lines import Lines, around, in_terms_of, kept_lines
from gradfix.verify.verdicts import (
    Claim,
    Facts,
    Verdict,
    Word,
    cannot,
    facts,
    frozen,
    listed,
    named,
    side_by_side,
    unseen,
    unwatched,
)

FINE = "the gradients were fine on the lines that ran"
WITHOUT_BACKWARD = "these lines ran, but nothing was backpropagated"
MOST_ALONE = 12
"""Claims of one judgement that get a run of their own."""


@dataclass(frozen=True, slots=True)
class JudgeOptions:
    """How to run, and which findings to judge."""

    claims: Sequence[Claim] = ()
    alone: Callable[[Claim], Mapping[str, bytes] | None] = lambda _: None
    """The files with everything mended but one claim: how else could what stands behind a crash be seen?"""
    cwd: str = ""
    python: str | None = None
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class Case:
    """One rewrite before the judge."""

    before: Facts
    after: Facts
    lines: Mapping[str, Mapping[int, int]]
    """File -> line before -> the same line after, for lines that the rewrite left alone."""
    options: JudgeOptions
    texts: Mapping[str, bytes]
    """The files as they were before."""
    changed: str = ""
    """What else the rewrite has changed, in a program that does the same each time."""


def judge(
    before: Mapping[str, bytes],
    after: Mapping[str, bytes],
    command: Command,
    options: JudgeOptions | None = None,
    launcher: Launcher | None = None,
) -> list[Verdict]:
    """One verdict for each changed file, then one for each claim. Nothing on disk changes."""
    options = options or JudgeOptions()
    with contextlib.ExitStack() as stack:
        runner = launcher or stack.enter_context(Launcher(options.python))
        cwd = os.path.abspath(options.cwd or os.getcwd())
        first = facts(runner.run(Job(command, cwd, before, options.limits)))
        # What never ended will not end the second time, and nothing could be compared.
        endless = first.recording["how"] in ("time", "spent") and not first.defects
        second = first if endless else facts(runner.run(Job(command, cwd, after, options.limits)))
        paths = [path for path in after if before.get(path) != after[path]]
        lines = {path: kept_lines(before.get(path, b""), after[path]) for path in paths}
        changed = lasting(first, second, lines, lambda: runner.run(Job(command, cwd, before, options.limits)))
        case = Case(first, second, lines, options, before, changed)
        said: list[Verdict] = []
        for claim in options.claims:
            if claim.path in before:
                texts = options.alone(claim) if hidden(case, claim) and len(said) < MOST_ALONE else None
                if texts is None:
                    said.append(on_claim(case, claim))
                else:
                    recording = runner.run(Job(command, cwd, texts, options.limits))
                    said.append(on_claim_alone(case, claim, recording, texts))
    return [on_file(case, path, [v for v in said if v.path == path]) for path in paths] + said


def lasting(
    first: Facts, second: Facts, lines: Mapping[str, Mapping[int, int]], again: Callable[[], Recording]
) -> str:
    """What a rewrite has changed besides; nothing, if two runs of the text before part as well."""
    found = consequences(first, second, lines)
    return found if found and not consequences(first, facts(again()), {}) else ""


def hidden(case: Case, claim: Claim) -> bool:
    """Whether something else has stopped the program before a claim could show."""
    return case.before.failed and not case.after.failed and not _seen(case, claim)


def on_claim_alone(case: Case, claim: Claim, recording: Recording, texts: Mapping[str, bytes]) -> Verdict:
    """The verdict on one finding, from a run in which all others were mended."""
    lines = {path: Lines(case.texts[path], text) for path, text in texts.items() if text != case.texts[path]}
    seen = facts(in_terms_of(lines, recording))
    verdict = on_claim(replace(case, before=seen), claim)
    return replace(verdict, reason=f"with the other fixes in place: {verdict.reason}")


def on_claim(case: Case, claim: Claim) -> Verdict:
    """The verdict on one finding."""
    word, reason = _unrunnable(case) or _weigh(case, claim)
    return _verdict(case, claim.path, word, reason, claim)


def _verdict(case: Case, path: str, word: Word, reason: str, claim: Claim | None = None) -> Verdict:
    held = dict.fromkeys([*case.before.recording["held_back"], *case.after.recording["held_back"]])
    blind = unseen(case.after.recording) or unseen(case.before.recording)
    reason += f"; not looked into: {blind}" if blind else ""
    return Verdict(
        path, word, reason, claim.kind if claim else "", claim.line if claim else 0,
        *side_by_side(case.before, case.after), tuple(held),
    )  # fmt: skip


def _unrunnable(case: Case) -> tuple[Word, str] | None:
    """Neither run can be judged, or only the first one can."""
    limits = case.options.limits
    first = cannot(case.before.recording, limits.seconds, limits.memory)
    if first and not case.before.defects:
        return "could not run", first
    second = cannot(case.after.recording, limits.seconds, limits.memory)
    if unwatched(case.after.recording):
        return "could not run", second
    if second and not first and case.after.recording["how"] not in ("time", "memory"):
        return "worse", f"the program ran before, and does not after: {second}"
    if second and not case.after.fine:
        return "could not run", second
    return None


def _weigh(case: Case, claim: Claim | None) -> tuple[Word, str]:
    """From what was seen before, what is left after, and what arrives."""
    worse = _worse(case)
    if worse:
        return "worse", worse
    seen = _seen(case, claim)
    if not seen:
        return _unseen(case, claim)
    gained = named(case.after.fine - case.before.fine)
    left = _left(case, claim)
    if left:
        return ("flows partly" if gained else "no change"), f"still there after: {left}"
    if case.after.failed:
        failure = case.after.failure
        return ("flows partly" if gained else "no change"), f"the program still fails: {failure}"
    if not case.after.fine and not _beside(case, claim):
        return "no change", "the defect is gone, but no gradient arrives"
    missed = _missed(case, claim)
    if missed and not missed & case.after.fine and missed & case.after.recording["reasons"].keys():
        return "no change", f"the defect is gone, but no gradient arrives at {listed(sorted(missed))}"
    lost = _new_defects(case)
    if lost:
        return "flows partly", f"another defect shows up behind it: {lost}"
    return "flows", _arrives(seen, gained, case)


def _missed(case: Case, claim: Claim | None) -> frozenset[str]:
    """The parameters that no gradient had reached, by what the recorder said of the defect before."""
    told_of = (d for d in case.before.defects if _matches(d, claim, case.options.claims))
    return frozenset(name for defect in told_of for name in defect["facts"].get("parameters", ()))


def _beside(case: Case, claim: Claim | None) -> bool:
    """Whether no gradient was lost, so that none has to arrive."""
    kinds = [claim.kind] if claim is not None else [defect["kind"] for defect in case.before.defects]
    return bool(kinds) and all(kind_of(kind).beside or kind_of(kind).style for kind in kinds)


def _arrives(seen: str, gained: list[str], case: Case) -> str:
    if meant := frozen(case.before, case.after):
        return f"{seen}; gone after: {listed(sorted(meant))} frozen, as written"
    if gained:
        return f"{seen}; gone after, and a gradient arrives at {listed(gained)}"
    if not case.after.fine:
        return f"{seen}; gone after"
    return f"{seen}; gone after, and the gradient still arrives at {len(case.after.fine)} of its leaves"


def _worse(case: Case) -> str:
    if case.after.failed and not case.before.failed:
        return f"the program fails after: {case.after.failure}"
    if not case.before.failed and not case.after.failed:
        before, after = case.before, case.after
        gone = before.fine - after.fine - frozen(before, after)
        lost = [name for name in named(gone) if name in after.norms]
        lost += [n for n in named(before.fine & after.fine) if before.norms[n] and not after.norms[n]]
        if lost:
            return f"no gradient any more at {listed(lost)}"
        known = {defect["kind"] for defect in before.defects}
        added = [d for d in after.defects if d["kind"] not in known and not kind_of(d["kind"]).style]
        if added and not _old(case, added[0]):
            return f"a defect that was not there before: {told(added[0])}"
    return case.changed


def _seen(case: Case, claim: Claim | None) -> str:
    """How the defect showed in the run before; empty: it did not."""
    for defect in case.before.defects:
        if _matches(defect, claim, case.options.claims):
            return f"seen before: {told(defect)}"
    if claim is not None and kind_of(claim.kind).harmless:
        lines = [line for line in case.before.writes(claim.path) if claim.covers(line)]
        return f"seen before: a write on a tensor of the graph, line {lines[0]}" if lines else ""
    if case.before.failed and not case.after.failed and not case.before.defects:
        changed = case.before.norms != case.after.norms
        return f"seen before: the program failed ({case.before.failure})" if changed else ""
    return ""


def _matches(defect: Mapping[str, Any], claim: Claim | None, claims: Sequence[Claim]) -> bool:
    """The same rule in the same file, or its family on the same lines."""
    if claim is None:
        return not kind_of(defect["kind"]).style
    places = [defect["place"], *(step["place"] for step in defect["evidence"])]
    here = [place for place in places if place["file"] == claim.path]
    if not here or not same_family(defect["kind"], claim.kind):
        return False
    if _touches(claim, here):
        return True
    return not any(one.kind == defect["kind"] and _touches(one, here) for one in claims)


def _touches(claim: Claim, places: Sequence[Mapping[str, Any]]) -> bool:
    return any(claim.covers(place["line"]) or claim.covers(place["end_line"]) for place in places)


def _left(case: Case, claim: Claim | None) -> str:
    """The claim's defect in the run after, if it is still there."""
    for defect in case.after.defects:
        if claim is None:
            if not kind_of(defect["kind"]).style and not _new(case, defect):
                return told(defect)
        elif defect["kind"] == claim.kind and _same_place(case, claim, defect):
            return told(defect)
    if claim is not None and kind_of(claim.kind).harmless:
        lines = case.lines.get(claim.path, {})
        if lines.get(claim.line) in case.after.writes(claim.path):
            return "the write"
    return ""


def _same_place(case: Case, claim: Claim, defect: Mapping[str, Any]) -> bool:
    place = defect["place"]
    if place["file"] != claim.path:
        return False
    lines = case.lines.get(claim.path, {})
    back = {after: before for before, after in lines.items()}
    return back.get(place["line"]) is None or claim.covers(back[place["line"]])


def _unseen(case: Case, claim: Claim | None) -> tuple[Word, str]:
    stop = stopped_by(case.before)
    if claim is not None and not reached(case, claim):
        return "not reached", f"the run did not come to these lines{': ' if stop else ''}{stop}"
    if case.before.failed and case.after.failed:
        return "no change", f"the program fails as before: {case.after.failure}"
    if case.before.failed:
        return "not reproduced", f"these lines ran, but {stop} before it could show"
    return "not reproduced", fine(case.before)


def fine(seen: Facts) -> str:
    """Why a run that came to its lines shows nothing."""
    backwards = any(event["event"] == "backward" for event in seen.recording["events"])
    return FINE if backwards else WITHOUT_BACKWARD


def stopped_by(seen: Facts) -> str:
    """What ended a run early; empty when it came to its end."""
    if seen.failed:
        return f"the program stopped ({seen.failure})"
    if seen.recording["how"] == "stopped":
        return f"it ended after enough steps{f', in line {seen.last}' if seen.last else ''} (--max-steps)"
    return ""


def reached(case: Case, claim: Claim) -> bool:
    """Whether a run came to a claim: to its lines, or to a place behind them in the same function."""
    ran, near = case.before.lines(claim.path), around(case.texts[claim.path], claim.path, claim.line)
    if not ran & near:
        return False
    last = case.before.last_in(claim.path)
    if not stopped_by(case.before) or any(claim.covers(line) for line in ran):
        return True
    return last not in near or claim.line <= last or claim.line <= max(ran & near)


def _new(case: Case, defect: Mapping[str, Any]) -> bool:
    return not any(d["kind"] == defect["kind"] for d in case.before.defects)


def _old(case: Case, defect: Mapping[str, Any]) -> bool:
    """A defect on a line that the rewrite has not touched was there all the time, behind the first one."""
    back = {after: before for before, after in case.lines.get(defect["place"]["file"], {}).items()}
    return defect["place"]["file"] not in case.lines or defect["place"]["line"] in back


def _new_defects(case: Case) -> str:
    for defect in case.after.defects:
        if not kind_of(defect["kind"]).style and _new(case, defect) and not _old(case, defect):
            return told(defect)
    return ""


def on_file(case: Case, path: str, said: Sequence[Verdict]) -> Verdict:
    """The verdict on a changed file: that of its findings together, or of the whole run."""
    words = {verdict.verdict for verdict in said}
    if not words:
        word, reason = _unrunnable(case) or _weigh(case, None)
        return _verdict(case, path, word, reason)
    word, reason = weakest(said)
    return _verdict(case, path, word, reason)


def together(path: str, said: Sequence[Verdict]) -> Verdict:
    """The verdict on a file whose findings were judged by runs of their own."""
    word, reason = weakest(said)
    one = next(verdict for verdict in said if verdict.reason == reason)
    return replace(one, path=path, verdict=word, kind="", line=0)


def weakest(said: Sequence[Verdict]) -> tuple[Word, str]:
    """What several findings come to."""
    words = {verdict.verdict for verdict in said}
    order: tuple[Word, ...] = ("worse", "could not run", "no change", "flows partly", "flows")
    for word in order:
        if word in words:
            if word in ("no change", "flows partly") and "flows" in words:
                word = "flows partly"
            return word, next(each.reason for each in said if each.verdict in (word, "no change"))
    one = min(said, key=lambda verdict: verdict.verdict != "not reproduced")
    return one.verdict, one.reason


def shown(seen: Facts, claim: Claim, text: bytes, limits: Limits) -> tuple[Word, str]:
    """Whether one run shows a finding of which nothing is mended."""
    stopped = cannot(seen.recording, limits.seconds, limits.memory)
    defect = next((one for one in seen.defects if _matches(one, claim, [claim]) and _on(claim, one)), None)
    if defect is not None:
        return "seen under torch", f"seen: {told(defect)}"
    if stopped:
        return "could not run", stopped
    case = Case(seen, seen, {}, JudgeOptions([claim], limits=limits), {claim.path: text})
    if not reached(case, claim):
        return "not reached", "the run did not come to these lines"
    if seen.failed:
        return "not reproduced", f"these lines ran, but {stopped_by(seen)} before it could show"
    return "not reproduced", fine(seen)


def _on(claim: Claim, defect: Mapping[str, Any]) -> bool:
    """Whether a defect is at the finding's own lines, or those lead to it."""
    places = [defect["place"], *(step["place"] for step in defect["evidence"])]
    return _touches(claim, [place for place in places if place["file"] == claim.path])


def told(defect: Mapping[str, Any]) -> str:
    """A recorded defect in one line."""
    place = defect["place"]
    return f"{defect['kind']}, {os.path.basename(place['file'])} line {place['line']}"
