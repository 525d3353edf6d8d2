"""A run with what earlier ones have found says exactly what a run without it says."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gradfix import plan as plans
from gradfix import session
from gradfix.cache.kept import Cache, _packed, _unpacked
from gradfix.cache.key import key, settings_of
from gradfix.cache.place import NAME
from gradfix.cache.records import reader, written
from gradfix.cache.store import Store
from gradfix.cli import main
from gradfix.config import Config
from gradfix.outcome import Outcome, Run
from gradfix.plan import Plan, plan_for
from gradfix.task import Task

ROOT = Path(__file__).parents[2]
MAIN = """import torch
from helper import act

w = torch.ones(3, requires_grad=True)
y = act(w)
y += 1
y.sum().backward()
"""
LAST = "y.sum().backward()\n"
SAVES = "def act(x):\n    return x.sigmoid()\n"
SAVES_NOT = "def act(x):\n    return x * 2\n"
DEEPER = "from deeper import act\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def ran(plan: Plan, kept: Path | None, mode: Any = "list", jobs: int = 1) -> Run:
    plans.forget()
    cache = Cache(str(kept), plan) if kept is not None else None
    run = session.run(session.Request((".",), mode, plan, jobs, cache=cache), lambda _: lambda _: None)
    assert cache is None or cache.trouble == ""
    return run


def write(name: str, text: str | None) -> None:
    file = Path(name)
    if text is None:
        file.unlink(missing_ok=True)
    else:
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that are played from here on."""
    from gradfix.tape import entries

    found: list[str] = []
    analyse = entries.analyse

    def noting(source: Any, *rest: Any) -> Any:
        found.append(Path(source.path).as_posix())
        return analyse(source, *rest)

    monkeypatch.setattr(entries, "analyse", noting)
    return found


CONTENTS = (SAVES, SAVES_NOT, DEEPER, "def act(x:\n", None)
EDITS = st.one_of(
    st.tuples(
        st.sampled_from(
            ("helper.py", "deeper.py", "package/helper.py", "package/helper/__init__.py", "src/helper.py")
        ),
        st.sampled_from(CONTENTS),
    ),
    st.tuples(st.sampled_from(("package/setup.py", "setup.py")), st.sampled_from(("", None))),
    st.tuples(
        st.sampled_from(("main.py", "package/main.py", "package/other.py")),
        st.sampled_from((MAIN, MAIN.replace("y += 1", "y += 1  # gradfix: ignore"), None)),
    ),
)
OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"suspects": True},
    {"unsafe_fixes": True},
    {"per_file_ignores": (("package", ("GF101",)),)},
    {"ignore": ("GF101",)},
    {"min_certainty": "certain"},
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.tuples(EDITS, st.sampled_from(OPTIONS)), min_size=2, max_size=8))
def test_after_any_edits_it_says_what_is_said_without_it(
    steps: list[tuple[tuple[str, str | None], dict[str, Any]]],
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept = tmp_path_factory.mktemp("kept")
    monkeypatch.chdir(tmp_path_factory.mktemp("project"))
    write("helper.py", SAVES)
    write("main.py", MAIN)
    write("package/main.py", MAIN)
    Path("setup.py").touch()
    for (name, text), options in steps:
        write(name, text)
        plan = plan_for(Config(Path.cwd()).with_options(**options))
        assert ran(plan, kept).outcomes == ran(plan, None).outcomes


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param("helper.py", SAVES_NOT, id="another content"),
        pytest.param("helper.py", None, id="a file that is gone"),
        pytest.param("deeper.py", SAVES_NOT, id="another content of what that imports"),
        pytest.param("package/helper.py", SAVES_NOT, id="a file that comes first"),
        pytest.param("package/setup.py", "", id="a root that is nearer"),
    ],
)
def test_what_was_found_is_forgotten_where_other_files_are_not_what_they_were(
    name: str, text: str | None, project: Path, tmp_path: Path, played: list[str]
) -> None:
    write("helper.py", DEEPER)
    write("deeper.py", SAVES)
    write("package/main.py", MAIN)
    write("setup.py", "")
    plan = plan_for(Config(project))
    first = ran(plan, tmp_path / "kept")
    assert [len(each.findings) for each in first.outcomes if each.path.endswith("main.py")] == [1]
    played.clear()
    assert ran(plan, tmp_path / "kept").outcomes == first.outcomes
    assert played == []
    write(name, text)
    last = ran(plan, tmp_path / "kept")
    assert "package/main.py" in played
    assert [len(each.findings) for each in last.outcomes if each.path.endswith("main.py")] == [0]


def test_what_one_file_read_counts_for_another_that_came_later(
    project: Path, tmp_path: Path, played: list[str]
) -> None:
    """In one process the helper is parsed once for both."""
    write("helper.py", SAVES)
    write("a.py", MAIN)
    write("b.py", MAIN)
    write("c.py", "import torch\n")
    plan = plan_for(Config(project))
    ran(plan, tmp_path / "kept")
    played.clear()
    write("helper.py", SAVES_NOT)
    assert [len(each.findings) for each in ran(plan, tmp_path / "kept").outcomes[:2]] == [0, 0]
    assert {"a.py", "b.py"} <= set(played)
    assert "c.py" not in played


def copied(project: Path) -> None:
    """What is broken and what is kept of each rule, with a notebook and files that can't be worked on."""
    for rule in sorted((ROOT / "fixtures").iterdir()):
        for file in sorted(min(rule.iterdir()).glob("*.py")):
            if file.name != "after.py":
                shutil.copy(file, project / f"{rule.name}_{file.name}")
    cells = (MAIN.replace("from helper import act", "act = torch.exp")[: -len(LAST)], LAST)
    code: dict[str, Any] = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    told = {"cells": [code | {"source": cell} for cell in cells], "metadata": {}, "nbformat": 4}
    write("cells.ipynb", json.dumps(told | {"nbformat_minor": 4}, indent=1))
    write("python_2.py", "import torch\nprint 'x'\n")
    write("skipped.py", "# gradfix: skip-file\nimport torch\n")
    write("silent.py", "import torch\nx = 1  # gradfix: ignore[GF101]\n")
    Path("latin.py").write_bytes("# coding: latin-1\nimport torch\ns = 'ä'\n".encode("latin-1"))


def said(*arguments: str) -> tuple[str, str, int]:
    plans.forget()
    result = CliRunner().invoke(main, ["-j1", *arguments], prog_name="gradfix")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.stdout, result.stderr, result.exit_code


FORMS = (
    ("--verbose",),
    ("--diff",),
    ("--statistics",),
    *(("--output-format", each) for each in ("json", "sarif", "rdjson", "github", "gitlab", "concise")),
    ("--suspects", "--verbose"),
    ("--suspects", "--output-format=json"),
    ("--unsafe-fixes", "--diff"),
)


def test_every_form_of_the_report_is_the_same(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copied(project)
    without = {form: said("--no-cache", *form) for form in FORMS}
    for form in FORMS:
        said(*form)
    parsed = 'x = "not to be played"'

    def never(*_: Any) -> Any:
        raise AssertionError(parsed)

    monkeypatch.setattr("gradfix.tape.entries.analyse", never)
    assert {form: said(*form) for form in FORMS} == without
    assert said()[0].count("GF") > 10
    assert "cells.ipynb:cell 1:6" in said("--output-format", "concise")[0]


def test_what_is_new_since_a_revision_hangs_on_what_was_there(project: Path) -> None:
    git = ("git", "-c", "user.name=somebody", "-c", "user.email=somebody@example.org")
    write("helper.py", SAVES)
    write("main.py", MAIN)
    subprocess.run([*git, "init", "-q"], check=True)
    for text in (MAIN, MAIN.replace("y += 1", "y += 2"), MAIN.replace("y += 1", "y = y + 1")):
        write("main.py", text)
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "-qm", "more"], check=True)
    write("main.py", MAIN)
    forms = [(), ("--since", "HEAD"), ("--since", "HEAD~1"), ("--since", "HEAD~2")]
    without = [said("--no-cache", *form) for form in forms]
    assert [code for _, _, code in without] == [1, 1, 1, 0]
    for _ in range(2):
        assert [said(*form) for form in forms] == without


def test_processes_keep_for_each_other(
    project: Path, tmp_path: Path, played: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gradfix.pool.SMALL", 100)
    write("helper.py", SAVES)
    for number in range(6):
        write(f"main_{number}.py", MAIN)
    plan = plan_for(Config(project))
    first = ran(plan, tmp_path / "kept", jobs=2)
    assert played == []
    assert ran(plan, tmp_path / "kept").outcomes == first.outcomes
    assert played == []
    assert ran(plan, None).outcomes == first.outcomes


def forged(kept: Path, plan: Plan, name: str) -> None:
    """Put an outcome with a text of somebody else's where that of a file is kept."""
    task = Task(name, Path(name).read_bytes(), plan)
    store = Store(str(kept))
    row = store.get(key(task, settings_of(plan)))
    assert row is not None
    found: Outcome = reader(Outcome)(_unpacked(row[2]))
    store.put((row[0], row[1], _packed(written(replace(found, after=b"import os\n")))))
    store.close()


@pytest.fixture
def listed(project: Path, tmp_path: Path) -> Iterator[tuple[Path, Plan]]:
    """A project with a finding that was listed before."""
    write("helper.py", SAVES)
    write("main.py", MAIN)
    plan = plan_for(Config(project))
    assert ran(plan, tmp_path / "kept").outcomes[1].after is not None
    yield tmp_path / "kept", plan


def test_what_is_written_is_never_taken_from_what_is_kept(listed: tuple[Path, Plan]) -> None:
    kept, plan = listed
    forged(kept, plan, "main.py")
    assert ran(plan, kept, "diff").outcomes[1].after == b"import os\n"
    ran(plan, kept, "apply")
    assert Path("main.py").read_text() == MAIN.replace("y += 1", "y = y + 1")


def test_comments_that_silence_are_never_taken_from_what_is_kept(listed: tuple[Path, Plan]) -> None:
    kept, plan = listed
    forged(kept, plan, "main.py")
    ran(plan, kept, "add-ignore")
    assert "y += 1  # gradfix: ignore[GF101]" in Path("main.py").read_text()
    assert ran(plan, kept).outcomes == ran(plan, None).outcomes


@pytest.mark.parametrize("part", ["reading", "found"])
@pytest.mark.parametrize(
    "content",
    [b"", b"x", _packed([]), _packed(None), _packed({}), _packed([1, [2], {"a": 3}]), _packed([0, {}, []])],
    ids=repr,
)
def test_a_row_that_is_something_else_is_passed_over(
    part: str, content: bytes, listed: tuple[Path, Plan], played: list[str]
) -> None:
    kept, plan = listed
    store = Store(str(kept))
    row = store.get(key(Task("main.py", Path("main.py").read_bytes(), plan), settings_of(plan)))
    assert row is not None
    store.put((row[0], content, row[2]) if part == "reading" else (row[0], row[1], content))
    store.close()
    assert ran(plan, kept).outcomes == ran(plan, None).outcomes
    assert played[0] == "main.py"


def test_a_bomb_is_not_unpacked() -> None:
    with pytest.raises(ValueError):
        _unpacked(_packed("x" * 20_000_000))


def test_texts_are_not_kept_where_nothing_is_found(project: Path, tmp_path: Path) -> None:
    write("quiet.py", "import torch\n" + "".join(f"x{n} = torch.ones({n})\n" for n in range(3000)))
    ran(plan_for(Config(project)), tmp_path / "kept")
    assert b"torch.ones" not in (tmp_path / "kept" / NAME).read_bytes()
    assert (tmp_path / "kept" / NAME).stat().st_size < 20_000


def test_what_failed_is_tried_again(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write("main.py", "import torch\n")
    plan = plan_for(Config(project))
    with monkeypatch.context() as patched:
        patched.setattr("gradfix.tape.entries.analyse", lambda *_: 1 / 0)
        assert ran(plan, tmp_path / "kept").outcomes[0].failure is not None
    assert ran(plan, tmp_path / "kept").outcomes[0].failure is None
