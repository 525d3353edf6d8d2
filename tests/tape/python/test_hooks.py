"""Hooks run in the calls of the module that they are registered on, before and after its forward."""

from __future__ import annotations

import pytest
from short import listed

KEEPS = """
net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
kept, named = [], {{}}
class Keeper:
    def __init__(self):
        self.out = None
    def keep(self, module, given, out):
        self.out = out
keeper = Keeper()
def keep(module, given, out):
    kept.append(out{cut})
def name(key):
    def hook(module, given, out):
        named[key] = out{cut}
    return hook
{register}
for p in net.parameters():
    p.requires_grad = False
x = torch.randn(2, 4, requires_grad=True)
net(x)
{loss}.sum().backward()
"""
WAYS = [
    ("net.register_forward_hook(keep)", "kept[-1]"),
    ("net[0].register_forward_hook(keep)", "kept[-1]"),
    ("net[1].register_forward_hook(lambda m, i, o: kept.append(o{cut}))", "kept[-1]"),
    ("net[1].register_forward_hook(name('last'))", "named['last']"),
    ("for m in net: m.register_forward_hook(name('last'))", "named['last']"),
]


@pytest.mark.parametrize(("register", "loss"), WAYS)
def test_what_a_hook_keeps_has_its_graph(register: str, loss: str) -> None:
    whole = KEEPS.format(register=register, loss=loss, cut="").replace("{cut}", "")
    assert listed(whole) == set()


@pytest.mark.parametrize(("register", "loss"), WAYS[:2])
def test_what_a_hook_cuts_has_none(register: str, loss: str) -> None:
    assert listed(KEEPS.format(register=register, loss=loss, cut=".detach()")) == {"detached_loss_path"}


@pytest.mark.parametrize("option", ["prepend=True", "always_call=True", "prepend=False"])
def test_what_a_hook_cuts_has_none_whatever_it_is_told_of_when_it_runs(option: str) -> None:
    register = f"net.register_forward_hook(keep, {option})"
    body = KEEPS.format(register=register, loss="kept[-1]", cut=".detach()")
    assert listed(body) == {"detached_loss_path"}


@pytest.mark.parametrize(
    ("option", "found"), [("", {"detached_loss_path"}), (", prepend=True", set())], ids=["behind", "before"]
)
def test_a_hook_that_comes_first_has_seen_what_others_put_in_its_place(option: str, found: set[str]) -> None:
    cuts = "net.register_forward_hook(lambda m, i, o: o.detach())\n"
    body = KEEPS.format(register=f"{cuts}net.register_forward_hook(keep{option})", loss="kept[-1]", cut="")
    assert listed(body) == found


def test_a_method_is_a_hook_too() -> None:
    register = "net.register_forward_hook(keeper.keep)"
    assert listed(KEEPS.format(register=register, loss="keeper.out", cut="")) == set()


PERHAPS = """
acts = []
net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
def register(model):
    handle = model.{part}.register_forward_hook(lambda m, i, o: acts.append(o))
    {after}
def step(model, x):
    out = model(x)
    loss = out.detach().mean()
    if acts:
        loss = sum(a.pow(2).mean() for a in acts)
    loss.backward()
register(net)
step(net, torch.randn(2, 4))
"""


@pytest.mark.parametrize(
    ("part", "after"), [("layer4", "pass"), ("train()", "pass"), ("train()", "handle.remove()")]
)
def test_what_a_hook_may_have_filled_chooses_no_way(part: str, after: str) -> None:
    assert listed(PERHAPS.format(part=part, after=after)) == set()


RETURNS = """
class Loss(nn.Module):
    def forward(self, p, t):
        return (p - t).abs()
loss, net = Loss(), nn.Linear(4, 1)
{}
loss(net(torch.randn(2, 4)), torch.randn(2, 1)).backward()
"""


def test_what_a_hook_returns_takes_the_place_of_what_came_out() -> None:
    assert listed(RETURNS.format("loss.register_forward_hook(lambda m, i, o: o.mean())")) == set()
    assert listed(RETURNS.format("loss.register_forward_hook(lambda m, i, o: print(o))")) == {
        "non_scalar_backward"
    }
    assert listed(RETURNS.format("net.register_forward_hook(lambda m, i, o: o * 2)")) == {
        "non_scalar_backward"
    }


CLEARS = """
net = nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=.1)
{}
for i in range(3):
    net(torch.randn(3, 4)).sum().backward()
    opt.step()
"""


def test_a_hook_before_the_forward_may_clear() -> None:
    assert listed(CLEARS.format("net.register_forward_pre_hook(lambda m, i: m.zero_grad())")) == set()
    assert listed(CLEARS.format("net.register_forward_pre_hook(lambda m, i: None)")) == {"missing_zero_grad"}


GIVEN = """
from elsewhere import make
net = nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=.1)
def step(batch):
    net(batch).sum().backward()
    opt.step()
{}
"""


def test_a_function_that_clears_may_be_called_by_who_was_given_it() -> None:
    both = GIVEN.format("trainer = make(step)\ntrainer.on('start', lambda: opt.zero_grad())")
    assert listed(both) == set()


REGISTERED = """
from elsewhere import signal, Base
net = nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=.1)
start = signal('start')
def clear(sender):
    opt.{deed}()
class Other(Base):
    def before(self):
        opt.{deed}()
other = Other()
{register}
for i in range(3):
    {call}
    net(torch.randn(3, 4)).sum().backward()
    opt.step()
"""
CALLED = [
    ("start.connect(clear)", "start.send('turn')"),
    ("start.connect([clear])", "start.send('turn')"),
    ("start.connect(other)", "start.send('turn')"),
    ("pass", "other.run('before')"),
]


@pytest.mark.parametrize(("register", "call"), CALLED)
def test_who_was_given_a_function_that_clears_may_call_it(register: str, call: str) -> None:
    assert listed(REGISTERED.format(register=register, call=call, deed="zero_grad")) == set()
    assert listed(REGISTERED.format(register="pass", call="print()", deed="zero_grad")) == {
        "missing_zero_grad"
    }


CALLED_AS = """
first, second = nn.Linear(4, 4), nn.Tanh()
second.register_forward_hook({hook}{how})
{more}
{call}.sum().backward()
"""


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("second(first(torch.randn(2, 4)))", {"detached_loss_path"}),
        ("second.forward(first(torch.randn(2, 4)))", set()),
    ],
)
def test_a_hook_does_not_run_where_forward_itself_is_called(call: str, expected: set[str]) -> None:
    hook = "lambda module, given, out: out.detach()"
    assert listed(CALLED_AS.format(hook=hook, how="", more="", call=call)) == expected


@pytest.mark.parametrize(("how", "expected"), [("", {"inplace_overwrites_saved"}), (", prepend=True", set())])
def test_a_hook_that_comes_first_may_hand_on_a_copy(how: str, expected: set[str]) -> None:
    more = f"second.register_forward_hook(lambda module, given, out: out + 0{how})"
    hook = "lambda module, given, out: out.add_(1)"
    whole = CALLED_AS.format(hook=hook, how="", more=more, call="second(first(torch.randn(2, 4)))")
    assert listed(whole) == expected


CLEARED = """
def train(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    {register}
    for x in loader:
        model(x).mean().backward()
        optimizer.step()
"""


def test_a_hook_of_a_module_that_is_not_known_may_clear() -> None:
    register = "model.register_forward_pre_hook(lambda module, given: module.zero_grad())"
    assert listed(CLEARED.format(register=register)) == set()
    assert listed(CLEARED.format(register="model.train()")) == {"missing_zero_grad"}
