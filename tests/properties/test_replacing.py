"""Where parts of a module may have been replaced by what isn't followed, what hangs on them isn't certain."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent

import pytest

from gradfix.defects import KINDS
from gradfix.source import Source, parse
from gradfix.tape.entries import analyse

FIXTURES = Path(__file__).parent.parent.parent / "fixtures"
ABSENT = sorted(kind for kind, traits in KINDS.items() if traits.absence)
SURE = ("certain", "likely", "suspect")

HEAD = """import torch
from torch import nn
import elsewhere


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        return self.head(self.body(x))


model, other = Net(), Net()
"""
FROZEN = {
    "one by one": "for p in model.parameters():\n    p.requires_grad = False\n",
    "by a method of each": "for p in model.parameters():\n    p.requires_grad_(False)\n",
    "as a whole": "model.requires_grad_(False)\n",
    "by name": "for name, p in model.named_parameters():\n    p.requires_grad = False\n",
}
TRAINED = "model(torch.randn(2, 4)).sum().backward()\n"
GIVEN = {
    "the module": "elsewhere.prepare({0})",
    "the module among others": "elsewhere.prepare([{0}, 1])",
    "the module by name": "elsewhere.prepare(net={0})",
    "a method with the module": "elsewhere.Adapter().attach({0})",
    "each child": "for child in {0}.children():\n    elsewhere.prepare(child)",
    "its dict": "elsewhere.prepare({0}.__dict__)",
    "its modules": "elsewhere.prepare({0}._modules)",
    "its dict by a function": "elsewhere.prepare(vars({0}))",
    "its apply": "{0}.apply(elsewhere.prepare)",
}
REPLACED = {
    "each by its name": "for n, c in {0}.named_modules():\n    setattr({0}, n, elsewhere.wrap(c))",
    "under an unknown name": "setattr({0}, elsewhere.name(), nn.Linear(4, 4))",
    "under a split name": (
        "part = {0}\nfor name in elsewhere.names():\n    part = getattr(part, name)\n"
        "setattr(part, elsewhere.name(), nn.Linear(4, 4))"
    ),
    "in a part that isn't known": "getattr({0}, elsewhere.name()).weight = nn.Parameter(torch.ones(4, 4))",
    "among the modules": "{0}._modules[elsewhere.name()] = nn.Linear(4, 4)",
    "among the modules of a part": "{0}.body._modules[elsewhere.name()] = nn.Linear(4, 4)",
    "by add_module": "{0}.add_module(elsewhere.name(), nn.Linear(4, 4))",
    "by register_parameter": "{0}.register_parameter(elsewhere.name(), nn.Parameter(torch.ones(4)))",
    "in its dict": "{0}.__dict__.update(elsewhere.parts())",
    "in one of them": (
        "parts = dict({0}.named_modules())\n"
        "setattr(parts[elsewhere.name()], elsewhere.name(), nn.Linear(4, 4))"
    ),
    "in parents that were looked up": (
        "parts = dict({0}.named_modules())\nfound = []\nfor name, part in parts.items():\n"
        "    above, _, last = name.rpartition('.')\n"
        "    found.append((parts[above] if above else {0}, last))\n"
        "for parent, last in found:\n    setattr(parent, last, nn.Linear(4, 4))"
    ),
}
WAYS = {**GIVEN, **REPLACED}


LORA = """
class LoRA(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base = base
        self.a, self.b = nn.Parameter(torch.zeros(4, 2)), nn.Parameter(torch.zeros(2, 4))

    def forward(self, x):
        return self.base(x) + x @ self.a @ self.b


def inject(net):
    parts = dict(net.named_modules())
    for name, part in parts.items():
        if isinstance(part, nn.Linear) and name != "head":
            above, _, last = name.rpartition(".")
            setattr(parts[above] if above else net, last, LoRA(part))


"""
SAVING = """
class Bent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin, self.act = nn.Linear(4, 4), nn.Sigmoid()

    def forward(self, x):
        y = self.act(self.lin(x))
        y += 1
        return y


model, other = nn.Sequential(Bent(), nn.Tanh()), nn.Sequential(Bent(), nn.Tanh())
"""


def certain(text: str) -> list[str]:
    source = parse("script.py", (HEAD + text).encode())
    assert isinstance(source, Source)
    return [one.kind for one in analyse(source).defects if one.certainty != "suspect"]


@pytest.mark.parametrize("frozen", FROZEN)
@pytest.mark.parametrize("way", WAYS)
def test_a_frozen_module_that_may_hold_others_is_not_said_to_lack_a_leaf(way: str, frozen: str) -> None:
    helper = WAYS[way].format("model") + "\n"
    in_a_function = "def change(net):\n" + indent(WAYS[way].format("net"), "    ") + "\nchange(model)\n"
    assert certain(FROZEN[frozen] + helper + TRAINED) == []
    assert certain(FROZEN[frozen] + in_a_function + TRAINED) == []


@pytest.mark.parametrize("frozen", FROZEN)
@pytest.mark.parametrize("way", WAYS)
def test_a_frozen_module_lacks_a_leaf_whatever_became_of_another(way: str, frozen: str) -> None:
    helper = WAYS[way].format("other") + "\n"
    assert certain(FROZEN[frozen] + helper + TRAINED) == ["no_leaf_requires_grad"]


@pytest.mark.parametrize("frozen", FROZEN)
def test_a_frozen_module_lacks_a_leaf_where_a_part_is_put_in_under_a_known_name(frozen: str) -> None:
    put = "setattr(model, 'act', nn.ReLU())\nmodel.body.add_module('act', nn.ReLU())\n"
    assert certain(put + FROZEN[frozen] + TRAINED) == ["no_leaf_requires_grad"]
    assert certain(FROZEN[frozen] + put + TRAINED) == ["no_leaf_requires_grad"]


def test_what_is_put_in_by_names_that_are_known_is_followed() -> None:
    assert certain(LORA + FROZEN["as a whole"] + "inject(model)\n" + TRAINED) == []
    assert certain(LORA + "inject(model)\n" + FROZEN["as a whole"] + TRAINED) == ["no_leaf_requires_grad"]


SMOOTH = """
def smooth(net):
    for name, part in net.named_children():
        if isinstance(part, nn.{kind}):
            setattr(net, name, nn.Softplus())
        else:
            smooth(part)


"""


def surest(text: str) -> list[str]:
    """What is found on the way from the module itself, and not of a class by itself."""
    source = parse("script.py", (HEAD + text).encode())
    assert isinstance(source, Source)
    return [one.kind for one in analyse(source).defects if one.certainty == "certain"]


@pytest.mark.parametrize("way", sorted(REPLACED.keys() - {"in its dict", "among the modules of a part"}))
def test_a_layer_that_may_be_another_one_does_not_surely_save(way: str) -> None:
    assert surest(SAVING + REPLACED[way].format("model[0]") + "\n" + TRAINED) == []
    assert surest(SAVING + REPLACED[way].format("other[0]") + "\n" + TRAINED) == ["inplace_overwrites_saved"]


def test_layers_that_are_replaced_by_their_names_are_gone() -> None:
    assert surest(SAVING + SMOOTH.format(kind="Sigmoid") + "smooth(model)\n" + TRAINED) == []
    assert surest(SAVING + SMOOTH.format(kind="Tanh") + "smooth(model)\n" + TRAINED) == [
        "inplace_overwrites_saved"
    ]


APPENDED = {
    "by an index": "net[{}] = nn.ReLU(inplace=True)\n",
    "by add_module": "net.add_module({}, nn.ReLU(inplace=True))\n",
    "as an attribute": "setattr(net, {}, nn.ReLU(inplace=True))\n",
}


@pytest.mark.parametrize("way", APPENDED)
def test_a_layer_that_is_put_in_somewhere_does_not_surely_run_last(way: str) -> None:
    net = "net = nn.Sequential(nn.Linear(4, 4), nn.Sigmoid())\n"
    run = "net(torch.ones(3, 4)).sum().backward()\n"
    name = "2" if way == "by an index" else "'2'"
    assert surest(net + APPENDED[way].format("elsewhere.name()") + run) == []
    if way != "by an index":
        assert surest(net + APPENDED[way].format(name) + run) == ["inplace_module"]


def given_away(text: str, way: str) -> Iterator[str]:
    """The text with something done to each module that it makes, right behind where it is made."""
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and node.end_lineno:
            made = ast.unparse(node.value.func).rpartition(".")[2]
            margin = lines[node.lineno - 1][: node.col_offset]
            if made[:1].isupper() and not margin.strip():
                helper = indent(WAYS[way].format(ast.unparse(node.targets[0])), margin)
                first, rest = lines[: node.end_lineno], lines[node.end_lineno :]
                yield "\n".join(["import elsewhere", *first, helper, *rest, ""])


def known(text: str) -> dict[str, int]:
    """The kinds of what is found, each with how sure the surest is."""
    source = parse("script.py", text.encode())
    assert isinstance(source, Source)
    found: dict[str, int] = {}
    for one in analyse(source).defects:
        found[one.kind] = min(found.get(one.kind, len(SURE)), SURE.index(one.certainty))
    return found


@pytest.mark.parametrize("kind", ABSENT)
def test_nothing_is_claimed_or_surer_as_something_is_done_to_a_module(kind: str) -> None:
    for number, path in enumerate(sorted((FIXTURES / kind).glob("*/before.py"))[::3]):
        text = path.read_text("utf-8")
        before = known(text)
        for way in sorted(WAYS)[number % 3 :: 3]:
            for other in given_away(text, way):
                after = known(other)
                assert {one for one in after if after[one] < before.get(one, len(SURE))} == set(), other
