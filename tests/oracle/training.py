"""Backward, optimizers, steps and zero_grad, in right and in wrong places."""

from __future__ import annotations

from .blocks import statements
from .scope import Writer
from .tensors import loss_value, make_constant, value
from .words import MATRIX

OPTIMIZERS = (
    "torch.optim.SGD({p}, lr=0.1)",
    "torch.optim.SGD({p}, lr=0.1, momentum=0.9)",
    "torch.optim.Adam({p}, lr=0.01)",
    "torch.optim.Adam({p})",
)


def backward(w: Writer) -> None:
    """One loss and its backward; what was computed before is left alone afterwards, but for wild programs."""
    text, live = loss_value(w)
    if not live and not w.c.chance(w.wild):
        text = f"({text}) + {fallback(w)}"
    name = w.fresh("loss")
    w.line(f"{name} = {text}{term(w)}")
    w.bind(name, (), live=live)
    if w.c.chance(w.wild // (12 if live else 2)):
        forms = (f"{name}.requires_grad_(True)", f"{name}.requires_grad = True", f"{name}.requires_grad_()")
        w.line(w.c.pick(forms[::2] if live and not w.c.chance(10) else forms))
    retain = w.c.chance(20)
    w.line(call_backward(w, name, retain))
    if retain and w.c.chance(60):
        statements(w, w.c.below(2))
        w.line(f"{name}.backward()")
        retain = False
    if not retain and not w.c.chance(w.wild // 3):
        spend(w)


TERMS = (".item()", ".detach()", ".data", "", "", ".detach().item()")


def term(w: Writer) -> str:
    """Sometimes a further term, which may have lost its graph."""
    shaped = [v for v in w.tensors() if v.shape]
    if not shaped or not w.c.chance(w.wild // 4):
        return ""
    return f" + {w.c.pick(shaped).name}.pow(2).mean(){w.c.pick(TERMS)}"


def fallback(w: Writer) -> str:
    leaves = w.tensors(roles="leaf")
    return f"{leaves[-1].name}.sum()" if leaves else "torch.ones(1, requires_grad=True).sum()"


def spend(w: Writer) -> None:
    """Forget what hangs on a freed graph."""
    w.vars = {name: var for name, var in w.vars.items() if var.role in ("leaf", "constant")}


def call_backward(w: Writer, name: str, retain: bool) -> str:
    option = "retain_graph=True" if retain else ""
    comma = ", " if option else ""
    vectors = [v for v in w.tensors() if v.shape not in ((), (1,)) and v.live]
    leaves = w.tensors(roles="leaf")
    forms = [(20, f"{name}.backward({option})"), (1, f"torch.autograd.backward({name}{comma}{option})")]
    forms += [(1, f"({name} * 2).backward({option})")]
    if vectors:
        one = vectors[-1].name
        forms += [(1, f"{one}.backward(torch.ones_like({one}){comma}{option})")]
        forms += [(1, f"{one}.backward(gradient=torch.ones_like({one}){comma}{option})")]
        forms += [(1, f"torch.autograd.backward([{name}, {one}.sum()]{comma}{option})")]
        forms += [(1, f"{one}.backward({option})")] if w.c.chance(w.wild) else []
    if leaves:
        forms += [(1, f"{name}.backward(inputs=[{leaves[-1].name}]{comma}{option})")]
    return w.c.weighted(forms)


def read_grad(w: Writer) -> None:
    leaves = w.tensors(roles="leaf node" if w.c.chance(w.wild // 2) else "leaf")
    if leaves:
        w.line(f"{w.fresh('g')} = {w.c.pick(leaves).name}.grad")


def update(w: Writer) -> None:
    """A hand-written update of one leaf, with or without clearing its gradient."""
    leaves = w.tensors(roles="leaf")
    if not leaves:
        return
    name = w.c.pick(leaves).name
    with w.block(f"if {name}.grad is not None:"):
        write_update(w, name)
        clear = w.c.pick((f"{name}.grad.zero_()", f"{name}.grad = None", f"{name}.grad.data.zero_()"))
        if not w.c.chance(w.wild // 2):
            w.line(clear)


def write_update(w: Writer, name: str) -> None:
    forms = (
        "{n} -= 0.1 * {n}.grad",
        "{n}.sub_(0.1 * {n}.grad)",
        "{n}.add_({n}.grad, alpha=-0.1)",
        "{n}.copy_({n} - {n}.grad)",
    )
    hidden = (
        "{n}.data -= 0.1 * {n}.grad",
        "{n}.data.sub_(0.1 * {n}.grad.data)",
        "{n}.data = {n}.data - 0.1 * {n}.grad",
    )
    if w.c.chance(30):
        return w.line(w.c.pick(hidden).format(n=name))
    if w.c.chance(w.wild // 3):
        return w.line(w.c.pick((*forms, "{n} = {n} - 0.1 * {n}.grad")).format(n=name))
    with w.block("with torch.no_grad():"):
        w.line(w.c.pick(forms).format(n=name))
    return None


def parameters(w: Writer, net: str) -> str:
    if w.c.chance(10):
        return f"[p for p in {net}.parameters() if p.requires_grad]"
    return f"{net}.parameters()" if w.c.chance(85) else f"list({net}.parameters())"


def training_loop(w: Writer, net: str, optimizer: str) -> None:
    """The usual loop, whose steps may be in the wrong order."""
    turn = w.fresh("turn")
    carried = w.c.chance(10)
    if carried:
        w.line("state = torch.zeros(3, 4)")
    with w.block(f"for {turn} in range({w.c.pick((2, 3))}):"):
        w.loops.append(turn)
        batch = make_constant(w)
        order = w.c.weighted(orders(w))
        for part in order.split():
            loop_part(w, part, (net, optimizer, batch.name, "state" if carried else ""))
        w.loops.pop()


GOOD = (
    "zero forward backward step",
    "forward zero backward step",
    "forward backward step zero",
    "zero forward retain backward3 step",
    "zero forward backward forward backward step",
    "forward backward accumulate",
)
WRONG = (
    "forward backward step",
    "forward backward zero step",
    "zero forward step backward",
    "forward backward backward2 step",
    "zero forward backward step backward3",
    "zero forward retain step backward3",
    "zero backward4 step",
    "forward retain zero step backward3 zero",
    "forward backward sometimes zero",
)
PARTS = {
    "step": "{o}.step()",
    "backward": "loss.backward()",
    "retain": "loss.backward(retain_graph=True)",
    "backward2": "(loss * 2).backward()",
    "backward3": "loss.backward()",
    "backward4": "{n}({b}).pow(2).mean().backward()",
    "sometimes": "if {t} > 0:|    {o}.step()",
    "accumulate": "if ({t} + 1) % 2 == 0:|    {o}.step()|    {o}.zero_grad()",
}
ZEROS = ("{o}.zero_grad()", "{o}.zero_grad()", "{n}.zero_grad()", "{o}.zero_grad(set_to_none=False)")


def orders(w: Writer) -> list[tuple[int, str]]:
    good = [(100 - w.wild, order) for order in GOOD]
    return good + [(w.wild // 2, order) for order in WRONG]


def loop_part(w: Writer, part: str, names: tuple[str, str, str, str]) -> None:
    net, optimizer, batch, state = names
    if part == "forward":
        return forward(w, net, batch, state)
    template = w.c.pick(ZEROS) if part == "zero" else PARTS[part]
    for line in template.format(o=optimizer, n=net, b=batch, t=w.loops[-1]).split("|"):
        w.line(line)
    return None


def forward(w: Writer, net: str, batch: str, state: str) -> None:
    w.line(f"out = {net}({batch}{' + state' if state else ''})")
    outer = dict(w.vars)
    w.bind("out", MATRIX)
    if w.c.chance(50):
        statements(w, 1 + w.c.below(2))
    if state:
        w.line(f"state = out{'.detach()' if not w.c.chance(w.wild) else ''}")
    target, _ = value(w, MATRIX, 0)
    w.line(
        w.c.pick(
            (
                f"loss = F.mse_loss(out, {target})",
                "loss = out.pow(2).mean()",
                "loss = (out * out).sum()",
                loss(w),
            )
        )
    )
    w.vars = outer


def loss(w: Writer) -> str:
    text, live = loss_value(w)
    return f"loss = {text}" if live else "loss = out.sum()"
