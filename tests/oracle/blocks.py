"""Statements that hold other statements: branches, loops, grad modes, functions; and the mix of them all."""

from __future__ import annotations

from collections.abc import Callable

from .pyforms import python_form
from .scope import Var, Writer
from .tensors import alias, compute, cut, dead_end, make_constant, make_leaf, take_apart, take_view, value
from .traps import trap
from .words import MATRIX, NO_GRAD, NUMBERS
from .writes import index_of_saved, write

Statement = Callable[[Writer], None]


def statements(w: Writer, count: int) -> None:
    for _ in range(count):
        statement(w)


def statement(w: Writer) -> None:
    w.c.weighted(deep_mix(w) if w.depth < 3 else SIMPLE)(w)


def deep_mix(w: Writer) -> list[tuple[int, Statement]]:
    mix = SIMPLE + BLOCKS
    traps = [(w.wild // 4, trap)] if w.wild > 5 else []
    calls = [(6, call)] if w.functions else []
    return mix + traps + calls


def branch(w: Writer) -> None:
    with w.block(f"if {condition(w)}:"):
        statements(w, 1 + w.c.below(2))
    if w.c.chance(40):
        with w.block("else:"):
            statements(w, 1 + w.c.below(2))


def condition(w: Writer) -> str:
    options = [(2, "True"), (1, "False"), (1, "torch.is_grad_enabled()"), (1, "1 + 1 == 2")]
    options += [(6, flag) for flag in w.flags] + [(2, f"not {flag}") for flag in w.flags]
    options += [(4, f"{loop} == 0") for loop in w.loops] + [(3, f"{loop} % 2") for loop in w.loops]
    options += [(2, f"{loop} > 0") for loop in w.loops]
    tensors = w.tensors()
    if tensors:
        options += [(1, f"{tensors[-1].name}.requires_grad"), (1, f"{tensors[-1].name}.dim() == 2")]
    return w.c.weighted(options)


def loop(w: Writer) -> None:
    name = w.fresh("k")
    with w.block(f"for {name} in range({w.c.pick((1, 2, 2, 3))}):"):
        w.loops.append(name)
        statements(w, 1 + w.c.below(3))
        w.loops.pop()


def while_loop(w: Writer) -> None:
    name = w.fresh("k")
    w.line(f"{name} = 0")
    with w.block(f"while {name} < {w.c.pick((1, 2))}:"):
        w.line(f"{name} += 1")
        w.loops.append(name)
        statements(w, 1 + w.c.below(2))
        w.loops.pop()


def each_row(w: Writer) -> None:
    matrices = w.tensors(MATRIX)
    if not matrices:
        return compute(w)
    source, row = w.c.pick(matrices), w.fresh("r")
    with w.block(f"for {row} in {source.name}:"):
        w.bind(row, (4,), "many", live=source.live)
        statements(w, 1 + w.c.below(2))
    return None


def grad_mode(w: Writer) -> None:
    header, on = w.c.pick(NO_GRAD)
    if w.flags and w.c.chance(15):
        header, on = f"with torch.set_grad_enabled({w.c.pick(w.flags)}):", w.grad
    before, w.grad = w.grad, on
    with w.block(header):
        statements(w, 1 + w.c.below(2))
    w.grad = before


def grad_statement(w: Writer) -> None:
    """Grad mode as a statement, with what follows, and back."""
    before = w.grad
    w.line("torch.set_grad_enabled(False)")
    w.grad = False
    statement(w)
    if not w.c.chance(w.wild // 6):
        w.line("torch.set_grad_enabled(True)")
        w.grad = before


def number(w: Writer) -> None:
    scalars = w.tensors(())
    tensors = w.tensors()
    if not tensors:
        return compute(w)
    source = scalars[-1].name if scalars else f"{w.c.pick(tensors).name}.sum()"
    name, out = w.fresh("n"), w.fresh("x")
    w.line(f"{name} = {w.c.pick(NUMBERS).format(x=source)}")
    text, live = value(w, MATRIX, 1)
    w.line(f"{out} = ({text}) * {name}")
    w.bind(out, MATRIX, live=live)
    return None


def call(w: Writer) -> None:
    name = w.c.pick(w.functions)
    first, live = value(w, MATRIX, 0)
    second, other = value(w, MATRIX, 0)
    if name.startswith("touch"):
        w.line(f"{name}({first})")
        return
    out = w.fresh("x")
    w.line(f"{out} = {name}({first}, {second})")
    w.bind(out, MATRIX, live=live or other)


def function(w: Writer) -> None:
    """A function over two matrices; `touch` ones write their argument and return nothing."""
    touch = w.c.chance(20)
    name = w.fresh("touch" if touch else "f")
    if w.c.chance(6):
        w.line(w.c.pick(("@torch.no_grad()", "@torch.enable_grad()", "@torch.inference_mode()")))
    outer, w.vars = w.vars, {}
    with w.block(f"def {name}({'a' if touch else 'a, b'}):"):
        w.bind("a", MATRIX)
        if not touch:
            w.bind("b", MATRIX)
        statements(w, 1 + w.c.below(3))
        if touch:
            write(w)
        else:
            text, _ = value(w, MATRIX, 1)
            w.line(f"return {text}")
    w.vars = outer
    w.functions.append(name)


def freeze(w: Writer) -> None:
    leaves = w.tensors(roles="leaf")
    if not leaves:
        return compute(w)
    var = w.c.pick(leaves)
    w.line(w.c.pick(("{x}.requires_grad_(False)", "{x}.requires_grad = False")).format(x=var.name))
    w.bind(var.name, var.shape, "constant", live=False)
    return None


def thaw(w: Writer) -> None:
    constants = w.tensors(roles="constant")
    if not constants:
        return compute(w)
    var = w.c.pick(constants)
    w.line(w.c.pick(("{x}.requires_grad_()", "{x}.requires_grad = True")).format(x=var.name))
    w.bind(var.name, var.shape, "leaf")
    return None


def unknown_call(w: Writer) -> None:
    """A call that the file can't explain; run with several bodies."""
    sources = w.tensors(MATRIX)
    if not w.opaque or not sources:
        return compute(w)
    var: Var = w.c.pick(sources)
    out = w.fresh("x")
    w.line(f"{out} = {w.c.pick(w.opaque)}({var.name})")
    w.bind(out, MATRIX, live=var.live)
    return None


def leaf(w: Writer) -> None:
    make_leaf(w)


def constant(w: Writer) -> None:
    make_constant(w)


SIMPLE: list[tuple[int, Statement]] = [
    (40, compute),
    (8, take_view),
    (4, take_apart),
    (16, write),
    (2, cut),
    (1, dead_end),
    (3, alias),
    (1, leaf),
    (2, constant),
    (2, number),
    (1, index_of_saved),
    (1, freeze),
    (1, thaw),
    (3, unknown_call),
    (5, python_form),
]
BLOCKS: list[tuple[int, Statement]] = [
    (7, branch),
    (4, loop),
    (1, while_loop),
    (1, each_row),
    (4, grad_mode),
    (1, grad_statement),
]
