"""The lines of a traceback that name a place, in the manner of Python, IPython, pytest and rich."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

PLACES = tuple(
    re.compile(pattern)
    for pattern in (
        r'^\s*(?:[Ii]n )?[Ff]ile "(?P<path>[^"]+)" ?, ?line (?P<line>\d+)(?:, in (?P<function>.+?))?\s*$',
        r"^\s*File (?P<path>\S.*?\.pyw?):(?P<line>\d+)(?:,? in (?P<function>.+?)(?:\(.*\)?)?)?\s*$",
        r"^\s*(?P<path><ipython-input-[^>]+>|[~./\\\w][^:*?\"<>|]*?\.pyw?|[A-Za-z]:\\[^:*?\"<>|]+?\.pyw?)"
        r" in (?P<function><?[\w.]+>?)(?:[ (:].*)?$",
        r"^\s*(?P<path>Cell In ?\[\d*\]|Input In ?\[\d*\]|In \[\d*\])"
        r"(?:, (?:line (?P<line>\d+)|in (?P<function>.+?)))?(?:, in (?P<own>.+?))?(?:\(.*\)?)?\s*$",
        r"^\s*(?P<path>[~./\\\w][^:*?\"<>|\s]*?\.py|[A-Za-z]:\\[^:*?\"<>|]+?\.py):(?P<line>\d+):?"
        r"(?:\s+in\s+(?P<function>[^\s│]+))?(?:\s+\w*(?:Error|Exception))?\s*$",
    )
)
"""What a line looks like that names a file, and mostly a line and a function."""
ARROW = re.compile(r"^\s*(?:-+>|❱)\s*(?P<line>\d+)\s?[│|]?(?P<code>.*)$")
"""How IPython and rich point at the line among its neighbours."""
FAILING = re.compile(r"^>\s{2,}(?P<code>\S.*)$")
"""How pytest does, above the place."""
UNDERLINED = re.compile(r"^[\s~^]*[~^][\s~^]*$")
FOREIGN = re.compile(
    r"site-packages|dist-packages|[/\\]lib[/\\]python\d|[/\\]lib64[/\\]python\d|[/\\]Lib[/\\](?!site)\w+\.py"
    r"|python\d+\.zip|^<(?!ipython)|[/\\]bin[/\\](?:torchrun|accelerate|deepspeed)$|ipykernel_launcher"
    r"|conda[^/\\]*[/\\].*[/\\]lib[/\\]"
)
"""Where code lies that is not the user's."""
CELL = re.compile(r"^(?:<ipython-input|Cell In|Input In|In \[)|[/\\]ipykernel_\d+[/\\]")


@dataclass(frozen=True, slots=True)
class Frame:
    """A place that a traceback names."""

    path: str
    line: int
    """0: it isn't said."""
    function: str = ""
    code: str = ""
    """The line as it is quoted, "" where it isn't."""

    @property
    def foreign(self) -> bool:
        """Whether it lies in Python or in an installed library."""
        return FOREIGN.search(self.path) is not None

    @property
    def in_cell(self) -> bool:
        """Whether it is a cell of a notebook, which has no file."""
        return CELL.search(self.path) is not None

    def pointing(self, arrow: re.Match[str]) -> Frame:
        """The same with the line that an arrow points at."""
        return replace(self, line=int(arrow["line"]), code=arrow["code"].strip())


def frame_in(line: str) -> Frame | None:
    """The place that a line names."""
    for pattern in PLACES:
        found = pattern.match(line)
        if found:
            named = found.groupdict()
            function = named.get("own") or named.get("function") or ""
            return Frame(named["path"], int(named.get("line") or 0), function.strip())
    return None
