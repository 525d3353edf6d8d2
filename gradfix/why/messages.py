"""What torch says when a gradient breaks, what that means, and which defects explain it: one row each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Reading: TypeAlias = Literal[
    "raised",
    "writes",
    "steps",
    "again",
    "carried",
    "cuts",
    "reduction",
    "wrapped",
    "calls",
    "expands",
    "filled",
    "no gradient",
    "leaf writes",
    "results",
    "returns",
    "converted",
]
"""What is looked for in the text where the tape is silent: see gradfix.why.readings."""
CUT = (
    "converted_loss_path", "detached_loss_path", "forward_in_no_grad", "no_leaf_requires_grad",
    "leaf_rebound", "requires_grad_on_result", "non_differentiable_loss", "requires_grad_misspelt",
    "reentrant_checkpoint_cut", "gradient_without_graph",
)  # fmt: skip
OVERWRITES = (
    "inplace_overwrites_saved", "inplace_module", "step_before_backward", "inplace_on_leaf",
    "write_through_data", "inplace_on_graph_tensor",
)  # fmt: skip
UNUSED = ("unreached_parameters", "severed_term", "detached_loss_path", "converted_loss_path")


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message of torch, whatever version has worded it."""

    name: str
    patterns: tuple[str, ...]
    """Each a way in which a version says it; named groups are facts."""
    means: str
    proves: str
    """What is certain whatever the project's text is."""
    then: str
    """What to do where the line at fault isn't found."""
    raises_there: bool = False
    """Whether the line that raises is the one at fault."""
    shows: str = ""
    """What has to be written in it for that."""
    kinds: tuple[str, ...] = ()
    """The defects that explain it, the likeliest first."""
    readings: tuple[Reading, ...] = ("raised",)


INPLACE_FACTS = (
    r"(?:: ?\[(?P<type>[\w.]+)(?: \[(?P<shape>[\d, ]*)\])?\]"
    r"(?:, which is output (?P<output>\d+) of (?P<operation>\w+),)?"
    r"(?: is at version (?P<version>\d+); expected version (?P<expected>\d+))?)?"
)
MESSAGES = (
    Message(
        name="overwritten",
        patterns=(
            r"needed for gradient computation ha(?:s|ve) been modified by an in-?place operation"
            + INPLACE_FACTS,
        ),
        means="a value that backward needs was written over after an operation had saved it",
        proves="the line of the backward is only where it was noticed; the write came earlier",
        then=(
            "run it once under `torch.autograd.set_detect_anomaly(True)`: it names the operation whose "
            "saved value "
            "was written over; paste that here"
        ),
        kinds=OVERWRITES,
        readings=("writes", "steps", "carried", "wrapped"),
    ),
    Message(
        name="freed",
        patterns=(r"[Tt]rying to backward through the graph a second time",),
        means="backward came to a part of the graph that an earlier backward had walked and freed",
        proves="two backwards share a part of their graph; one of the two has to leave it alone",
        then=(
            "look for what is computed once, before the loop or in the last iteration, and used in both: "
            "detach it, or "
            "compute it anew; `retain_graph=True` on the earlier backward only where both are to train it"
        ),
        kinds=("backward_twice", "graph_leak", "step_before_backward"),
        readings=("again", "carried"),
    ),
    Message(
        name="leafless",
        patterns=(
            r"element \d+ of (?:tensors|variables) does not require grad(?: and does not have a grad_fn)?",
            r"the tensor has requires_grad=False|element \d+ of variables tuple is volatile",
        ),
        means="nothing that the loss was computed from requires grad: the graph was cut, or never recorded",
        proves="every path from the loss to a parameter is cut, frozen, or ran where nothing is recorded",
        then=(
            "print `x.requires_grad` of each value from the loss backwards: the first that says False is "
            "made at the cut"
        ),
        kinds=CUT,
        readings=("cuts",),
    ),
    Message(
        name="not scalar",
        patterns=(r"grad can be implicitly created only for scalar outputs",),
        means="the loss has more than one element, so torch doesn't know what to weigh each of them with",
        proves="the tensor on which backward is called is not a scalar",
        raises_there=True,
        then="reduce it: `loss.mean().backward()`; under DataParallel each device returns a loss of its own",
        kinds=("non_scalar_backward",),
        readings=("reduction", "raised"),
    ),
    Message(
        name="leaf written",
        patterns=(
            r"a (?P<view>view of a )?leaf Variable that requires grad (?:is being|has been) used in "
            r"an in-?place operation",
            r"leaf variable has been moved into the graph interior",
        ),
        means="a leaf that requires grad, or a view of one, is written in place while autograd records",
        proves="the line that raised is the write",
        raises_there=True,
        then=(
            "update a parameter under `torch.no_grad()`; to go on computing with the value, write to a "
            "`.clone()` of it"
        ),
        kinds=("inplace_on_leaf", "leaf_rebound"),
        readings=("raised", "leaf writes"),
    ),
    Message(
        name="view of no_grad",
        patterns=(
            r"A view was created in (?P<mode>no_grad|inference) mode and (?:is being|its base or "
            r"another view of its base has been) modified inplace",
        ),
        means="a view that was made where nothing is recorded is written where something is",
        proves="the line that raised is the write; the view was made under no_grad",
        raises_there=True,
        then="make the view and write to it on the same side of `no_grad`",
        kinds=("inplace_on_view_of_many", "inplace_on_leaf"),
        readings=("raised",),
    ),
    Message(
        name="view stale",
        patterns=(
            r"[Oo]utput (?P<output>\d+) of (?P<operation>\w+) is a view and its base or another view "
            r"of its base has been modified inplace",
        ),
        means=(
            "a view is used of which the base, or a sister that the same call returned, was written in place"
        ),
        proves="the line that raised only uses the view; the write came before it",
        then="find the write between the call that made the views and this line, and make it out of place",
        kinds=("inplace_on_view_of_many", "inplace_overwrites_saved", "inplace_module"),
        readings=("writes", "raised"),
    ),
    Message(
        name="view written",
        patterns=(
            r"[Oo]utput (?P<output>\d+) of (?P<operation>\w+) is a view and is being modified inplace",
        ),
        means=(
            "one of several views that one call returned, or a view from a custom function, is written "
            "in place"
        ),
        proves="the line that raised is the write",
        raises_there=True,
        then="write out of place, or to a `.clone()` of the view",
        kinds=("inplace_on_view_of_many", "inplace_module"),
        readings=("raised",),
    ),
    Message(
        name="shared memory",
        patterns=(r"more than one element of the written-to tensor refers to a single memory location",),
        means="an expanded tensor is written in place: several of its elements are the same memory",
        proves=(
            "the line that raised is the write, or a backward that writes to a gradient of an expanded tensor"
        ),
        raises_there=True,
        then="write to a `.clone()` of it, or use `repeat` where `expand` made it",
        kinds=("write_refused", "inplace_on_view_of_many"),
        readings=("raised", "expands"),
    ),
    Message(
        name="inference",
        patterns=(
            r"Inference tensors cannot be saved for backward",
            r"Inplace update to inference tensor outside InferenceMode",
            r"Setting requires_grad=True on inference tensor",
        ),
        means="a tensor that was made under `inference_mode` is used in training",
        proves="the value comes from a block or a function under `torch.inference_mode()`",
        then="make it under `torch.no_grad()` instead, or `.clone()` it outside",
        kinds=("forward_in_no_grad", "write_refused"),
        readings=("raised", "cuts"),
    ),
    Message(
        name="unused",
        patterns=(
            r"(?:One of the differentiated Tensors|The differentiated Tensor at index (?P<index>\d+)) "
            r"appears to not have been used in the graph",
            r"One of the differentiated Tensors does not require grad",
        ),
        means="`autograd.grad` is asked for the gradient of a tensor that the output doesn't depend on",
        proves=(
            "the graph of the output doesn't reach that input: another tensor was used, or the path is cut"
        ),
        then=(
            "differentiate by the very tensor that went into the computation (a `.detach()`, `.to()`, a "
            "view or a slice "
            "makes another one); `allow_unused=True` gives None where not using it is meant"
        ),
        kinds=(*UNUSED, "grad_of_non_leaf", "no_leaf_requires_grad"),
        readings=("raised", "cuts"),
    ),
    Message(
        name="numpy",
        patterns=(
            r"Can't call numpy\(\) on (?:Tensor|Variable) that requires grad",
            r"Can't convert (?:Tensor|Variable) that requires grad to numpy",
        ),
        means="a tensor that requires grad is turned into a numpy array, which would cut the graph unsaid",
        proves="the line that raised is the conversion",
        raises_there=True,
        shows=r"numpy|\bnp\.|array",
        then=(
            "`.detach().cpu().numpy()` to look at it or plot it; where its gradient is needed, stay in torch"
        ),
        kinds=("numpy_of_graph", "converted_loss_path"),
        readings=("raised", "filled"),
    ),
    Message(
        name="integers",
        patterns=(r"[Oo]nly Tensors of floating point(?: and complex)? dtype can require gradients",),
        means="an integer or bool tensor is told to require grad",
        proves="the line that raised makes or marks the tensor",
        raises_there=True,
        then=(
            "`.float()` it first, or don't ask for its gradient; pass `requires_grad=False` to `nn.Parameter`"
        ),
        kinds=("no_leaf_requires_grad",),
    ),
    Message(
        name="flag of a result",
        patterns=(r"you can only change requires_grad flags of leaf (?:variables|Variables)",),
        means="`requires_grad` is set on the result of an operation; only leaves have that switch",
        proves="the line that raised sets it",
        raises_there=True,
        then="freeze the parameters that it is computed from, or `.detach()` it",
        kinds=("requires_grad_on_result",),
    ),
    Message(
        name="optimised result",
        patterns=(r"can't optimize a non-leaf (?:Tensor|Variable)",),
        means="an optimizer is given the result of an operation; it takes leaves only",
        proves="the tensor that the optimizer is given was computed from another one",
        then="make the value first and mark it afterwards: `.detach().requires_grad_()`",
        kinds=("grad_of_non_leaf",),
        readings=("results", "raised"),
    ),
    Message(
        name="copied result",
        patterns=(
            r"Only Tensors created explicitly by the user \(graph leaves\) support the deepcopy protocol",
        ),
        means="something that holds the result of an operation is deep-copied",
        proves="the copied object keeps a tensor that has a graph",
        then="keep a `.detach()` of it in the object",
        kinds=("graph_leak",),
        readings=("raised",),
    ),
    Message(
        name="marked twice",
        patterns=(
            r"Expected to mark a variable ready only once",
            r"[Pp]arameter at index (?P<index>\d+)(?: with name (?P<named>[\w.]+))? has been marked "
            r"as ready twice",
        ),
        means="DistributedDataParallel got a second gradient for a parameter in one backward",
        proves=(
            "a parameter is reached twice: by reentrant checkpoints, or because the wrapped module runs "
            "more than once"
        ),
        then=(
            "`use_reentrant=False` for checkpoints; no `find_unused_parameters=True` without need; "
            "`static_graph=True` "
            "where the graph never changes"
        ),
        kinds=("reentrant_checkpoint_cut",),
        readings=("wrapped",),
    ),
    Message(
        name="unfinished reduction",
        patterns=(r"Expected to have finished reduction in the prior iteration",),
        means="DistributedDataParallel still waits for gradients of parameters that the last loss didn't use",
        proves="in the iteration before, some parameters of the wrapped module got no gradient",
        then="TORCH_DISTRIBUTED_DEBUG=DETAIL names them; use them in the loss or freeze them, else wrap with "
        "`find_unused_parameters=True`",
        kinds=UNUSED,
        readings=("wrapped",),
    ),
    Message(
        name="not a tensor",
        patterns=(
            r"'(?P<type>float|int|NoneType|numpy\.\w+|ndarray|list|tuple|dict)' object has no "
            r"attribute 'backward'",
        ),
        means=(
            "the loss isn't a tensor any more: it was turned into a plain value on the way, or never was one"
        ),
        proves="the name on which backward is called holds no tensor",
        raises_there=True,
        then="follow the name back to where it is made: `.item()`, `float()` and numpy give plain numbers",
        kinds=("converted_loss_path",),
        readings=("converted", "returns", "raised"),
    ),
    Message(
        name="no derivative",
        patterns=(
            r"derivative for (?P<operation>[\w:]+) is not implemented",
            r"the derivative for '(?P<operation2>[\w:]+)' is not implemented",
        ),
        means="an operation on the way has no derivative",
        proves="a value that requires grad goes into that operation",
        then="compute it under `no_grad` if its gradient isn't wanted, else by other operations",
        kinds=("non_differentiable_loss",),
        readings=("calls", "raised"),
    ),
    Message(
        name="not finite",
        patterns=(r"Function '(?P<operation>\w+)' returned nan values in its (?P<output>\d+)",),
        means="a backward computed nan, and anomaly mode stopped at it",
        proves="the forward line that anomaly mode names is the operation whose backward gave nan",
        then="look at its input: 0 for sqrt, norm or log, a difference of infinities, a division by 0",
    ),
    Message(
        name="no gradient",
        patterns=(
            r"'NoneType' object has no attribute "
            r"'(?P<attribute>data|zero_|norm|detach_?|clone|mul_|add_|div_|abs|pow|sum|mean|view|cpu|is_sparse|copy_|clamp_?|layout|device|requires_grad_?|shape|size|dtype|flatten|sign|item|numpy|grad_fn|coalesce|register_hook)'",
            r"unsupported operand type\(s\) for [^:]+: '(?:float|int|Tensor|NoneType)' and "
            r"'(?:NoneType|float|int|Tensor)'",
            r"expected Tensor as element (?P<index>\d+) in argument \d+, but got NoneType",
            r"\w+\(\): argument '\w+' \(position \d+\) must be Tensor, not NoneType",
        ),
        means=(
            "a `.grad` is None where a tensor is expected: no backward has reached that leaf, or it is none"
        ),
        proves="until this line no gradient has arrived there",
        then=(
            "ask `is_leaf` and `requires_grad` of the tensor; leave out what has none: `if p.grad is not "
            "None`"
        ),
        kinds=("grad_of_non_leaf", "leaf_rebound", "zero_grad_before_step", *UNUSED, "forward_in_no_grad"),
        readings=("no gradient", "raised"),
    ),
)
"""From the most telling to the least: what a text says first in this order is its message."""
