"""What a terminal can show: colours, columns, the width of a character, and styled lines."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from shutil import get_terminal_size
from typing import Literal, NamedTuple, TextIO, TypeAlias

ColourChoice: TypeAlias = Literal["auto", "always", "never"]
WITHOUT_TERMINAL = 120
NARROWEST = 40
TAB = 4
INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


class Piece(NamedTuple):
    """A stretch of a line and its style, in rich's words ("" for none)."""

    text: str
    style: str = ""


Line: TypeAlias = list[Piece]


def colours(stream: TextIO, choice: ColourChoice, environ: Mapping[str, str]) -> bool:
    """Say whether to colour a stream: the option counts first, then NO_COLOR, FORCE_COLOR, the terminal."""
    if choice != "auto":
        return choice == "always"
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR", "") not in {"", "0"}:
        return True
    return stream.isatty() and environ.get("TERM") != "dumb"


def columns() -> int:
    """Say how many columns a report may use: COLUMNS, else the terminal's, else a wide default."""
    return max(get_terminal_size((WITHOUT_TERMINAL, 24)).columns, NARROWEST)


def character_width(character: str) -> int:
    """Say how many cells a terminal gives to a character."""
    if character.isascii():
        return 1
    if unicodedata.category(character) in {"Mn", "Me"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def cells(text: str) -> int:
    """Say how many cells a terminal gives to a text."""
    return len(text) if text.isascii() else sum(map(character_width, text))


def visible(character: str) -> str:
    """Replace what would steer the terminal or the eye (escapes, bidirectional marks) by a question mark."""
    return "?" if unicodedata.category(character) in INVISIBLE else character


def harmless(text: str) -> str:
    """Make a text from a user's file safe to print, on one line."""
    return text if text.isascii() and text.isprintable() else "".join(map(visible, text))


def expand(text: str) -> list[str]:
    """Give what each character of a source line shows as: tabs as spaces, the rest as it is or harmless."""
    shown: list[str] = []
    column = 0
    for character in text:
        piece = " " * (TAB - column % TAB) if character == "\t" else visible(character)
        shown.append(piece)
        column += cells(piece)
    return shown


def _plain(lines: Iterable[Line]) -> str:
    return "".join("".join(piece.text for piece in line).rstrip() + "\n" for line in lines)


def _styled(lines: Iterable[Line]) -> str:
    """The lines with the terminal's codes for their styles; tabs stay tabs, so that a diff stays one."""
    from rich.color import ColorSystem
    from rich.style import Style

    def drawn(piece: Piece) -> str:
        return Style.parse(piece.style).render(piece.text, color_system=ColorSystem.STANDARD)

    return "".join("".join(map(drawn, line)) + "\n" for line in lines)


def encodable(text: str, stream: TextIO) -> str:
    """Spell out the characters that the stream's encoding lacks, so that printing never fails."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def write(stream: TextIO, lines: Iterable[Line], colour: bool, end: str = "\n") -> None:
    """Print styled lines; rich is imported only for colour. The end is that of the last line."""
    text = _styled(lines) if colour else _plain(lines)
    stream.write(encodable(text.removesuffix("\n") + end if end != "\n" else text, stream))
