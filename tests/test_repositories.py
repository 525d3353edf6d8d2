"""`--from-list`: many repositories in one run, each as it would be by itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import toy
from click.testing import CliRunner, Result

from gradfix import pool
from gradfix.cli import main
from gradfix.repositories import paths_in

GATED = "import torch\n"


@pytest.fixture(autouse=True)
def _there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    toy.install(monkeypatch.setattr)


def gradfix(*arguments: str, stdin: str | None = None) -> Result:
    result = CliRunner().invoke(main, [*arguments], input=stdin, prog_name="gradfix")
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


def make(name: str, text: str = "x += y\n", settings: str | None = None) -> Path:
    file = Path(name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(GATED + text)
    if settings is not None:
        (file.parent / "pyproject.toml").write_text(f"[tool.gradfix]\n{settings}\n")
    return file


def of_list(*lines: str, words: tuple[str, ...] = ()) -> Result:
    return gradfix("--from-list", "-", *words, stdin="".join(f"{line}\n" for line in lines))


def test_each_repository_is_as_it_would_be_by_itself() -> None:
    """In the order of the list, each with its own settings."""
    make("one/a.py", "x += y\nx -= y\n", 'ignore = ["TOY1"]')
    make("two/a.py", "x += y\nx -= y\n", 'ignore = ["TOY2"]')
    make("three/sub/a.py")
    alone = [
        gradfix("--no-cache", "--output-format", "concise", name).stdout for name in ("two", "one", "three")
    ]
    assert all(alone)
    result = of_list("two", "one", "three", words=("--no-cache", "--output-format", "concise"))
    assert (result.exit_code, result.stdout) == (1, "".join(alone))


def test_other_processes_say_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(12):
        make(f"{number}/a.py", f"x += {number}\n", "")
    names = [str(number) for number in range(12)]
    here = of_list(*names, words=("--no-cache", "-j", "1"))
    monkeypatch.setattr(pool, "SMALL", 40)
    assert of_list(*names, words=("--no-cache", "-j", "2")).output == here.output


def test_findings_are_counted_by_repository() -> None:
    make("one/a.py", "x += y\nx -= y\n")
    make("two/a.py", "x = 1\n")
    make("three/a.py")
    assert of_list("one", "two", "three").stderr.splitlines() == [
        "one: 2 findings: 2 crash",
        "three: 1 finding: 1 crashes",
        "3 findings in 3 files of 3 repositories: 3 crash. --diff shows 2 fixes, --apply writes them;"
        " 1 more with --unsafe-fixes.",
    ]


def test_what_was_mended_is_counted_by_repository() -> None:
    make("one/a.py", "x += y\nx -= y\n")
    make("two/a.py")
    result = of_list("one", "two", words=("--apply",))
    assert Path("two/a.py").read_text() == GATED + "x = x + y\n"
    assert result.stderr.splitlines()[-3:-1] == [
        "one: 1 finding fixed, 1 finding left: 1 crashes",
        "two: 1 finding fixed",
    ]


def test_what_is_silenced_is_counted_by_repository() -> None:
    make("one/a.py")
    make("two/a.py", "x = 1\n")
    assert of_list("one", "two", words=("--add-ignore",)).stderr.splitlines()[0] == "one: 1 finding silenced"
    assert of_list("one", "two").exit_code == 0


def test_where_nothing_is_found_that_is_all_that_is_said() -> None:
    make("one/a.py", "x = 1\n")
    result = of_list("one", "one")
    assert (result.exit_code, result.output) == (0, "0 findings in 1 file of 1 repository.\n")


def test_what_isnt_there_is_named_and_the_others_are_done() -> None:
    make("one/a.py")
    result = of_list("gone", "one")
    assert (result.exit_code, "one/a.py" in result.stdout) == (2, True)
    assert result.stderr.splitlines()[:2] == [
        "gone: failed (read): no such file or directory",
        "one: 1 finding: 1 crashes",
    ]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        pytest.param("nonsense = 1", "tool.gradfix has no key 'nonsense'", id="a key that isn't known"),
        pytest.param('ignore = ["NONE"]', "ignore: 'NONE' names no rule", id="a rule that isn't known"),
        pytest.param("[", "pyproject.toml: ", id="no TOML"),
    ],
)
def test_settings_that_dont_hold_are_named_and_the_others_are_done(settings: str, reason: str) -> None:
    make("one/a.py", settings=settings)
    make("two/a.py")
    result = of_list("one", "two")
    assert (result.exit_code, "two/a.py" in result.stdout, "one/a.py" in result.stdout) == (2, True, False)
    assert result.stderr.startswith("one: failed (read): ") and reason in result.stderr


def test_a_slip_among_the_options_is_said_once() -> None:
    make("one/a.py")
    make("two/a.py")
    result = of_list("one", "two", words=("--select", "NONE"))
    assert (result.exit_code, result.stderr.count("names no rule")) == (2, 1)


def test_a_file_of_two_repositories_counts_for_the_first() -> None:
    make("one/sub/a.py")
    make("one/b.py")
    result = of_list("one/sub", "one", words=("--output-format", "json"))
    assert [Path(each["filename"]).as_posix() for each in json.loads(result.stdout)] == [
        "one/sub/a.py",
        "one/b.py",
    ]


def test_a_report_for_machines_is_one_document() -> None:
    make("one/a.py")
    make("two/a.py")
    found = json.loads(of_list("one", "two", words=("--output-format", "json")).stdout)
    assert [Path(each["filename"]).as_posix() for each in found] == ["one/a.py", "two/a.py"]
    (run,) = json.loads(of_list("one", "two", words=("--output-format", "sarif")).stdout)["runs"]
    assert len(run["results"]) == 2


def test_rules_of_all_repositories_are_told_of_in_one_document() -> None:
    make("one/a.py", "x **= y\n", 'extend-select = ["TOY4"]')
    make("two/a.py")
    (run,) = json.loads(of_list("two", "one", words=("--output-format", "sarif")).stdout)["runs"]
    told = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert {"TOY1", "TOY4"} <= set(told) and len(told) == len(set(told))


def test_each_repository_keeps_its_own() -> None:
    for name in ("one", "two"):
        make(f"{name}/a.py", settings="")
    first = of_list("one", "two")
    assert Path("one/.gradfix_cache").is_dir() and Path("two/.gradfix_cache").is_dir()
    assert not Path(".gradfix_cache").exists()
    assert of_list("one", "two").output == first.output
    assert gradfix("one").stdout in first.stdout


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        pytest.param("one\ntwo\n", ("one", "two"), id="lines"),
        pytest.param("# all\n\n  one  \r\ntwo", ("one", "two"), id="comments, empty lines and other ends"),
        pytest.param("one\none/\n./one\n", ("one",), id="the same several times"),
        pytest.param("\ufeffone two\n", ("one two",), id="a space in a name"),
        pytest.param("", (), id="nothing"),
    ],
)
def test_a_list_has_one_path_on_a_line(text: str, paths: tuple[str, ...]) -> None:
    assert paths_in(text) == paths


def test_a_list_of_nothing_is_told_of() -> None:
    result = of_list("# nothing")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "gradfix: - names no repository\n")


@pytest.mark.parametrize(
    ("words", "other"),
    [
        pytest.param(("one",), "PATHS", id="paths"),
        pytest.param(("--since", "HEAD"), "--since", id="a revision"),
        pytest.param(("--watch",), "--watch", id="watching"),
        pytest.param(("--verify",), "--verify", id="verifying"),
    ],
)
def test_a_list_stands_for_paths_of_a_plain_run(words: tuple[str, ...], other: str) -> None:
    make("one/a.py")
    result = of_list("one", words=words)
    assert result.exit_code == 2
    assert f"--from-list does not go with {other}" in result.stderr


def test_a_list_that_isnt_there_is_named() -> None:
    result = gradfix("--from-list", "nowhere.txt")
    assert result.exit_code == 2 and "nowhere.txt" in result.stderr
