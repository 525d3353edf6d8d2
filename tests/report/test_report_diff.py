"""The diff keeps every byte when piped, and is coloured and harmless on a terminal."""

from __future__ import annotations

import io
from dataclasses import replace

from report_runs import BLOCK, outcome, overwritten, rendered

from gradfix.outcome import Outcome, Run, View
from gradfix.patch import unified
from gradfix.report.show import load

AFTER = BLOCK.replace("out += shortcut", "out = out + shortcut")


def rewritten(before: bytes = BLOCK.encode(), after: bytes = AFTER.encode()) -> Outcome:
    """A file with one rewrite."""
    finding = overwritten()
    found = replace(outcome([finding]), before=before, after=after, remaining=(), applied=(finding,))
    return replace(found, encoding="latin-1")


def piped(*outcomes: Outcome) -> bytes:
    """The bytes that another program reads."""
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="utf-8")
    load("diff").render(Run(outcomes, "diff"), stream, View())
    stream.flush()
    return raw.getvalue()


def test_a_pipe_gets_the_exact_bytes_of_any_encoding() -> None:
    before, after = b"# caf\xe9\r\nx += 1\r\n", b"# caf\xe9\r\nx = x + 1\r\n"
    assert piped(rewritten(before, after)) == unified("models/resnet.py", before, after)
    assert b"# caf\xe9\r\n" in piped(rewritten(before, after))


def test_files_without_a_rewrite_are_left_out() -> None:
    assert piped(outcome([overwritten()]), rewritten()) == piped(rewritten())


def test_a_terminal_gets_colours_and_the_same_lines() -> None:
    shown = rendered("diff", rewritten(), view=View(colour=True))
    assert "\x1b[31m-        out += shortcut\x1b[0m\n\x1b[32m+        out = out + shortcut\x1b[0m" in shown
    assert "\x1b[1m--- a/models/resnet.py\x1b[0m" in shown


def test_a_terminal_gets_the_tabs_of_a_file() -> None:
    before, after = b"if x:\n\ty += 1\n", b"if x:\n\ty = y + 1\n"
    shown = rendered("diff", rewritten(before, after), view=View(colour=True))
    assert " if x:\n\x1b[31m-\ty += 1\x1b[0m\n\x1b[32m+\ty = y + 1\x1b[0m" in shown


def test_a_removed_line_that_begins_with_dashes_is_no_file_name() -> None:
    shown = rendered("diff", rewritten(b"-- x\ny\n", b"y\n"), view=View(colour=True))
    assert "\x1b[31m--- x\x1b[0m" in shown


def test_a_terminal_is_not_steered_by_a_file() -> None:
    shown = rendered("diff", rewritten(b"\x1b]0;x\x07\na\n", b"\x1b]0;x\x07\nb\n"), view=View(colour=True))
    assert "\x1b]" not in shown
    assert "?]0;x?" in shown
