"""Messages without a traceback: every backward of the files counts, and every line that explains them."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradfix.config import Config
from gradfix.plan import Plan
from gradfix.why.answers import Answer, answer

MARK = "# <- at fault"
OVERWRITTEN = (
    "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace "
    "operation"
)
FREED = "RuntimeError: Trying to backward through the graph a second time (or directly access saved tensors"
STEPPED = """\
import torch


class Agent:
    def __init__(self, q, policy, scale):
        self.q, self.policy = q, policy
        self.other_optimizer = torch.optim.Adam(scale.parameters())
        self.q_optimizer = torch.optim.Adam(self.q.parameters())
        self.policy_optimizer = torch.optim.Adam(self.policy.parameters())

    def update(self, seen, wanted):
        self.updates += 1
        policy_loss = -self.q(self.policy(seen)).mean()
        q_loss = (self.q(seen) - wanted).pow(2).mean()
        self.q_optimizer.zero_grad()
        q_loss.backward()
        self.q_optimizer.step()  # <- at fault
        self.other_optimizer.step()
        self.policy_optimizer.zero_grad()
        policy_loss.backward()
        self.policy_optimizer.step()
"""
METHODS = """\
import torch


class Model:
    def initialize(self, make):
        self.maker, self.judge = make(), make()

    def forward(self, image):
        self.made = self.maker.forward(image)

    def backward_judge(self):
        self.loss_judge = self.judge.forward(self.made).mean()
        self.loss_judge.backward()  # <- at fault

    def backward_maker(self):
        self.loss_maker = -self.judge.forward(self.made).mean()
        self.loss_maker.backward()

    def optimize(self, image):
        self.forward(image)
        self.backward_judge()
        self.backward_maker()
"""
REPLAYED = """\
import torch


def train(sampler, buffer, loss_of, optimizer, rounds):
    for number in range(rounds):
        drawn = sampler.draw()
        buffer.add(drawn)  # <- at fault
        batch = buffer.sample(8)
        loss = loss_of(batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
BIASES = """\
import math

import torch


class Detector(torch.nn.Module):
    def initialise(self):
        for layer in self.layers:
            copied = layer.bias.detach().clone()
            copied[0] += 1.0
            bias = layer.bias.view(3, -1)
            bias[:, 4] += math.log(8 / 640)  # <- at fault
        with torch.no_grad():
            self.last.weight[0] += 1.0
"""
SCALED = """\
import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
offsets = torch.zeros(2, requires_grad=True, device=device)
factors = [torch.ones(2, requires_grad=True).to(device) for _ in range(3)]  # <- at fault
optimizer = torch.optim.Adam(factors)
"""
SEVERAL = """\
import torch


class Loss(torch.nn.Module):
    def forward(self, made, wanted):
        near = (made - wanted).abs().mean()
        far = (made - wanted).pow(2).mean()
        return near + far, near, far  # <- at fault


def train(net, loader, optimizer):
    criterion = Loss()
    for image, wanted in loader:
        loss = criterion(net(image), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
TABLE = """\
import torch
from torch import nn

ACTIVATIONS = {"relu": nn.ReLU, "gelu": nn.GELU}


class Layer(nn.Module):
    def __init__(self, activation):
        super().__init__()
        self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 4)
        self.quiet = nn.Dropout(0.1, inplace=True)
        self.between = ACTIVATIONS[activation]()
        self.dropout = nn.Dropout(0.1, inplace=True)  # <- at fault

    def forward(self, x):
        x = self.quiet(self.first(x))
        return self.last(self.dropout(self.between(x)))
"""
WRAPPED = """\
import torch
from mmcv.parallel import MMDistributedDataParallel


def train(model, cfg):
    find_unused_parameters = cfg.get("find_unused_parameters", False)  # <- at fault
    return MMDistributedDataParallel(
        model.cuda(), broadcast_buffers=False, find_unused_parameters=find_unused_parameters
    )
"""
AROUND = """\
import torch


def test(net, loader, adversary):
    with torch.no_grad():  # <- at fault
        for image, wanted in loader:
            net(adversary.perturb(image, wanted))
"""
RELU = (
    f"{OVERWRITTEN}: [torch.cuda.FloatTensor [256, 8, 256]], which is output 0 of ReluBackward0, is at "
    "version 1; expected version 0 instead."
)
VIEW = "RuntimeError: a view of a leaf Variable that requires grad is being used in an in-place operation."
UNFINISHED = "RuntimeError: Expected to have finished reduction in the prior iteration before starting a new"
LEAFLESS = "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn"


def asked(text: str, folder: Path) -> Answer:
    return answer(text, [str(folder)], Plan(Config(folder), follows_imports=True))


@pytest.mark.parametrize(
    ("program", "message"),
    [
        pytest.param(STEPPED, OVERWRITTEN, id="a step of what another loss was computed with"),
        pytest.param(METHODS, FREED, id="two methods that walk what a third has computed"),
        pytest.param(REPLAYED, FREED, id="a buffer that keeps graphs"),
        pytest.param(BIASES, VIEW, id="a view of a layer's bias"),
        pytest.param(SCALED, "ValueError: can't optimize a non-leaf Tensor", id="a leaf that was moved"),
        pytest.param(SEVERAL, "AttributeError: 'tuple' object has no attribute 'backward'", id="a tuple"),
        pytest.param(TABLE, RELU, id="a module behind one out of a table"),
        pytest.param(WRAPPED, UNFINISHED, id="a setting of the wrapper by its name"),
        pytest.param(AROUND, LEAFLESS, id="a call that runs backward inside of no_grad"),
    ],
)
def test_the_line_at_fault_is_named_first_for(program: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(program)
    at_fault = next(n for n, line in enumerate(program.splitlines(), 1) if MARK in line)
    told = asked(message, tmp_path)
    assert told.culprits[0].suspect.span.line == at_fault
    assert told.culprits[0].sure != "likely"


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("number += 1", id="a counter"),
        pytest.param("seen += batch_size", id="a sum of sizes"),
        pytest.param('told["loss"] = loss', id="an entry of a dict"),
        pytest.param("names += [str(number)]", id="a list"),
        pytest.param("batch[key] = batch[key].to(device)", id="the entries of a batch"),
    ],
)
def test_what_is_no_tensor_is_blamed_for_no_write(line: str, tmp_path: Path) -> None:
    program = f"""\
import torch


def train(net, loader, optimizer, told, names, device):
    number, seen = 0, 0
    for batch in loader:
        batch_size = batch["x"].size(0)
        for key in batch:
            loss = net(batch).exp().sum()
            {line}
        loss.backward()
        optimizer.step()
"""
    (tmp_path / "train.py").write_text(program)
    blamed = [each.suspect.span.line for each in asked(OVERWRITTEN, tmp_path).culprits]
    assert 10 not in blamed


def test_a_line_of_a_renamed_file_is_found_by_its_text_and_function(tmp_path: Path) -> None:
    body = "    for item in items:\n        item = item.cpu().numpy()\n"
    (tmp_path / "shown.py").write_text(
        f"import torch\n\n\ndef one(items):\n{body}\n\ndef many(items):\n{body}"
    )
    told = asked(
        'Traceback (most recent call last):\n  File "elsewhere.py", line 113, in many\n'
        "    item = item.cpu().numpy()\n"
        "RuntimeError: Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.",
        tmp_path,
    )
    assert [Path(spot.path).name for spot in told.spots] == ["shown.py"]
    assert (told.culprits[0].suspect.span.line, told.culprits[0].sure) == (11, "shown")


def test_a_line_that_pytest_points_at_is_found_by_its_text(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(
        "import torch\n\n\ndef init(conv):\n    b = conv.bias.view(3, -1)\n    b[:, 4] += 8.0\n"
    )
    pasted = f"        b = conv.bias.view(3, -1)\n>       b[:, 4] += 8.0\nE       {VIEW}\n"
    told = asked(pasted, tmp_path)
    assert (told.culprits[0].suspect.span.line, told.culprits[0].sure) == (6, "shown")
