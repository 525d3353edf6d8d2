"""A program whose fix is not safe, without all statements that this does not take."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from wild.campaign import _statements, _without

from .campaign import SORTS, Case, Tally, _weighed
from .weighing import Broken

PATIENCE = 300
"""So often a program may be made smaller."""


def shrunk(case: Case) -> Case:
    broken = SORTS[case.sort](case.seed)
    if broken is None or not case.group.partition(":")[2]:
        return case
    small, tried, again = case, 0, True
    while again and tried < PATIENCE:
        again = False
        for number in range(_statements(small.source) - 1, -1, -1):
            text = _without(small.source, number)
            tried += 1
            found = same_case(case, broken, text) if text and text != small.source else None
            if found is not None and tried < PATIENCE:
                small, again = found, True
    return small


def same_case(case: Case, broken: Broken, text: str) -> Case | None:
    """The case that a smaller text makes, if it is in the same group."""
    tally = Tally(Counter())
    _weighed(case.sort, case.seed, replace(broken, source=text, healthy=""), tally)
    return next((each for each in tally.cases if each.group == case.group), None)
