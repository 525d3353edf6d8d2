"""What is new since a git revision."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from gradfix.since import RevisionError, since


def git(*arguments: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *identity, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commit(**texts: str) -> None:
    for name, text in texts.items():
        Path(f"{name}.py").write_text(text)
    git("add", "-A")
    git("commit", "-q", "-m", "some work")


@pytest.fixture(autouse=True)
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one commit, as the working directory."""
    monkeypatch.chdir(tmp_path)
    git("init", "-q", "-b", "main")
    commit(same="a\n", edited="a\nb\n", moved="x\ny\nz\n" * 9, gone="a\n")
    return tmp_path


def changed(revision: str) -> dict[str, str | None]:
    found = since(revision, ".")
    return {os.path.relpath(path, found.root): old for path, old in found.changed.items()}


def test_changed_moved_added_and_untracked_files_are_known_with_their_old_names() -> None:
    Path("edited.py").write_text("a\nc\n")
    git("mv", "moved.py", "moved é.py")
    git("rm", "-q", "gone.py")
    Path("staged.py").write_text("")
    git("add", "staged.py")
    Path("untracked.py").write_text("")
    Path(".gitignore").write_text("ignored.py\n")
    Path("ignored.py").write_text("")
    assert changed("HEAD") == {
        "edited.py": "edited.py",
        "moved é.py": "moved.py",
        "staged.py": None,
        "untracked.py": None,
        ".gitignore": None,
    }


def test_an_earlier_text_comes_with_the_diff_from_it() -> None:
    Path("edited.py").write_text("new\na\nb\n")
    git("mv", "moved.py", "elsewhere.py")
    Path("elsewhere.py").write_text("first\n" + "x\ny\nz\n" * 9)
    revision = since("HEAD", ".")
    edited, moved = revision.earlier("edited.py"), revision.earlier("elsewhere.py")
    assert edited is not None and moved is not None
    assert (edited.content, moved.content) == (b"a\nb\n", b"x\ny\nz\n" * 9)
    assert b"@@ -0,0 +1 @@\n+new\n" in edited.diff
    assert b"@@ -0,0 +1 @@\n+first\n" in moved.diff
    assert revision.touches("edited.py") and not revision.touches("same.py")
    assert revision.earlier("same.py") is None


def test_what_another_branch_has_gained_is_no_change_of_this_one() -> None:
    git("checkout", "-q", "-b", "topic")
    commit(topic="a\n")
    git("checkout", "-q", "main")
    commit(same="other\n")
    git("checkout", "-q", "topic")
    assert changed("main") == {"topic.py": None}


def test_it_works_from_a_folder_below(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (repository / "below").mkdir()
    monkeypatch.chdir("below")
    Path("new.py").write_text("")
    assert changed("HEAD") == {"below/new.py": None}
    assert since("HEAD", ".").touches("new.py")


@pytest.mark.parametrize("revision", ["nonsense", "--help", "HEAD:same.py"])
def test_what_is_no_revision_is_refused(revision: str) -> None:
    with pytest.raises(RevisionError, match=f"'{revision}' names no commit here; `git branch -a`"):
        since(revision, ".")


def test_outside_a_repository_there_is_no_past(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    with pytest.raises(RevisionError, match="not a git repository"):
        since("HEAD", ".")


def test_git_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(RevisionError, match="git cannot be run"):
        since("HEAD", ".")
