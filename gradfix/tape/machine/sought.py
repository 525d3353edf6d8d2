"""Tests that look for a constant in something that isn't known: whether a path takes them to be at odds."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator, Mapping
from typing import TYPE_CHECKING

from gradfix.tape.domain.paths import Arm, Equals

if TYPE_CHECKING:
    from gradfix.tape.domain.paths import Key, Path


def at_odds(tests: Mapping[Key, ast.AST], path: Path) -> bool:
    """Whether a path says that the same thing has a part and hasn't, or is a text without it and has it.

    A text stays what it is. What something else holds may change, but nobody has seen it do so.
    """
    found: dict[tuple[Hashable, Hashable], bool] = {}
    for part, whole, holds in _sought(tests, path):
        if found.setdefault((part, whole), holds) is not holds:
            return True
    texts = dict(_texts(path))
    return any(
        isinstance(text := texts.get(whole), str) and isinstance(part, str) and (part in text) is not holds
        for (part, whole), holds in found.items()
    )


def _sought(tests: Mapping[Key, ast.AST], path: Path) -> Iterator[tuple[Hashable, Hashable, bool]]:
    """What is sought in what, and whether it is there."""
    for key, holds in path:
        test = tests.get(key)
        if not isinstance(test, ast.Compare) or not isinstance(test.left, ast.Constant):
            continue
        if isinstance(test.ops[0], (ast.In, ast.NotIn)) and type(key) is tuple:
            yield test.left.value, key[-1], holds is isinstance(test.ops[0], ast.In)


def _texts(path: Path) -> Iterator[tuple[Hashable, Hashable]]:
    """What something equals on a path."""
    for key, holds in path:
        if holds and type(key) is Equals and isinstance(key.subject, tuple):
            yield key.subject[-1], key.constant
        elif holds and type(key) is Arm:
            for subject, (_, constants) in key.chain.subjects.items():
                equal = [constant for constant, arms in constants.items() if key.arms & ~arms == 0]
                if equal and isinstance(subject, tuple):
                    yield subject[-1], equal[0]
