"""What callers, subclasses and loops bring that a text alone doesn't show: beside twins that show it."""

from __future__ import annotations

import pytest

from gradfix.defects import Assumption
from gradfix.source import Source, parse
from gradfix.tape.analysis import Analysis
from gradfix.tape.entries import analyse

IMPORTS = "import torch\nfrom torch import nn\nfrom elsewhere import blur\n"
GATE = """
class Gate(nn.Module):
    def forward(self, x):
        h = torch.sigmoid(x)
        out = h * 2
        h += 1
        return out
"""
LOSS = """
class Loss(nn.Module):
    def __init__(self, smoothing):
        super().__init__()
        self.smoothing = smoothing
    def forward(self, x, y):
        y = torch.zeros_like(x).scatter(1, y, 1)
        p = x.exp() * y
        y.mul_(self.smoothing)
        return {result}
"""
NORM = """
class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
    def forward(self, x):
        h = {before}
        h = torch.sigmoid(h)
        out = h * 2
        h += 1
        return self.first(out)
"""
TRAINER = """
import pytorch_lightning as pl
class Trainer(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.losses = {losses}
        self.net = nn.Linear(4, 4)
    def training_step(self, batch, i):
        total = torch.zeros(1)
        for loss in {those}:
            total = total + loss(self.net(batch))
        return total
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)
"""
HOOKED = """
class Trainer:
    def extra(self):
        {extra}
    def train(self):
        total = torch.zeros(1)
        extra = self.extra()
        if extra is not None:
            total = total + extra
        total.backward()
"""
COUNTED = """
net = nn.Linear(4, 4)
def losses(out, counts):
    each = torch.zeros(len(out))
    for b in range(len(out)):
        count = {count}
        if count <= 0:
            each[b] = 0.0
            continue
        each[b] = out[b, :count].sum()
    return each
for x, counts in blur():
    losses(net(x), counts).mean().backward()
"""
TERMS = """
def learn(net, optimizer, data, terms):
    for x, y in data:
        optimizer.zero_grad()
        out = net(x)
        if 'fit' in terms:
            loss = (out - y).pow(2).mean()
        if {test}:
            size = 0.1 * out.abs().mean()
        if terms == 'fit, size':
            loss = 0.5 * loss + size
        elif terms == 'size':
            loss = 0.5 * size
        elif terms != 'fit':
            return
        loss.backward()
        optimizer.step()
net = nn.Linear(4, 4)
learn(net, torch.optim.SGD(net.parameters(), lr=0.1), blur(), blur())
"""
KINDS = """
def learn(net, data, kind):
    for x in data:
        out = net(x)
        if kind == 'least':
            loss = out.pow(2).mean()
        elif {test}:
            loss = out.mean()
            loss += out.exp().mean()
        elif kind == 'most':
            loss = -out.abs().mean()
        loss.backward()
learn(nn.Linear(4, 1), blur(), blur())
"""
BY_HAND = """
from pytorch_lightning import LightningModule
class Trainer(LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 1)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
    def configure_optimizers(self):
        return None
    def {method}(self, loss):
        return None
    def training_step(self, batch, i):
        self.optimizer.zero_grad()
        self.net(batch).sum().backward()
        self.optimizer.step()
        return {{'loss': torch.tensor(0.0)}}
"""
TRIED = """
net, loader = nn.Linear(4, 1), blur()
for x in loader:
    loss = net(x)
    {tried}
    try:
        {trying}
    except RuntimeError:
        loss = loss.mean()
        loss.backward()
"""
LAYERS = """
class Net(nn.Module):
    def __init__(self, number):
        super().__init__()
        self.layers = []
        {begin}
        for i in range(number):
            layer = nn.Linear(4, 4)
            self.layers.append(layer)
            {register}
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
"""
SUSPECTS = {
    "a backward in the place of one that has raised": (
        "backward_twice",
        TRIED.format(tried="pass", trying="loss.backward()"),
    ),
    "what learns nothing and makes a value for each sample": (
        "inplace_overwrites_saved",
        LOSS.format(result="(p * y).sum(dim=1)"),
    ),
    "a module that is given what may be data": ("inplace_overwrites_saved", GATE),
    "a list of losses that a subclass fills": (
        "no_leaf_requires_grad",
        TRAINER.format(losses="[]", those="self.losses"),
    ),
    "a dict of losses that a subclass fills": (
        "no_leaf_requires_grad",
        TRAINER.format(losses="{}", those="self.losses.values()"),
    ),
    "a list of modules that a subclass fills": (
        "no_leaf_requires_grad",
        TRAINER.format(losses="nn.ModuleList()", those="self.losses"),
    ),
    "a method that does nothing, as a subclass may have its own": (
        "no_leaf_requires_grad",
        HOOKED.format(extra="return None"),
    ),
    "a term of a turn before, where a text is taken to have a part and not to have it": (
        "backward_twice",
        TERMS.format(test="'size' in terms"),
    ),
}
LISTED = {
    "a backward in the place of something else that has raised": (
        "backward_twice",
        TRIED.format(tried="loss.backward()", trying="print(x)"),
    ),
    "what learns nothing and makes one number, as a loss does": (
        "inplace_overwrites_saved",
        LOSS.format(result="(p * y).mean()"),
    ),
    "the same module behind a layer": (
        "inplace_overwrites_saved",
        GATE
        + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.gate = nn.Linear(4, 4), Gate()
    def forward(self, x):
        return self.gate(self.first(x))
""",
    ),
    "the same module in a row of its own kind that learns": (
        "inplace_overwrites_saved",
        NORM.format(before="x * 2")
        + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = nn.Sequential(Norm(), Norm())
    def forward(self, x):
        return self.norms(x)
""",
    ),
    "the same behind a layer of the module's own": (
        "inplace_overwrites_saved",
        NORM.format(before="self.first(x)"),
    ),
    "a test that may come out differently each time": (
        "backward_twice",
        KINDS.format(test="blur(x) in kind"),
    ),
    "a constant that the framework backpropagates": (
        "no_leaf_requires_grad",
        BY_HAND.format(method="describe"),
    ),
    "a list of losses that is none of the object's": (
        "no_leaf_requires_grad",
        TRAINER.format(losses="[]", those="[]"),
    ),
    "a term of a turn before, where each turn asks for its own": (
        "backward_twice",
        TERMS.format(test="x.sum() in terms"),
    ),
    "a method that makes a constant of what it has": (
        "no_leaf_requires_grad",
        HOOKED.format(extra="return torch.ones(1) * 2"),
    ),
    "layers that are only put into a list": (
        "unregistered_parameters",
        LAYERS.format(begin="pass", register="pass"),
    ),
    "layers that are beside an empty module": (
        "unregistered_parameters",
        LAYERS.format(begin="self.group = nn.Module()", register="pass"),
    ),
}
SILENT = {
    "what a text begins with, asked twice": KINDS.format(test="kind.startswith('WGAN')"),
    "where a text has another, asked twice": KINDS.format(test="kind.lower().find('wgan') >= 0"),
    "a constant that the class itself doesn't backpropagate": BY_HAND.format(method="backward"),
    "what a whole model does before its layers": NORM.format(before="x * 2"),
    "layers that are put into an empty module by made-up names": LAYERS.format(
        begin="self.group = nn.Module()", register="setattr(self.group, f'layer{i}', layer)"
    ),
    "layers that are added to an empty module": LAYERS.format(
        begin="self.group = nn.Module()", register="self.group.add_module(f'layer{i}', layer)"
    ),
    "a layer that is an attribute of an empty module": LAYERS.format(
        begin="self.group = nn.Module()", register="self.group.layer = layer"
    ),
    "layers in empty modules that are put in by made-up names": LAYERS.format(
        begin="pass",
        register="block = nn.Module(); block.layer = layer; setattr(self, f'block{i}', block)",
    ),
    "a number of each turn's own, which some turn will find positive": COUNTED.format(
        count="int(counts[b].item())"
    ),
}


def analysis(body: str) -> Analysis:
    source = parse("program.py", (IMPORTS + body).encode())
    assert isinstance(source, Source)
    return analyse(source)


def listed(body: str) -> set[str]:
    found = analysis(body).defects
    return {defect.kind for defect in found if defect.impact != "style" and defect.certainty != "suspect"}


@pytest.mark.parametrize(("kind", "body"), SUSPECTS.values(), ids=SUSPECTS)
def test_is_a_suspect(kind: str, body: str) -> None:
    assert kind not in listed(body)
    assert kind in {defect.kind for defect in analysis(body).defects if defect.certainty == "suspect"}


@pytest.mark.parametrize(("kind", "body"), LISTED.values(), ids=LISTED)
def test_is_listed(kind: str, body: str) -> None:
    assert kind in listed(body)


@pytest.mark.parametrize("body", SILENT.values(), ids=SILENT)
def test_nothing_is_listed_of(body: str) -> None:
    assert not listed(body)


def test_names_given_to_code_in_a_text_are_let_go() -> None:
    found = LAYERS.format(begin="pass", register="exec(f'self.layer{i} = layer')")
    assert "unregistered_parameters" not in listed(found)


def test_what_an_input_has_to_be_is_said() -> None:
    (suspect,) = (one for one in analysis(GATE).defects if one.certainty == "suspect")
    assert Assumption.INPUT_LEARNS in suspect.lean


def test_a_module_that_is_one_of_many_is_gone_through_while_its_parts_are_met() -> None:
    ways = "".join(f"elif blur({i}):\n    net = Net(args.part{i})\n" for i in range(8))
    program = f"""
import argparse
args = argparse.ArgumentParser().parse_args()
class Net(nn.Module):
    def __init__(self, part):
        super().__init__()
        self.part, self.head = part, nn.Linear(3, 1)
    def forward(self, x):
        return self.head(self.part(x))
if blur():
    net = Net(args.part)
{ways}
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.ones(3, 2, 3):
    optimizer.zero_grad()
    net(x).sum().backward()
    optimizer.step()
"""
    assert not listed(program)
