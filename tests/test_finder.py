"""Which files are found, in which order, under which names."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from gradfix.config import Config
from gradfix.finder import find
from gradfix.patterns import Patterns
from gradfix.source import Failure


@pytest.fixture(autouse=True)
def _there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def make(*names: str, text: str = "") -> None:
    for name in names:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)


def names(*paths: str, config: Config | None = None) -> list[str]:
    """The paths of the files found, from the working directory where none is given."""
    found = list(find(paths or (".",), config or Config(Path.cwd())))
    assert [each.failure for each in found] == [None] * len(found)
    return [each.path for each in found]


def config(**given: Iterable[str] | bool) -> Config:
    return Config(Path.cwd()).with_options(**given)


def test_python_files_and_notebooks_are_found_files_before_folders_in_the_order_of_names() -> None:
    make("b.py", "a/z.py", "a/b/c.py", "B.pyw", "a.txt", "c.pyi", "d.ipynb")
    assert names() == ["B.pyw", "b.py", "d.ipynb", "a/z.py", "a/b/c.py"]


def test_each_file_is_found_once() -> None:
    make("a/x.py", "b.py")
    os.symlink("b.py", "c.py")
    assert names("b.py", ".", "a", "./a/../b.py", os.path.abspath("a/x.py")) == ["b.py", "a/x.py"]


def test_paths_outside_the_working_directory_keep_the_name_that_was_given(tmp_path: Path) -> None:
    make("here/x.py", "there/y.py")
    os.chdir("here")
    assert names("../there", str(tmp_path / "here")) == ["../there/y.py", "x.py"]


def test_default_excludes_and_virtual_environments_are_left_out() -> None:
    make("a.py", ".git/x.py", "build/x.py", "a/.venv/x.py", "a/node_modules/b/x.py", "a/__pycache__/x.py")
    make("env/pyvenv.cfg", "env/lib/x.py")
    assert names() == ["a.py"]


def test_an_excluded_file_is_taken_when_it_is_named() -> None:
    make("build/x.py", "a.txt", "venv/lib/y.py")
    assert names("build/x.py", "a.txt", "venv") == ["build/x.py", "a.txt", "venv/lib/y.py"]


def test_a_named_file_is_left_out_with_force_exclude() -> None:
    make("build/x.py", "a/b.py", "c.py")
    assert names(
        "build/x.py", "a/b.py", "c.py", config=config(force_exclude=True, extend_exclude=("a",))
    ) == ["c.py"]


def test_own_excludes_come_instead_of_the_default_ones_or_besides() -> None:
    make("build/x.py", "a/gen_b.py", "a/c.py")
    assert names(config=config(exclude=("gen_*.py",))) == ["a/c.py", "build/x.py"]
    assert names(config=config(extend_exclude=("a/c.py",))) == ["a/gen_b.py"]
    assert names(config=config(extend_exclude=("c.py", "!a/c.py"))) == ["a/c.py", "a/gen_b.py"]


def test_what_git_ignores_is_left_out() -> None:
    make("a.py", "b.py", "x/a.py", "x/keep.py", "x/y/b.py", "x/y/c.py", "z/a.py", "secret/a.py")
    make(".gitignore", text="/a.py\nsecret/\n# comment\n\nz/**\n")
    make("x/.gitignore", text="*\n!keep.py\n!y/\n!y/c.py\n")
    assert names() == ["b.py", "x/keep.py", "x/y/c.py"]


def test_a_repository_ignores_below_its_root_only() -> None:
    make(".gitignore", text="*.py\n")
    make("repository/.git/info/exclude", text="local.py\n")
    make("repository/.gitignore", text="out/\n")
    make("repository/a/b.py", "repository/a/local.py", "repository/a/out/c.py")
    assert names("repository/a") == ["repository/a/b.py"]


def test_links_that_lead_in_circles_or_nowhere_are_survived() -> None:
    make("a/x.py")
    os.symlink("..", "a/up")
    os.symlink("loop.py", "loop.py")
    os.symlink("nowhere", "a/.#x.py")
    assert names() == ["a/x.py"]


def test_a_folder_with_the_name_of_a_file_is_a_folder() -> None:
    make("x.py/y.py")
    assert names() == names("x.py") == ["x.py/y.py"]


def test_a_path_at_which_there_is_nothing_is_named() -> None:
    (found,) = find(["nothing.py"], Config(Path.cwd()))
    assert (found.path, found.failure) == ("nothing.py", Failure("read", "no such file or directory"))


def test_a_folder_that_may_not_be_read_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(folder: str) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "scandir", refuse)
    (found,) = find(["."], Config(Path.cwd()))
    assert found.failure == Failure("read", "permission denied")


@pytest.mark.parametrize(
    ("path", "pattern", "expected"),
    [
        pytest.param("a/b.py", "a/", True, id="a folder"),
        pytest.param("a/b.py", "*.py", True, id="a suffix anywhere"),
        pytest.param("a/b.py", "/b.py", False, id="at the root only"),
        pytest.param("../b.py", "*.py", False, id="outside the root"),
    ],
)
def test_patterns_are_relative_to_their_folder(path: str, pattern: str, expected: bool) -> None:
    assert Patterns.read(str(Path.cwd()), [pattern]).ignore(path) is expected
