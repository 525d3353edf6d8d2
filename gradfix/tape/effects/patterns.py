"""What a pattern of einops does to a tensor: which axes it splits, reorders and merges, as the names say.

>>> parsed("b (h d) n -> b h (n d)").merges
((('n', 2, 2), ('d', 1, 1)),)
>>> parsed("b c -> b c").same, parsed("b c -> c").names
(True, None)
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

Axis: TypeAlias = "tuple[str, int, int]"
"""Its name, the dimension that it is of, and how many of that dimension's pieces stand before it."""
REST = "..."


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern of `rearrange`, of which both sides have the same axes."""

    names: tuple[tuple[str, ...], ...] | None
    """The axes that each dimension of the tensor is split into; None: it isn't understood."""
    to: tuple[tuple[str, ...], ...] = ()
    """The axes that each dimension of the result is merged of."""
    merges: tuple[tuple[Axis, ...], ...] = ()
    """What is merged, each axis with its place in the tensor; what has one element isn't counted."""

    @property
    def same(self) -> bool:
        """Whether nothing is left to do."""
        return self.names == self.to

    @property
    def rank(self) -> int | None:
        """How many dimensions the tensor has."""
        return None if self.names is None or (REST,) in self.names else len(self.names)


UNREAD = Pattern(None)


@cache
def parsed(text: str) -> Pattern:
    """The pattern that a text stands for."""
    sides = text.split("->")
    if len(sides) != 2:
        return UNREAD
    left, right = map(_side, sides)
    if left is None or right is None:
        return UNREAD
    ours, theirs = [one for group in left for one in group], [one for group in right for one in group]
    if len(ours) != len(set(ours)) or sorted(ours) != sorted(theirs):
        return UNREAD
    at = {one: (one, dim, i) for dim, group in enumerate(left) for i, one in enumerate(group)}
    merges = tuple(tuple(at[one] for one in group) for group in right if len(group) > 1)
    return Pattern(left, right, merges)


def _side(text: str) -> tuple[tuple[str, ...], ...] | None:
    """The dimensions of one side, each as the names of its axes; one of one element has none."""
    tokens = re.findall(r"\(|\)|\.\.\.|\w+|\S", text)
    groups: list[tuple[str, ...]] = []
    inside: list[str] | None = None
    for token in tokens:
        if token == "(" and inside is None:
            inside = []
        elif token == ")" and inside is not None:
            groups.append(tuple(inside))
            inside = None
        elif token == "1" or (token == REST and inside is None) or token.isidentifier():
            axis = () if token == "1" else (token,)
            if inside is None:
                groups.append(axis)
            else:
                inside += axis
        else:
            return None
    return tuple(groups) if inside is None else None
