"""A release can be cut from what is written: one address, one version, a part of the changelog, a tag."""

from __future__ import annotations

import datetime
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gradfix.explain import PAGES

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
VERSION, ADDRESS = PROJECT["version"], PROJECT["urls"]["Repository"]
OWN = ADDRESS.removeprefix("https://github.com/")
SHOWN = [
    ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", ".ci/gitlab.yml", "action.yml")
]
IDENTITY = {f"GIT_{role}_{what}": "a@b.c" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
ENVIRON = os.environ | IDENTITY | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}


@pytest.mark.parametrize("page", SHOWN, ids=[page.name for page in SHOWN])
def test_every_address_of_the_project_is_that_of_its_metadata(page: Path) -> None:
    named = re.findall(r"(?:github|githubusercontent)\.com/([\w.-]+/gradfix)\b", page.read_text("utf-8"))
    used = re.findall(r"uses: ([\w.-]+/gradfix)@", page.read_text("utf-8"))
    assert {*named, *used} <= {OWN}


def test_the_pages_name_the_project_and_its_tag() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert f"- repo: {ADDRESS}\n    rev: v{VERSION}\n" in readme
    assert f"uses: {OWN}@v{VERSION}\n" in readme
    template = (ROOT / ".ci" / "gitlab.yml").read_text("utf-8")
    assert f"git+{ADDRESS}@v{VERSION}\n" in template
    assert f"remote: https://raw.githubusercontent.com/{OWN}/v{VERSION}/.ci/gitlab.yml\n" in template
    pages = "https://{}.github.io/{}".format(*OWN.split("/"))
    assert all(address.startswith((ADDRESS, pages)) for address in PROJECT["urls"].values())
    assert PROJECT["urls"]["Documentation"] == f"{pages}/" == f"{PAGES}/"


class Checkout:
    """The files that git knows, committed in a repository of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
        for name in filter(None, listed.decode().split("\0")):
            if (ROOT / name).is_file() and not name.startswith(("fixtures/", "tests/")):
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, folder / name)
        self.git("init", "--quiet")
        self.commit()

    def git(self, *words: str) -> str:
        done = subprocess.run(
            ["git", *words], cwd=self.folder, env=ENVIRON, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def commit(self) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "As it stands")

    def edit(self, name: str, old: str, new: str) -> None:
        file = self.folder / name
        text = file.read_text("utf-8")
        assert old in text
        file.write_text(text.replace(old, new, 1), "utf-8")
        self.commit()

    def release(self, *words: str, path: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-W", "ignore", ".ci/release", *words],
            cwd=self.folder,
            env=ENVIRON | {"PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    (tmp_path / "checkout").mkdir()
    return Checkout(tmp_path / "checkout")


def test_a_release_could_be_cut_now(checkout: Checkout) -> None:
    done = checkout.release("--check")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("name", "old", "new", "problem"),
    [
        pytest.param(
            "pyproject.toml",
            f'version = "{VERSION}"',
            'version = "1.2"',
            "none that a tag could have",
            id="no version",
        ),
        pytest.param(
            "pyproject.toml",
            f'version = "{VERSION}"',
            'version = "9.9.9"',
            "begin with `## [9.9.9]",
            id="no changes",
        ),
        pytest.param(
            "CHANGELOG.md", "unreleased", "2020-01-01", "released on 2020-01-01", id="released before"
        ),
        pytest.param(
            "CHANGELOG.md", "/releases/tag/v", "/releases/", f"no link for [{VERSION}]", id="no link"
        ),
        pytest.param(
            "README.md", f"rev: v{VERSION}", "rev: v0.0.1", "README.md names v0.0.1", id="an old tag"
        ),
        pytest.param(
            ".ci/gitlab.yml", f"@v{VERSION}", "@v0.0.1", "gitlab.yml names v0.0.1", id="an old template"
        ),
    ],
)
def test_what_stands_in_the_way_of_a_release_is_named(
    checkout: Checkout, name: str, old: str, new: str, problem: str
) -> None:
    checkout.edit(name, old, new)
    done = checkout.release("--check")
    assert done.returncode == 1
    assert problem in done.stderr


def test_a_release_waits_for_commits_and_is_cut_once(checkout: Checkout) -> None:
    (checkout.folder / "new.txt").touch()
    assert "not committed" in checkout.release("--check").stderr
    checkout.commit()
    checkout.git("tag", f"v{VERSION}")
    assert f"a tag v{VERSION} already" in checkout.release("--check").stderr


def test_a_release_is_dated_built_checked_committed_and_tagged(checkout: Checkout, tmp_path: Path) -> None:
    pytest.importorskip("build")
    twine = tmp_path / "stand-in"
    if importlib.util.find_spec("twine") is None:  # it is asked whether the description can be shown
        (twine / "twine").mkdir(parents=True)
        (twine / "twine" / "__main__.py").write_text("import sys; print(*sys.argv[1:])")
    done = checkout.release("--no-isolation", path=str(twine))
    assert done.returncode == 0, done.stderr
    built = {file.name for file in (checkout.folder / "dist" / VERSION).iterdir()}
    assert built == {f"gradfix-{VERSION}-py3-none-any.whl", f"gradfix-{VERSION}.tar.gz"}
    today = datetime.date.today().isoformat()
    assert f"## [{VERSION}] - {today}\n" in (checkout.folder / "CHANGELOG.md").read_text("utf-8")
    assert checkout.git("status", "--porcelain") == ""
    assert checkout.git("log", "-1", "--format=%s") == f"Release {VERSION}"
    told = checkout.git("tag", "--list", f"v{VERSION}", "--format=%(contents)")
    assert told.startswith(f"gradfix {VERSION}\n\n### Added\n") and "\n- Rules" in told
    assert done.stdout.splitlines()[-2].strip() == f"git push origin HEAD v{VERSION}"


def test_a_release_that_cannot_be_built_leaves_nothing_behind(checkout: Checkout) -> None:
    checkout.edit("pyproject.toml", 'build-backend = "setuptools.build_meta"', 'build-backend = "nothing"')
    before = checkout.git("rev-parse", "HEAD")
    done = checkout.release("--no-isolation")
    assert done.returncode == 1 and "nothing was committed" in done.stderr
    assert (checkout.git("rev-parse", "HEAD"), checkout.git("status", "--porcelain")) == (before, "")
