"""JSON keeps the field names that editors and scripts know from ruff."""

from __future__ import annotations

import json
from dataclasses import replace

from report_runs import BLOCK, by_hand, outcome, overwritten, rendered, span, suspected

from gradfix.defects import Evidence, Role
from gradfix.outcome import View

RUFF = {"code", "filename", "location", "end_location", "message", "fix", "noqa_row", "url"}


def test_a_finding_has_the_fields_of_ruff_and_its_own() -> None:
    (found,) = json.loads(rendered("json", outcome([overwritten()])))
    assert set(found) >= RUFF
    assert found == {
        "code": "GF101",
        "name": "inplace_overwrites_saved",
        "cell": None,
        "filename": "models/resnet.py",
        "location": {"row": 7, "column": 9},
        "end_location": {"row": 7, "column": 24},
        "message": "`out += shortcut` overwrites what relu saved",
        "impact": "crashes",
        "certainty": "certain",
        "conventions": [],
        "assumptions": [],
        "unknowns": [],
        "condition": None,
        "torch_says": "modified by an inplace operation",
        "related": [
            {
                "message": "saved here",
                "cell": None,
                "filename": "models/resnet.py",
                "location": {"row": 6, "column": 15},
                "end_location": {"row": 6, "column": 33},
            },
            {
                "message": "overwritten here",
                "cell": None,
                "filename": "models/resnet.py",
                "location": {"row": 7, "column": 9},
                "end_location": {"row": 7, "column": 24},
            },
        ],
        "fix": {
            "applicability": "safe",
            "message": "out = out + shortcut",
            "edits": [
                {
                    "content": "out = out + shortcut",
                    "cell": None,
                    "location": {"row": 7, "column": 9},
                    "end_location": {"row": 7, "column": 24},
                }
            ],
        },
        "by_hand": None,
        "noqa_row": 7,
        "url": "https://gradfix.github.io/gradfix/rules/inplace_overwrites_saved/",
    }


def test_nothing_found_is_an_empty_array() -> None:
    assert json.loads(rendered("json", outcome([]))) == []


def test_a_finding_without_a_fix_has_null_and_the_advice() -> None:
    (found,) = json.loads(rendered("json", outcome([by_hand(overwritten(), "clone it")])))
    assert found["fix"] is None
    assert found["by_hand"] == "clone it"


def test_evidence_names_the_file_it_lies_in() -> None:
    finding = replace(overwritten(), evidence=(Evidence(span(BLOCK, "out"), Role.SAVED, "layers.py"),))
    (found,) = json.loads(rendered("json", outcome([finding])))
    assert found["related"][0]["filename"] == "layers.py"


def test_statistics_are_json_where_json_is_asked_for() -> None:
    view = View(output_format="json", statistics=True)
    shown = rendered("statistics", outcome([overwritten(), by_hand(overwritten(), "clone")]), view=view)
    assert json.loads(shown) == [
        {
            "code": "GF101",
            "name": "inplace_overwrites_saved",
            "count": 2,
            "fixable": True,
            "safe": 1,
            "unsafe": 0,
        }
    ]


def test_a_suspect_says_what_is_not_known_and_that_its_fix_is_never_applied() -> None:
    (found,) = json.loads(rendered("json", outcome([suspected(overwritten())])))
    assert (found["certainty"], found["fix"]["applicability"]) == ("suspect", "suspect")
    assert found["assumptions"] == ["no call that wasn't followed brings these gradients"]
    assert found["unknowns"] == [
        {
            "what": "argument",
            "name": "net",
            "message": "`head` of argument `net`",
            "settled_by": "a caller of it in a file that is read",
            "cell": None,
            "filename": "models/resnet.py",
            "location": {"row": 5, "column": 23},
        },
        {
            "what": "called",
            "name": "`prepare`",
            "message": "what `prepare` does, which isn't followed",
            "settled_by": "its source in the project, or a row for its framework",
            "cell": None,
            "filename": "models/other.py",
            "location": {"row": 3, "column": 1},
        },
        {
            "what": "budget",
            "name": "the rest of this file",
            "message": "the rest of this file",
            "settled_by": "a shorter way to it: what costs too much is left out",
            "cell": None,
            "filename": None,
            "location": None,
        },
    ]
