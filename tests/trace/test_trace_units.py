"""A module of torch's own is recorded as one call, and what is said is what its single calls would say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.torch

torch: Any = pytest.importorskip("torch")
nn = torch.nn
STEPS = 3
BATCH = 4


def layered() -> Any:
    return nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Dropout(0.5), nn.Sequential(nn.Linear(4, 1)))


def encoder() -> Any:
    layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


def healthy(net: Any, x: Any, number: int) -> Any:
    return net(x).pow(2).mean()


def overwritten(net: Any, x: Any, number: int) -> Any:
    h = torch.nn.Sequential(net, nn.Sigmoid())(x)
    if number == 1:
        h += 1
    return h.sum()


def cut(net: Any, x: Any, number: int) -> Any:
    return net(x).detach().sum() if number == 1 else net(x).sum()


def written_through_data(net: Any, x: Any, number: int) -> Any:
    loss = net(x).sum()
    for one in net.parameters():
        one.data.mul_(0.5)
    return loss


def stepped_before(net: Any, x: Any, number: int) -> Any:
    loss = net(x).pow(2).sum()
    if number == 1:
        torch.optim.SGD(net.parameters(), lr=0.1).step()
    return loss


def without_grad(net: Any, x: Any, number: int) -> Any:
    with torch.set_grad_enabled(number != 1):
        h = net(x)
    return h.sum()


def in_place(net: Any, x: Any, number: int) -> Any:
    return nn.Sequential(net, nn.Sigmoid(), nn.ReLU(inplace=number == 1))(x).sum()


def used_twice(net: Any, x: Any, number: int) -> Any:
    loss = net(x).sum()
    if number == 1:
        loss.backward()
    return loss


LOSSES: list[Callable[[Any, Any, int], Any]] = [
    healthy, overwritten, cut, written_through_data, stepped_before, without_grad, in_place, used_twice,
]  # fmt: skip


def told(
    make: Callable[[], Any], loss: Callable[[Any, Any, int], Any]
) -> tuple[list[Any], dict[str, str], int]:
    """The events of a short training, the reasons at its end, and how many calls were recorded."""
    from gradfix.trace.session import Session

    events: list[Any] = []
    torch.manual_seed(0)
    net = make()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    session = Session(events.append)
    session.start()
    try:
        for number in range(STEPS):
            optimizer.zero_grad()
            loss(net, torch.ones(BATCH, 3, 4), number).backward()
            optimizer.step()
    except RuntimeError as error:
        events.append(str(error))
    finally:
        session.stop()
    return events, session.ending("finished", None)["reasons"], session.state.count


@pytest.mark.parametrize("make", [layered, encoder])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_same_is_told_as_of_the_single_calls(
    make: Callable[[], Any], loss: Callable[[Any, Any, int], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from gradfix.trace import units

    events, reasons, _ = told(make, loss)
    monkeypatch.setattr(units, "WHOLE", set())
    assert (events, reasons) == told(make, loss)[:2]
    assert len(events) > 1


@pytest.mark.parametrize("make", [layered, encoder])
def test_it_is_one_call(make: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    from gradfix.trace import units

    many = told(make, healthy)[2]
    monkeypatch.setattr(units, "WHOLE", set())
    assert many < told(make, healthy)[2]


class Own(nn.Module):  # type: ignore[misc,name-defined]
    def forward(self, x: Any) -> Any:
        return x * 2


def hooked() -> Any:
    net = layered()
    net[0].register_forward_hook(lambda *given: None)
    return net


def replaced() -> Any:
    net = layered()
    net[1].forward = lambda x: x.exp()
    return net


def activated() -> Any:
    return nn.TransformerEncoderLayer(4, 2, 8, activation=lambda x: x.exp())


LOOKED_INTO: dict[str, Callable[[], Any]] = {
    "a module of the user's": lambda: nn.Sequential(nn.Linear(4, 4), Own()),
    "a hook": hooked,
    "a forward of the user's": replaced,
    "an activation of the user's": activated,
    "a module that writes in place": lambda: nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True)),
    "buffers": lambda: nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)),
    "an embedding that is normed": lambda: nn.Sequential(nn.Embedding(4, 4, max_norm=1.0), nn.Tanh()),
    "a parametrized layer": lambda: nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(4, 4))),
}


@pytest.mark.parametrize("make", LOOKED_INTO.values(), ids=LOOKED_INTO)
def test_what_could_be_of_interest_by_itself_is_looked_into(make: Callable[[], Any]) -> None:
    from gradfix.trace.units import plain

    assert not plain(make(), [])
    assert plain(layered(), [])
    assert plain(encoder(), [])


def test_the_recorder_leaves_the_class_of_modules_as_it_was() -> None:
    from gradfix.trace.session import Session

    before = vars(nn.Module)["__call__"]
    session = Session(lambda _: None)
    session.start()
    assert vars(nn.Module)["__call__"] is not before
    session.stop()
    assert vars(nn.Module)["__call__"] is before
