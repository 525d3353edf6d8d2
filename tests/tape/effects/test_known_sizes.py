"""Sizes that a program says itself: of states, of what is made like another, of what is turned in place."""

from __future__ import annotations

import pytest
from short import HEAD, kinds

LOSS = "non_scalar_backward"
SIZES = {
    "an LSTM's state": ("_, (h, c) = nn.LSTM(3, 4)(torch.ones(5, 2, 3))", "h", (1, 2, 4)),
    "an LSTM's cell": ("_, (h, c) = nn.LSTM(3, 4)(torch.ones(5, 2, 3))", "c", (1, 2, 4)),
    "a GRU's state": ("_, h = nn.GRU(3, 4, num_layers=2)(torch.ones(5, 2, 3))", "h", (2, 2, 4)),
    "a state of both directions": (
        "_, h = nn.GRU(3, 4, bidirectional=True)(torch.ones(5, 2, 3))",
        "h",
        (2, 2, 4),
    ),
    "what both directions give": (
        "y, _ = nn.RNN(3, 4, bidirectional=True)(torch.ones(5, 2, 3))",
        "y",
        (5, 2, 8),
    ),
    "a state with the batch first": (
        "_, h = nn.GRU(3, 4, batch_first=True)(torch.ones(5, 2, 3))",
        "h",
        (1, 5, 4),
    ),
    "a state without a batch": ("_, h = nn.GRU(3, 4)(torch.ones(5, 3))", "h", (1, 4)),
    "a state of one number": ("_, h = nn.GRU(3, 1)(torch.ones(5, 3))", "h", (1, 1)),
    "zeros like another": ("h = w.new_zeros(2, 3) + w", "h", (2, 3)),
    "ones of a size that is a tuple": ("h = w * w.new_ones((4, 1))", "h", (4, 1)),
    "one that is filled": ("h = w * w.new_full((1, 1), 2.0)", "h", (1, 1)),
    "scaled by a root": ("h = w.expand(4) / math.sqrt(4)", "h", (4,)),
    "squeezed in place": ("h = w.expand(1, 3) * 2\nh.squeeze_(0)", "h", (3,)),
    "an element of that": ("h = w.expand(1, 3) * 2\nh.squeeze_(0)\nh = h[0]", "h", ()),
    "turned in place": ("h = w.expand(1, 3) * 2\nh.t_()\nh = h[0]", "h", (1,)),
    "an array that is written out": ("h = w * torch.from_numpy(np.array([[3.0, -1.0]]))", "h", (1, 2)),
    "an array of one number": ("h = w * torch.tensor(np.array([3.0]))", "h", (1,)),
    "an array of zeros": ("h = w + torch.FloatTensor(np.zeros((2, 3)))", "h", (2, 3)),
    "an array that is drawn": ("h = w * torch.from_numpy(np.random.randn(4))", "h", (4,)),
    "one that is drawn by size": ("h = w * torch.tensor(np.random.normal(0, 1, size=(2, 1)))", "h", (2, 1)),
    "an array that counts": ("h = w * torch.from_numpy(np.arange(3))", "h", (3,)),
    "points of a line": ("h = w * torch.from_numpy(np.linspace(0, 1))", "h", (50,)),
    "rows in another order": ("h = w.expand(6, 2)[torch.tensor(np.random.permutation(6))]", "h", (6, 2)),
    "one row by an array": ("h = w.expand(6)[torch.tensor(np.random.permutation(1))]", "h", (1,)),
    "ones among zeros": ("h = w * F.one_hot(torch.zeros(2).long(), 3)", "h", (2, 3)),
    "one among one": ("h = w * F.one_hot(torch.zeros(1).long(), 1)", "h", (1, 1)),
    "as many as the index says": ("h = w * F.one_hot(torch.zeros(1).long())", "h", (1, 1)),
    "one more dimension in place": ("h = w.expand(3) * 2\nh.unsqueeze_(0)\nh = h[0]", "h", (3,)),
}
MADE = "import math\nimport numpy as np\nw = torch.ones(1, requires_grad=True)\n"


@pytest.mark.parametrize(("made", "name", "sizes"), SIZES.values(), ids=SIZES)
def test_backward_wants_one_number_of(made: str, name: str, sizes: tuple[int, ...]) -> None:
    found = kinds(f"{MADE}{made}\n{name}.backward()\n")
    assert (LOSS in found) is any(size > 1 for size in sizes)


@pytest.mark.torch
@pytest.mark.parametrize(("made", "name", "sizes"), SIZES.values(), ids=SIZES)
def test_torch_gives_these_sizes(made: str, name: str, sizes: tuple[int, ...]) -> None:
    names: dict[str, object] = {}
    exec(HEAD + MADE + made, names)
    assert tuple(names[name].shape) == sizes  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(
            "h = w.expand(1, 3) * 2\nif flag:\n    h.squeeze_(0)\nh[0].backward()", id="turned perhaps"
        ),
        pytest.param("h = w * w.new_zeros(sizes)\nh[0].backward()", id="as large as somebody says"),
        pytest.param("h = w * math.factorial(9999)\nh.backward()", id="a number that is too large"),
        pytest.param("h = w * torch.tensor(np.zeros(sizes))\nh.backward()", id="an array of sizes not known"),
        pytest.param("h = w * torch.tensor(np.zeros(3).sum())\nh.backward()", id="a number of an array"),
        pytest.param(
            "a = np.zeros(1)\nh = w * torch.from_numpy(a)\nh.backward()", id="an array of one number"
        ),
        pytest.param("h = w / math.sqrt(-1)\nh.backward()", id="no number"),
        pytest.param(
            "_, h = nn.GRU(3, width)(torch.ones(5, 3))\nh.backward()", id="as wide as somebody says"
        ),
        pytest.param("_, h = nn.GRU(3, 1)(unknown(w))\nh.backward()", id="one wide, of what isn't known"),
    ],
)
def test_nothing_is_said_where_it_is(body: str) -> None:
    assert kinds("from elsewhere import flag, sizes, unknown, width\n" + MADE + body) == set()


def test_a_state_of_what_is_not_known_is_as_wide_as_it_was_built() -> None:
    body = "from elsewhere import unknown\n_, h = nn.GRU(3, 4)(unknown())\nh.backward()\n"
    assert kinds(body) == {LOSS}


UNREDUCED = """
def learn(x, y, far):
    out = nn.Linear(3, 3)(x)
    loss = F.mse_loss(out, y, reduction="none"){more}
    loss.backward()
"""


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        pytest.param("", True, id="as it is"),
        pytest.param(" * 0.5 + F.l1_loss(out, y)", True, id="with a term that is one number"),
        pytest.param("\n    loss += F.l1_loss(out, y)", True, id="with one added in place"),
        pytest.param("\n    loss = loss + (F.l1_loss(out, y) if far else 0)", True, id="with one or none"),
        pytest.param("\n    loss = loss.sum() + F.l1_loss(out, y)", False, id="summed before"),
        pytest.param("\n    loss = unknown(loss) + F.l1_loss(out, y)", False, id="perhaps reduced"),
    ],
)
def test_what_is_made_of_a_loss_that_is_not_reduced_is_not_either(more: str, expected: bool) -> None:
    assert (LOSS in kinds(UNREDUCED.format(more=more))) is expected
