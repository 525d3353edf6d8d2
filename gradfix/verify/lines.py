"""Which line is which, from one text of a file to another."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from types import CodeType
from typing import Any

from gradfix.trace.report import Recording


def kept_lines(before: bytes, after: bytes) -> dict[int, int]:
    """Which line is which, through a rewrite; a line that was only indented is the same line."""
    one = [line.strip() for line in before.splitlines()]
    other = [line.strip() for line in after.splitlines()]
    found: dict[int, int] = {}
    for a, b, size in difflib.SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks():
        found.update((a + i + 1, b + i + 1) for i in range(size))
    return found


class Lines:
    """From lines of a text in which something was mended to lines before."""

    def __init__(self, before: bytes, between: bytes) -> None:
        self.back = {new: old for old, new in kept_lines(before, between).items()}

    def before(self, line: int) -> int:
        """The same line; for one that was rewritten, the line that follows the last one that was not."""
        known = next((one for one in range(line, 0, -1) if one in self.back), 0)
        return self.back[known] + (known != line) if known else line


def in_terms_of(lines: Mapping[str, Lines], recording: Recording) -> Recording:
    """A recording of a rewritten text with the places of the text before."""
    said = {
        path: sorted({lines[path].before(line) for line in ran}) if path in lines else ran
        for path, ran in recording["lines"].items()
    }
    events, error = placed(lines, recording["events"]), placed(lines, recording["error"])
    return {**recording, "events": events, "error": error, "lines": said}


def placed(lines: Mapping[str, Lines], value: Any) -> Any:
    """The same value, each place in it moved back."""
    if isinstance(value, list):
        return [placed(lines, item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.get("file") in lines and "end_line" in value:
        back = lines[value["file"]].before
        return {**value, "line": back(value["line"]), "end_line": back(value["end_line"])}
    return {key: placed(lines, item) for key, item in value.items()}


def around(text: bytes, path: str, line: int) -> set[int]:
    """The lines of the innermost function that holds a line."""
    try:
        found = compile(text, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return {line}
    while True:
        inner = [code for code in found.co_consts if isinstance(code, CodeType) and line in lines_of(code)]
        if not inner:
            return lines_of(found)
        found = inner[0]


def lines_of(code: CodeType) -> set[int]:
    """The lines of a code object, with what is nested in it."""
    own = {line for _, _, line in code.co_lines() if line is not None}
    return own.union(*(lines_of(one) for one in code.co_consts if isinstance(one, CodeType)))
