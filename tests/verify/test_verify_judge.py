"""The judge's words: each verdict on a rewrite that deserves it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from gradfix.verify import Claim, Command, JudgeOptions, Launcher, Limits, Verdict, judge

pytestmark = pytest.mark.torch

HEAD = """
import torch, torch.nn as nn, torch.nn.functional as F
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(8, 4), torch.randn(8, 1)
"""
FIRST = HEAD.count("\n") + 1
"""The line that a body starts on."""

RELU = "h = model[1](model[0](x))\nh += 1\nF.mse_loss(model[2](h), y).backward()\n"
RELU_MENDED = RELU.replace("h += 1", "h = h + 1")
LOOP = "for _ in range(3):\n    F.mse_loss(model(x), y).backward()\n    opt.step()\n"


@pytest.fixture(scope="module")
def launcher() -> Iterator[Launcher]:
    with Launcher() as one:
        yield one


def judged(
    launcher: Launcher, folder: Path, before: str, after: str, kind: str = "", line: int = 1
) -> list[Verdict]:
    path = str(folder / "train.py")
    texts = [(HEAD + textwrap.dedent(text)).encode() for text in (before, after)]
    at = FIRST + line - 1
    claims = [Claim(path, kind, at)] if kind else []
    options = JudgeOptions(claims, cwd=str(folder), limits=Limits(seconds=5))
    return judge({path: texts[0]}, {path: texts[1]}, Command("script", path), options, launcher)


def test_flows_when_the_defect_is_gone_and_the_gradient_arrives(launcher: Launcher, tmp_path: Path) -> None:
    whole, one = judged(launcher, tmp_path, RELU, RELU_MENDED, "inplace_overwrites_saved", 2)
    assert whole.verdict == one.verdict == "flows"
    assert not any(one.before.values())
    assert set(one.after) == {f"model.{i}.{n}" for i in (0, 2) for n in ("weight", "bias")}
    assert all(one.after.values())


def test_flows_for_a_wrong_gradient_that_raised_nothing(launcher: Launcher, tmp_path: Path) -> None:
    mended = LOOP.replace("    F.mse", "    opt.zero_grad()\n    F.mse")
    assert judged(launcher, tmp_path, LOOP, mended, "missing_zero_grad", 2)[1].verdict == "flows"


def test_an_exception_that_only_went_away_is_no_fix(launcher: Launcher, tmp_path: Path) -> None:
    silenced = RELU.replace("h += 1", "h = h.detach() + 1").replace(
        "backward()", "requires_grad_().backward()"
    )
    silenced = silenced.replace("model[2](h)", "model[2](h).detach()")
    word = judged(launcher, tmp_path, RELU, silenced, "inplace_overwrites_saved", 2)[0].verdict
    assert word not in ("flows", "flows partly")


def test_no_change_when_the_defect_is_still_there(launcher: Launcher, tmp_path: Path) -> None:
    other = RELU.replace("h += 1", "h.add_(1)")
    assert judged(launcher, tmp_path, RELU, other, "inplace_overwrites_saved", 2)[0].verdict == "no change"


def test_no_change_when_what_was_missed_is_missed_as_before(launcher: Launcher, tmp_path: Path) -> None:
    before = """
    aux = nn.Linear(4, 1)
    opt = torch.optim.SGD([*model.parameters(), *aux.parameters()], lr=0.1)
    for _ in range(3):
        opt.zero_grad()
        term = aux(x).pow(2).mean().item()
        (F.mse_loss(model(x), y) + term).backward()
        opt.step()
    """
    mended, gone = before.replace(".item()", ""), before.replace("+ term", "+ 1.0 * term")
    words = [judged(launcher, tmp_path, before, text)[0].verdict for text in (mended, gone)]
    assert words == ["flows", "no change"]


def test_flows_partly_when_one_of_two_is_mended(launcher: Launcher, tmp_path: Path) -> None:
    before = RELU + "opt.step()\n" + RELU.replace("+= 1", "*= 2")
    body = "try:\n" + textwrap.indent(RELU, "    ") + "except RuntimeError: pass\n"
    before, after = body + RELU, body.replace("h += 1", "h = h + 1") + RELU
    verdicts = judged(launcher, tmp_path, before, after, "inplace_overwrites_saved", 3)
    assert verdicts[0].verdict == "flows partly"


def test_worse_when_a_healthy_program_fails_after(launcher: Launcher, tmp_path: Path) -> None:
    assert judged(launcher, tmp_path, RELU_MENDED, RELU)[0].verdict == "worse"


def test_worse_when_a_parameter_loses_its_gradient(launcher: Launcher, tmp_path: Path) -> None:
    cut = RELU_MENDED.replace("h + 1", "h.detach() + 1") + "opt.step()\n"
    assert judged(launcher, tmp_path, RELU_MENDED + "opt.step()\n", cut)[0].verdict == "worse"


FREEZES = {
    "a module": "model[0].requires_grad = False\n",
    "its parameters": "for p in model[0].parameters():\n    p.require_grad = False\n",
}
MEANT = {
    "a module": "model[0].requires_grad_(False)\n",
    "its parameters": FREEZES["its parameters"].replace("require_grad", "requires_grad"),
}
CLEARED = LOOP.replace("    F.mse", "    opt.zero_grad()\n    F.mse")


@pytest.mark.parametrize("what", FREEZES)
def test_flows_when_what_was_to_be_frozen_gets_no_gradient_any_more(
    what: str, launcher: Launcher, tmp_path: Path
) -> None:
    line = FREEZES[what].count("\n")
    before, after = FREEZES[what] + CLEARED, MEANT[what] + CLEARED
    word = judged(launcher, tmp_path, before, after, "requires_grad_misspelt", line)[1]
    assert word.verdict == "flows"
    assert "model.0.bias, model.0.weight frozen, as written" in word.reason


def test_worse_when_more_is_frozen_than_was_meant(launcher: Launcher, tmp_path: Path) -> None:
    before, after = FREEZES["a module"], MEANT["a module"] + "model[2].bias.requires_grad_(False)\n"
    said = judged(launcher, tmp_path, before + CLEARED, after + CLEARED, "requires_grad_misspelt", 1)[1]
    assert said.verdict == "worse"
    assert said.reason == "no gradient any more at model.2.bias"


UNREGISTERED = """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(4, 4)]
        self.out = nn.Linear(4, 1)

    def forward(self, x):
        return self.out(self.layers[0](x))

net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
""" + CLEARED.replace("model", "net")


def test_what_is_registered_keeps_its_name(launcher: Launcher, tmp_path: Path) -> None:
    mended = UNREGISTERED.replace("[nn.Linear(4, 4)]", "nn.ModuleList([nn.Linear(4, 4)])")
    word = judged(launcher, tmp_path, UNREGISTERED, mended, "unregistered_parameters", 4)[1]
    assert word.verdict == "flows"
    assert word.before.keys() == word.after.keys()
    assert "net.layers.0.weight" in word.before and all(word.before.values())


def test_not_reproduced_when_the_program_was_fine(launcher: Launcher, tmp_path: Path) -> None:
    verdicts = judged(launcher, tmp_path, RELU_MENDED, RELU_MENDED + "\n", "inplace_overwrites_saved", 2)
    assert verdicts[1].verdict == "not reproduced"


HIDDEN = """h = model[1](model[0](x))
h += 1
F.mse_loss(model[2](h), y).backward()
loss = model(x)
loss.backward()
"""


def test_not_reached_when_another_defect_stopped_the_program_before(
    launcher: Launcher, tmp_path: Path
) -> None:
    mended = HIDDEN.replace("h += 1", "h = h + 1").replace("loss.b", "loss.sum().b")
    verdict = judged(launcher, tmp_path, HIDDEN, mended, "non_scalar_backward", 5)[1]
    assert verdict.verdict == "not reached"
    assert f"the program stopped (RuntimeError, line {FIRST + 2}:" in verdict.reason


def test_not_reproduced_when_the_program_stopped_before_it_could_show(
    launcher: Launcher, tmp_path: Path
) -> None:
    before = LOOP.replace("opt.step()", "opt.step()\n    model(x).backward()")
    mended = before.replace("    F.mse", "    opt.zero_grad()\n    F.mse").replace(
        "(x).backward", "(x).sum().backward"
    )
    verdict = judged(launcher, tmp_path, before, mended, "missing_zero_grad", 2)[1]
    assert verdict.verdict == "not reproduced"
    assert "these lines ran, but the program stopped (RuntimeError" in verdict.reason


def test_not_reached_when_the_run_ended_after_enough_steps(launcher: Launcher, tmp_path: Path) -> None:
    healthy = LOOP.replace("    F.mse", "    opt.zero_grad()\n    F.mse")
    late = healthy + "e = torch.exp(model(x))\ne += 1\n"
    verdict = judged(
        launcher, tmp_path, late, late.replace("e += 1", "e = e + 1"), "inplace_overwrites_saved", 6
    )[1]
    assert verdict.verdict == "not reached"
    assert f"it ended after enough steps, in line {FIRST + 3}" in verdict.reason


def test_not_reached_when_the_lines_never_ran(launcher: Launcher, tmp_path: Path) -> None:
    unused = (
        "def unused():\n" + textwrap.indent(RELU, "    ") + "\n\n\n\nF.mse_loss(model(x), y).backward()\n"
    )
    after = unused.replace("h += 1", "h = h + 1")
    verdicts = judged(launcher, tmp_path, unused, after, "inplace_overwrites_saved", 3)
    assert verdicts[0].verdict == "not reached"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        pytest.param("import nothing_of_that_name", "an import failed", id="a failed import"),
        pytest.param("open('nothing.csv')", "missing data", id="missing data"),
        pytest.param("while True: pass", "still running after 5 s", id="a hang"),
        pytest.param("input()", "standard input", id="a question to the user"),
        pytest.param("import ctypes; ctypes.string_at(0)", "killed by a signal", id="a crash"),
    ],
)
def test_could_not_run_says_why(line: str, reason: str, launcher: Launcher, tmp_path: Path) -> None:
    verdict = judged(launcher, tmp_path, line + "\n" + RELU, line + "\n" + RELU_MENDED)[0]
    assert (verdict.verdict, reason in verdict.reason) == ("could not run", True), verdict.reason


def test_could_not_run_without_torch(tmp_path: Path) -> None:
    options = JudgeOptions(python="/nonexistent/python", cwd=str(tmp_path))
    path = str(tmp_path / "train.py")
    verdict = judge({path: b"1"}, {path: b"2"}, Command("script", path), options)[0]
    assert verdict.verdict == "could not run"
    assert "cannot start /nonexistent/python" in verdict.reason


def test_a_verdict_is_plain_json(launcher: Launcher, tmp_path: Path) -> None:
    found = judged(launcher, tmp_path, RELU, RELU_MENDED, "inplace_overwrites_saved", 2)[1].to_json()
    assert found["verdict"] == "flows"
    assert found["rule"] == "inplace_overwrites_saved"
    assert set(found["gradients"]) == {"before", "after"}


DECAYED = """
decay = [p for n, p in model.named_parameters() if n.endswith("weight")]
plain = [p for n, p in model.named_parameters() if n.endswith("bias")]
groups = [{"params": decay, "weight_decay": 0.5}, {"params": plain, "weight_decay": 0.0}]
opt = torch.optim.AdamW(groups, lr=0.01)
for _ in range(3):
    F.mse_loss(model(x), y).backward()
    opt.step()
"""
GAN = """
G, D = nn.Linear(4, 4), nn.Linear(4, 1)
opt_g, opt_d = torch.optim.SGD(G.parameters(), lr=0.1), torch.optim.SGD(D.parameters(), lr=0.1)
for _ in range(3):
    opt_g.zero_grad()
    opt_d.zero_grad()
    D(G(x).detach()).mean().backward()
    opt_d.step()
    (-D(G(x))).mean().backward()
    opt_g.step()
"""
ZEROED = "for _ in range(3):\n    opt.zero_grad()\n"
MENDED_LOOP = ZEROED + LOOP.partition("\n")[2]
COSTS = {
    "the decay of all weights": (
        DECAYED,
        DECAYED.replace(": 0.5", ": 0.0").replace("for _ in range(3):\n", ZEROED),
        "the decay of 2 parameters is gone (model.0.weight, model.2.weight)",
    ),
    "the learning rate": (
        LOOP, MENDED_LOOP.replace("opt.step()", "opt.param_groups[0]['lr'] = 0.2; opt.step()"),
        "lr of 4 parameters changes from 0.1 to 0.2",
    ),
    "the value of the loss": (
        LOOP, MENDED_LOOP.replace("F.mse_loss(model(x), y)", "(2 * F.mse_loss(model(x), y))"),
        "the first loss changes from ",
    ),
    "a weight that is moved by hand as well": (
        "hook = lambda o, a, k: None\n" + LOOP,
        "def hook(o, a, k):\n    with torch.no_grad(): o.param_groups[0]['params'][0].mul_(0.5)\n"
        "opt.register_step_pre_hook(hook)\n" + MENDED_LOOP,
        "the same gradient makes another weight of model.0.weight",
    ),
    "whose weights learn from whose loss": (
        GAN, GAN.replace("G(x).detach()", "G(x)"),
        "G.bias, G.weight of opt_g now learn from the backward in line ",
    ),
    "what a module returns": (
        "class Net(nn.Module):\n    def forward(self, x): return model(x), x\nnet = Net()\n"
        + LOOP.replace("model(x)", "net(x)[0]"),
        "class Net(nn.Module):\n    def forward(self, x): return model(x), 2 * x\nnet = Net()\n"
        + MENDED_LOOP.replace("model(x)", "net(x)[0]"),
        "what Net returns changes in the first step (its norm from ",
    ),
    "what batch norm has seen": (
        "norm = nn.BatchNorm1d(4)\nmodel[1] = norm\n" + LOOP,
        "norm = nn.BatchNorm1d(4)\nmodel[1] = norm\nnorm(x * 3)\n" + MENDED_LOOP,
        "the first step ends with another buffer: BatchNorm1d#",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", COSTS)
def test_worse_when_the_rewrite_costs(name: str, launcher: Launcher, tmp_path: Path) -> None:
    before, after, why = COSTS[name]
    said = judged(launcher, tmp_path, before, after)[0]
    assert said.verdict == "worse"
    assert said.reason.startswith(why)


def test_what_differs_from_run_to_run_is_no_cost_of_the_rewrite(launcher: Launcher, tmp_path: Path) -> None:
    drawn = "import os\nx = x + int.from_bytes(os.urandom(2), 'big') / 65536\n"
    mended = drawn + MENDED_LOOP
    said = judged(launcher, tmp_path, drawn + LOOP, mended, "missing_zero_grad", 4)[0]
    assert said.verdict == "flows"


def test_a_part_that_learned_from_nothing_may_learn_now(launcher: Launcher, tmp_path: Path) -> None:
    """Two optimizers on one model: the one that was cut off is the one that gains."""
    loop = (
        "one = torch.optim.SGD(model[0].parameters(), lr=0.1)\n"
        "opt = torch.optim.SGD(model[2].parameters(), lr=0.1)\n"
        "for _ in range(3):\n    one.zero_grad(); opt.zero_grad()\n"
        "    F.mse_loss(model[2](model[0](x).detach()), y).backward()\n    one.step(); opt.step()\n"
    )
    said = judged(launcher, tmp_path, loop, loop.replace(".detach()", ""))[0]
    assert said.verdict == "flows"
