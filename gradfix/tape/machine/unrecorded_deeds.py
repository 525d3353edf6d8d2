"""What is done only because nothing is recorded there: a rewrite that lets it be recorded has to know."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gradfix.defects.severed import Unrecorded

if TYPE_CHECKING:
    from gradfix.defects import Span
    from gradfix.defects.facts import Facts


class UnrecordedDeeds:
    """The places of such deeds, each once, by what has turned recording off."""

    def __init__(self) -> None:
        self.asking: dict[Span | None, dict[Span | None, None]] = {}
        """Where somebody asks whether anything is recorded, and may go another way if it is."""
        self.refused: dict[Span | None, dict[Span | None, None]] = {}
        """Where torch would refuse to record, or put into a graph that lives on, what is done."""

    def told(self, facts: Facts, culprit: Span) -> Facts:
        """The facts of what isn't recorded, with all that was done there."""
        if not isinstance(facts, Unrecorded):
            return facts
        asking, refused = tuple(self.asking.get(culprit, ())), tuple(self.refused.get(culprit, ()))
        return replace(facts, asking=asking, refused=refused)
