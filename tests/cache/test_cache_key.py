"""What an outcome hangs on besides what its file imports."""

from __future__ import annotations

import os
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from gradfix.cache import key as keys
from gradfix.cache.key import ELSEWHERE, key, settings_of
from gradfix.config import Config
from gradfix.plan import Plan
from gradfix.since import Earlier
from gradfix.tape.effects.frameworks import Entry, Row
from gradfix.task import Task

TASK = Task("x.py", b"import torch\n", Plan(Config(Path("/project"))))
OTHERS: dict[str, Any] = {
    "root": Path("/elsewhere"),
    "select": ("GF1",),
    "ignore": ("GF2",),
    "extend_select": ("GF102",),
    "per_file_ignores": (("a", ("GF1",)),),
    "unsafe_fixes": True,
    "min_certainty": "certain",
    "fix_certainty": "certain",
    "reduction": "mean",
    "frameworks": (("Mine", Row(methods={"fit": Entry(grad=False)})),),
    "suspects": True,
}


@pytest.mark.parametrize("name", [each.name for each in fields(Config) if each.name not in ELSEWHERE])
def test_every_setting_that_says_something_of_a_file_counts(name: str) -> None:
    other = Plan(replace(TASK.plan.config, **{name: OTHERS[name]}))
    assert settings_of(other) != settings_of(TASK.plan)


def test_settings_have_one_order() -> None:
    rows = [Row(backward=frozenset(names)) for names in (("a", "b", "c"), ("c", "b", "a"))]
    told = {settings_of(Plan(replace(TASK.plan.config, frameworks=(("Mine", row),)))) for row in rows}
    assert len(told) == 1


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(replace(TASK, path="y.py"), id="another name"),
        pytest.param(replace(TASK, content=b"import torch \n"), id="another content"),
        pytest.param(replace(TASK, earlier=Earlier(b"", b"")), id="a past"),
        pytest.param(replace(TASK, path="x.pyimport ", content=b"torch\n"), id="a border that moved"),
    ],
)
def test_what_a_file_is_counts(other: Task) -> None:
    assert key(other, b"") != key(TASK, b"")


def test_another_gradfix_finds_nothing_of_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    before = key(TASK, b"")
    monkeypatch.setattr(keys, "maker", lambda: b"gradfix-9.9.9.dist-info")
    assert key(TASK, b"") != before


def test_a_checkout_counts_with_all_that_is_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules that somebody works on change under the same version."""
    for name in ("gradfix/engine.py", "gradfix/tape/effects.json", "codemods/rule.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    monkeypatch.setattr(keys, "PACKAGE", tmp_path / "gradfix")
    made = [keys.maker.__wrapped__()]
    for name in ("gradfix/engine.py", "gradfix/tape/effects.json", "codemods/rule.py"):
        (tmp_path / name).write_text("1")
        made.append(keys.maker.__wrapped__())
    (tmp_path / "gradfix-1.0.dist-info").mkdir()
    made.append(keys.maker.__wrapped__())
    assert len(set(made)) == 5
    (tmp_path / "gradfix/engine.py").write_text("2")
    os.rename(tmp_path / "gradfix-1.0.dist-info", tmp_path / "gradfix-1.1.dist-info")
    assert keys.maker.__wrapped__() not in made
