"""Rewrites that would do harm: what a rule has to know before it calls one of them safe."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradfix.config import Config
from gradfix.engine import fix
from gradfix.plan import Plan
from gradfix.rule import Finding, Safety

NET = """import copy

import torch
from torch import nn

net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
"""
GATHERED = """for x in torch.ones(2, 6, 3):
    optimizer.zero_grad()
    for i, part in enumerate(x):
        net(part).sum().backward()
        {waits}
            {goes_on}
        {steps}
"""
KEEPS = """def train(parts, batches):
    total = 0
    for x in batches:
        {begins}
        {loop}
        extra.backward()
        optimizer.step()
        optimizer.zero_grad()
        total += extra
    print(float(total))


train(int(input()), torch.ones(3, 3))
"""
BUFFER = """low = torch.zeros(1)
for x in torch.ones(3, 2, 3):
    {cut}
    w = net(x)
    {write}
    loss = (w / low.clamp(max=-1e-3)).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
UNRECORDED = """noise = nn.Parameter(torch.zeros(3))
seen = torch.zeros(1)


def jitter():
    noise.add_(0.1)


def shown(out):
    return {shown}


for x in torch.ones(3, 2, 3):
    with torch.no_grad():
        out = net(x + noise)
        loss = out.pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {also}
"""


def found(text: str, code: str) -> Finding:
    outcome = fix("program.py", (NET + text).encode(), Plan(Config(Path())))
    return next(one for one in outcome.findings if one.code == code)


@pytest.mark.parametrize(
    ("waits", "goes_on", "steps", "clears"),
    [
        pytest.param(
            "if i % 2 == 0:", "continue", "optimizer.step()", 15, id="a turn goes on before its step"
        ),
        pytest.param(
            "if i % 2 == 0:", "print(i)", "else: optimizer.step()", 14, id="the step stands in an else"
        ),
        pytest.param(
            "if torch.isnan(net.weight.grad).any():",
            "continue",
            "optimizer.step()",
            11,
            id="turns that went wrong are left out",
        ),
    ],
)
def test_what_gathers_gradients_is_cleared_behind_its_step(
    waits: str, goes_on: str, steps: str, clears: int
) -> None:
    finding = found(GATHERED.format(waits=waits, goes_on=goes_on, steps=steps), "GF401")
    assert [edit.line for edit in finding.edits][-1] == clears
    assert finding.safety is Safety.SAFE


@pytest.mark.parametrize(
    ("begins", "loop", "unsafe"),
    [
        pytest.param(
            "extra = 0",
            "for i in range(1, parts): extra += net(x).sum()",
            True,
            id="a loop of unknown length",
        ),
        pytest.param("extra = 0", "for i in range(3): extra += net(x).sum()", False, id="a loop of three"),
        pytest.param(
            "extra = 0", "for p in net.parameters(): extra += p.sum()", False, id="a loop over parameters"
        ),
        pytest.param("extra = net(x).sum()", "for i in range(1, parts): extra += 1", False, id="a tensor"),
        pytest.param(
            "extra = 0", "with torch.enable_grad(): extra = net(x).sum()", False, id="it is bound in any case"
        ),
    ],
)
def test_a_method_is_not_safe_on_what_may_be_a_number(begins: str, loop: str, unsafe: bool) -> None:
    finding = found(KEEPS.format(begins=begins, loop=loop), "GF403")
    assert finding.safety is (Safety.UNSAFE if unsafe else Safety.SAFE)


@pytest.mark.parametrize(
    ("cut", "write", "safety"),
    [
        pytest.param(
            "pass", "low.copy_(torch.minimum(low, w.amin(0)))", Safety.UNSAFE, id="what is copied in"
        ),
        pytest.param("pass", "low.add_((w * low).mean(0))", None, id="what is written in place"),
        pytest.param(
            "low = low.detach()",
            "low.add_((w * low).mean(0))",
            Safety.SAFE,
            id="a turn that begins with a cut",
        ),
    ],
)
def test_a_clone_does_not_mend_what_takes_its_graph_along(
    cut: str, write: str, safety: Safety | None
) -> None:
    assert found(BUFFER.format(cut=cut, write=write), "GF101").safety is safety


@pytest.mark.parametrize(
    ("shown", "also", "safety"),
    [
        pytest.param("out.mean()", "print(shown(out))", Safety.SAFE, id="nothing needs the block"),
        pytest.param("out.mean()", "jitter()", Safety.UNSAFE, id="a called function writes a leaf"),
        pytest.param("out.cpu().numpy()", "print(shown(out))", Safety.UNSAFE, id="an array is asked for"),
        pytest.param(
            "out.detach().numpy()", "print(shown(out))", Safety.SAFE, id="an array of a detached value"
        ),
        pytest.param(
            "torch.is_grad_enabled()", "print(shown(out))", Safety.UNSAFE, id="the grad mode is asked for"
        ),
        pytest.param("out.requires_grad", "print(shown(out))", Safety.UNSAFE, id="it is asked for a graph"),
        pytest.param("copy.deepcopy(out)", "print(shown(out))", Safety.UNSAFE, id="a result is copied whole"),
        pytest.param(
            "out.mean()", "out.requires_grad = True", Safety.UNSAFE, id="a result is told to require grad"
        ),
        pytest.param(
            "out.mean()", "for s in [out.mean()]: seen.add_(s)", Safety.SAFE, id="a write stays in the block"
        ),
    ],
)
def test_a_block_is_not_dissolved_safely_around_what_needs_it(shown: str, also: str, safety: Safety) -> None:
    assert found(UNRECORDED.format(shown=shown, also=also), "GF203").safety is safety
