"""Names of torch are the same, whichever of torch's files they are taken from."""

from __future__ import annotations

import importlib
import sys
import types

import pytest
from short import kinds

from gradfix.tape.interpreter.imports import FILES, canonical
from gradfix.tape.interpreter.modes import MODES_BY_PATH, SWITCHES
from gradfix.tape.python.torch_calls import HANDLERS, SAME_MODULE

KNOWN = [path for path in (*HANDLERS, *SAME_MODULE, *MODES_BY_PATH, *SWITCHES) if path.startswith("torch.")]
LOOP = """
    net = nn.Linear(3, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = {scaler}("cpu")
    for x in torch.randn(10, 2, 3):
        scaler.scale(net(x).mean()).backward()
        scaler.step(opt)
        scaler.update()
"""


@pytest.mark.parametrize(
    ("statement", "scaler"),
    [
        ("import torch.amp", "torch.amp.GradScaler"),
        ("import torch.amp.grad_scaler", "torch.amp.grad_scaler.GradScaler"),
        ("from torch.amp.grad_scaler import GradScaler", "GradScaler"),
        ("from torch import GradScaler", "GradScaler"),
        ("from torch.cuda.amp.grad_scaler import GradScaler", "GradScaler"),
    ],
)
def test_a_scaler_is_one_wherever_it_comes_from(statement: str, scaler: str) -> None:
    assert kinds(f"    {statement}\n{LOOP.format(scaler=scaler)}") == {"missing_zero_grad"}


def test_a_backward_under_a_mode_is_found_whichever_file_the_mode_comes_from() -> None:
    body = "net = nn.Linear(3, 1)\nwith torch.autograd.grad_mode.no_grad():\n"
    assert kinds(body + "    loss = net(torch.ones(3)).sum()\nloss.backward()\n") == {"forward_in_no_grad"}


def _named(path: str) -> object:
    """What torch has under a dotted name: in a file, where a function has the name of its file."""
    module, _, name = path.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except ModuleNotFoundError:
        return getattr(_named(module), name)


@pytest.mark.torch
@pytest.mark.parametrize("path", KNOWN)
def test_what_is_known_by_its_path_is_known_by_that_of_the_file_that_defines_it(path: str) -> None:
    pytest.importorskip("torch")
    try:
        there = _named(path)
    except AttributeError:
        pytest.skip("this torch doesn't have it")
    if not isinstance(there, (type, types.FunctionType)):
        return
    home = there.__module__
    if any(part.startswith("_") for part in home.split(".")) or not hasattr(
        sys.modules[home], there.__name__
    ):
        return
    assert canonical(f"{home}.{there.__name__}") in KNOWN


@pytest.mark.torch
def test_a_file_that_stands_for_its_package_defines_what_that_hands_out() -> None:
    pytest.importorskip("torch")
    for package, files in FILES.items():
        for file in files:
            held, outer = vars(importlib.import_module(f"{package}.{file}")), importlib.import_module(package)
            shared = [name for name, value in held.items() if getattr(outer, name, None) is value]
            assert any(not name.startswith("_") for name in shared), f"{package}.{file}"
