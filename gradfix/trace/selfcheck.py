"""Known programs, for a torch that the recorder was never tried with: does it see what there is to see?"""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import torch

from gradfix.trace.session import Session

TRIED = ((2, 2), (2, 15))
"""The oldest and the newest torch under which the recorder's own tests have passed."""
HEAD = """
import torch
def begin():
    w = torch.nn.Parameter(torch.tensor([1.0, 2.0]))
    return w, torch.optim.SGD([w], lr=0.1)
w, optimizer = begin()
"""
PROGRAMS: dict[str, tuple[str, ...]] = {
    """
for _ in range(2):
    optimizer.zero_grad()
    (torch.nn.functional.relu(w) * 3.0).sum().backward()
    optimizer.step()
""": (),
    """
y = w.exp()
y += 1
y.sum().backward()
""": ("inplace_overwrites_saved",),
    """
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    def backward(ctx, g):
        return 2 * ctx.saved_tensors[0] * g
h = w * 1.0
y = Square.apply(h)
h += 1
y.sum().backward()
""": ("inplace_overwrites_saved",),
    """
(w * 2).sum().detach().backward()
""": ("detached_loss_path",),
    """
loss = (w * w).sum()
loss.backward()
loss.backward()
""": ("backward_twice",),
    """
for _ in range(2):
    (w * w).sum().backward()
    optimizer.step()
""": ("missing_zero_grad",),
    """
loss = (w * w).sum()
w.data.add_(1.0)
loss.backward()
""": ("write_through_data",),
    """
with torch.no_grad():
    loss = (w * w).sum()
loss.backward()
""": ("forward_in_no_grad",),
}
"""What is run after HEAD -> the rules that it breaks."""


def tried(version: str) -> bool:
    """Whether the recorder was tried with a version of torch."""
    numbers = [int(part) for part in version.split("+")[0].split(".")[:2] if part.isdigit()]
    return TRIED[0] <= tuple(numbers) <= TRIED[1]


def failures() -> list[str]:
    """What the recorder does not see under this torch, one sentence each."""
    return [said for text, rules in PROGRAMS.items() if (said := wrong(text, rules))]


def wrong(text: str, rules: tuple[str, ...]) -> str:
    """What is wrong with what is seen of one program; empty when all is as it should be."""
    events: list[Any] = []
    session = Session(events.append)
    session.start()
    try:
        exec(compile(HEAD + text, "<self-check>", "exec"), {"__name__": "selfcheck"})
    except Exception as error:
        if not rules or not isinstance(error, RuntimeError):
            return f"a program fails ({type(error).__name__}: {error})"
    finally:
        session.stop()
    ending = session.ending("finished", None)
    if ending["blind"]:
        part, why = next(iter(ending["blind"].items()))
        return f"{part} ({why})"
    found = tuple(dict.fromkeys(event["kind"] for event in events if event["event"] == "defect"))
    if found != rules:
        return f"{' and '.join(found) or 'nothing'} seen where there is {' and '.join(rules) or 'nothing'}"
    return "" if rules or trained(events) else "a healthy training step is not seen"


def trained(events: list[Any]) -> bool:
    """Whether gradients were seen to arrive, and to be used."""
    reached = [event for event in events if event["event"] == "backward" and any(event["reached"].values())]
    stepped = [event for event in events if event["event"] == "step" and event["parameters"]]
    return len(reached) == len(stepped) == 2


@cache
def verdict() -> tuple[str, str]:
    """Under this torch: what a report has to add, and why the recorder is not to be trusted."""
    version = str(torch.__version__)
    if tried(version):
        return "", ""
    oldest, newest = (".".join(map(str, one)) for one in TRIED)
    untried = f"gradfix was tried with torch {oldest} to {newest}, not with {version}"
    found = failures()
    if found:
        return "", f"{untried}, and its self-check failed: {'; '.join(found[:3])}"
    return f"{untried}; its self-check of {len(PROGRAMS)} programs passed", ""


def apart() -> tuple[str, str]:
    """The same, in a process of its own where there is fork: nothing of it stays."""
    if tried(str(torch.__version__)) or not hasattr(os, "fork"):
        return verdict()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, "\n".join(part.replace("\n", " ") for part in verdict()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        note, _, failure = pipe.read().decode().partition("\n")
    os.waitpid(child, 0)
    return note, failure if note or failure else "the self-check of the recorder did not end"
