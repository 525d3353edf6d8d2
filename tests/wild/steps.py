"""Steps that are more than a step: inner loops, weights put aside, closures, updates by hand."""

from __future__ import annotations

from . import objectives, updates
from .nets import net
from .plot import Plot, Stage, sizes
from .world import World, under


def meta_learning(world: World) -> Plot:
    """An inner step by `autograd.grad`, an outer step through it."""
    dice = world.dice
    width, out = sizes(world)
    world.imports.add("from torch.func import functional_call")
    setup = [
        f"$model = nn.Sequential(nn.Linear({width}, 6), nn.{dice.one('Tanh', 'ReLU', 'GELU')}(), nn.Linear(6, {out}))",
        f"$opt = {updates.optimizer(world, '$model.parameters()')}",
    ]
    first = [
        "weights = dict($model.named_parameters())",
        *under(
            "for _ in range(2):",
            [
                "pred = functional_call($model, weights, (x[:2],))",
                f"inner = {objectives.term(world, 'pred', 'y[:2]')}",
                "grads = torch.autograd.grad(inner, tuple(weights.values()), create_graph=True)",
                "weights = {name: w - 0.1 * g for (name, w), g in zip(weights.items(), grads)}",
            ],
        ),
    ]
    outer = [
        "outer = functional_call($model, weights, (x[2:],))",
        f"loss = {objectives.term(world, 'outer', 'y[2:]')}",
    ]
    return Plot(
        setup,
        [
            Stage("adapt", first, ("x", "y"), ("weights",)),
            Stage("outer", outer, ("x", "y", "weights"), ("loss",)),
            Stage("update", updates.update(world, "$opt", "loss", "$model"), ("loss",)),
        ],
        width,
        out,
    )


def reptile(world: World) -> Plot:
    width, out = sizes(world)
    world.imports.add("import copy")
    setup = [f"$model = {net(world, width, out, 3)}"]
    inner = [
        "learner = copy.deepcopy($model)",
        f"inner_opt = {updates.optimizer(world, 'learner.parameters()')}",
        *under(
            "for _ in range(2):",
            [
                "pred = learner(x)",
                f"loss = {objectives.term(world, 'pred', 'y')}",
                "inner_opt.zero_grad()",
                "loss.backward()",
                "inner_opt.step()",
            ],
        ),
    ]
    move = world.dice.one(
        under(
            "with torch.no_grad():",
            under(
                "for p, q in zip($model.parameters(), learner.parameters()):", ["p.add_(q - p, alpha=0.5)"]
            ),
        ),
        under(
            "for p, q in zip($model.parameters(), learner.parameters()):",
            ["p.data += 0.5 * (q.data - p.data)"],
        ),
        [
            "state, new = $model.state_dict(), learner.state_dict()",
            "$model.load_state_dict({k: state[k] + 0.5 * (new[k] - state[k]) if state[k].is_floating_point() else new[k] for k in state})",
        ],
    )
    return Plot(
        setup,
        [Stage("adapt", inner, ("x", "y"), ("learner", "loss")), Stage("move", move, ("learner",))],
        width,
        out,
    )


def by_hand(world: World) -> Plot:
    dice = world.dice
    width, out = sizes(world)
    make = dice.one(
        "torch.randn({}, requires_grad=True)",
        "nn.Parameter(0.3 * torch.randn({}))",
        "torch.zeros({}).normal_(std=0.1).requires_grad_()",
    )
    setup = [
        f"$w = {make.format(f'{width}, {out}')}",
        f"$b = {dice.one('torch.zeros({}, requires_grad=True)', 'nn.Parameter(torch.zeros({}))').format(out)}",
    ]
    flow = [
        dice.one("pred = x @ $w + $b", "pred = torch.tanh(x.mm($w) + $b)", "pred = torch.addmm($b, x, $w)"),
        f"loss = {objectives.term(world, 'pred', 'y')}",
    ]
    run = dice.one(
        [
            "loss.backward()",
            *under(
                "with torch.no_grad():",
                ["$w -= 0.1 * $w.grad", "$b -= 0.1 * $b.grad", "$w.grad.zero_()", "$b.grad.zero_()"],
            ),
        ],
        ["loss.backward()", *under("for p in ($w, $b):", ["p.data -= 0.1 * p.grad", "p.grad = None"])],
        [
            "loss.backward()",
            "$w.data.add_($w.grad, alpha=-0.1)",
            "$b.data.add_($b.grad, alpha=-0.1)",
            "$w.grad.zero_()",
            "$b.grad.zero_()",
        ],
        [
            "gw, gb = torch.autograd.grad(loss, [$w, $b])",
            *under("with torch.no_grad():", ["$w -= 0.1 * gw", "$b.sub_(0.1 * gb)"]),
        ],
        [
            "loss.backward()",
            *under(
                "with torch.no_grad():",
                under("for p in [$w, $b]:", ["p.sub_(0.1 * p.grad)", "p.grad = None"]),
            ),
        ],
        [
            "loss.backward()",
            "$w = ($w - 0.1 * $w.grad).detach().requires_grad_()",
            "$b = ($b - 0.1 * $b.grad).detach().requires_grad_()",
        ],
    )
    return Plot(
        setup,
        [Stage("forward", flow, ("x", "y"), ("loss", "pred")), Stage("update", run, ("loss",))],
        width,
        out,
    )


def closured(world: World) -> Plot:
    width, out = sizes(world)
    setup = [
        f"$model = {net(world, width, out, 2)}",
        world.dice.one(
            "$opt = torch.optim.LBFGS($model.parameters(), lr=0.1, max_iter=2)",
            "$opt = torch.optim.SGD($model.parameters(), lr=0.1)",
        ),
    ]
    inner = [
        "$opt.zero_grad()",
        "pred = $model(x)",
        f"loss = {objectives.term(world, 'pred', 'y')}",
        "loss.backward()",
        "return loss",
    ]
    return Plot(
        setup,
        [
            Stage(
                "step",
                [
                    *under("def closure():", inner),
                    world.dice.one("loss = $opt.step(closure)", "$opt.step(closure)"),
                ],
                ("x", "y"),
            )
        ],
        width,
        out,
    )


def surgery(world: World) -> Plot:
    """The gradient of each task by itself, put together by hand."""
    dice = world.dice
    width, out = sizes(world)
    setup = [
        f"$model = {net(world, width, out, 3)}",
        f"$opt = {updates.optimizer(world, '$model.parameters()')}",
    ]
    flow = [
        "pred = $model(x)",
        f"losses = [{objectives.term(world, 'pred', 'y')}, pred.pow(2).mean()]",
        "params = [p for p in $model.parameters() if p.requires_grad]",
    ]
    form = dice.randint(0, 1)
    if form:
        run = [
            "grads = [torch.autograd.grad(l, params, retain_graph=True, allow_unused=True) for l in losses]",
            *under(
                "for p, *pieces in zip(params, *grads):", ["p.grad = sum(g for g in pieces if g is not None)"]
            ),
            "$opt.step()",
        ]
    else:
        run = [
            "collected = []",
            *under(
                "for i, l in enumerate(losses):",
                [
                    "$opt.zero_grad()",
                    "l.backward(retain_graph=i == 0)",
                    "collected.append([p.grad.clone() for p in params if p.grad is not None])",
                ],
            ),
            "$opt.zero_grad()",
            *under("for p, a, b in zip(params, *collected):", ["p.grad = a + 0.5 * b"]),
            "$opt.step()",
        ]
    return Plot(setup, [Stage("step", [*flow, *run], ("x", "y"), ("pred",))], width, out)


def sharpness(world: World) -> Plot:
    """Two forwards for a step: up the hill, back, and down."""
    width, out = sizes(world)
    setup = [
        f"$model = {net(world, width, out, 2)}",
        f"$opt = {updates.optimizer(world, '$model.parameters()')}",
    ]
    lines = [
        f"loss = {objectives.term(world, '$model(x)', 'y')}",
        "$opt.zero_grad()",
        "loss.backward()",
        "moved = []",
        *under(
            "with torch.no_grad():",
            under(
                "for p in $model.parameters():",
                under(
                    "if p.grad is not None:",
                    [
                        "step = 0.05 * p.grad / (p.grad.norm() + 1e-6)",
                        "p.add_(step)",
                        "moved.append((p, step))",
                    ],
                ),
            ),
        ),
        "$opt.zero_grad()",
        "pred = $model(x)",
        f"second = {objectives.term(world, 'pred', 'y')}",
        "second.backward()",
        *under("with torch.no_grad():", under("for p, step in moved:", ["p.sub_(step)"])),
        "$opt.step()",
    ]
    return Plot(setup, [Stage("step", lines, ("x", "y"), ("loss", "pred"))], width, out)
