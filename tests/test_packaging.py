"""What is installed: every package, every rule, from a wheel as from a checkout that was never installed."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
UNINSTALLED = "import sys; sys.meta_path[:] = [f for f in sys.meta_path if 'editable' not in repr(f)]\n"
BUILD = """
import os
from setuptools import build_meta
build_meta.build_sdist(os.environ["OUT"])
build_meta.build_wheel(os.environ["OUT"])
"""
RULES = sorted(path.name for path in (ROOT / "codemods").glob("*.py"))


def listed(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """What `--list-rules` says when a script starts gradfix in a folder."""
    command = [sys.executable, "-c", script, "--list-rules"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_every_package_is_listed() -> None:
    found = {
        ".".join(file.parent.relative_to(ROOT).parts) for file in (ROOT / "gradfix").rglob("__init__.py")
    }
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == found | {"gradfix.codemods"}


def test_torch_is_no_dependency() -> None:
    assert not [each for each in PROJECT["project"]["dependencies"] if each.startswith("torch")]


def test_a_checkout_that_was_never_installed_runs(tmp_path: Path) -> None:
    """`python -m gradfix` beside the package, without the finder of an editable install."""
    for name in ("gradfix", "codemods", "pyproject.toml"):
        (tmp_path / name).symlink_to(ROOT / name)
    done = listed(UNINSTALLED + "import runpy; runpy.run_module('gradfix', run_name='__main__')", tmp_path)
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == len(RULES) - 1


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with a wheel and a source distribution, built from the files that git knows."""
    if int(version("setuptools").partition(".")[0]) < 77:
        pytest.skip("building needs setuptools 77")
    clone, out = tmp_path_factory.mktemp("clone"), tmp_path_factory.mktemp("dist")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    for name in filter(None, listed.decode().split("\0")):
        if (ROOT / name).is_file():
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            (clone / name).write_bytes((ROOT / name).read_bytes())
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", BUILD],
        cwd=clone,
        env={"OUT": str(out), "PATH": ""},
        capture_output=True,
        check=True,
    )
    return out


def test_a_wheel_holds_the_package_with_its_rules_and_nothing_else(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0] for name in names} == {
        "gradfix",
        f"gradfix-{PROJECT['project']['version']}.dist-info",
    }
    tracked = subprocess.run(
        ["git", "ls-files", "codemods"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert {f"gradfix/{name}" for name in tracked.stdout.split()} <= set(names)
    data = {f"gradfix/tape/effects/{name}" for name in ("effects.json", "operations.txt", "layers.txt")}
    assert {"gradfix/py.typed", "gradfix/report/text.py", *data} <= set(names)


def test_an_installed_wheel_runs_beside_another_codemods_folder(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    site, elsewhere = tmp_path / "site", tmp_path / "elsewhere"
    zipfile.ZipFile(wheel).extractall(site)
    (elsewhere / "codemods").mkdir(parents=True)
    (elsewhere / "codemods" / "__init__.py").write_text("raise SystemExit('the wrong codemods')\n")
    script = UNINSTALLED + f"sys.path[:0] = ['', {str(site)!r}]; from gradfix.cli import main; main()"
    done = listed(script, elsewhere)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("GF1")


def test_a_source_distribution_holds_tests_and_fixtures(built: Path) -> None:
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    assert {"tests/test_packaging.py", "codemods/__init__.py", "LICENSE", "README.md"} <= names
    assert any(name.startswith("fixtures/") and name.endswith("/before.py") for name in names)
