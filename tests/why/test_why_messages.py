"""torch's messages in the words of all its versions, and what is read out of them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from gradfix.defects import KINDS
from gradfix.why.messages import MESSAGES
from gradfix.why.readings import READINGS
from gradfix.why.said import plain, said_in
from gradfix.why.symptoms import SYMPTOMS
from gradfix.why.traces import Trace

INPLACE = "one of the variables needed for gradient computation has been modified by an inplace operation"
NAMED = INPLACE + (
    ": [torch.cuda.FloatTensor [8, 3]], which is output 0 of %s, is at version 2; expected version 1"
)
TWICE = "Trying to backward through the graph a second time"
VIEW = "is a view and is being modified inplace."


def read(message: str, error: str = "RuntimeError", code: str = "") -> tuple[str, Mapping[str, str]]:
    from gradfix.why.frames import Frame

    frames = (Frame("train.py", 3, "f", code),) if code else ()
    said = said_in([Trace(frames, error=error, message=message)], f"{error}: {message}")
    return (said.message.name, said.facts) if said else ("", {})


@pytest.mark.parametrize(
    ("message", "name"),
    [
        pytest.param(INPLACE, "overwritten", id="torch 0.4: a write without a word on what"),
        pytest.param(NAMED % "TBackward", "overwritten", id="torch 1.5: a write with its operation"),
        pytest.param(NAMED % "ReluBackward0", "overwritten", id="torch 2.2: a write with its operation"),
        pytest.param(
            NAMED % "Relu", "overwritten", id="torch 2.14: a write, the operation without its suffix"
        ),
        pytest.param(
            f"{TWICE}, but the buffers have already been freed.", "freed", id="torch 1.0: a second walk"
        ),
        pytest.param(
            f"{TWICE}, but the saved intermediate results have already been freed.",
            "freed",
            id="torch 1.7: a second walk",
        ),
        pytest.param(
            f"{TWICE} (or directly access saved tensors after they", "freed", id="torch 2: a second walk"
        ),
        pytest.param("element 0 of variables does not require grad", "leafless", id="torch 0.3: no leaf"),
        pytest.param(
            "element 0 of tensors does not require grad and does not", "leafless", id="torch 2: no leaf"
        ),
        pytest.param("grad can be implicitly created only for scalar outputs", "not scalar", id="no scalar"),
        pytest.param(
            "a leaf Variable that requires grad has been used in an in-place operation.",
            "leaf written",
            id="torch 1.4: a leaf is written",
        ),
        pytest.param(
            "a view of a leaf Variable that requires grad is being used in an in-place operation.",
            "leaf written",
            id="torch 1.8: a view of a leaf is written",
        ),
        pytest.param(
            f"Output 0 of UnbindBackward {VIEW} This", "view written", id="torch 1.8: one of many views"
        ),
        pytest.param(f"Output 0 of Unbind {VIEW} This", "view written", id="torch 2.14: one of many views"),
        pytest.param(
            "Output 1 of SplitBackward0 is a view and its base or another view of its base has been modified "
            "inplace.",
            "view stale",
            id="a view whose sister was written",
        ),
        pytest.param(
            "A view was created in no_grad mode and is being modified inplace with grad mode enabled.",
            "view of no_grad",
            id="a view from a block that records nothing",
        ),
        pytest.param(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory "
            "location.",
            "shared memory",
            id="an expanded tensor is written",
        ),
        pytest.param(
            "One of the differentiated Tensors appears to not have been used in the graph. Set ",
            "unused",
            id="torch 2.2: an input that isn't used",
        ),
        pytest.param(
            "The differentiated Tensor at index 1 appears to not have been used in the graph.",
            "unused",
            id="torch 2.14: an input that isn't used, by its place",
        ),
        pytest.param(
            "Can't call numpy() on Variable that requires grad. Use var.detach().numpy() instead.",
            "numpy",
            id="torch 1.0: an array of a variable",
        ),
        pytest.param(
            "Can't call numpy() on Tensor that requires grad.", "numpy", id="torch 2: an array of a tensor"
        ),
        pytest.param(
            "Only Tensors of floating point dtype can require gradients", "integers", id="torch 1: integers"
        ),
        pytest.param(
            "Only Tensors of floating point and complex dtype can require gradients",
            "integers",
            id="torch 2: integers",
        ),
        pytest.param(
            "Expected to mark a variable ready only once. This error", "marked twice", id="DDP, ready twice"
        ),
        pytest.param(
            "Expected to have finished reduction in the prior iteration before starting a new one.",
            "unfinished reduction",
            id="DDP, unused parameters",
        ),
        pytest.param(
            "Inference tensors cannot be saved for backward. To work", "inference", id="inference mode"
        ),
        pytest.param(
            "derivative for aten::floor_divide is not implemented", "no derivative", id="no derivative"
        ),
        pytest.param(
            "Function 'SqrtBackward0' returned nan values in its 0th output.",
            "not finite",
            id="nan in anomaly mode",
        ),
        pytest.param("the sizes do not match", "", id="something else"),
    ],
)
def test_a_message_is_known_in_the_words_of(message: str, name: str) -> None:
    assert read(message)[0] == name


@pytest.mark.parametrize(
    ("error", "message", "code", "name"),
    [
        pytest.param(
            "AttributeError",
            "'NoneType' object has no attribute 'data'",
            "p.grad.data.norm()",
            "no gradient",
            id="a gradient that is None in a clip",
        ),
        pytest.param(
            "AttributeError",
            "'NoneType' object has no attribute 'zero_'",
            "w.grad.zero_()",
            "no gradient",
            id="a gradient that is None where it is cleared",
        ),
        pytest.param(
            "TypeError",
            "unsupported operand type(s) for *: 'float' and 'NoneType'",
            "w -= lr * w.grad",
            "no gradient",
            id="a gradient that is None in an update",
        ),
        pytest.param(
            "AttributeError",
            "'NoneType' object has no attribute 'shape'",
            "print(image.shape)",
            "",
            id="something else that is None",
        ),
        pytest.param(
            "AttributeError",
            "'float' object has no attribute 'backward'",
            "loss.backward()",
            "not a tensor",
            id="a loss that is a number",
        ),
        pytest.param(
            "ValueError", "can't optimize a non-leaf Tensor", "Adam([w])", "optimised result", id="a result"
        ),
    ],
)
def test_what_python_raises_is_known_where_gradients_are(
    error: str, message: str, code: str, name: str
) -> None:
    assert read(message, error, code)[0] == name


def test_the_facts_of_a_write_are_read() -> None:
    assert read(NAMED % "ReluBackward0")[1] == {
        "type": "torch.cuda.FloatTensor", "shape": "8, 3", "output": "0", "operation": "ReluBackward0",
        "version": "2", "expected": "1",
    }  # fmt: skip


@pytest.mark.parametrize("node", ["ReluBackward0", "ReluBackward1", "ReluBackward", "Relu"])
def test_an_operation_has_one_name_in_all_versions(node: str) -> None:
    assert plain(node) == "relu"


def test_a_message_without_a_traceback_is_found_in_the_text() -> None:
    said = said_in([], f"it says: {NAMED % 'TBackward'} instead. please help")
    assert said is not None and said.operation == "t"


def test_the_cause_is_told_before_what_followed_it() -> None:
    first = Trace((), error="RuntimeError", message=TWICE)
    then = Trace((), error="RuntimeError", message="NCCL communicator was aborted")
    said = said_in([then, first], "")
    assert said is not None and said.message.name == "freed"


def test_rows_name_kinds_and_readings_that_exist() -> None:
    kinds = {kind for row in (*MESSAGES, *SYMPTOMS) for kind in row.kinds}
    assert kinds <= KINDS.keys()
    assert {reading for row in MESSAGES for reading in row.readings} <= READINGS.keys()
    assert len({row.name for row in MESSAGES}) == len(MESSAGES)


PROVOKED = {
    "a write over what was saved": ("overwritten", "y = w.sigmoid(); y += 1; y.sum().backward()"),
    "a second walk": ("freed", "y = w.exp().sum(); y.backward(); y.backward()"),
    "nothing that requires grad": ("leafless", "torch.ones(3).sum().backward()"),
    "no scalar": ("not scalar", "(w * 2).backward()"),
    "a leaf that is written": ("leaf written", "w.add_(1)"),
    "one of many views that is written": ("view written", "a, _ = (w * 1).unbind(0)[:2]; a += 1"),
    "an input that isn't used": ("unused", "torch.autograd.grad(w.sum(), [w, v])"),
    "integers that are to require grad": ("integers", "torch.arange(3).requires_grad_()"),
    "an array of what requires grad": ("numpy", "w.numpy()"),
    "a tensor of inference mode": ("inference", "(w * made()).sum().backward()"),
    "an operation without a derivative": ("no derivative", "(w // 2).sum().backward()"),
}


@pytest.mark.torch
@pytest.mark.parametrize("provoked", [pytest.param(told, id=name) for name, told in PROVOKED.items()])
def test_what_the_installed_torch_says_is_known_for(provoked: tuple[str, str]) -> None:
    import torch

    name, program = provoked
    leaves = {each: torch.ones(3, requires_grad=True) for each in ("w", "v")}
    made = torch.inference_mode()(lambda: torch.ones(3))
    with pytest.raises(RuntimeError) as raised:
        exec(program, {"torch": torch, "made": made, **leaves})
    assert read(str(raised.value))[0] == name
