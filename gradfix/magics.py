"""What IPython reads in a cell and Python doesn't: magics, shell lines, help; each put behind a stand-in.

A stand-in is a line of Python with the mark of the notebook and a number behind it. It takes the place of
one line, so that all lines keep their numbers, and a statement that a magic runs keeps its columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gradfix.places import lines

SUSPICIOUS = re.compile(r"^\s*[%!?,;/]|=\s*[%!](?!=)|\?\s*$", re.MULTILINE)
"""What a text holds in which there may be anything of IPython's."""
CELL_MAGIC = re.compile(r"(?:\s*#.*\n)*\s*%%(\S+)")
INDENTED = re.compile(r"(?:[ \t]*(?:#.*)?\r?\n)*[ \t]+[^\s#]")
HEAD, PLAIN = "if True:  ", "pass  "
"""IPython takes the indentation of the first line off all lines."""
LINE = re.compile(r"(?P<indent>[ \t\f]*)(?:%\s*(?P<name>[^\s?]*)(?P<rest>.*)|[!?,;/].*)", re.DOTALL)
ASSIGNED = re.compile(r"(?P<to>[ \t]*[\w.,\s\[\]*]+=\s*)(?:!|%\s*(?P<name>\w*)(?P<rest>.*))", re.DOTALL)
HELP = re.compile(r"(?P<indent>[ \t]*)(?:[\w.,\s]+=\s*)?%{0,2}[^\W\d][\w.*\[\]]*\?{1,2}\s*(?:#.*)?$")
OPTIONS = re.compile(r"(?:\s*(?:-[nrptslDTfm]\s*\S+|-[a-zA-Z]+|--\w+(?:=\S+)?)(?=\s))*\s*")
LEXEME = re.compile(r"#.*|\"\"\"|'''|\"|'|[()\[\]{}]|\\\r?$")
ENDS = {quote: re.compile(rf"(?:\\.|[^\\])*?{quote}", re.DOTALL) for quote in ('"', "'", '"""', "'''")}

TIMED = frozenset({"time", "timeit", "prun", "memit", "mprun", "lprun"})
"""Magics that run the statement behind them."""
BINDING = frozenset({"run", "pylab", "store"})
"""Magics that bring names from elsewhere."""
PYTHON = frozenset({"capture", "debug", "gradfix", *TIMED})
"""Cell magics that run the cell's body here; of those that nobody knows, the body decides."""
ELSEWHERE = frozenset(
    {"!", "HTML", "R", "bash", "bigquery", "cmd", "cu", "cython", "file", "html", "javascript", "js", "julia"}
    | {"latex", "markdown", "perl", "powershell", "pypy", "python", "python2", "python3", "ruby", "script"}
    | {"sh", "shell", "sql", "svg", "sx", "system", "writefile"}
)
"""Cell magics whose body isn't run here, whatever it looks like."""
AUTOMATIC = re.compile(
    r"\s*(?:cat|cd|conda|cp|load_ext|ls|matplotlib|mkdir|mv|pip|rm|run)\s+(?:[^\s=(.,]|\.[./])"
)
"""A cell of one line that names a magic without its sign."""


@dataclass(frozen=True, slots=True)
class Translated:
    """A cell's text as Python."""

    text: str
    originals: tuple[str, ...] = ()
    """The lines that stand-ins took the place of, in order."""
    head: str = PLAIN
    """What stands before the mark of the cell: a statement, as a comment would go where the next one goes.
    Where the cell is indented, that statement holds it."""


def translated(text: str, mark: str, first: int, boldly: bool = True) -> Translated:
    """The text with stand-ins, numbered from `first`; `boldly`: what magics run is read too, as Python."""
    alone = text.strip()
    head = HEAD if INDENTED.match(text) else PLAIN
    if "\n" not in alone and AUTOMATIC.match(alone):
        return left_out(text, mark, first)
    if SUSPICIOUS.search(text) is None:
        return Translated(text, head=head)
    magic = CELL_MAGIC.match(text)
    if magic and not _is_python(magic[1], boldly):
        return left_out(text, mark, first)
    every = lines(text)
    return _stood_in(every, list(_read(every, boldly)), mark, first, head)


def left_out(text: str, mark: str, first: int) -> Translated:
    """A cell of which nothing is run here."""
    return _stood_in(lines(text), ["pass" for _ in lines(text)], mark, first)


def _is_python(name: str, boldly: bool) -> bool:
    """Whether a cell magic has its body run here; a magic's help has no body."""
    return name in PYTHON or "?" in name or (boldly and name not in ELSEWHERE)


def _stood_in(
    every: Sequence[str], said: Sequence[str | None], mark: str, first: int, head: str = PLAIN
) -> Translated:
    """The lines, those of which something is said by their stand-ins."""
    parts: list[str] = []
    originals: list[str] = []
    for line, python in zip(every, said, strict=True):
        body = line.rstrip("\r\n")
        if python is None:
            parts.append(line)
        else:
            parts.append(f"{python}  {mark} {first + len(originals)}{line[len(body) :]}")
            originals.append(body)
    return Translated("".join(parts), tuple(originals), head)


def _read(every: list[str], boldly: bool) -> Iterator[str | None]:
    """For each line the Python that stands for it; None: it is Python already."""
    state = State()
    said: str | None = None
    follows = False
    for line in every:
        body = line.rstrip("\r\n")
        if follows and said is not None:
            said = f"{said[: len(said) - len(said.lstrip())]}pass"
        else:
            said = _statement(body, boldly) if state.at_start else None
        follows = said is not None and body.endswith("\\")
        if said is None:
            state.read(line)
        yield said


def _statement(body: str, boldly: bool) -> str | None:
    """The Python for a line at which a statement begins; None: it is Python already."""
    found = LINE.fullmatch(body)
    if found:
        return found["indent"] + _run(found, len(found["indent"]), boldly)
    if found := ASSIGNED.match(body):
        run = boldly and found["name"] in TIMED
        told = _behind(found, found.end("to")) if run else "get_ipython()"
        return found["to"] + told
    if found := HELP.fullmatch(body):
        return found["indent"] + "pass"
    return None


def _run(found: re.Match[str], start: int, boldly: bool) -> str:
    """What a magic, a shell line or a call for help does to the program."""
    if found["name"] in BINDING:
        return "from get_ipython import *"
    told = _behind(found, start + len("pass;")) if boldly and found["name"] in TIMED else ""
    return f"pass;{told}" if told.strip() else "pass"


def _behind(found: re.Match[str], start: int) -> str:
    """The statement behind a magic and its options, where it stood."""
    options = OPTIONS.match(found["rest"])
    statement = found["rest"][options.end() :] if options else found["rest"]
    return " " * (found.end("rest") - len(statement) - start) + statement


@dataclass(slots=True)
class State:
    """Whether a line begins a statement: it does where no string, no bracket and no backslash is open."""

    quote: str = ""
    depth: int = 0
    joined: bool = False

    @property
    def at_start(self) -> bool:
        return not (self.quote or self.depth or self.joined)

    def read(self, line: str) -> None:
        """Go through a line of Python."""
        at = 0
        self.joined = False
        while at < len(line):
            if self.quote:
                at = self._through(line, at)
                continue
            found = LEXEME.search(line, at)
            if found is None:
                return
            at = found.end()
            self._take(found.group())

    def _through(self, line: str, at: int) -> int:
        """Where the string ends that is open; one in plain quotes ends with its line."""
        end = ENDS[self.quote].match(line, at)
        if end is None and len(self.quote) == 3:
            return len(line)
        if end is None and line.rstrip("\r\n").endswith("\\"):
            return len(line)
        self.quote = ""
        return end.end() if end else len(line)

    def _take(self, lexeme: str) -> None:
        if lexeme in ENDS:
            self.quote = lexeme
        elif lexeme in "([{":
            self.depth += 1
        elif lexeme in ")]}":
            self.depth = max(self.depth - 1, 0)
        elif lexeme.startswith("\\"):
            self.joined = True
