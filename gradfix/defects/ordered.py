"""What is known of events that stand in the wrong order: a step, a backward, a clearing of gradients."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gradfix.defects.facts import Facts
from gradfix.defects.places import Span, Touched, together


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordered(Facts):
    """A defect of events that stand in the wrong order."""

    backward: Span | None = None
    between: Touched = None
    """What touches the leaves in question between the events."""

    def again(self, other: Ordered) -> Ordered:
        """What holds of both times that the defect happens."""
        if self.backward != other.backward:
            return self
        return replace(self, between=together((self.between, other.between)))


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlyStep(Ordered):
    """A step before a backward that needs what it changes. The culprit is the `optimizer.step()` Call;
    `backward` is the later backward."""

    optimizer: str = ""
    """Source text."""
    step_backward: Span | None = None
    """The backward that this step is for."""
    carried: Span | None = None
    """The assignment that carries a hidden state into the next iteration."""
    saved: Span | None = None
    """The operation that saved what the step changes."""
    draws: bool = False
    """Whether something in the graph draws random numbers."""
    steps: tuple[Span, ...] = ()
    """The later steps that change what the backward needs as well."""
    beside: Touched = None
    """What touches the gradients of all other optimizers between the events."""
    shared: bool | None = None
    """Whether another optimizer steps some of the same leaves; None: that isn't known."""
    spared: tuple[str, ...] = ()
    """The optimizers whose leaves the backward could reach without meeting what was changed."""
    reached: tuple[str, ...] | None = None
    """The optimizers whose leaves it reaches; "" where one isn't known by name, None where others may be."""
    perhaps: tuple[str, ...] = ()
    """Those whose leaves it may reach by way of what isn't known."""
    frozen: tuple[str, ...] = ()
    """The optimizers that hold leaves that need no gradient, or may need none."""

    def again(self, other: Ordered) -> Ordered:
        both = Ordered.again(self, other)
        if both is self or not isinstance(other, EarlyStep) or not isinstance(both, EarlyStep):
            return self
        return replace(both, beside=together((self.beside, other.beside)))


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlyClear(Ordered):
    """Gradients are cleared before the step. The culprit is the zero_grad Call; `backward` is the first one
    whose gradients it erases."""

    step: Span | None = None
    optimizer: str = ""
    filled: Touched = None
    """All that ever fills the gradients."""
    spoils: bool = False
    """Whether a later backward needs what the step will change once it finds the gradients."""

    def again(self, other: Ordered) -> Ordered:
        both = Ordered.again(self, other)
        if not isinstance(other, EarlyClear) or not isinstance(both, EarlyClear):
            return both
        spoils = self.spoils or other.spoils
        return replace(both, filled=together((self.filled, other.filled)), spoils=spoils)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotCleared(Ordered):
    """Gradients are used twice. The culprit is the first backward Call of the iteration that adds to the used
    gradient."""

    step: Span | None = None
    optimizer: str = ""
    """Source text; "" for updates by hand."""
    early: bool = False
    """Whether the step that has used them stands between this backward and the forward that it is of."""
    parameters: tuple[str, ...] = ()
    """Source texts, for updates by hand."""
