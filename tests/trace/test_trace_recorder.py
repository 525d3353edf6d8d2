"""The recorder names the broken rule and its line, and stays silent on programs that are right."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gradfix.trace.report import Recording
from gradfix.verify.launch import Command, Job, Launcher, Limits

pytestmark = pytest.mark.torch

HEAD = """
import torch, torch.nn as nn, torch.nn.functional as F
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(8, 4), torch.randn(8, 1)
"""

BROKEN = {
    "an addition onto what relu saved": (
        "inplace_overwrites_saved",
        """
        h = model[1](model[0](x))
        h += 1  # culprit
        model[2](h).sum().backward()
        """,
    ),
    "an index written after exp": (
        "inplace_overwrites_saved",
        """
        h = model[0](x).exp()
        h[0] = 0  # culprit
        h.sum().backward()
        """,
    ),
    "the batch overwritten after the layer": (
        "inplace_overwrites_saved",
        """
        out = model(x)
        x.mul_(2)  # culprit
        out.sum().backward()
        """,
    ),
    "the second of two values that a custom Function saved": (
        "inplace_overwrites_saved",
        """
        class Times(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a, b):
                ctx.save_for_backward(a, b)
                return a * b
            @staticmethod
            def backward(ctx, g):
                a, b = ctx.saved_tensors
                return g * b, g * a
        a, b = model[0](x), model[0](-x)
        a += 1
        out = Times.apply(a, b)
        b += 1  # culprit
        out.sum().backward()
        """,
    ),
    "a custom Function's own result, which it saved": (
        "inplace_overwrites_saved",
        """
        class Exp(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a):
                y = a.exp()
                ctx.save_for_backward(y)
                return y
            @staticmethod
            def backward(ctx, g):
                return g * ctx.saved_tensors[0]
        h = Exp.apply(model[0](x))
        h *= 2  # culprit
        h.sum().backward()
        """,
    ),
    "an assertion on the gradient of a result": (
        "grad_of_non_leaf",
        """
        w = torch.ones(4) * torch.ones(4, requires_grad=True)  # culprit
        w.sum().backward()
        assert w.grad is not None and w.shape == (4,)
        """,
    ),
    "an in-place module over what exp saved": (
        "inplace_module",
        """
        act = nn.ReLU(inplace=True)  # culprit
        act(model[0](x).exp()).sum().backward()
        """,
    ),
    "a write on a leaf": (
        "inplace_on_leaf",
        """
        w = torch.ones(3, requires_grad=True)
        w += 1  # culprit
        """,
    ),
    "a write on a chunk": (
        "inplace_on_view_of_many",
        """
        a, b = model[0](x).chunk(2, 1)
        a += 1  # culprit
        """,
    ),
    "a write on what is expanded": (
        "write_refused",
        """
        rows = model[0](x)[:1].expand(3, -1)
        rows += 1  # culprit
        """,
    ),
    "a write on what was made in inference mode": (
        "write_refused",
        """
        with torch.inference_mode():
            h = model[0](x)
        h.relu_()  # culprit
        """,
    ),
    "a recorded result put into out": (
        "write_refused",
        """
        torch.exp(model[0](x), out=torch.empty(0))  # culprit
        """,
    ),
    "data written between save and backward": (
        "write_through_data",
        """
        h = model[0](x).exp()
        h.data.mul_(0)  # culprit
        h.sum().backward()
        """,
    ),
    "a step before the other backward": (
        "step_before_backward",
        """
        h = model(x)
        first, second = h.pow(2).mean(), h.abs().mean()
        first.backward(retain_graph=True)
        opt.step()  # culprit
        second.backward()
        """,
    ),
    "a fused step before the other backward, which torch does not notice": (
        "step_before_backward",
        """
        opt = torch.optim.Adam(model.parameters(), fused=True)
        h = model(x)
        first, second = h.pow(2).mean(), h.abs().mean()
        first.backward(retain_graph=True)
        opt.step()  # culprit
        second.backward()
        """,
    ),
    "a leaf rebound": (
        "leaf_rebound",
        """
        w = torch.ones(4, requires_grad=True)
        (x @ w).sum().backward()
        w = w - 0.1 * w.grad  # culprit
        (x @ w).sum().backward()
        print(w.grad)
        """,
    ),
    "a detached prediction": (
        "detached_loss_path",
        """
        out = model(x).detach()  # culprit
        F.mse_loss(out, y).backward()
        """,
    ),
    "a loss made of numbers": (
        "converted_loss_path",
        """
        parts = [model(x).mean(), model(x).std()]
        loss = torch.tensor(parts)  # culprit
        loss.sum().backward()
        """,
    ),
    "a loss made a leaf again, which silences the error": (
        "converted_loss_path",
        """
        loss = F.mse_loss(model(x), y)
        loss = torch.tensor(loss.item(), requires_grad=True)  # culprit
        loss.backward()
        """,
    ),
    "a loss told to require a gradient": (
        "requires_grad_on_result",
        """
        loss = F.mse_loss(model(x).detach(), y)
        loss.requires_grad_()  # culprit
        loss.backward()
        """,
    ),
    "a result told to require a gradient, of a leaf that was frozen for a while": (
        "requires_grad_on_result",
        """
        t = torch.linspace(1, 8, 10, requires_grad=True)
        start = (2 * t)[0].detach().requires_grad_(True)  # culprit
        t.requires_grad_(False)
        t.requires_grad_(True)
        (start * torch.exp(x)).sum().backward()
        """,
    ),
    "a forward under no_grad": (
        "forward_in_no_grad",
        """
        with torch.no_grad():  # culprit
            loss = F.mse_loss(model(x), y)
        loss.backward()
        """,
    ),
    "a forward in a decorated function": (
        "forward_in_no_grad",
        """
        @torch.no_grad()  # culprit
        def forward():
            return model(x)
        forward().sum().backward()
        """,
    ),
    "a forward in inference mode": (
        "forward_in_no_grad",
        """
        with torch.inference_mode():  # culprit
            out = model(x)
        out.sum().backward()
        """,
    ),
    "no leaf that requires a gradient": (
        "no_leaf_requires_grad",
        """
        w = torch.ones(3)  # culprit
        (w * 2).sum().backward()
        """,
    ),
    "an argmax in the loss": (
        "non_differentiable_loss",
        """
        hard = model[0](x).argmax(1)  # culprit
        hard.float().mean().backward()
        """,
    ),
    "a rounded prediction, whose gradient is zero everywhere": (
        "non_differentiable_loss",
        """
        out = torch.round(model(x))  # culprit
        F.mse_loss(out, y).backward()
        """,
    ),
    "one term without its graph": (
        "severed_term",
        """
        penalty = model[0].weight.pow(2).sum()
        loss = F.mse_loss(model[2](x), y) + penalty.detach()  # culprit
        loss.backward()
        """,
    ),
    "a vector backpropagated": (
        "non_scalar_backward",
        """
        model(x).backward()  # culprit
        """,
    ),
    "a graph backpropagated twice": (
        "backward_twice",
        """
        loss = F.mse_loss(model(x), y)
        loss.backward()  # culprit
        loss.backward()
        """,
    ),
    "gradients never cleared": (
        "missing_zero_grad",
        """
        for _ in range(3):
            loss = F.mse_loss(model(x), y)
            loss.backward()  # culprit
            opt.step()
        """,
    ),
    "gradients erased before the step": (
        "zero_grad_before_step",
        """
        F.mse_loss(model(x), y).backward()
        opt.zero_grad()  # culprit
        opt.step()
        """,
    ),
    "a sum that keeps every graph": (
        "graph_leak",
        """
        total = 0
        for _ in range(3):
            loss = F.mse_loss(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss  # culprit
        """,
    ),
    "the gradient of something that is no leaf": (
        "grad_of_non_leaf",
        """
        w = torch.randn(3, requires_grad=True) * 0.1  # culprit
        w.sum().backward()
        print(w.grad)
        """,
    ),
    "layers in a plain list": (
        "unregistered_parameters",
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = [nn.Linear(4, 4) for _ in range(2)]  # culprit
            def forward(self, x):
                for layer in self.layers:
                    x = layer(x)
                return x
        net = Net()
        net(x).sum().backward()
        """,
    ),
    "a layer replaced after the optimizer was built": (
        "optimizer_before_replacement",
        """
        opt = torch.optim.SGD(model.parameters(), lr=0.1)  # culprit
        model[2] = nn.Linear(4, 1)
        for _ in range(2):
            opt.zero_grad()
            F.mse_loss(model(x), y).backward()
            opt.step()
        """,
    ),
    "gradients clipped before they are unscaled": (
        "clip_before_unscale",
        """
        scaler = torch.amp.GradScaler("cpu")
        scaler.scale(F.mse_loss(model(x), y)).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # culprit
        scaler.step(opt)
        """,
    ),
    "a penalty of a gradient without a graph, beside a loss that is added up": (
        "gradient_without_graph",
        """
        x.requires_grad_()
        slope = torch.autograd.grad(model(x).sum(), x)[0]  # culprit
        loss = F.mse_loss(model(x), y)
        loss += 10 * ((slope.norm(dim=1) - 1) ** 2).mean()
        loss.backward()
        """,
    ),
    "the gradient of a gradient without a graph, where no parameter is": (
        "gradient_without_graph",
        """
        t = torch.tensor(2.0, requires_grad=True)
        first = torch.autograd.grad(t**3, t)[0]  # culprit
        torch.autograd.grad(first, t)
        """,
    ),
    "the gradient with respect to a batch that requires none": (
        "no_leaf_requires_grad",
        """
        batch = torch.ones(2, 4)  # culprit
        torch.autograd.grad(model(batch).sum(), batch)
        """,
    ),
    "the gradient with respect to a mixture of which nothing requires one": (
        "no_leaf_requires_grad",
        """
        mixed = torch.rand(8, 1) * x + torch.rand(8, 1) * model[0](x).detach()
        torch.autograd.grad(model(mixed).sum(), inputs=mixed)  # culprit
        """,
    ),
    "an array of a result, asked for by numpy itself": (
        "numpy_of_graph",
        """
        import numpy
        numpy.asarray(model(x))  # culprit
        """,
    ),
    "a gradient scaled by a function that is given it": (
        "gradient_edit_dropped",
        """
        def scale(gradient):
            gradient.mul(0.5)  # culprit
        model(x).sum().backward()
        for p in model.parameters():
            scale(p.grad)
        opt.step()
        """,
    ),
    "vectors frozen as they were made, in an optimizer of their own": (
        "unreached_parameters",
        """
        words = nn.EmbeddingBag.from_pretrained(torch.randn(5, 4))
        own = torch.optim.SGD(words.parameters(), lr=0.1)  # culprit
        for _ in range(2):
            model(words(torch.zeros(2, 3, dtype=torch.long))).sum().backward()
            for one in (opt, own):
                one.step()
                one.zero_grad()
        """,
    ),
}

HEALTHY = {
    "weights of terms, logged numbers and steps of gradients without a graph": """
        x.requires_grad_()
        for _ in range(2):
            scale = torch.tensor(1.0, requires_grad=True)
            slope = torch.autograd.grad(model(x).sum() * scale, x)[0]
            inner = scale - 0.1 * torch.autograd.grad(model(x).sum() * scale, scale)[0]
            share = slope.norm() / (slope.norm() + slope.abs().sum())
            loss = share * F.mse_loss(model(x), y) + model(x + slope.sign()).mean() + inner
            loss = loss + slope.norm().detach() + (model(x).mean() - slope.norm()).pow(2)
            opt.zero_grad()
            (loss + slope.norm().item()).backward()
            opt.step()
    """,
    "a penalty of what has no parameters": """
        points = torch.ones(8, 4, requires_grad=True)
        slope = torch.autograd.grad(points.pow(3).sum(), points)[0]
        (model(x).pow(2).mean() + slope.norm()).backward()
    """,
    "an attack on a frozen model, turn by turn": """
        model.requires_grad_(False)
        moved = x
        for _ in range(3):
            moved = moved.detach().requires_grad_()
            slope = torch.autograd.grad(F.mse_loss(model(moved), y), moved)[0]
            moved = moved + 0.1 * slope / slope.norm()
        F.mse_loss(model(moved), y).backward()
    """,
    "what is made of a gradient beside it, kept, or dropped of a copy": """
        kept = torch.zeros(4, 4)
        def look(p):
            torch.add(p.grad, 1, out=kept) if p.shape == kept.shape else None
            p.grad.clone().mul(2)
            p.grad.t().mul_(1) if p.dim() == 2 else None
            p.grad.detach()
            p.grad.gt(0)
            p.grad.squeeze()
            last = p.grad.mul(2)
            (p.grad * 2).clamp(0, 1)
            return p.grad.clamp(-1, 1)
        model(x).sum().backward()
        for p in model.parameters():
            look(p)
        opt.step()
        model[0].weight.grad.mul(2)
    """,
    "vectors that are frozen in words, or learn after all": """
        vectors = torch.randn(5, 4)
        words = [nn.Embedding.from_pretrained(vectors, freeze=True), nn.Embedding.from_pretrained(vectors)]
        words += [nn.Embedding.from_pretrained(vectors, False), nn.Embedding.from_pretrained(vectors)]
        words[1].weight.requires_grad_(False)
        words[3].weight.requires_grad_()
        own = torch.optim.SGD([{"params": one.parameters()} for one in words], lr=0.1)
        for _ in range(2):
            model(sum(one(torch.zeros(2, dtype=torch.long)) for one in words)).sum().backward()
            for one in (opt, own):
                one.step()
                one.zero_grad()
    """,
    "a result told to require a gradient, of a leaf that is frozen and has none to lose": """
        t = torch.linspace(1, 8, 10, requires_grad=True)
        start = (2 * t)[0].detach().requires_grad_(True)
        t.requires_grad_(False)
        (start * torch.exp(t)).sum().backward()
    """,
    "parts of a bias set without grad through a view that was made with it": """
        bias = model[0].bias.view(2, 2)
        with torch.no_grad():
            bias[:, 1] += 1.0
        opt.zero_grad()
        F.mse_loss(model(x), y).backward()
        opt.step()
    """,
    "a training loop": """
        for _ in range(3):
            opt.zero_grad()
            F.mse_loss(model(x), y).backward()
            opt.step()
    """,
    "a gan": """
        D = nn.Linear(1, 1)
        opt_d = torch.optim.Adam(D.parameters())
        for _ in range(2):
            fake = model(x)
            opt_d.zero_grad()
            (D(fake.detach()).mean() - D(y).mean()).backward()
            opt_d.step()
            opt.zero_grad()
            (-D(fake).mean()).backward()
            opt.step()
    """,
    "gradient accumulation": """
        for turn in range(4):
            (F.mse_loss(model(x), y) / 2).backward()
            if turn % 2:
                opt.step()
                opt.zero_grad()
    """,
    "a td target": """
        for _ in range(2):
            with torch.no_grad():
                target = 1 + 0.9 * model(x)
            opt.zero_grad()
            F.smooth_l1_loss(model(x), target).backward()
            opt.step()
    """,
    "straight through": """
        h = model(x)
        q = h + (h.round() - h).detach()
        q.pow(2).mean().backward()
    """,
    "a logged loss": """
        total, losses = 0.0, []
        for _ in range(3):
            loss = F.mse_loss(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
            losses.append(loss.detach())
    """,
    "a hand-written update": """
        w = torch.zeros(4, 1, requires_grad=True)
        for _ in range(3):
            F.mse_loss(x @ w, y).backward()
            with torch.no_grad():
                w -= 0.1 * w.grad
                w.grad = None
    """,
    "an adversarial example": """
        x = x.clone().requires_grad_()
        F.mse_loss(model(x), y).backward()
        x = (x + 0.1 * x.grad.sign()).detach().requires_grad_()
        F.mse_loss(model(x), y).backward()
    """,
    "a moving average of the weights": """
        import copy
        shadow = copy.deepcopy(model)
        for _ in range(3):
            opt.zero_grad()
            F.mse_loss(model(x), y).backward()
            opt.step()
            for a, b in zip(shadow.parameters(), model.parameters()):
                a.data.mul_(0.9).add_(b.data, alpha=0.1)
    """,
    "the question whether a result has a gradient": """
        h = model[0](x)
        h.sum().backward()
        if h.grad is not None:
            print(h.grad.norm())
        print([value.grad for value in (h, x) if value.grad is not None], h.grad is None)
    """,
    "a list of layers that is trained by hand": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = [nn.Linear(4, 1)]
            def forward(self, x):
                return self.layers[0](x)
        net = Net()
        for _ in range(3):
            net(x).sum().backward()
            with torch.no_grad():
                for p in net.layers[0].parameters():
                    p -= 0.1 * p.grad
                    p.grad.zero_()
    """,
    "an update by hand that clears the gradient through its data": """
        w = torch.tensor([1.0], requires_grad=True)
        for at in (1.0, 2.0, 3.0):
            ((w * at - 2 * at) ** 2).backward()
            w.data = w.data - 0.01 * w.grad.item()
            w.grad.data.zero_()
    """,
    "a custom Function": """
        class Exp(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a):
                y = a.exp()
                ctx.save_for_backward(y)
                return y
            @staticmethod
            def backward(ctx, g):
                return g * ctx.saved_tensors[0]
        for _ in range(3):
            opt.zero_grad()
            Exp.apply(model(x)).mean().backward()
            opt.step()
    """,
    "lbfgs": """
        opt = torch.optim.LBFGS(model.parameters(), max_iter=3)
        def closure():
            opt.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            return loss
        for _ in range(2):
            opt.step(closure)
    """,
}


@pytest.fixture(scope="module")
def launcher() -> Iterator[Launcher]:
    with Launcher() as one:
        yield one


def record(launcher: Launcher, folder: Path, body: str, **limits: Any) -> Recording:
    path = folder / "program.py"
    path.write_text(HEAD + textwrap.dedent(body))
    recording = launcher.run(Job(Command("script", str(path)), str(folder), limits=Limits(**limits)))
    assert not recording["blind"]
    return recording


def defects(recording: Recording) -> list[tuple[str, int]]:
    return [(e["kind"], e["place"]["line"]) for e in recording["events"] if e["event"] == "defect"]


def culprit(folder: Path) -> int:
    lines = (folder / "program.py").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if "# culprit" in line)


def torch_version() -> tuple[int, ...]:
    return tuple(int(part) for part in importlib.metadata.version("torch").split(".")[:2])


def lacks(recording: Recording) -> str:
    """What a program asks of torch that an older one does not have."""
    said = recording["error"]["message"] if recording["error"] is not None else ""
    older = ("no attribute 'GradScaler'", "`fused=True` requires all the params")
    return said if any(sign in said for sign in older) else ""


@pytest.mark.parametrize("name", BROKEN)
def test_names_the_rule_and_the_line_of(name: str, launcher: Launcher, tmp_path: Path) -> None:
    kind, body = BROKEN[name]
    recording = record(launcher, tmp_path, body)
    if lacks(recording) and torch_version() < (2, 6):
        pytest.skip(lacks(recording))
    assert (kind, culprit(tmp_path)) in defects(recording), recording["stderr"]


@pytest.mark.parametrize("name", HEALTHY)
def test_is_silent_on(name: str, launcher: Launcher, tmp_path: Path) -> None:
    recording = record(launcher, tmp_path, HEALTHY[name])
    assert recording["how"] in ("finished", "stopped"), recording["stderr"]
    assert defects(recording) == []


def test_names_parameters_as_the_user_knows_them(launcher: Launcher, tmp_path: Path) -> None:
    recording = record(launcher, tmp_path, "F.mse_loss(model(x), y).backward()\nopt.step()")
    step = next(event for event in recording["events"] if event["event"] == "step")
    assert list(step["parameters"]) == ["model.0.weight", "model.0.bias", "model.2.weight", "model.2.bias"]
    assert step["optimizer"] == "opt"
    assert {at["grad"] for at in step["parameters"].values()} == {"finite"}


def test_stops_after_three_steps_of_an_optimizer(launcher: Launcher, tmp_path: Path) -> None:
    body = """
    for turn in range(1000):
        print("turn", turn)
        opt.zero_grad()
        model(x).mean().backward()
        opt.step()
    """
    assert record(launcher, tmp_path, body)["stdout"].splitlines()[-1] == "turn 2"
    assert record(launcher, tmp_path, body, max_steps=5)["stdout"].splitlines()[-1] == "turn 4"


def test_stops_after_five_backwards_without_a_step(launcher: Launcher, tmp_path: Path) -> None:
    recording = record(launcher, tmp_path, "del opt\nwhile True:\n    model(x).mean().backward()")
    assert recording["how"] == "stopped"
    assert len([event for event in recording["events"] if event["event"] == "backward"]) == 5


META = """
w = torch.zeros(4, 1, requires_grad=True)
opt = torch.optim.SGD([w], lr=0.1)
for turn in range(100):
    print("turn", turn)
    total = 0.0
    for task in range(4):
        fast = w
        for _ in range(3):
            (g,) = torch.autograd.grad(F.mse_loss(x @ fast, y), [fast], create_graph=True)
            fast = fast - 0.1 * g
        total = total + F.mse_loss(x @ fast, y)
    opt.zero_grad()
    total.backward()
    opt.step()
"""


@pytest.mark.parametrize("step", ["opt.step()", ""], ids=["with a step", "without one"])
def test_a_gradient_that_is_handed_out_counts_as_no_step(
    step: str, launcher: Launcher, tmp_path: Path
) -> None:
    body = META.replace("opt.step()", step) if step else "del opt\n" + re.sub(r"\bopt\b.*", "pass", META)
    recording = record(launcher, tmp_path, body, max_steps=2)
    assert recording["how"] == "stopped"
    assert recording["stdout"].splitlines()[-1] == ("turn 1" if step else "turn 2")


def test_stops_when_gradients_are_only_handed_out(launcher: Launcher, tmp_path: Path) -> None:
    body = "while True:\n    torch.autograd.grad(model(x).mean(), model[0].weight)\n"
    recording = record(launcher, tmp_path, body, max_steps=1)
    assert recording["how"] == "stopped"


def test_gives_a_reason_for_every_parameter_without_a_gradient(launcher: Launcher, tmp_path: Path) -> None:
    body = """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.idle, self.wasted, self.frozen = (nn.Linear(4, 1, bias=False) for _ in range(4))
            self.frozen.requires_grad_(False)
        def forward(self, x):
            self.wasted(x)
            return self.used(x) + self.frozen(x)
    net = Net()
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    net(x).mean().backward()
    opt.step()
    """
    assert record(launcher, tmp_path, body)["reasons"] == {
        "net.idle.weight": "never called",
        "net.wasted.weight": "its result is not used by the loss, program.py:14",
        "net.frozen.weight": "frozen",
    }


def test_records_an_error_that_the_program_swallows(launcher: Launcher, tmp_path: Path) -> None:
    body = """
    try:
        model(x).backward()  # culprit
    except:
        pass
    """
    recording = record(launcher, tmp_path, body)
    assert recording["how"] == "finished"
    assert defects(recording) == [("non_scalar_backward", culprit(tmp_path))]


SAME = """
for _ in range(2):
    opt.zero_grad()
    h = model[1](model[0](x))
    (model[2](h) + torch.randn(8, 1)).pow(2).mean().backward()
    opt.step()
print([p.grad.tolist() for p in model.parameters()], [p.tolist() for p in model.parameters()])
class Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        y = a.exp()
        ctx.save_for_backward(y)
        return y
    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]
for exp in (torch.exp, Exp.apply):
    try:
        h = exp(model[0](x)); h += 1; h.sum().backward()
    except Exception as error:
        print(type(error), error, type(error.__context__))
"""


def test_numbers_and_errors_are_those_of_a_plain_run(launcher: Launcher, tmp_path: Path) -> None:
    recorded = record(launcher, tmp_path, SAME)
    command = [sys.executable, str(tmp_path / "program.py")]
    plain = subprocess.run(command, capture_output=True, text=True, check=True)
    assert plain.stdout.count("modified by an inplace operation") == 2
    assert recorded["stdout"] == plain.stdout
