"""What holds on one of many ways is said of that way, and of no other."""

from __future__ import annotations

from itertools import chain

import pytest
from short import analysis, kinds

from gradfix.defects.records import NonScalar

LIVE = [
    "F.mse_loss(h, x)",
    "F.l1_loss(h, x)",
    "F.smooth_l1_loss(h, x)",
    "F.huber_loss(h, x)",
    "(h - x).pow(2).sum()",
]
DEAD = {
    "F.l1_loss(h.detach(), x)": "detached_loss_path",
    "torch.tensor(F.mse_loss(h, x).item())": "converted_loss_path",
    "h.argmax(-1).float().mean()": "non_differentiable_loss",
}
CHOSEN = """
import sys
mode = sys.argv[1]
net = nn.Linear(4, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.ones(10, 2, 4):
    opt.zero_grad()
    h = net(x)
    if mode == 'first':
        loss = h.mean()
{arms}
    else:
        loss = h.exp().mean()
    loss.backward()
    opt.step()
"""


def chosen(losses: list[str]) -> str:
    arms = ([f"    elif mode == 'm{i}':", f"        loss = {loss}"] for i, loss in enumerate(losses))
    return CHOSEN.format(arms="\n".join(chain.from_iterable(arms)))


@pytest.mark.parametrize("live", range(1, len(LIVE) + 1))
@pytest.mark.parametrize("dead", [1, 2, 3])
def test_each_arm_that_is_cut_off_is_told_with_the_test_that_leads_to_it(live: int, dead: int) -> None:
    found = analysis(chosen([*LIVE[:live], *list(DEAD)[:dead]])).defects
    told = {(one.kind, one.condition) for one in found}
    assert told == {(DEAD[loss], f"mode == 'm{live + i}'") for i, loss in enumerate(list(DEAD)[:dead])}


@pytest.mark.parametrize("live", range(1, len(LIVE) + 1))
def test_an_arm_that_isn_t_reduced_is_told_with_the_test_that_leads_to_it(live: int) -> None:
    (found,) = analysis(chosen([*LIVE[:live], "F.mse_loss(h, x, reduction='none')"])).defects
    assert (found.kind, found.condition) == ("non_scalar_backward", f"mode == 'm{live}'")


GRADIENT = """
w = torch.ones(3, requires_grad=True)
for _ in range(9):
    (w * 2).sum().backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
    {clear}
"""
CLEARED = [
    "w.grad.copy_(torch.zeros(3))",
    "del w.grad",
    "nn.init.zeros_(w.grad)",
    "torch._foreach_zero_([w.grad])",
    "torch.mul(w.grad, 0, out=w.grad)",
    "w.grad -= w.grad",
    "w.grad.masked_fill_(torch.ones(3, dtype=torch.bool), 0)",
]
NOT_CLEARED = ["w.grad.mul_(0.5)", "w.grad += 1", "w.grad.clamp_(-1, 1)", "w.grad.div_(2)", "pass"]


@pytest.mark.parametrize("clear", CLEARED)
def test_a_gradient_that_is_written_over_may_be_cleared(clear: str) -> None:
    assert "missing_zero_grad" not in listed(GRADIENT.format(clear=clear))


@pytest.mark.parametrize("clear", NOT_CLEARED)
def test_a_gradient_of_which_something_is_left_is_not_cleared(clear: str) -> None:
    assert listed(GRADIENT.format(clear=clear)) == {"missing_zero_grad"}


def listed(body: str) -> set[str]:
    return {one.kind for one in analysis(body).defects if one.certainty != "suspect"}


ASKED = """
def penalty(net, x):
    x = x.clone().requires_grad_(True)
    out = net(x)
    {guard}
    return torch.autograd.grad(out.sum(), x)[0].norm()
net = nn.Linear(4, 1)
with torch.no_grad():
    penalty(net, torch.ones(2, 4))
"""


@pytest.mark.parametrize("guard", ["if out.grad_fn is None: return None", "if not out.grad_fn: return None"])
def test_nobody_comes_past_a_test_of_what_made_a_result(guard: str) -> None:
    assert kinds(ASKED.format(guard=guard)) == set()
    assert kinds(ASKED.format(guard="pass")) == {"forward_in_no_grad"}


MADE = """
w = torch.ones(3, requires_grad=True)
y = {value}
if y.grad_fn {test}:
    y.add_(1)
    y.sum().backward()
"""


@pytest.mark.parametrize(
    ("value", "test", "told"),
    [
        ("w.exp()", "is not None", {"inplace_overwrites_saved"}),
        ("w.exp()", "is None", set()),
        ("w.detach().exp()", "is not None", set()),
    ],
)
def test_whether_something_made_a_result_is_known(value: str, test: str, told: set[str]) -> None:
    assert kinds(MADE.format(value=value, test=test)) == told


BY_HAND = """
import pytorch_lightning as pl
class Model(pl.LightningModule):
    def __init__(self, gan: bool = False):
        super().__init__()
        {says}
        self.gan, self.net = gan, nn.Linear(4, 4)
    {also}
    def training_step(self, batch, batch_idx):
        return self.step(batch)
    def step(self, batch):
        optimizer = self.optimizers()
        loss = (self.net(batch) - batch).pow(2).mean()
        optimizer.zero_grad()
        self.manual_backward(loss)
        optimizer.step()
        return loss
    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())
"""
PROPERTY = "automatic_optimization = property(lambda self: not self.gan)"


@pytest.mark.parametrize(
    ("says", "also", "told"),
    [
        ("self.automatic_optimization = False", "", set()),
        ("self.automatic_optimization = not gan", "", set()),
        ("if gan: self.automatic_optimization = False", "", set()),
        ("pass", PROPERTY, set()),
        ("pass", "", {"backward_twice"}),
    ],
)
def test_what_is_returned_is_backpropagated_where_that_is_automatic(
    says: str, also: str, told: set[str]
) -> None:
    assert kinds(BY_HAND.format(says=says, also=also)) == told


CLIPPED = """
net = nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")
for x in torch.ones(3, 4, 2):
    optimizer.zero_grad()
    scaler.scale(net(x).sum()).backward()
    nn.utils.clip_grad_norm_(net.parameters(), {limit})
    scaler.step(optimizer)
    scaler.update()
"""


@pytest.mark.parametrize(
    ("limit", "told"), [("1.0", {"clip_before_unscale"}), ("1.0 * scaler.get_scale()", set())]
)
def test_a_limit_that_is_scaled_is_for_gradients_that_are(limit: str, told: set[str]) -> None:
    assert kinds(CLIPPED.format(limit=limit)) == told


SPOILT = """
y = torch.ones(3, requires_grad=True).exp()
def spoil():
    y.mul_(2)
    yield 1
{call}
y.sum().backward()
"""


@pytest.mark.parametrize(
    ("call", "told"), [("spoil()", set()), ("list(spoil())", {"inplace_overwrites_saved"})]
)
def test_a_generator_that_nobody_has_never_runs(call: str, told: set[str]) -> None:
    assert kinds(SPOILT.format(call=call)) == told


def test_what_is_not_one_number_is_named_by_the_words_that_say_it() -> None:
    body = "x = torch.ones(3, requires_grad=True)\ntorch.autograd.grad(outputs=x * 2, inputs=x)\n"
    (found,) = analysis(body).defects
    assert found.told(NonScalar).root == "x * 2"
