"""Whether a stream is coloured, and how wide a character is."""

from __future__ import annotations

import io
from collections.abc import Mapping

import pytest

from gradfix.report.screen import ColourChoice, cells, colours, columns


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "choice", "environ", "coloured"),
    [
        (Terminal(), "auto", {}, True),
        (Terminal(), "auto", {"TERM": "dumb"}, False),
        (Terminal(), "auto", {"NO_COLOR": "1"}, False),
        (Terminal(), "auto", {"NO_COLOR": ""}, True),
        (io.StringIO(), "auto", {}, False),
        (io.StringIO(), "auto", {"FORCE_COLOR": "1"}, True),
        (io.StringIO(), "auto", {"FORCE_COLOR": "0"}, False),
        (io.StringIO(), "auto", {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (io.StringIO(), "always", {"NO_COLOR": "1"}, True),
        (Terminal(), "never", {"FORCE_COLOR": "1"}, False),
    ],
)
def test_the_option_rules_then_no_color_then_force_color_then_the_terminal(
    stream: io.StringIO, choice: ColourChoice, environ: Mapping[str, str], coloured: bool
) -> None:
    assert colours(stream, choice, environ) is coloured


@pytest.mark.parametrize(("text", "width"), [("abc", 3), ("名前", 4), ("é", 1), ("e\u0301", 1), ("🔥", 2)])
def test_a_character_takes_as_many_cells_as_a_terminal_gives_it(text: str, width: int) -> None:
    assert cells(text) == width


def test_columns_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "97")
    assert columns() == 97


def test_a_terminal_too_narrow_to_read_is_overruled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "3")
    assert columns() == 40
