"""First-party modules are found beside and above the file that imports them, and nothing is run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gradfix.neighbours import MOST, Neighbours


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a package, and a file that must not be run."""
    texts = {
        "pyproject.toml": "",
        "models.py": "raise SystemExit",
        "package/__init__.py": "here = 1",
        "package/nets.py": "",
        "package/deep/blocks.py": "",
        "src/library/core.py": "",
        "broken.py": "x = (",
        "torch/__init__.py": "",
        "json.py": "",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("importing", "module", "level", "expected"),
    [
        pytest.param("train.py", "models", 0, "models.py", id="beside"),
        pytest.param("package/deep/x.py", "models", 0, "models.py", id="at the root"),
        pytest.param("package/deep/x.py", "package.nets", 0, "package/nets.py", id="in a package"),
        pytest.param("train.py", "package", 0, "package/__init__.py", id="a package"),
        pytest.param("package/x.py", "library.core", 0, "src/library/core.py", id="below src"),
        pytest.param("package/deep/x.py", "blocks", 1, "package/deep/blocks.py", id="one dot"),
        pytest.param("package/deep/x.py", "nets", 2, "package/nets.py", id="two dots"),
        pytest.param("package/deep/x.py", "", 2, "package/__init__.py", id="dots alone"),
        pytest.param("package/x.py", "models", 1, None, id="a dot leads to the folder only"),
        pytest.param("train.py", "nothing", 0, None, id="no such module"),
        pytest.param("train.py", "broken", 0, None, id="a module that does not parse"),
        pytest.param("train.py", "torch", 0, None, id="not torch"),
        pytest.param("train.py", "json", 0, None, id="not the standard library"),
        pytest.param("train.py", "x", 99, None, id="more dots than folders"),
    ],
)
def test_modules_are_found(
    project: Path, importing: str, module: str, level: int, expected: str | None
) -> None:
    source = Neighbours()(str(project / importing), module, level)
    assert (source and os.path.relpath(source.path, project)) == expected


def test_nothing_above_the_project_is_followed(project: Path) -> None:
    (project.parent / "outside.py").write_text("")
    assert Neighbours()(str(project / "train.py"), "outside", 0) is None


def test_a_module_is_read_once(project: Path) -> None:
    reads: list[str] = []

    def read(path: str) -> bytes:
        reads.append(path)
        return b""

    find = Neighbours(read)
    assert find(str(project / "a.py"), "models", 0) is find(str(project / "package/b.py"), "models", 0)
    assert reads == [str(project / "models.py")]


def test_modules_are_followed_however_many_came_before(project: Path) -> None:
    reads: list[str] = []

    def read(path: str) -> bytes:
        reads.append(path)
        return b""

    find = Neighbours(read)
    for number in range(MOST):
        (project / f"m{number}.py").write_text("")
        find(str(project / "train.py"), f"m{number}", 1)
    assert find(str(project / "train.py"), "models", 1) is not None
    assert find(str(project / "train.py"), "m1", 1) is not None
    assert len(reads) == MOST + 1
    find(str(project / "train.py"), "m0", 1)
    assert len(reads) == MOST + 2


def test_a_large_module_is_not_followed(project: Path) -> None:
    (project / "models.py").write_text("#" * 1_000_001)
    assert Neighbours()(str(project / "train.py"), "models", 0) is None


@pytest.mark.parametrize(
    ("path", "text", "same"),
    [
        pytest.param("unrelated.py", "here = 1", True, id="another file"),
        pytest.param("models.py", "raise SystemExit", True, id="the same again"),
        pytest.param("models.py", "here = 1", False, id="another content"),
        pytest.param("models.py", None, False, id="a file that is gone"),
        pytest.param("package/nothing.py", "", False, id="a file that was looked for"),
        pytest.param("package/setup.py", "", False, id="a root nearer to the file"),
    ],
)
def test_what_was_found_holds_until_something_else_would_be_found(
    path: str, text: str | None, same: bool, project: Path
) -> None:
    first = Neighbours()
    importing = str(project / "package" / "train.py")
    assert first(importing, "models", 0) is not None
    assert first(importing, "nothing", 0) is None
    assert Neighbours().finds(first.reading)
    if text is None:
        (project / path).unlink()
    else:
        (project / path).write_text(text)
    assert Neighbours().finds(first.reading) is same
