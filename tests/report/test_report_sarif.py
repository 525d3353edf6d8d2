"""SARIF is valid, tells the evidence as a flow, and recognises a finding that has moved.

The schema is `lib/schemas/sarif-2.1.0-rtm.5.json` of the npm package @microsoft/jest-sarif (MIT), unchanged.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from report_runs import BLOCK, broken, by_hand, outcome, overwritten, rendered, span, suspected

from gradfix.defects import Evidence, Role
from gradfix.explain import PAGES, address

SCHEMA = json.loads(Path(__file__).with_name("sarif-2.1.0-rtm.5.json").read_text("utf-8"))


def run_of(*outcomes: Any) -> dict[str, Any]:
    """The one run of the log, after the log was found valid."""
    log = json.loads(rendered("sarif", *outcomes))
    jsonschema.Draft4Validator(SCHEMA).validate(log)
    run: dict[str, Any] = log["runs"][0]
    return run


def prints(source: str, culprit: str = "out += shortcut") -> list[str]:
    """The fingerprints of the findings of a file with one overwritten value."""
    results = run_of(outcome([overwritten(source, culprit)], source))["results"]
    return [result["partialFingerprints"]["gradfix/v1"] for result in results]


def test_the_schema_refuses_a_log_that_is_wrong() -> None:
    log = json.loads(rendered("sarif", outcome([overwritten()])))
    log["runs"][0]["results"][0]["level"] = "fatal"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft4Validator(SCHEMA).validate(log)


def test_the_evidence_is_a_code_flow_in_the_order_of_the_chain() -> None:
    (result,) = run_of(outcome([overwritten()]))["results"]
    steps = result["codeFlows"][0]["threadFlows"][0]["locations"]
    assert [step["location"]["message"]["text"] for step in steps] == ["saved here", "overwritten here"]
    assert steps[0]["location"]["physicalLocation"]["region"] == {
        "startLine": 6,
        "startColumn": 15,
        "endLine": 6,
        "endColumn": 33,
    }


def test_evidence_elsewhere_names_its_own_file() -> None:
    far = replace(overwritten(), evidence=(Evidence(span(BLOCK, "out"), Role.SAVED, "layers.py"),))
    (result,) = run_of(outcome([far]))["results"]
    place = result["codeFlows"][0]["threadFlows"][0]["locations"][0]["location"]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "layers.py"


def test_a_rewrite_is_a_fix_and_advice_is_in_the_message() -> None:
    fixed, left = run_of(outcome([overwritten(), by_hand(overwritten(), "clone it")]))["results"]
    (replacement,) = fixed["fixes"][0]["artifactChanges"][0]["replacements"]
    assert replacement["insertedContent"] == {"text": "out = out + shortcut"}
    assert "fixes" not in left
    assert left["message"]["text"].endswith("\nBy hand: clone it")


def test_the_rules_that_ran_are_described() -> None:
    (rule,) = run_of(outcome([]))["tool"]["driver"]["rules"]
    assert (rule["id"], rule["name"]) == ("GF101", "inplace_overwrites_saved")


def test_the_tool_and_each_rule_say_where_they_are_explained() -> None:
    driver = run_of(outcome([]))["tool"]["driver"]
    assert driver["informationUri"] == f"{PAGES}/"
    assert [rule["helpUri"] for rule in driver["rules"]] == [address("inplace_overwrites_saved")]


def test_a_failed_file_is_a_notification_and_the_run_no_success() -> None:
    (invocation,) = run_of(broken())["invocations"]
    assert invocation["executionSuccessful"] is False
    assert invocation["toolExecutionNotifications"][0]["message"]["text"] == "parse: invalid syntax"


def test_a_path_becomes_a_uri() -> None:
    (result,) = run_of(outcome([overwritten()], path="mód els/a#b.py"))["results"]
    place = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place == {"uri": "m%C3%B3d%20els/a%23b.py", "uriBaseId": "%SRCROOT%"}


def test_an_absolute_path_needs_no_root() -> None:
    (result,) = run_of(outcome([overwritten()], path="/srv/a.py"))["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": "file:///srv/a.py"}


def test_fingerprints_survive_lines_added_above_and_between() -> None:
    moved = "# a line\n\n" + BLOCK.replace("        out +=", "        # and one\n        out +=")
    assert prints(moved) == prints(BLOCK)


def test_fingerprints_survive_another_indentation() -> None:
    deeper = "".join(f"    {line}\n" for line in BLOCK.splitlines())
    assert prints(deeper) == prints(BLOCK)


def test_fingerprints_change_with_the_culprit() -> None:
    other = BLOCK.replace("out += shortcut", "out += identity")
    assert prints(other, culprit="out += identity") != prints(BLOCK)


def test_equal_findings_of_a_file_have_fingerprints_of_their_own() -> None:
    results = run_of(outcome([overwritten(), overwritten()]))["results"]
    first, second = (result["partialFingerprints"]["gradfix/v1"] for result in results)
    assert first != second


def test_a_suspect_tells_what_is_not_known_and_offers_no_fix() -> None:
    (result,) = run_of(outcome([suspected(overwritten())]))["results"]
    assert (result["properties"]["applicability"], "fixes" in result) == ("suspect", False)
    argument, called, budget = result["properties"]["unknowns"]
    assert {name: argument[name] for name in ("what", "name", "message", "settledBy")} == {
        "what": "argument",
        "name": "net",
        "message": {"text": "`head` of argument `net`"},
        "settledBy": "a caller of it in a file that is read",
    }
    places = [one["location"]["physicalLocation"] for one in (argument, called)]
    assert [place["region"]["startLine"] for place in places] == [5, 3]
    assert [place["artifactLocation"]["uri"] for place in places] == ["models/resnet.py", "models/other.py"]
    assert "location" not in budget


def test_a_fix_that_may_be_applied_is_offered() -> None:
    (result,) = run_of(outcome([overwritten()]))["results"]
    assert (result["properties"]["applicability"], len(result["fixes"])) == ("safe", 1)
    assert result["properties"]["unknowns"] == []
