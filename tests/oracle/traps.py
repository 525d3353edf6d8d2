"""Idioms that are short and easy to get wrong: right in one variant, wrong in the next."""

from __future__ import annotations

from collections.abc import Callable

from .scope import Var, Writer
from .tensors import atom, compute, grouped
from .words import MATRIX, SPLITS, VIEWS, WRITES

SAVERS = (
    "{x}.exp()", "F.relu({x})", "{x}.sigmoid()", "{x} * 2", "{x} + 1", "{x}.pow(2)", "F.softmax({x}, -1)",
    "F.layer_norm({x}, (4,))", "F.dropout({x}, 0.5)", "F.leaky_relu({x})", "F.gelu({x})",
    "{x} @ {x}.t() @ {x}",
)  # fmt: skip
NORMS = ("{x}.pow(2).sum().sqrt()", "{x}.norm()", "{x}.std()", "{x}.abs().max()")
ALIASES = (
    "{x}", "{x}.view(-1)", "{x}.t()", "{x}[1]", "{x}.contiguous()", "{x}.t().contiguous()",
    "{x}.reshape(4, 3)", "F.dropout({x}, 0.0)", "F.dropout({x}, 0.5, training=False)",
    "{x}.to(torch.float32)", "{x}.float()", "{x}.double()", "{x}.clone()", "{x}.detach()", "{x}.data",
    "Variable({x})", "{x}.t().flatten()", "{x}.requires_grad_()", "nn.Identity()({x})",
    "torch.as_tensor({x})",
)  # fmt: skip
"""Ways to name a tensor again: some share its storage, some copy."""


def source(w: Writer) -> Var | None:
    matrices = w.tensors(MATRIX)
    return w.c.pick(matrices) if matrices else None


def trap(w: Writer) -> None:
    var = source(w)
    if var is None:
        return compute(w)
    return w.c.pick(TRAPS)(w, var)


def write_to(w: Writer, name: str) -> None:
    w.line(w.c.pick([t for t in WRITES[:20] if "{e}" not in t]).format(v=name))


def split_write(w: Writer, var: Var) -> None:
    template, shapes = w.c.pick(SPLITS)
    first, second = w.fresh("p"), w.fresh("p")
    w.line(template.format(x=derived(w, var), a=first, b=second))
    if w.c.chance(20):
        w.line(f"{first} = {first} * 1")
    write_to(w, first)
    w.bind(first, shapes[0], "many", live=var.live)
    w.bind(second, shapes[1], "many", live=var.live)


def derived(w: Writer, var: Var) -> str:
    return var.name if var.role == "node" and w.c.chance(60) else f"({var.name} * 2)"


def view_without_grad(w: Writer, var: Var) -> None:
    template, shape = w.c.pick(VIEWS[MATRIX])
    node, name = w.fresh("x"), w.fresh("v")
    w.line(f"{node} = {derived(w, var)}")
    with w.block(
        w.c.pick(("with torch.no_grad():", "with torch.no_grad():", "with torch.inference_mode():"))
    ):
        w.line(f"{name} = {template.format(x=node)}")
        if w.c.chance(30):
            write_to(w, name)
    if w.c.chance(70):
        write_to(w, name)
    w.bind(node, MATRIX, live=var.live)
    w.bind(name, shape, live=False)


def inference_used(w: Writer, var: Var) -> None:
    name, out = w.fresh("z"), w.fresh("x")
    with w.block("with torch.inference_mode():"):
        w.line(f"{name} = {var.name} * 2")
    form = w.c.pick(
        (
            "{z} * {x}",
            "{z} + {x}",
            "{z}.clone() * {x}",
            "torch.matmul({x}, {z}.t()) @ {z}",
            "F.linear({z}, {x}) @ {x}",
        )
    )
    w.line(f"{out} = {form.format(z=name, x=var.name)}")
    w.bind(out, MATRIX, live=var.live)


def row_by_row(w: Writer, var: Var) -> None:
    node, row = w.fresh("x"), w.fresh("r")
    w.line(f"{node} = {derived(w, var)}")
    with w.block(f"for {row} in {w.c.pick((node, node, 'range(3)'))}:"):
        if "range" in w.lines[-1]:
            write_to(w, f"{node}[{row}]")
        else:
            write_to(w, row)
    w.bind(node, MATRIX, live=var.live)


def saved_then_written(w: Writer, var: Var) -> None:
    """The classic: an op, then a write to its result or to its operand."""
    form = w.c.pick(SAVERS)
    first, second = w.fresh("x"), w.fresh("x")
    w.line(f"{first} = {derived(w, var)}")
    w.line(f"{second} = {form.format(x=grouped(first))}")
    write_to(w, w.c.pick((first, second, second)))
    w.bind(first, MATRIX, live=var.live)
    w.bind(second, MATRIX, live=var.live)


def norm_by_hand(w: Writer, var: Var) -> None:
    node, norm = w.fresh("x"), w.fresh("n")
    w.line(f"{node} = {derived(w, var)}")
    w.line(f"{norm} = {w.c.pick(NORMS).format(x=node)}")
    w.line(w.c.pick(("{x} /= {n}", "{x} = {x} / {n}", "{x}.div_({n})", "{x} -= {n}")).format(x=node, n=norm))
    w.bind(node, MATRIX, live=var.live)


def filled_row_by_row(w: Writer, var: Var) -> None:
    """A result assembled in a preallocated tensor."""
    out, index = w.fresh("o"), w.fresh("k")
    w.line(f"{out} = torch.zeros(3, 4)")
    body = w.c.pick(
        (
            "{x}[{i}] * 2",
            "{x}[{i}].exp()",
            "{o}[{i} - 1] * {x}[{i}]",
            "{o}[{i} - 1].exp() + {x}[{i}]",
            "{o}.sum(0) + {x}[{i}]",
        )
    )
    with w.block(f"for {index} in range(3):"):
        w.line(f"{out}[{index}] = {body.format(x=var.name, i=index, o=out)}")
    w.bind(out, MATRIX, live=var.live)


def written_through_alias(w: Writer, var: Var) -> None:
    node, other, saved = w.fresh("x"), w.fresh("y"), w.fresh("x")
    w.line(f"{node} = {derived(w, var)}")
    w.line(f"{other} = {w.c.pick(ALIASES).format(x=node)}")
    w.line(f"{saved} = {node}{w.c.pick(('.exp()', '.pow(2)', ' * 2', '.sigmoid()', ' * ' + node))}")
    write_to(w, other)
    w.bind(node, MATRIX, live=var.live)
    w.bind(saved, MATRIX, live=var.live)


def only_sometimes(w: Writer, var: Var) -> None:
    """A save and a write under flags that agree, or don't."""
    if not w.flags:
        return saved_then_written(w, var)
    node, saved, flag = w.fresh("x"), w.fresh("x"), w.c.pick(w.flags)
    w.line(f"{node} = {derived(w, var)}")
    w.line(f"{saved} = {node}{w.c.pick((' * 2', '.exp()'))}")
    with w.block(f"if {flag}:"):
        w.line(f"{saved} = {node}{w.c.pick(('.sigmoid()', '.relu()', ' + 1'))}")
    with w.block(f"if {w.c.pick(('', 'not '))}{w.c.pick(w.flags)}:"):
        write_to(w, w.c.pick((saved, node)))
    other, _ = atom(w, MATRIX)
    w.line(f"{saved} = {saved} + {other}")
    w.bind(saved, MATRIX, live=var.live)
    return None


TRAPS: tuple[Callable[[Writer, Var], None], ...] = (
    split_write,
    view_without_grad,
    inference_used,
    row_by_row,
    saved_then_written,
    saved_then_written,
    norm_by_hand,
    filled_row_by_row,
    written_through_alias,
    written_through_alias,
    only_sometimes,
)
