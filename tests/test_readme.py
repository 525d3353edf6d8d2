"""README tells what is: its tables and sessions are made by the code, its configuration is accepted.

`UPDATE_README=1 pytest tests/test_readme.py` writes the tables and the sessions anew.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
import yaml
from readme_text import README, SESSION, convention_rows, current, files, rule_rows

from gradfix.cli import main
from gradfix.commands import clean, run, server, why
from gradfix.config import read_file
from gradfix.pytest_plugin import pytest_addoption
from gradfix.registry import codemods, unknown

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TEXT = README.read_text("utf-8")
OWN = re.sub(r"^dask .*$", "", TEXT, flags=re.MULTILINE)
"""Without the commands of another program."""
PROSE = re.sub(r"^```.*?^```", "", TEXT, flags=re.DOTALL | re.MULTILINE)
STARTED = ["gradfix", "server"]
QUICK = "$ gradfix --diff train.py\n"
"""A command of a session that needs no torch."""


@pytest.mark.torch
def test_tables_and_sessions_are_what_the_code_says_and_does(tmp_path: Path) -> None:
    wanted = current(TEXT, tmp_path)
    if os.environ.get("UPDATE_README"):
        README.write_text(wanted, "utf-8")
        return
    assert wanted == TEXT, "stale: UPDATE_README=1 pytest tests/test_readme.py"


def test_a_stale_table_and_a_stale_session_are_noticed(tmp_path: Path) -> None:
    (session,) = (each for each in SESSION.findall(TEXT) if QUICK in each)
    stale = SESSION.sub(lambda found: found[0] if found[1] == session else "", TEXT)
    stale = stale.replace("| GF101 |", "| GF999 |").replace(QUICK, "$ gradfix --version\n")
    fresh = current(stale, tmp_path)
    assert "| GF101 |" in fresh and "| GF999 |" not in fresh
    assert "$ gradfix --version\ngradfix " in fresh and "$ gradfix --version\ngradfix " not in stale


def test_the_rule_table_has_a_row_for_each_rule_module() -> None:
    modules = {path.stem for path in README.with_name("codemods").glob("*.py")} - {"__init__"}
    rows = "".join(rule_rows())
    assert {name for name in modules if f"codemods/{name}.py" in rows} == modules
    assert len(list(convention_rows())) == 10


def test_there_are_files_and_sessions_to_play() -> None:
    assert files(TEXT)
    assert all(session.startswith("$ ") for session in SESSION.findall(TEXT))
    assert any("+" in session for session in SESSION.findall(TEXT))


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\((?!http|#)([^)]+)\)", PROSE))))
def test_a_link_into_the_project_leads_somewhere(link: str) -> None:
    assert (README.parent / link).exists()


def block(language: str, word: str) -> str:
    """README's one block in a language that holds a word."""
    (found,) = [each for each in re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL) if word in each]
    return str(found)


def test_the_configuration_is_accepted_and_names_rules_that_exist(tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text(block("toml", "[tool.gradfix]"), "utf-8")
    selectors = [code for codes in read_file(file).selectors().values() for code in codes]
    assert selectors
    assert list(unknown(codemods(), selectors)) == []


def test_the_hooks_of_the_readme_are_the_hooks_of_the_project() -> None:
    offered = {
        hook["id"] for hook in yaml.safe_load((README.parent / ".pre-commit-hooks.yaml").read_text("utf-8"))
    }
    told = set(re.findall(r"- id: (\S+)", block("yaml", "hooks:")))
    assert told == offered == {"gradfix", "gradfix-check"}


def test_the_lines_for_editors_start_the_server() -> None:
    settings = json.loads(block("json", "glspc"))
    helix = tomllib.loads(block("toml", "[language-server."))["language-server"]["gradfix"]
    assert [settings["glspc.server.command"], *settings["glspc.server.commandArguments"]] == STARTED
    assert [helix["command"], *helix["args"]] == STARTED
    for other in (block("lua", "vim.lsp"), block("elisp", "eglot")):
        assert re.search(r'"gradfix",? "server"', other)


@pytest.mark.parametrize("option", sorted(set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", OWN))))
def test_an_option_that_readme_names_exists(option: str) -> None:
    parameters = [*main.params, *(each for one in (run, why, server, clean) for each in one.command.params)]
    of_pytest: list[str] = []
    group = SimpleNamespace(addoption=lambda name, **_: of_pytest.append(name))
    pytest_addoption(cast("pytest.Parser", SimpleNamespace(getgroup=lambda _: group)))
    known = {name for one in parameters for name in [*one.opts, *one.secondary_opts]}
    assert option in known | set(of_pytest)
