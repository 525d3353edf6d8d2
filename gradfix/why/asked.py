"""What somebody asks: a traceback in a file or as it comes through a pipe, or a symptom in words."""

from __future__ import annotations

import os
import stat
import sys
from collections import deque
from collections.abc import Callable, Sequence

from gradfix import files
from gradfix.plan import Plan
from gradfix.why.answers import NOTHING_PASTED, Answer, answer
from gradfix.why.pasted import lines
from gradfix.why.symptoms import KNOWN, complained, symptom_in
from gradfix.why.traces import traces

STDIN = "-"
LAST = 20_000
"""The lines of a program's output that are kept: its traceback is at the end."""
LARGEST = 50_000_000


class AskedError(Exception):
    """A question that can't be answered, with what to ask instead."""


def asked(
    words: Sequence[str], symptom: str | None, echo: bool, plan: Callable[[Sequence[str]], Plan]
) -> Answer:
    """The answer to what was asked on the command line."""
    if symptom is not None:
        found = symptom_in(symptom)
        if found is None:
            raise AskedError(f"--symptom: {symptom!r} isn't known; what is: {KNOWN}")
        if words and (words[0] == STDIN or (os.path.isfile(words[0]) and traces(lines(_read(words[0]))))):
            raise AskedError(f"--symptom and a traceback ({words[0]}): give one of them")
        paths = _there(words or (".",))
        return complained(found, paths, plan(paths))
    if not words:
        raise AskedError("give a traceback: a file, or - to read it from standard input")
    text = _piped(echo) if words[0] == STDIN else _read(words[0])
    paths = _there(words[1:] or (".",))
    told = answer(text, paths, plan(paths))
    if told.error == NOTHING_PASTED and words[0] == STDIN and text.strip() and "Error" not in text:
        return Answer(None, heading="nothing failed in what came through the pipe")
    return told


def _there(paths: Sequence[str]) -> Sequence[str]:
    for path in paths:
        if not os.path.exists(path):
            raise AskedError(
                f"{path}: no such file or directory; after the traceback come the project's files"
            )
    return paths


def _read(path: str) -> str:
    if os.path.isdir(path):
        raise AskedError(f"{path} is a directory: the traceback comes first, `gradfix why trace.txt {path}`")
    content = files.read(path)
    if not isinstance(content, bytes):
        raise AskedError(f"{path}: {content.reason}; give the file that holds the traceback, or - for a pipe")
    return _decoded(content[-LARGEST:])


def _decoded(content: bytes) -> str:
    """The text in whatever a shell has written: PowerShell redirects in UTF-16."""
    for mark, encoding in ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig")):
        if content.startswith(mark):
            return content.decode(encoding, "replace")
    return content.decode("utf-8", "replace")


def _piped(echo: bool) -> str:
    """The end of what comes through standard input; what a program writes is passed on as it comes."""
    echo = echo and stat.S_ISFIFO(os.fstat(sys.stdin.fileno()).st_mode) if _has_number() else False
    kept: deque[bytes] = deque(maxlen=LAST)
    for line in sys.stdin.buffer:
        kept.append(line)
        if echo:
            sys.stderr.buffer.write(line)
            sys.stderr.buffer.flush()
    return _decoded(b"".join(kept))


def _has_number() -> bool:
    try:
        sys.stdin.fileno()
    except (OSError, ValueError, AttributeError):
        return False
    return True
