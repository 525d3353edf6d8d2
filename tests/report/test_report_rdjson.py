"""Reviewdog's format: columns in bytes, ranges that a reviewer can accept."""

from __future__ import annotations

import json
from typing import Any

from report_runs import outcome, overwritten, rendered, suspected

from gradfix.explain import address

SOURCE = "y = F.relu('名', x)\nz = '名'; y += 1\n"


def diagnostic() -> dict[str, Any]:
    """The one diagnostic of a file with wide characters before the culprit."""
    finding = overwritten(SOURCE, "y += 1", "F.relu('名', x)")
    result = json.loads(rendered("rdjson", outcome([finding], SOURCE)))
    assert result["source"]["name"] == "gradfix"
    (found,) = result["diagnostics"]
    return dict(found)


def cut(place: dict[str, Any]) -> str:
    """What a range of bytes on one line holds, read as reviewdog does."""
    assert place["start"]["line"] == place["end"]["line"]
    line: bytes = SOURCE.splitlines()[place["start"]["line"] - 1].encode()
    start, end = int(place["start"]["column"]), int(place["end"]["column"])
    return line[start - 1 : end - 1].decode()


def test_the_location_counts_bytes() -> None:
    found = diagnostic()
    assert cut(found["location"]["range"]) == "y += 1"
    assert found["severity"] == "ERROR"
    assert found["code"] == {"value": "GF101", "url": address("inplace_overwrites_saved")}


def test_the_suggestion_replaces_exactly_the_culprit() -> None:
    (suggestion,) = diagnostic()["suggestions"]
    assert cut(suggestion["range"]) == "y += 1"
    assert suggestion["text"] == "out = out + shortcut"


def test_the_evidence_is_related() -> None:
    saved, written = diagnostic()["relatedLocations"]
    assert (saved["message"], cut(saved["location"]["range"])) == ("saved here", "F.relu('名', x)")
    assert (written["message"], cut(written["location"]["range"])) == ("overwritten here", "y += 1")


def test_the_fix_of_a_suspect_is_no_suggestion() -> None:
    (found,) = json.loads(rendered("rdjson", outcome([suspected(overwritten())])))["diagnostics"]
    assert found["suggestions"] == []
    assert found["message"].endswith("fix, if so: out = out + shortcut")
