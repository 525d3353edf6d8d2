"""What tasks may read of other files, looked up beforehand and carried along with them.

A task asks for other files through `Neighbours` alone. So all imports are followed here first, as far as
they lead, and what was found on the way answers for the disk elsewhere. Whatever is asked for besides is not
covered: such a task is for the machine that has the files.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

from gradfix.neighbours import Neighbours, Reading, on_the_path, read_small
from gradfix.source import NOTEBOOK, Failure, Source, parse
from gradfix.task import Task

IMPORT = re.compile(
    rb"(?:^|[;:])[ \t]*"
    rb"(?:from[ \t]+(\.*)[ \t]*([\w.]*)[ \t]+import[ \t]*(\([^)]*\)|(?:[^\n#;\\]|\\\r?\n)*)"
    rb"|import[ \t]+((?:[^\n#;\\]|\\\r?\n)*))",
    re.MULTILINE,
)
"""What may import something: rather too much than too little, so that no text has to be parsed for it."""
ASIDE = re.compile(rb"#[^\n]*|\bas\s+\w+")
NAME = re.compile(rb"[^\W\d]\w*(?:\.\w+)*")
Asked = tuple[str, int]
"""A module, by name and level."""


def imported(content: bytes) -> dict[Asked, None]:
    """The modules that a text may import, with the packages that they are in."""
    asked: dict[Asked, None] = {}
    for dots, module, names, plain in IMPORT.findall(content):
        own = module.decode("utf-8", "replace")
        for name in NAME.findall(ASIDE.sub(b"", names or plain)):
            text = name.decode("utf-8", "replace")
            asked.update(dict.fromkeys(_outwards(f"{own}.{text}" if own else text, len(dots))))
        if dots or own:
            asked.update(dict.fromkeys(_outwards(own, len(dots))))
    return asked


def _outwards(module: str, level: int) -> Iterator[Asked]:
    """A module and the packages around it."""
    yield module, level
    while "." in module:
        module = module.rpartition(".")[0]
        yield module, level


@dataclass(slots=True)
class Carried:
    """Answers for a disk that isn't at hand."""

    here: str = field(default_factory=os.getcwd)
    """The working directory that names of files are seen from."""
    texts: dict[str, bytes | None] = field(default_factory=dict)
    """By path; None where there is a file that can't be read or is too large to follow."""
    listed: dict[str, frozenset[str]] = field(default_factory=dict)
    """By folder, the names of what could be imported from it, whether or not it is carried."""
    roots: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By a file's folder, those that may be on the path."""
    folds: bool = sys.platform in ("darwin", "win32")
    """Whether names that differ in case only may be of the same file."""

    def neighbours(self) -> Neighbours:
        """What finds in here what it would find on the disk."""
        found = Neighbours(
            self.texts.get, self.texts.__contains__, rooted=lambda own: self.roots.get(own, ())
        )
        found.here = self.here
        return found

    def covers(self, reading: Reading) -> bool:
        """Say whether all is known that was asked for."""
        return all(own in self.roots for own in reading.roots) and all(map(self._knows, reading.files))

    def _knows(self, path: str) -> bool:
        """Whether a file is carried, or it or a folder on the way to it isn't there."""
        if path in self.texts:
            return True
        above, name = os.path.split(path)
        while above not in self.listed and name:
            above, name = os.path.split(above)
        return bool(name) and self.folded(name) not in self.listed[above]

    def folded(self, name: str) -> str:
        """A name as it is listed."""
        return name.casefold() if self.folds else name


class Packing:
    """Follows the imports of tasks and notes down what the disk says."""

    def __init__(self) -> None:
        self.carried = Carried()
        self._due: list[tuple[str, bytes]] = []
        """Texts whose imports are to be followed."""
        self._nowhere: set[str] = set()
        """Folders that aren't there."""
        self._neighbours = Neighbours(self._read, self._is_file, _unparsed, self._rooted)

    def add(self, task: Task) -> None:
        """Carry what a task may read."""
        for folder in self._rooted(os.path.dirname(os.path.abspath(task.path))):
            self._list(folder)
        for content in (task.content, *((task.earlier.content,) if task.earlier is not None else ())):
            source = parse(task.path, content) if task.path.endswith(NOTEBOOK) else None
            self._follow(task.path, source.program if isinstance(source, Source) else content)

    def _follow(self, path: str, content: bytes) -> None:
        self._due.append((path, content))
        while self._due:
            path, content = self._due.pop()
            for module, level in imported(content):
                self._neighbours(path, module, level)

    def _read(self, path: str) -> bytes | None:
        if path not in self.carried.texts:
            content = self.carried.texts[path] = read_small(path)
            if content is not None:
                self._due.append((path, content))
        return self.carried.texts[path]

    def _is_file(self, path: str) -> bool:
        self._list(os.path.dirname(path))
        return os.path.isfile(path)

    def _list(self, folder: str) -> None:
        """Note what is in a folder; of one that isn't there, in the one above it."""
        if folder in self.carried.listed or folder in self._nowhere:
            return
        try:
            with os.scandir(folder) as entries:
                names = [each.name for each in entries if each.name.endswith(".py") or each.is_dir()]
            self.carried.listed[folder] = frozenset(map(self.carried.folded, names))
        except OSError:
            self._nowhere.add(folder)
            self._list(os.path.dirname(folder))

    def _rooted(self, own: str) -> tuple[str, ...]:
        if own not in self.carried.roots:
            self.carried.roots[own] = tuple(on_the_path(own))
        return self.carried.roots[own]


def _unparsed(path: str, content: bytes) -> Failure:
    """As if it were no Python, so that it is looked on for whatever would take its place."""
    return Failure("parse", "only carried")
