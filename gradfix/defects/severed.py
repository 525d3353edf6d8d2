"""What is known where no gradient arrives: of cuts, leaves, parameters, and of what isn't recorded."""

from __future__ import annotations

from dataclasses import dataclass

from gradfix.defects.facts import Facts
from gradfix.defects.places import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Severed(Facts):
    """No gradient arrives."""

    arrives: bool = True
    """Whether one would for somebody, once this is mended: for what it is asked for, or who reads it."""
    alone: bool = True
    """Whether nothing else keeps it back on the same way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut(Severed):
    """A cut between the loss and what should learn. The culprit is the Call `y.detach()`, the Attribute
    `y.data`, the expression statement `y.detach_()`, or the converting expression (`loss.item()`,
    `float(loss)`, `torch.tensor([l1, l2])`, `Variable(t)`, `math.log(x)`)."""

    form: str = ""
    """detach, data, detach_; item, tolist, numpy, float, math, tensor, tensor_of_list, Variable,
    Parameter."""
    backward: Span | None = None
    logged: tuple[Span, ...] = ()
    """Later uses as a plain number."""
    held: bool = True
    """Whether an optimizer may hold what is cut off; False: all that is known of train something else."""
    shared: bool = False
    """Whether some of what is cut off learns from other losses than this one, or from none."""
    taught: bool = False
    """Whether all of what is detached learns from this loss, by its other terms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WithoutGraph(Severed):
    """Gradients that were asked for without a graph. The culprit is the Call `torch.autograd.grad(...)`."""

    backward: Span | None = None
    others: bool = True
    """Whether with a graph this loss may also reach leaves that it is not for."""


THE_LOSS, TO_WALK = "the loss", "for backward() to walk"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unrecorded(Severed):
    """A forward that isn't recorded. The culprit is the With statement, the decorator expression, or the
    statement `torch.set_grad_enabled(False)`."""

    form: str = ""
    """with, decorator or statement."""
    mode: str = ""
    """`no_grad` ..."""
    forward: tuple[Span, ...] = ()
    """The statements inside it that built the loss."""
    backward: Span | None = None
    doubtful: bool = False
    """Whether something else that it made meets what built the loss, and may be meant as a constant."""
    what: str = THE_LOSS
    """What is built there."""
    wanted: str = TO_WALK
    """What a graph was wanted for."""
    saved: bool = False
    """Whether what it made only can't be saved: it is a constant for a graph that is recorded outside."""
    asking: tuple[Span | None, ...] = ()
    """Where somebody asks inside it whether anything is recorded; None for a place in another file."""
    refused: tuple[Span | None, ...] = ()
    """What is done inside it that torch would refuse to record, or put into a graph that lives on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoLeaf(Severed):
    """Nothing behind a backward requires grad. The culprit is the Call that makes the tensor which should be
    a leaf (`torch.randn(3)`), what has frozen it, or the backward itself."""

    backward: Span | None = None
    target: str = ""
    made: tuple[Span, ...] = ()
    """Where that was made which was frozen."""
    unasked: bool = False
    """Whether it was frozen by what made it, as that wasn't told otherwise."""
    written: bool = False
    """Whether something writes to it through a view."""
    sought: str = "backward() reaches"
    """What was to come to something that requires grad."""
    asked: Span | None = None
    """Where `autograd.grad` asks for its gradient."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoGradient(Severed):
    """An operation that passes no gradient on is the culprit."""

    op: str = ""
    backward: Span | None = None
    rank: int | None = None
    """Of an index that says which elements are best: how many dimensions it has, where it is known."""
    width: int | None = None
    """Among how many it chooses along the last dimension, where that is known."""
    learnt: bool = False
    """Whether what it chooses among has a graph."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OnResult(Severed):
    """A result is told to require grad. The culprit is the statement (`loss.requires_grad = True`,
    `loss.requires_grad_()`) or the Call."""

    target: str = ""
    cut: Span | None = None
    """The real cut."""
    cut_kind: str = ""
    """The kind of the defect at the cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreached(Facts):
    """Parameters that no backward reaches. The culprit is the optimizer's Call."""

    optimizer: str = ""
    cut: Span | None = None
    cut_kind: str = ""
    """How the graph was cut: `detach`, `sample` ...; `frozen` where what made them froze them unasked."""
    backward: Span | None = None
    forward: tuple[Span, ...] = ()
    """Where a part that isn't recorded runs."""
    shared: bool = False
    """Whether another backward meets what was cut as well."""
    alone: bool = True
    """Whether nothing else keeps the gradient from some of them."""
    target: bool = False
    """Whether a loss holds what may learn against what was cut."""
    weighs: bool = False
    """Whether what was cut is a factor of what may learn."""
    either: bool = False
    """Whether what they make reaches the same loss another way too, which is cut as well."""
    chosen: Span | None = None
    """What is looked up in a codebook by an index without a gradient, which is used for nothing else."""
    scored: Span | None = None
    """The call or operator that holds what it is chosen for against that codebook."""
    rank: int | None = None
    """How many dimensions that index has, where it is known."""
    width: int | None = None
    """Among how many it chooses along the last dimension, where that is known."""
    learnt: bool = False
    """Whether what it chooses among has a graph."""
