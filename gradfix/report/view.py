"""How a report is to look: what the command line, the terminal and the environment say together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from shutil import get_terminal_size
from typing import Literal, TextIO, TypeAlias

Mode: TypeAlias = Literal["list", "diff", "apply"]
ColourChoice: TypeAlias = Literal["auto", "always", "never"]


def _nothing(path: str) -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class View:
    """What every format is told besides the run itself.

    `source` gives the text of a file as it was analysed (None when it can't be had); only the formats that quote
    code ask for it.
    """

    mode: Mode = "list"
    colour: bool = False
    width: int = 80
    statistics: bool = False
    verbose: bool = False
    source: Callable[[str], str | None] = field(default=_nothing)


def colours(stream: TextIO, choice: ColourChoice, environ: Mapping[str, str]) -> bool:
    """Say whether to colour what goes to this stream: the option first, then NO_COLOR, FORCE_COLOR, the terminal."""
    if choice != "auto":
        return choice == "always"
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR", "0") not in {"", "0"}:
        return True
    return stream.isatty() and environ.get("TERM") != "dumb"


def width(stream: TextIO) -> int:
    """Say how many columns a report may use: the terminal's (COLUMNS first); without one, 120."""
    return max(get_terminal_size((120, 24)).columns, 40)
