"""The recorder in pytest, Lightning and transformers."""

from __future__ import annotations

import io
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

pytestmark = pytest.mark.torch

torch: Any = pytest.importorskip("torch")

SUITE = """
import pytest, torch

def test_is_healthy():
    w = torch.ones(2, requires_grad=True)
    (w * w).sum().backward()

def test_breaks_a_rule_and_passes():
    w = torch.ones(2, requires_grad=True)
    loss = (w * w).sum()
    w.data.add_(1)
    loss.backward()

def test_provokes_torch():
    w = torch.ones(2, requires_grad=True)
    y = w.exp()
    y += 1
    with pytest.raises(RuntimeError):
        y.sum().backward()

def test_has_no_tensors():
    pass

def test_asks(gradients_flow):
    net = torch.nn.Linear(2, 1)
    with gradients_flow(net):
        net(torch.ones(1, 2)).detach().sum()
"""


INSTALLED = any(each.value == "gradfix.pytest_plugin" for each in entry_points(group="pytest11"))
PLUGIN = () if INSTALLED else ("-p", "gradfix.pytest_plugin")
"""An environment that was made before there was a plugin doesn't load it by itself."""


def suite(folder: Path, *words: str) -> list[str]:
    (folder / "test_suite.py").write_text(SUITE)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *PLUGIN, *words, "test_suite.py"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout.splitlines()


def test_pytest_tells_which_tests_break_a_rule_and_fails_none_of_them(tmp_path: Path) -> None:
    said = suite(tmp_path, "--gradients")
    start = next(number for number, line in enumerate(said) if " gradients ==" in line)
    assert said[start + 1 : start + 3] == [
        "test_suite.py::test_breaks_a_rule_and_passes",
        "  test_suite.py:11: write_through_data",
    ]
    assert "1 of 3 tests with tensors that need gradients broke a rule of autograd" in said
    assert said[-1].startswith("1 failed, 4 passed")


def test_pytest_is_left_alone_unless_asked(tmp_path: Path) -> None:
    said = suite(tmp_path, "-k", "not asks")
    assert not any("gradients" in line for line in said)


def trains(net: Any, optimizer: Any, callback: Any, batches: int) -> None:
    """What both frameworks do, as far as a callback sees it."""
    for _ in range(batches):
        optimizer.zero_grad()
        net[1](net[0](torch.ones(1, 2)).detach()).sum().backward()
        optimizer.step()
        callback()


def parts() -> tuple[Any, Any]:
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
    return net, torch.optim.SGD(net.parameters(), lr=0.1)


def test_lightnings_callback_reports_after_the_first_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against a stand-in of the same interface."""
    from gradfix.trace import callbacks

    stand_in: Any = ModuleType("lightning.pytorch.callbacks")
    stand_in.Callback = type("Callback", (), {})
    monkeypatch.setitem(sys.modules, "lightning.pytorch.callbacks", stand_in)
    said = io.StringIO()
    callback = callbacks.lightning(steps=2, stream=said)
    net, optimizer = parts()
    callback.on_train_start(SimpleNamespace(optimizers=[optimizer]), net)
    trains(net, optimizer, lambda: callback.on_train_batch_end(None, net, None, None, 0), 1)
    assert said.getvalue() == ""
    trains(net, optimizer, lambda: callback.on_train_batch_end(None, net, None, None, 0), 3)
    assert said.getvalue().count("no gradient: net.0.weight (cut by detach in trains, ") == 1
    assert torch.overrides._get_current_function_mode() is None


def test_lightnings_callback_reports_what_stopped_the_training(monkeypatch: pytest.MonkeyPatch) -> None:
    from gradfix.trace import callbacks

    stand_in: Any = ModuleType("lightning.pytorch.callbacks")
    stand_in.Callback = type("Callback", (), {})
    monkeypatch.setitem(sys.modules, "lightning.pytorch.callbacks", stand_in)
    said = io.StringIO()
    callback = callbacks.lightning(stream=said)
    net, optimizer = parts()
    callback.on_train_start(SimpleNamespace(optimizers=[optimizer]), net)
    try:
        net(torch.ones(1, 2)).sum().detach().backward()
    except RuntimeError as error:
        callback.on_exception(None, net, error)
    assert "detached_loss_path" in said.getvalue()
    assert torch.overrides._get_current_function_mode() is None


def test_transformers_callback_knows_the_optimizer_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against a stand-in of the same interface."""
    from gradfix.trace import callbacks

    stand_in: Any = ModuleType("transformers")
    stand_in.TrainerCallback = type("TrainerCallback", (), {})
    monkeypatch.setitem(sys.modules, "transformers", stand_in)
    said = io.StringIO()
    callback = callbacks.transformers(steps=2, stream=said)
    net, optimizer = parts()
    given = {"model": net, "optimizer": SimpleNamespace(optimizer=optimizer)}
    callback.on_train_begin(None, None, None, **given)
    trains(net, optimizer, lambda: callback.on_step_end(None, None, None, **given), 3)
    callback.on_train_end(None, None, None, **given)
    assert "unreached_parameters" in said.getvalue().splitlines()[0]
    assert said.getvalue().count("no gradient: net.0.weight (cut by detach in trains, ") == 1


def test_transformers_callback_reports_what_stopped_the_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its trainer has no hook for an exception."""
    from gradfix.trace import callbacks

    stand_in: Any = ModuleType("transformers")
    stand_in.TrainerCallback = type("TrainerCallback", (), {})
    monkeypatch.setitem(sys.modules, "transformers", stand_in)
    said = io.StringIO()
    callback = callbacks.transformers(stream=said)
    net, optimizer = parts()
    given = {"model": net, "optimizer": optimizer}
    callback.on_train_begin(None, None, None, **given)
    with pytest.raises(RuntimeError):
        net(torch.ones(1, 2)).sum().detach().backward()
    assert said.getvalue().count("detached_loss_path") == 1
    callback.on_train_begin(None, None, None, **given)
    trains(net, optimizer, lambda: callback.on_step_end(None, None, None, **given), 3)
    assert said.getvalue().count("detached_loss_path") == 1
    assert said.getvalue().count("no gradient: net.0.weight (cut by detach in trains, ") == 1
    assert torch.overrides._get_current_function_mode() is None
