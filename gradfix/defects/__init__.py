"""What a broken autograd rule is: its kind, its culprit, what is known of it and what that leans on."""

from gradfix.defects.defect import Defect, Evidence
from gradfix.defects.kinds import KINDS, Impact, Kind, kind_of, same_family
from gradfix.defects.leaning import (
    NOTHING,
    Assumption,
    Certainty,
    Convention,
    Enough,
    Gap,
    Lean,
    certainty_of,
)
from gradfix.defects.places import Span, Touch, Touched, TouchKind, together
from gradfix.defects.roles import Role

__all__ = [
    "KINDS",
    "NOTHING",
    "Assumption",
    "Certainty",
    "Convention",
    "Defect",
    "Enough",
    "Evidence",
    "Gap",
    "Impact",
    "Kind",
    "Lean",
    "Role",
    "Span",
    "Touch",
    "TouchKind",
    "Touched",
    "certainty_of",
    "kind_of",
    "same_family",
    "together",
]
