"""`# gradfix: ignore[GF101]` silences a line, `# gradfix: skip-file` a file."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from gradfix.places import lines
from gradfix.source import Source

COMMENT = re.compile(r"gradfix:\s*(?P<what>ignore|skip-file)\b\s*(?P<bracket>\[(?P<codes>[^\]]*)\])?")


@dataclass(frozen=True, slots=True)
class Suppression:
    """One `ignore` comment, with the logical line that it stands on."""

    first: int
    last: int
    line: int
    """Where the comment is."""
    codes: frozenset[str]
    """Codes or names of rules; empty: all of them."""
    text: str

    def silences(self, line: int, *names: str) -> bool:
        """Say whether it silences a finding that starts on a line, of a rule of that code and name."""
        return self.first <= line <= self.last and (not self.codes or not self.codes.isdisjoint(names))


@dataclass(frozen=True, slots=True)
class Suppressions:
    """All of a file's suppressions."""

    skip_file: bool = False
    ignores: tuple[Suppression, ...] = ()

    def silencing(self, line: int, *names: str) -> Suppression | None:
        """The comment that silences a finding, if there is one."""
        return next((ignore for ignore in self.ignores if ignore.silences(line, *names)), None)


def read(source: Source) -> Suppressions:
    """Find a file's suppressions."""
    if b"gradfix:" not in source.content:
        return Suppressions()
    marks = [
        (found, row, first, last)
        for text, row, first, last in _comments(source.text)
        for found in _marks(text)
    ]
    ignores = tuple(
        Suppression(first, last, row, _codes(found["codes"]), found.group())
        for found, row, first, last in marks
        if found["what"] == "ignore"
    )
    return Suppressions(any(found["what"] == "skip-file" for found, *_ in marks), ignores)


def added(source: Source, ignored: Mapping[int, Iterable[str]]) -> str:
    """The text with suppressions of these codes on the logical lines that hold these lines."""
    parts = lines(source.text)
    logical = [(first, last) for first, last in _logical_lines(source.text)]
    wanted: dict[int, set[str]] = {}
    for line, codes in ignored.items():
        last = next((last for first, last in logical if first <= line <= last), line)
        wanted.setdefault(last, set()).update(codes)
    for last, codes in wanted.items():
        parts[last - 1] = _with_codes(parts[last - 1], codes)
    return "".join(parts)


def _with_codes(line: str, codes: set[str]) -> str:
    body = line.rstrip("\r\n")
    end = line[len(body) :]
    found = COMMENT.search(body, max(body.find("#"), 0)) if "#" in body else None
    if found and found["what"] == "ignore" and found["codes"] is not None:
        every = ", ".join(sorted(codes | _codes(found["codes"])))
        return f"{body[: found.start('codes')]}{every}{body[found.end('codes') :]}{end}"
    return f"{body.rstrip()}  # gradfix: ignore[{', '.join(sorted(codes))}]{end}"


def _marks(comment: str) -> Iterator[re.Match[str]]:
    return COMMENT.finditer(comment)


def _codes(listed: str | None) -> frozenset[str]:
    return frozenset(code.strip() for code in (listed or "").split(",") if code.strip())


def _tokens(text: str) -> Iterator[tokenize.TokenInfo]:
    """The tokens of a text that `ast` has parsed; what tokenize alone refuses ends them early."""
    try:
        yield from tokenize.generate_tokens(io.StringIO(text, newline=None).readline)
    except (tokenize.TokenError, SyntaxError):
        return


def _comments(text: str) -> Iterator[tuple[str, int, int, int]]:
    """Each comment with its line and the first and last line of the logical line it belongs to."""
    waiting: list[tuple[str, int]] = []
    first = 0
    for token in _tokens(text):
        if token.type == tokenize.COMMENT:
            waiting.append((token.string, token.start[0]))
        elif token.type == tokenize.NEWLINE:
            yield from ((comment, row, first or row, token.end[0]) for comment, row in waiting)
            waiting, first = [], 0
        elif token.type == tokenize.NL and not first:
            yield from ((comment, row, row, row) for comment, row in waiting)
            waiting = []
        elif token.type not in (tokenize.NL, tokenize.INDENT, tokenize.DEDENT) and not first:
            first = token.start[0]


def _logical_lines(text: str) -> Iterator[tuple[int, int]]:
    """The first and last line of each logical line."""
    first = 0
    for token in _tokens(text):
        if token.type == tokenize.NEWLINE:
            yield first, token.start[0]
            first = 0
        elif (
            token.type not in (tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT) and not first
        ):
            first = token.start[0]
