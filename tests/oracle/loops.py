"""Training loops off the beaten track: updates of all parameters by hand, closures, groups, clipping."""

from __future__ import annotations

from collections.abc import Callable

from .nets import module, module_class
from .scope import Writer

CLEARS = (
    "net.zero_grad()",
    "for p in net.parameters():\n    p.grad = None",
    "for p in net.parameters():\n    if p.grad is not None:\n        p.grad.zero_()",
    "for p in net.parameters():\n    if p.grad is not None:\n        p.grad.detach_().zero_()",
    "for name, p in net.named_parameters():\n    p.grad = None",
    "[p.grad.zero_() for p in net.parameters() if p.grad is not None]",
)
UNTRACKED = "with torch.no_grad():\n    for p in net.parameters():\n        if p.grad is not None:\n"
UPDATES = (
    UNTRACKED + "            p -= 0.1 * p.grad",
    "for p in net.parameters():\n    if p.grad is not None:\n        p.data.sub_(p.grad * 0.1)",
    "for p in net.parameters():\n    if p.grad is not None:\n        p.data -= 0.1 * p.grad.data",
    UNTRACKED + "            p.add_(p.grad, alpha=-0.1)",
)
GROUPS = (
    "opt = torch.optim.SGD([{'params': net.parameters()}, {'params': [extra], 'lr': 0.01}], lr=0.1)",
    "opt = torch.optim.SGD(list(net.parameters()) + [extra], lr=0.1)",
    "opt = torch.optim.Adam([*net.parameters(), extra])",
)
TAILS = (
    "torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)",
    "g = sum(p.grad.norm() for p in net.parameters() if p.grad is not None)",
    "print(loss.item(), file=sys.stderr) if False else None",
    "history.append(loss.item())",
    "history.append(loss)",
    "total += loss.item()",
    "total += loss.detach()",
)


FREEZES = (
    "net[0].requires_grad_(False)",
    "for p in net[0].parameters():\n    p.requires_grad = False",
    "net[0].weight.requires_grad = False",
)
CHOICES = ("filter(lambda p: p.requires_grad, net.parameters())", "[net[0].bias, *net.parameters()][1:]")
PAIRS = "for a, b in zip(slow.parameters(), net.parameters()):\n"
FOLLOWERS = (
    "with torch.no_grad():\n    " + PAIRS + "        a.mul_(0.9).add_(b, alpha=0.1)",
    PAIRS + "    a.data.mul_(0.9).add_(b.data, alpha=0.1)",
    "slow.load_state_dict(net.state_dict())",
)
FORWARDS = (
    "loss = net(torch.randn(3, 4)).pow(2).mean()",
    "loss = net(torch.ones(3, 4)).sum()",
    "loss = F.mse_loss(net(torch.rand(3, 4)), torch.zeros(3, 4))",
    "loss = net(torch.randn(3, 4)).abs().mean()",
)
VALIDATION = (
    "net.eval()",
    "with torch.no_grad():\n    score = net(torch.randn(3, 4)).pow(2).mean().item()",
    "net.train()",
)


def say(w: Writer, text: str) -> None:
    for line in text.split("\n"):
        w.line(line)


def net(w: Writer) -> None:
    classes = [module_class(w)] if w.c.chance(40) else []
    w.line(f"net = nn.Sequential(nn.Linear(4, 4), {module(w, classes)})")


def off_track(w: Writer) -> None:
    net(w)
    w.c.pick(TRACKS)(w)


def all_by_hand(w: Writer) -> None:
    clear = w.c.pick(CLEARS)
    parts = [w.c.pick(FORWARDS), "loss.backward()", w.c.pick(UPDATES)]
    turns(w, [*parts, clear] if w.c.chance(50) else [clear, *parts])


def turns(w: Writer, parts: list[str]) -> None:
    """A loop over the parts, one of which may be missing or out of place."""
    if w.c.chance(w.wild // 2):
        index = w.c.below(len(parts))
        part = parts.pop(index)
        if w.c.chance(50) or "loss =" in part:
            parts.insert(w.c.below(len(parts) + 1) if "loss" not in part else index, part)
    with w.block(f"for turn in range({w.c.pick((2, 3))}):"):
        for part in parts:
            say(w, part)


def usual(w: Writer) -> list[str]:
    return ["opt.zero_grad()", w.c.pick(FORWARDS), "loss.backward()", "opt.step()"]


def in_groups(w: Writer) -> None:
    w.line("extra = torch.ones(4, requires_grad=True)")
    w.line(w.c.pick(GROUPS))
    w.line("history, total = [], 0")
    parts = usual(w)
    if not w.c.chance(w.wild // 2):
        parts[1] = "loss = (net(torch.randn(3, 4)) * extra).pow(2).mean()"
    parts.insert(w.c.pick((3, 4)), w.c.pick(TAILS))
    turns(w, parts)


def frozen(w: Writer) -> None:
    say(w, w.c.pick(FREEZES))
    w.line(f"opt = torch.optim.SGD({w.c.pick(CHOICES)}, lr=0.1)")
    turns(w, usual(w))


def with_closure(w: Writer) -> None:
    w.line("opt = torch.optim.LBFGS(net.parameters(), max_iter=2)")
    with w.block("def closure():"):
        if not w.c.chance(w.wild // 2):
            w.line("opt.zero_grad()")
        w.line("loss = net(torch.ones(3, 4)).pow(2).mean()")
        w.line("loss.backward()")
        w.line("return loss")
    with w.block("for turn in range(2):"):
        w.line("opt.step(closure)")


def in_functions(w: Writer) -> None:
    """Zero, backward and step live in helpers."""
    w.line("opt = torch.optim.SGD(net.parameters(), lr=0.1)")
    clears = not w.c.chance(w.wild // 2)
    with w.block("def optimise(loss, optimizer):"):
        for line in ("optimizer.zero_grad()", "loss.backward()", "optimizer.step()")[0 if clears else 1 :]:
            w.line(line)
    with w.block("for turn in range(2):"):
        w.line("optimise(net(torch.randn(3, 4)).pow(2).sum(), opt)")


def scheduled(w: Writer) -> None:
    w.line("opt = torch.optim.SGD(net.parameters(), lr=0.1)")
    w.line("schedule = torch.optim.lr_scheduler.StepLR(opt, 1)")
    turns(w, [*usual(w), "schedule.step()"])


def with_validation(w: Writer) -> None:
    w.line("opt = torch.optim.SGD(net.parameters(), lr=0.1)")
    turns(w, [*usual(w), *VALIDATION])


def averaged(w: Writer) -> None:
    """A copy of the network follows it."""
    w.line("import copy")
    w.line("slow = copy.deepcopy(net)")
    w.line("opt = torch.optim.Adam(net.parameters())")
    parts = usual(w)
    parts[1:2] = ["goal = slow(torch.ones(3, 4)).detach()", "loss = F.mse_loss(net(torch.ones(3, 4)), goal)"]
    turns(w, [*parts, w.c.pick(FOLLOWERS)])


TRACKS: tuple[Callable[[Writer], None], ...] = (
    all_by_hand,
    all_by_hand,
    in_groups,
    frozen,
    with_closure,
    in_functions,
    scheduled,
    with_validation,
    averaged,
)
