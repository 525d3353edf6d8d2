"""The benchmarks tell the truth about small folders."""

from __future__ import annotations

import ast
import time
from pathlib import Path

import pytest

from .command import again, agains, start, starts
from .cost import cost, table
from .projects import PROJECTS, Project, written
from .robust import ends
from .robust import table as robust_table
from .scaling import SCENES, Scene
from .watch import HungError, watchdog


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "good.py").write_text("import torch\nx = torch.ones(3)\n")
    (tmp_path / "other.py").write_text("print(1)\n")
    (tmp_path / "broken.py").write_text("import torch\ndef f(:\n")
    (tmp_path / "latin.py").write_bytes(b"# torch \xe9\n")
    (tmp_path / "nul.py").write_bytes(b"import torch\0\n")
    (tmp_path / "deep.py").write_text("import torch\nx = " + "(" * 5000 + ")" * 5000 + "\n")
    return tmp_path


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_every_scene_is_python_that_grows(scene: Scene) -> None:
    small, large = (scene.text(size) for size in scene.sizes[:2])
    ast.parse(small)
    assert len(large) > 1.2 * len(small)


@pytest.mark.parametrize("project", PROJECTS, ids=lambda project: project.name)
def test_every_project_is_python_that_grows(project: Project, tmp_path: Path) -> None:
    first, second = project.sizes[:2]
    small, large = (project.texts(size) for size in (first, second))
    assert sum(map(len, large.values())) > 1.8 * sum(map(len, small.values()))
    for path in written(project, 3, tmp_path):
        ast.parse(path.read_text())


def test_every_file_of_a_folder_ends_in_one_named_way(folder: Path) -> None:
    found = {end.path.name: end for end in ends(folder, 5.0)}
    assert {name: end.how for name, end in found.items()} == {
        "good.py": "analysed",
        "other.py": "analysed",
        "broken.py": "failed",
        "latin.py": "failed",
        "nul.py": "failed",
        "deep.py": "failed",
    }
    assert all(end.reason for end in found.values() if end.how == "failed")


def test_the_table_of_ends_counts_them(folder: Path) -> None:
    text, well = robust_table([folder], 5.0)
    assert well
    assert "broken.py: parse" in text


def test_only_files_that_mention_torch_are_timed(folder: Path) -> None:
    result = cost(folder, 1, 5.0)
    assert sorted(t.path.name for t in result.timings) == [
        "broken.py",
        "deep.py",
        "good.py",
        "latin.py",
        "nul.py",
    ]
    assert result.parse > 0
    assert "good.py" in table([result], 9)


def test_the_command_is_timed_with_its_imports_and_without_its_start(folder: Path) -> None:
    result = cost(folder, 1, 5.0, command=True)
    assert result.command is not None
    assert result.command.startup > 0
    assert result.command.peak > 10
    assert "the command, imports followed" in table([result], 0)


def test_a_folder_is_timed_as_it_is_looked_at_again(folder: Path) -> None:
    taken = again(folder, 1)
    assert min(taken.without, taken.keeping, taken.finding) > 0
    assert folder.name[-30:] in agains({folder: taken})
    assert not (folder / ".gradfix_cache").exists()


def test_starting_up_is_timed_beside_python() -> None:
    taken = start(1)
    assert len(taken) == 5
    assert min(taken.values()) > 0
    assert starts(taken).splitlines()[0].endswith(" 1.0 x")


def test_work_that_takes_too_long_is_ended() -> None:
    start = time.process_time()
    with pytest.raises(HungError), watchdog(0.05):
        while time.process_time() - start < 5:
            pass
    assert time.process_time() - start < 1
