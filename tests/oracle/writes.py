"""Statements that write in place: operators, methods, index assignments, functionals, through `.data`."""

from __future__ import annotations

from .scope import Var, Writer
from .tensors import atom, compute
from .words import HIDDEN_WRITES, INDEX_WRITES, SEEN_WRITES, WRITES


def write(w: Writer) -> None:
    """A write to a computed tensor; a wild one may hit a leaf, a split view, or something saved."""
    wild = w.c.chance(w.wild)
    var = target(w, wild)
    if var is None:
        return compute(w)
    if var.role in ("leaf", "many") and not wild:
        return quiet_write(w, var)
    return emit(w, var)


def target(w: Writer, wild: bool) -> Var | None:
    options = w.tensors(roles="node leaf many constant" if wild else "node node constant leaf")
    computed = [v for v in options if v.role == "node"]
    if computed and w.c.chance(70):
        return computed[-1] if w.c.chance(60) else w.c.pick(computed)
    return w.c.pick(options) if options else None


def quiet_write(w: Writer, var: Var) -> None:
    """As initialisation is written: under no_grad."""
    with w.block("with torch.no_grad():"):
        emit(w, var)


def emit(w: Writer, var: Var) -> None:
    form = w.c.below(18)
    if var.shape and form < 6:
        return say(w, w.c.pick(INDEX_WRITES), var)
    if form in (6, 9):
        return say(
            w, w.c.pick(HIDDEN_WRITES[:1] + HIDDEN_WRITES[3:] if not var.shape else HIDDEN_WRITES), var
        )
    if form == 7:
        return say(w, w.c.pick(SEEN_WRITES[2:] if not var.shape else SEEN_WRITES), var)
    if form == 8 and var.role == "node":
        w.line(f"{var.name}.detach_()")
        w.bind(var.name, var.shape, live=False)
        return None
    return say(w, w.c.pick(WRITES), var)


def say(w: Writer, template: str, var: Var) -> None:
    operand, live = atom(w, var.shape) if "{e}" in template else ("", False)
    text = template.format(v=var.name, e=operand)
    if w.c.chance(10) and text[-1] == ")" and "=" not in text.split("(")[0]:
        text = (
            f"{var.name} = {text}"
            if text.startswith((f"{var.name}.", "F.")) and ".data" not in text
            else text
        )
    w.line(text)
    if live and w.grad and var.role != "leaf":
        w.bind(var.name, var.shape, var.role, live=True)


def index_of_saved(w: Writer) -> None:
    """The written tensor need not be in the graph: an index, or a mask, edited after its use."""
    sources = w.tensors((3, 4))
    if not sources:
        return compute(w)
    var, index, out = w.c.pick(sources), w.fresh("i"), w.fresh("x")
    if w.c.chance(50):
        w.line(f"{index} = torch.tensor([0, 1, 2])")
        w.line(f"{out} = {var.name}[{index}]")
        edit = f"{index}[0] = 1" if w.c.chance(50) else f"{index} += 0"
    else:
        w.line(f"{index} = {var.name} > 0")
        w.line(f"{out} = {var.name}.masked_fill({index}, 0.0)")
        edit = f"{index}[0] = True" if w.c.chance(50) else f"{index}.zero_()"
    if w.c.chance(50):
        w.line(edit)
    w.bind(out, (3, 4), live=var.live)
    return None
