"""`tensor.data = other` changes what keeps the very tensor, neither a view of it nor a result."""

from __future__ import annotations

import pytest
from short import analysis, listed

from gradfix.tape.machine.recording import HOLDING

CALLS = {
    "addcmul": "torch.addcmul(x, w, w)",
    "bmm": "torch.bmm(x[None], w)",
    "conv1d": "F.conv1d(x[None], w)",
    "conv2d": "F.conv2d(x[None, None], w)",
    "conv3d": "F.conv3d(x[None, None, None], w)",
    "cos": "w.cos()",
    "div": "x / w",
    "dot": "torch.dot(x, w)",
    "log": "w.log()",
    "mm": "x.mm(w)",
    "mse_loss": "F.mse_loss(w, x)",
    "mul": "x * w",
    "mv": "w.mv(x)",
    "pow": "w ** 3",
    "sin": "w.sin()",
    "square": "w.square()",
}
SHAPES = {
    "bmm": ((4, 4), (1, 4, 4)),
    "conv1d": ((4, 4), (4, 4, 2)),
    "conv2d": ((4, 4), (4, 1, 2, 2)),
    "conv3d": ((4, 4), (4, 1, 1, 2, 2)),
    "dot": ((4,), (4,)),
    "mv": ((4,), (4, 4)),
}
EXCHANGED = """
x = torch.rand(4, 4, requires_grad=True)
w = nn.Parameter(torch.rand(4, 4))
y = {made}
w.data = w.data * 2
y.sum().backward()
"""


def test_each_that_is_said_to_keep_what_it_is_given_is_tried() -> None:
    assert set(CALLS) == HOLDING


@pytest.mark.torch
@pytest.mark.parametrize("op", sorted(HOLDING))
def test_torch_keeps_the_very_tensor(op: str) -> None:
    torch = pytest.importorskip("torch")
    shapes = SHAPES.get(op, ((4, 4), (4, 4)))
    x = (torch.rand(shapes[0]) + 0.5).requires_grad_()
    w = (torch.rand(shapes[1]) + 0.5).requires_grad_()
    old, new = w.data, w.data * 2 + 0.1

    def gradients(before: object, after: object) -> list[object]:
        x.grad = w.grad = None
        w.data = before
        y = eval(CALLS[op], {"torch": torch, "F": torch.nn.functional, "x": x, "w": w})
        w.data = after
        y.sum().backward()
        return [one.grad for one in (x, w) if one.grad is not None]

    exchanged, fresh, kept = gradients(old, new), gradients(new, new), gradients(old, old)
    assert all(map(torch.allclose, exchanged, fresh))
    assert not all(map(torch.allclose, exchanged, kept))


@pytest.mark.parametrize("made", ["x * w", "w ** 2", "x.mm(w)"])
def test_what_was_kept_is_changed(made: str) -> None:
    assert {one.kind for one in analysis(EXCHANGED.format(made=made)).defects} == {"write_through_data"}


@pytest.mark.parametrize("made", ["F.linear(x, w)", "x * w.t()", "w.exp()", "x * w[:2, :2]"])
def test_views_and_results_keep_the_memory_before(made: str) -> None:
    assert not analysis(EXCHANGED.format(made=made)).defects


def test_a_result_keeps_its_memory_when_it_is_given_other() -> None:
    body = "w = nn.Parameter(torch.rand(4))\nh = w.exp()\nh.data = h.data * 2\nh.sum().backward()\n"
    assert not analysis(body).defects


QUANTISED = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)
    def forward(self, x):
        with torch.inference_mode():
            kept = self.layer.weight.data
            self.layer.weight.data = kept.sign()
            rough = self.layer(x)
            {back}
        return self.layer(x + 0 * self.layer(x)) + x
net = Net()
net(torch.randn(4, 3)).sum().backward()
"""


@pytest.mark.parametrize(
    ("back", "expected"), [("self.layer.weight.data = kept", set()), ("pass", {"forward_in_no_grad"})]
)
def test_what_is_put_back_in_inference_mode_is_ordinary_again(back: str, expected: set[str]) -> None:
    assert listed(QUANTISED.format(back=back)) == expected
