"""What a broken autograd rule is: its kind, its culprit, and the evidence that leads to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Certainty: TypeAlias = Literal["certain", "likely"]
Impact: TypeAlias = Literal["crashes", "trains wrong", "style"]


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A place in a file as `ast` counts it: lines from 1, columns in UTF-8 bytes from 0."""

    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """One step of the chain that explains a defect, e.g. where a value was saved."""

    span: Span
    role: str
    path: str | None = None
    """The file, where it isn't the one that the defect is in."""


TouchKind: TypeAlias = Literal[
    "reads", "writes", "steps", "schedules", "scales", "clears", "fills", "changes", "looks", "anything"
]


@dataclass(frozen=True, slots=True)
class Touch:
    """Something that happens to leaves or to their gradients between two events, and where.

    It reads or writes their values; steps them, or changes what their next step does (a scheduler, a
    scaler's update); clears, fills (a backward), changes or looks at their gradients. A call that isn't known
    and that could reach them may do anything.
    """

    span: Span | None
    """The expression or statement in the function that the events are in, under which it happens; None:
    outside of it."""
    kind: TouchKind
    whole: bool = True
    """Whether it happens to all of the leaves."""
    known: bool = True
    """Whether it surely happens to them."""


Fact: TypeAlias = "str | bool | int | Span | tuple[Span, ...] | tuple[str, ...] | tuple[Touch, ...] | None"


@dataclass(frozen=True, slots=True)
class Defect:
    """A broken rule of autograd, found by the tape or by the recorder.

    `kind` is the name of the rule that rewrites it. `culprit` is the `ast` node that has to change; `facts`
    are what the message and the rewrite need beyond the source text: see KINDS.
    """

    kind: str
    culprit: Span
    evidence: tuple[Evidence, ...]
    certainty: Certainty
    impact: Impact
    conventions: tuple[str, ...] = ()
    condition: str = ""
    """The path condition under which it happens, as source text (`self.residual`)."""
    torch_says: str = ""
    facts: Mapping[str, Fact] = field(default_factory=dict)


KINDS: Mapping[str, str] = {
    # culprit, then facts; "call" facts are Spans of the ast node named
    "inplace_overwrites_saved": """culprit: the writing node: an AugAssign statement, an Assign statement
        whose target is a Subscript (or attribute) of the written tensor, or a Call (`y.add_(1)`,
        `F.relu(y, inplace=True)`, `torch.add(a, b, out=y)`). facts: saver (name of the op, "relu"), form
        ("augassign" | "setitem" | "method" | "keyword" | "out"), in_tuple (True: what is written is an
        element of a tuple), aliased (True: another live name sees the write, so out of place would change
        what it reads), promotes (True: dtypes are known to differ, out of place would change the dtype),
        target (source text of the name, attribute or list element that holds the written tensor: `x` for
        `x += 1`, `x[0] = v`, `x[:, 0] += 1` and `x.view(-1).add_(1)`; `xs[i]` for `xs[i] += y` and
        `xs[i][0] = v` where xs is a list; "" for a
        value that nothing holds), save (Span of the expression whose operation saved it, or None).""",
    "inplace_on_graph_tensor": "culprit and facts as inplace_overwrites_saved, without saver.",
    "inplace_on_leaf": """culprit: the writing node as above. facts: form, target, aliased, role
        ("update": the leaf is optimised, initialised or has its .grad read: wrap in no_grad | "value":
        out of place).""",
    "inplace_module": """culprit: the Call that builds the module (`nn.ReLU(inplace=True)`,
        `nn.Dropout(0.5, True)`) or the assignment `m.inplace = True`. facts: module ("nn.ReLU"), saver,
        aliased (True: what the module was called with is read again afterwards and sees the write).""",
    "step_before_backward": """culprit: the `optimizer.step()` Call. facts: backward (Span of the later
        backward call that needs what the step changed), step_backward (Span of the backward that this
        step is for), zero (Span of the zero_grad that belongs to the later backward, or None), later_step
        (Span of the later backward's own step, or None), pollutes (True: the later backward also adds to
        the gradients of this step's parameters), cleared (Spans where these gradients are cleared between
        the step and the later backward), optimizer (source text), others (source text of the parameters of
        the later optimizer, "" if unknown).""",
    "leaf_rebound": "culprit: the Assign statement `w = w - lr * w.grad`. facts: target.",
    "write_through_data": """culprit: the writing node (AugAssign, Assign or Call) through `.data`. facts:
        saver, form, target, parameter (True: a parameter; move it behind backward: facts.backward).""",
    "inplace_on_view_of_many": """culprit and facts as inplace_overwrites_saved, with maker ("chunk") for
        saver.""",
    "detached_loss_path": """culprit: the cut: the Call `y.detach()`, the Attribute `y.data`, or the
        expression statement `y.detach_()`. facts: form ("detach" | "data" | "detach_"), backward (Span).""",
    "converted_loss_path": """culprit: the converting expression (`loss.item()`, `float(loss)`,
        `torch.tensor(loss)`, `torch.tensor([l1, l2])`, `Variable(t)`, `x.detach().numpy()`,
        `math.log(x)`). facts: form ("item" | "tolist" | "numpy" | "float" | "math" | "tensor" |
        "tensor_of_list" | "Variable" | "Parameter"), backward (Span), rewrap (Span of an outer expression
        that made a tensor of it again, or None), logged (Spans of later uses as a plain number).""",
    "forward_in_no_grad": """culprit: the With statement, the decorator expression, or the statement
        `torch.set_grad_enabled(False)`. facts: form ("with" | "decorator" | "statement"), mode ("no_grad"
        ...), forward (Spans of the statements inside it that built the loss), backward (Span).""",
    "no_leaf_requires_grad": """culprit: the Call that makes the tensor which should be a leaf
        (`torch.randn(3)`). facts: backward (Span), misspelt (str: the wrong attribute or keyword if there
        is one), target.""",
    "non_differentiable_loss": "culprit: the operation. facts: op, backward (Span).",
    "requires_grad_on_result": """culprit: the statement (`loss.requires_grad = True`,
        `loss.requires_grad_()`) or the Call. facts: target, cut (Span of the real cut, or None), cut_kind
        (kind of the defect at the cut).""",
    "severed_term": """culprit: as in detached_loss_path or converted_loss_path. facts: form, backward
        (Span), rewrap, term (source text).""",
    "unreached_parameters": """culprit: the optimizer's Call. facts: optimizer, parameters (source text),
        cut, backward.""",
    "grad_of_non_leaf": """culprit: the expression that made the non-leaf (`torch.randn(3,
        requires_grad=True) * 0.1`). facts: read (Span of the `.grad` read, or None),
        optimised (True where an optimizer is given it), target, factory (Span of the inner factory call
        with requires_grad=True).""",
    "unregistered_parameters": """culprit: the container expression (`[nn.Linear(..) for ..]`, a list or
        dict display, or `[]`), or the expression that made the tensor. facts: attribute ("layers"),
        container ("list" | "dict" | "tensor"), holds ("modules" | "parameters"), inner (Spans of the
        lists in a list), factory (Span of the call that makes the leaf of a tensor).""",
    "optimizer_before_replacement": """culprit: the statement that builds the optimizer. facts:
        replacement (Span of the statement that replaced a layer), optimizer.""",
    "requires_grad_misspelt": """culprit: the Assign statement (`p.require_grad = False`,
        `module.requires_grad = False`). facts: attribute (as written), on ("tensor" | "module").""",
    "reentrant_checkpoint_cut": "culprit: the `checkpoint(...)` Call. facts: function.",
    "non_scalar_backward": """culprit: the backward Call. facts: root (source text), reduction ("sum" |
        "mean" | "": what the code itself suggests).""",
    "backward_twice": """culprit: the earlier backward Call that freed the graph. facts: again (Span of
        the later backward), carried (Span of the assignment that carries a hidden state into the next
        iteration, or None), state (name of the state, ""), outside (the name that gives every call of a
        closure the same graph, where there is one).""",
    "backward_in_no_grad": "culprit: the With statement. facts: backward (Span).",
    "missing_zero_grad": """culprit: the first backward Call of the iteration that adds to the used
        gradient. facts: optimizer (source text of the optimizer, "" for hand-written updates), step
        (Span), parameters (source texts, for hand-written updates).""",
    "zero_grad_before_step": """culprit: the zero_grad Call. facts: backward (Span: the first backward
        whose gradients it erases), step (Span), optimizer, between (what touches its leaves up to that
        step), filled (all that ever fills their gradients).""",
    "graph_leak": """culprit: the accumulating statement (`total += loss`, `losses.append(loss)`). facts:
        value (Span of the accumulated expression), number (True: used as a plain number).""",
    "clip_before_unscale": """culprit: the clip Call, or the step Call. facts: scaler, optimizer, form
        ("clip" | "step").""",
}
"""Every kind of defect, with what its culprit and its facts are."""
