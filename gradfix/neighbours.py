"""The project's own modules that a file imports: found beside it and above it, parsed, never run."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from gradfix.source import Failure, Source, parse

LARGEST = 1_000_000
MOST = 256
ROOTS = (".git", "pyproject.toml", "setup.py", "setup.cfg", "requirements.txt")
FOREIGN = frozenset(("torch", "torchvision", "torchaudio", "numpy", *sys.stdlib_module_names))

Read = Callable[[str], "bytes | None"]


def read_small(path: str) -> bytes | None:
    """A neighbour's bytes, None where there is no such file or it is too large to follow."""
    try:
        if os.path.getsize(path) > LARGEST:
            return None
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


class Neighbours:
    """Finds first-party modules; each file is parsed once, as long as it is among the last MOST."""

    def __init__(self, read: Read = read_small) -> None:
        self._read = read
        self._sources: dict[str, Source | None] = {}

    def __call__(self, importing: str, module: str, level: int) -> Source | None:
        """The module that a file names, with `level` leading dots; None where it isn't the project's own."""
        if level == 0 and module.partition(".")[0] in FOREIGN:
            return None
        parts = [part for part in module.split(".") if part]
        sources = (self._source(path) for path in _candidates(os.path.abspath(importing), parts, level))
        return next((source for source in sources if source is not None), None)

    def _source(self, path: str) -> Source | None:
        if path not in self._sources:
            if not os.path.isfile(path):
                return None
            if len(self._sources) >= MOST:  # what is found must not depend on the files that came before
                del self._sources[next(iter(self._sources))]
            self._sources[path] = self._parsed(path)
        return self._sources[path]

    def _parsed(self, path: str) -> Source | None:
        content = self._read(path)
        source = parse(path, content) if content is not None else None
        return None if isinstance(source, Failure) else source


def _candidates(importing: str, parts: list[str], level: int) -> Iterator[str]:
    for folder in _relative(importing, level) if level else _absolute(importing):
        place = folder.joinpath(*parts)
        if parts:
            yield f"{place}.py"
        yield str(place / "__init__.py")


def _relative(importing: str, level: int) -> Iterator[Path]:
    parents = Path(importing).parents
    if level <= len(parents):
        yield parents[level - 1]


def _absolute(importing: str) -> Iterator[Path]:
    """The folders that may be on the path: the file's own and those above, up to the project's root."""
    for folder in Path(importing).parents:
        yield folder
        if any((folder / mark).exists() for mark in ROOTS):
            yield folder / "src"
            return
