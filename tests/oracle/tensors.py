"""Tensor expressions and the statements that bind them."""

from __future__ import annotations

from dataclasses import replace

from .scope import Shape, Var, Writer
from .words import (
    BINARY,
    CONSTANTS,
    CUTS,
    DEAD,
    LEAVES,
    LOSSES,
    MATRIX,
    REDUCE,
    SCALAR,
    SCALAR_CUTS,
    SPLITS,
    UNARY,
    UNARY_ROWS,
    VECTOR,
    VIEWS,
)


def sizes(shape: Shape) -> str:
    return ", ".join(map(str, shape)) or "1"


def make_leaf(w: Writer, shape: Shape | None = None) -> Var:
    if shape is None:
        shape = w.c.weighted([(6, MATRIX), (3, VECTOR), (1, (1,))])
    name = w.fresh("w")
    w.line(f"{name} = {w.c.pick(LEAVES).format(n=sizes(shape))}")
    return w.bind(name, shape, "leaf")


def make_constant(w: Writer, shape: Shape = MATRIX) -> Var:
    name = w.fresh("c")
    w.line(f"{name} = {w.c.pick(CONSTANTS).format(n=sizes(shape))}")
    return w.bind(name, shape, "constant", live=False)


def atom(w: Writer, shape: Shape) -> tuple[str, bool]:
    """A variable of that shape, or one brought to it, or a constant."""
    exact = w.tensors(shape)
    if exact and not w.c.chance(5):
        recent = exact[-3:] if w.c.chance(60) else exact
        var = w.c.pick(recent)
        return var.name, var.live
    return converted(w, shape)


def converted(w: Writer, shape: Shape) -> tuple[str, bool]:
    matrices, vectors = w.tensors(MATRIX), w.tensors(VECTOR)
    if shape == VECTOR and matrices:
        var = w.c.pick(matrices)
        form = w.c.pick(("{x}[0]", "{x}.mean(0)", "{x}.sum(dim=0)", "{x}.max(0)[0]", "{x}.norm(dim=0)"))
        return form.format(x=var.name), var.live
    if shape == MATRIX and vectors:
        var = w.c.pick(vectors)
        form = w.c.pick(("{x}.expand(3, 4)", "({x} + torch.zeros(3, 4))", "torch.stack([{x}, {x}, {x}])"))
        return form.format(x=var.name), var.live
    if shape == SCALAR and (matrices or vectors):
        var = w.c.pick(matrices + vectors)
        return w.c.pick(REDUCE).format(x=var.name), var.live
    factory = w.c.pick(CONSTANTS[:4]) if shape else "torch.tensor(0.5)"
    return factory.format(n=sizes(shape)), False


def value(w: Writer, shape: Shape, depth: int = 2) -> tuple[str, bool]:
    """An expression of that shape, and whether it probably carries a gradient."""
    if depth == 0:
        return atom(w, shape)
    form = w.c.below(10)
    if form < 3 and shape:
        return operands(w, w.c.pick(BINARY), shape, depth)
    if form == 3 and shape == MATRIX:
        return product(w, depth)
    if form == 4 and shape:
        return operands(w, w.c.pick(UNARY_ROWS), shape, depth)
    if form == 5:
        return atom(w, shape)
    return operands(w, w.c.pick(UNARY), shape, depth)


def operands(w: Writer, template: str, shape: Shape, depth: int) -> tuple[str, bool]:
    left, left_live = value(w, shape, depth - 1)
    if "{x}" in template:
        return template.format(x=grouped(left)), left_live
    right, right_live = value(w, shape, depth - 1)
    return template.format(a=grouped(left), b=grouped(right)), left_live or right_live


def product(w: Writer, depth: int) -> tuple[str, bool]:
    left, left_live = value(w, MATRIX, depth - 1)
    right, right_live = value(w, MATRIX, depth - 1)
    form = w.c.pick(
        (
            "{a} @ {b}.t() @ {b}",
            "torch.matmul({a}, {b}.T).matmul({a})",
            "torch.mm({a}, {b}.t()).mm({b})",
            "F.linear({a}, {b}) @ {b}",
            "torch.einsum('ij,kj->ik', {a}, {b}) @ {a}",
            "torch.bmm({a}[None], {b}.t()[None])[0] @ {b}",
        )
    )
    return form.format(a=grouped(left), b=grouped(right)), left_live or right_live


def grouped(text: str) -> str:
    plain = text.isidentifier() or (text[0].isalpha() and text.endswith(")") and " " not in text)
    return text if plain else f"({text})"


def loss_value(w: Writer) -> tuple[str, bool]:
    """A scalar expression, as losses are written."""
    live = [v for v in w.tensors() if v.live and v.shape]
    if live and w.c.chance(85):
        var = w.c.pick(live[-3:])
        if w.c.chance(60):
            return w.c.pick(REDUCE[:8]).format(x=var.name), True
        other, _ = atom(w, var.shape)
        return matching_loss(w, var).format(a=var.name, b=grouped(other)), True
    text, alive = value(w, MATRIX, 1)
    return w.c.pick(REDUCE[:4]).format(x=grouped(text)), alive


def matching_loss(w: Writer, var: Var) -> str:
    return w.c.pick(LOSSES if len(var.shape) == 2 else LOSSES[:8])


def compute(w: Writer) -> None:
    shape = w.c.weighted([(7, MATRIX), (3, VECTOR)])
    text, live = value(w, shape, w.c.pick((1, 1, 2)))
    target = reused(w, shape) or w.fresh("x")
    w.line(f"{target} = {text}")
    w.bind(target, shape, live=live and w.grad)


def reused(w: Writer, shape: Shape) -> str | None:
    nodes = w.tensors(shape, "node")
    return w.c.pick(nodes).name if nodes and w.c.chance(25) else None


def take_view(w: Writer) -> None:
    sources = w.tensors(MATRIX) + w.tensors(VECTOR)
    if not sources:
        return compute(w)
    var = w.c.pick(sources)
    template, shape = w.c.pick(VIEWS[var.shape])
    name = w.fresh("v")
    w.line(f"{name} = {template.format(x=var.name)}")
    w.bind(name, shape, live=var.live)
    return None


def take_apart(w: Writer) -> None:
    sources = w.tensors(MATRIX)
    if not sources:
        return compute(w)
    var, (template, shapes) = w.c.pick(sources), w.c.pick(SPLITS)
    first, second = w.fresh("p"), w.fresh("p")
    w.line(template.format(x=var.name, a=first, b=second))
    for name, shape in zip((first, second), shapes, strict=True):
        w.bind(name, shape, "many", live=var.live)
    return None


def cut(w: Writer) -> None:
    """A value leaves the graph, into a name of its own or over the old one."""
    sources = [v for v in w.tensors(roles="node leaf many") if v.live]
    if not sources:
        return compute(w)
    var = w.c.pick(sources)
    text = w.c.pick(SCALAR_CUTS if not var.shape else CUTS).format(x=var.name)
    target = var.name if var.role == "node" and w.c.chance(25) else w.fresh("d")
    w.line(f"{target} = {text}")
    w.bind(target, var.shape, live="requires_grad" in text)
    return None


def dead_end(w: Writer) -> None:
    sources = w.tensors(MATRIX) or w.tensors(VECTOR)
    if not sources:
        return compute(w)
    var = w.c.pick(sources)
    name = w.fresh("x")
    w.line(f"{name} = {w.c.pick(DEAD).format(x=var.name)}")
    w.bind(name, var.shape, live=False)
    return None


def alias(w: Writer) -> None:
    sources = w.tensors()
    if not sources:
        return compute(w)
    var = w.c.pick(sources)
    name = w.fresh("y")
    w.line(f"{name} = {var.name}")
    w.vars[name] = replace(var, name=name)
    return None
