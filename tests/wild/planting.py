"""A healthy program and one bug out of the catalogue."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from . import bugs, slips
from .world import Dice

BUGS = {bug.__name__: bug for bug in (*bugs.BUGS, *slips.SLIPS)}


@dataclass(frozen=True)
class Planted:
    """A program with a bug: its name, and the first line that differs."""

    bug: str
    source: str
    line: int


def planted(source: str, dice: Dice) -> Planted | None:
    """The program with a bug out of the catalogue, whichever has a place in it."""
    for name in dice.sample(sorted(BUGS), len(BUGS)):
        tree = ast.parse(source)
        changes = list(BUGS[name](tree, dice))
        if not changes:
            continue
        dice.choice(changes)()
        after = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
        if after != source:
            return Planted(name, after, _first(source, after))
    return None


def _first(before: str, after: str) -> int:
    """The first line that differs."""
    old, new = before.splitlines(), after.splitlines()
    return next(
        (n for n, (a, b) in enumerate(zip(old, new, strict=False), 1) if a != b), min(len(old), len(new))
    )
