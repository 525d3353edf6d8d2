"""The project's own modules that a file imports: found beside it and above it, parsed, never run."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256

from gradfix.source import Failure, Source, parse

LARGEST = 1_000_000
MOST = 256
ROOTS = (".git", "pyproject.toml", "setup.py", "setup.cfg", "requirements.txt")
FOREIGN = frozenset(("torch", "torchvision", "torchaudio", "numpy", *sys.stdlib_module_names))

INIT = f"{os.sep}__init__.py"

Read = Callable[[str], "bytes | None"]
Parse = Callable[[str, bytes], "Source | Failure"]
Rooted = Callable[[str], Iterable[str]]


def read_small(path: str) -> bytes | None:
    """A neighbour's bytes, None where there is no such file or it is too large to follow."""
    try:
        if os.path.getsize(path) > LARGEST:
            return None
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


@dataclass(frozen=True, slots=True)
class Reading:
    """What was found of other files: where it is the same again, whatever was made of it is."""

    files: Mapping[str, bytes | None]
    """The contents by path, in short: nothing of a file that can't be read, None where there is no file."""
    roots: Mapping[str, tuple[str, ...]]
    """By a file's folder, those that may be on the path."""


class Neighbours:
    """Finds first-party modules; each file is parsed once, as long as it is among the MOST that were
    asked for last."""

    here = ""
    """What names of files are seen from, where that isn't the working directory."""

    def __init__(
        self,
        read: Read = read_small,
        is_file: Callable[[str], bool] = os.path.isfile,
        parsed: Parse = parse,
        rooted: Rooted | None = None,
    ) -> None:
        self._read = read
        self._found = is_file
        self._parse = parsed
        self._rooted = rooted or on_the_path
        self._sources: dict[str, Source | None] = {}
        self._contents: dict[str, bytes] = {}
        self._there: dict[str, bool] = {}
        """Whether there is a file."""
        self._roots: dict[str, tuple[str, ...]] = {}
        """By a file's folder, those that may be on the path."""
        self.begin()

    def begin(self) -> None:
        """Another file is read for: what it is told counts as found for it, whoever asked for that first."""
        self._told: dict[str, bytes | None] = {}
        self._told_roots: dict[str, tuple[str, ...]] = {}

    def __call__(self, importing: str, module: str, level: int) -> Source | None:
        """The module that a file names, with `level` leading dots; None where it isn't the project's own."""
        if level == 0 and module.partition(".")[0] in FOREIGN:
            return None
        inner = os.sep.join(filter(None, module.split(".")))
        own = os.path.dirname(os.path.abspath(os.path.join(self.here, importing)))
        folders = self._folders(own, level)
        if level == 0:
            self._told_roots[own] = folders
        for folder in folders:
            place = os.path.join(folder, inner)
            for path in (
                (f"{place}.py", os.path.join(place, "__init__.py")) if inner else (f"{folder}{INIT}",)
            ):
                source = self._source(path) if self._is_file(path) else None
                self._told[path] = self._contents[path] if self._there[path] else None
                if source is not None:
                    return source
        return None

    @property
    def reading(self) -> Reading:
        """All that was found since another file was begun."""
        return Reading(self._told, self._told_roots)

    def finds(self, reading: Reading) -> bool:
        """Say whether the same is found now."""
        return all(self._content(path) == short for path, short in reading.files.items()) and all(
            self._folders(own, 0) == folders for own, folders in reading.roots.items()
        )

    def _content(self, path: str) -> bytes | None:
        """What is found of a file, which isn't parsed for it."""
        if not self._is_file(path):
            return None
        if path not in self._contents:
            self._contents[path] = _short(self._read(path))
        return self._contents[path]

    def _folders(self, own: str, level: int) -> tuple[str, ...]:
        """Where a module is looked for that a file in a folder imports."""
        if level:
            above = own
            for _ in range(level - 1):
                above, below = os.path.dirname(above), above
                if above == below:
                    return ()
            return (above,)
        if own not in self._roots:
            self._roots[own] = tuple(self._rooted(own))
        return self._roots[own]

    def _is_file(self, path: str) -> bool:
        there = self._there.get(path)
        if there is None:
            there = self._there[path] = self._found(path)
        return there

    def _source(self, path: str) -> Source | None:
        if path in self._sources:
            source = self._sources.pop(path)
        else:
            if len(self._sources) >= MOST:  # what is found must not depend on the files that came before
                del self._sources[next(iter(self._sources))]
            source = self._parsed(path)
        self._sources[path] = source  # as the last one that was asked for
        return source

    def _parsed(self, path: str) -> Source | None:
        content = self._read(path)
        self._contents[path] = _short(content)
        source = self._parse(path, content) if content is not None else None
        return None if isinstance(source, Failure) else source


def _short(content: bytes | None) -> bytes:
    return b"" if content is None else sha256(content).digest()


def on_the_path(own: str) -> Iterator[str]:
    """The folders that may be on the path: a file's own and those above, up to the project's root."""
    folder = own
    while True:
        yield folder
        if any(os.path.exists(os.path.join(folder, mark)) for mark in ROOTS):
            yield os.path.join(folder, "src")
            return
        above = os.path.dirname(folder)
        if above == folder:
            return
        folder = above
