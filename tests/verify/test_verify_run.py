"""`gradfix run`: the broken rule is named in the user's line, mended, and proved by another run."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gradfix.config import Config
from gradfix.outcome import Mode, View
from gradfix.plan import plan_for
from gradfix.report.running import render
from gradfix.rule import Safety
from gradfix.run import Told, Wish, run
from gradfix.verify import Command, Launcher, Limits

pytestmark = pytest.mark.torch

HEAD = """import torch, torch.nn as nn, torch.nn.functional as F
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(8, 4), torch.randn(8, 1)
"""
HEALTHY = """for _ in range(3):
    opt.zero_grad()
    F.mse_loss(model(x), y).backward()
    opt.step()
"""
BLOCK = """import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        out = torch.relu(self.fc(x))
        out += x
        return out
"""
TWO = "h = model[1](model[0](x))\nh += 1\nout = model[2](h).exp()\nout *= 2\nout.sum().backward()\n"


@pytest.fixture(scope="module")
def launcher() -> Iterator[Launcher]:
    with Launcher() as one:
        yield one


def told(launcher: Launcher, folder: Path, body: str, mode: Mode = "list") -> Told:
    (folder / "train.py").write_text(HEAD + body)
    command, plan = Command("script", str(folder / "train.py")), plan_for(Config(folder))
    wish = Wish(command, plan, mode, limits=Limits(seconds=20), echo=False)
    return run(wish, launcher)


def test_a_healthy_program_flows(launcher: Launcher, tmp_path: Path) -> None:
    found = told(launcher, tmp_path, HEALTHY)
    assert found.exit_code == 0
    assert set(found.last.fine) == {f"model.{i}.{name}" for i in (0, 2) for name in ("weight", "bias")}


def test_who_keeps_graphs_is_named_though_another_file_has_made_them(
    launcher: Launcher, tmp_path: Path
) -> None:
    (tmp_path / "lossy.py").write_text("def loss(found, wanted):\n    return (found - wanted).exp().mean()\n")
    body = """from lossy import loss
kept = []
for _ in range(3):
    opt.zero_grad()
    one = loss(model(x), y)
    one.backward()
    opt.step()
    kept.append(one)
"""
    found = told(launcher, tmp_path, body)
    (outcome,) = found.outcomes
    (finding,) = outcome.findings
    assert (finding.code, Path(outcome.path).name) == ("GF403", "train.py")
    assert outcome.after is not None
    assert b"kept.append(one.detach())" in outcome.after


def test_a_part_without_a_gradient_says_which_mode_has_kept_it_out(
    launcher: Launcher, tmp_path: Path
) -> None:
    unrecorded = "    with torch.no_grad():\n        h = model[0](x)\n    F.mse"
    body = HEALTHY.replace("    F.mse", unrecorded).replace("model(x)", "model[2](h)")
    reasons = told(launcher, tmp_path, body).last.recording["reasons"]
    assert {why.partition(" in ")[0] for why in reasons.values()} == {"cut by no_grad"}


@pytest.mark.parametrize(
    ("broken", "mended"),
    [
        pytest.param(
            "h = model[1](model[0](x))\nh += 1\nmodel[2](h).sum().backward()\n",
            "h = model[1](model[0](x))\nh = h + 1\nmodel[2](h).sum().backward()\n",
            id="an overwritten value",
        ),
        pytest.param(
            "with torch.no_grad():\n    loss = F.mse_loss(model(x), y)\nloss.backward()\n",
            "loss = F.mse_loss(model(x), y)\nloss.backward()\n",
            id="a forward under no_grad",
        ),
        pytest.param(
            HEALTHY.replace("    opt.zero_grad()\n", ""),
            HEALTHY.replace("    opt.zero_grad()\n    F", "    opt.zero_grad()\n    F"),
            id="gradients never cleared",
        ),
        pytest.param(
            TWO,
            TWO.replace("h += 1", "h = h + 1").replace("out *= 2", "out = out * 2"),
            id="two overwritten values, one behind the other",
        ),
    ],
)
def test_mends_and_writes(broken: str, mended: str, launcher: Launcher, tmp_path: Path) -> None:
    found = told(launcher, tmp_path, broken, "apply")
    assert (tmp_path / "train.py").read_text() == HEAD + mended
    assert [outcome.verdicts[0].verdict for outcome in found.outcomes] == ["flows"]
    assert found.exit_code == 1


def test_finds_the_culprit_in_another_file_of_the_project(launcher: Launcher, tmp_path: Path) -> None:
    (tmp_path / "blocks.py").write_text(
        "def residual(act, x, skip):\n    out = act(x)\n    out += skip\n    return out\n"
    )
    found = told(
        launcher,
        tmp_path,
        "import blocks\nblocks.residual(torch.relu, model[0](x), x).sum().backward()\n",
        "apply",
    )
    assert [Path(outcome.path).name for outcome in found.outcomes] == ["blocks.py"]
    assert "out = out + skip" in (tmp_path / "blocks.py").read_text()
    assert found.outcomes[0].verdicts[0].verdict == "flows"


def test_a_rounding_that_passes_nothing_on_goes_straight_through(tmp_path: Path) -> None:
    text = HEAD + "q = model[0](x).round()\nloss = (q - 1).pow(2).mean()\nloss.backward()\n"
    (tmp_path / "train.py").write_text(text)
    told = gradfix(tmp_path, "run", "--unsafe-fixes", "--apply", "train.py").stdout
    after = (tmp_path / "train.py").read_text()
    assert "q = model[0](x)\nq = q + (q.round() - q).detach()\n" in after, told
    assert "flows" in told


def test_evidence_in_another_file_is_shown_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "parts.py").write_text("def hard(scores):\n    return scores.argmax(1).float()\n")
    (tmp_path / "train.py").write_text(
        HEAD + "from pkg.parts import hard\nloss = hard(model[0](x)).mean()\nloss.backward()\n"
    )
    said = gradfix(tmp_path, "run", "train.py").stdout
    assert "pkg/parts.py:2:12 GF205" in said
    assert "`argmax` has no gradient" in said
    assert "in train.py\n" in said
    assert "8 | loss.backward()   <- backward here" in said
    assert "..." not in said


def test_the_first_value_that_is_not_finite_is_shown_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "parts.py").write_text("def root(w):\n    return w.sqrt()\n")
    (tmp_path / "train.py").write_text(
        HEAD + "from parts import root\nw = torch.zeros(1, requires_grad=True)\nroot(w).sum().backward()\n"
    )
    said = gradfix(tmp_path, "run", "train.py").stdout
    assert said.startswith("parts.py:2: Sqrt")
    assert "      return w.sqrt()\n" in said


def test_names_an_installed_library_and_leaves_it_alone(launcher: Launcher, tmp_path: Path) -> None:
    package = tmp_path / "site-packages"
    package.mkdir()
    text = "def spoil(h):\n    h += 1\n    return h\n"
    (package / "library.py").write_text(text)
    body = (
        f"import sys\nsys.path.insert(0, {str(package)!r})\nimport library\n"
        "library.spoil(model[0](x).exp()).sum().backward()\n"
    )
    found = told(launcher, tmp_path, body, "apply")
    assert found.exit_code == 1
    assert (package / "library.py").read_text() == text


def test_could_not_run(launcher: Launcher, tmp_path: Path) -> None:
    found = told(launcher, tmp_path, "import nothing_of_that_name\n")
    assert found.exit_code == 2
    assert "nothing_of_that_name" in found.broken


@pytest.mark.parametrize(
    ("body", "words"),
    [
        pytest.param("print(model(x).sum())\n", "no backward was seen", id="no backward at all"),
        pytest.param(
            "torch.autograd.grad(model(x).sum(), model[0].weight)\n",
            "only torch.autograd.grad",
            id="gradients handed out",
        ),
        pytest.param(
            "while True:\n    torch.autograd.grad(model(x).sum(), model[0].weight)\n",
            "--max-steps lets it run longer",
            id="a run that was stopped before a backward",
        ),
    ],
)
def test_a_run_without_a_backward_is_no_success(
    body: str, words: str, launcher: Launcher, tmp_path: Path
) -> None:
    found = told(launcher, tmp_path, body)
    assert found.exit_code == 2
    assert words in found.broken


@pytest.mark.parametrize(("tensors", "aside"), [(3, ""), (20, "  and 20 tensors that no variable holds\n")])
def test_the_table_counts_tensors_without_a_name(
    tensors: int, aside: str, launcher: Launcher, tmp_path: Path
) -> None:
    body = (
        f"kept = (lambda made: lambda: made)([torch.ones(4, requires_grad=True) for _ in range({tensors})])\n"
        "sum(((model(x) * v.sum()).mean() for v in kept()), torch.zeros(())).backward()\n"
    )
    out = io.StringIO()
    render(told(launcher, tmp_path, body), "list", out, View())
    assert "  model.0.weight" in out.getvalue()
    assert out.getvalue().count("tensor[4]#") == (0 if aside else tensors)
    assert aside in out.getvalue()


def gradfix(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gradfix", *words], cwd=folder, capture_output=True, text=True, check=False
    )


def test_the_command_passes_output_through_and_speaks_json(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        HEAD + "import sys\nprint('hello', sys.argv[1:])\nmodel(x).backward()\n"
    )
    done = gradfix(tmp_path, "run", "--output-format", "json", "train.py", "--epochs", "3")
    assert done.returncode == 1
    assert "hello ['--epochs', '3']" in done.stderr
    (finding,) = json.loads(done.stdout)["findings"]
    assert (finding["name"], finding["location"]["row"]) == ("non_scalar_backward", 8)
    assert finding["impact"] == "crashes"


def test_verify_writes_only_what_flows(tmp_path: Path) -> None:
    body = "h = model[1](model[0](x))\nh += 1\nmodel[2](h).sum().backward()\n"
    (tmp_path / "good.py").write_text(HEAD + body)
    (tmp_path / "bad.py").write_text("import nothing_of_that_name\n" + HEAD + body)
    done = gradfix(tmp_path, "--apply", "--verify", "--report", "out.html", ".")
    assert "h = h + 1" in (tmp_path / "good.py").read_text()
    assert "h += 1" in (tmp_path / "bad.py").read_text()
    assert "good.py: flows" in done.stderr
    assert "bad.py: could not run (an import failed" in done.stderr
    page = (tmp_path / "out.html").read_text()
    assert "http" not in page and "model.0.weight" in page
    done = gradfix(tmp_path, "--apply", "--verify=lenient", ".")
    assert done.returncode == 2
    assert "h += 1" in (tmp_path / "bad.py").read_text()


BEHIND = {
    "two": (
        "for _ in range(3):\n    h = model[1](model[0](x))\n    h += 1\n"
        "    loss = F.mse_loss(model[2](h), y)\n    loss.backward()\n    opt.step()\n",
        ["inplace_overwrites_saved", "missing_zero_grad"],
    ),
    "three": (
        "for _ in range(3):\n    h = torch.sigmoid(model[0](x))\n    h *= 10\n"
        "    loss = (model[2](h) - y).pow(2)\n    loss.backward()\n    opt.step()\n",
        ["inplace_overwrites_saved", "missing_zero_grad", "non_scalar_backward"],
    ),
    "one after the other": (
        "h = model[0](x).exp()\nh += 1\nh.sum().backward()\n"
        "w = torch.ones(3, requires_grad=True)\nv = w.exp()\nv += 1\nv.sum().backward()\n"
        "loss = model(x)\nloss.backward()\n",
        ["inplace_overwrites_saved", "inplace_overwrites_saved", "non_scalar_backward"],
    ),
}


@pytest.mark.parametrize("name", BEHIND)
def test_defects_that_hide_behind_a_crash_are_seen_with_the_others_mended(name: str, tmp_path: Path) -> None:
    body, rules = BEHIND[name]
    (tmp_path / "train.py").write_text(HEAD + body)
    done = gradfix(tmp_path, "--diff", "--verify", "train.py")
    said = re.findall(r"^train.py:(\d+): (\w+): (.*?) \((.*)\)$", done.stderr, re.M)
    assert sorted(rule for _, rule, *_ in said) == rules, done.stderr
    assert {verdict for *_, verdict, _ in said} == {"flows"}, said
    for line, rule, _, reason in said:
        assert f"seen before: {rule}, train.py line {line};" in reason


def test_a_finding_that_an_earlier_rewrite_moved_is_judged_too(tmp_path: Path) -> None:
    body = (
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\nfor _ in range(2):\n    loss = model(x)\n"
        "    loss.backward()\n    optimizer.step()\n"
    )
    (tmp_path / "loop.py").write_text(HEAD + body)
    done = gradfix(tmp_path, "--apply", "--verify", "loop.py")
    assert "non_scalar_backward: flows" in done.stderr
    assert "loss.sum().backward()" in (tmp_path / "loop.py").read_text()


def test_run_names_what_backward_was_called_on(tmp_path: Path) -> None:
    (tmp_path / "loop.py").write_text(HEAD + "(model(x) + 1).backward()\n")
    assert "`model(x) + 1` has more than one element" in gradfix(tmp_path, "run", "loop.py").stdout


def test_a_driver_proves_a_library_file(tmp_path: Path) -> None:
    (tmp_path / "blocks.py").write_text(BLOCK)
    (tmp_path / "drive.py").write_text(HEAD + "import blocks\nblocks.Block()(x).sum().backward()\n")
    done = gradfix(tmp_path, "--diff", "--verify-cmd", "python drive.py", "blocks.py")
    assert "blocks.py: flows" in done.stderr, done.stderr
    assert "+        out = out + x" in done.stdout


CUT = """class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.head = nn.Linear(4, 2), nn.Linear(2, 1)

    def forward(self, x, detach=False):
        hidden = torch.relu(self.encoder(x))
        if detach:
            hidden = hidden.detach()
        return self.head(hidden)


model = Actor()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    opt.zero_grad()
    F.mse_loss(model(x, detach=True), y).backward()
    opt.step()
"""


LATER = """aux = nn.Linear(4, 3)
opt = torch.optim.SGD([*model.parameters(), *aux.parameters()], lr=0.1)
for step in range(3):
    opt.zero_grad()
    loss, out = F.mse_loss(model(x), y), aux(x)
    {}
    if step > 10:
        loss = loss + term
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize(
    "term",
    [
        "term = out.mean(); print(term.item())",
        "term = out.mean(); print(f'{term:.3f}', term.detach().numpy())",
        "term = out.mean(); big = bool(term > 100)",
        "term = out.max(1)[0].mean()",
        "term = (out + (out.round() - out).detach()).mean()",
        "term = -torch.distributions.Categorical(logits=out).log_prob(torch.zeros(8)).mean()",
    ],
    ids=["printed", "shown as an array", "compared", "chosen from", "made straight through", "looked up"],
)
def test_a_term_that_waits_for_its_turn_is_cut_off_by_nothing_though_it_is(
    term: str, launcher: Launcher, tmp_path: Path
) -> None:
    told_of = told(launcher, tmp_path, LATER.format(term))
    assert [outcome.findings for outcome in told_of.outcomes if outcome.findings] == []
    reasons = told_of.last.recording["reasons"]
    assert {why.partition(",")[0] for why in reasons.values()} == {"its result is not used by the loss"}


def test_a_cut_whose_value_is_written_into_a_buffer_is_named(launcher: Launcher, tmp_path: Path) -> None:
    body = """for _ in range(3):
    h = torch.zeros(8, 4)
    for i in range(8):
        h[i] = model[0](x[i]).detach()
    opt.zero_grad()
    F.mse_loss(model[2](h), y).backward()
    opt.step()
"""
    found = told(launcher, tmp_path, body)
    assert {one.rule for outcome in found.outcomes for one in outcome.findings} == {"unreached_parameters"}


def test_a_cut_that_a_test_decides_on_may_be_for_the_turns_before_the_run_was_stopped(
    launcher: Launcher, tmp_path: Path
) -> None:
    body = """for epoch in range(20):
    h = model[1](model[0](x))
    if epoch < 10:
        h = h.detach()
    opt.zero_grad()
    F.mse_loss(model[2](h), y).backward()
    opt.step()
"""
    assert not any(outcome.findings for outcome in told(launcher, tmp_path, body).outcomes)


@pytest.mark.parametrize(
    ("body", "rules"),
    [(CUT, set()), (CUT.replace("if detach:", "if True:"), {"unreached_parameters"})],
    ids=["that an argument switches on is wanted", "that nobody asks for is told"],
)
def test_a_cut(body: str, rules: set[str], launcher: Launcher, tmp_path: Path) -> None:
    said = told(launcher, tmp_path, body)
    assert {finding.rule for outcome in said.outcomes for finding in outcome.findings} == rules


def test_what_the_judge_finds_worse_is_not_called_safe(
    launcher: Launcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worse = "the decay of 12 parameters is gone"
    monkeypatch.setattr("gradfix.run.lasting", lambda *_: worse)
    found = told(launcher, tmp_path, HEALTHY.replace("    opt.zero_grad()\n", ""), "apply")
    finding = found.outcomes[0].findings[0]
    assert finding.safety is Safety.UNSAFE
    assert finding.unsafe == f"the run with it was worse: {worse}"
    assert not found.outcomes[0].written
    listed = io.StringIO()
    render(found, "list", listed, View())
    assert "certain, unsafe fix]" in listed.getvalue()
    assert worse in listed.getvalue()
