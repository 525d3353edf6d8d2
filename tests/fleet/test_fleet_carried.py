"""What is carried along answers as the disk does: outcomes are the same with no file at hand."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from gradfix import plan as plans
from gradfix.config import Config
from gradfix.fleet.batches import BATCH, batches
from gradfix.fleet.carried import imported
from gradfix.fleet.worker import done
from gradfix.outcome import Outcome
from gradfix.plan import Plan, plan_for
from gradfix.since import Earlier
from gradfix.task import Step, Task, mend, noted, silence

MAIN = """import torch
{imports}

w = torch.ones(3, requires_grad=True)
y = {act}(w)
y += 1
y.sum().backward()
"""
ACT = "def act(x):\n    return x.sigmoid()\n"
NOTEBOOK = (
    '{"cells": [{"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": null, "source": '
    '["import torch\\n", "from helper import act\\n", "w = torch.ones(3, requires_grad=True)\\n", '
    '"y = act(w)\\n", "y += 1\\n", "y.sum().backward()"]}],'
    ' "metadata": {"language_info": {"name": "python"}}, "nbformat": 4, "nbformat_minor": 4}'
)


def main(imports: str, act: str = "act") -> str:
    return MAIN.format(imports=imports, act=act)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "setup.py").touch()
    monkeypatch.chdir(folder)
    plans.forget()
    return folder


def write(files: Mapping[str, str]) -> None:
    for name, text in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)


def both(
    path: str, monkeypatch: pytest.MonkeyPatch, step: Step = noted, plan: Plan | None = None, **more: object
) -> tuple[Outcome | None, Outcome]:
    """What a task comes to elsewhere, where nothing of the project is, and here."""
    here = Path.cwd()
    content = Path(path).read_bytes()
    task = replace(Task(path, content, plan or plan_for(Config(here))), **more)  # type: ignore[arg-type]
    ((carried, (batch,)),) = batches([task])
    at_home = step(task)
    here.rename(here.with_name("gone"))
    elsewhere = here.with_name("elsewhere")
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    (away,) = done(step, batch, carried)
    if away is not None and away.before is not None:
        assert away.before == b""
        away = replace(away, before=content)
    return away, at_home


@pytest.mark.parametrize(
    ("path", "files"),
    [
        pytest.param(
            "a.py", {"a.py": main("from helper import act"), "helper.py": ACT}, id="a file beside it"
        ),
        pytest.param(
            "a.py",
            {
                "a.py": main("from helper import act"),
                "helper.py": "from deeper import act\n",
                "deeper.py": ACT,
            },
            id="a file that another one imports",
        ),
        pytest.param(
            "pack/a.py",
            {"pack/__init__.py": "", "pack/a.py": main("from .act import act"), "pack/act.py": ACT},
            id="a relative import",
        ),
        pytest.param(
            "pack/inner/a.py",
            {"pack/inner/a.py": main("from ..act import act"), "pack/act.py": ACT},
            id="a relative import from above",
        ),
        pytest.param(
            "pack/a.py",
            {"pack/a.py": main("from . import act", "act.act"), "pack/act.py": ACT},
            id="a module of its own package",
        ),
        pytest.param(
            "scripts/a.py",
            {"scripts/a.py": main("from pack.act import act"), "src/pack/act.py": ACT},
            id="a package below src",
        ),
        pytest.param("a.py", {"a.py": main("from helper import *"), "helper.py": ACT}, id="all of a file"),
        pytest.param(
            "a.py",
            {"a.py": main("import pack.act as other", "other.act"), "pack/act.py": ACT},
            id="a module by another name",
        ),
        pytest.param(
            "a.py",
            {"a.py": main("from helper import (  # all\n    other as o,\n    act,\n)"), "helper.py": ACT},
            id="names on several lines",
        ),
        pytest.param(
            "a.py",
            {"a.py": main("import math; from helper import act"), "helper.py": ACT},
            id="two imports on a line",
        ),
        pytest.param(
            "a.py",
            {"a.py": main("from other import act"), "other.py": "def act(:\n", "src/other.py": ACT},
            id="a file that is no Python",
        ),
        pytest.param(
            "a.py",
            {"a.py": main("from helper import act"), "helper.py": f"{ACT}from a import w\n"},
            id="files that import each other",
        ),
        pytest.param("a.ipynb", {"a.ipynb": NOTEBOOK, "helper.py": ACT}, id="a notebook"),
        pytest.param("a.py", {"a.py": main("from nowhere import act")}, id="a file that isn't there"),
        pytest.param("a.py", {"a.py": "import torch\ndef f(:\n"}, id="no Python at all"),
    ],
)
def test_an_outcome_elsewhere_is_that_of_here(
    path: str, files: Mapping[str, str], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(files)
    away, at_home = both(path, monkeypatch)
    assert away == at_home
    assert at_home.reading is not None
    wanted = not any("nowhere" in text or "def f(:" in text for text in files.values())
    assert bool(at_home.findings) == wanted


def test_without_a_neighbour_nothing_would_be_found(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the outcomes above hang on what was carried."""
    write({"a.py": main("from helper import act"), "helper.py": ACT.replace(".sigmoid()", " * 2")})
    away, at_home = both("a.py", monkeypatch)
    assert away == at_home and not at_home.findings


def test_what_wasnt_carried_is_left_to_who_has_it(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that nothing but an attribute names."""
    files = {"a.py": main("import pack", "pack.act.act"), "pack/__init__.py": "", "pack/act.py": ACT}
    write(files)
    away, at_home = both("a.py", monkeypatch)
    assert away is None and at_home.findings


@pytest.mark.skipif(sys.platform != "linux", reason="names that differ in case only may be the same here")
def test_a_name_that_differs_in_case_is_no_file(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(
        {"a.py": main("import pack", "pack.Act"), "pack/__init__.py": "class Act: ...\n", "pack/act.py": ""}
    )
    away, at_home = both("a.py", monkeypatch)
    assert away == at_home


def test_a_name_in_a_package_is_no_file_unless_it_is_one(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write({"a.py": main("import pack", "pack.act"), "pack/__init__.py": ACT, "pack/other.py": ""})
    away, at_home = both("a.py", monkeypatch)
    assert away == at_home and at_home.findings


def test_what_another_file_imports_is_looked_for_beside_the_first_too(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write({"sub/a.py": main("from helper import act"), "helper.py": "import far.away\nact = far.away.act\n"})
    away, at_home = both("sub/a.py", monkeypatch)
    assert away == at_home


def test_a_task_after_one_that_wasnt_covered_is_not_either(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = main("import pack", "pack.act.act")
    write({"a.py": text, "b.py": text, "c.py": main(""), "pack/__init__.py": "", "pack/act.py": ACT})
    tasks = [Task(f"{name}.py", Path(f"{name}.py").read_bytes(), plan_for(Config(project))) for name in "abc"]
    ((carried, (batch,)),) = batches(tasks)
    assert [each is None for each in done(mend, batch, carried)] == [True, True, False]


def test_settings_for_files_hold_elsewhere(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write({"sub/a.py": main("from helper import act"), "helper.py": ACT})
    plan = plan_for(Config(project, per_file_ignores=(("sub/*.py", ("GF101",)),)))
    away, at_home = both("sub/a.py", monkeypatch, plan=plan)
    assert away == at_home and not at_home.findings


def test_comments_that_silence_are_written_elsewhere(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write({"a.py": main("from helper import act"), "helper.py": ACT})
    away, at_home = both("a.py", monkeypatch, silence)
    assert away == at_home and b"gradfix: ignore" in (at_home.after or b"")


def test_what_a_file_was_may_have_imported_other_files(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write({"a.py": main("from helper import act"), "helper.py": ACT, "older.py": ACT})
    earlier = Earlier(main("from older import act").encode(), b"")
    away, at_home = both("a.py", monkeypatch, earlier=earlier)
    assert away == at_home and not at_home.findings


def test_a_folder_behind_a_link_is_carried(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project.parent / "other").mkdir()
    (project.parent / "other" / "act.py").write_text(ACT)
    Path("pack").symlink_to(project.parent / "other")
    write({"a.py": main("from pack.act import act")})
    away, at_home = both("a.py", monkeypatch)
    assert away == at_home and at_home.findings


def test_each_project_is_carried_by_itself(project: Path) -> None:
    for name in ("one", "two"):
        write(
            {f"{name}/setup.py": "", f"{name}/a.py": main("from helper import act"), f"{name}/helper.py": ACT}
        )
    paths = ("one/a.py", "one/helper.py", "two/a.py")
    tasks = [Task(path, Path(path).read_bytes(), plan_for(Config(project))) for path in paths]
    cut = [[task.path for task in batch] for _, found in batches(tasks) for batch in found]
    assert cut == [["one/a.py", "one/helper.py"], ["two/a.py"]]


def test_large_files_go_by_themselves(project: Path) -> None:
    plan = plan_for(Config(project))
    large = [Task(f"{number}.py", b"#" * BATCH + b"\n", plan) for number in range(3)]
    ((_, found),) = batches(large)
    assert [len(batch) for batch in found] == [1, 1, 1]


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        pytest.param("import a.b as c, d", {("a.b", 0), ("a", 0), ("d", 0)}, id="modules"),
        pytest.param("from a import b as c", {("a.b", 0), ("a", 0)}, id="a name of a module"),
        pytest.param("from . import b", {("b", 1), ("", 1)}, id="of its own package"),
        pytest.param("from ..a import *", {("a", 2)}, id="all of a module above"),
        pytest.param("if x: import a", {("a", 0)}, id="under a condition on a line"),
        pytest.param(
            "def f():\n    from a import (b,\n  c)\n", {("a", 0), ("a.b", 0), ("a.c", 0)}, id="later"
        ),
        pytest.param("important = 1\nimported(a)\n", set(), id="names that begin so"),
    ],
)
def test_what_a_text_may_import_is_seen_without_parsing(text: str, asked: set[tuple[str, int]]) -> None:
    assert set(imported(text.encode())) == asked
