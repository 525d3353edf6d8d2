"""What a package was handed for good, its later functions and the methods of its objects may use."""

from __future__ import annotations

from textwrap import indent

import pytest
from short import listed

STEPS = """
import trainkit, otherkit
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
tracker = trainkit.Tracker()
{given}
for i in range(10):
    {used}
    net(torch.randn(8, 4)).pow(2).mean().backward()
    opt.step()
"""
GIVEN = [
    "trainkit.register(net, opt)",
    "tracker.attach(opt)",
    "tracker.optimizer = opt",
    "tracker['optimizer'] = opt",
    "trainkit.register([opt])",
    "trainkit.on('start', opt.zero_grad)",
]


@pytest.mark.parametrize("used", ["trainkit.begin()", "tracker.begin()"])
@pytest.mark.parametrize("given", GIVEN)
def test_what_was_handed_over_is_used_again(given: str, used: str) -> None:
    assert listed(STEPS.format(given=given, used=used)) == set()


@pytest.mark.parametrize("used", ["trainkit.begin()", "tracker.begin()"])
@pytest.mark.parametrize("given", GIVEN)
def test_where_it_comes_from_need_not_be_known(given: str, used: str) -> None:
    program = STEPS.replace("import trainkit, otherkit", "").format(given=given, used=used)
    assert listed(f"def train(trainkit):\n{indent(program, '    ')}") == set()


@pytest.mark.parametrize(
    ("given", "used"),
    [("pass", "trainkit.begin()"), ("trainkit.register(opt)", "otherkit.begin()"), ("print(opt)", "print()")],
)
def test_others_have_nothing_of_it(given: str, used: str) -> None:
    assert listed(STEPS.format(given=given, used=used)) == {"missing_zero_grad"}


STATE = """
from elsewhere import signal
cell = nn.RNNCell(4, 8)
end = signal('end')
class Keeper:
    total = 0
    def __init__(self):
        self.h = torch.zeros(2, 8)
        {own}
    def reset(self, sender):
        self.h = self.h.detach()
keeper = Keeper()
h = torch.zeros(2, 8)
def detach(sender):
    global h
    h = h.detach()
{register}
for i in range(5):
    {state} = cell(torch.randn(2, 4), {state})
    {state}.pow(2).mean().backward()
    {fires}
"""


@pytest.mark.parametrize(
    ("own", "register", "state"),
    [
        ("pass", "end.connect(detach)", "h"),
        ("pass", "end.connect(keeper.reset)", "keeper.h"),
        ("end.connect(self.reset)", "pass", "keeper.h"),
        ("pass", "@end.connect\ndef other(sender):\n    keeper.h = None", "keeper.h"),
    ],
)
def test_a_function_that_was_handed_over_may_have_run(own: str, register: str, state: str) -> None:
    program = {"own": own, "register": register, "state": state}
    assert listed(STATE.format(fires="end.send()", **program)) == set()
    assert listed(STATE.format(fires="pass", **program)) == {"backward_twice"}


FROZEN = """
from elsewhere import signal
net, start = nn.Linear(4, 8), signal('start')
net.requires_grad_(False)
@start.connect
def unfreeze(sender):
    {}
start.send()
net(torch.randn(2, 4)).mean().backward()
"""


def test_it_may_have_thawed_what_it_names() -> None:
    assert listed(FROZEN.format("net.requires_grad_(True)")) == set()
    assert listed(FROZEN.format("pass")) == {"no_leaf_requires_grad"}


GROWN = """
from elsewhere import grow, Manager
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
manager = Manager(model, opt)
for task in range(3):
    model[2] = nn.Linear(8, 2 + task)
    {}
    opt.zero_grad()
    model(torch.randn(2, 4)).mean().backward()
    opt.step()
"""


@pytest.mark.parametrize("grown", ["grow(opt, model)", "manager.update()"])
def test_who_has_the_optimizer_may_give_it_the_new_layer(grown: str) -> None:
    assert listed(GROWN.format(grown)) == set()
    assert listed(GROWN.format("pass")) == {"optimizer_before_replacement"}


ENTERED = """
from elsewhere import grad_on
net = nn.Linear(4, 1)
with torch.no_grad():
    with {}:
        loss = net(torch.randn(2, 4)).pow(2).mean()
loss.backward()
"""


def test_what_is_entered_may_switch_recording_on() -> None:
    assert listed(ENTERED.format("grad_on()")) == set()
    assert listed(ENTERED.format("open('notes')")) == {"forward_in_no_grad"}


SETTINGS = """
from elsewhere import update, Base, EasyDict, configurable
class Config:
    reduction = 'none'
class Fields(Base):
    reduction: str = 'none'
cfg, fields, easy = Config(), Fields(), EasyDict()
easy.reduction = 'none'
{given}
def train(how='none'):
    crit = nn.MSELoss(reduction={read})
    crit(nn.Linear(4, 2)(torch.randn(2, 4)), torch.randn(2, 2)).backward()
train()
"""
FILLED = [
    ("update(cfg, 'file')", "cfg.reduction"),
    ("cfg = update(cfg)", "cfg.reduction"),
    ("update(easy)", "easy.reduction"),
    ("pass", "fields.reduction"),
]


@pytest.mark.parametrize(("given", "read"), FILLED)
def test_settings_are_what_a_package_makes_of_them(given: str, read: str) -> None:
    assert listed(SETTINGS.format(given=given, read=read)) == set()


@pytest.mark.parametrize(("given", "read"), [("pass", "cfg.reduction"), ("pass", "how")])
def test_settings_that_nobody_was_given_are_what_they_say(given: str, read: str) -> None:
    assert listed(SETTINGS.format(given=given, read=read)) == {"non_scalar_backward"}


def test_a_decorator_from_elsewhere_may_fill_in_what_a_call_leaves_out() -> None:
    decorated = SETTINGS.replace("def train", "@configurable\ndef train").format(given="pass", read="how")
    assert listed(decorated) == set()


METRIC = """
from torchmetrics import Metric
class Total(Metric):
    def __init__(self):
        super().__init__()
        self.total = torch.zeros(1)
    def update(self, loss):
        self.total += loss
    def note(self, loss):
        self.total += loss
net, metric = nn.Linear(4, 1), Total()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(300):
    loss = net(torch.randn(8, 4)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    metric.{}(loss)
"""


def test_a_metric_is_updated_without_recording() -> None:
    assert listed(METRIC.format("update")) == set()
    assert listed(METRIC.format("note")) == {"graph_leak"}


AGAIN = """
from elsewhere import turn
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
each = turn({})
for i in range(3):
    with each:
        net(torch.randn(8, 4)).mean().backward()
        opt.step()
"""


def test_what_is_entered_again_runs_again() -> None:
    assert listed(AGAIN.format("opt")) == set()
    assert listed(AGAIN.format("")) == {"missing_zero_grad"}


BUFFER = """
from elsewhere import flatten
net = nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
flat = flatten({})
for i in range(3):
    {}
    net(torch.randn(2, 4)).mean().backward()
    opt.step()
"""


@pytest.mark.parametrize("cleared", ["flat.zero_()", "flat *= 0", "flat[:] = 0"])
def test_gradients_may_be_views_of_what_was_made_of_parameters(cleared: str) -> None:
    assert listed(BUFFER.format("net.parameters()", cleared)) == set()
    assert listed(BUFFER.format("4", cleared)) == {"missing_zero_grad"}


PROBE = """
import elsewhere, torchsummary
net, head = nn.Linear(4, 4), nn.Linear(4, 1)
{before}
opt = torch.optim.SGD({trained}.parameters(), lr=0.1)
features = net(torch.randn(2, 4))
for i in range(3):
    opt.zero_grad()
    head(features).mean().backward()
    opt.step()
"""


@pytest.mark.parametrize("before", ["elsewhere.freeze(net)", "elsewhere.freeze(net.parameters())"])
def test_a_module_may_have_been_frozen_by_who_was_given_it(before: str) -> None:
    assert listed(PROBE.format(before=before, trained="head")) == set()


@pytest.mark.parametrize(
    ("before", "trained"),
    [
        ("pass", "head"),
        ("elsewhere.freeze(head)", "head"),
        ("torchsummary.summary(net)", "head"),
        ("elsewhere.set_up(net)", "net"),
    ],
)
def test_what_nobody_else_was_given_or_is_trained_is_not_frozen(before: str, trained: str) -> None:
    assert "backward_twice" in listed(PROBE.format(before=before, trained=trained))


TERM = """
import elsewhere
w = nn.Parameter(torch.randn(3, 4))
made = w.tanh()
with {}:
    shown = made.t().contiguous()
(made.sum() + shown.pow(2).mean().item()).backward()
"""


def test_a_term_that_may_not_have_been_recorded_has_lost_nothing() -> None:
    assert listed(TERM.format("elsewhere.no_grad()")) == set()
    assert listed(TERM.format("open('notes')")) == {"severed_term"}
