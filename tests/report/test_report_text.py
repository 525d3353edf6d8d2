"""The listing for people: what it shows, how it fits the terminal, what it never prints."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from report_runs import BLOCK, by_hand, outcome, overwritten, rendered, span

from gradfix.defects import Evidence, Role
from gradfix.outcome import OutputFormat, Run, View
from gradfix.report.screen import cells
from gradfix.report.show import load
from gradfix.rule import Safety

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")


def test_a_finding_shows_its_evidence_its_rewrite_and_what_torch_says() -> None:
    assert rendered("text", outcome([overwritten()])) == (
        "models/resnet.py:7:9 GF101 [crashes, certain, safe fix]"
        " `out += shortcut` overwrites what relu saved\n"
        "    6 | out = F.relu(self.bn(x))   <- saved here\n"
        "    7 | out += shortcut            <- overwritten here\n"
        '      fix: out = out + shortcut   torch says: "modified by an inplace operation"\n'
    )


def test_nothing_found_prints_nothing() -> None:
    assert rendered("text", outcome([])) == ""


def test_a_narrow_terminal_gets_the_message_on_its_own_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert rendered("text", outcome([overwritten()])).splitlines()[:2] == [
        "models/resnet.py:7:9 GF101 [crashes, certain, safe fix]",
        "      `out += shortcut` overwrites what relu saved",
    ]


def test_a_finding_without_a_fix_says_what_to_do_by_hand() -> None:
    shown = rendered("text", outcome([by_hand(overwritten(), "clone it before the loop")]))
    assert "[crashes, certain, by hand]" in shown
    assert "      by hand: clone it before the loop   torch says: " in shown


@pytest.mark.parametrize("form", ["text", "github", "gitlab", "json", "rdjson", "sarif"])
def test_an_unsafe_fix_says_why_it_is(form: OutputFormat) -> None:
    finding = replace(overwritten(), safety=Safety.UNSAFE, unsafe="another name sees this write")
    shown = rendered(form, outcome([finding]))
    assert "another name sees this write" in shown and "unsafe" in shown
    assert "another name sees this write" not in rendered(form, outcome([overwritten()]))


def test_a_condition_is_named() -> None:
    finding = replace(overwritten(), condition="self.residual")
    assert "      when: self.residual\n" in rendered("text", outcome([finding]))


def test_conventions_are_explained_once_at_the_end() -> None:
    leaning = replace(overwritten(), certainty="likely", conventions=("A", "E"))
    shown = rendered("text", outcome([leaning, leaning]))
    assert shown.count("[crashes, likely: A, E, safe fix]") == 2
    assert shown.endswith(
        "likely, A: batches from a loader carry no gradient\nlikely, E: loops run at least once\n"
    )


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_no_line_is_wider_than_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    saved = (
        "torch.softmax(self.query(hidden) @ self.key(outputs).transpose(-1, -2) / math.sqrt(self.size), -1)"
    )
    source = f"def f(self):\n        attention = {saved}\n        attention += 1; self.kept = attention\n"
    finding = overwritten(source, "attention += 1", saved, ("saved here " * 9, "written " * 9))
    shown = rendered("text", outcome([by_hand(finding, "do this and that " * 20)], source))
    assert max(map(cells, shown.splitlines())) <= columns


def test_a_long_line_is_cut_around_its_culprit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    source = f"x = F.relu(x)\n{'first_thing(); ' * 20}x += shortcut; {'last_thing(); ' * 20}\n"
    shown = rendered("text", outcome([overwritten(source, "x += shortcut", "F.relu(x)")], source))
    line, carets = shown.splitlines()[4:6]
    start = carets.index("^")
    assert line[start : carets.rindex("^") + 1] == "x += shortcut"
    assert line.startswith("    2 | ...")
    assert line.endswith("...")


def test_wide_characters_keep_the_roles_aligned() -> None:
    source = "名前 = torch.exp(データ)\nn += 1\n"
    shown = rendered("text", outcome([overwritten(source, "n += 1", "torch.exp(データ)")], source))
    saved, written = shown.splitlines()[1:3]
    assert cells(saved[: saved.index("<-")]) == cells(written[: written.index("<-")])


def test_tabs_are_expanded_and_the_common_margin_taken_off() -> None:
    source = "def f(x):\n\ty = F.relu(x)\n\tif y:\n\t\ty += 1\n"
    shown = rendered("text", outcome([overwritten(source, "y += 1", "F.relu(x)")], source))
    assert "    2 | y = F.relu(x)   <- saved here\n    4 |     y += 1" in shown


def test_two_roles_on_one_line_are_told_apart_by_carets() -> None:
    source = "F.relu(x).add_(shortcut)\n"
    finding = overwritten(source, "F.relu(x).add_(shortcut)", "F.relu(x)")
    assert rendered("text", outcome([finding], source)).splitlines()[1:4] == [
        "    1 | F.relu(x).add_(shortcut)",
        "      | ^^^^^^^^^^^^^^^^^^^^^^^^ overwritten here",
        "      | ^^^^^^^^^ saved here",
    ]


def test_a_place_that_plays_two_roles_says_both() -> None:
    source = "x /= x.norm()\n"
    finding = overwritten(source, "x /= x.norm()", "x /= x.norm()")
    assert "<- saved here; overwritten here" in rendered("text", outcome([finding], source))


def test_a_culprit_that_the_evidence_does_not_name_is_pointed_at() -> None:
    finding = overwritten()
    shown = rendered("text", outcome([replace(finding, evidence=finding.evidence[:1])]))
    assert "    7 | out += shortcut            <- here\n" in shown


def test_a_culprit_of_several_lines_shows_that_it_goes_on() -> None:
    source = "out = F.relu(x)\nout.add_(\n    shortcut,\n)\n"
    finding = overwritten(source, "out.add_(\n    shortcut,\n)", "F.relu(x)")
    assert "    2 | out.add_( ...     <- overwritten here\n" in rendered("text", outcome([finding], source))


def test_evidence_in_another_file_stands_under_its_name() -> None:
    other = "def twice(y):\n    return torch.exp(y)\n"
    finding = overwritten()
    step = Evidence(span(other, "torch.exp(y)"), Role.SAVED, "layers.py")
    far = replace(finding, evidence=(step, *finding.evidence))
    shown = rendered("text", outcome([far]), outcome([], other, "layers.py"))
    assert "      in layers.py\n    2 | return torch.exp(y)   <- saved here\n" in shown


def test_evidence_in_a_file_that_was_not_read_still_has_its_line() -> None:
    far = replace(overwritten(), evidence=(Evidence(span(BLOCK, "out"), Role.SAVED, "gone.py"),))
    assert "      in gone.py\n    6 | ...   <- saved here\n" in rendered("text", outcome([far]))


@pytest.mark.parametrize(
    "trick", ["\x1b[31m", "\u202e", "\r", "\x07"], ids=["escape", "bidi", "return", "bell"]
)
def test_a_source_line_cannot_steer_the_terminal(trick: str) -> None:
    source = f"y = F.relu(x)  # {trick}\ny += 1\n"
    shown = rendered("text", outcome([overwritten(source, "y += 1", "F.relu(x)")], source, f"m{trick}.py"))
    assert trick not in shown


def test_colour_changes_no_text() -> None:
    finding = replace(overwritten(), condition="self.residual", conventions=("A",))
    plain = rendered("text", outcome([finding]))
    coloured = rendered("text", outcome([finding]), view=View(colour=True))
    assert ESCAPE.search(coloured)
    assert [line.rstrip() for line in ESCAPE.sub("", coloured).splitlines()] == plain.splitlines()


def test_the_culprit_is_red_and_the_evidence_is_not() -> None:
    coloured = rendered("text", outcome([overwritten()]), view=View(colour=True))
    assert "\x1b[1;31mout += shortcut\x1b[0m" in coloured
    assert "\x1b[36mF.relu(self.bn(x))\x1b[0m" in coloured


def test_a_stream_that_lacks_a_character_gets_its_escape() -> None:

    source = "名 = F.relu(x)\n名 += 1\n"
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    found = outcome([overwritten(source, "名 += 1", "F.relu(x)")], source)
    load("text").render(Run((found,)), stream, View())
    stream.flush()
    assert b"\\u540d += 1" in raw.getvalue()


def test_rich_is_imported_only_for_colour() -> None:
    program = (
        "import sys\n"
        "from report_runs import outcome, overwritten, rendered\n"
        "rendered('text', outcome([overwritten()]))\n"
        "print('rich' in sys.modules, 'libcst' in sys.modules)\n"
    )
    here = Path(__file__).parent
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=here, capture_output=True, text=True, check=True
    )
    assert done.stdout == "False False\n"
