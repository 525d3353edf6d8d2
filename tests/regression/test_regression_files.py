"""Where the tests that stay are put, how the project is found from there, and in whose layout."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gradfix.driver.recipe import Recipe, Target
from gradfix.regression.files import stem, texts, write
from gradfix.regression.mended import Kept, Mended, Piece
from gradfix.regression.style import configured, formatted

PIECE = Piece("test_it", ("from models.net import Net",), ("def test_it():", "    assert Net() is not None"))


def kept(root: Path, shown: str = "models/net.py") -> Kept:
    target = Target(str(root / shown), str(root), "models.net", "Net", "module")
    mended = Mended(str(root / shown), shown, "GF101", 3, "it is wrong", b"", b"")
    return Kept(mended, Recipe(target), PIECE, "AssertionError")


def test_each_mended_file_gets_a_file_of_tests_and_the_folder_finds_the_project(tmp_path: Path) -> None:
    found = texts([kept(tmp_path), kept(tmp_path, "models/other.py")], tmp_path / "tests", sys.executable)
    assert {path.name for path in found} == {
        "test_net_gradients.py", "test_other_gradients.py", "conftest.py"
    }  # fmt: skip
    assert "parents[1]))" in found[tmp_path / "tests" / "conftest.py"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("conftest.py", ""),
        ("setup.py", ""),
        ("pyproject.toml", "[tool.pytest.ini_options]\npythonpath='.'\n"),
    ],
)
def test_a_project_that_is_found_already_is_left_alone(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    found = texts([kept(tmp_path)], tmp_path / "tests", sys.executable)
    assert [path.name for path in found] == ["test_net_gradients.py"]


def test_no_file_that_is_there_is_written_over(tmp_path: Path) -> None:
    folder = tmp_path / "tests"
    for _ in range(2):
        write(texts([kept(tmp_path)], folder, sys.executable))
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["conftest.py", "test_net_gradients.py", "test_net_gradients_2.py"]


@pytest.mark.parametrize(
    ("shown", "name"), [("a/b-c.py", "b_c"), ("models/__init__.py", "models"), ("Net.py", "net")]
)
def test_a_file_of_tests_is_called_after_what_it_tests(shown: str, name: str) -> None:
    assert stem(shown) == name


def test_the_layout_is_that_of_the_projects_own_settings(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.ruff.format]\nquote-style = 'single'\n")
    assert configured(tmp_path / "tests") == "ruff"
    text = formatted('x = "a"\n', tmp_path / "tests" / "test_x.py", sys.executable)
    assert text in ("x = 'a'\n", 'x = "a"\n')  # ruff may not be at hand


def test_a_project_without_settings_has_no_layout_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert configured(tmp_path) == ""
