"""Safe means safe: the definition with each way to fall short of it, the fixes that once did, and a slice of
the campaign."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import pytest

pytest.importorskip("torch")

from oracle.patience import HungError, patience
from safety.campaign import Tally, hides, several, uses
from safety.forks import forked
from safety.judging import STEPS, WRONG, Said, judged
from safety.playing import play, warm
from safety.weighing import Broken, Circumstances, said, under, weighed

from gradfix.outcome import Outcome
from gradfix.rule import Safety

pytestmark = pytest.mark.torch

HEAD = """import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
x = torch.randn(8, 4)
"""
OVERWRITTEN = """w = torch.randn(4, requires_grad=True)
y = w.exp()
y += 1
y.sum().backward()
"""
CUT = """encoder, head = nn.Linear(4, 4), nn.Linear(4, 1)
opt = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
for _ in range(2):
    loss = head(encoder(x).detach()).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
STALE = """one, two = nn.Linear(4, 1), nn.Linear(4, 1)
opt = torch.optim.SGD(one.parameters(), lr=0.1)
other = torch.optim.SGD(two.parameters(), lr=0.1)
for _ in range(3):
    (one(x) + two(x)).pow(2).mean().backward()
    opt.step()
    other.zero_grad()
"""
ROWS_SAVED = """w = torch.randn(4, requires_grad=True)
returns = torch.rand(4)
loss = torch.stack([a * b for a, b in zip(w, returns)]).sum()
returns += 1
loss.backward()
"""
MIXED = """fc, gate = nn.Linear(4, 4), nn.Linear(4, 4)
h = fc(x)
with torch.inference_mode():
    y = fc(h)
(gate(h) * y).sum().backward()
"""
ARGUMENT = """scale = nn.Parameter(torch.ones(4))
def scaled(x):
    for _ in range(2):
        x += x * scale
    return x
loss = scaled(x).sum() + 0 * x.size(0)
loss.backward()
x = torch.zeros(2)
print(x.sum())
"""
ENDED = """one = nn.Linear(4, 1)
opt = torch.optim.SGD(one.parameters(), lr=0.1)
for _ in range(2):
    opt.zero_grad()
    loss = one(x).pow(2).mean()
    opt.step()
    loss.backward()
    loss.backward()
"""
BY_HAND = """    loss.backward()
    for p in model.parameters():
        p.grad.add_(1)
"""
MOVED_BY_HAND = f"""model = nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    loss = model(x).mean() - model(2 * x).mean()
    opt.zero_grad()
    opt.step()
{BY_HAND}"""
WRITTEN_UNSEEN = """w, c = torch.ones(4, requires_grad=True), torch.ones(4)
y = (w * c).exp()
y += 1
c.data.mul_(2)
y.sum().backward()
"""
SUMMED_LATE = """w = torch.randn(2, requires_grad=True)
loss = w * 2
loss = loss + 0.0
loss.backward()
"""
GRADED = """model, features = nn.Linear(4, 1), nn.Linear(4, 4)(x)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
loss = F.mse_loss(model(features), x[:, :1], reduction="none")
seen = torch.autograd.grad(loss, features, retain_graph=True)[0]
loss.backward()
print(loss.item())
"""


SHARP = """model = nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    opt.zero_grad()
    model(x).pow(2).mean().backward()
    moved = []
    with torch.no_grad():
        for p in model.parameters():
            step = 0.05 * p.grad
            p.add_(step)
            moved.append((p, step))
    opt.zero_grad()
    model(x).pow(2).mean().backward()
    with torch.no_grad():
        for p, step in moved:
            p.sub_(step)
    opt.zero_grad()
    opt.step()
"""
SWITCHED = """w, v = torch.randn(4, requires_grad=True), torch.randn(4, requires_grad=True)
y = w.expand(2, 4).pow(2)
torch.set_grad_enabled(False)
z, _ = y
torch.set_grad_enabled(True)
F.mse_loss(z, v).backward()
"""
CANCELLED = """w = nn.Parameter(torch.ones(1))
for _ in range(2):
    (w ** 2).sum().backward()
    with torch.no_grad():
        w.copy_(w - w.grad)
"""
MOVED_BACK = """w = nn.Parameter(torch.zeros(1))
for _ in range(2):
    with torch.no_grad():
        w.data.zero_()
    w.sum().backward()
    with torch.no_grad():
        w.copy_(w - w.grad)
"""
WRITTEN_LEAF = """w, c = torch.ones(4, requires_grad=True), torch.ones(4)
h = (c * 2).requires_grad_()
y = h * h
with torch.no_grad():
    h.mul_(0.5)
(w - y).pow(2).mean().backward()
"""
DRIFTED = """w = nn.Parameter(torch.zeros(1))
opt = torch.optim.SGD([w], lr=1.0)
kept = []
def turn(factor):
    kept.append(1e6 * w.detach())
    loss = (w * factor).sum()
    loss.backward()
    opt.zero_grad()
    opt.step()
turn(1e-8)
turn(1e-8)
"""
PENALISED = """net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(2):
    mixed = x.clone().requires_grad_(True)
    grads = torch.autograd.grad(net(mixed).sum(), mixed)[0]
    loss = net(x).mean() + (grads.norm(2, dim=1) - 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
CLEARED_LATE = """net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1, weight_decay=0.1)
for _ in range(2):
    loss = net(x).pow(2).mean()
    opt.step()
    loss.backward()
    for p in net.parameters():
        p.grad.zero_()
"""
CUT_AND_EARLY = """net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
loss = net(x).detach().pow(2).mean()
opt.step()
loss.backward()
"""
CUT_IN_PLACE = CUT.replace("head(encoder(x).detach())", "head(encoder(x).mul(2).detach_())")


@pytest.fixture(scope="module", autouse=True)
def _warm() -> None:
    """Not while tests are collected: of several processes that do so, one runs them."""
    warm()


def verdict(before: str, after: str, which: int = 0) -> Said:
    """What is said of some text in place of the rewrite of what gradfix finds first."""
    finding = said(HEAD + before).findings[which]
    one, other = play(HEAD + before, [], cuts=True), play(HEAD + after, [])
    hurt = one.error and finding.rule not in STEPS
    spared = play(HEAD + before, [], cuts=True, spared="counted") if hurt else None
    return judged(finding, HEAD + before, one, other, spared)


@pytest.mark.parametrize(
    ("before", "after", "word"),
    [
        pytest.param(OVERWRITTEN, ("y += 1", "y = y + 1"), "right", id="a write out of place"),
        pytest.param(OVERWRITTEN, ("y += 1", "y.add_(1)"), "left", id="the same write"),
        pytest.param(OVERWRITTEN, ("y += 1", "y = y + 2"), "value", id="another value"),
        pytest.param(OVERWRITTEN, ("y += 1", "y = y.numpy()"), "breaks", id="another error"),
        pytest.param(
            OVERWRITTEN, ("y += 1", "y = y + 1 + 0 * w - (0.5 * w - 0.5 * w.detach())"), "other gradient",
            id="another gradient",
        ),
        pytest.param(CUT, (".detach()", ""), "right", id="a cut taken out"),
        pytest.param(CUT, (".detach()", ".data"), "left", id="another cut in its place"),
        pytest.param(CUT, (".pow(2)", ".abs()"), "value", id="another loss"),
        pytest.param(CUT, ("    loss.b", "    x = 2 * x\n    loss.b"), "changed", id="a state that moves"),
        pytest.param(STALE, ("    (one", "    opt.zero_grad()\n    (one"), "right", id="a clearing"),
        pytest.param(
            STALE, ("    (one", "    opt.zero_grad()\n    two.weight.data.mul_(2)\n    (one"), "changed",
            id="a parameter beside",
        ),
        pytest.param(STALE, ("    opt.step()", "    pass"), "changed", id="no step"),
        pytest.param(
            ROWS_SAVED, ("returns += 1", "returns = returns + 1"), "right", id="a write that rows have saved"
        ),
        pytest.param(
            ROWS_SAVED, ("returns += 1", "returns = returns + 1\nw.register_hook(lambda g: g * 2)"),
            "other gradient", id="a write that rows have saved, and another gradient",
        ),
        pytest.param(
            MIXED, ("with torch.inference_mode():\n    y", "y"), "right",
            id="more gradient where some arrived",
        ),
        pytest.param(
            ARGUMENT, ("x += x", "x = x + x"), "right", id="an argument that none reads again"
        ),
        pytest.param(
            ARGUMENT.replace("x = torch.z", "y = torch.z"), ("x += x", "x = x + x"), "changed",
            id="an argument that is read again",
        ),
        pytest.param(
            MOVED_BY_HAND, ("    opt.step()\n" + BY_HAND, BY_HAND + "    opt.step()\n"), "right",
            id="a gradient of zeros that was moved by hand",
        ),
        pytest.param(
            WRITTEN_UNSEEN, ("y += 1", "y = y + 1"), "right", id="a write besides that nothing counts"
        ),
        pytest.param(
            SUMMED_LATE, ("loss + 0.0", "(loss + 0.0).sum()"), "right", id="a loss that nothing was added to"
        ),
        pytest.param(
            SHARP, ("    opt.zero_grad()\n    opt.step()", "    opt.step()"), "right",
            id="a gradient that was cleared when what was moved by hand had been moved back",
        ),
        pytest.param(
            SWITCHED, ("torch.set_grad_enabled(False)\n", ""), "right", id="a mode that was switched off"
        ),
        pytest.param(CUT_IN_PLACE, (".detach_()", ""), "right", id="a cut made in place"),
        pytest.param(
            CUT_AND_EARLY,
            (
                ".detach().pow(2).mean()\nopt.step()\nloss.backward()",
                ".pow(2).mean()\nloss.backward()\nopt.step()",
            ),
            "right", id="a cut taken out and a step in its place",
        ),
        pytest.param(
            CANCELLED, ("w.grad)\n", "w.grad)\n        w.grad = None\n"), "right",
            id="gradients that add up to nothing",
        ),
        pytest.param(
            MOVED_BACK, ("w.grad)\n", "w.grad)\n        w.grad = None\n"), "right",
            id="a leaf that is put back before the next backward",
        ),
        pytest.param(
            WRITTEN_LEAF,
            (
                "with torch.no_grad():\n    h.mul_(0.5)\n(w - y).pow(2).mean().backward()\n",
                "(w - y).pow(2).mean().backward()\nwith torch.no_grad():\n    h.mul_(0.5)\n",
            ),
            "right", id="a leaf that is written behind the backward that reaches it first",
        ),
        pytest.param(
            DRIFTED,
            ("    loss.backward()\n    opt.zero_grad()", "    opt.zero_grad()\n    loss.backward()"),
            "right", id="a value that shows a step too small to be seen",
        ),
        pytest.param(
            PENALISED, (", mixed)[0]", ", mixed, create_graph=True)[0]"), "right",
            id="a gradient that is given a graph",
        ),
        pytest.param(
            CLEARED_LATE,
            (CLEARED_LATE[CLEARED_LATE.index("    opt.step") :], """    loss.backward()
    opt.step()
    for p in net.parameters():
        p.grad.zero_()
"""), "right", id="a step before what clears",
        ),
        pytest.param(
            CLEARED_LATE, ("    opt.step()\n", ""), "changed", id="no step at all before what clears",
        ),
        pytest.param(
            CLEARED_LATE,
            (CLEARED_LATE[CLEARED_LATE.index("    opt.step") :], """    loss.backward()
    for p in net.parameters():
        p.grad.zero_()
    opt.step()
"""), "left", id="a step behind what clears",
        ),
        pytest.param(
            ENDED,
            ("    opt.step()\n    loss.backward()", "    loss.backward(retain_graph=True)\n    opt.step()"),
            "undecided", id="an end before anything was erased",
        ),
    ],
)  # fmt: skip
def test_a_rewrite_is_held_to_what_safe_means(before: str, after: tuple[str, str], word: str) -> None:
    assert after[0] in before
    found = forked(partial(verdict, before, before.replace(*after)))
    assert found is not None
    assert found.verdict == word, found


def test_one_number_is_what_each_who_differentiates_a_loss_asked_for() -> None:
    found = forked(partial(verdict, GRADED, GRADED.replace('="none")', '="mean")'), -1))
    assert found is not None
    assert found.verdict == "right", found


SHOWN = """one, two = nn.Linear(4, 1), nn.Linear(4, 1)
opt = torch.optim.SGD([*one.parameters(), *two.parameters()], lr=0.1)
for _ in range(2):
    opt.zero_grad()
    loss = one(x).pow(2).mean().item()
    loss = loss + 0.5 * (two.weight - two.weight.detach()).pow(2).sum()
    loss.backward()
    opt.step()
"""


def test_a_number_and_the_tensor_that_it_was_are_one_value() -> None:
    found = forked(partial(verdict, SHOWN, SHOWN.replace(".item()", "")))
    assert found is not None
    assert found.verdict == "right", found


ONE_ELEMENT = """one = nn.Linear(4, 1)
opt = torch.optim.SGD(one.parameters(), lr=0.1)
for _ in range(2):
    opt.zero_grad()
    score = one(x[:1]).item()
    loss = score * 2 + one.bias.sum()
    loss.{end}
    opt.step()
"""


@pytest.mark.parametrize(
    ("after", "word"), [("backward()", "right"), ("expand(2, 1).sum().backward()", "changed")]
)
def test_the_number_of_a_matrix_of_one_element_is_its_value(after: str, word: str) -> None:
    text = ONE_ELEMENT.format(end="backward()")
    found = forked(partial(verdict, text, ONE_ELEMENT.format(end=after).replace(".item()", "")))
    assert found is not None
    assert found.verdict == word, found


CUT_BY_NAME = """w, v = (torch.randn(3, requires_grad=True) for _ in range(2))
d = torch.autograd.Variable(w)
(v - d).sum().backward()
"""


def test_who_makes_a_variable_of_a_tensor_has_cut_it_off() -> None:
    found = forked(partial(verdict, CUT_BY_NAME, CUT_BY_NAME.replace("torch.autograd.Variable(w)", "w")))
    assert found is not None
    assert found.verdict == "right", found


ACTOR_CRITIC = """actor, critic = nn.Linear(4, 2), nn.Linear(4, 1)
opt_a = torch.optim.SGD(actor.parameters(), lr=0.1)
opt_c = torch.optim.SGD(critic.parameters(), lr=0.1)
reward = torch.randn(8, 1)
for _ in range(2):
    advantage = reward - critic(x)
    log_prob = actor(x).log_softmax(1)[:, :1]
    value_loss = advantage.pow(2).mean()
    policy_loss = -(log_prob * advantage).mean()
    opt_c.zero_grad()
    value_loss.backward()
    opt_c.step()
    opt_a.zero_grad()
    policy_loss.backward()
    opt_a.step()
"""
TEMPORAL = """critic = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.SGD(critic.parameters(), lr=0.1)
following, reward = torch.randn(8, 4), torch.randn(8, 1)
for _ in range(3):
    with torch.no_grad():
        value = critic(x)
        target = reward + 0.9 * critic(following)
    loss = F.mse_loss(value, target)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
TEMPORAL_KEPT = (
    "    value = critic(x)\n    with torch.no_grad():\n        target = reward + 0.9 * critic(following)\n"
)
INFERRED = TEMPORAL.replace("        value = critic(x)\n", "").replace(
    "    loss", "    value = critic(x)\n    loss"
)
INFERRED = INFERRED.replace("no_grad", "inference_mode")
QUANTISED = """encoder, book, decoder = nn.Linear(4, 3), nn.Embedding(5, 3), nn.Linear(3, 4)
opt = torch.optim.SGD([*encoder.parameters(), *book.parameters(), *decoder.parameters()], lr=0.1)
for _ in range(2):
    z = encoder(x)
    q = book(torch.cdist(z, book.weight).argmin(1))
    loss = F.mse_loss(decoder(q.detach()), x) + F.mse_loss(q, z.detach())
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WEIGHED = """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 4), nn.Linear(4, 4)
    def forward(self, x):
        return self.head(self.body(x).detach())
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(2):
    each = (net(x) - x).pow(2).mean(1)
    weights = torch.softmax(each.detach(), 0)
    loss = (weights * each).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
TWICE = """model = nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for half in x.split(4):
    loss = model(half).pow(2).mean()
    loss.backward()
    opt.step()
    extra = model(half * 2).abs().mean()
    extra.backward()
    opt.step()
"""
MATRIX = """w = nn.Parameter(torch.zeros(3, 4) + 0.3)
v = torch.ones(3, 4, requires_grad=True)
both = torch.stack([w, v])
loss = torch.tensor([w.sum().item(), v.sum().item()], requires_grad=True).sum()
loss.backward()
"""
CLIPPED = """model = nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    loss = model(x).pow(2).mean()
    opt.zero_grad()
    opt.step()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.1)
"""
CLOSURE = """model = nn.Linear(4, 1)
opt = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=2)
def closure():
    opt.zero_grad()
    loss = model(x).pow(2).mean()
    opt.step(closure)
    loss.backward()
    return loss
"""
SHORTCUT = """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = nn.SiLU(inplace=True)
        self.fc = nn.Linear(4, 4)
    def forward(self, x):
        h = self.fc(x).sigmoid()
        h = self.act(h) + h
        return h
Net()(x).sum().backward()
"""
ROWS = """w = torch.randn(3, 4, requires_grad=True)
y = w * 2
for row in y:
    row.tanh_()
y.sum().backward()
"""
AT_ONCE = """w = torch.rand(3, 4).requires_grad_()
v = w.detach().mul_(2)
(v * v).mean().backward()
"""
NUMBER = """w = torch.rand(3, 4).requires_grad_()
total = 0
for part in range(2):
    total = total + (x[:3] * w).mean().item()
final = total
total *= 2
final.backward()
"""
READ = """w = torch.randn(4, requires_grad=True)
h = (w * 2).exp()
h.retain_grad()
loss = h.sum()
h += 1
loss.backward()
seen = h.grad.norm()
"""
UNRECORDED = """w = torch.randn(3, 4, requires_grad=True)
z = w * 2
h = z * z
with torch.no_grad():
    z.mul_(2)
(h + z).sum().backward()
"""
HANDED = """model = nn.Linear(4, 1)
def step():
    loss = model(x).pow(2)
    loss.backward()
    return loss
loss = step()
print(loss.item())
"""
PARAMETERS = """model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
sched = torch.optim.lr_scheduler.StepLR(torch.optim.SGD(model.parameters(), lr=0.1), 1)
for _ in range(2):
    model(x).pow(2).mean().backward()
    sched.optimizer.step()
    sched.step()
"""
HALF = """net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    loss = net(x).pow(2).mean()
    opt.step()
    opt.zero_grad()
    loss.backward()
    opt.zero_grad()
"""
LISTED = """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(4, 4), nn.ReLU()]
        self.out = nn.Linear(4, 1)
    def forward(self, x):
        return self.out(self.layers(x))
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
net(x).sum().backward()
opt.step()
"""
FROZEN = """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.base, self.up = nn.Linear(4, 4), nn.Linear(4, 4)
        self.base.weight.requires_grad = False
    def forward(self, x):
        return self.up(self.base(x))
gen, dis = Net(), nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
opt_g = torch.optim.SGD(gen.parameters(), lr=0.1)
opt_d = torch.optim.SGD(dis.parameters(), lr=0.1)
for _ in range(2):
    loss_d = dis(gen(x).detach()).mean() - dis(x).mean()
    opt_d.zero_grad()
    loss_d.backward()
    opt_d.step()
    loss_g = -dis(gen(x)).mean()
    opt_g.zero_grad()
    opt_d.step()
    loss_g.backward()
    opt_g.step()
"""
CLEARED_SINCE = """gen = nn.Linear(4, 4)
dis = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
opt_g = torch.optim.SGD(gen.parameters(), lr=0.1)
opt_d = torch.optim.SGD(dis.parameters(), lr=0.1)
for _ in range(2):
    fake = gen(x)
    loss_d = F.softplus(-dis(x)).mean() + F.softplus(dis(fake)).mean()
    opt_d.step()
    loss_d.backward(retain_graph=True)
    opt_g.zero_grad()
    loss_g = F.softplus(-dis(fake)).mean()
    loss_g.backward()
    opt_g.step()
"""
HALVED = """model = nn.Linear(4, 1)
total = 0.0
for _ in range(2):
    for part in x.chunk(2):
        loss = F.l1_loss(model(part), part[:, :1], reduction="none")
        (loss / 2).backward()
    total += float(loss) * 2
"""
TOLD = """model, seen = nn.Linear(4, 1), []
def note(loss):
    seen.append(loss.item())
def objective():
    out = model(x)
    return out.pow(2) + 0.1 * out.abs(), out
for _ in range(2):
    loss, out = objective()
    loss.backward()
    note(loss)
"""
NOTED = """model, seen = nn.Linear(4, 1), []
def note(loss):
    seen.append(loss.item())
loss = model(x).pow(2).mean().item()
loss.backward()
note(loss)
"""
UNREADABLE = """w = torch.randn(3, 4, requires_grad=True)
h = w * 2
with torch.no_grad():
    v = h.t()
    v.clamp_(min=0)
v.zero_()
w.sum().backward()
"""
TWO_LOOPS = """a, b = torch.rand(3, 4, requires_grad=True), torch.rand(3, 4, requires_grad=True)
h = a * 2
for row in h:
    row /= 2
s = torch.sigmoid(b)
v = s.view(3, 4)
y = torch.matmul(b, v.T)
u = v
for row in u:
    row.neg_()
(y.sum() + h.sum()).backward()
"""
ON_ITS_LINE = """model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    loss = (model(x) * x[:, :1]).sum()
    loss.backward()
    (loss * 2).backward()
    opt.step()
"""
CLAMPED_UNSEEN = """w = torch.ones(4, requires_grad=True)
y = w.exp()
y.data.clamp_(-0.1, 0.1)
y[1:] -= y[0]
y.sum().backward()
"""
STEPPED = """model = nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
loss = model(x).pow(2).mean()
loss.backward()
opt.step()
loss.backward()
"""
STEPPED_BY_ANYBODY = """def train(model, loader, optimizer):
    for batch in loader:
        model.zero_grad()
        out = model(batch).requires_grad_()
        loss = torch.sum(out.sigmoid())
        loss.backward()
        optimizer.step()
        loss.backward()
deep = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
"""
SAVED_AND_WRONG = """teacher, student = nn.Linear(4, 2), nn.Linear(4, 2)
opt = torch.optim.SGD(student.parameters(), lr=0.1)
with torch.inference_mode():
    soft = teacher(x).softmax(1)
F.mse_loss(student(x), soft).backward()
x[0][0][0]
"""
FREED_LATER = """w, v = torch.zeros(4, requires_grad=True), torch.ones(4, requires_grad=True)
w[0].add_(1)
w.requires_grad = False
(w * v).sum().backward()
"""
NUMBERS = """w, c = nn.Parameter(torch.ones(4)), torch.ones(3)
losses = []
for _ in range(2):
    w[...] = 0.0
    loss = (c * c).mean()
    losses.append(loss.item())
final = sum(l for l in losses)
final.backward()
print(c.grad)
"""
RESTORED = SHARP.replace("    opt.zero_grad()\n    opt.step()\n", "").replace(
    "    opt.zero_grad()\n    model(x)", "    opt.zero_grad()\n    opt.step()\n    model(x)", 1
)
ADVERSARY = """fake, real = nn.Linear(4, 4), nn.Linear(4, 1)
opt = torch.optim.SGD(real.parameters(), lr=0.1)
other = torch.optim.SGD(fake.parameters(), lr=0.1)
for _ in range(2):
    real.zero_grad()
    opt.step()
    real(x).mean().backward()
    opt.step()
    other.zero_grad()
    real(fake(x)).mean().backward()
    other.step()
"""
WRITTEN_VIEW = """c = torch.randn(3, 4)
with torch.no_grad():
    v = c.view(12)
    v.add_(1)
loss = (c * c).mean()
loss.backward()
print(c.grad, v.sum())
"""
COPIED = """import copy
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
    def forward(self, x):
        return torch.rand(8, 4)
net = Net()
slow = copy.deepcopy(net)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
loss = F.mse_loss(net(x), slow(x).detach())
loss.backward()
opt.step()
"""
STEPPED_IN_A_CALL = """one, two = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1)), nn.Linear(4, 1)
opt = torch.optim.SGD(one.parameters(), lr=0.1)
second = torch.optim.SGD(two.parameters(), lr=0.1)
def learn():
    loss, other = (one(x) ** 2).mean(), two(x).mean()
    second.zero_grad()
    opt.step()
    other.backward()
    second.step()
    opt.zero_grad()
    loss.backward()
for _ in range(2):
    learn()
"""
CALLED_BACK = """model = nn.Linear(4, 1)
opt = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=2)
def closure():
    loss = model(x).pow(2).mean()
    loss.backward()
    return loss
for _ in range(2):
    opt.step(closure)
"""
REREAD = """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.vectors = nn.ParameterList([nn.Parameter(torch.randn(4)) for _ in range(2)])
        self.head = nn.Linear(4, 1)
    def forward(self, x):
        for vector in self.vectors:
            x += x * vector
        return self.head(x)
net = Net()
opt = torch.optim.LBFGS(net.parameters(), lr=0.1, max_iter=2)
for part, in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x), batch_size=4):
    def closure():
        opt.zero_grad()
        loss = net(part).abs().mean()
        loss.backward()
        return loss
    opt.step(closure)
"""
SCALED = """model = nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
def update(opt, scaler, loss):
    opt.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()
def train(model, opt, scaler):
    for part in x.split(4):
        loss = torch.tensor(model(part).pow(2).mean())
        update(opt, scaler, loss)
train(model, opt, torch.amp.GradScaler("cpu", init_scale=4.0))
"""
COMBINED = """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale, self.head = nn.Parameter(torch.ones(4)), nn.Linear(4, 1)
    def forward(self, x):
        x += x.clone() * self.scale
        return self.head(x)
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(2):
    out = net(x)
    collected = []
    for i, loss in enumerate([out.abs().mean(), out.pow(2).mean()]):
        opt.zero_grad()
        loss.backward(retain_graph=i == 0)
        collected.append([p.grad.clone() for p in net.parameters() if p.grad is not None])
    for p, a, b in zip(net.parameters(), *collected):
        p.grad = a + b
    opt.step()
"""
ATTACKED = """model = nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
def objective(x):
    attacked = x.clone().requires_grad_(True)
    model(attacked).pow(2).mean().backward()
    return model((attacked + attacked.grad.sign()).detach()).pow(2).mean()
for _ in range(2):
    loss = objective(x)
    loss.backward()
    opt.zero_grad()
    opt.step()
"""
INNER = """w = torch.ones(4, requires_grad=True)
fast, opt = w, torch.optim.SGD([w], lr=0.1)
(g,) = torch.autograd.grad((fast - x).pow(2).sum(), fast, create_graph=True)
fast -= 0.1 * g
fast.sum().backward()
opt.step()
"""
CUT_TWICE = """policy, critic = nn.Linear(4, 2), nn.Linear(4, 1)
opt = torch.optim.SGD([*policy.parameters(), *critic.parameters()], lr=0.1)
for reward in torch.rand(2, 8, 1):
    value = critic(x)
    advantage = (reward - value).detach()
    loss = (reward - value.detach()).pow(2).mean() - (policy(x).log_softmax(1)[:, :1] * advantage).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
Check = Callable[[str], bool]
ROWS_OF_A_LEAF = """w = torch.ones(3, 4, requires_grad=True)
for row in w:
    row = row.index_add_(0, torch.tensor([0]), row[:1])
(w * 2).sum().backward()
"""
ONCE_WRONG: dict[str, tuple[str, Check]] = {
    "a target stays in the block that its prediction leaves": (TEMPORAL, lambda a: TEMPORAL_KEPT in a),
    "an inferred target is a constant that may be saved": (INFERRED, lambda a: "with torch.no_grad():" in a),
    "a critic does not learn from its actor's loss": (
        ACTOR_CRITIC, lambda a: "policy_loss.backward(inputs=list(actor.parameters()))" in a),
    "a quantiser's cuts stay where the leaf is not reached": (QUANTISED, lambda a: not a),
    "weights that are cut off on purpose stay so": (
        WEIGHED, lambda a: "(each.detach()" in a and "x).detach" not in a),
    "each backward that adds up is cleared before": (TWICE, lambda a: a.count("    opt.zero_grad()\n") == 2),
    "a matrix is no number": (MATRIX, lambda a: "torch.stack([w, v])" in a and ".item()" not in a),
    "a step goes behind the clipping too": (CLIPPED, lambda a: "0.1)\n    opt.step()\n" in a),
    "a step does not move within its own closure": (CLOSURE, lambda a: not a),
    "a shortcut keeps what the module writes": (SHORTCUT, lambda a: not a),
    "rows that save themselves are not written one by one": (ROWS, lambda a: not a),
    "what is written at once stays cut": (AT_ONCE, lambda a: not a),
    "a number that another name keeps stays one": (NUMBER, lambda a: not a),
    "a tensor whose gradient is read keeps its name": (READ, lambda a: not a),
    "a write that is not recorded keeps its graph": (
        UNRECORDED, lambda a: "z = z.clone()\nwith torch.no_grad():\n    z.mul_(2)" in a),
    "a loss handed out as a number is one": (HANDED, lambda a: "x).pow(2).sum()\n" in a),
    "a scheduler is no optimizer": (PARAMETERS, lambda a: "sched.param_groups" not in a),
    "a wrong order is mended whole": (HALF, lambda a: "grad()\n    loss.backward()\n    opt.step()" in a),
    "a backward is for no parameter that is frozen": (
        FROZEN, lambda a: "inputs=[p for p in gen.parameters() if p.requires_grad])" in a),
    "a step is not along what was cleared before it": (CLEARED_SINCE, lambda a: "inputs=" not in a),
    "half a loss is reduced where that is one number": (
        HALVED, lambda a: 'reduction="none").mean()' in a and "(loss / 2).backward()" in a),
    "a loss that another function reads as a number is no tensor there": (TOLD, lambda a: not a),
    "a function that asks a loss for its number is given the loss": (
        NOTED, lambda a: "note(loss)\n" in a and a.count("item()") == 1),
    "a view that can't be read is not cloned": (UNREADABLE, lambda a: not a),
    "a loop over rows is right where another defect follows": (TWO_LOOPS, lambda a: "(h[i] for i" in a),
    "a graph is not kept across a step that changes it": (
        STEPPED.replace("nn.Linear(4, 1)", "nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))"),
        lambda a: not a),
    "a graph is not kept across a step of anybody": (STEPPED_BY_ANYBODY, lambda a: not a),
    "a graph is not kept across a step that may have changed it": (COMBINED, lambda a: not a),
    "a step goes before what clears its gradients": (
        CLEARED_LATE, lambda a: "    loss.backward()\n    opt.step()\n    for" in a),
    "what another function leaves for nobody is erased as ever": (
        ATTACKED, lambda a: "    opt.zero_grad()\n    loss.backward()\n    opt.step()" in a),
    "an inner step that is differentiated is recorded": (INNER, lambda a: not a),
    "of two cuts of the same parameters none goes": (CUT_TWICE, lambda a: not a),
    "a graph is kept across a step that changes none of it": (STEPPED, lambda a: "retain_graph" in a),
    "a program may go wrong behind what is saved again": (SAVED_AND_WRONG, lambda a: "torch.no_grad" in a),
    "a leaf that is frozen stays one": (FREED_LATER, lambda a: "no_grad():\n    w[0].add_(1)" in a),
    "a leaf that is frozen learns from nothing": (
        FREED_LATER.replace("w[0].add_(1)", "w.add_(v)"), lambda a: not a),
    "a number that has no backward hides no other fix": (NUMBERS, lambda a: "(loss)" in a),
    "a step does not come before what takes a move by hand back": (RESTORED, lambda a: not a),
    "a step that comes again where it belongs does not move": (ADVERSARY, lambda a: not a),
    "what is written through a view is made no leaf": (WRITTEN_VIEW, lambda a: not a),
    "a target that nobody trains stays cut": (COPIED, lambda a: not a),
    "a step that a call makes too early goes behind its own backward": (
        STEPPED_IN_A_CALL, lambda a: "    loss.backward()\n    opt.step()\n" in a),
    "a closure clears what its own last call has left": (
        CALLED_BACK, lambda a: "    opt.zero_grad()\n    loss.backward()" in a),
    "what the next call of a closure reads is not kept from it": (REREAD, lambda a: not a),
    "a loss goes on to its backward with its graph": (SCALED, lambda a: "update(opt, scaler, loss)" in a),
    "rows of a leaf are refused by themselves as well": (ROWS_OF_A_LEAF, lambda a: not a),
    "a list that is called is no list of modules": (LISTED, lambda a: "ModuleList" not in a),
}  # fmt: skip


@pytest.mark.parametrize("name", ONCE_WRONG)
def test_what_was_once_wrong_is_right_or_left_alone(name: str) -> None:
    body, right = ONCE_WRONG[name]
    outcome = said(HEAD + body)
    assert right((outcome.after or b"").decode()), [(one.says or one.decline) for one in outcome.findings]
    assert forked(partial(words, HEAD + body, outcome)) == []


def words(text: str, outcome: Outcome) -> list[Said]:
    """What is wrong with the safe fixes of a text."""
    safe = [one for one in outcome.findings if one.safety is Safety.SAFE]
    broken = Broken(text, (Circumstances(),))
    return [one for one in (weighed(broken, each)[0] for each in safe) if one.verdict in WRONG]


UNREAD = """w = torch.zeros(4, requires_grad=True)
w.add_(1)
y = w * 2
with torch.inference_mode():
    v = y.view(2, 2)
    v.add_(1)
for row in v:
    print(row)
"""
UNUSED = """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
    def forward(self, x):
        h = self.fc(x).exp()
        h += 1
        return h
"""


@pytest.mark.parametrize(
    ("body", "code", "word"),
    [
        pytest.param(ON_ITS_LINE, "GF401", "right", id="on the same line"),
        pytest.param(UNREAD, "GF103", "undecided", id="that torch refuses to read"),
        pytest.param(CLAMPED_UNSEEN, "GF101", "undecided", id="that changes the gradient"),
    ],
)
def test_a_fix_is_judged_beside_another(body: str, code: str, word: str) -> None:
    text = HEAD + body
    found = [each for each in said(text).findings if each.code == code and each.safety is Safety.SAFE]
    answer = forked(partial(weighed, Broken(text, (Circumstances(),)), found[0]))
    assert answer is not None
    assert answer[0].verdict == word, answer


@pytest.mark.parametrize(
    ("more", "word"),
    [
        pytest.param("", "undecided", id="as it would be without"),
        pytest.param("y = y * 2 - y.detach()\n", "other gradient", id="unlike what it would be without"),
    ],
)
def test_a_write_that_nothing_counts_excuses_no_more_than_its_own_gradient(more: str, word: str) -> None:
    text = HEAD + CLAMPED_UNSEEN
    finding = next(one for one in said(text).findings if one.rule == "inplace_overwrites_saved")
    after = text.replace("y[1:] -= y[0]\n", "y = torch.cat([y[:1], y[1:] - y[0]])\n" + more)
    way = Circumstances()
    answer = forked(partial(under, Broken(text, (way,)), way, finding, text, after))
    assert answer is not None
    assert answer.verdict == word, answer


@pytest.mark.parametrize(
    ("healthy", "word"),
    [pytest.param(True, "undecided", id="has"), pytest.param(False, "breaks", id="has not")],
)
def test_a_fault_that_the_healthy_program_has_is_its_own(healthy: bool, word: str) -> None:
    twice = HEAD + STEPPED.replace("opt.step()\n", "") + "raise ValueError(3)\n"
    finding = next(one for one in said(twice).findings if one.rule == "backward_twice")
    after = twice.replace("loss.backward()", "loss.backward(retain_graph=True)", 1)
    way, other = Circumstances(), twice if not healthy else twice.replace("loss.backward()\n", "", 1)
    answer = forked(partial(under, Broken(twice, (way,), healthy=other), way, finding, twice, after))
    assert answer is not None
    assert answer.verdict == word, answer


def test_a_module_that_its_program_never_runs_is_run() -> None:
    text = HEAD + UNUSED
    (use,) = uses(text)
    finding = said(text).findings[0]
    found = {}
    for further in ((), (Circumstances((), (), use),)):
        broken = Broken(text, (Circumstances((), ()),), further=further)
        answer = forked(partial(weighed, broken, finding))
        assert answer is not None
        found[len(further)] = answer[0].verdict
    assert found == {0: "undecided", 1: "right"}


def test_a_failure_that_nobody_hears_of_is_told_from_one_that_is_raised_again() -> None:
    quiet = "try:\n    loss.backward()\nexcept RuntimeError:\n    pass\n"
    assert hides(quiet)
    assert not hides(quiet.replace("pass", "raise"))
    assert not hides(quiet.replace("loss.backward()", "x = y.numpy()"))


@pytest.mark.parametrize("sort", ["oracle", "wild"])
@pytest.mark.parametrize("first", [3_000, 3_060], ids=lambda first: f"seeds from {first}")
def test_no_safe_fix_of_a_random_program_breaks_changes_or_leaves(sort: str, first: int) -> None:
    tally = forked(partial(several, sort, range(first, first + 60)))
    assert isinstance(tally, Tally)
    assert [
        (case.group, case.seed, case.about) for case in tally.cases if not case.group.startswith("not")
    ] == []
    assert tally.counts["right"] > 10


@pytest.mark.parametrize("mode", ["no_grad", "inference_mode"])
def test_what_torch_says_of_a_view_of_a_block_is_what_it_says(mode: str) -> None:
    text = (
        HEAD
        + f"h = x * nn.Parameter(x)\nwith torch.{mode}():\n    v = h.t()\nv.zero_()\nh.sum().backward()\n"
    )
    one = forked(partial(play, text, []))
    assert one is not None and one.error is not None
    assert said(text).findings[0].torch_says in one.error[0]


class Dropped:
    """Nobody is told of what its end raises."""

    def __del__(self) -> None:
        end = time.process_time() + 0.1
        while time.process_time() < end:
            pass


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_program_hangs_also_where_the_first_alarm_is_lost() -> None:
    with pytest.raises(HungError), patience(0.05):
        value: Dropped | None = Dropped()
        value = None
        while value is None:
            pass


def test_work_that_never_ends_is_ended() -> None:
    assert forked(partial(time.sleep, 60), 0.1) is None
