"""Whole programs: straight graphs, training loops, two networks, many losses, unknown callees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .blocks import function, statements
from .choose import Chooser
from .files import model_file, training_file
from .loops import off_track
from .nets import module, module_class
from .scope import Writer
from .tensors import make_constant, make_leaf
from .training import OPTIMIZERS, backward, parameters, read_grad, training_loop, update
from .words import FLAGS, MATRIX

HEADER = """import math
import os
import sys

import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd import Variable
"""


@dataclass(frozen=True)
class Program:
    """Source text, and what its reader can't know."""

    source: str
    flags: int = 0
    opaque: bool = False
    driver: str = ""
    """What runs behind the text, in another file so to speak: the tape doesn't see it."""

    @property
    def lines(self) -> int:
        return self.source.count("\n")


def program(c: Chooser) -> Program:
    w = Writer(c, wild=c.pick((0, 40, 70, 95)))
    w.lines.extend(HEADER.split("\n")[:-1])
    if c.chance(6):
        w.opaque.append("blur")
        w.line("from mystery import blur")
    flags = c.weighted([(120, 0), (60, 1), (16, 2), (2, 3), (1, 6), (1, 10)])
    for index in range(flags):
        w.line(f"flag{index} = {FLAGS[index]}")
        w.flags.append(f"flag{index}")
    for _ in range(c.weighted([(6, 0), (3, 1), (1, 2)])):
        function(w)
    c.weighted(SCENES)(w)
    return Program(w.text(), flags, bool(w.opaque), w.driver)


def graph(w: Writer) -> None:
    """Leaves, a few statements, a loss, backward; perhaps twice."""
    leaves(w)
    for _ in range(w.c.weighted([(7, 1), (3, 2), (1, 3)])):
        statements(w, 1 + w.c.below(5))
        backward(w)
        if w.c.chance(40):
            read_grad(w)


def leaves(w: Writer) -> None:
    for _ in range(1 + w.c.below(2)):
        make_leaf(w)
    make_leaf(w, MATRIX)
    for _ in range(w.c.below(2)):
        make_constant(w)


def descent(w: Writer) -> None:
    """Leaves, and a loop that updates them by hand."""
    leaves(w)
    name = w.fresh("turn")
    with w.block(f"for {name} in range({w.c.pick((2, 3))}):"):
        w.loops.append(name)
        statements(w, w.c.below(3))
        backward(w)
        update(w)
        w.loops.pop()


def training(w: Writer) -> None:
    net, optimizer = network(w, "net", "opt")
    if w.c.chance(30):
        w.line(w.c.pick(("net.train()", "net.eval()", "net.requires_grad_(True)")))
    if w.c.chance(25):
        leaves(w)
    training_loop(w, net, optimizer)


def network(w: Writer, net: str, optimizer: str) -> tuple[str, str]:
    classes = [module_class(w) for _ in range(w.c.weighted([(3, 0), (5, 1), (1, 2)]))]
    w.line(f"{net} = {module(w, classes)}")
    if "Dropout" not in w.lines[-1] and not classes:
        w.lines[-1] = f"{net} = nn.Sequential(nn.Linear(4, 4), {w.lines[-1].strip().split(' = ', 1)[1]})"
    w.line(f"{optimizer} = {w.c.pick(OPTIMIZERS).format(p=parameters(w, net))}")
    return net, optimizer


def inference_of_module(w: Writer) -> None:
    """A module applied to a leaf or a batch, without an optimizer."""
    call = module_class(w)
    w.line(f"net = {call}")
    leaves(w)
    name = w.fresh("x")
    source = w.c.pick(w.tensors(MATRIX)).name
    w.line(f"{name} = net({source})")
    w.bind(name, MATRIX)
    statements(w, w.c.below(3))
    backward(w)


def adversaries(w: Writer) -> None:
    """Two networks that train against each other, as GANs do."""
    w.line("gen = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))")
    w.line("dis = nn.Sequential(nn.Linear(4, 4), nn.LeakyReLU(0.2, inplace=True), nn.Linear(4, 1))")
    w.line("opt_g = torch.optim.SGD(gen.parameters(), lr=0.1)")
    w.line("opt_d = torch.optim.Adam(dis.parameters(), lr=0.1)")
    cut = ".detach()" if not w.c.chance(w.wild) else ""
    retain = "retain_graph=True" if w.c.chance(40) else ""
    parts = [
        "fake = gen(torch.randn(3, 4))",
        "opt_d.zero_grad()",
        f"loss_d = F.softplus(-dis(torch.randn(3, 4))).mean() + F.softplus(dis(fake{cut})).mean()",
        f"loss_d.backward({retain})",
        "opt_d.step()",
        "opt_g.zero_grad()",
        "loss_g = F.softplus(-dis(fake)).mean()",
        "loss_g.backward()",
        "opt_g.step()",
    ]
    disturb(w, parts)
    with w.block("for turn in range(2):"):
        for part in parts:
            w.line(part)


def disturb(w: Writer, parts: list[str]) -> None:
    if w.c.chance(w.wild):
        first = w.c.below(len(parts) - 1)
        parts[first], parts[first + 1] = parts[first + 1], parts[first]
    if w.c.chance(w.wild // 2):
        parts.remove(w.c.pick(("opt_d.zero_grad()", "opt_g.zero_grad()")))


def many_losses(w: Writer) -> None:
    """Losses collected in a list or a running total, then backpropagated."""
    leaves(w)
    leaf = w.tensors(MATRIX)[-1].name
    listed = w.c.chance(50)
    w.line("losses = []" if listed else "total = 0")
    with w.block("for part in range(2):"):
        w.loops.append("part")
        statements(w, 1 + w.c.below(2))
        w.line(f"loss = ({leaf} * {w.c.pick(w.tensors(MATRIX)).name}).mean()")
        tail = w.c.pick(("", "", "", ".item()", ".detach()")) if w.c.chance(w.wild) else ""
        w.line(
            f"losses.append(loss{tail})"
            if listed
            else f"total {w.c.pick(('+= loss', '= total + loss'))}{tail}"
        )
        w.loops.pop()
    joined = w.c.pick(
        ("sum(losses)", "torch.stack(losses).mean()", "torch.stack(losses).sum()", "sum(l for l in losses)")
    )
    w.line(f"final = {joined if listed else 'total'}")
    if w.c.chance(w.wild):
        w.line(
            w.c.pick(("final = torch.tensor(losses).sum()", "final = final + 0 * losses[0]"))
            if listed
            else "total *= 2"
        )
    w.line("final.backward()")
    w.line(f"g = {leaf}.grad")


SCENES: list[tuple[int, Callable[[Writer], None]]] = [
    (50, graph),
    (10, descent),
    (20, training),
    (10, inference_of_module),
    (4, adversaries),
    (6, many_losses),
    (10, model_file),
    (8, training_file),
    (10, off_track),
]
