"""A step that waits for several turns uses what all of them have brought, unless each turn clears it."""

from __future__ import annotations

from typing import Any

import pytest
from short import analysis, whole

RULE = "zero_grad_before_step"
TRAIN = """
def train(model, optimizer, other, loader, every, seen=0):
    for i, x in enumerate(loader):
        {clear}
        (model(x).sum()).backward()
        {count}
        if {test}:
            {step}
"""
MADE = """
model = nn.Linear(2, 1, bias=False)
nn.init.zeros_(model.weight)
optimizer, other = torch.optim.SGD(model.parameters(), lr=1.0), torch.optim.SGD([torch.ones(1)], lr=1.0)
train(model, optimizer, other, torch.tensor([[[1.0, 1]], [[2, 2]], [[3, 3]], [[4, 4]]]), 2)
"""
CLEAR = "optimizer.zero_grad()"
LOST = {
    "in each turn": {},
    "a number of turns that is known": {"test": "i % 2 == 1"},
    "counted by hand": {"count": "seen += 1", "test": "seen % every == 0", "given": "seen = 0"},
    "of the model": {"clear": "model.zero_grad()"},
    "after the step as well": {"step": "optimizer.step(); optimizer.zero_grad()"},
}
KEPT = {
    "where the step is": {"clear": "pass", "step": "optimizer.step(); optimizer.zero_grad()"},
    "in the first of them": {"clear": "if i % every == 0: optimizer.zero_grad()"},
    "one turn is meant": {"test": "(i + 1) % 1 == 0", "kept": "-10.0"},
    "who steps in other turns": {"count": "other.step()"},
    "each backward is for the input": {
        "clear": "optimizer.zero_grad(); x = x.clone().requires_grad_()",
        "count": "seen = seen + x.grad.sum()",
        "kept": "-6.0",
    },
    "in what no step waits for": {"test": "x.sum() > 0", "kept": "-10.0"},
}


def program(made: dict[str, str]) -> str:
    usual = {"clear": CLEAR, "count": "pass", "test": "(i + 1) % every == 0", "step": "optimizer.step()"}
    body = TRAIN.format(**{**usual, **made})
    if "given" in made:
        body = body.replace(", seen=0", "").replace("    for i", f"    {made['given']}\n    for i")
    return body


OWN = "optimizer = torch.optim.SGD(model.parameters(), lr=1.0)"


def found(made: dict[str, str]) -> list[str]:
    known = program(made).replace("    for i", f"    {OWN}\n    for i", 1)
    return [one.certainty for one in analysis(known).defects if one.kind == RULE]


@pytest.mark.parametrize("made", LOST.values(), ids=LOST.keys())
def test_gradients_of_other_turns_are_erased(made: dict[str, str]) -> None:
    assert found(made) == ["likely"]


@pytest.mark.parametrize("made", KEPT.values(), ids=KEPT.keys())
def test_nothing_is_erased(made: dict[str, str]) -> None:
    assert found(made) == []


@pytest.mark.torch
@pytest.mark.parametrize(
    ("made", "left"),
    [
        *((made, -6.0) for made in LOST.values()),
        *((made, float(made.get("kept", -10))) for made in KEPT.values()),
    ],
    ids=[*LOST.keys(), *KEPT.keys()],
)
def test_what_torch_leaves(made: dict[str, str], left: float) -> None:
    torch = pytest.importorskip("torch")
    space: dict[str, Any] = {}
    exec(compile(whole(program(made)) + MADE, "case.py", "exec"), space)
    if made is not KEPT["who steps in other turns"]:  # in whose turns others' gradients are for nobody
        assert torch.equal(space["model"].weight.detach(), torch.full((1, 2), left))


LIGHTNING = """
import pytorch_lightning as pl

class Net(pl.LightningModule):
    def __init__(self, every):
        super().__init__()
        self.automatic_optimization = False
        self.every, self.layer = every, nn.Linear(3, 1)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

    def training_step(self, batch, batch_idx):
        optimizer = self.optimizers()
        {each}
        self.manual_backward(self.layer(batch).pow(2).mean())
        if (batch_idx + 1) % self.every == 0:
            optimizer.step()
            {due}
"""


@pytest.mark.parametrize(("each", "due", "said"), [(CLEAR, "pass", ["likely"]), ("pass", CLEAR, [])])
def test_a_framework_counts_its_calls(each: str, due: str, said: list[str]) -> None:
    defects = analysis(LIGHTNING.format(each=each, due=due)).defects
    assert [one.certainty for one in defects if one.kind == RULE] == said


EPOCHS = """
def train(model, loader, every):
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    for epoch in range(3):
        {outer}
        for i, x in enumerate(loader):
            {inner}
            model(x).sum().backward()
            if (i + 1) % every == 0:
                optimizer.step()
                {after}
"""


def test_what_an_epoch_leaves_over_is_dropped_on_purpose() -> None:
    def said(**where: str) -> list[str]:
        body = EPOCHS.format(**{"outer": "pass", "inner": "pass", "after": "pass", **where})
        return [one.certainty for one in analysis(body).defects if one.kind == RULE]

    assert said(outer=CLEAR, after=CLEAR) == []
    assert said(inner=CLEAR) == ["likely"]
