"""The Python files below some folders, as bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class File:
    """A file that is to be measured."""

    path: Path
    content: bytes

    @property
    def lines(self) -> int:
        return self.content.count(b"\n") + 1


def files(folder: Path) -> Iterator[File]:
    """Every .py file below a folder, in a fixed order; a single file counts as a folder of one."""
    found = [folder] if folder.is_file() else sorted(folder.rglob("*.py"))
    for path in found:
        if path.is_file() and "__pycache__" not in path.parts:
            try:
                yield File(path, path.read_bytes())
            except OSError:
                continue


def torch_files(folder: Path) -> list[File]:
    """Those that mention torch."""
    return [file for file in files(folder) if b"torch" in file.content]
