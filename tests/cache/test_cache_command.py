"""Where outcomes are kept, what is said of it, and how they are taken away."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gradfix import plan as plans
from gradfix.cache.place import FOLDER, MARKS, NAME
from gradfix.cli import main

FINDING = """import torch
w = torch.ones(3, requires_grad=True)
y = w.exp()
y += 1
y.sum().backward()
"""


@pytest.fixture(autouse=True)
def _there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("main.py").write_text(FINDING)


def gradfix(*arguments: str, stdin: bytes | None = None, env: dict[str, str] | None = None) -> Result:
    plans.forget()
    result = CliRunner().invoke(main, [*arguments], input=stdin, env=env, prog_name="gradfix")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def there(folder: Path | str) -> set[str]:
    return {each.name for each in Path(folder).iterdir()}


def test_a_folder_is_made_and_marked_as_one_that_can_be_made_again() -> None:
    gradfix()
    assert there(FOLDER) == {NAME, ".gitignore", "CACHEDIR.TAG"}
    assert Path(FOLDER, ".gitignore").read_text() == "*\n"
    assert Path(FOLDER, "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55")


def test_git_has_nothing_to_say_of_it() -> None:
    subprocess.run(["git", "init", "-q"], check=True)
    subprocess.run(["git", "add", "main.py"], check=True)
    gradfix()
    told = subprocess.run(["git", "status", "--porcelain"], capture_output=True, check=True).stdout
    assert told == b"A  main.py\n"


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [
        pytest.param(("--no-cache",), {}, id="the option"),
        pytest.param((), {"GRADFIX_NO_CACHE": "1"}, id="the variable"),
    ],
)
def test_it_is_left_alone_when_that_is_asked_for(
    arguments: tuple[str, ...], environment: dict[str, str]
) -> None:
    assert gradfix(*arguments, env=environment).exit_code == 1
    assert there(".") == {"main.py"}


def test_standard_input_and_files_that_cannot_concern_autograd_need_none() -> None:
    assert gradfix("-", stdin=FINDING.encode()).exit_code == 1
    Path("plain.py").write_text("x = 1\n")
    gradfix("plain.py")
    assert there(".") == {"main.py", "plain.py"}


def settings(text: str) -> None:
    Path("pyproject.toml").write_text(f"[tool.gradfix]\n{text}\n")


def test_the_option_comes_before_the_variable_and_that_before_the_settings() -> None:
    settings('cache-dir = "by/settings"')
    Path("inner").mkdir()
    Path("inner/main.py").write_text(FINDING)
    gradfix("inner")
    assert NAME in there("by/settings")
    gradfix("inner", env={"GRADFIX_CACHE_DIR": "by/variable"})
    assert NAME in there("by/variable")
    gradfix("inner", "--cache-dir", "by/option", env={"GRADFIX_CACHE_DIR": "elsewhere"})
    assert there("by") == {"settings", "variable", "option"}
    assert there(".") == {"main.py", "inner", "by", "pyproject.toml"}


def test_the_folder_stands_beside_the_settings_wherever_it_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    settings("")
    Path("inner").mkdir()
    Path("inner/main.py").write_text(FINDING)
    monkeypatch.chdir("inner")
    gradfix()
    assert FOLDER in there("..")
    assert there(".") == {"main.py"}


@pytest.mark.parametrize("value", ["3", '""', "[]", '"a\\u0000b"'])
def test_settings_that_name_no_folder_are_refused(value: str) -> None:
    settings(f"cache-dir = {value}")
    result = gradfix()
    assert result.exit_code == 2
    assert "tool.gradfix.cache-dir must be a path" in result.stderr


def test_a_folder_that_was_there_gets_no_marks() -> None:
    Path("mine").mkdir()
    gradfix("--cache-dir", "mine")
    assert there("mine") == {NAME}
    gradfix("--cache-dir", ".")
    assert there(".") == {"main.py", "mine", NAME}


@pytest.mark.parametrize("verbose", [False, True])
def test_trouble_is_a_line_where_more_is_asked_for_and_changes_nothing(verbose: bool) -> None:
    expected = gradfix("--no-cache", *["-v"] * verbose)
    Path(FOLDER).write_text("a file")
    result = gradfix(*["-v"] * verbose)
    assert (result.stdout, result.exit_code) == (expected.stdout, expected.exit_code)
    more = set(result.stderr.splitlines()) - set(expected.stderr.splitlines())
    assert len(more) == verbose
    assert all(line.startswith("gradfix: works without a cache: ") for line in more)


def test_a_python_without_sqlite_has_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gradfix.cache.store", None)
    result = gradfix("-v")
    assert result.exit_code == 1
    assert "gradfix: works without a cache: " in result.stderr


def test_what_is_kept_is_not_looked_for_findings() -> None:
    gradfix()
    Path(FOLDER, "planted.py").write_text(FINDING)
    assert gradfix("--output-format", "concise").stdout.count("GF101") == 1


def test_apply_counts_once_and_is_done_the_second_time() -> None:
    gradfix()
    assert gradfix("--apply").exit_code == 0
    assert Path("main.py").read_text() == FINDING.replace("y += 1", "y = y + 1")
    assert gradfix("--apply").exit_code == 0


def test_clean_takes_away_what_was_made() -> None:
    gradfix()
    result = gradfix("clean")
    assert (result.exit_code, result.stdout) == (0, f"removed {Path(FOLDER).absolute()}\n")
    assert there(".") == {"main.py"}
    assert gradfix("clean").stdout.startswith("nothing is kept in ")


def test_clean_leaves_what_is_somebody_elses() -> None:
    gradfix()
    Path(FOLDER, "notes.txt").write_text("mine")
    Path(FOLDER, ".gitignore").write_text("*.log\n")
    gradfix("clean")
    assert there(FOLDER) == {"notes.txt", ".gitignore"}
    gradfix("--cache-dir", ".")
    gradfix("clean", "--cache-dir", ".")
    assert there(".") == {"main.py", FOLDER}


def test_clean_follows_the_settings() -> None:
    settings('cache-dir = "kept"')
    gradfix()
    assert there("kept") == {NAME, *MARKS}
    gradfix("clean")
    assert there(".") == {"main.py", "pyproject.toml"}


@pytest.mark.parametrize("words", ["words", "", None], ids=["a text", "an empty file", "no file"])
def test_a_link_in_its_place_is_not_followed(words: str | None, tmp_path: Path) -> None:
    if words is not None:
        Path("precious").write_text(words)
    Path(FOLDER).mkdir()
    Path(FOLDER, NAME).symlink_to(tmp_path / "precious")
    gradfix()
    assert (Path("precious").read_text() if Path("precious").exists() else None) == words
    assert not Path(FOLDER, NAME).is_symlink()
    gradfix("clean")
    assert there(".") - {"precious"} == {"main.py"}
