"""Diffs that git and patch take, and their counts."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradfix.patch import Counts, LineMap, count, unified

BEFORE = b"".join(b"%d\n" % number for number in range(40))
AFTER = BEFORE.replace(b"\n5\n", b"\nfive\n").replace(b"\n30\n", b"\n").replace(b"\n35\n", b"\n35\nnew\n")

PAIRS = [
    pytest.param(BEFORE, AFTER, id="several hunks"),
    pytest.param(b"a\r\nb\r\n", b"a\r\nc\r\n", id="carriage returns"),
    pytest.param(b"a\nb", b"a\nc", id="no final newline on either side"),
    pytest.param(b"a\nb", b"c\nb", id="no final newline on the line that stays"),
    pytest.param(b"a\nb", b"a\nb\n", id="a final newline gained"),
    pytest.param(b"a\nb\n", b"a\nb", id="a final newline lost"),
    pytest.param(b"\xe9\nb\n", b"\xe9\nc\n", id="latin-1"),
    pytest.param(b"a\rb\rc", b"a\rx\rc", id="lone carriage returns"),
    pytest.param(b"a\n\x0cb\n\xe2\x80\xa8\n", b"a\n\x0cc\n\xe2\x80\xa8\n", id="odd separators"),
    pytest.param(
        b"--- a\n+++ b\n@@ -1 +1 @@\n", b"--- a\n+++ c\n@@ -1 +1 @@\n", id="lines that look like a diff"
    ),
    pytest.param(b"", b"a\n", id="from an empty file"),
]
NAMES = ["x.py", "a b.py", "é ü.py", 'quo"te.py', "back\\slash.py", "tab\tnew.py", "deep/er/x.py", "-x.py"]


def applied(folder: Path, name: str, before: bytes, diff: bytes, *command: str) -> bytes:
    """What a program makes of a file with a diff."""
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(before)
    subprocess.run(command, input=diff, cwd=folder, check=True, capture_output=True)
    return file.read_bytes()


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_git_apply_makes_exactly_the_new_text(tmp_path: Path, before: bytes, after: bytes) -> None:
    assert applied(tmp_path, "x.py", before, unified("x.py", before, after), "git", "apply") == after


@pytest.mark.skipif(shutil.which("patch") is None, reason="patch is not installed")
@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_patch_makes_exactly_the_new_text(tmp_path: Path, before: bytes, after: bytes) -> None:
    diff = unified("x.py", before, after)
    assert applied(tmp_path, "x.py", before, diff, "patch", "-p1", "--binary") == after


@pytest.mark.parametrize("name", NAMES)
def test_names_of_all_kinds_are_found_by_git(tmp_path: Path, name: str) -> None:
    assert applied(tmp_path, name, BEFORE, unified(name, BEFORE, AFTER), "git", "apply") == AFTER


@pytest.mark.skipif(shutil.which("patch") is None, reason="patch is not installed")
@pytest.mark.parametrize("name", NAMES)
def test_names_of_all_kinds_are_found_by_patch(tmp_path: Path, name: str) -> None:
    assert applied(tmp_path, name, BEFORE, unified(name, BEFORE, AFTER), "patch", "-p1") == AFTER


def test_a_diff_holds_below_the_root_of_a_repository(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    assert (
        applied(tmp_path / "below", "x.py", BEFORE, unified("x.py", BEFORE, AFTER), "git", "apply") == AFTER
    )


def test_equal_texts_have_no_diff() -> None:
    assert unified("x.py", BEFORE, BEFORE) == b""


def test_a_diff_is_counted() -> None:
    both = unified("x.py", BEFORE, AFTER) + unified("é.py", b"a\n", b"b")
    assert count(both) == Counts(files=2, hunks=3, added=3, removed=3)
    assert count(b"") == Counts(0, 0, 0, 0)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from("abcd"), max_size=30), st.lists(st.sampled_from("abcd"), max_size=30))
def test_kept_lines_are_where_the_map_says(old: list[str], new: list[str]) -> None:
    before, after = ("".join(f"{line}\n" for line in lines).encode() for lines in (old, new))
    lines = LineMap(unified("x", before, after))
    kept = [lines.after(number) for number in range(1, len(old) + 1)]
    assert all(new[place - 1] == line for line, place in zip(old, kept, strict=True) if place)
    places = [place for place in kept if place]
    assert places == sorted(set(places))
    if before != after:
        counts = count(unified("x", before, after))
        assert (counts.removed, counts.added) == (len(old) - len(places), len(new) - len(places))
