"""What gradfix makes of every injected bug, with torch as the referee, and the table of it."""

from __future__ import annotations

import ast
import json
import math
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias
from zlib import crc32

from gradfix.config import Config
from gradfix.engine import fix
from gradfix.outcome import Outcome
from gradfix.plan import Plan

from .bugs import BUGS, Injected, inject

FIXTURES = Path(__file__).parent.parent.parent / "fixtures"
WATCH = Path(__file__).parent.parent / "gradients.py"
CLOSE = 1e-4
TOGETHER = 20
NO_TENSOR = "object has no attribute 'detach'"
"""How a program fails whose prediction is a list of tensors: there is no such bug."""

Record: TypeAlias = "dict[str, Any]"
Programs: TypeAlias = "list[tuple[Path, list[str]]]"
"""Texts by the path where they pretend to stand."""
Ask: TypeAlias = Callable[[Programs], "list[Record]"]
Fate: TypeAlias = Literal["restored", "harmless change", "half mended", "declined", "missed", "broken"]
Impact: TypeAlias = Literal["fails", "silent", "harmless"]
"""Of an injected program: its asserts fail; it trains otherwise all the same; it trains as the original."""
Mended: TypeAlias = "list[tuple[Injected, Outcome]]"


@dataclass(frozen=True, slots=True)
class Judged:
    """An injected program, what torch says of it, and what became of it."""

    path: Path
    injected: Injected
    outcome: Outcome
    error: str | None
    """How the injected program fails, if it does."""
    left: str | None
    """How the mended program fails, if it does."""
    impact: Impact
    fate: Fate


@contextmanager
def torch_process() -> Iterator[Ask]:
    """A warm process that records the gradients of programs."""
    command = [sys.executable, str(WATCH)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as warm:
        assert warm.stdin is not None and warm.stdout is not None
        questions, answers = warm.stdin, warm.stdout

        def ask(programs: Programs) -> list[Record]:
            print(json.dumps([(str(path), texts) for path, texts in programs]), file=questions, flush=True)
            records: list[Record] = json.loads(answers.readline())
            return records

        yield ask
        questions.close()


def healthy() -> list[Path]:
    return sorted([*FIXTURES.glob("*/*/after.py"), *FIXTURES.glob("*/*/keep.py")])


def survey(ask: Ask, bugs: Iterable[str] = BUGS, every: int = 1) -> list[Judged]:
    """Inject each bug wherever it fits, into one of so many programs, the same whatever others there are, and
    mend it; torch judges in its own process meanwhile."""
    drawn = [path for path in healthy() if crc32(path.parent.name.encode()) % every == 0]
    with ThreadPoolExecutor(1) as referee:
        waiting = []
        for paths in _few_at_once(drawn):
            mended = [_injected(path, bugs) for path in paths]
            programs = [(path, _asked(path, each)) for path, each in zip(paths, mended, strict=True)]
            waiting.append((mended, programs, referee.submit(ask, programs)))
        return [
            each
            for mended, programs, answers in waiting
            for each in _all_judged(mended, programs, iter(answers.result()))
        ]


def _few_at_once(paths: list[Path]) -> Iterator[list[Path]]:
    """What is run in one process: the fork costs more than a program."""
    for start in range(0, len(paths), TOGETHER):
        yield paths[start : start + TOGETHER]


def _injected(path: Path, bugs: Iterable[str]) -> Mended:
    text = path.read_text("utf-8")
    return [_mended(path, each) for bug in bugs for each in inject(bug, text)]


def _asked(path: Path, mended: Mended) -> list[str]:
    """The texts that torch is to judge: the original, and of each bug the program with it and without."""
    texts = [path.read_text("utf-8"), *(each for pair in mended for each in _texts(*pair))]
    return list(dict.fromkeys(texts))


def _all_judged(mended: list[Mended], programs: Programs, answers: Iterator[Record]) -> Iterator[Judged]:
    for each, (path, texts) in zip(mended, programs, strict=True):
        yield from _judged(path, each, {text: next(answers) for text in texts})


def restored(judged: Iterable[Judged]) -> float:
    """The share of the bugs that make a program fail and of which nothing is left."""
    real = [each.fate for each in judged if each.impact == "fails"]
    return real.count("restored") / len(real)


def _mended(path: Path, injected: Injected) -> tuple[Injected, Outcome]:
    return injected, fix(path.name, injected.text.encode(), _plan(injected.reduction))


def _texts(injected: Injected, outcome: Outcome) -> tuple[str, str]:
    """An injected program, and what gradfix made of it."""
    return injected.text, (outcome.after or b"").decode() or injected.text


@cache
def _plan(reduction: str) -> Plan:
    return Plan(Config(FIXTURES, reduction="mean" if reduction == "mean" else "sum", unsafe_fixes=True))


def _judged(path: Path, mended: Mended, records: dict[str, Record]) -> Iterator[Judged]:
    original = records[path.read_text("utf-8")]
    for injected, outcome in mended:
        broken, cured = (records[text] for text in _texts(injected, outcome))
        impact: Impact = "harmless" if same(original, broken) else "fails" if broken["error"] else "silent"
        # Where a `zero_grad` stands makes no difference but for a program that asserts that it stands there.
        asserts = (cured["error"] or "").startswith("AssertionError") and any(original["steps"])
        as_original = same(original, cured) or (asserts and alike(original, cured))
        if broken["error"] and NO_TENSOR in broken["error"]:
            continue
        runs = broken["error"] is None
        fate = _fate(path, outcome, as_original, same(broken, cured), runs=runs)
        yield Judged(path, injected, outcome, broken["error"], cured["error"], impact, fate)


def _fate(path: Path, outcome: Outcome, as_original: bool, as_injected: bool, runs: bool) -> Fate:
    if outcome.failure is not None:
        return "broken"
    if outcome.after is None:
        return "declined" if outcome.findings else "missed"
    if as_original or _dump(path.read_text("utf-8")) == _dump(outcome.after.decode()):
        return "restored"
    if as_injected:
        return "harmless change"
    return "broken" if runs else "half mended"


def same(one: Record, other: Record) -> bool:
    """Say whether two programs work and train alike: at every step, or at the end where there is none."""
    if one["error"] or other["error"]:
        return False
    return alike(one, other)


def alike(one: Record, other: Record) -> bool:
    """Say whether two programs train alike, whatever they say of it."""
    keys = ["steps", "values"] if any(one["steps"]) else ["backwards", "values"]
    return all(_close(one[key], other[key]) for key in keys)


def _close(one: Any, other: Any) -> bool:
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_close, one, other))
    if one is None or other is None:
        return bool(one is other)
    return math.isclose(one, other, rel_tol=CLOSE, abs_tol=CLOSE) or (one != one and other != other)


def _dump(text: str) -> str:
    return ast.dump(ast.parse(text))


IMPACTS: tuple[Impact, ...] = ("fails", "silent", "harmless")
FATES: tuple[Fate, ...] = ("restored", "harmless change", "half mended", "declined", "missed", "broken")
"""Half mended: it failed and fails still, or trains unlike the original. Broken: it ran, and does no more,
or trains unlike both; or gradfix itself gave up."""


def table(judged: list[Judged]) -> str:
    """How many bugs of each kind were injected, what they do under torch, and what became of them."""
    lines = [f"{'bug':32}{'impact':9}{'injected':>9}" + "".join(f"{fate:>16}" for fate in FATES)]
    for bug in [*BUGS, "all"]:
        for impact in IMPACTS:
            chosen = [
                each.fate for each in judged if bug in (each.injected.bug, "all") and each.impact == impact
            ]
            counts = "".join(f"{chosen.count(fate):16}" for fate in FATES)
            lines.append(f"{bug:32}{impact:9}{len(chosen):9}{counts}")
    return "\n".join(lines)


def main() -> None:
    with torch_process() as ask:
        print(table(survey(ask, sys.argv[1:] or BUGS)))


if __name__ == "__main__":
    main()
