"""What is known of a defect beyond its place: a record for each kind, shared where kinds have the same facts.

Messages quote the fields by name, rewrites read them, the tape fills them, and so does the recorder as far as
a run can tell. A field that isn't given says that it isn't known, or that it isn't so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from gradfix.defects.facts import Facts
from gradfix.defects.ordered import EarlyClear, EarlyStep, NotCleared
from gradfix.defects.places import Span
from gradfix.defects.severed import Cut, NoGradient, NoLeaf, OnResult, Unreached, Unrecorded, WithoutGraph
from gradfix.defects.written import (
    Overwritten,
    RefusedWrite,
    Written,
    WrittenByModule,
    WrittenLeaf,
    WrittenThroughData,
    WrittenView,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebound(Facts):
    """The name of a leaf is bound to a result. The culprit is the Assign statement `w = w - lr * w.grad`."""

    target: str = ""
    aliased: bool = False
    """Whether another live name holds the leaf."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NonLeaf(Facts):
    """A result is taken for a leaf. The culprit is the expression that made it (`torch.randn(3,
    requires_grad=True) * 0.1`)."""

    optimised: bool = False
    """Whether an optimizer is given it."""
    target: str = ""
    read: str = ""
    """What is asked for its gradient, as it is written there: it may have no name of its own."""
    factory: Span | None = None
    """The inner factory call with requires_grad=True."""

    def named(self) -> dict[str, Any]:
        name = self.target or self.read
        read = f"`{name}`" if name else "what an optimizer is given"
        return {**super(NonLeaf, self).named(), "read": read}


@dataclass(frozen=True, slots=True, kw_only=True)
class Unregistered(Facts):
    """A module doesn't know its parts. The culprit is the container expression (`[nn.Linear(..) for ..]`, a
    list or dict display, or `[]`), or the expression that made the tensor."""

    attribute: str = ""
    """`layers`"""
    container: Literal["", "list", "tuple", "dict", "tensor"] = ""
    holds: Literal["", "modules", "parameters"] = ""
    inner: tuple[Span, ...] = ()
    """The lists in a list."""
    factory: Span | None = None
    """The call that makes the leaf of a tensor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaced(Facts):
    """A layer is replaced behind an optimizer's back. The culprit is the optimizer's Call."""

    replacement: Span | None = None
    """The statement that replaced the layer."""
    optimizer: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Misspelt(Facts):
    """A switch that nobody reads. The culprit is the Assign statement (`p.require_grad = False`,
    `module.requires_grad = False`)."""

    attribute: str = ""
    """As written."""
    on: Literal["tensor", "module"] = "tensor"
    guarded: bool = False
    """Whether it is set only where it is set already: the culprit is the If statement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpointed(Facts):
    """The `checkpoint(...)` Call is the culprit."""

    function: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NonScalar(Facts):
    """The backward Call is the culprit."""

    root: str = ""
    """Source text."""
    built: tuple[Span, ...] = ()
    """The calls that built the loss modules which made it, told not to reduce."""
    asked: tuple[Span, ...] = ()
    """Where those are called in this file, by all that was executed of it."""
    elsewhere: bool = False
    """Whether one of them is built or called in another file as well."""
    term: Span | None = None
    """The only term of it that has several elements, where the others are single numbers."""

    def again(self, other: NonScalar) -> NonScalar:
        """The same backward, with the loss of another time."""
        built = tuple(dict.fromkeys((*self.built, *other.built)))
        term = self.term if self.term == other.term else None
        return replace(self, built=built, elsewhere=self.elsewhere or other.elsewhere, term=term)


@dataclass(frozen=True, slots=True, kw_only=True)
class Freed(Facts):
    """A graph is walked twice. The culprit is the earlier backward Call, which freed it."""

    again: Span | None = None
    """The later backward."""
    carried: Span | None = None
    """The assignment that carries a hidden state into the next iteration."""
    outside: str = ""
    """The name that gives every call of a closure the same graph, where there is one."""
    spared: tuple[str, ...] = ()
    """The optimizers whose leaves the later backward could reach without meeting what was freed."""
    reached: tuple[str, ...] | None = None
    """The optimizers whose leaves it reaches; "" where one isn't known by name, None where others may be."""
    perhaps: tuple[str, ...] = ()
    """Those whose leaves it may reach by way of what isn't known."""
    frozen: tuple[str, ...] = ()
    """The optimizers that hold leaves that need no gradient, or may need none."""
    built: tuple[Span, ...] = ()
    """Where the graph of the later backward is built, where that is few places."""
    draws: bool = False
    """Whether building it draws random numbers, or what it is built of was drawn."""
    drawn: tuple[Span | None, ...] = ()
    """Where; None for a place in another file."""
    shared: Span | None = None
    """What is part of both graphs."""
    stepped: bool = False
    """Whether a step between the two has changed what the later one needs, or may have."""
    returned: bool = False
    """Whether the later one comes to gradients that the earlier one has handed back: they want a graph."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackwardUnrecorded(Facts):
    """A backward under no_grad. The culprit is the With statement."""

    backward: Span | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept(Facts):
    """A graph is kept for nothing. The culprit is the accumulating statement (`total += loss`,
    `losses.append(loss)`)."""

    value: Span | None = None
    """The accumulated expression."""
    target: str = ""
    number: bool = False
    """Whether it is a plain number on another path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaled(Facts):
    """Gradients that still carry a GradScaler's factor. The culprit is the clip Call, or the step Call."""

    scaler: str = ""
    optimizer: str = ""
    form: Literal["", "clip", "step"] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EditDropped(Facts):
    """A gradient is told to change, and what is made of it is dropped. The culprit is the Call
    `p.grad.clamp(-1, 1)`."""

    method: str = ""
    """`clamp`, of which there is one that writes in place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfGraph(Facts):
    """An array is asked for of what requires grad. The culprit is the Call `x.numpy()`."""

    target: str = ""
    """The name that holds it, or nothing."""


RECORDS: Mapping[str, type[Facts]] = {
    "inplace_overwrites_saved": Overwritten,
    "inplace_on_graph_tensor": Written,
    "inplace_on_leaf": WrittenLeaf,
    "inplace_module": WrittenByModule,
    "step_before_backward": EarlyStep,
    "leaf_rebound": Rebound,
    "write_through_data": WrittenThroughData,
    "inplace_on_view_of_many": WrittenView,
    "write_refused": RefusedWrite,
    "detached_loss_path": Cut,
    "converted_loss_path": Cut,
    "forward_in_no_grad": Unrecorded,
    "gradient_without_graph": WithoutGraph,
    "no_leaf_requires_grad": NoLeaf,
    "non_differentiable_loss": NoGradient,
    "requires_grad_on_result": OnResult,
    "severed_term": Cut,
    "unreached_parameters": Unreached,
    "grad_of_non_leaf": NonLeaf,
    "unregistered_parameters": Unregistered,
    "optimizer_before_replacement": Replaced,
    "requires_grad_misspelt": Misspelt,
    "reentrant_checkpoint_cut": Checkpointed,
    "non_scalar_backward": NonScalar,
    "backward_twice": Freed,
    "backward_in_no_grad": BackwardUnrecorded,
    "missing_zero_grad": NotCleared,
    "zero_grad_before_step": EarlyClear,
    "graph_leak": Kept,
    "clip_before_unscale": Scaled,
    "gradient_edit_dropped": EditDropped,
    "numpy_of_graph": OfGraph,
}
"""The record that each kind's facts come in."""


def record_of(kind: str) -> type[Facts]:
    """The record of a kind; of one that no rule is about, the empty one."""
    return RECORDS.get(kind, Facts)
