"""What was mended and how it was seen, and what became of the test that was to keep it so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
class Check:
    """One way to test: the program to run, what to assert behind it, and how the test is called."""

    recipe: Recipe
    name: str
    lines: tuple[str, ...] = ()
    form: Literal["once", "built", "twice"] = "once"
    """Called as the recipe says; only built; called twice from the same seed."""
    setup: tuple[str, ...] = ()
    """What comes between building and calling."""
    kept: str = ""
    """What is kept of each of two calls."""


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
