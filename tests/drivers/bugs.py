"""Bugs put into the library files of other people's projects: what does a driver say of each?"""

from __future__ import annotations

import ast
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Literal, TypeAlias

from gradfix.config import Config
from gradfix.engine import fix
from gradfix.outcome import Outcome
from gradfix.plan import Plan, plan_for
from gradfix.proof import Proving, proved
from gradfix.session import Request
from gradfix.verify import Verdict

from .cutting import DEFINITIONS
from .planted import Planted, planted

QUIET = (*DEFINITIONS, ast.Assign, ast.AnnAssign, ast.Try, ast.If)
Fate: TypeAlias = Literal["confirmed", "undecided", "not reproduced", "not run", "wrong", "no verdict"]
FATES: tuple[Fate, ...] = ("confirmed", "undecided", "not reproduced", "not run", "wrong", "no verdict")
BY_WORD: dict[str, Fate] = {
    "flows": "confirmed",
    "flows partly": "confirmed",
    "seen under torch": "confirmed",
    "undecided": "undecided",
    "not reproduced": "not reproduced",
    "not reached": "not run",
    "could not run": "not run",
}
"""What a verdict comes to; of a bug that is there, any other word is wrong."""
FAILS = "the program fails as before"
"""The reason of a *no change* that has nothing to do with the bug; any other saw it before and after."""
LONGEST = 30_000
OF_ONE = 5
"""Bugs of one project."""
TRIED = 8
"""So many are put in for each of which gradfix may have something to say."""


@dataclass(frozen=True, slots=True)
class Case:
    """A bug in a file of a project that gradfix has something to say of."""

    project: Path
    path: Path
    injected: Planted
    rule: str
    line: int


@dataclass(frozen=True, slots=True)
class Judged:
    """What became of it."""

    case: Case
    fate: Fate
    reason: str

    @property
    def place(self) -> str:
        inner = self.case.path.relative_to(self.case.project.parent)
        return f"{inner}:{self.case.line} {self.case.injected.bug} -> {self.case.rule}"


def plan(folder: Path) -> Plan:
    """All that gradfix has to say."""
    return plan_for(Config(folder, unsafe_fixes=True, suspects=True))


def cases(projects: Sequence[Path], count: int, seed: int, each: int = OF_ONE) -> list[Case]:
    """So many bugs, drawn by chance, of each project a few."""
    drawn = Random(seed)
    found: list[Case] = []
    for project in drawn.sample(list(projects), len(projects)):
        found += of_project(project, drawn, each)
    return drawn.sample(found, min(count, len(found)))


def kept(cases: Sequence[Case], path: Path) -> None:
    """Keep bugs, to be judged again."""
    told = [
        {"project": str(one.project), "path": str(one.path), "rule": one.rule, "line": one.line,
         "injected": asdict(one.injected)}
        for one in cases
    ]  # fmt: skip
    path.write_text(json.dumps(told))


def again(path: Path) -> list[Case]:
    """The bugs that were kept."""
    return [
        Case(Path(one["project"]), Path(one["path"]), Planted(**one["injected"]), one["rule"], one["line"])
        for one in json.loads(path.read_text())
    ]


def of_project(project: Path, drawn: Random, each: int) -> list[Case]:
    """A few bugs of one project, half of them in what trains, if it has room for them."""
    tried: list[tuple[Path, Planted]] = []
    for path in sorted(project.rglob("*.py")):
        content = path.read_bytes()
        if b"torch" in content and len(content) < LONGEST and is_library(content):
            injected = planted(content.decode("utf-8", "replace"))
            tried += [(path, one) for one in injected if parses(one.text)]
    drawn.shuffle(tried)
    training = [one for one in tried if trains(one[1])]
    kept = chosen(project, training, each // 2)
    return kept + chosen(project, [one for one in tried if one not in training], each - len(kept))


def chosen(project: Path, tried: Sequence[tuple[Path, Planted]], count: int) -> list[Case]:
    """So many that gradfix has something to say of, of different kinds where that goes."""
    kinds: Counter[str] = Counter()
    kept: list[Case] = []
    for path, injected in tried[: count * TRIED]:
        if len(kept) < count and kinds[injected.bug] < 2 and (case := new(project, path, injected)):
            kinds[injected.bug] += 1
            kept.append(case)
    return kept


def trains(injected: Planted) -> bool:
    """Whether a bug is in a function that goes backward, or that a framework does so for."""
    for node in ast.walk(ast.parse(injected.text)):
        if isinstance(node, ast.FunctionDef) and node.lineno <= injected.line <= (node.end_lineno or 0):
            called = {getattr(one.func, "attr", "") for one in ast.walk(node) if isinstance(one, ast.Call)}
            if node.name == "training_step" or called & {"backward", "manual_backward"}:
                return True
    return False


def is_library(content: bytes) -> bool:
    """Whether a file only defines: one that is a script by itself drives itself."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):
        return False
    scripts = any(isinstance(node, ast.If) and "__main__" in ast.unparse(node.test) for node in tree.body)
    return not scripts and all(isinstance(node, QUIET) or is_text(node) for node in tree.body)


def parses(text: str) -> bool:
    """Whether what was put in has left a program: tabs and spaces don't mix."""
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def new(project: Path, path: Path, injected: Planted) -> Case | None:
    """The finding that a bug has brought, if it did."""
    found = said(path, injected.text.encode()).findings
    near = [one for one in found if abs(one.span.line - injected.line) <= 2]
    known = said(path, path.read_bytes()).findings if near else ()
    before = {(one.rule, one.message) for one in known}
    own = next((one for one in near if (one.rule, one.message) not in before), None)
    return Case(project, path, injected, own.rule, own.span.line) if own else None


def said(path: Path, content: bytes) -> Outcome:
    return fix(str(path), content, plan(path.parent))


def judged(case: Case, python: str | None, seconds: float = 1200.0) -> Judged:
    """What a driver says of a bug, in a copy of its project."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / case.project.name
        shutil.copytree(case.project, copy, ignore=shutil.ignore_patterns("*.md", "*.ipynb"))
        path = copy / case.path.relative_to(case.project)
        path.write_text(case.injected.text, "utf-8")
        request = Request((str(path),), "list", plan(copy), jobs=1)
        run = proved(request, Proving(python=python, seconds=seconds), lambda _: lambda _: None)
    verdicts = [each for one in run.outcomes for each in one.verdicts]
    own = [each for each in verdicts if (each.kind, each.line) == (case.rule, case.line)]
    if not own:
        return Judged(case, "no verdict", ", ".join(each.reason for each in verdicts))
    return Judged(case, fate_of(own[0]), f"{own[0].verdict}: {own[0].reason}")


def fate_of(verdict: Verdict) -> Fate:
    if verdict.verdict == "no change":
        return "not run" if verdict.reason.startswith(FAILS) else "confirmed"
    return BY_WORD.get(verdict.verdict, "wrong")


def table(found: Sequence[Judged]) -> str:
    """By bug: how many have which fate."""
    bugs = sorted({one.case.injected.bug for one in found})
    head = f"{'bug':34}{'bugs':>6}" + "".join(f"{fate:>16}" for fate in FATES)
    return "\n".join([head, *(row(bug, found) for bug in (*bugs, "all"))])


def row(bug: str, found: Sequence[Judged]) -> str:
    own = [one.fate for one in found if bug in (one.case.injected.bug, "all")]
    return f"{bug:34}{len(own):6}" + "".join(f"{own.count(fate):16}" for fate in FATES)


def shown(found: Sequence[Judged]) -> Iterator[str]:
    """Each bug that was not confirmed."""
    for one in found:
        if one.fate != "confirmed":
            yield f"  {one.fate:15} {one.place}\n        {one.reason[:300]}"
