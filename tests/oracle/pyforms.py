"""Ordinary Python around tensors: containers, closures, ternaries, generators, early exits."""

from __future__ import annotations

from collections.abc import Callable

from .scope import Var, Writer
from .tensors import atom, compute
from .traps import source, write_to
from .words import MATRIX

OPERATIONS = (
    "{x} * 2", "{x}.exp()", "{x}.sigmoid()", "{x} + 1", "{x}.pow(2)", "F.relu({x})", "{x} * {y}",
    "{x} @ {y}.t() @ {y}",
)  # fmt: skip
JOINS = (
    "sum({i})", "torch.stack({i}).mean(0)", "{i}[0] * {i}[1]", "{i}[-1].exp()", "{i}.pop() * 2",
    "torch.cat({i}[:2])[:3]",
)  # fmt: skip
LOOKUPS = (
    '{t}["a"] * {t}["b"]', "sum({t}.values())", '{t}["c"] * 2', 'sum(v.mean() for k, v in {t}.items()) * {x}',
)  # fmt: skip
SUMS = ("torch.stack({i}).sum(0)", "{i}[0] + {i}[1]", "sum(t.mean() for t in {i}) * {i}[0]")
PAIRINGS = ("for i, t in enumerate([{x}, {o}]):", "for i, t in zip(range(2), ({o}, {x})):")
UPDATES = ("{o} = {o} + t * i", "{o} = {o} * t", "{o} += t.exp()", "{o}[i] = t[i] * 2")


def python_form(w: Writer) -> None:
    var = source(w)
    if var is None:
        return compute(w)
    return w.c.pick(FORMS)(w, var)


def operation(w: Writer, name: str) -> str:
    other, _ = atom(w, MATRIX)
    return w.c.pick(OPERATIONS).format(x=name, y=f"({other})")


def result(w: Writer, text: str, var: Var) -> None:
    name = w.fresh("x")
    w.line(f"{name} = {text}")
    w.bind(name, MATRIX, live=var.live)


def maybe_write(w: Writer, name: str) -> None:
    if w.c.chance(w.wild):
        write_to(w, name)


def in_a_list(w: Writer, var: Var) -> None:
    items = w.fresh("items")
    w.line(f"{items} = [{operation(w, var.name)}, {var.name} * 1]")
    if w.c.chance(40):
        w.line(f"{items}.append({operation(w, f'{items}[-1]')})")
    maybe_write(w, f"{items}[{w.c.pick((0, 1, -1))}]")
    result(w, w.c.pick(JOINS).format(i=items), var)


def in_a_dict(w: Writer, var: Var) -> None:
    table = w.fresh("table")
    w.line(f'{table} = {{"a": {operation(w, var.name)}, "b": {var.name} * 1}}')
    w.line(f'{table}["c"] = {operation(w, table + chr(91) + chr(34) + "a" + chr(34) + chr(93))}')
    maybe_write(w, f'{table}["{w.c.pick("abc")}"]')
    result(w, w.c.pick(LOOKUPS).format(t=table, x=var.name), var)


def in_an_attribute(w: Writer, var: Var) -> None:
    holder, cls = w.fresh("holder"), w.fresh("Holder")
    with w.block(f"class {cls}:"), w.block("def __init__(self, value):"):
        w.line("self.value = value")
    w.line(f"{holder} = {cls}({operation(w, var.name)})")
    w.line(f"{holder}.next = {operation(w, holder + '.value')}")
    maybe_write(w, f"{holder}.{w.c.pick(('value', 'next'))}")
    result(w, f"{holder}.next + {holder}.value", var)


def ternary(w: Writer, var: Var) -> None:
    condition = w.c.pick(w.flags) if w.flags and w.c.chance(70) else w.c.pick(("True", "False", "1 > 2"))
    name = w.fresh("x")
    w.line(f"{name} = {operation(w, var.name)} if {condition} else {operation(w, var.name)}")
    maybe_write(w, name)
    w.bind(name, MATRIX, live=var.live)


def comprehension(w: Writer, var: Var) -> None:
    items = w.fresh("items")
    w.line(f"{items} = [{operation(w, 't')} for t in ({var.name}, {atom(w, MATRIX)[0]})]")
    maybe_write(w, f"{items}[0]")
    result(w, w.c.pick(SUMS).format(i=items), var)


def closure(w: Writer, var: Var) -> None:
    name, kept = w.fresh("inner"), w.fresh("x")
    w.line(f"{kept} = {operation(w, var.name)}")
    with w.block(f"def {name}(scale=2.0):"):
        if w.c.chance(w.wild // 2):
            write_to(w, f"{kept}[0]")
        w.line(f"return {operation(w, kept)} * scale")
    result(w, f"{name}({w.c.pick(('', '3.0', 'scale=0.5'))})", var)
    w.bind(kept, MATRIX, live=var.live)


def anonymous(w: Writer, var: Var) -> None:
    name = w.fresh("f")
    w.line(f"{name} = lambda t, k=2: {operation(w, 't')} * k")
    result(w, f"{name}({var.name})", var)


def generator(w: Writer, var: Var) -> None:
    name, total = w.fresh("turns"), w.fresh("x")
    with w.block(f"def {name}(t, n):"), w.block("for i in range(n):"):
        w.line(f"t = {operation(w, 't')}")
        w.line("yield t")
    w.line(f"{total} = {var.name} * 1")
    with w.block(f"for part in {name}({var.name}, 2):"):
        w.line(w.c.pick((f"{total} = {total} + part", f"{total} += part", f"{total} = part")))
    w.bind(total, MATRIX, live=var.live)


def early_exit(w: Writer, var: Var) -> None:
    name, index = w.fresh("x"), w.fresh("k")
    w.line(f"{name} = {operation(w, var.name)}")
    with w.block(f"for {index} in range(3):"):
        with w.block(f"if {w.c.pick([f'{index} == 1', f'{index} > 0', *w.flags])}:"):
            w.line(w.c.pick(("break", "continue")))
        w.line(f"{name} = {operation(w, name)}")
        maybe_write(w, name)
    w.bind(name, MATRIX, live=var.live)


def early_return(w: Writer, var: Var) -> None:
    name = w.fresh("f")
    with w.block(f"def {name}(t, deep=False):"):
        w.line(f"u = {operation(w, 't')}")
        with w.block("if not deep:"):
            w.line("return u")
        maybe_write(w, "u")
        w.line(f"return {operation(w, 'u')}")
    result(w, f"{name}({var.name}, {w.c.pick(['True', 'False', 'deep=True', *w.flags])})", var)


def star_arguments(w: Writer, var: Var) -> None:
    name = w.fresh("f")
    with w.block(f"def {name}(*parts, scale=1.0, **more):"):
        w.line("out = parts[0] * scale")
        with w.block("for part in parts[1:]:"):
            w.line(w.c.pick(("out = out + part", "out += part", "out = out * part", "out *= part")))
        w.line("return out")
    result(w, f"{name}({var.name}, {atom(w, MATRIX)[0]}, scale=2.0)", var)


def swap(w: Writer, var: Var) -> None:
    first, second = w.fresh("x"), w.fresh("x")
    w.line(f"{first}, {second} = {operation(w, var.name)}, {operation(w, var.name)}")
    w.line(f"{first}, {second} = {second}, {first}")
    maybe_write(w, w.c.pick((first, second)))
    w.bind(first, MATRIX, live=var.live)
    w.bind(second, MATRIX, live=var.live)


def walrus(w: Writer, var: Var) -> None:
    name = w.fresh("x")
    with w.block(f"if ({name} := {operation(w, var.name)}) is not None:"):
        maybe_write(w, name)
        w.line(f"{name} = {operation(w, name)}")
    w.bind(name, MATRIX, live=var.live)


def tried(w: Writer, var: Var) -> None:
    name = w.fresh("x")
    w.line(f"{name} = {operation(w, var.name)}")
    with w.block("try:"):
        maybe_write(w, name)
        w.line(f"{name} = {operation(w, name)}")
    with w.block(w.c.pick(("finally:", "except ValueError:"))):
        w.line(f"print({name}.shape, file=sys.stderr) if False else None")
    w.bind(name, MATRIX, live=var.live)


def enumerated(w: Writer, var: Var) -> None:
    out = w.fresh("out")
    w.line(f"{out} = {var.name} * 1")
    with w.block(w.c.pick(PAIRINGS).format(x=var.name, o=out)):
        w.line(w.c.pick(UPDATES).format(o=out))
    w.bind(out, MATRIX, live=var.live)


FORMS: tuple[Callable[[Writer, Var], None], ...] = (
    in_a_list,
    in_a_dict,
    in_an_attribute,
    ternary,
    comprehension,
    closure,
    anonymous,
    generator,
    early_exit,
    early_return,
    star_arguments,
    swap,
    walrus,
    tried,
    enumerated,
)
