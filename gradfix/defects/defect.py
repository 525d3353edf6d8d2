"""A defect: one broken rule, at one place, with the chain that leads to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from gradfix.defects.facts import Facts
from gradfix.defects.kinds import Impact
from gradfix.defects.leaning import (
    NOTHING,
    Certainty,
    Lean,
    assumptions_of,
    certainty_of,
    letters_of,
    unknowns_of,
)
from gradfix.defects.places import Span
from gradfix.defects.reasons import Reason
from gradfix.defects.roles import Role

R = TypeVar("R", bound=Facts)


@dataclass(frozen=True, slots=True)
class Evidence:
    """One step of the chain that explains a defect, e.g. where a value was saved."""

    span: Span
    role: Role
    path: str | None = None
    """The file, where it isn't the one that the defect is in."""
    subject: str = ""
    """What the role's sentence is about, where that differs from case to case."""

    @property
    def says(self) -> str:
        """The sentence that a user reads."""
        return self.role.says(self.subject)


@dataclass(frozen=True, slots=True)
class Defect:
    """A broken rule of autograd, found by the tape or by the recorder: complete when it is made.

    `kind` is the name of the rule that rewrites it. `culprit` is the `ast` node that has to change; `facts`
    are what the message and the rewrite need beyond the source text, in the record of the kind.
    """

    kind: str
    culprit: Span
    evidence: tuple[Evidence, ...]
    facts: Facts
    impact: Impact = "crashes"
    lean: Lean = NOTHING
    """What it takes for granted."""
    condition: str = ""
    """The path condition under which it happens, as source text (`self.residual`)."""
    torch_says: str = ""

    @property
    def certainty(self) -> Certainty:
        return certainty_of(self.lean)

    @property
    def conventions(self) -> tuple[str, ...]:
        """The conventions that it leans on, by their letters."""
        return letters_of(self.lean)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What one would have to make sure of before it is more than a suspect."""
        return assumptions_of(self.lean)

    @property
    def unknowns(self) -> tuple[Reason, ...]:
        """What isn't known that may supply what it says is missing."""
        return unknowns_of(self.lean)

    def told(self, record: type[R]) -> R:
        """The facts, as the record that defects of this kind have."""
        if not isinstance(self.facts, record):
            raise TypeError(f"{self.kind} has {type(self.facts).__name__}, not {record.__name__}")
        return self.facts
