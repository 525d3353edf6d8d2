"""`# gradfix: ignore[GF101]` silences a line, `# gradfix: skip-file` a file."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from gradfix import registry
from gradfix.places import lines
from gradfix.source import Source

COMMENT = re.compile(r"gradfix:\s*(?P<what>ignore|skip-file)\b\s*(?P<bracket>\[(?P<codes>[^\]]*)\])?")

LISTED = re.compile(r"[\s:=(]*(?:(?P<open>\[)|(?P<word>\w*[\d_]\w*))")
"""What reads like a list of rules behind a bare `ignore`: an open bracket, or the word for a rule."""
CODE = re.compile(r"GF\d+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Suppression:
    """One `ignore` comment, with the logical line that it stands on."""

    first: int
    last: int
    line: int
    """Where the comment is."""
    codes: frozenset[str] | None
    """What selects rules: codes, their beginnings, names, ALL; None: all of them."""
    text: str
    rest: str = ""
    """What stands behind it in the same comment."""

    def silences(self, line: int, code: str, name: str) -> bool:
        """Say whether it silences a finding that starts on a line, of a rule of that code and name."""
        return self.first <= line <= self.last and (self.codes is None or self.names(code, name))

    def names(self, code: str, name: str) -> bool:
        """Say whether its list holds a rule."""
        return any(registry.names(selector, code, name) for selector in self.codes or ())

    def doubt(self, rules: Mapping[str, registry.Codemod]) -> str:
        """Why it may not do what was meant, and what to write; "" where there is no doubt."""
        if self.codes is None:
            told = "silences every rule; for some of them write `# gradfix: ignore[GF101, GF102]`"
            return told if _is_listing(self.rest, rules) else ""
        if not self.codes:
            return "silences nothing; write `# gradfix: ignore[GF101]`, or `# gradfix: ignore` for every rule"
        unknown = registry.unknown(rules, sorted(self.codes))
        return "; ".join(f"{one!r} names no rule, {registry.suggestion(rules, one)}" for one in unknown)


@dataclass(frozen=True, slots=True)
class Suppressions:
    """All of a file's suppressions."""

    skip_file: bool = False
    ignores: tuple[Suppression, ...] = ()

    def silencing(self, line: int, code: str, name: str) -> Suppression | None:
        """The comment that silences a finding, if there is one."""
        return next((ignore for ignore in self.ignores if ignore.silences(line, code, name)), None)


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
        Suppression(
            first,
            last,
            row,
            None if found["codes"] is None else _codes(found["codes"]),
            found.group().rstrip(),
            found.string[found.end() :],
        )
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


def _is_listing(text: str, rules: Mapping[str, registry.Codemod]) -> bool:
    """Say whether the text behind a bare `ignore` was meant to name rules."""
    found = LISTED.match(text)
    if not found or found["open"]:
        return bool(found)
    return bool(CODE.fullmatch(found["word"])) or not list(registry.unknown(rules, [found["word"]]))


def _marks(comment: str) -> Iterator[re.Match[str]]:
    return COMMENT.finditer(comment)


def _codes(listed: str) -> frozenset[str]:
    return frozenset(code.strip() for code in listed.split(",") if code.strip())


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
