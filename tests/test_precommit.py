"""The hooks under the real pre-commit: one rewrites and fails the commit, one lists, both respect excludes.

Slow: pre-commit installs gradfix into its own environment. Skipped where no package index can be reached.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SHIPPED = ("pyproject.toml", "README.md", "LICENSE", ".pre-commit-hooks.yaml", "gradfix", "codemods")
CASE = ROOT / "fixtures" / "detached_loss_path" / "data_of_the_loss"
BEFORE, AFTER = (CASE / name for name in ("before.py", "after.py"))
FIXED = re.compile(r"^train\.py:\d+: fixed GF201 detached_loss_path: .+$", re.MULTILINE)
CONFIG = """\
repos:
  - repo: {source}
    rev: {revision}
    hooks:
      - id: gradfix
      - id: gradfix-check
"""


@dataclass(frozen=True, slots=True)
class Project:
    """A git repository of somebody who uses the hooks."""

    folder: Path
    environ: dict[str, str]

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the repository, its two streams as one."""
        return subprocess.run(
            command,
            cwd=self.folder,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    def git(self, *arguments: str) -> str:
        """Run git, which must succeed."""
        done = self.run("git", *arguments)
        assert done.returncode == 0, done.stdout
        return done.stdout.strip()

    def pre_commit(self, *arguments: str) -> tuple[int, str]:
        """Run pre-commit; where the environment of the hook can't be installed, the test is skipped."""
        done = self.run(sys.executable, "-m", "pre_commit", *arguments)
        if "Could not find a version" in done.stdout or "Connection" in done.stdout:
            pytest.skip("no package index can be reached")
        return done.returncode, done.stdout

    def write(self, name: str, text: str) -> Path:
        """Write a file and stage it."""
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
        self.git("add", name)
        return path


def repository(folder: Path, environ: dict[str, str]) -> Project:
    """An empty git repository."""
    folder.mkdir()
    made = Project(folder, environ)
    made.git("init", "--quiet", "--initial-branch=main")
    return made


def commit(project: Project, names: Sequence[str]) -> str:
    """Commit files; say the revision."""
    project.git("add", *names)
    project.git("commit", "--quiet", "--no-verify", "--message=Start")
    return project.git("rev-parse", "HEAD")


@pytest.fixture(scope="module")
def environ(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which neither this machine's git nor its pre-commit settings count."""
    home = tmp_path_factory.mktemp("home")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "PRE_COMMIT"))}
    who = {f"GIT_{role}_{what}": "a@b.c" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    apart = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "NO_COLOR": "1"}
    kept.pop("PYTHONDONTWRITEBYTECODE", None)  # what the hooks import is compiled once, and nothing else is
    return {**kept, "PIP_NO_COMPILE": "1", **who, **apart, "PRE_COMMIT_HOME": str(home)}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory, environ: dict[str, str]) -> tuple[Path, str]:
    """What pre-commit clones: the project as it stands here, committed."""
    made = repository(tmp_path_factory.mktemp("source") / "gradfix", environ)
    unwanted = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in SHIPPED:
        here, there = ROOT / name, made.folder / name
        if here.is_dir():
            shutil.copytree(here, there, ignore=unwanted)
        else:
            shutil.copy(here, there)
    return made.folder, commit(made, SHIPPED)


@pytest.fixture
def project(tmp_path: Path, environ: dict[str, str]) -> Project:
    """A repository with one bug that is certain, staged."""
    made = repository(tmp_path / "project", environ)
    made.write("train.py", BEFORE.read_text("utf-8"))
    return made


def lists_and_changes_nothing(project: Project) -> None:
    """The check hook names the finding, fails and leaves the file."""
    code, shown = project.pre_commit("run", "gradfix-check", "--all-files")
    assert code == 1
    assert "train.py:" in shown
    assert "GF" in shown
    assert (project.folder / "train.py").read_text("utf-8") == BEFORE.read_text("utf-8")


def leaves_excluded_files_alone(project: Project) -> None:
    """pre-commit names every file; the configuration still counts."""
    kept = project.write("vendored/old.py", BEFORE.read_text("utf-8"))
    project.write("pyproject.toml", '[tool.gradfix]\nexclude = ["vendored"]\n')
    for hook in ("gradfix", "gradfix-check"):
        code, shown = project.pre_commit("run", hook, "--files", "vendored/old.py")
        assert (code, shown.count("Passed")) == (0, 1)
    assert kept.read_text("utf-8") == BEFORE.read_text("utf-8")


def stops_the_first_commit_and_passes_the_second(project: Project) -> None:
    """What a person sees: the commit fails, what was mended is named, the next commit goes through."""
    first = project.run("git", "commit", "--message=Train")
    assert first.returncode == 1
    assert "files were modified by this hook" in first.stdout
    assert FIXED.search(first.stdout) and "1 finding fixed in 1 file." in first.stdout
    assert (project.folder / "train.py").read_text("utf-8") == AFTER.read_text("utf-8")
    project.git("add", "train.py")
    second = project.run("git", "commit", "--message=Train")
    assert (second.returncode, second.stdout.count("Passed")) == (0, 2)


def test_configured_hooks_list_keep_off_and_mend(project: Project, source: tuple[Path, str]) -> None:
    """One story, so that the environment of the hooks is installed once."""
    project.write(".pre-commit-config.yaml", CONFIG.format(source=source[0], revision=source[1]))
    assert project.pre_commit("install")[0] == 0
    lists_and_changes_nothing(project)
    leaves_excluded_files_alone(project)
    stops_the_first_commit_and_passes_the_second(project)
    installed = {path.name for path in Path(project.environ["PRE_COMMIT_HOME"]).rglob("site-packages/*")}
    assert "gradfix" in installed
    assert "torch" not in installed
