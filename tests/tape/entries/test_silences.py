"""Where nothing is said of a backward, a step or a write, the reason is noted for whoever asks."""

from __future__ import annotations

import pytest

from gradfix.defects import Assumption, Span
from gradfix.defects.reasons import Reason, What
from gradfix.source import Source, parse
from gradfix.tape.checks.unruled import ALONG, EACH_TIME, ONE_WAY
from gradfix.tape.domain.alternatives import alternatives
from gradfix.tape.domain.paths import Path
from gradfix.tape.domain.values import Alt, Unknown, Value
from gradfix.tape.domain.why import Why, why_of, whys
from gradfix.tape.entries import analyse

HEAD = "import torch\nfrom torch import nn\nimport elsewhere\n"
SILENT = {
    "a backward from what an unknown call returned": (
        "loss = elsewhere.loss()\nloss.backward()\n",
        "loss.backward()",
        "whether this has a graph isn't known: the result of `elsewhere.loss`, which isn't read (line 4)",
    ),
    "a write on what an unknown call returned": (
        "x = elsewhere.tensor()\ny = torch.exp(x)\ny += 1\n",
        "y += 1",
        "whether what is written is in a graph isn't known: "
        "the result of `elsewhere.tensor`, which isn't read (line 4)",
    ),
    "a term that is cut off beside one that isn't": (
        "w = torch.ones(2, requires_grad=True)\nv = torch.ones(2, requires_grad=True)\n"
        "aside = (v * v).sum().detach()\n((w * w).sum() + aside).backward()\nv.sum().backward()\n",
        "(v * v).sum().detach()",
        "what is cut off here is taken for a constant of the loss: "
        "what is behind it learns without it, too, where this loss is walked (line 7)",
    ),
    "a total of a loss that has many makings": (
        "import argparse\nargs = argparse.ArgumentParser().parse_args()\ntotal = 0\n"
        "w = torch.ones(3, requires_grad=True)\nfor x in torch.ones(1000, 3):\n    loss = (w * x).mean()\n"
        + "".join(f"    if args.f{i}:\n        loss = loss + w.pow({i}).mean()\n" for i in range(2, 6))
        + "    loss.backward()\n    total += loss\n",
        "total += loss",
        "whether what is put by keeps a graph isn't known",
    ),
    "a step of what nobody is seen to clear": (
        "def train(x, optimizer, model):\n    model(x).sum().backward()\n    optimizer.step()\n",
        "optimizer.step()",
        "what this holds isn't known, nor whether somebody else clears it: argument `optimizer` (line 4)",
    ),
    "parameters that no backward reaches": (
        "used, unused = nn.Linear(2, 1), nn.Linear(2, 1)\n"
        "optimizer = torch.optim.SGD([*used.parameters(), *unused.parameters()], lr=0.1)\n"
        "used(torch.ones(1, 2)).sum().backward()\noptimizer.step()\n",
        "torch.optim.SGD([*used.parameters(), *unused.parameters()], lr=0.1)",
        "no backward that is seen reaches some of what this holds",
    ),
}


BOTH = """
G, D = nn.Linear(2, 2), nn.Linear(2, 1)
of_g, of_d = torch.optim.SGD(G.parameters(), lr=0.1), torch.optim.SGD(D.parameters(), lr=0.1)
for x in torch.ones(3, 4, 2):
    G.zero_grad()
    D.zero_grad()
    {first}.backward()
    {second}.backward()
    of_d.step()
    of_g.step()
"""
FREEZES = """
net = nn.Linear(2, 1)
def freeze(wanted):
    for p in net.parameters():
        if {test}:
            p.requires_grad = {value}
freeze(elsewhere.wanted)
"""
ACCUMULATES = """
def train(net, accelerator):
    optimizer = accelerator.prepare(torch.optim.SGD(net.parameters(), lr=0.1))
    for x in torch.ones(3, 4, 2):
        with accelerator.{block}(net):
            accelerator.backward(net(x).sum())
            optimizer.step()
            {clear}.zero_grad()
"""
UNRULED = {
    "a step along the loss of another optimizer": (
        BOTH.format(first="D(x).sum()", second="D(G(x)).sum()"),
        BOTH.format(first="D(x).sum()", second="(G(x) * 2).sum()"),
        "D(G(x)).sum().backward()",
        ALONG,
    ),
    "a step along a loss that two optimizers share": (
        BOTH.format(first="(G(x) * 2).sum()", second="D(G(x)).sum()"),
        BOTH.format(first="D(G(x)).sum()", second="(D(G(x)) * 2).sum()"),
        "D(G(x)).sum().backward()",
        ALONG,
    ),
    "a switch that only what is on is told": (
        FREEZES.format(test="p.requires_grad", value="wanted"),
        FREEZES.format(test="wanted is not None", value="wanted"),
        "p.requires_grad = wanted",
        ONE_WAY,
    ),
    "a switch that turns off what is on": (
        FREEZES.format(test="p.requires_grad", value="not wanted"),
        FREEZES.format(test="p.requires_grad", value="False"),
        "p.requires_grad = not wanted",
        ONE_WAY,
    ),
    "a module that is cleared between the steps of an accelerator": (
        ACCUMULATES.format(block="accumulate", clear="net"),
        ACCUMULATES.format(block="accumulate", clear="optimizer"),
        "net.zero_grad()",
        EACH_TIME,
    ),
    "a module that is cleared where each turn steps": (
        ACCUMULATES.format(block="accumulate", clear="net"),
        ACCUMULATES.format(block="profile", clear="net"),
        "net.zero_grad()",
        EACH_TIME,
    ),
}


def silences(body: str) -> set[tuple[str, str]]:
    source = parse("main.py", (HEAD + body).encode())
    assert isinstance(source, Source)
    found = analyse(source)
    assert [one for one in found.defects if one.impact != "style"] == []
    return {(source.places.text(one.span), one.reason) for one in found.silences}


@pytest.mark.parametrize(("body", "place", "reason"), SILENT.values(), ids=SILENT.keys())
def test_what_could_not_be_decided_has_a_reason(body: str, place: str, reason: str) -> None:
    assert (place, reason) in silences(body)


@pytest.mark.parametrize(("body", "other", "place", "reason"), UNRULED.values(), ids=UNRULED.keys())
def test_what_no_rule_is_about_has_a_reason(body: str, other: str, place: str, reason: str) -> None:
    assert (place, reason) in silences(body)
    assert reason not in {said for _, said in silences(other)}


ONE_OF_SEVERAL = """class Block(nn.Module):
    def __init__(self, rate=0.0):
        super().__init__()
        self.norm, self.mlp = nn.LayerNorm(4), nn.Linear(4, 4)
        self.drop = elsewhere.Dropout(rate) if rate > 0.0 else nn.Identity()
    def forward(self, x):
        x = self.mlp(x)
        h = self.drop(self.norm(x))
        x += {added}
        return x
"""
WRITTEN_OVER = (
    "whether a backward needs what is written over here isn't known: "
    "the result of `self.drop`, which isn't followed (line 11)"
)


@pytest.mark.parametrize(
    ("added", "said"), [("h", True), ("1", False)], ids=["what leads back to it", "a number"]
)
def test_a_write_over_what_a_layer_that_is_one_of_several_leads_back_to(added: str, said: bool) -> None:
    source = parse("main.py", (HEAD + ONE_OF_SEVERAL.format(added=added)).encode())
    assert isinstance(source, Source)
    told = {(source.places.text(one.span), one.reason) for one in analyse(source).silences}
    assert ((f"x += {added}", WRITTEN_OVER) in told) is said


GROWN = """w = torch.ones(2, requires_grad=True)
seen = []
for x in {items}:
    seen.append(x)
    if len(seen) < 64:
        continue
    (w * torch.stack(seen)).sum().backward()
    seen.clear()
"""
HOW_LONG = "two turns of a loop are run: how long this gets in others isn't known"


@pytest.mark.parametrize("items", ["torch.randn(1000, 2)", "range(1000)", "elsewhere.items()"])
def test_a_list_that_later_turns_make_longer_is_a_reason_for_silence(items: str) -> None:
    assert ("len(seen) < 64", HOW_LONG) in silences(GROWN.format(items=items))


@pytest.mark.parametrize(
    ("grown", "instead"),
    [("    seen.append(x)\n", ""), ("range(1000)", "range(3)"), ("< 64", "< 2")],
    ids=["nothing is put into it", "all turns are run", "two turns are enough"],
)
def test_a_list_whose_length_is_known_is_none(grown: str, instead: str) -> None:
    body = GROWN.format(items="range(1000)")
    assert grown in body
    assert HOW_LONG not in {said for _, said in silences(body.replace(grown, instead))}


def test_what_is_decided_has_none() -> None:
    assert silences("w = torch.ones(2, requires_grad=True)\n(w * w).sum().backward()\n") == set()


MASKS = """
class Mixture(nn.Module):
    def __init__(self, count):
        super().__init__()
        self.count = count
        self.experts = nn.ModuleList(nn.Linear(3, 1) for _ in range(count))

    def forward(self, x, which):
        out = torch.empty(len(x), 1)
        for k in range(self.count):
            chosen = which == k
            if chosen.any():
                out[chosen] = self.experts[k](x[chosen])
        return out


model = Mixture(3)
loss = model(torch.randn(6, 3), torch.arange(6) % 3).square().mean()
loss.backward()
"""


def test_a_crash_for_which_no_mask_may_hold_anywhere_is_a_suspect() -> None:
    """Of several masks one will hold somewhere; that all are empty is the program's own business."""
    source = parse("main.py", (HEAD + MASKS).encode())
    assert isinstance(source, Source)
    (defect,) = (one for one in analyse(source).defects if one.impact != "style")
    assert (defect.kind, defect.certainty) == ("no_leaf_requires_grad", "suspect")
    assert Assumption.CHOSEN_ALIKE.value in defect.assumptions


def test_a_condition_says_a_test_once_whatever_it_was_about() -> None:
    source = parse("main.py", (HEAD + MASKS).encode())
    assert isinstance(source, Source)
    conditions = [one.condition for one in analyse(source).defects if one.impact != "style"]
    assert conditions == ["not chosen.any()"]


UNKNOWN = {
    What.ARGUMENT: "def f(x):\n    x.backward()\n    torch.exp(x).backward()\n",
    What.CALL: "def f(x):\n    x().backward()\n",
    What.IMPORT: "elsewhere.loss().backward()\n",
    What.SUBCLASS: (
        "class Loss:\n    def of(self):\n        raise NotImplementedError\n\n    def run(self):\n"
        "        self.of().backward()\n"
    ),
    What.ALTERNATIVES: (
        "x = torch.ones(2)\nw = torch.ones(2, requires_grad=True)\n"
        "for i in range(elsewhere.n):\n    pass\n"
        "k = elsewhere.k\ny = w\n"
        "if k == 1:\n    y = x + 1\nelif k == 2:\n    y = x + 2\nelif k == 3:\n    y = x + 3\n"
        "elif k == 4:\n    y = x + 4\nelif k == 5:\n    y = x + 5\ny.backward()\n"
    ),
    What.ATTRIBUTE: "class Held(elsewhere.Base):\n    def run(self):\n        self.loss.backward()\n",
    What.OPERATION: "w = torch.ones(2, requires_grad=True)\ntorch.einsum(w).backward()\n",
    What.RUN_TIME: "len(elsewhere.losses).backward()\n",
    What.OBJECT: "torch.load('loss').backward()\n",
}


@pytest.mark.parametrize(("what", "body"), UNKNOWN.items(), ids=[what.name.lower() for what in UNKNOWN])
def test_the_reason_of_what_is_not_known_is_data(what: What, body: str) -> None:
    source = parse("main.py", (HEAD + body).encode())
    assert isinstance(source, Source)
    known = [one.unknown for one in analyse(source).silences if one.unknown is not None]
    assert what in {one.root.what for one in known}
    assert all(one.says and one.settled_by for one in known)


@pytest.mark.parametrize("what", What, ids=[what.name.lower() for what in What])
def test_every_reason_has_a_sentence_and_says_what_would_settle_it(what: What) -> None:
    assert "{" not in Reason(what, "it").says
    assert Reason(what, "it").settled_by


def test_a_part_says_what_it_is_a_part_of_and_where_that_came_from() -> None:
    of = Reason(What.ARGUMENT, "batch", Span(3, 0, 3, 5))
    part = Reason(What.ATTRIBUTE, "`loss`", of=of)
    assert part.told == "`loss` of argument `batch` (line 3)"
    assert part.settled_by == of.settled_by


def test_what_is_joined_keeps_the_reason_of_each_alternative() -> None:
    each = [Unknown(Why(What.ARGUMENT, name)) for name in "abcdef"]
    options: list[tuple[Path, Value]] = [(frozenset({(("is", i), True)}), one) for i, one in enumerate(each)]
    joined = alternatives(options)
    assert isinstance(joined, Unknown) and joined.why.what is What.ALTERNATIVES
    assert list(whys(joined))[1:] == [one.why for one in each]
    assert [one.name for one in whys(Alt(tuple(options[:3])))] == ["a", "b", "c"]


def test_what_is_computed_of_it_is_unknown_for_the_same_reason() -> None:
    of = Unknown(Why(What.ARGUMENT, "x"))
    assert (
        why_of(Unknown(Why(What.COMPUTED, "a sum"), (Unknown(Why(What.ELEMENT, "part"), (of,)),))) == of.why
    )


IDLE = """
w = torch.tensor(0.1, requires_grad=True)
opt = torch.optim.SGD([w], lr=0.1)
def update(x, one, two):
    loss = torch.zeros(4, 1)
{terms}
    opt.zero_grad()
    loss.mean().backward()
    opt.step()
"""


@pytest.mark.parametrize(
    ("terms", "certainties"),
    [
        pytest.param("    if one: loss = loss + w * x", ["suspect"], id="a term under a flag"),
        pytest.param(
            "    if one: loss = loss + w\n    if two: loss = loss + w * 2",
            ["suspect"],
            id="two terms, two flags",
        ),
        pytest.param(
            "    if one:\n        loss = w * x\n    else:\n        print('no loss')",
            ["suspect"],
            id="a term, or a word",
        ),
        pytest.param("    if two: w.requires_grad = False\n    loss = loss + w", ["certain"], id="freezing"),
        pytest.param("    loss = loss + 1", ["certain"], id="no term at all"),
    ],
)
def test_a_way_on_which_nothing_is_learnt_is_a_suspect_unless_a_statement_makes_it_so(
    terms: str, certainties: list[str]
) -> None:
    source = parse("main.py", ("import torch\n" + IDLE.format(terms=terms)).encode())
    assert isinstance(source, Source)
    found = [one for one in analyse(source).defects if one.kind == "no_leaf_requires_grad"]
    assert [one.certainty for one in found] == certainties
