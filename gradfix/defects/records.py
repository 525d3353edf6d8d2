"""What is known of a defect beyond its place: a record for each kind, shared where kinds have the same facts.

Messages quote the fields by name, rewrites read them, the tape fills them, and so does the recorder as far as
a run can tell. A field that isn't given says that it isn't known, or that it isn't so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from gradfix.defects.places import Span, Touched, together


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known of a defect."""

    def named(self) -> dict[str, Any]:
        """The facts by the names of their fields."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Written(Facts):
    """An in-place write. The culprit is the writing node: an AugAssign statement, an Assign statement whose
    target is a Subscript or attribute of the written tensor, or a Call (`y.add_(1)`, `F.relu(y,
    inplace=True)`, `torch.add(a, b, out=y)`)."""

    form: str = ""
    """augassign, setitem, method, keyword, out or module."""
    target: str = ""
    """Source text of the name, attribute or list element that holds the written tensor: `x` for `x += 1`,
    `x[0] = v`, `x[:, 0] += 1` and `x.view(-1).add_(1)`; `xs[i]` for `xs[i] += y` and `xs[i][0] = v` where xs
    is a list; "" for a value that nothing holds."""
    aliased: bool = False
    """Whether another live name sees the write, so that out of place would change what it reads."""
    met_again: bool = False
    """Whether it is in a closure that a step calls several times, and the next call meets what is written:
    the graph that the write has put it into is freed by then."""
    promotes: bool = False
    """Whether dtypes are known to differ, so that out of place would change the dtype."""
    in_tuple: bool = False
    """Whether what is written is an element of a tuple, to which nothing can be assigned."""
    unrecorded: bool = False
    """Whether nothing is recorded where it stands, though what it writes has a graph."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overwritten(Written):
    """A write over something that an operation has saved for backward."""

    saver: str = ""
    """Name of the operation, `relu`."""
    save: Span | None = None
    """The expression whose operation saved it."""
    parameter: bool = False
    """Whether it is a parameter or another leaf, which is to be written behind backward."""
    backward: Span | None = None
    under: Span | None = None
    """What that backward's function does, under which the leaf is written."""
    until: Touched = None
    """What touches these leaves in that function before this backward."""

    def again(self, other: Overwritten) -> Overwritten:
        """What holds of both times that the defect happens."""
        if (self.backward, self.under) != (other.backward, other.under):
            return replace(self, under=None)
        return replace(self, until=together((self.until, other.until)))


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenByModule(Overwritten):
    """The same by a module. The culprit is the Call that builds it (`nn.ReLU(inplace=True)`,
    `nn.Dropout(0.5, True)`) or the assignment `m.inplace = True`."""

    module: str = ""
    """`nn.ReLU`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenThroughData(Overwritten):
    """The same through `.data`, which autograd doesn't notice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenView(Written):
    """A write to one of several views."""

    maker: str = ""
    """Name of the operation that returned them, `chunk`."""
    unreadable: bool = False
    """Whether torch refuses to read the view too: it is from a block that records nothing, and what it shows
    was written since."""
    of_leaf: bool = False
    """Whether what they show may be a leaf: then torch refuses a view of its own as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenLeaf(Written):
    """A write to a leaf that requires grad."""

    role: Literal["update", "value"] = "update"
    """update: the leaf is optimised, initialised or has its .grad read, so that the write isn't to be
    recorded; value: a new value is made of it, out of place."""
    parameter: bool = False
    """Whether it is a parameter: an attribute of a module that holds one takes no other tensor."""
    frozen: bool = False
    """Whether it is told to need no gradient later on, as only a leaf can be."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebound(Facts):
    """The name of a leaf is bound to a result. The culprit is the Assign statement `w = w - lr * w.grad`."""

    target: str = ""
    aliased: bool = False
    """Whether another live name holds the leaf."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class WithoutGraph(Severed):
    """Gradients that were asked for without a graph. The culprit is the Call `torch.autograd.grad(...)`."""

    backward: Span | None = None
    others: bool = True
    """Whether with a graph this loss may also reach leaves that it is not for."""


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
    saved: bool = False
    """Whether what it made only can't be saved: it is a constant for a graph that is recorded outside."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class NonLeaf(Facts):
    """A result is taken for a leaf. The culprit is the expression that made it (`torch.randn(3,
    requires_grad=True) * 0.1`)."""

    optimised: bool = False
    """Whether an optimizer is given it."""
    target: str = ""
    factory: Span | None = None
    """The inner factory call with requires_grad=True."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unregistered(Facts):
    """A module doesn't know its parts. The culprit is the container expression (`[nn.Linear(..) for ..]`, a
    list or dict display, or `[]`), or the expression that made the tensor."""

    attribute: str = ""
    """`layers`"""
    container: Literal["", "list", "dict", "tensor"] = ""
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
