"""What was mended and how it was seen, and what became of the test that was to keep it so."""

from __future__ import annotations

from dataclasses import dataclass

from gradfix.driver.recipe import Recipe


@dataclass(frozen=True, slots=True)
class Mended:
    """One finding that a rewrite has mended."""

    path: str
    """The file, absolute."""
    shown: str
    """The file as a user recognises it."""
    code: str
    line: int
    message: str
    before: bytes
    """The text in which nothing else is wrong, where there is one."""
    after: bytes


@dataclass(frozen=True, slots=True)
class Piece:
    """A test function, and the import lines that it takes."""

    name: str
    imports: tuple[str, ...]
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Kept:
    """A test that told the text before from the text after."""

    mended: Mended
    recipe: Recipe
    piece: Piece
    failure: str
    """How it fails without the fix."""


@dataclass(frozen=True, slots=True)
class Unkept:
    """A finding that no test was written for, and why."""

    mended: Mended
    reason: str
