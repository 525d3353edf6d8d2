"""Which words of torch answer to which kinds of defect."""

from __future__ import annotations

WRITES = frozenset({"inplace_overwrites_saved", "inplace_module", "step_before_backward"})
CUTS = frozenset(
    {
        "detached_loss_path",
        "converted_loss_path",
        "forward_in_no_grad",
        "no_leaf_requires_grad",
        "non_differentiable_loss",
        "leaf_rebound",
        "requires_grad_misspelt",
        "reentrant_checkpoint_cut",
    }
)
VIEWS = frozenset(
    {
        "inplace_on_view_of_many",
        "inplace_on_leaf",
        "inplace_on_graph_tensor",
        "inplace_overwrites_saved",
        "forward_in_no_grad",
    }
)

UNTRAINED = CUTS | {
    "requires_grad_on_result",
    "severed_term",
    "unreached_parameters",
    "unregistered_parameters",
    "optimizer_before_replacement",
    "zero_grad_before_step",
    "grad_of_non_leaf",
}
"""What may be said of parameters that are never trained."""

REQUIRED: dict[str, tuple[str, frozenset[str]]] = {
    "overwritten": ("has been modified by an inplace operation", WRITES),
    "severed": ("does not require grad and does not have a grad_fn", CUTS),
    "leaf written": (
        "leaf Variable that requires grad is being used in an in-place",
        frozenset({"inplace_on_leaf"}),
    ),
    "view of many": ("function that returns multiple views", frozenset({"inplace_on_view_of_many"})),
    "view without grad": ("view was created in", VIEWS),
    "not a scalar": ("grad can be implicitly created only for scalar", frozenset({"non_scalar_backward"})),
    "backward twice": ("backward through the graph a second time", frozenset({"backward_twice"})),
    "none gradient": ("'NoneType'", UNTRAINED),
    "inference saved": ("Inference tensors cannot be saved for backward", frozenset({"forward_in_no_grad"})),
}
"""Class of failure: words of torch that show it, kinds of defect that may report it. All must be reported."""

BASE_WRITTEN = "its base or another view of its base has been modified inplace"
"""Torch speaks at the use of a view, long after the write to its base."""

TOLERATED: dict[str, str] = {
    "base written": BASE_WRITTEN,
    "inference written": "Inplace update to inference tensor outside",
    "overlap written": "some elements of the input tensor and the written-to tensor refer to a single memory",
    "expanded written": "more than one element of the written-to tensor refers to a single memory location",
    "no derivative": "is not implemented",
    "flag of a result": "you can only change requires_grad flags of leaf",
    "flag of integers": "Tensors of floating point",
    "view detached": "Can't detach views in-place",
    "numpy of a live tensor": "Can't call numpy() on Tensor that requires grad",
    "out of a live tensor": "functions with out=... arguments don't support automatic differentiation",
    "inference flag": "Setting requires_grad=True on inference tensor",
    "inference view": "inference tensor",
}
"""Autograd's other refusals: nobody has to report them."""

FLOW = CUTS | {"requires_grad_on_result"}


def classify(message: str) -> str:
    """The class of a failure, or "" for an error that is not autograd's."""
    if BASE_WRITTEN in message:
        return "base written"
    for key, (words, _) in REQUIRED.items():
        if words in message:
            return key
    return next((key for key, words in TOLERATED.items() if words in message), "")
