"""What code that nobody here wrote does, and means: shapes that were taken for defects."""

from __future__ import annotations

import pytest
from short import analysis

LISTED = frozenset({"certain", "likely"})
QUESTION = """
def render(points):
    screen = points * 2
    try:
        {ask}
    except {kind}:
        {then}
    return screen
points = torch.ones(3, requires_grad=True)
with torch.no_grad():
    render(points)
print(render(points).sum())
"""


def listed(body: str) -> set[str]:
    return {one.kind for one in analysis(body).defects if one.certainty in LISTED}


@pytest.mark.parametrize("kind", ["RuntimeError", "Exception", "(ValueError, RuntimeError)"])
@pytest.mark.parametrize("ask", ["screen.retain_grad()", "screen.register_hook(print)", "screen.numpy()"])
def test_what_is_tried_with_a_handler_is_a_question(ask: str, kind: str) -> None:
    assert listed(QUESTION.format(ask=ask, kind=kind, then="pass")) == set()


@pytest.mark.parametrize(("kind", "then"), [("KeyError", "pass"), ("RuntimeError", "raise")])
def test_a_handler_of_something_else_leaves_it_a_crash(kind: str, then: str) -> None:
    assert listed(QUESTION.format(ask="screen.retain_grad()", kind=kind, then=then)) == {"forward_in_no_grad"}


CHAINED = """
import itertools
class Cache(nn.Module):
    def __init__(self, keys):
        super().__init__()
        self.frozen = nn.ParameterList([nn.Parameter(one) for one in keys])
        self.more = nn.ParameterList([nn.Parameter(torch.ones(2))])
        for param in {each}:
            param.requires_grad = False
"""


@pytest.mark.parametrize("each", ["itertools.chain(self.frozen)", "itertools.chain(self.frozen, self.more)"])
def test_a_chain_of_lists_yields_what_they_hold(each: str) -> None:
    assert listed(CHAINED.format(each=each)) == set()
    assert listed(CHAINED.format(each="[self.frozen]")) == {"requires_grad_misspelt"}


HELD = """
from torch.nn.modules.loss import _Loss
class Smooth({base}):
    def __init__(self):
        super().__init__()
        self.inner = nn.{inner}
    def forward(self, x):
        return self.inner(x).sum()
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.criteria, self.lin = [Smooth()], nn.Linear(3, 4)
    def forward(self, x):
        return self.criteria[0](self.lin(x))
"""


@pytest.mark.parametrize("base", ["nn.Module", "_Loss"])
def test_a_loss_has_the_parameters_that_it_is_given(base: str) -> None:
    assert listed(HELD.format(base=base, inner="KLDivLoss()")) == set()


HIDDEN = """
from torch.nn.modules.batchnorm import _BatchNorm
class Scale(_BatchNorm):
    def forward(self, x):
        return x * self.weight
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = [Scale(3), Scale(3)]
    def forward(self, x):
        for norm in self.norms:
            x = norm(x)
        return x
"""


def test_a_hidden_layer_has_parameters_though_they_are_not_seen() -> None:
    assert listed(HIDDEN) == {"unregistered_parameters"}


PUT_IN = """
class Net(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.added = [nn.Linear(4, 4)]
        {put}
        self.base = base
    def forward(self, x):
        return self.base(x) + len(self.added)
"""


def test_a_layer_that_is_put_into_a_part_of_what_came_in_may_be_registered_there() -> None:
    put = "for block in base.blocks: block.extra = self.added[0]"
    assert listed(PUT_IN.format(put=put)) == set()
    assert listed(PUT_IN.format(put="pass")) == {"unregistered_parameters"}


GATHERED = """
model = nn.Linear(3, 1)
held = {n: torch.zeros_like(p) for n, p in model.named_parameters()}
total = torch.zeros(1, 3)
for _ in range(3):
    model.zero_grad()
    F.mse_loss(model(torch.ones(4, 3)), torch.ones(4, 1)).backward()
    {gather}
with torch.no_grad():
    for n, p in model.named_parameters():
        p -= 0.1 * {used}
"""


@pytest.mark.parametrize(
    ("gather", "used"),
    [
        ("for n, p in model.named_parameters(): held[n] += p.grad", "held[n]"),
        ("for n, p in model.named_parameters(): held[n] = held[n] + p.grad", "held[n]"),
        ("total = total + model.weight.grad", "total"),
    ],
)
def test_gradients_that_are_gathered_have_been_used_when_they_are_cleared(gather: str, used: str) -> None:
    body = GATHERED.replace("{gather}", gather).replace("{used}", used)
    assert "zero_grad_before_step" not in listed(body)


OF_MANY = """
import elsewhere
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.config = elsewhere.Config()
        self.head = nn.Linear(3, 3)
    def forward(self, x):
        return self.head(x)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
held = {n: torch.zeros_like(p) for n, p in model.named_parameters()}
for _ in range(3):
    for part in (torch.ones(4, 3), torch.zeros(4, 3)):
        model.zero_grad()
        F.mse_loss(model(part), torch.ones(4, 3)).backward()
        for n, p in model.named_parameters():
            if p.grad is not None:
                {gather}
    optimizer.step()
"""


@pytest.mark.parametrize("gather", ["held[n] += p.grad", "held[n].add_(p.grad, alpha=0.5)"])
def test_gradients_of_parameters_that_are_not_known_are_gathered_too(gather: str) -> None:
    assert "zero_grad_before_step" in listed(OF_MANY.replace("{gather}", "pass"))
    assert "zero_grad_before_step" not in listed(OF_MANY.replace("{gather}", gather))


NAMED_ALIKE = """
class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.stack = [nn.Linear(4, 4) for _ in range(2)]
        self.head = nn.Linear(4, 1)
    def forward(self, x):
        return self.head(torch.stack([one(x) for one in self.stack]).sum(0))
net = Experts()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
net(torch.randn(2, 4)).sum().backward()
optimizer.step()
"""


def test_a_function_named_like_a_list_is_no_call_of_that_list() -> None:
    found = [one for one in analysis(NAMED_ALIKE).defects if one.kind == "unregistered_parameters"]
    assert [one.impact for one in found] == ["trains wrong"]


GIVEN_AWAY = """
class Both(nn.Module):
    def __init__(self, part):
        super().__init__()
        self.part = part
class Tuned(nn.Module):
    def __init__(self, whole):
        super().__init__()
        self.fresh = []
        for block in whole.blocks:
            a = nn.Linear(4, 4)
            {given}
            self.fresh.append(a)
        self.whole = whole
    def reset(self):
        for one in self.fresh:
            nn.init.zeros_(one.weight)
"""


@pytest.mark.parametrize(
    "given",
    ["block.part = Both(a)", "block[0] = Both(a)", "block.add_module('b', Both(a))", "put(block, Both(a))"],
)
def test_a_list_of_what_another_model_was_given_in_a_module_of_its_own(given: str) -> None:
    assert listed(GIVEN_AWAY.format(given=given)) == set()


def test_a_list_of_what_nobody_else_was_given() -> None:
    assert listed(GIVEN_AWAY.format(given="Both(a)")) == {"unregistered_parameters"}


ASKED_FOR_IN_A_TRY = """
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
class Run:
    def __init__(self):
        self.kept = []
    def fit(self, data):
        for epoch in range(2):
            batches = iter(data)
            while True:
                try:
                    x = next(batches)
                except StopIteration:
                    {leave}
                self.kept.append(net(x).mean())
                opt.zero_grad()
                torch.stack(self.kept).sum().backward()
                opt.step()
                self.kept = []
Run().fit(torch.utils.data.DataLoader(torch.randn(8, 4)))
"""


def test_what_is_done_behind_a_try_is_not_done_where_its_handler_has_left() -> None:
    assert listed(ASKED_FOR_IN_A_TRY.format(leave="break")) == set()


OWN_ITERATOR = """
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
class Batches:
    def __init__(self, data, start):
        self.data, self.start = data, start
    def __iter__(self):
        for one in self.data:
            {first}
            yield one
batches = Batches([torch.randn(4, 3) for _ in range(3)], optimizer.zero_grad)
for x in {source}:
    model(x).pow(2).mean().backward()
    optimizer.step()
"""


@pytest.mark.parametrize("source", ["batches", "Batches([torch.randn(4, 3)] * 3, optimizer.zero_grad)"])
def test_what_an_object_does_while_it_is_gone_through_is_done(source: str) -> None:
    assert listed(OWN_ITERATOR.format(first="self.start()", source=source)) == set()
    assert listed(OWN_ITERATOR.format(first="pass", source=source)) == {"missing_zero_grad"}


OWN_FLAG = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.base, self.head = nn.Linear(3, 3), nn.Linear(3, 1)
        self.base.requires_grad = False
    def forward(self, x):
        with torch.set_grad_enabled({asked}):
            h = self.base(x)
        return self.head(h)
"""


@pytest.mark.parametrize(
    ("asked", "expected"), [("self.base.requires_grad", set()), ("True", {"requires_grad_misspelt"})]
)
def test_a_flag_on_a_module_that_its_owner_asks_for_has_an_effect(asked: str, expected: set[str]) -> None:
    assert listed(OWN_FLAG.format(asked=asked)) == expected


OF_OTHERS = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.base, self.head = nn.Linear(3, 3), nn.Linear(3, 1)
        self.base.requires_grad = False
    def forward(self, x):
        return self.head(self.base(x))
net = Net()
def of_another(part):
    return part.requires_grad
{asked}
"""


@pytest.mark.parametrize(
    "asked",
    [
        "print(net.base.requires_grad)",
        "print(f'frozen: {not net.base.requires_grad}')",
        "held = [*filter(lambda base: base.requires_grad, net.base.parameters())]",
        "assert net.base.requires_grad is False",
    ],
)
def test_a_flag_on_a_module_that_is_only_shown_or_asked_of_others_has_none(asked: str) -> None:
    assert listed(OF_OTHERS.replace("{asked}", asked)) == {"requires_grad_misspelt"}


@pytest.mark.parametrize(
    "asked",
    [
        "def chosen(model: Net):\n    return [*model.base.parameters()] if model.base.requires_grad else []",
        "if f'{net.base.requires_grad}' == 'False': net.base.requires_grad_(False)",
    ],
)
def test_a_flag_that_may_be_asked_of_the_module_has_an_effect(asked: str) -> None:
    assert listed(OF_OTHERS.replace("{asked}", asked)) == set()


PROGRAM_ENDS = """
import os, sys
net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
if len(sys.argv) > 3:
    net.requires_grad_(False)
    {leaves}
net(torch.randn(2, 4)).mean().backward()
optimizer.step()
"""


@pytest.mark.parametrize("leaves", ["os._exit(2)", "os.execv(sys.executable, sys.argv)", "quit()"])
def test_what_replaces_or_ends_the_program_comes_back_nowhere(leaves: str) -> None:
    assert listed(PROGRAM_ENDS.format(leaves=leaves)) == set()
    assert listed(PROGRAM_ENDS.format(leaves="pass")) != set()


ATTACK = """
net = nn.Linear(4, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
def attack(model, images):
    for _ in range(7):
        images.requires_grad = True
        out = model(images)
        model.zero_grad()
        out.sum().backward()
        images = (images + 0.01 * images{read}).detach()
    return images
for _ in range(2):
    images = torch.rand(5, 4)
    {call}
    net(images).pow(2).sum().backward()
    optimizer.step()
    {after}
"""


@pytest.mark.parametrize(
    "call", ["images = attack(net, images)", "optimizer.zero_grad(); images = attack(net, images)"]
)
def test_gradients_that_came_along_with_those_of_an_image_may_be_erased(call: str) -> None:
    body = ATTACK.format(read=".grad.sign()", call=call, after="optimizer.zero_grad()")
    assert "zero_grad_before_step" not in listed(body)


COUNTED = """
def train(model, loader, optimizer):
    for i in range(model.config.n):
        if i in range(model.config.n):
            model.layers[i].requires_grad_(True)
    for x in loader:
        model(x).sum().backward()
        optimizer.step()
"""


def test_what_is_in_a_range_that_a_loop_counts_is_asked() -> None:
    assert listed(COUNTED) == set()


SWITCHED_ON = """
def train(encoder, segment, loader, optimizer):
    for batch in loader:
        mean = encoder(batch)
        sampling = {made}
        loss = segment(sampling).pow(2).mean()
        sampling.require_grad = {value}
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("made", "value", "expected"),
    [
        pytest.param("mean[:, :4] + torch.randn(3, 4)", "True", set(), id="that may learn already"),
        pytest.param("torch.zeros(3, 4, requires_grad=True) * 2", "False", set(), id="that is no leaf"),
        pytest.param("torch.zeros(3, 4)", "True", {"requires_grad_misspelt"}, id="that doesn't learn"),
    ],
)
def test_a_misspelt_switch_on_a_tensor(made: str, value: str, expected: set[str]) -> None:
    assert listed(SWITCHED_ON.format(made=made, value=value)) == expected


WRITTEN_WITHIN = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
    def forward(self, x):
        h = self.linear(x)
        with {mode}:
            x.fill_(1.0)
        return h
"""


@pytest.mark.parametrize("mode", ["torch.no_grad()", "unknown()"])
def test_what_came_in_may_be_data_where_a_write_may_not_be_recorded(mode: str) -> None:
    assert listed(WRITTEN_WITHIN.format(mode=mode)) == set()
