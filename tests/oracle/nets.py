"""Modules: layers, Sequential, and small classes with a forward of their own."""

from __future__ import annotations

from .blocks import statements
from .scope import Writer
from .tensors import value
from .words import MATRIX

LAYERS = (
    "nn.Linear(4, 4)", "nn.Linear(4, 4)", "nn.Linear(4, 4, bias=False)", "nn.BatchNorm1d(4)",
    "nn.LayerNorm(4)", "nn.ReLU()", "nn.ReLU(inplace=True)", "nn.ReLU(True)", "nn.Dropout(0.5)",
    "nn.Dropout(0.0)", "nn.Dropout(p=0.5, inplace=True)", "nn.Tanh()", "nn.Sigmoid()", "nn.GELU()",
    "nn.LeakyReLU(0.1, inplace=True)", "nn.SiLU(inplace=True)", "nn.Softmax(dim=-1)", "nn.Identity()",
    "nn.ELU()", "nn.Hardswish(inplace=True)", "nn.BatchNorm1d(4, affine=False)", "nn.Softplus()",
    "nn.PReLU()", "nn.LayerNorm(4, elementwise_affine=False)", "nn.Bilinear(4, 4, 4)",
)  # fmt: skip


def layer(w: Writer) -> str:
    return w.c.pick(LAYERS[:-1])


def sequence(w: Writer) -> str:
    inner = ["nn.Linear(4, 4)"] + [layer(w) for _ in range(1 + w.c.below(3))]
    if w.c.chance(25):
        inner.reverse()
    return f"nn.Sequential({', '.join(inner)})"


def module_class(w: Writer) -> str:
    """Write a class, return its constructor call."""
    name = w.fresh("Net")
    residual = w.c.chance(30)
    with w.block(f"class {name}(nn.Module):"):
        attributes = constructor(w, residual)
        with w.block("def forward(self, x):"):
            forward(w, attributes, residual)
    return f"{name}({w.c.pick(('', 'residual=True', 'residual=False')) if residual else ''})"


def constructor(w: Writer, residual: bool) -> list[str]:
    with w.block(f"def __init__(self{', residual=True' if residual else ''}):"):
        w.line("super().__init__()")
        if residual:
            w.line("self.residual = residual")
        w.line("self.l0 = nn.Linear(4, 4)")
        attributes = ["l0"]
        for index in range(1, 2 + w.c.below(3)):
            w.line(f"self.l{index} = {sequence(w) if w.c.chance(20) else layer(w)}")
            attributes.append(f"l{index}")
        if w.c.chance(15):
            w.line(f"self.many = nn.ModuleList([{layer(w)}, nn.Linear(4, 4), {layer(w)}])")
            attributes.append("many")
        if w.c.chance(15):
            w.line("self.scale = nn.Parameter(torch.ones(4))")
            attributes.append("scale")
        if w.c.chance(12):
            w.line('self.register_buffer("average", torch.zeros(4))')
            attributes.append("average")
    return attributes


def forward(w: Writer, attributes: list[str], residual: bool) -> None:
    outer, w.vars = w.vars, {}
    w.bind("x", MATRIX, "constant", live=True)
    w.line("h = self.l0(x)")
    w.bind("h", MATRIX)
    for attribute in attributes[1:]:
        apply(w, attribute)
        if w.c.chance(25):
            statements(w, 1)
    if residual:
        with w.block("if self.residual:"):
            w.line(w.c.pick(("h += x", "h = h + x", "h.add_(x)", "h += self.l0(h)", "h = h + x * h")))
    text, _ = value(w, MATRIX, w.c.pick((0, 0, 1)))
    w.line(f"return {w.c.pick(('h', 'h', text))}")
    w.vars = outer


def apply(w: Writer, attribute: str) -> None:
    forms = {
        "many": ("for layer in self.many:\n{i}    h = layer(h)",),
        "scale": ("h = h * self.scale", "h *= self.scale", "h = h + self.scale"),
        "average": (
            "self.average.mul_(0.9).add_(h.detach().mean(0), alpha=0.1)",
            "h = h - self.average",
            "h = h * self.average\n{i}self.average.mul_(0.9)",
            "self.average = 0.9 * self.average + 0.1 * h.mean(0).detach()",
        ),
    }.get(attribute)
    plain = (
        "h = self.{a}(h)",
        "h = self.{a}(h)",
        "h = self.{a}(h) + h",
        "h += self.{a}(h)",
        "h = F.relu(self.{a}(h))",
    )
    text = w.c.pick(forms or plain).format(a=attribute, i="    " * w.depth)
    for line in text.split("\n"):
        w.line(line.removeprefix("    " * w.depth))


def module(w: Writer, classes: list[str]) -> str:
    """A constructor call: a class of the file, a Sequential, or one layer."""
    if classes and w.c.chance(60):
        return w.c.pick(classes)
    return sequence(w) if w.c.chance(60) else "nn.Linear(4, 4)"
