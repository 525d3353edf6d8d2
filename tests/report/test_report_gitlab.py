"""GitLab's report: the fields that its documentation asks for, paths from the project, unique prints."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from report_runs import broken, by_hand, outcome, overwritten, rendered, suspected

from gradfix.outcome import Outcome

LINE = {"type": "integer", "minimum": 1}
SCHEMA = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["description", "check_name", "fingerprint", "severity", "location"],
        "properties": {
            "description": {"type": "string", "minLength": 1},
            "check_name": {"type": "string"},
            "fingerprint": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
            "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
            "location": {
                "type": "object",
                "required": ["path", "lines"],
                "properties": {
                    "path": {"type": "string", "pattern": "^[^./]"},
                    "lines": {
                        "type": "object",
                        "required": ["begin"],
                        "properties": {"begin": LINE, "end": LINE},
                    },
                },
            },
        },
    },
}
"""What docs.gitlab.com/ci/testing/code_quality says of a report."""


@pytest.fixture(autouse=True)
def _outside_of_gitlab(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI_PROJECT_DIR", raising=False)


def issues(*outcomes: Outcome) -> list[dict[str, Any]]:
    """The issues of a report that was found valid."""
    report: list[dict[str, Any]] = json.loads(rendered("gitlab", *outcomes))
    jsonschema.Draft202012Validator(SCHEMA).validate(report)
    return report


def test_a_finding_is_an_issue_on_its_line() -> None:
    (issue,) = issues(outcome([overwritten()]))
    assert issue["description"] == (
        "GF101 `out += shortcut` overwrites what relu saved (fix: out = out + shortcut)"
    )
    assert issue["location"] == {"path": "models/resnet.py", "lines": {"begin": 7, "end": 7}}
    assert (issue["check_name"], issue["severity"]) == ("GF101", "critical")


def test_nothing_found_is_an_empty_report() -> None:
    assert issues(outcome([])) == []


@pytest.mark.parametrize(
    ("finding", "severity"),
    [
        pytest.param(overwritten(), "critical", id="certain"),
        pytest.param(replace(overwritten(), certainty="likely"), "major", id="likely"),
        pytest.param(replace(overwritten(), impact="style"), "info", id="a matter of style"),
        pytest.param(suspected(overwritten()), "info", id="a suspect"),
    ],
)
def test_how_bad_it_is_follows_from_how_sure_it_is(finding: Any, severity: str) -> None:
    assert [issue["severity"] for issue in issues(outcome([finding]))] == [severity]


def test_equal_findings_have_prints_of_their_own_in_a_file_and_in_two() -> None:
    twice = [overwritten(), overwritten()]
    found = issues(outcome(twice), outcome(twice, path="models/copy.py"))
    assert len({issue["fingerprint"] for issue in found}) == len(found) == 4


def test_advice_is_told_where_there_is_no_fix() -> None:
    (issue,) = issues(outcome([by_hand(overwritten(), "clone it")]))
    assert issue["description"].endswith("(by hand: clone it)")


def test_a_file_that_failed_blocks() -> None:
    named, whole = issues(broken(), broken("other.py", None))
    assert (named["severity"], named["location"]["lines"]["begin"]) == ("blocker", 3)
    assert whole["location"]["lines"]["begin"] == 1


def test_paths_are_seen_from_the_project_whatever_folder_the_job_works_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "models").mkdir()
    monkeypatch.chdir(tmp_path / "models")
    monkeypatch.setenv("CI_PROJECT_DIR", str(tmp_path))
    (near,) = issues(outcome([overwritten()], path="resnet.py"))
    (named,) = issues(outcome([overwritten()], path=str(tmp_path / "train.py")))
    assert [one["location"]["path"] for one in (near, named)] == ["models/resnet.py", "train.py"]
