"""`python tests/server/typing_times.py FILES`: how long an editor waits after an edit of files as they are.

Each edit puts a statement in front of one that is there, somewhere in the file, and is waited for: from the
text on its way to the server until its diagnostics are back, the time included that the text must be at rest.
What the process that finds has computed is said beside it, which on a busy machine is less.
"""

from __future__ import annotations

import ast
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from editor import Editor

EDITS = 6
PAUSE = 0.7
"""Seconds between two edits, in which the server does what it does when nobody types."""
TICKS = os.sysconf("SC_CLK_TCK")


def edits(text: str, chance: random.Random) -> Iterator[str]:
    """The text with one more statement each, at random places."""
    bodies = [getattr(node, "body", None) for node in ast.walk(ast.parse(text))]
    statements = [each for body in bodies if isinstance(body, list) for each in body[1:]]
    lines = text.splitlines(keepends=True)
    places = [
        (one.lineno - 1, one.col_offset) for one in statements if not getattr(one, "decorator_list", ())
    ]
    alone = [(line, column) for line, column in places if not lines[line][:column].strip()]
    for number in range(EDITS):
        line, column = chance.choice(alone)
        yield "".join([*lines[:line], " " * column + f"edit_{number} = {number}\n", *lines[line:]])


def computed(process: int) -> float:
    """The seconds that a process has computed."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def times(editor: Editor, file: Path, chance: random.Random) -> Iterator[tuple[float, float]]:
    """For each edit how long it was waited for, and how long was computed."""
    text = file.read_text("utf-8")
    uri = editor.open(file.resolve(), text)
    editor.shown(uri)
    editor.offered(uri)
    player = min(editor.processes())
    for edited in edits(text, chance):
        time.sleep(PAUSE)
        began, before = time.perf_counter(), computed(player)
        editor.type(uri, edited)
        editor.shown(uri)
        yield time.perf_counter() - began, computed(player) - before
    editor.close(uri)


def quantiles(seconds: Sequence[float]) -> str:
    """The median and the 95th percentile, in milliseconds."""
    ordered = sorted(seconds)
    return " / ".join(f"{ordered[len(ordered) * part // 100] * 1000:4.0f}" for part in (50, 95))


def main(names: Sequence[str]) -> None:
    chance = random.Random(1)
    every: list[tuple[float, float]] = []
    editor = Editor(Path(tempfile.gettempdir()))
    for name in names:
        found = list(times(editor, Path(name), chance))
        every += found
        print(f"{quantiles([w for w, _ in found])} ms, computed {quantiles([c for _, c in found])}  {name}")
    waited, computing = zip(*every, strict=True)
    print(f"p50 / p95 of {len(every)} edits: {quantiles(waited)} ms, computed {quantiles(computing)} ms")
    editor.leave()


if __name__ == "__main__":
    main(sys.argv[1:])
