"""Gradients that are gathered and applied by hand, and losses that keep books of their own."""

from __future__ import annotations

from . import objectives, updates
from .nets import net
from .plot import Plot, Stage, sizes
from .world import Lines, World, under


def by_name(world: World) -> Plot:
    """Gradients of several parts, gathered by name, put together, and given back or applied."""
    dice = world.dice
    width, out = sizes(world)
    optimizer = dice.chance(0.6)
    setup = [f"$model = {net(world, width, out, 3)}"]
    setup += [f"$opt = {updates.optimizer(world, '$model.parameters()')}"] if optimizer else []
    flow = [
        dice.one("$model.zero_grad()", "$model.zero_grad(set_to_none=True)"),
        "pred = $model(part)",
        *objectives.loss(world, "pred", "target"),
        "loss.backward()",
    ]
    start, keep, value = _gathered(world)
    lines = [
        start,
        *under("for part, target in ((x, y), (x * 0.9, y)):", [*flow, *_each(world, keep)]),
        *_applied(world, value, optimizer),
    ]
    return Plot(setup, [Stage("step", lines, ("x", "y"), ("loss", "pred"))], width, out)


def _gathered(world: World) -> tuple[str, Lines, str]:
    """How the books start, what goes into them for each parameter, and what comes out of them."""
    return world.dice.one(
        ("gathered = {}", ["gathered[name] = gathered.get(name, 0) + p.grad.clone()"], "gathered[name]"),
        (
            "gathered = {}",
            ["gathered.setdefault(name, []).append(p.grad.detach().clone())"],
            "torch.stack(gathered[name]).mean(0)",
        ),
        (
            "gathered = {name: torch.zeros_like(p) for name, p in $model.named_parameters()}",
            ["gathered[name] += p.grad"],
            "gathered[name]",
        ),
        (
            "gathered = {}",
            [
                *under("if name not in gathered:", ["gathered[name] = torch.zeros_like(p.grad)"]),
                "gathered[name].add_(p.grad, alpha=0.5)",
            ],
            "gathered[name]",
        ),
    )


def _each(world: World, keep: Lines) -> Lines:
    guard = world.dice.one("if p.grad is not None:", "if p.requires_grad and p.grad is not None:")
    if world.dice.chance(0.3):
        inner = [*under("if p.grad is None:", ["continue"]), *keep]
    else:
        inner = under(guard, keep)
    return under("for name, p in $model.named_parameters():", inner)


def _applied(world: World, value: str, optimizer: bool) -> Lines:
    dice, turns = world.dice, "for name, p in $model.named_parameters():"
    known = "if name in gathered:"
    if optimizer:
        put = dice.one([f"p.grad = {value}"], [f"p.grad = {value} / 2"], [f"p.grad.copy_({value})"])
        return [*under(turns, under(known, put)), "$opt.step()"]
    move = under("with torch.no_grad():", under(turns, under(known, [f"p -= 0.05 * {value}"])))
    loose = under(
        turns, under(known, [dice.one(f"p.data -= 0.05 * {value}", f"p.data.add_({value}, alpha=-0.05)")])
    )
    bound = under("with torch.no_grad():", under(turns, under(known, [f"p.copy_(p - 0.05 * {value})"])))
    return dice.one(move, loose, bound)


def listed_by_hand(world: World) -> Plot:
    """`autograd.grad` into a list, and a step that zips."""
    dice = world.dice
    width, out = sizes(world)
    setup = [f"$model = {net(world, width, out, 3)}"]
    flow = ["pred = $model(x)", *objectives.loss(world, "pred", "y"), "params = list($model.parameters())"]
    grads = dice.one(
        ["grads = torch.autograd.grad(loss, params, allow_unused=True)"],
        [
            "loss.backward()",
            "grads = [p.grad for p in params]",
            *under("for p in params:", ["p.grad = None"]),
        ],
        ["$model.zero_grad()", "loss.backward()", "grads = [p.grad for p in params]"],
        ["grads = [torch.autograd.grad(loss, p, retain_graph=True, allow_unused=True)[0] for p in params]"],
    )
    move = dice.one("p.sub_(0.05 * g)", "p -= 0.05 * g", "p.add_(g, alpha=-0.05)")
    ask = dice.one(under("if g is not None:", [move]), [*under("if g is None:", ["continue"]), move])
    step = under("with torch.no_grad():", under("for p, g in zip(params, grads):", ask))
    return Plot(setup, [Stage("step", [*flow, *grads, *step], ("x", "y"), ("loss", "pred"))], width, out)


def kept_terms(world: World) -> Plot:
    """A loss of a class of its own, which keeps terms and books in lists."""
    width, out = sizes(world)
    setup = [f"$model = {net(world, width, out)}"]
    kind, flow, learnt = world.dice.choice((_summed, _booked, _weighed, _criteria))(world)
    parameters = "$model.parameters()"
    setup += [f"$objective = {kind}()"]
    if learnt:
        world.imports.add("import itertools")
        parameters = world.dice.one(
            "itertools.chain($model.parameters(), $objective.weights)",
            "list($model.parameters()) + $objective.weights",
            '[{"params": $model.parameters()}, {"params": $objective.weights, "lr": 0.1}]',
        )
    setup.append(f"$opt = {updates.optimizer(world, parameters)}")
    all_cleared = ["$opt.zero_grad()", "loss.backward()", "$opt.step()"]
    run = all_cleared if learnt else updates.update(world, "$opt", "loss", "$model")
    stages = [
        Stage("predict", ["pred = $model(x)", *flow], ("x", "y"), ("loss", "pred")),
        Stage("update", run, ("loss",)),
    ]
    return Plot(setup, stages, width, out)


def _summed(world: World) -> tuple[str, Lines, bool]:
    """Terms are put in and added up when they are asked for."""
    end = world.dice.one("self.terms = []", "self.terms.clear()", "del self.terms[:]")
    body = [
        *under("def __init__(self):", ["self.terms = []", "self.seen = []"]),
        *under("def add(self, value, weight=1.0):", ["self.terms.append(weight * value)"]),
        *under(
            "def total(self):",
            ["loss = sum(self.terms)", end, "self.seen.append(loss.item())", "return loss"],
        ),
    ]
    name = world.help("Terms", under("class Terms:", body))
    term = objectives.term(world, "pred", "y")
    return (
        name,
        [f"$objective.add({term})", "$objective.add(pred.pow(2).mean(), 0.1)", "loss = $objective.total()"],
        False,
    )


def _booked(world: World) -> tuple[str, Lines, bool]:
    """The last value of each term is kept for the books."""
    keep = world.dice.one("value.item()", "value.detach()", "float(value)")
    call = [
        f'terms = {{"fit": {objectives.term(world, "pred", "y")}, "size": pred.abs().mean()}}',
        *under("for name, value in terms.items():", [f"self.history[name].append({keep})"]),
        world.dice.one("self.last = None", "self.last = terms", "self.last = sum(terms.values()).detach()"),
        "return sum(terms.values())",
    ]
    body = [
        *under("def __init__(self):", ['self.history = {"fit": [], "size": []}', "self.last = None"]),
        *under("def __call__(self, pred, y):", call),
    ]
    return world.help("Booked", under("class Booked:", body)), ["loss = $objective(pred, y)"], False


def _weighed(world: World) -> tuple[str, Lines, bool]:
    """Weights of its own that learn, in a plain list that the optimizer is given."""
    leaf = world.dice.one("nn.Parameter(torch.zeros(()))", "torch.zeros((), requires_grad=True)")
    parent = world.dice.one("", "(nn.Module)")
    start = ["super().__init__()"] if parent else []
    call = [
        f"terms = [{objectives.term(world, 'pred', 'y')}, pred.pow(2).mean()]",
        "return sum(torch.exp(-w) * term + w for w, term in zip(self.weights, terms))",
    ]
    called = "forward" if parent else "__call__"
    body = [
        *under("def __init__(self):", [*start, f"self.weights = [{leaf} for _ in range(2)]"]),
        *under(f"def {called}(self, pred, y):", call),
    ]
    return world.help("Weighed", under(f"class Weighed{parent}:", body)), ["loss = $objective(pred, y)"], True


def _criteria(world: World) -> tuple[str, Lines, bool]:
    """Losses of torch's in a list, each with a weight."""
    call = [
        "loss = 0",
        *under(
            "for criterion, weight in zip(self.criteria, self.weights):",
            ["loss = loss + weight * criterion(pred, y)"],
        ),
        "self.values.append(loss.item())",
        "return loss",
    ]
    start = ["self.criteria = [nn.MSELoss(), nn.L1Loss()]", "self.weights = [1.0, 0.1]", "self.values = []"]
    body = [*under("def __init__(self):", start), *under("def __call__(self, pred, y):", call)]
    return world.help("Criteria", under("class Criteria:", body)), ["loss = $objective(pred, y)"], False
