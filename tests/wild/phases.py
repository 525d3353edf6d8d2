"""Training that goes by turns and words: phases, leftovers, new optimizers, networks that grow, benchmarks."""

from __future__ import annotations

from . import objectives, updates
from .nets import net
from .plot import Plot, Stage, sizes
from .world import Lines, World, under


def phased(world: World) -> Plot:
    """Training and validation in one loop, told apart by a word."""
    dice = world.dice
    width, out = sizes(world)
    setup = [
        f"$model = {net(world, width, out)}",
        f"$opt = {updates.optimizer(world, updates.all_of(world, '$model'))}",
    ]
    other = dice.one("val", "test", "eval")
    flow = ["pred = $model(x)", *objectives.loss(world, "pred", "y")]
    lines = under(f'for phase in ("train", "{other}"):', _phase(world, flow, other))
    return Plot(setup, [Stage("both_phases", lines, ("x", "y"), ("loss", "pred"))], width, out)


def _phase(world: World, flow: Lines, other: str) -> Lines:
    """What happens in a phase."""
    dice = world.dice
    trains = 'phase == "train"'
    mode = dice.one(
        [f"$model.train({trains})"],
        under(f"if {trains}:", ["$model.train()"]) + under("else:", ["$model.eval()"]),
        ["getattr($model, phase)()"] if other == "eval" else [f"$model.train(mode={trains})"],
    )
    learn = ["$opt.zero_grad()", "loss.backward()", *updates.between(world, "$model"), "$opt.step()"]
    within = f"with torch.set_grad_enabled({trains}):"
    body = dice.one(
        [*under(within, [*flow, *under(f"if {trains}:", learn)])],
        [*under(within, flow), *under(f"if {trains}:", learn)],
        [*under(within, flow), *under('if phase != "train":', ["continue"]), *learn],
        [
            f"training = {trains}",
            *under("with torch.set_grad_enabled(training):", [*flow, *under("if training:", learn)]),
        ],
        [
            f"torch.set_grad_enabled({trains})",
            *flow,
            *under(f"if {trains}:", learn),
            "torch.set_grad_enabled(True)",
        ],
        [
            f"context = torch.enable_grad() if {trains} else torch.no_grad()",
            *under("with context:", flow),
            *under("if loss.requires_grad:", learn),
        ],
        [*under(within, flow), *under("if loss.grad_fn is not None:", learn)],
        [
            *under(f"if not {trains}:", [*under("with torch.no_grad():", flow), "continue"]),
            *flow,
            *learn,
        ],
    )
    return [*mode, *body]


def run_by_word(world: World) -> Plot:
    """One function that trains or validates, as it is told."""
    dice = world.dice
    width, out = sizes(world)
    setup = [
        f"$model = {net(world, width, out)}",
        f"$opt = {updates.optimizer(world, '$model.parameters()')}",
    ]
    score = objectives.term(world, "pred", "y")
    leave = dice.one(
        under('if mode == "val":', ["return loss.item()"]),
        under("if optimizer is None:", ["return loss.item()"]),
    )
    flow = [
        *under('with torch.set_grad_enabled(mode == "train"):', ["pred = model(x)", f"loss = {score}"]),
        *leave,
        "optimizer.zero_grad()",
        "loss.backward()",
        "optimizer.step()",
        "return loss.item()",
    ]
    name = world.help("run_batch", under('def run_batch(model, x, y, optimizer=None, mode="train"):', flow))
    lines = [
        f"value = {name}($model, x, y, $opt)",
        f'checked = {name}($model, x, y, mode="val", optimizer=None)',
    ]
    return Plot(setup, [Stage("train_and_check", lines, ("x", "y"), ("value", "checked"))], width, out)


def left_over(world: World) -> Plot:
    """Gradients of two parts for a step, and of one for the last."""
    width, out = sizes(world)
    setup = [
        f"$model = {net(world, width, out)}",
        f"$opt = {updates.optimizer(world, '$model.parameters()')}",
    ]
    flow = ["pred = $model(part)", *objectives.loss(world, "pred", "target"), "(loss / 2).backward()"]
    lines = ["parts = list(zip((x, x[:2], x * 0.9), (y, y[:2], y)))", *_windows(world, flow)]
    return Plot(setup, [Stage("accumulate", lines, ("x", "y"), ("loss", "pred"))], width, out)


def _windows(world: World, flow: Lines) -> Lines:
    """Where in the loop over parts the optimizer clears and steps."""
    turns, step = "for i, (part, target) in enumerate(parts):", ["$opt.step()", "$opt.zero_grad()"]
    last = world.dice.one("i + 1 == len(parts)", "i == len(parts) - 1")
    counted = ["waiting += 1", *under("if waiting == 2:", [*step, "waiting = 0"])]
    return world.dice.one(
        ["$opt.zero_grad()", *under(turns, [*flow, *under(f"if (i + 1) % 2 == 0 or {last}:", step)])],
        [
            "$opt.zero_grad()",
            *under(turns, [*flow, *under("if (i + 1) % 2 == 0:", step)]),
            *under("if len(parts) % 2 != 0:", step),
        ],
        ["$opt.zero_grad()", "waiting = 0", *under(turns, [*flow, *counted]), *under("if waiting:", step)],
        under(
            turns,
            [
                *under("if i % 2 == 0:", ["$opt.zero_grad()"]),
                *flow,
                *under(f"if i % 2 == 1 or {last}:", ["$opt.step()"]),
            ],
        ),
        [
            "$opt.zero_grad()",
            *under(turns, [*flow, *under(f"if (i + 1) % 2 and not {last}:", ["continue"]), *step]),
        ],
        ["$opt.zero_grad()", *under(turns, [*flow, *under("if i % 2:", step)]), *under("else:", step)],
    )


def grown(world: World) -> Plot:
    """An optimizer that is given its parameters bit by bit, or made anew."""
    dice = world.dice
    width, out = sizes(world)
    setup = [f"$model = {net(world, width, 5, 3)}", f"$head = nn.Linear(5, {out})"]
    made = updates.optimizer(world, "$model.parameters()")
    group = '$opt.add_param_group({{"params": {}, "lr": 0.02}})'
    setup += dice.one(
        [f"$opt = {made}", group.format("$head.parameters()")],
        [f"$opt = {made}", *under("for part in [$head]:", [group.format("part.parameters()")])],
        [f"$opt = {made}", group.format("list($head.parameters())")],
        [
            f"$opt = {updates.optimizer(world, '[$head.weight]')}",
            group.format("[$head.bias]"),
            *under("for p in $model.parameters():", under("if p.requires_grad:", [group.format("p")])),
        ],
    )
    lines = ["pred = $head($model(x))", *objectives.loss(world, "pred", "y")]
    update = ["$opt.zero_grad()", "loss.backward()", "$opt.step()"]
    return Plot(
        setup,
        [Stage("objective", lines, ("x", "y"), ("loss", "pred")), Stage("update", update, ("loss",))],
        width,
        out,
    )


def renewed(world: World) -> Plot:
    """Each epoch has an optimizer of its own."""
    dice = world.dice
    width, out = sizes(world)
    setup = [f"$model = {net(world, width, out)}", f"$head = nn.Linear({out}, {out})"]
    both = updates.all_of(world, "$model", "$head")
    begin = dice.one(
        [f"$tuner = {updates.optimizer(world, both)}"],
        under("if epoch == 0:", [f"$tuner = {updates.optimizer(world, both)}"])
        + under("else:", [f"$tuner = torch.optim.SGD({both}, lr=0.01)"]),
    )
    if "epoch == 0" not in begin[0]:
        setup.append("$tuner = None")
    lines = ["pred = $head($model(x))", *objectives.loss(world, "pred", "y")]
    update = ["$tuner.zero_grad()", "loss.backward()", *updates.between(world, "$model"), "$tuner.step()"]
    stages = [Stage("objective", lines, ("x", "y"), ("loss", "pred")), Stage("update", update, ("loss",))]
    return Plot([*setup, "$tuner = None"], stages, width, out, begin=begin)


def benchmarked(world: World) -> Plot:
    """How long it takes: networks are made, run a few times and thrown away."""
    dice = world.dice
    width, out = sizes(world)
    world.imports.add("import time")
    build = f"nn.Sequential(nn.Linear({width}, size), {dice.one('nn.ReLU()', 'nn.Tanh()')}, nn.Linear(size, {out}))"
    run = ["loss = model(x).pow(2).mean()", "loss.backward()"]
    with_step = [f"opt = {updates.optimizer(world, 'model.parameters()')}"]
    clear = dice.one(["model.zero_grad()"], under("for p in model.parameters():", ["p.grad = None"]))
    timed = dice.one(
        [*under("for _ in range(2):", [*clear, *run])],
        [*with_step, *under("for _ in range(2):", ["opt.zero_grad()", *run, "opt.step()"])],
        [*under("for _ in range(2):", [*run, *clear])],
        [*run],
    )
    lines = under(
        "for size in (4, 6):",
        [
            f"model = {build}",
            "start = time.time()",
            *timed,
            "print(size, time.time() - start)",
            *dice.one([], ["del model"]),
        ],
    )
    return Plot([], [Stage("measure", lines, ("x",))], width, out, idle=True)
