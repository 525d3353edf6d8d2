"""What lasts longer than a batch: states, graphs that are kept, weights of before."""

from __future__ import annotations

from . import objectives, updates
from .nets import net
from .plot import Plot, Stage, sizes
from .world import Lines, World, under


def truncated(world: World) -> Plot:
    """A hidden state that is carried on and cut off."""
    dice = world.dice
    width, out = sizes(world)
    kind = dice.one("GRU", "RNN", "LSTM")
    setup = [
        f"$rnn = nn.{kind}({width}, 5, batch_first=True)",
        f"$head = nn.Linear(5, {out})",
        f"$opt = {updates.optimizer(world, updates.all_of(world, '$rnn', '$head'))}",
        "$hidden = None",
    ]
    cut = (
        "hidden = tuple(h.detach() for h in hidden)"
        if kind == "LSTM"
        else dice.one("hidden = hidden.detach()", "hidden = hidden.data", "hidden.detach_()")
    )
    start, state = dice.one((["hidden = None"], "first"), ([], "state"))
    first = [
        "features, hidden = $rnn(x.unsqueeze(1).repeat(1, 2, 1), hidden)",
        "pred = $head(features[:, -1])",
        *objectives.loss(world, "pred", "y"),
        "$opt.zero_grad()",
        "loss.backward()",
        "$opt.step()",
    ]
    if state == "first":
        del setup[-1]
        inner = (
            [*under("if hidden is not None:", [cut]), *first]
            if dice.chance(0.5) or "_()" in cut
            else [*first, cut]
        )
        return Plot(
            setup,
            [Stage("unrolled", [*start, *under("for _ in range(2):", inner)], ("x", "y"), ("loss", "pred"))],
            width,
            out,
        )
    first = [line.replace("hidden", "$hidden") for line in first]
    kept = cut.replace("hidden", "$hidden", 2)
    return Plot(
        setup,
        [
            Stage(
                "step",
                [*under("if $hidden is not None:", [kept]), *first]
                if dice.chance(0.5) or "_()" in kept
                else [*first, kept],
                ("x", "y"),
                ("loss", "pred"),
            )
        ],
        width,
        out,
        begin=["$hidden = None"],
    )


def retained(world: World) -> Plot:
    """Gradients of what is not a leaf, and a graph used twice."""
    dice = world.dice
    width, out = sizes(world)
    setup = [
        f"$encoder = {net(world, width, 5, 3)}",
        f"$head = nn.Linear(5, {out})",
        f"$opt = {updates.optimizer(world, updates.all_of(world, '$encoder', '$head'))}",
    ]
    form = dice.randint(0, 3)
    flow = ["features = $encoder(x)"]
    if form == 0:
        flow += [
            "features.retain_grad()",
            "pred = $head(features)",
            f"loss = {objectives.term(world, 'pred', 'y')}",
        ]
        run = [
            "$opt.zero_grad()",
            "loss.backward()",
            "$log.append(features.grad.abs().mean().item())",
            "$opt.step()",
        ]
    elif form == 1:
        flow += [
            "pred = $head(features)",
            f"loss = {objectives.term(world, 'pred', 'y')}",
            "other = features.pow(2).mean()",
        ]
        run = ["$opt.zero_grad()", "loss.backward(retain_graph=True)", "other.backward()", "$opt.step()"]
    elif form == 2:
        flow += ["pred = $head(features)", f"loss = {objectives.term(world, 'pred', 'y')}"]
        run = [
            "saliency = torch.autograd.grad(loss, features, retain_graph=True)[0]",
            "$log.append(saliency.abs().max().item())",
            "$opt.zero_grad()",
            "loss.backward()",
            "$opt.step()",
        ]
    else:
        flow += [
            "seen = []",
            "features.register_hook(lambda grad: seen.append(grad.detach().clone()))",
            "pred = $head(features)",
            f"loss = {objectives.term(world, 'pred', 'y')}",
        ]
        run = ["$opt.zero_grad()", "loss.backward()", "$opt.step()"]
    return Plot(setup, [Stage("step", [*flow, *run], ("x", "y"), ("loss", "pred"))], width, out)


def fine_tuned(world: World) -> Plot:
    """A frozen backbone under a new head; later it thaws."""
    dice = world.dice
    width, out = sizes(world)
    setup = [
        f"$backbone = {net(world, width, 5, 3)}",
        *dice.one(
            ["for p in $backbone.parameters():", "    p.requires_grad = False"],
            ["$backbone.requires_grad_(False)"],
            ["for name, p in $backbone.named_parameters():", "    p.requires_grad_(False)"],
        ),
        f"$head = nn.Linear(5, {out})",
        f"$opt = {updates.optimizer(world, '$head.parameters()')}",
    ]
    ask = dice.one(
        ["features = $backbone(x)"],
        under("with torch.no_grad():", ["features = $backbone(x)"]),
        ["features = $backbone(x).detach()"],
    )
    stages = [
        Stage(
            "objective",
            [*ask, "pred = $head(features)", *objectives.loss(world, "pred", "y")],
            ("x", "y"),
            ("loss", "pred"),
        ),
        Stage("update", ["$opt.zero_grad()", "loss.backward()", "$opt.step()"], ("loss",)),
    ]
    after: Lines = []
    if ask == ["features = $backbone(x)"] and dice.chance(0.5):
        setup.append("$thawed = False")
        after = under(
            "if not $thawed:",
            [
                "$backbone.requires_grad_(True)",
                '$opt.add_param_group({"params": list($backbone.parameters()), "lr": 1e-3})',
                "$thawed = True",
            ],
        )
    return Plot(setup, stages, width, out, after=after)


def continual(world: World) -> Plot:
    """An anchor at the old weights, weighed by squared gradients."""
    width, out = sizes(world)
    setup = [
        f"$model = {net(world, width, out, 2)}",
        f"$opt = {updates.optimizer(world, '$model.parameters()')}",
        "$anchor = {n: p.detach().clone() for n, p in $model.named_parameters()}",
        "$fisher = {n: torch.zeros_like(p) for n, p in $model.named_parameters()}",
    ]
    flow = [
        "pred = $model(x)",
        *objectives.loss(world, "pred", "y"),
        world.dice.one(
            "penalty = sum(($fisher[n] * (p - $anchor[n]).pow(2)).sum() for n, p in $model.named_parameters())",
            "penalty = sum(($fisher[n] * (p - $anchor[n]) ** 2).sum() for n, p in $model.named_parameters())",
        ),
        "loss = loss + 0.5 * penalty",
    ]
    run = [
        "$opt.zero_grad()",
        "loss.backward()",
        *under(
            "for n, p in $model.named_parameters():",
            under("if p.grad is not None:", ["$fisher[n] += p.grad.detach() ** 2"]),
        ),
        "$opt.step()",
    ]
    return Plot(
        setup,
        [Stage("objective", flow, ("x", "y"), ("loss", "pred")), Stage("update", run, ("loss",))],
        width,
        out,
        after=["$anchor = {n: p.detach().clone() for n, p in $model.named_parameters()}"],
    )
