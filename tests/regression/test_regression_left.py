"""Which tests nobody would keep, and from where a test imports what it is about."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradfix.driver.recipe import Recipe, Target
from gradfix.regression.left import named, unfit

TARGET = Target("/p/models/net.py", "/p/models", "net", "Net", "module")


@pytest.mark.parametrize(
    ("recipe", "word"),
    [
        pytest.param(Recipe(TARGET, stood=("dgl",)), "dgl", id="a package that isn't installed"),
        pytest.param(Recipe(TARGET, at_home=True), "GPU", id="a GPU that isn't there"),
        pytest.param(Recipe(TARGET, steps=3), "fails behind", id="a call that fails later"),
    ],
)
def test_what_takes_more_than_there_is_leaves_no_test(recipe: Recipe, word: str) -> None:
    assert word in unfit(recipe)


def test_what_takes_nothing_may_be_kept() -> None:
    assert unfit(Recipe(TARGET)) == ""


def test_a_test_imports_from_the_top_of_the_project_first(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    inner = tmp_path / "models"
    target = Target(str(inner / "net.py"), str(inner), "net", "Net", "module")
    found = [(one.target.root, one.target.module) for one in named(Recipe(target))]
    assert found == [(str(tmp_path), "models.net"), (str(inner), "net")]


def test_a_package_below_src_is_imported_by_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    inner = tmp_path / "src"
    target = Target(str(inner / "own" / "net.py"), str(inner), "own.net", "Net", "module")
    assert [one.target.module for one in named(Recipe(target))] == ["own.net"]
