"""What torch does that people, and earlier versions of the tape, would not have guessed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING

import pytest
from short import listed, whole

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def test_a_view_made_without_grad_requires_grad_and_passes_none_on() -> None:
    leaf = torch.randn(3, 4, requires_grad=True)
    with torch.no_grad():
        view = leaf.t()
    assert view.requires_grad and view.grad_fn is None
    view.sum().backward()
    assert leaf.grad is None


def test_a_view_made_without_grad_of_a_constant_refuses_a_write_that_would_be_recorded() -> None:
    with torch.no_grad():
        view = torch.ones(3, 4).t()
    view += 1
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode"):
        view += torch.ones(4, 3, requires_grad=True)


def test_backward_with_inputs_walks_only_the_way_to_them() -> None:
    used, unused = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    shared = used * 2
    shared.pow(2).sum().backward()
    (shared.sum() + unused.sum()).backward(inputs=[unused])
    assert unused.grad is not None


def test_dividing_a_number_by_a_tensor_saves_a_value_that_a_write_to_the_result_leaves_alone() -> None:
    x = torch.ones(3, requires_grad=True)
    y = 1.0 / (x + 9)
    y.mul_(2)
    y.sum().backward()
    z = (x + 9).reciprocal()
    z.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_a_product_with_itself_in_place_overwrites_what_it_saves() -> None:
    x = torch.ones(3, requires_grad=True) * 2
    x.mul_(x)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        x.sum().backward()


def test_grad_mode_can_not_be_turned_on_inside_inference_mode() -> None:
    with torch.inference_mode():
        torch.set_grad_enabled(True)
        assert not (torch.ones(1, requires_grad=True) * 2).requires_grad


def test_a_step_writes_where_the_gradient_is_zero_and_not_where_it_is_none() -> None:
    layer = torch.nn.Linear(2, 1)
    optimizer = torch.optim.Adam(layer.parameters())
    version = layer.weight._version
    optimizer.step()
    assert layer.weight._version == version
    layer(torch.ones(1, 2)).sum().backward()
    optimizer.zero_grad(set_to_none=False)
    optimizer.step()
    assert layer.weight._version > version


def test_one_of_several_views_is_unusable_once_its_base_was_written() -> None:
    base = torch.ones(4, requires_grad=True) * 1
    first, _ = base.chunk(2)
    base.mul_(2)
    with pytest.raises(RuntimeError, match="its base or another view of its base has been modified inplace"):
        first.sum()


OVERWRITTEN = "modified by an inplace operation"


def _backward_fails_after(
    save: Callable[[Tensor], Tensor], write: Callable[[Tensor, Tensor], object]
) -> bool:
    """Whether what an operation saved of its input or result is lost by a write between it and backward."""
    source = torch.full((2, 4), 0.5, requires_grad=True) + 0.25
    result = save(source)
    with torch.no_grad():
        write(source, result)
    try:
        result.sum().backward()  # type: ignore[no-untyped-call]
    except RuntimeError as error:
        assert OVERWRITTEN in str(error)
        return True
    return False


def _input(source: Tensor, result: Tensor) -> object:
    return source.mul_(2)


def _output(source: Tensor, result: Tensor) -> object:
    return result.mul_(2)


F = torch.nn.functional
KEEP_RESULT: dict[str, Callable[[Tensor], Tensor]] = {
    "exp": torch.exp, "sigmoid": torch.sigmoid, "tanh": torch.tanh, "relu": torch.relu, "sqrt": torch.sqrt,
    "rsqrt": torch.rsqrt, "reciprocal": torch.reciprocal, "softmax": lambda x: x.softmax(-1),
    "std": lambda x: x.std(-1), "norm": lambda x: x.norm(dim=-1), "prod": lambda x: x.prod(-1),
    "cumprod": lambda x: x.cumprod(-1), "logsumexp": lambda x: x.logsumexp(-1),
}  # fmt: skip
KEEP_INPUT: dict[str, Callable[[Tensor], Tensor]] = {
    "pow": lambda x: x.pow(3), "a product with a tensor": lambda x: x * torch.ones(4, requires_grad=True),
    "matmul": lambda x: x @ torch.ones(4, 1, requires_grad=True),
    "layer norm": lambda x: F.layer_norm(x, (4,)),
    "clamp": lambda x: x.clamp(min=0), "silu": F.silu, "gelu": F.gelu, "softplus": F.softplus,
    "log": torch.log, "abs": torch.abs, "leaky relu": F.leaky_relu,
}  # fmt: skip
KEEP_NEITHER: dict[str, Callable[[Tensor], Tensor]] = {
    "a sum": lambda x: x + 1, "a product with a number": lambda x: x * 2.0, "a view": lambda x: x.view(-1),
    "a concatenation": lambda x: torch.cat([x, x]), "a mean": lambda x: x.mean(-1),
    "a linear layer without a bias that learns": lambda x: F.linear(x, torch.ones(3, 4)),
}  # fmt: skip


@pytest.mark.parametrize("save", KEEP_RESULT.values(), ids=KEEP_RESULT)
def test_its_result_is_saved(save: Callable[[Tensor], Tensor]) -> None:
    assert _backward_fails_after(save, _output)


@pytest.mark.parametrize("save", KEEP_INPUT.values(), ids=KEEP_INPUT)
def test_its_input_is_saved_and_its_result_is_not(save: Callable[[Tensor], Tensor]) -> None:
    assert _backward_fails_after(save, _input)
    assert not _backward_fails_after(save, _output)


@pytest.mark.parametrize("save", KEEP_NEITHER.values(), ids=KEEP_NEITHER)
def test_nothing_of_it_is_saved(save: Callable[[Tensor], Tensor]) -> None:
    assert not _backward_fails_after(save, _input if save is not KEEP_NEITHER["a view"] else _output)
    assert not _backward_fails_after(save, _output)


@pytest.mark.parametrize("name", ["leaky_relu_", "elu_", "celu_", "selu_"])
def test_in_place_it_saves_its_result(name: str) -> None:
    function = getattr(F, name) if hasattr(F, name) else getattr(torch, name)
    assert _backward_fails_after(lambda x: function(x + 0), _output)


@pytest.mark.parametrize("function", [F.silu, F.hardtanh, F.mish], ids=["silu", "hardtanh", "mish"])
def test_in_place_it_saves_a_copy_of_its_input(function: Callable[..., Tensor]) -> None:
    assert not _backward_fails_after(lambda x: function(x + 0, inplace=True), _output)


def test_the_write_that_comes_before_the_save_is_harmless() -> None:
    y = torch.ones(3, requires_grad=True) * 2
    y.add_(1)
    (y**2).sum().backward()


def test_dividing_by_a_norm_in_place_overwrites_what_the_norm_saved() -> None:
    x = torch.ones(3, requires_grad=True) * 1.0
    norm = x.pow(2).sum().sqrt()
    x /= norm
    with pytest.raises(RuntimeError, match=OVERWRITTEN):
        x.sum().backward()


@pytest.mark.parametrize("module", [torch.nn.Conv1d(2, 2, 1), torch.nn.Linear(4, 2)], ids=["conv", "linear"])
def test_a_layer_that_learns_saves_a_batch_that_is_in_no_graph(module: Module) -> None:
    batch = torch.ones(2, 4)
    loss = module(batch).sum()
    batch.mul_(2)
    with pytest.raises(RuntimeError, match=OVERWRITTEN):
        loss.backward()


def test_a_squared_error_saves_its_target() -> None:
    target = torch.ones(3)
    loss = F.mse_loss(torch.zeros(3, requires_grad=True) * 1, target)
    target.mul_(2)
    with pytest.raises(RuntimeError, match=OVERWRITTEN):
        loss.backward()


@pytest.mark.parametrize("edit", ["an index", "a mask"])
def test_an_index_or_a_mask_is_saved_although_it_is_in_no_graph(edit: str) -> None:
    table = torch.ones(3, requires_grad=True)
    chosen = torch.tensor([0, 1]) if edit == "an index" else torch.tensor([True, False, True])
    loss = (table[chosen] if edit == "an index" else (table * 1).masked_fill(chosen, 0)).sum()
    chosen.zero_()
    with pytest.raises(RuntimeError, match=OVERWRITTEN):
        loss.backward()


def test_backward_without_recording_walks_what_was_recorded() -> None:
    x = torch.ones(2, requires_grad=True)
    loss = (x * 2).sum()
    with torch.no_grad():
        loss.backward()
    assert x.grad is not None


def test_a_second_backward_fails_where_a_number_was_saved_and_not_where_nothing_was() -> None:
    x = torch.ones(2, requires_grad=True)
    scaled, total = (x * 2).sum(), (x + 1).sum()
    scaled.backward()
    total.backward()
    total.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        scaled.backward()


def test_one_element_is_enough_for_a_backward_of_what_is_no_scalar() -> None:
    (torch.ones(1, requires_grad=True) * 2).backward()


def test_a_write_through_data_is_silent_and_one_through_detach_is_not() -> None:
    leaf = torch.ones(3, requires_grad=True)
    y = leaf.exp()
    y.data.mul_(0)
    y.sum().backward()
    assert leaf.grad is not None and leaf.grad.eq(0).all()
    z = leaf.exp()
    z.detach().mul_(0)
    with pytest.raises(RuntimeError, match=OVERWRITTEN):
        z.sum().backward()


def test_what_is_written_at_once_and_what_is_refused_at_once() -> None:
    leaf = torch.ones(4, requires_grad=True)
    (leaf * 1)[:2].add_(1)
    for refused in ((leaf * 1).chunk(2)[0], leaf, leaf[:2]):
        with pytest.raises(RuntimeError):
            refused.add_(1)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        torch.ones(1).expand(3).add_(1)


def test_a_severed_loss_told_to_require_grad_trains_nothing() -> None:
    w = torch.ones(2, requires_grad=True)
    loss = (w * 2).sum().detach()
    loss.requires_grad_(True)
    loss.backward()
    assert w.grad is None
    result = w * 2
    result.requires_grad_()
    with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf variables"):
        result.requires_grad = False


def test_a_step_before_backward_fails_only_where_that_backward_needs_what_it_changed() -> None:
    w = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1)
    w.grad = torch.ones(2)
    for loss, fails in (((w * torch.ones(2)).sum(), False), ((w * w).sum(), True)):
        optimizer.step()
        with pytest.raises(RuntimeError, match=OVERWRITTEN) if fails else nullcontext():
            loss.backward()


@pytest.mark.parametrize(
    ("module", "batch", "fails"),
    [
        pytest.param(torch.nn.Conv1d(2, 2, 1), torch.ones(2, 2, 4), True, id="a convolution"),
        pytest.param(torch.nn.BatchNorm1d(4), torch.rand(3, 4), True, id="a batch norm"),
        pytest.param(torch.nn.LayerNorm(4), torch.rand(3, 4), True, id="a layer norm"),
        pytest.param(torch.nn.Linear(4, 2), torch.ones(3, 4), False, id="a linear layer"),
        pytest.param(torch.nn.Embedding(4, 2), torch.tensor([1, 2]), False, id="an embedding"),
    ],
)
def test_a_step_between_forward_and_backward_of_one_layer_on_data(
    module: Module, batch: Tensor, fails: bool
) -> None:
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    module(batch).sum().backward()
    loss = module(batch).sum()
    optimizer.step()
    with pytest.raises(RuntimeError, match=OVERWRITTEN) if fails else nullcontext():
        loss.backward()


def test_a_fused_step_raises_nothing_and_the_gradient_is_wrong() -> None:
    w = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.Adam([w], lr=0.5, fused=True)
    loss = (w * w).sum()
    w.grad = torch.ones(2)
    optimizer.step()
    optimizer.zero_grad()
    loss.backward()
    assert w.grad is not None and not torch.allclose(w.grad, torch.full((2,), 2.0))


def test_a_dropout_that_drops_nothing_returns_its_argument() -> None:
    x = torch.ones(3, requires_grad=True)
    kept = F.dropout(torch.relu(x), p=0.5, training=False)
    kept += 1
    with pytest.raises(RuntimeError, match=OVERWRITTEN):
        kept.sum().backward()
    dropped = F.dropout(torch.relu(x), p=0.5, training=True)
    dropped += 1
    dropped.sum().backward()


def test_a_copy_made_contiguous_may_be_written() -> None:
    turned = torch.relu(torch.ones(2, 3, requires_grad=True)).t().contiguous()
    turned += 1
    turned.sum().backward()


def test_rounding_gives_zeros_and_a_choice_gives_no_graph() -> None:
    x = torch.full((2,), 1.4, requires_grad=True)
    x.round().sum().backward()
    assert x.grad is not None and x.grad.eq(0).all()
    assert not x.argmax().requires_grad and not (x > 1).requires_grad
    with pytest.raises(RuntimeError, match="floating point"):
        torch.tensor([1], requires_grad=True)


def test_a_floor_division_says_that_it_requires_grad_and_has_no_derivative() -> None:
    quotient = torch.ones(2, requires_grad=True) // 2
    if quotient.requires_grad:
        with pytest.raises(RuntimeError):
            quotient.sum().backward()


def test_an_array_of_what_requires_grad_is_refused() -> None:
    with pytest.raises(RuntimeError, match="Can't call numpy"):
        torch.ones(2, requires_grad=True).numpy()


def test_what_was_made_in_inference_mode_can_not_be_saved() -> None:
    with torch.inference_mode():
        weight = torch.ones(2)
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        torch.ones(2, requires_grad=True) * weight


def test_an_optimizer_in_a_hook_of_backward_leaves_no_gradient() -> None:
    w = torch.ones(2, requires_grad=True)

    def clear(leaf: Tensor) -> None:
        leaf.grad = None

    w.register_post_accumulate_grad_hook(clear)
    (w * 2).sum().backward()
    assert w.grad is None


TURNED = """
layer = {layer}
h = nn.Linear(8, 8)(torch.randn(3, 5, 8)){turned}
h += {call}
h.sum().backward()
"""
FOLDING = {
    "nn.MultiheadAttention(8, 2)": "layer(h, h, h)[0]",
    "nn.LSTM(8, 8)": "layer(h)[0]",
    "nn.GRU(8, 8)": "layer(h)[0]",
    "nn.RNN(8, 8)": "layer(h)[0]",
    "nn.Bilinear(8, 8, 8)": "layer(h, h)",
    "nn.TransformerEncoderLayer(8, 2, 16)": "layer(h)",
}


@pytest.mark.torch
@pytest.mark.parametrize(("layer", "call"), FOLDING.items())
def test_a_layer_that_folds_what_is_turned_keeps_a_copy_of_it(layer: str, call: str) -> None:
    turned = TURNED.format(layer=layer, call=call, turned=".transpose(0, 1)")
    exec(whole(turned), {})
    assert listed(turned) == set()
    straight = TURNED.format(layer=layer, call=call, turned="")
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        exec(whole(straight), {})
    assert listed(straight) == {"inplace_overwrites_saved"}
