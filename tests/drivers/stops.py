"""What stopped the drivers that could not be made, grouped by what is said without names and numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

BLANKS = (
    (r"0x[0-9a-f]+", "N"),
    (r"'[^']*'|\"[^\"]*\"|`[^`]*`", "'...'"),
    (r"torch\.Size\(\[[^]]*\]\)|\[[\d, ]*\]|\([\d, ]*\)", "[...]"),
    (r"-?\d+(?:\.\d+)?(?:e-?\d+)?", "N"),
    (r"[\w./-]*/[\w./-]*", "PATH"),
)
LONGEST = 110


def group(reason: str) -> str:
    """A reason without what belongs to one program alone."""
    text = reason.strip().splitlines()[0] if reason.strip() else "no reason"
    if text.startswith(("an import failed", "ModuleNotFoundError", "ImportError")):
        return text[:LONGEST]  # the name is what counts
    for pattern, blank in BLANKS:
        text = re.sub(pattern, blank, text)
    return text[:LONGEST]


def grouped(stopped: Iterable[tuple[str, str]]) -> list[tuple[str, list[str]]]:
    """Reasons with the places where they were given, the most frequent first."""
    groups: dict[str, list[str]] = {}
    for place, reason in stopped:
        groups.setdefault(group(reason), []).append(f"{place}: {reason.strip()[:200]}")
    return sorted(groups.items(), key=lambda item: -len(item[1]))


def table(stopped: Sequence[tuple[str, str]], most: int = 40, examples: int = 3) -> str:
    """The reasons by count, each with a few places."""
    rows = grouped(stopped)
    lines = []
    for number, (reason, places) in enumerate(rows[:most], 1):
        step = max(len(places) // examples, 1)
        lines += [
            f"{number:3}. {len(places):5}  {reason}",
            *(f"            {one}" for one in places[::step][:examples]),
        ]
    rest = sum(len(places) for _, places in rows[most:])
    return "\n".join([*lines, f"     {rest:5}  for {len(rows[most:])} other reasons"] if rest else lines)
