"""Plain training: one loss or several, one optimizer or two, in parts and with a scaler."""

from __future__ import annotations

from . import objectives, updates
from .nets import net
from .plot import Plot, Stage, sizes
from .world import World, under


def supervised(world: World) -> Plot:
    dice = world.dice
    width, out = sizes(world)
    kind = dice.one("rows", "classes")
    setup = [
        f"$model = {net(world, width, out, 6)}",
        f"$opt = {updates.optimizer(world, updates.all_of(world, '$model'))}",
    ]
    flow = objectives.loss(world, "pred", "y", kind)
    if dice.chance(0.3):
        flow += objectives.extras(world, "loss", "$model")
    if dice.chance(0.15):
        flow += objectives.arms(world, "loss", "pred")
    if dice.chance(0.12):
        flow += objectives.many_flags(world, "loss", "pred")
    stages = [
        Stage("predict", ["pred = $model(x)"], ("x",), ("pred",)),
        Stage("objective", flow, ("pred", "y"), ("loss",)),
        Stage("update", updates.update(world, "$opt", "loss", "$model"), ("loss",)),
    ]
    return Plot(setup, stages, width, out, kind)


def accumulated(world: World) -> Plot:
    dice = world.dice
    width, out = sizes(world)
    setup = [
        f"$model = {net(world, width, out)}",
        f"$opt = {updates.optimizer(world, updates.all_of(world, '$model'))}",
        "$count = 0",
    ]
    flow = objectives.loss(world, "pred", "y")
    step = ["$opt.step()", "$opt.zero_grad()"]
    lines = ["$count += 1", "(loss / 2).backward()", *under("if $count % 2 == 0:", step)]
    if dice.chance(0.4):
        lines = [
            "loss = loss / 2",
            "loss.backward()",
            "$count += 1",
            *under("if $count % 2 == 0:", [*updates.between(world, "$model"), *step]),
        ]
    elif dice.chance(0.4):
        lines = [
            *under("if $count % 2 == 0:", ["$opt.zero_grad()"]),
            "loss.backward()",
            "$count += 1",
            *under("if $count % 2 == 0:", ["$opt.step()"]),
        ]
    return Plot(
        setup,
        [
            Stage("forward", ["pred = $model(x)", *flow], ("x", "y"), ("loss",)),
            Stage("update", lines, ("loss",)),
        ],
        width,
        out,
    )


def micro_batches(world: World) -> Plot:
    width, out = sizes(world)
    setup = [
        f"$model = {net(world, width, out)}",
        f"$opt = {updates.optimizer(world, '$model.parameters()')}",
    ]
    inner = ["pred = $model(part)", *objectives.loss(world, "pred", "target"), "(loss / 2).backward()"]
    pairs = world.dice.one(
        "zip(x.chunk(2), y.chunk(2))",
        "zip(torch.split(x, 2), torch.split(y, 2))",
        "[(x[:2], y[:2]), (x[2:], y[2:])]",
    )
    lines = [
        *updates.cleared(world, "$opt", "$model"),
        *under(f"for part, target in {pairs}:", inner),
        *updates.between(world, "$model"),
        "$opt.step()",
    ]
    return Plot(setup, [Stage("step", lines, ("x", "y"), ("loss", "pred"))], width, out)


def two_optimizers(world: World) -> Plot:
    dice = world.dice
    width, out = sizes(world)
    mid = dice.randint(3, 6)
    setup = [f"$encoder = {net(world, width, mid)}", f"$head = {net(world, mid, out, 2)}"]
    opts = ["$opt1", "$opt2"] if dice.chance(0.6) else ["$opts[0]", "$opts[1]"]
    if opts[0] == "$opts[0]":
        setup.append(
            f"$opts = [{updates.optimizer(world, '$encoder.parameters()')}, {updates.optimizer(world, '$head.parameters()')}]"
        )
    else:
        setup += [
            f"$opt1 = {updates.optimizer(world, updates.all_of(world, '$encoder'))}",
            f"$opt2 = {updates.optimizer(world, updates.all_of(world, '$head'))}",
        ]
    run = [
        f"{opts[0]}.zero_grad()",
        f"{opts[1]}.zero_grad()",
        "loss.backward()",
        f"{opts[0]}.step()",
        f"{opts[1]}.step()",
    ]
    if dice.chance(0.4):
        every = "($opt1, $opt2)" if opts[0] == "$opt1" else "$opts"
        run = [
            *under(f"for opt in {every}:", ["opt.zero_grad()"]),
            "loss.backward()",
            *under(f"for opt in {every}:", ["opt.step()"]),
        ]
    stages = [
        Stage("predict", ["code = $encoder(x)", "pred = $head(code)"], ("x",), ("pred",)),
        Stage("objective", objectives.loss(world, "pred", "y"), ("pred", "y"), ("loss",)),
        Stage("update", run, ("loss",)),
    ]
    return Plot(setup, stages, width, out)


def one_for_both(world: World) -> Plot:
    """An autoencoder or a model of two parts under one optimizer."""
    width, _ = sizes(world)
    mid = world.dice.randint(3, 5)
    setup = [
        f"$encoder = {net(world, width, mid)}",
        f"$decoder = {net(world, mid, width)}",
        f"$opt = {updates.optimizer(world, updates.all_of(world, '$encoder', '$decoder'))}",
    ]
    pair = world.dice.one("code, pred = $encoder(x), None", "code = $encoder(x)")
    flow = [pair, "pred = $decoder(code)", *objectives.loss(world, "pred", "x")]
    run = ["$opt.zero_grad()", updates.backward(world, "loss"), "$opt.step()"]
    return Plot(
        setup,
        [Stage("reconstruct", flow, ("x",), ("loss", "pred")), Stage("update", run, ("loss",))],
        width,
        2,
    )


def alternating(world: World) -> Plot:
    """One part in one turn, the other in the next."""
    dice = world.dice
    width, out = sizes(world)
    setup = [
        f"$first = {net(world, width, 5, 2)}",
        f"$second = {net(world, 5, out, 2)}",
        f"$opt_first = {updates.optimizer(world, '$first.parameters()')}",
        f"$opt_second = {updates.optimizer(world, '$second.parameters()')}",
        "$turn = 0",
    ]
    flow = ["pred = $second($first(x))", *objectives.loss(world, "pred", "y")]
    run = dice.one(
        [
            "opt = $opt_first if $turn % 2 == 0 else $opt_second",
            "$first.zero_grad()",
            "$second.zero_grad()",
            "loss.backward()",
            "opt.step()",
            "$turn += 1",
        ],
        [
            *under("if $turn % 2 == 0:", ["$opt_first.zero_grad()", "loss.backward()", "$opt_first.step()"]),
            *under("else:", ["$opt_second.zero_grad()", "loss.backward()", "$opt_second.step()"]),
            "$turn += 1",
        ],
    )
    return Plot(
        setup,
        [Stage("forward", flow, ("x", "y"), ("loss", "pred")), Stage("update", run, ("loss",))],
        width,
        out,
    )


def tasks(world: World) -> Plot:
    """Several heads, weighed by what is learnt, by a flag, or in turns."""
    dice = world.dice
    width, out = sizes(world)
    setup = [
        f"$trunk = {net(world, width, 5, 3)}",
        f'$heads = nn.ModuleDict({{"a": nn.Linear(5, {out}), "b": nn.Linear(5, {out})}})',
        "$log_vars = nn.Parameter(torch.zeros(2))",
    ]
    setup.append(
        f"$opt = {updates.optimizer(world, 'list($trunk.parameters()) + list($heads.parameters()) + [$log_vars]')}"
    )
    flow = [
        "features = $trunk(x)",
        "outputs = {name: head(features) for name, head in $heads.items()}",
        f"losses = [{objectives.term(world, 'outputs[' + chr(39) + 'a' + chr(39) + ']', 'y')}, {objectives.term(world, 'outputs[' + chr(39) + 'b' + chr(39) + ']', '-y')}]",
    ]
    flow += dice.one(
        ["loss = sum(torch.exp(-v) * l + v for v, l in zip($log_vars, losses))"],
        ["loss = (torch.stack(losses) * torch.exp(-$log_vars)).sum() + $log_vars.sum()"],
        [
            "loss = torch.zeros(())",
            *under(
                "for i, l in enumerate(losses):",
                ["loss = loss + torch.exp(-$log_vars[i]) * l + $log_vars[i]"],
            ),
        ],
    )
    return Plot(
        setup,
        [
            Stage("objective", flow, ("x", "y"), ("loss",)),
            Stage("update", ["$opt.zero_grad()", updates.backward(world, "loss"), "$opt.step()"], ("loss",)),
        ],
        width,
        out,
    )


def scaled(world: World) -> Plot:
    """With a gradient scaler, as mixed precision has it."""
    width, out = sizes(world)
    setup = [
        f"$model = {net(world, width, out, 3)}",
        f"$opt = {updates.optimizer(world, '$model.parameters()')}",
        '$scaler = torch.amp.GradScaler("cpu", init_scale=4.0)',
    ]
    flow = ["pred = $model(x)", *objectives.loss(world, "pred", "y")]
    clip = world.dice.one(
        [], ["$scaler.unscale_($opt)", "nn.utils.clip_grad_norm_($model.parameters(), 1.0)"]
    )
    run = [
        "$opt.zero_grad()",
        "$scaler.scale(loss).backward()",
        *clip,
        "$scaler.step($opt)",
        "$scaler.update()",
    ]
    return Plot(
        setup,
        [Stage("forward", flow, ("x", "y"), ("loss", "pred")), Stage("update", run, ("loss",))],
        width,
        out,
    )


def wide(world: World) -> Plot:
    """As supervised, and the switches are many."""
    plot = supervised(world)
    objective = plot.stages[1]
    objective.lines += (
        objectives.arms(world, "loss", "pred")
        if world.dice.chance(0.5)
        else objectives.many_flags(world, "loss", "pred")
    )
    return plot
