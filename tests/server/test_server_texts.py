"""Texts as an editor has them: in which units places are counted, where lines go, what bytes they are."""

from __future__ import annotations

import sys

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from lsprotocol.types import Position, PositionEncodingKind, Range

from gradfix.cli import main
from gradfix.defects import Span
from gradfix.rule import TextEdit
from gradfix.server.documents import encoded
from gradfix.server.moved import Shift
from gradfix.server.positions import Ruler

TEXT = st.lists(st.sampled_from(["a\n", "b\n", "c\r\n", "\n", "\f\n"]), max_size=12)


@pytest.mark.parametrize(
    ("units", "character"),
    [
        pytest.param(PositionEncodingKind.Utf8, 7, id="in UTF-8"),
        pytest.param(PositionEncodingKind.Utf16, 4, id="in UTF-16"),
        pytest.param(PositionEncodingKind.Utf32, 3, id="in UTF-32"),
    ],
)
def test_a_column_in_characters_is_counted_in_the_units_agreed_on(
    units: PositionEncodingKind, character: int
) -> None:
    ruler = Ruler("a\nä😀x = 1\n", units)
    assert ruler.position(2, 3) == Position(1, character)
    assert ruler.range_in_bytes(Span(2, 7, 2, 8)) == Range(Position(1, character), Position(1, character + 1))
    assert ruler.pointed(Position(1, character)) == ("ä😀x = 1\n", 3)


def test_a_byte_order_mark_is_a_character_of_the_first_line_only() -> None:
    ruler = Ruler("\ufeffa = 1\nb = 2\n", "utf-16")
    assert ruler.position(1, 0) == Position(0, 1)
    assert ruler.position(2, 0) == Position(1, 0)
    assert ruler.edited(TextEdit(1, 1, 2, 2, "")) == Range(Position(0, 1), Position(1, 1))


@pytest.mark.parametrize(
    ("text", "end"),
    [
        pytest.param("", (0, 0), id="of nothing"),
        pytest.param("a\n", (1, 0), id="behind a line"),
        pytest.param("a\r\nb", (1, 1), id="in a line that is open"),
        pytest.param("a\fb\x85c", (0, 5), id="with what ends no line"),
    ],
)
def test_the_end_of_a_text_is_where_editors_say(text: str, end: tuple[int, int]) -> None:
    ruler = Ruler(text, "utf-16")
    assert ruler.end == Position(*end)
    assert ruler.position(99, 3) == Position(*end)
    assert ruler.between(0, 99) == Range(Position(0, 0), Position(*end))


@pytest.mark.parametrize(
    ("text", "content"),
    [
        pytest.param("x = 'ä'\n", "x = 'ä'\n".encode(), id="UTF-8 where nothing is said"),
        pytest.param("\ufeffx\n", b"\xef\xbb\xbfx\n", id="UTF-8 with its mark"),
        pytest.param("# coding: latin-1\nx = 'ä'\n", b"# coding: latin-1\nx = '\xe4'\n", id="what it names"),
        pytest.param("# coding: latin-1\n'€'\n", "# coding: latin-1\n'€'\n".encode(), id="UTF-8 if need be"),
        pytest.param("# coding: nothing\n", b"# coding: nothing\n", id="UTF-8 where nobody knows that name"),
        pytest.param("'\ud800'\n", b"'\xed\xa0\x80'\n", id="half a character as it is"),
    ],
)
def test_the_bytes_of_a_text_are_those_that_an_editor_would_save(text: str, content: bytes) -> None:
    assert encoded(text) == content


@settings(max_examples=200, deadline=None)
@given(before=TEXT, after=TEXT)
def test_lines_move_in_order_and_those_at_both_ends_to_themselves(
    before: list[str], after: list[str]
) -> None:
    shift = Shift("".join(before), "".join(after))
    moved = [at for line in range(len(before)) if (at := shift(line)) is not None]
    assert moved == sorted(set(moved))
    assert all(0 <= at < len(after) for at in moved)


@settings(max_examples=200, deadline=None)
@given(before=TEXT, new=TEXT, data=st.data())
def test_lines_around_what_is_put_in_stay_the_lines_that_they_are(
    before: list[str], new: list[str], data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(before)))
    after = [*before[:at], *new, *before[at:]]
    shift = Shift("".join(before), "".join(after))
    for line, text in enumerate(before):
        place = shift(line)
        assert place is not None
        assert after[place] == text


def test_without_pygls_the_server_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in sys.modules if each.startswith(("gradfix.server.", "pygls", "lsprotocol"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pygls", None)
    result = CliRunner().invoke(main, ["server"])
    assert result.exit_code == 2
    assert "pip install 'gradfix[server]'" in result.output


def test_the_server_has_a_page_of_help_of_its_own() -> None:
    result = CliRunner().invoke(main, ["server", "--help"], prog_name="gradfix")
    assert result.exit_code == 0
    assert "Usage: gradfix server" in result.output
