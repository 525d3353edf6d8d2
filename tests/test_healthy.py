"""Small programs that work for a reason which is easily missed, and their twins, in which it doesn't hold.

`healthy` holds the programs: gradfix lists nothing in them, and torch runs them. `healthy/broken` holds the
twins, each under the name of the program that it is like: gradfix lists what their first line says.
"""

from __future__ import annotations

import io
import re
import runpy
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from gradfix.config import Config
from gradfix.engine import fix
from gradfix.outcome import Outcome
from gradfix.plan import Plan

ROOT = Path(__file__).with_name("healthy")
BROKEN = ROOT / "broken"
RUNS = {"GF210", "GF401", "GF402", "GF403"}
"""What doesn't fail: the training goes wrong, or the memory goes."""
PROMISE = re.compile(r"# (GF\d{3}(?:, GF\d{3})*): \S")


def cases(folder: Path) -> list[ParameterSet]:
    """The programs of a folder, under ids that read as words."""
    return [pytest.param(path, id=path.stem.replace("_", " ")) for path in sorted(folder.glob("*.py"))]


each_healthy = pytest.mark.parametrize("path", cases(ROOT))
each_broken = pytest.mark.parametrize("path", cases(BROKEN))


@cache
def plan() -> Plan:
    return Plan(Config(ROOT, unsafe_fixes=True))


def outcome(path: Path) -> Outcome:
    found = fix(path.name, path.read_bytes(), plan())
    assert (found.failure, found.gated) == (None, False)
    return found


def promised(path: Path) -> set[str]:
    """The codes in the first line of a broken twin."""
    said = PROMISE.match(path.read_text("utf-8"))
    assert said
    return set(said[1].split(", "))


@contextmanager
def as_it_was() -> Iterator[None]:
    """What a program switches in torch is switched back behind it, and what it prints isn't shown."""
    torch = pytest.importorskip("torch")
    recording, kind = torch.is_grad_enabled(), torch.get_default_dtype()
    try:
        with torch.random.fork_rng(), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            torch.manual_seed(0)
            yield
    finally:
        torch.set_grad_enabled(recording)
        torch.set_default_dtype(kind)


@each_healthy
def test_nothing_is_listed_in_what_works(path: Path) -> None:
    assert [(one.code, one.span.line) for one in outcome(path).findings] == []


@each_broken
def test_the_broken_twin_is_still_found(path: Path) -> None:
    assert {one.code for one in outcome(path).findings} == promised(path)


@pytest.mark.torch
@each_healthy
def test_torch_runs_what_works(path: Path) -> None:
    with as_it_was():
        runpy.run_path(str(path))


@pytest.mark.torch
@each_broken
def test_torch_fails_where_the_twin_is_said_to_fail(path: Path) -> None:
    with as_it_was():
        if promised(path) <= RUNS:
            runpy.run_path(str(path))
        else:
            with pytest.raises((RuntimeError, TypeError, UserWarning)):
                runpy.run_path(str(path))


def test_each_broken_program_has_a_healthy_twin() -> None:
    assert {path.name for path in BROKEN.iterdir() if path.suffix == ".py"} <= {
        path.name for path in ROOT.glob("*.py")
    }
