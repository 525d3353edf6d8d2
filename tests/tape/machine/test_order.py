"""What stands between a step and a later backward: as the tape tells it, and what the rewrite makes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradfix.config import Config
from gradfix.defects.ordered import Ordered
from gradfix.engine import fix
from gradfix.plan import Plan
from gradfix.rule import Finding, Safety
from gradfix.source import Source, parse
from gradfix.tape.entries import analyse

NETS = """import torch
from torch import nn
from elsewhere import anything, Meter

G, D = nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
d_opt = torch.optim.SGD(D.parameters(), lr=0.1)
g_opt = torch.optim.SGD(G.parameters(), lr=0.1)
probe, logs = torch.ones(4, 2), {}
"""
LOOP = """for noise in torch.randn(3, 8, 2):
    score = D(G(noise))
    d_loss, g_loss = score.mean(), -score.mean()
    d_opt.zero_grad()
    d_loss.backward(retain_graph=True)
    d_opt.step()
{between}
    g_opt.zero_grad()
    g_loss.backward()
    g_opt.step()
"""


def program(between: str, above: str = "") -> str:
    """A loop of two networks that share a score, with these statements behind the first step."""
    body = "\n".join(f"    {line}" for line in between.splitlines())
    return NETS + above + LOOP.format(between=body)


def parsed(text: str) -> Source:
    source = parse("program.py", text.encode())
    assert isinstance(source, Source)
    return source


def found(text: str) -> Finding:
    """The finding of the step that comes too early."""
    outcome = fix("program.py", text.encode(), Plan(Config(Path())))
    return next(one for one in outcome.findings if one.code == "GF105")


def touches(text: str) -> set[tuple[str, str, bool]]:
    """What touches D between the two: the source text where it happens, the kind, whether that is sure."""
    lines = text.splitlines()
    defect = next(one for one in analyse(parsed(text)).defects if one.kind == "step_before_backward")
    between = defect.told(Ordered).between
    assert isinstance(between, tuple)
    told: set[tuple[str, str, bool]] = set()
    for one in between:
        assert one.span is not None
        line = lines[one.span.line - 1]
        end = one.span.end_column if one.span.line == one.span.end_line else len(line)
        told.add((line[one.span.column : end], one.kind, one.known))
    return told


EVALUATE = """def evaluate():
    with torch.no_grad():
        return float(D(probe).mean())
"""
CLEAR = "def clear():\n    d_opt.zero_grad()\n"
BOTH = "def clear():\n    d_opt.zero_grad()\n    g_opt.zero_grad()\n"
CLAMP = "D[0].bias.data.clamp_(-1, 1)"
AVERAGE = "E = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))\n"
SCHEDULE = "schedule = torch.optim.lr_scheduler.StepLR(d_opt, 1)\n"


@pytest.mark.parametrize(
    ("between", "above", "told"),
    [
        pytest.param("logs['d'] = evaluate()", EVALUATE, [("evaluate()", "reads")], id="a helper that reads"),
        pytest.param("clear()", CLEAR, [("clear()", "clears")], id="a helper that clears"),
        pytest.param("D(probe)", "", [("D(probe)", "reads")], id="a forward"),
        pytest.param("print(D[0].bias)", "", [("print(D[0].bias)", "reads")], id="a weight printed"),
        pytest.param("print(D[0].bias.grad)", "", [("D[0].bias.grad", "looks")], id="a gradient printed"),
        pytest.param("torch.save(D.state_dict(), 'd')", "", [("D.state_dict()", "reads")], id="a save"),
        pytest.param(
            "D[0].bias.data.clamp_(-1, 1)", "",
            [("D[0].bias.data", "reads"), (CLAMP, "reads"), (CLAMP, "writes")], id="a weight clipped",
        ),
        pytest.param("schedule.step()", SCHEDULE, [("schedule.step()", "schedules")], id="a scheduler"),
        pytest.param("anything(D)", "", [("anything(D)", "anything")], id="a call that gets the network"),
        pytest.param("anything([D])", "", [("anything([D])", "anything")], id="a call that gets its holder"),
        pytest.param("anything()", "", [("anything()", "anything")], id="a call that may know its name"),
        pytest.param("logs.update(d=1)", "", [], id="a dict that is updated"),
        pytest.param("print('D', d_loss.item())", "", [], id="a loss printed, and a letter in a string"),
        pytest.param("G(probe)", "", [], id="a forward of the other network"),
        pytest.param("print(len(logs))  # D", "", [], id="a comment"),
    ],
)  # fmt: skip
def test_the_tape_tells_what_touches_the_leaves_between_two_events(
    between: str, above: str, told: list[tuple[str, str]]
) -> None:
    assert touches(program(between, above)) == {(text, kind, kind != "anything") for text, kind in told}


def test_what_happens_in_a_later_turn_only_is_told_too() -> None:
    body = program("if turn:\n    print(D(probe))").replace(
        "for noise in torch.randn(3, 8, 2)", "for turn in (0, 1)"
    )
    text = body.replace("G(noise)", "G(probe)")
    assert ("D(probe)", "reads", True) in touches(text)


STAYS = "g_loss.backward(inputs=list(G.parameters())) before d_opt.step()"
GOES = "g_loss.backward(inputs=list(G.parameters())); d_opt.step()"


@pytest.mark.parametrize(
    ("between", "above", "says"),
    [
        pytest.param("logs['d'] = evaluate()", EVALUATE, STAYS, id="an evaluation"),
        pytest.param("D[0].bias.data.clamp_(-1, 1)", "", STAYS, id="weights clipped"),
        pytest.param("for p in D.parameters():\n    p.data.clamp_(-1, 1)", "", STAYS, id="all clipped"),
        pytest.param(
            "for kept, p in zip(E.parameters(), D.parameters()):\n    kept.data.mul_(0.9).add_(p.data)",
            AVERAGE, STAYS, id="a moving average",
        ),
        pytest.param("torch.save(D.state_dict(), 'd')", "", STAYS, id="a save"),
        pytest.param(
            "for group in d_opt.param_groups:\n    group['lr'] = 0.1", "", STAYS, id="a rate set in a loop"
        ),
        pytest.param("logs.update(d=1)", "", GOES, id="a dict that is updated"),
        pytest.param("print('D', 'd_opt.zero_grad()')", "", GOES, id="names in strings"),
        pytest.param("# D(probe)\nprint(d_loss.item(), g_loss.item())", "", GOES, id="losses printed"),
        pytest.param("schedule.step()", SCHEDULE, f"{GOES}; schedule.step()", id="a scheduler"),
        pytest.param("clear()", CLEAR, f"{GOES}; clear()", id="a helper that clears"),
    ],
)  # fmt: skip
def test_a_step_that_came_too_early_is_mended_safely_around_what_is_known(
    between: str, above: str, says: str
) -> None:
    one = found(program(between, above))
    assert (one.says, one.safety) == (says, Safety.SAFE)


@pytest.mark.parametrize(
    ("between", "above"),
    [
        pytest.param("anything(D)", "", id="a call that gets the network"),
        pytest.param("anything(lambda: D(probe))", "", id="a call that gets a function that names it"),
        pytest.param("anything()", "", id="a call that gets nothing, while the network is a global"),
        pytest.param("meter.update(d_loss.item())", "meter = Meter()\n", id="a method of what isn't known"),
    ],
)
def test_a_call_that_is_not_known_makes_the_fix_unsafe(between: str, above: str) -> None:
    assert found(program(between, above)).safety is Safety.UNSAFE


def inside(text: str) -> str:
    """The program below its imports as a function that is called once."""
    head, rest = text.split("\n\n", 1)
    return f"{head}\n\ndef main():\n" + "".join(f"    {line}\n" for line in rest.splitlines()) + "main()\n"


@pytest.mark.parametrize(
    ("between", "above", "safety"),
    [
        pytest.param("anything()", "", Safety.SAFE, id="that has never got the network"),
        pytest.param("anything()", "anything(D)\n", Safety.UNSAFE, id="that has got it before"),
    ],
)
def test_where_the_network_is_local_a_call_that_gets_nothing_counts(
    between: str, above: str, safety: Safety
) -> None:
    assert found(inside(program(between, above))).safety is safety


SCALED = (
    program("scaler.update()", "scaler = torch.amp.GradScaler('cpu')\n")
    .replace("d_loss.backward(", "scaler.scale(d_loss).backward(")
    .replace("d_opt.step()", "scaler.step(d_opt)")
)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param(program("clear()", BOTH), "build the later loss", id="a helper that clears both"),
        pytest.param(SCALED, "build the later loss", id="a scaler's update"),
        pytest.param(
            program("g_loss = g_loss * D(probe).mean().item()"),
            "step behind the later backward, and `g_loss = g_loss * D(probe).mean().item()` behind the step",
            id="a read that the later loss is made of",
        ),
    ],
)
def test_what_neither_may_pass_is_left_to_the_user(text: str, reason: str) -> None:
    one = found(text)
    assert one.safety is None
    assert one.decline.startswith(reason)


ALONE = """import torch

net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh(), torch.nn.Linear(2, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.ones(3, 4, 2):
    {first}
    out = net(x)
    one, other = out.mean(), out.pow(2).mean()
    one.backward(retain_graph=True)
    optimizer.step()
    {between}
    other.backward()
"""


@pytest.mark.parametrize(
    ("first", "between"),
    [
        pytest.param("pass", "optimizer.zero_grad()", id="the first loss's gradients would be erased unused"),
        pytest.param(
            "optimizer.zero_grad()",
            "torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)",
            id="the gradients are changed between",
        ),
        pytest.param("optimizer.zero_grad()", "print(net[0].weight.grad.norm())", id="they are looked at"),
    ],
)
def test_a_step_that_belongs_to_the_first_of_two_losses_stays_before_the_second(
    first: str, between: str
) -> None:
    assert found(ALONE.format(first=first, between=between)).safety is None


def test_a_step_that_both_losses_wait_for_goes_behind_them_and_says_what_it_follows_then() -> None:
    one = found(ALONE.format(first="optimizer.zero_grad()", between="pass"))
    assert (one.says, one.unsafe) == (
        "optimizer.step() after other.backward()",
        "the step then follows the later loss as well",
    )


ERASED = """import torch

net = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.ones(4, 2)
early, late = net(x).sum(), net(2 * x).sum()
optimizer.zero_grad()
early.backward()
optimizer.zero_grad()
optimizer.step()
{behind}
"""
LATE = "def measure():\n    late.backward()\nmeasure()"


@pytest.mark.parametrize(
    ("behind", "clears"),
    [
        pytest.param("late.backward()", [7, 10], id="is wanted by a backward behind the step"),
        pytest.param(LATE, [7, 10], id="is wanted by a backward that a function behind the step runs"),
        pytest.param("print(late.item())", [7], id="is wanted by nobody behind the step"),
    ],
)
def test_a_zero_grad_goes_where_nobody_behind_the_step_wants_it(behind: str, clears: list[int]) -> None:
    outcome = fix("program.py", ERASED.format(behind=behind).encode(), Plan(Config(Path())))
    assert outcome.after is not None
    lines = outcome.after.decode().splitlines()
    assert [i for i, line in enumerate(lines, 1) if line == "optimizer.zero_grad()"] == clears


WAITING = """import torch
from elsewhere import anything

net = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for turn, x in enumerate(torch.ones(4, 1, 2)):
    net(x).sum().backward()
    if turn % 2 == 1:
        optimizer.step()
        {first}
        {second}
"""


@pytest.mark.parametrize(
    ("first", "second", "clears"),
    [
        pytest.param("print(turn)", "print(net.weight.grad)", 12, id="behind a look at the gradients"),
        pytest.param("anything()", "print('.grad')", 11, id="behind a call that may look at them"),
        pytest.param("print('net.weight.grad')", "print(turn)", 10, id="right behind the step otherwise"),
    ],
)
def test_gradients_are_cleared_behind_what_still_wants_them(first: str, second: str, clears: int) -> None:
    text = WAITING.format(first=first, second=second)
    outcome = fix("program.py", text.encode(), Plan(Config(Path())))
    assert outcome.after is not None
    assert outcome.after.decode().splitlines()[clears - 1].strip() == "optimizer.zero_grad()"


STALE = """import torch
from elsewhere import activation

net, act = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 1)), activation()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.ones(3, 4, 2):
{turn}
"""
BUILT = "    loss = act(net(x)).sum()"


@pytest.mark.parametrize(
    ("turn", "mended"),
    [
        pytest.param(
            [BUILT, "    optimizer.step()", "    loss.backward()"],
            [BUILT, "    optimizer.zero_grad()", "    loss.backward()", "    optimizer.step()"],
            id="moves with the clearing that was missing",
        ),
        pytest.param(
            [BUILT, "    optimizer.step()", "    print(x)", "    loss.backward()"],
            None,
            id="is left where something stands between",
        ),
        pytest.param(
            ["    optimizer.step()", BUILT, "    loss.backward()"],
            ["    optimizer.step()", BUILT, "    optimizer.zero_grad()", "    loss.backward()"],
            id="stays before the forward of the next one",
        ),
    ],
)
def test_a_step_between_a_forward_and_its_backward(turn: list[str], mended: list[str] | None) -> None:
    """Clearing alone would leave a backward that needs what the step has changed."""
    before, after = (STALE.format(turn="\n".join(lines)) for lines in (turn, mended or turn))
    outcome = fix("program.py", before.encode(), Plan(Config(Path())))
    assert [finding.code for finding in outcome.findings] == ["GF401"]
    assert outcome.after == (after.encode() if mended else None)


def test_a_step_that_comes_again_behind_its_own_backward_may_be_the_wrong_one() -> None:
    again = "late.backward()\noptimizer.step()"
    outcome = fix("program.py", ERASED.format(behind=again).encode(), Plan(Config(Path())))
    assert outcome.after is None
    assert [finding.decline[:18] for finding in outcome.findings] == ["take this step out"]


def test_a_step_that_came_too_early_goes_behind_the_last_of_its_backwards() -> None:
    turn = [
        "    hidden = net(x)",
        "    first, second = hidden.sum(), hidden.pow(2).sum()",
        "    optimizer.zero_grad()",
        "    optimizer.step()",
        "    first.backward(retain_graph=True)",
        "    second.backward()",
    ]
    mended = [*turn[:3], *turn[4:], turn[3]]
    before, after = (STALE.format(turn="\n".join(lines)) for lines in (turn, mended))
    assert fix("program.py", before.encode(), Plan(Config(Path()))).after == after.encode()
