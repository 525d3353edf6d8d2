"""What torch does that people, and earlier versions of the tape, would not have guessed."""

from __future__ import annotations

import pytest

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
