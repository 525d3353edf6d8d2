"""A loop that goes on and on: steps that look like the first ones are told of now and then, breaks always."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradfix.trace.settled import EVERY, OFTEN
from gradfix.verify.launch import Command, Job, Launcher, Limits

pytestmark = pytest.mark.torch

torch: Any = pytest.importorskip("torch")

STEPS = 60
ODD = OFTEN + EVERY + 5
"""A step that is not told of, as long as it is like the others."""


def trained(loss: Callable[[Any, int], Any], *, clears: Callable[[int], bool] = lambda _: True) -> Any:
    """What is seen of a loop of many steps."""
    from gradfix.trace import watch

    torch.manual_seed(0)
    net = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    with watch(net, optimizer, quiet=True) as seen:
        for number in range(STEPS):
            if clears(number):
                optimizer.zero_grad()
            loss(net, number).backward()
            optimizer.step()
    return seen, net


def plain(net: Any, number: int) -> Any:
    return net(torch.ones(2, 3) * (1 + number / STEPS)).pow(2).mean()


def told(seen: Any, kind: str) -> list[Any]:
    return [event for event in seen.events if event["event"] == kind]


@pytest.mark.parametrize("kind", ["backward", "step"])
def test_a_healthy_loop_is_told_of_at_first_and_then_now_and_then(kind: str) -> None:
    seen, _ = trained(plain)
    assert OFTEN < len(told(seen, kind)) <= OFTEN + 1 + STEPS // EVERY
    assert seen.explain() == "gradients flow: 2 leaves reached"


def test_the_latest_gradients_are_known_at_the_end() -> None:
    seen, net = trained(plain)
    found = {name.rpartition(".")[2]: norm for name, norm in seen.gradients.items()}
    assert found == {name: pytest.approx(p.grad.norm().item()) for name, p in net.named_parameters()}


@pytest.mark.parametrize("last", [ODD, STEPS - 1])
def test_a_gradient_that_is_not_cleared_any_more_is_named(last: int) -> None:
    seen, _ = trained(plain, clears=lambda number: number < last)
    assert [defect["kind"] for defect in seen.defects] == ["missing_zero_grad"]


def test_gradients_that_are_cleared_before_they_are_used_are_named() -> None:
    from gradfix.trace import watch

    net = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    with watch(net, optimizer, quiet=True) as seen:
        for number in range(STEPS):
            optimizer.zero_grad()
            plain(net, 1).backward()
            if number == ODD:
                optimizer.zero_grad()
            optimizer.step()
    assert [defect["kind"] for defect in seen.defects] == ["zero_grad_before_step"]


def test_a_loss_that_is_no_number_is_told_of_when_it_comes() -> None:
    seen, _ = trained(lambda net, number: plain(net, 1) + (float("nan") if number == ODD else 0.0))
    assert [event["root"]["value"] for event in told(seen, "backward")].count(None) == 2
    assert len(told(seen, "backward")[-1]["reached"]) == 2


def test_a_leaf_that_is_reached_for_the_first_time_is_told_of() -> None:
    late, never = torch.ones((), requires_grad=True), torch.ones(())
    seen, _ = trained(lambda net, number: plain(net, 1) * (late if number == ODD else never))
    assert sum(any("late" in name for name in event["reached"]) for event in told(seen, "backward")) == 1


def test_an_overwritten_value_is_named_with_its_lines() -> None:
    def loss(net: Any, number: int) -> Any:
        h = net(torch.ones(2, 3)).exp()
        if number == ODD:
            h += 1
        return h.sum()

    with pytest.raises(RuntimeError), pytest.MonkeyPatch.context() as patch:
        from gradfix.trace import watching

        begun, seen = watching.begun, []

        def noted(*given: Any) -> Any:
            seen.append(given[0])
            return begun(*given)

        patch.setattr(watching, "begun", noted)
        trained(loss)
    (defect,) = seen[0].defects
    line = loss.__code__.co_firstlineno + 3
    assert (defect["kind"], defect["place"]["line"]) == ("inplace_overwrites_saved", line)


def test_updates_by_hand_are_counted_and_a_stale_one_is_named() -> None:
    from gradfix.trace import watch

    weight = torch.ones(3, requires_grad=True)
    with watch(quiet=True) as seen:
        for number in range(STEPS):
            (weight * 2).sum().backward()
            with torch.no_grad():
                weight -= 0.01 * weight.grad
                if number != ODD:
                    weight.grad = None
    assert [defect["kind"] for defect in seen.defects] == ["missing_zero_grad"]
    assert OFTEN < len(told(seen, "step")) < STEPS


def test_of_what_will_be_compared_nothing_is_left_out(tmp_path: Path) -> None:
    program = """
    import torch
    net = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    while True:
        optimizer.zero_grad()
        net(torch.ones(2, 3)).sum().backward()
        optimizer.step()
    """
    (tmp_path / "train.py").write_text("\n".join(line[4:] for line in program.splitlines()))
    job = Job(Command("script", "train.py"), str(tmp_path), limits=Limits(max_steps=STEPS))
    with Launcher() as launcher:
        events = launcher.run(job)["events"]
    assert len([event for event in events if event["event"] == "step"]) == STEPS
