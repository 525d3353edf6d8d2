"""The configuration: where it is found, what it may say, and errors that name the key and the file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gradfix.config import Config, ConfigError, read, read_file
from gradfix.plan import plan_for
from gradfix.tape.effects.frameworks import Entry, Row

EVERY_KEY = """
[tool.gradfix]
select = ["GF1", "graph_leak"]
ignore = ["GF102"]
extend-select = ["GF303"]
exclude = ["gen"]
extend-exclude = ["old"]
force-exclude = true
unsafe-fixes = true
min-certainty = "certain"
fix-certainty = "certain"
reduction = "mean"
suspects = true
[tool.gradfix.per-file-ignores]
"tests/*" = ["GF403"]
[tool.gradfix.frameworks.Learner]
compute_loss = { root = true, owns-steps = true, given = ["batch"] }
evaluate = { grad = false }
backward = ["backprop"]
step = ["update"]
zero-grad = ["update"]
prepares = ["wrap"]
harmless = ["log"]
"""
LEARNER = {
    "compute_loss": Entry(root=True, owns_steps=True, given=("batch",)),
    "evaluate": Entry(grad=False),
}


def written(folder: Path, text: str) -> Path:
    folder.mkdir(exist_ok=True, parents=True)
    file = folder / "pyproject.toml"
    file.write_text(text)
    return file


def test_every_key_is_read(tmp_path: Path) -> None:
    written(tmp_path, EVERY_KEY)
    assert read(tmp_path) == Config(
        tmp_path,
        ("GF1", "graph_leak"),
        ("GF102",),
        ("GF303",),
        ("gen",),
        ("old",),
        True,
        (("tests/*", ("GF403",)),),
        True,
        "certain",
        "certain",
        "mean",
        (
            (
                "Learner",
                Row(
                    LEARNER,
                    LEARNER,
                    frozenset({"backprop"}),
                    frozenset({"update"}),
                    frozenset({"update"}),
                    frozenset({"wrap"}),
                    frozenset({"log"}),
                    own=True,
                ),
            ),
        ),
        suspects=True,
    )


def test_the_nearest_file_that_speaks_of_gradfix_holds(tmp_path: Path) -> None:
    written(tmp_path, "[tool.gradfix]\nignore = ['GF1']\n")
    written(tmp_path / "a", "[tool.other]\n")
    written(tmp_path / "b", "[tool.gradfix]\n")
    assert read(tmp_path / "a" / "deeper") == Config(tmp_path, ignore=("GF1",))
    assert read(tmp_path / "b") == Config(tmp_path / "b")


def test_without_any_the_working_directory_is_the_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert read(tmp_path) == Config(tmp_path)
    assert read_file(written(tmp_path, "")) == Config(tmp_path)


def test_options_of_the_command_line_come_on_top() -> None:
    config = Config(Path("/"), ignore=("GF1",), unsafe_fixes=True)
    assert config.with_options(ignore=None, unsafe_fixes=False) == Config(Path("/"), ignore=("GF1",))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("[tool.gradfix]\nselct = []\n", ["no key 'selct'", "select"], id="an unknown key"),
        pytest.param(
            "[tool.gradfix]\nselect = 'GF1'\n", ["gradfix.select must be a list of strings"], id="a string"
        ),
        pytest.param("[tool.gradfix]\nselect = [1]\n", ["gradfix.select", "[1]"], id="a list of numbers"),
        pytest.param(
            "[tool.gradfix]\nunsafe-fixes = 1\n", ["unsafe-fixes must be true or false"], id="a number"
        ),
        pytest.param("[tool.gradfix]\nreduction = 'max'\n", ['"sum" or "mean"', "'max'"], id="another word"),
        pytest.param("[tool.gradfix]\nreduction = []\n", ['"sum" or "mean"'], id="a list for a word"),
        pytest.param(
            "[tool.gradfix]\nper-file-ignores = []\n", ["per-file-ignores must be a table"], id="no table"
        ),
        pytest.param(
            "[tool.gradfix]\nframeworks = 1\n", ["gradfix.frameworks must be a table, not 1"], id="no rows"
        ),
        pytest.param(
            "[tool.gradfix.frameworks]\nT = []\n", ["frameworks.T must be a table, not []"], id="no row"
        ),
        pytest.param(
            "[tool.gradfix.frameworks.T]\nsteps = ['x']\n",
            ["frameworks.T has no key 'steps'", "backward, step, zero-grad", "a table for each function"],
            id="an unknown deed of a framework",
        ),
        pytest.param(
            "[tool.gradfix.frameworks.T]\nstep = 'x'\n",
            ["frameworks.T.step must be a list of strings, not 'x'"],
            id="a string for a framework's methods",
        ),
        pytest.param(
            "[tool.gradfix.frameworks.T]\nf = { roots = true }\n",
            ["frameworks.T.f has no key 'roots'", "grad, root, owns-steps, given"],
            id="an unknown flag of a method",
        ),
        pytest.param(
            "[tool.gradfix.frameworks.T]\nf = { root = 1 }\n",
            ["frameworks.T.f.root must be true or false, not 1"],
            id="a number for a flag of a method",
        ),
        pytest.param(
            "[tool.gradfix.frameworks.T]\nf = { given = ['x'] }\n",
            ["frameworks.T.f.given must be a list of 'batch', 'module'", "['x']"],
            id="an unknown argument of a method",
        ),
        pytest.param("[tool]\ngradfix = 1\n", ["tool.gradfix must be a table"], id="no section"),
        pytest.param("[tool.gradfix\n", ["line 1"], id="no toml"),
    ],
)
def test_an_error_names_the_key_and_the_file(tmp_path: Path, text: str, words: list[str]) -> None:
    file = written(tmp_path, text)
    with pytest.raises(ConfigError) as error:
        read(tmp_path)
    assert str(file) in str(error.value)
    assert all(word in str(error.value) for word in words)


def test_selectors_are_known_by_their_keys() -> None:
    config = Config(Path("/"), ("A",), ("B",), ("C",), per_file_ignores=(("x.py", ("D",)),))
    assert config.selectors() == {
        "select": ("A",),
        "ignore": ("B",),
        "extend-select": ("C",),
        "per-file-ignores.'x.py'": ("D",),
    }


@pytest.mark.parametrize(
    "pattern", ["[", "a[", "[]", "[!]", "a[b/c]", "x/[", "[\\]", "", " ", "!", "/", "!/", "# a comment"]
)
def test_a_pattern_that_can_mean_no_file_is_refused(pattern: str) -> None:
    for given in ({"exclude": (pattern,)}, {"per_file_ignores": ((pattern, ("GF101",)),)}):
        with pytest.raises(ConfigError, match=re.escape(repr(pattern))):
            plan_for(Config(Path()).with_options(**given))


@pytest.mark.parametrize(
    "pattern", ["\\[", "[]]", "[!]]", "[a]", "[[]", "[\\]]", "x]", "!a", "*.py", "a/", "a#"]
)
def test_a_pattern_that_may_mean_one_is_taken(pattern: str) -> None:
    plan_for(Config(Path()).with_options(extend_exclude=(pattern,)))
