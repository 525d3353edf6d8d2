"""Who says that something is missing has an account: what of it isn't known makes the claim a suspect."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest

from gradfix.defects import KINDS, Assumption, Defect
from gradfix.defects.leaning import Gap, certainty_of
from gradfix.defects.reasons import Reason, What
from gradfix.defects.records import RECORDS
from gradfix.registry import codemods
from gradfix.source import Source, parse
from gradfix.tape import entries
from gradfix.tape.domain.trail import Trail
from gradfix.tape.entries import analyse
from gradfix.tape.machine.account import Account
from gradfix.tape.machine.here import Here
from gradfix.tape.machine.reports import Findings, Reports

HEAD = """
import torch
import torch.nn.functional as F
from torch import nn
from elsewhere import unknown
"""
ABSENCE = {"GF204", "GF207", "GF208", "GF209", "GF210", "GF211", "GF401", "GF402", "GF403"}
"""The rules that say that nothing reaches, fills, clears, registers, keeps or walks something."""


def only(body: str, kind: str) -> Defect:
    source = parse("script.py", (HEAD + dedent(body)).encode())
    assert isinstance(source, Source)
    (found,) = (one for one in analyse(source).defects if one.kind == kind)
    return found


def test_these_rules_claim_an_absence() -> None:
    assert {codemods()[kind].rule.code for kind, traits in KINDS.items() if traits.absence} == ABSENCE


@pytest.mark.parametrize("kind", [kind for kind, traits in KINDS.items() if traits.absence])
def test_an_absence_can_not_be_claimed_without_an_account(kind: str) -> None:
    reports = Reports(Findings("script.py", [b"pass"]), Here("script.py", Trail()))
    place = ast.parse("pass").body[0]
    with pytest.raises(TypeError, match="account"):
        reports.report(kind, place, [], RECORDS[kind]())
    whole, lacking = (
        Account(Assumption.NOBODY_ELSE_FILLS),
        Account(Assumption.NOBODY_ELSE_FILLS, gaps=(Reason(What.CALLED, "`helper`"),)),
    )
    known = reports.draft(kind, place, [], RECORDS[kind](), account=whole)
    doubted = reports.draft(kind, place, [], RECORDS[kind](), account=lacking)
    assert known is not None and certainty_of(known.lean) == "certain"
    assert doubted is not None and certainty_of(doubted.lean) == "suspect"
    assert Gap(Assumption.NOBODY_ELSE_FILLS, lacking.gaps[0]) in doubted.lean


TRAINED = """
net = nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    {}
"""
STALE = TRAINED.format("net(torch.ones(2)).sum().backward(); opt.step(); {}")
ERASED = TRAINED.format("net(torch.ones(2)).sum().backward(); opt.zero_grad(); {}; opt.step()")
HIDDEN = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(2, 2)
        self.layers = [nn.Linear(2, 2), nn.Linear(2, 2)]
        {}
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(x)
net = Net()
{}
net(torch.ones(1, 2)).sum().backward()
opt.step()
"""
OWN = "opt = torch.optim.SGD(net.parameters(), lr=0.1)"
REPLACED = """
net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
opt = torch.optim.SGD({}, lr=0.1)
net[1] = nn.Linear(2, 3)
{}
net(torch.ones(1, 2)).sum().backward()
opt.step()
"""
CUT_OFF = """
net, other = nn.Linear(2, 1), nn.Linear(2, 1)
opt = torch.optim.SGD([*net.parameters(), *other.parameters()], lr=0.1)
other(torch.ones(2)).sum().backward()
fake = net(torch.ones(2))
{}
(other(torch.ones(2)).sum() + fake.detach().sum()).backward()
opt.step()
"""
UNREACHED = """
net, other = nn.Linear(2, 1), nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
other(torch.ones(1, 2)).sum().backward()
fake = net(torch.ones(2))
{}
(other.weight * torch.relu(fake.detach() * 2)).sum().backward()
opt.step()
"""
TOTAL = """
net = nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
{}
"""
SUMMED = """
total = torch.zeros(1)
for _ in range(3):
    loss = net(torch.ones(2)).sum()
    total = total + loss
    opt.zero_grad()
    loss.backward()
    opt.step()
{}
"""
DEEP = """
def deep(n):
    return net(torch.ones(2)) if n == 0 else deep(n - 1)
"""
UNLISTED, TOLD = "unregistered_parameters", "`unknown`"
OF_OTHERS = "optimizer_before_replacement"
CASES: dict[str, tuple[str, str, What, str]] = {
    "GF204, a call that had the tensor": (
        "no_leaf_requires_grad", "x = torch.ones(3)\nunknown(x)\nx.sum().backward()\n", What.CALLED, TOLD,
    ),
    "GF207, a call that had a graph of it": (
        "severed_term", CUT_OFF.format("unknown(fake.sum())"), What.CALLED, TOLD,
    ),
    "GF207, a call of an argument that had the network": (
        "severed_term", CUT_OFF.format("(lambda f: f(net))(unknown())"), What.CALLED, "`f`",
    ),
    "GF208, a call that had a graph of it": (
        "unreached_parameters", UNREACHED.format("unknown(fake.sum())"), What.CALLED, TOLD,
    ),
    "GF209, a call that had the result": (
        "grad_of_non_leaf",
        "x = torch.ones(3, requires_grad=True)\ny = x * 2\nunknown(y)\n"
        "(y * y).sum().backward()\nprint(y.grad)\n",
        What.CALLED, TOLD,
    ),
    "GF210, a call that had the module": (
        UNLISTED, HIDDEN.format("pass", OWN + "\nunknown(net)"), What.CALLED, TOLD,
    ),
    "GF210, a call that had it while it was built": (
        UNLISTED, HIDDEN.format("unknown(self)", OWN), What.CALLED, TOLD,
    ),
    "GF210, a list of parameters that may hold those": (
        UNLISTED,
        HIDDEN.format("self.listed = nn.ParameterList(unknown())", OWN), What.ATTRIBUTE, "`listed`",
    ),
    "GF210, an optimizer that isn't seen whole": (
        UNLISTED,
        HIDDEN.format("pass", "opt = torch.optim.SGD([*net.parameters(), *unknown()], lr=0.1)"),
        What.OPTIMIZER, "`opt`",
    ),
    "GF210, an optimizer that somebody makes of the module": (
        UNLISTED, HIDDEN.format("pass", "opt = unknown(net)\nopt.zero_grad()"), What.IMPORT, TOLD,
    ),
    "GF211, a call that had the new layer": (
        OF_OTHERS, REPLACED.format("net.parameters()", "unknown(net[1])"), What.CALLED, TOLD,
    ),
    "GF211, an optimizer that isn't seen whole": (
        OF_OTHERS, REPLACED.format("[*net.parameters(), *unknown()]", ""), What.OPTIMIZER, "`opt`",
    ),
    "GF401, a call that had the optimizer": (
        "missing_zero_grad", STALE.format("unknown(opt)"), What.CALLED, TOLD,
    ),
    "GF401, a call that had the network": (
        "missing_zero_grad", STALE.format("unknown(net)"), What.CALLED, TOLD,
    ),
    "GF401, a method that isn't known": (
        "missing_zero_grad", STALE.format("unknown.log(net.parameters())"), What.CALLED, "unknown.log",
    ),
    "GF402, a call that had the optimizer": (
        "zero_grad_before_step", ERASED.format("unknown(opt)"), What.CALLED, TOLD,
    ),
    "GF402, a call that had a graph": (
        "zero_grad_before_step",
        ERASED.replace("opt.zero_grad()", "loss = net(torch.ones(2)).sum(); opt.zero_grad()").format(
            "unknown(loss)"
        ),
        What.CALLED, TOLD,
    ),
    "GF402, a backward that comes to what isn't known": (
        "zero_grad_before_step", ERASED.format("unknown().backward()"), What.IMPORT, TOLD,
    ),
    "GF402, a term that isn't known": (
        "zero_grad_before_step",
        ERASED.format("torch.stack([torch.ones(1, requires_grad=True).sum(), unknown()]).sum().backward()"),
        What.IMPORT, TOLD,
    ),
    "GF402, a call that is left out": (
        "zero_grad_before_step", DEEP + ERASED.format("deep(9).sum().backward()"), What.BUDGET, "",
    ),
    "GF401, a call that had the optimizer of a loop": (
        "missing_zero_grad",
        """
        from helpers import finish, load
        net = nn.Linear(2, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for x in load():
            net(x).sum().backward()
            opt.step()
            finish(opt)
        """,
        What.CALLED, "`finish`",
    ),
    "GF402, a helper that had a loss of the same network": (
        "zero_grad_before_step",
        """
        from training import run
        critic, maker = nn.Linear(4, 1), nn.Linear(4, 4)
        of_critic = torch.optim.Adam(critic.parameters())
        of_maker = torch.optim.Adam(maker.parameters())
        for noise in torch.randn(3, 2, 4):
            of_critic.zero_grad()
            run(critic(maker(noise).detach()).mean())
            of_critic.step()
            of_maker.zero_grad()
            (-critic(maker(noise)).mean()).backward()
            of_maker.step()
        """,
        What.CALLED, "`run`",
    ),
    "GF402, a loss whose making isn't known": (
        "zero_grad_before_step",
        """
        from training import judged
        critic, maker = nn.Linear(4, 1), nn.Linear(4, 4)
        of_critic = torch.optim.Adam(critic.parameters())
        of_maker = torch.optim.Adam(maker.parameters())
        for noise in torch.randn(3, 2, 4):
            of_critic.zero_grad()
            loss = judged(noise)
            loss.backward()
            of_critic.step()
            of_maker.zero_grad()
            (-critic(maker(noise)).mean()).backward()
            of_maker.step()
        """,
        What.IMPORT, "`judged`",
    ),
    "GF402, what may run backward between, of an optimizer that came in": (
        "zero_grad_before_step",
        """
        def train(model, optimizer, loader, learner):
            for x in loader:
                optimizer.zero_grad()
                learner.learn(x)
                optimizer.step()
                model(x).sum().backward()
        """,
        What.CALLED, "`learner.learn`",
    ),
    "GF402, what may fill the gradients of an optimizer that came in": (
        "zero_grad_before_step",
        """
        def train(model, optimizer, loader, refill):
            for x in loader:
                model(x).sum().backward()
                optimizer.zero_grad()
                refill(optimizer)
                optimizer.step()
        """,
        What.CALLED, "`refill`",
    ),
    "GF403, a call that had the total": (
        "graph_leak", TOTAL.format(SUMMED.format("unknown(total)")), What.CALLED, TOLD,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "body", "what", "name"), CASES.values(), ids=CASES.keys())
def test_what_is_not_known_makes_it_a_suspect_with_that_reason(
    kind: str, body: str, what: What, name: str
) -> None:
    found = only(body, kind)
    assert found.certainty == "suspect"
    assert [one for one in found.unknowns if one.root.what is what and name in one.says], found.unknowns


WHOLE = {
    "GF204": ("no_leaf_requires_grad", "x = torch.ones(3)\nx.sum().backward()\n"),
    "GF207": ("severed_term", CUT_OFF.format("pass")),
    "GF208": ("unreached_parameters", UNREACHED.format("pass")),
    "GF209": (
        "grad_of_non_leaf",
        "x = torch.ones(3, requires_grad=True)\ny = x * 2\n(y * y).sum().backward()\nprint(y.grad)\n",
    ),
    "GF210": ("unregistered_parameters", HIDDEN.format("pass", OWN)),
    "GF211": ("optimizer_before_replacement", REPLACED.format("net.parameters()", "")),
    "GF401": ("missing_zero_grad", STALE.format("pass")),
    "GF402": ("zero_grad_before_step", ERASED.format("pass")),
    "GF403": ("graph_leak", TOTAL.format(SUMMED.format("pass"))),
}


@pytest.mark.parametrize(("kind", "body"), WHOLE.values(), ids=WHOLE.keys())
def test_with_nothing_unknown_in_it_the_account_is_whole(kind: str, body: str) -> None:
    found = only(body, kind)
    assert found.certainty in ("certain", "likely")
    assert found.unknowns == ()


def test_there_is_one_of_them_for_each_rule() -> None:
    assert WHOLE.keys() == ABSENCE == {case.partition(",")[0] for case in CASES}


LATE = ("GF204", "GF207", "GF208", "GF210", "GF211", "GF403")
"""Those that are only known when all has run; gradients are judged where a step uses them."""


@pytest.mark.parametrize("code", LATE)
def test_what_was_not_run_may_make_up_for_it(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, body = WHOLE[code]
    monkeypatch.setattr(entries, "_work", lambda size: 3_000)
    found = only(body + "x = 0\n" * 3_000, kind)
    assert found.certainty == "suspect"
    assert [one.what for one in found.unknowns] == [What.BUDGET]
    assert found.assumptions == (Assumption.ALL_HAS_RUN.value,)
