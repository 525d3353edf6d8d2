"""What the warm server says of a text is what the command line says of it, whatever was typed before."""

from __future__ import annotations

import io
import json
import random
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gradfix.neighbours import Neighbours
from gradfix.outcome import Outcome, Run, View
from gradfix.plan import Plan, played
from gradfix.report.json import render
from gradfix.server.analyst import Analyst
from gradfix.server.asking import Ask
from gradfix.source import Source, parse
from gradfix.tape.analysis import Analysis

FIXTURES = Path(__file__).parents[2] / "fixtures"
MODEL = """\
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3, padding=1)
        self.inplace = False

    def forward(self, x):
        out = torch.relu(self.conv(x))
        out = out + x
        return out


def penalty(values):
    return values.exp()
"""
TRAIN = """\
import torch
from model import Block, penalty

model = Block()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    seen = penalty(model(torch.ones(1, 3, 8, 8)))
    seen = seen + 1
    optimizer.zero_grad()
    seen.mean().backward()
    optimizer.step()
"""
BROKEN = TRAIN.replace("    seen = seen + 1\n", "    seen += seen + 1\n")
LINES = (
    "    out += x\n",
    "seen += 1\n",
    "    seen += 1\n",
    "    loss.backward()\n",
    "loss = loss.detach()\n",
    "        x.mul_(2)\n",
    "# loss.backward() is called by nobody\n",
    "\f\n",
    "if False:\n",
    "def f(x):\n    return x\n",
    "torch.set_grad_enabled(False)\n",
    "from model import penalty\n",
    "from train import optimizer\noptimizer.step()\n",
    "  half(\n",
)


def edited(text: str, chance: random.Random) -> str:
    """A text after one edit, as people make them; often one that doesn't parse."""
    lines = text.splitlines(keepends=True) or ["\n"]
    at = chance.randrange(len(lines))
    deed = chance.randrange(6)
    if deed == 0:
        del lines[at]
    elif deed == 1:
        lines.insert(at, chance.choice(LINES))
    elif deed == 2:
        other = chance.randrange(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
    elif deed == 3:
        cut = chance.randrange(len(lines[at]) + 1)
        lines[at] = lines[at][:cut] + chance.choice(("", "(", "x", " ", "# ", "_")) + lines[at][cut:]
    elif deed == 4:
        lines[at] = lines[at].replace(" = ", " += ", 1)
    else:
        lines[at] = lines[at].replace("+=", "=").replace("loss", "seen")
    return "".join(lines)


def texts(chance: random.Random) -> dict[str, str]:
    """Two files of which one imports the other, and some that stand alone."""
    every = sorted(FIXTURES.glob("*/*/before.py"))
    alone = {f"{each.parent.name}.py": each.read_text("utf-8") for each in chance.sample(every, 12)}
    return {"model.py": MODEL, "train.py": TRAIN, **alone}


def asked(folder: Path, name: str, open_: Mapping[str, str], mend: bool = False) -> Ask:
    others = {str(folder / each): text.encode() for each, text in open_.items() if each != name}
    return Ask(str(folder / name), open_[name].encode(), str(folder), True, others, mend)


def told(outcomes: list[Outcome]) -> Any:
    """What the report in JSON says of outcomes."""
    out = io.StringIO()
    render(Run(tuple(outcomes)), out, View("json"))
    return json.loads(out.getvalue())


@pytest.mark.parametrize("seed", range(4), ids="after random edits, seed {}".format)
def test_a_server_that_was_typed_into_says_what_the_command_line_says(seed: int, tmp_path: Path) -> None:
    """Each text as it is typed as a new server would, the last ones as a new process of the command line."""
    chance = random.Random(seed)
    warm, open_ = Analyst(), texts(chance)
    (tmp_path / "pyproject.toml").touch()
    for _ in range(80):
        name = chance.choice([*open_, "model.py", "train.py"])
        before = open_[name]
        open_[name] = edited(before, chance)
        ask = asked(tmp_path, chance.choice([name, "train.py"]), open_)
        said = warm.answer(ask)
        assert said == Analyst().answer(ask)
        if chance.random() < (0.2 if isinstance(parse(name, open_[name].encode()), Source) else 0.8):
            open_[name] = before
    for name, text in open_.items():
        (tmp_path / name).write_bytes(text.encode())
    done = subprocess.run(
        [sys.executable, "-m", "gradfix", ".", "--output-format", "json"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    found = {name: warm.answer(asked(tmp_path, name, open_)).outcome for name in sorted(open_)}
    mended = {name: warm.answer(asked(tmp_path, name, open_, mend=True)).outcome for name in sorted(open_)}
    wanted = json.loads(done.stdout)
    assert wanted
    assert told([replace(outcome, path=name) for name, outcome in mended.items()]) == wanted
    without = [{**each, "fix": None, "by_hand": None} for each in wanted]
    assert told([replace(outcome, path=name) for name, outcome in found.items()]) == without
    failed = {name for name, outcome in found.items() if outcome.failure}
    assert failed == {name for name in open_ if f"{name}:" in done.stderr.decode()}


@pytest.mark.parametrize(
    ("then", "times"),
    [
        pytest.param({}, 0, id="not when it is the same"),
        pytest.param({"train.py": BROKEN.replace("seen + 1", "seen + 2")}, 1, id="when it is another"),
        pytest.param({"model.py": MODEL + "\n"}, 1, id="when what it imports is another"),
        pytest.param({"other.py": "import torch\n"}, 0, id="not when what it doesn't import is"),
    ],
)
def test_a_text_is_played_again(
    then: Mapping[str, str], times: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plays: list[bytes] = []

    def counted(source: Source, plan: Plan, neighbours: Neighbours) -> Analysis:
        plays.append(source.content)
        return played(source, plan, neighbours)

    monkeypatch.setattr("gradfix.server.analyst.played", counted)
    (tmp_path / "pyproject.toml").touch()
    open_ = {"model.py": MODEL, "train.py": BROKEN, "other.py": ""}
    warm = Analyst()
    assert warm.answer(asked(tmp_path, "train.py", open_)).outcome.findings
    assert len(plays) == 1
    mended = warm.answer(asked(tmp_path, "train.py", open_, mend=True)).outcome.after
    assert plays == [BROKEN.encode(), mended]
    plays.clear()
    open_.update(then)
    warm.answer(asked(tmp_path, "train.py", open_))
    assert len(plays) == times
    assert mended is not None
    open_ = {"model.py": MODEL, "train.py": mended.decode()}
    assert warm.answer(asked(tmp_path, "train.py", open_)).outcome.findings == ()
    assert len(plays) == times
