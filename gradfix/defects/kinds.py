"""Every kind of defect with its traits: the one place that says what a kind is like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Literal, TypeAlias

Impact: TypeAlias = Literal["crashes", "trains wrong", "wastes memory", "style"]
Culprit: TypeAlias = Literal["write", "statement", "with", "expression", "call"]
"""What stands at the culprit's place: an in-place write in any form, a statement, a with statement, a call or
an attribute, or a call."""


class Family(Enum):
    """Kinds of one family describe the same loss from several sides."""

    SEVERED = "gradients don't arrive"
    OVERWRITTEN = "what backward needs was overwritten"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What all defects of a kind have in common. Its name is that of the rule that rewrites it."""

    impact: Impact = "trains wrong"
    """What it does to the user, unless something about the case at hand says otherwise."""
    family: Family | None = None
    culprit: Culprit = "call"
    refused: bool = False
    """Whether torch refuses it always, whatever it said: others may as well train wrong in silence."""
    effect: bool = False
    """Whether it is only the effect of a cut, where one is known."""
    lost: bool = False
    """Whether it says already why the parameters behind a cut are never trained."""
    leafless: bool = False
    """Whether it says already why nothing behind a backward requires grad."""
    rank: int | None = None
    """Among the cuts behind one backward: the lowest is the one to mend first."""
    term: bool = False
    """Whether it can cut a single term off a loss."""
    logged: bool = False
    """Whether what was cut may also be meant as a plain number."""
    unrecorded: bool = False
    """Whether the cut is a region where nothing is recorded, which is often meant."""
    beside: bool = False
    """Whether it only stops the program, and no gradient is lost by it."""
    weights: bool = False
    """Whether what it writes over is a leaf that learns."""
    pair: bool = False
    """Whether two places are at fault together, of which either may be the one to change."""
    brings: str = ""
    """The kind that it may bring about: what was to be a leaf is walked in each turn, an optimizer clears
    nothing of a module that has come in the place of its own, and a backward that is cut off before a step
    leaves that what was cleared."""
    stepped: bool = False
    """Whether it is healed by whoever steps what no optimizer is given."""
    absence: bool = False
    """Whether it says that something is missing: that takes an account of all that could have supplied it."""

    @property
    def harmless(self) -> bool:
        """Whether it is a write that overwrites nothing which anybody needs."""
        return self.style and self.culprit == "write"

    @property
    def style(self) -> bool:
        """Whether torch allows it, and only some forbid it."""
        return self.impact == "style"


SEVERED, OVERWRITTEN = Family.SEVERED, Family.OVERWRITTEN
KINDS: Mapping[str, Kind] = {
    "inplace_overwrites_saved": Kind(impact="crashes", family=OVERWRITTEN, culprit="write", refused=True),
    "inplace_on_graph_tensor": Kind(impact="style", culprit="write"),
    "inplace_on_leaf": Kind(
        impact="crashes", family=OVERWRITTEN, culprit="write", refused=True, weights=True
    ),
    "inplace_module": Kind(impact="crashes", family=OVERWRITTEN, refused=True),
    "step_before_backward": Kind(impact="crashes", family=OVERWRITTEN, weights=True),
    "leaf_rebound": Kind(impact="crashes", family=SEVERED, culprit="statement", rank=0),
    "write_through_data": Kind(family=OVERWRITTEN, culprit="write"),
    "inplace_on_view_of_many": Kind(impact="crashes", family=OVERWRITTEN, culprit="write", refused=True),
    "write_refused": Kind(impact="crashes", culprit="write", refused=True, beside=True),
    "detached_loss_path": Kind(
        impact="crashes", family=SEVERED, culprit="expression", lost=True, rank=4, term=True
    ),
    "converted_loss_path": Kind(
        impact="crashes",
        family=SEVERED,
        culprit="expression",
        lost=True,
        rank=3,
        term=True,
        logged=True,
        brings="zero_grad_before_step",
    ),
    "forward_in_no_grad": Kind(
        impact="crashes", family=SEVERED, culprit="with", lost=True, rank=5, unrecorded=True
    ),
    "gradient_without_graph": Kind(impact="crashes", family=SEVERED, lost=True, rank=7, term=True),
    "no_leaf_requires_grad": Kind(impact="crashes", family=SEVERED, refused=True, absence=True),
    "non_differentiable_loss": Kind(impact="crashes", family=SEVERED, rank=6),
    "requires_grad_on_result": Kind(family=SEVERED, culprit="statement", lost=True, rank=1),
    "severed_term": Kind(family=SEVERED, culprit="expression", lost=True, logged=True, absence=True),
    "unreached_parameters": Kind(family=SEVERED, effect=True, absence=True),
    "grad_of_non_leaf": Kind(impact="crashes", family=SEVERED, brings="backward_twice", absence=True),
    "unregistered_parameters": Kind(family=SEVERED, stepped=True, absence=True),
    "optimizer_before_replacement": Kind(family=SEVERED, brings="missing_zero_grad", absence=True),
    "requires_grad_misspelt": Kind(family=SEVERED, culprit="statement", leafless=True),
    "reentrant_checkpoint_cut": Kind(family=SEVERED, rank=2),
    "non_scalar_backward": Kind(impact="crashes", refused=True),
    "backward_twice": Kind(impact="crashes", refused=True, pair=True),
    "backward_in_no_grad": Kind(impact="style"),
    "missing_zero_grad": Kind(absence=True),
    "zero_grad_before_step": Kind(absence=True),
    "graph_leak": Kind(impact="wastes memory", culprit="statement", absence=True),
    "clip_before_unscale": Kind(),
    "gradient_edit_dropped": Kind(),
    "numpy_of_graph": Kind(impact="crashes", refused=True, beside=True),
}
PLAIN = Kind()


def kind_of(name: str) -> Kind:
    """The traits of a kind; of one that no rule is about, none."""
    return KINDS.get(name, PLAIN)


def same_family(one: str, other: str) -> bool:
    """Whether two kinds describe the same loss from two sides."""
    family = kind_of(one).family
    return one == other or (family is not None and family is kind_of(other).family)
