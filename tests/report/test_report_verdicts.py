"""How the judge's verdicts read in a terminal."""

from __future__ import annotations

import io

from gradfix.outcome import Outcome, Run, View
from gradfix.report.verdicts import render
from gradfix.verify import Verdict


def said(*verdicts: Verdict) -> str:
    stream = io.StringIO()
    render(Run((Outcome("net.py", verdicts=verdicts),)), stream, View())
    return stream.getvalue()


FILE = Verdict("net.py", "flows", "a gradient arrives at w", before={"w": None}, after={"w": 0.5})
CUT = Verdict("net.py", "flows", "a gradient arrives at w", "detached_loss_path", 4)


def test_the_only_finding_of_a_file_is_not_said_twice() -> None:
    assert said(FILE, CUT) == "net.py: flows (a gradient arrives at w)\n    gradient of w: none -> 0.5\n"


def test_each_of_several_findings_has_its_own_line() -> None:
    other = Verdict("net.py", "not reached", "the run ended before line 9", "backward_twice", 9)
    assert said(FILE, CUT, other).splitlines()[2:] == [
        "net.py:4: detached_loss_path: flows (a gradient arrives at w)",
        "net.py:9: backward_twice: not reached (the run ended before line 9)",
    ]


def test_a_finding_that_ends_otherwise_than_its_file_is_said() -> None:
    other = Verdict("net.py", "not reached", "the run ended before line 9", "backward_twice", 9)
    assert said(FILE, other).endswith("backward_twice: not reached (the run ended before line 9)\n")
