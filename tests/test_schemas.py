"""The schemas hold of what gradfix really prints and of what it really reads, and refuse what is wrong."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest
from click.testing import CliRunner
from referencing import Registry, Resource

from gradfix.cli import main
from gradfix.config import DEEDS, FLAGS, READINGS, ROLES, ConfigError, read_file
from gradfix.defects import Certainty, Convention, Enough, Impact
from gradfix.defects.reasons import What
from gradfix.explain import PAGES
from gradfix.health.checked import State
from gradfix.rule import Applicability
from gradfix.verify.verdicts import Word

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "gradfix" / "schemas"
SCHEMAS: dict[str, dict[str, Any]] = {
    file.stem: json.loads(file.read_text("utf-8")) for file in FOLDER.glob("*.json")
}
FIXTURES = ROOT / "fixtures"
OVERWRITTEN = (FIXTURES / "inplace_overwrites_saved/relu_then_add_script/before.py").read_text("utf-8")
SUSPECT = """\
import torch

def train(model, optimizer, loader, refill):
    for x in loader:
        model(x).sum().backward()
        optimizer.zero_grad()
        refill(optimizer)
        optimizer.step()
"""
MODULES = """\
import torch
from torch import nn


class Good(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc = nn.Linear(width, width)
        self.idle = nn.Linear(width, width)

    def forward(self, x):
        return self.fc(x)


class Bad(Good):
    def forward(self, x):
        h = self.fc(x).exp()
        h += 1
        return h
"""
TRACE = """\
Traceback (most recent call last):
  File "{file}", line 12, in <module>
    loss.backward()
RuntimeError: one of the variables needed for gradient computation has been modified by an inplace \
operation: [torch.FloatTensor [4, 3]], which is output 0 of ReluBackward0, is at version 1; expected \
version 0 instead.
"""


def closed(schema: Any) -> Any:
    """The same schema, where an object may have no field but those that are described."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {key: closed(value) for key, value in schema.items()}
    described = isinstance(inner.get("properties"), dict) and "type" in inner
    return {"additionalProperties": False, **inner} if described else inner


REGISTRY: Registry[Any] = Registry().with_resources(
    (schema["$id"], Resource.from_contents(closed(schema))) for schema in SCHEMAS.values()
)


def check(name: str, value: object) -> None:
    """That a value is described whole, with no field left over."""
    jsonschema.Draft7Validator(closed(SCHEMAS[name]), registry=REGISTRY).validate(value)


def refused(name: str, value: object) -> bool:
    """Whether a schema as it is published refuses a value."""
    return not jsonschema.Draft7Validator(SCHEMAS[name], registry=REGISTRY).is_valid(value)


def printed(*words: str, text: str | None = None) -> Any:
    """What a command prints as JSON."""
    done = CliRunner().invoke(main, [*words[:-1], "--output-format", "json", words[-1]], input=text)
    assert done.exit_code in (0, 1), done.output
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_a_schema_is_one_and_has_its_address_among_the_pages(name: str) -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMAS[name])
    assert SCHEMAS[name]["$id"] == f"{PAGES}/schemas/{name}.json"


def test_findings_of_every_rule_are_described() -> None:
    first = {path.parent.parent: path for path in sorted(FIXTURES.glob("*/*/before.py"), reverse=True)}
    found = printed("--select", "ALL", *map(str, first.values()))
    check("findings", found)
    assert {each["impact"] for each in found} == {"crashes", "trains wrong", "wastes memory", "style"}
    assert {each["fix"]["applicability"] for each in found if each["fix"]} == {"safe", "unsafe"}


def test_suspects_and_what_is_not_known_of_them_are_described() -> None:
    found = printed("--suspects", "-", text=SUSPECT)
    assert any(each["unknowns"] for each in found)
    check("findings", found)


def test_places_in_a_notebook_are_described() -> None:
    cell: dict[str, Any] = {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": [],
        "source": OVERWRITTEN.splitlines(keepends=True),
    }
    notebook = {
        "cells": [cell],
        "metadata": {"language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 4,
    }
    (found,) = printed("--stdin-filename", "lesson.ipynb", "-", text=json.dumps(notebook))
    assert found["cell"] == 1
    check("findings", [found])


def test_counts_are_described() -> None:
    counts = printed("--statistics", str(FIXTURES / "graph_leak"))
    assert counts
    check("statistics", counts)


def test_no_finding_is_an_empty_array_that_is_described() -> None:
    check("findings", printed("-", text="x = 1\n"))


@pytest.mark.torch
def test_what_a_run_says_is_described(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(OVERWRITTEN, "utf-8")
    said = printed("run", str(tmp_path / "train.py"))
    assert said["findings"] and said["recorded"] and said["verdicts"]
    check("run", said)


@pytest.mark.torch
def test_what_the_judge_says_of_a_finding_is_described(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(OVERWRITTEN, "utf-8")
    found = printed("--apply", "--verify", str(tmp_path / "train.py"))
    check("findings", found)


@pytest.mark.torch
def test_the_health_of_a_project_is_described(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(MODULES, "utf-8")
    (tmp_path / "gone.py").write_text("raise OSError(1)\n" + MODULES, "utf-8")
    said = printed("--verify", "--deep", str(tmp_path))
    assert {each["state"] for each in said["modules"]} == {"broken", "flows", "not run"}
    assert said["findings"] and any(each["without_gradient"] for each in said["modules"])
    check("health", said)


def test_what_why_says_is_described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(OVERWRITTEN, "utf-8")
    said = printed("why", "-", text=TRACE.format(file="train.py"))
    assert said["culprits"][0]["url"] == f"{PAGES}/rules/inplace_overwrites_saved/"
    check("why", said)


def test_what_why_says_of_a_symptom_and_of_nothing_is_described(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(SUSPECT, "utf-8")
    check("why", printed("why", "--symptom", "loss does not decrease", "train.py"))
    check("why", printed("why", "-", text=TRACE.format(file="gone.py")))


def without(field: str) -> Callable[[dict[str, Any]], object]:
    return lambda found: found.pop(field)


def saying(field: str, value: object) -> Callable[[dict[str, Any]], object]:
    return lambda found: found.update({field: value})


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(without("url"), id="no page"),
        pytest.param(without("noqa_row"), id="no row for a comment"),
        pytest.param(saying("code", "E501"), id="a code of another tool"),
        pytest.param(saying("impact", "annoys"), id="an impact that there is not"),
        pytest.param(saying("certainty", None), id="no certainty"),
        pytest.param(saying("location", {"row": 0, "column": 1}), id="a row 0"),
        pytest.param(saying("conventions", ["Z"]), id="a convention that there is not"),
        pytest.param(saying("fix", {"applicability": "maybe", "message": "", "edits": []}), id="a fix"),
        pytest.param(saying("related", [{"message": "here"}]), id="evidence without a place"),
        pytest.param(saying("verdict", {"verdict": "fine"}), id="a verdict that there is not"),
    ],
)
def test_a_finding_that_is_wrong_is_refused(spoil: Callable[[dict[str, Any]], object]) -> None:
    (found,) = printed("-", text=OVERWRITTEN)
    assert not refused("findings", [found])
    spoiled = deepcopy(found)
    spoil(spoiled)
    assert refused("findings", [spoiled])


@pytest.mark.parametrize("name", ["findings", "run", "why", "statistics", "config", "health"])
def test_what_is_of_another_kind_is_refused(name: str) -> None:
    assert refused(name, "all well")
    assert refused(name, {"findings": 1, "culprits": 1, "select": 1})


def choices(name: str, definition: str, field: str) -> set[str]:
    """The words that a field of a schema may be."""
    return set(SCHEMAS[name]["definitions"][definition]["properties"][field]["enum"])


def test_the_words_are_those_of_the_code() -> None:
    assert choices("findings", "finding", "impact") == set(get_args(Impact))
    assert choices("findings", "finding", "certainty") == set(get_args(Certainty))
    assert choices("health", "module", "state") == set(get_args(State))
    assert choices("findings", "fix", "applicability") == set(get_args(Applicability)) - {"none"}
    assert choices("findings", "verdict", "verdict") == set(get_args(Word))
    assert choices("findings", "unknown", "what") == {each.name.lower() for each in What}
    letters = SCHEMAS["findings"]["definitions"]["finding"]["properties"]["conventions"]["items"]["pattern"]
    assert letters == f"^[{min(each.name for each in Convention)}-{max(each.name for each in Convention)}]$"


def test_the_keys_of_the_configuration_are_those_of_the_code() -> None:
    properties = SCHEMAS["config"]["properties"]
    assert set(properties) == {*READINGS, "frameworks"}
    assert set(properties["min-certainty"]["enum"]) == set(get_args(Enough))
    assert set(SCHEMAS["config"]["definitions"]["framework"]["properties"]) == set(DEEDS)
    called = SCHEMAS["config"]["definitions"]["called"]["properties"]
    assert set(called) == set(FLAGS)
    assert called["given"]["items"]["enum"] == [*ROLES]


CONFIGURATIONS = {
    "nothing": ("", True),
    "rules": ('select = ["GF1", "graph_leak"]\nignore = ["GF102"]', True),
    "every switch": ("force-exclude = true\nunsafe-fixes = true\nsuspects = false", True),
    "how sure": ('min-certainty = "certain"\nfix-certainty = "likely"\nreduction = "mean"', True),
    "files": ('exclude = ["gen"]\nextend-exclude = []\nextend-select = ["GF303"]', True),
    "rules for files": ('[tool.gradfix.per-file-ignores]\n"tests/*" = ["GF403"]', True),
    "a framework": (
        '[tool.gradfix.frameworks.Learner]\nfit = { root = true, given = ["batch", ""] }\nstep = ["go"]',
        True,
    ),
    "a folder": ('cache-dir = "build/kept"', True),
    "a key that there is not": ("selct = []", False),
    "a folder without a name": ('cache-dir = " "', False),
    "a selector that is no list": ('select = "GF1"', False),
    "a number among the rules": ("ignore = [101]", False),
    "a switch that is a word": ('suspects = "yes"', False),
    "a certainty that is not enough": ('min-certainty = "suspect"', False),
    "a reduction that there is not": ('reduction = "max"', False),
    "rules for files that are no list": ('[tool.gradfix.per-file-ignores]\n"tests/*" = "GF4"', False),
    "a framework that is no table": ("[tool.gradfix.frameworks]\nLearner = true", False),
    "a deed that is no list": ('[tool.gradfix.frameworks.Learner]\nstep = "go"', False),
    "a flag that there is not": ("[tool.gradfix.frameworks.Learner]\nfit = { roots = true }", False),
    "a flag that is no switch": ('[tool.gradfix.frameworks.Learner]\nfit = { grad = "no" }', False),
    "a role that there is not": ('[tool.gradfix.frameworks.Learner]\nfit = { given = ["tensor"] }', False),
    "a list that is no deed": ('[tool.gradfix.frameworks.Learner]\nfit = ["go"]', False),
}


@pytest.mark.parametrize(("text", "right"), CONFIGURATIONS.values(), ids=CONFIGURATIONS)
def test_the_schema_takes_what_gradfix_takes(text: str, right: bool, tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text(f"[tool.gradfix]\n{text}\n", "utf-8")
    table = tomllib.loads(file.read_text("utf-8"))["tool"]["gradfix"]
    assert refused("config", table) is not right
    if right:
        read_file(file)
        return
    with pytest.raises(ConfigError):
        read_file(file)


def test_the_configuration_of_the_readme_is_described() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    (block,) = [each for each in text.split("```toml\n")[1:] if each.startswith("[tool.gradfix]")]
    table = tomllib.loads(block.partition("```")[0])
    check("config", table["tool"]["gradfix"])
