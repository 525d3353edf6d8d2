"""A later backward is told which parameters it is for: those of all optimizers that step what it fills."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradfix.config import Config
from gradfix.engine import fix
from gradfix.plan import Plan

NETS = """import torch
from torch import nn, optim

encoder, decoder = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 4)), nn.Linear(4, 3)
dynamics, reward = nn.Linear(4, 4), nn.Linear(4, 1)
first_optimizer = optim.Adam([*encoder.parameters(), *decoder.parameters()])
one = optim.Adam(dynamics.parameters())
two = optim.Adam(reward.parameters())
schedule = optim.lr_scheduler.StepLR(one, 3)
x = torch.ones(5, 3)
latent = encoder(x)
first = decoder(latent).mean()
"""
BOTH = "second = dynamics(latent).pow(2).mean() + reward(latent).pow(2).mean()\n"
ONE = "second = dynamics(latent).pow(2).mean()\n"
STEPPED = """first_optimizer.zero_grad()
first.backward({kept})
{step}one.zero_grad()
two.zero_grad()
second.backward({inputs})
{behind}"""
EARLY = "first_optimizer.step()\n"
ANOTHER = "two.zero_grad(set_to_none=True)\nreward(x @ x.T[:, :4]).mean().backward()\ntwo.step()\n"
OF_ONE, OF_BOTH = (
    "inputs=list(dynamics.parameters())",
    "inputs=list(dynamics.parameters()) + list(reward.parameters())",
)


def before(loss: str, rest: str) -> str:
    return loss + STEPPED.format(kept="retain_graph=True", step=EARLY, inputs="", behind=rest)


def after(loss: str, inputs: str, rest: str) -> str:
    return loss + STEPPED.format(kept="retain_graph=True", step="", inputs=inputs, behind=EARLY + rest)


def mended(body: str) -> str | None:
    outcome = fix("program.py", (NETS + body).encode(), Plan(Config(Path(), unsafe_fixes=True)))
    return outcome.after.decode().removeprefix(NETS) if outcome.after else None


@pytest.mark.parametrize(
    ("loss", "rest", "inputs"),
    [
        pytest.param(BOTH, "one.step()\ntwo.step()\n", OF_BOTH, id="two that it reaches"),
        pytest.param(
            BOTH, "one.step()\nschedule.step()\ntwo.step()\n", OF_BOTH, id="a schedule between them"
        ),
        pytest.param(ONE, "one.step()\ntwo.step()\n", OF_ONE, id="one that it does not reach"),
        pytest.param(BOTH, "one.step()\n" + ANOTHER, OF_ONE, id="one cleared before"),
    ],
)
def test_a_backward_is_for_all_that_steps_what_it_fills(loss: str, rest: str, inputs: str) -> None:
    assert mended(before(loss, rest)) == after(loss, inputs, rest)


@pytest.mark.parametrize(
    "rest",
    [
        pytest.param("one.step()\nif x.sum() > 0:\n    two.step()\n", id="a step under a test"),
        pytest.param("one.step()\nfor each in (two,):\n    each.step()\n", id="a step by another name"),
        pytest.param("one.step()\nfinish()\n", id="a step somewhere else"),
        pytest.param("one.step()\nfirst_optimizer.step()\n", id="a second step of the early one"),
    ],
)
def test_where_it_is_not_seen_who_steps_it_is_done_by_hand(rest: str) -> None:
    finish = "def finish():\n    two.step()\n\n\n"
    assert mended(finish + before(BOTH, rest)) is None


def test_an_optimizer_to_which_only_a_batch_may_lead_needs_no_step_here() -> None:
    given = NETS.replace(
        "x = torch.ones(5, 3)\n", "x = load()\nother = optim.Adam(nn.Linear(2, 2).parameters())\n"
    )
    text = "from somewhere import load\n" + given + before(BOTH, "one.step()\ntwo.step()\n")
    seen = fix("program.py", text.encode(), Plan(Config(Path(), unsafe_fixes=True)))
    assert seen.after is not None and OF_BOTH in seen.after.decode()


TWICE = """latent = encoder[0](x).tanh()
first = decoder(latent).mean()
second = dynamics(latent).pow(2).mean() + reward(latent).pow(2).mean()
one.zero_grad()
two.zero_grad()
first.backward({kept})
first_optimizer.step()
second.backward({inputs})
one.step()
{rest}"""


@pytest.mark.parametrize(
    ("rest", "kept", "inputs"),
    [
        pytest.param("two.step()\n", "", OF_BOTH, id="two that it reaches"),
        pytest.param("if x.sum() > 0:\n    two.step()\n", "retain_graph=True", "", id="a step under a test"),
    ],
)
def test_a_second_walk_spares_the_freed_graph_only_for_all_that_steps(
    rest: str, kept: str, inputs: str
) -> None:
    found = mended(TWICE.format(kept="", inputs="", rest=rest))
    assert found == TWICE.format(kept=kept, inputs=inputs, rest=rest)
