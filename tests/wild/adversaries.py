"""What works against a network: another one, or an input that is trained."""

from __future__ import annotations

from . import objectives, updates
from .nets import net
from .plot import Plot, Stage, sizes
from .world import World, under


def gan(world: World) -> Plot:
    dice = world.dice
    width, _ = sizes(world)
    noise = dice.randint(3, 5)
    setup = [
        f"$generator = {net(world, noise, width, 3)}",
        f"$critic = {net(world, width, 1, 3)}",
        f"$opt_g = {updates.optimizer(world, '$generator.parameters()')}",
        f"$opt_d = {updates.optimizer(world, '$critic.parameters()')}",
    ]
    fake = dice.one(
        ["fake = $generator(noise)"],
        under("with torch.no_grad():", ["fake = $generator(noise)"]),
        ["fake = $generator(noise).detach()"],
    )
    told = "fake.detach()" if fake == ["fake = $generator(noise)"] else "fake"
    real_score, fake_score = "$critic(x)", f"$critic({told})"
    ones = "torch.ones(x.size(0), 1)"
    loss = dice.one(
        [f"d_loss = F.softplus(-{real_score}).mean() + F.softplus({fake_score}).mean()"],
        [f"d_loss = {fake_score}.mean() - {real_score}.mean()"],
        [
            f"real_loss = F.binary_cross_entropy_with_logits({real_score}, {ones})",
            f"fake_loss = F.binary_cross_entropy_with_logits({fake_score}, torch.zeros(x.size(0), 1))",
            "d_loss = (real_loss + fake_loss) / 2",
        ],
        [
            f"real, made = {real_score}, {fake_score}",
            "d_loss = F.relu(1 - real).mean() + F.relu(1 + made).mean()",
        ],
    )
    d_run = [
        *updates.cleared(world, "$opt_d", "$critic"),
        "d_loss.backward()",
        *updates.between(world, "$critic"),
        "$opt_d.step()",
    ]
    if dice.chance(0.25) and len(loss) == 3:
        d_run = ["$opt_d.zero_grad()", "real_loss.backward()", "fake_loss.backward()", "$opt_d.step()"]
    critic = Stage(
        "train_critic",
        [f"noise = torch.randn(x.size(0), {noise})", *fake, *loss, *d_run],
        ("x",),
        ("d_loss",),
    )
    again = [f"noise = torch.randn(x.size(0), {noise})", "made = $generator(noise)"]
    scores = dice.one(
        [],
        ["for p in $critic.parameters():", "    p.requires_grad_(False)"],
        ["$critic.requires_grad_(False)"],
    )
    back = (
        []
        if not scores
        else ["$critic.requires_grad_(True)"]
        if len(scores) == 1
        else ["for p in $critic.parameters():", "    p.requires_grad_(True)"]
    )
    g_loss = dice.one(
        "g_loss = -$critic(made).mean()",
        "g_loss = F.softplus(-$critic(made)).mean()",
        f"g_loss = F.binary_cross_entropy_with_logits($critic(made), {ones})",
    )
    maker = Stage(
        "train_generator",
        [
            *scores,
            *again,
            g_loss,
            "$opt_g.zero_grad()",
            "g_loss.backward()",
            *updates.between(world, "$generator"),
            "$opt_g.step()",
            *back,
        ],
        ("x",),
        ("g_loss",),
    )
    plot = Plot(setup, [critic, maker], width, 2)
    plot.stages.append(
        Stage(
            "note",
            dice.one(
                ["$log.append((d_loss.item(), g_loss.item()))"], ["print(d_loss.item(), g_loss.item())"]
            ),
            ("d_loss", "g_loss"),
        )
    )
    return plot


def wgan_gp(world: World) -> Plot:
    width, _ = sizes(world)
    last = "mean(0)"
    setup = [
        f"$generator = {net(world, 3, width, 2)}",
        f"$critic = nn.Sequential(nn.Linear({width}, 6), nn.Tanh(), nn.Linear(6, 1))",
        f"$opt_g = {updates.optimizer(world, '$generator.parameters()')}",
        f"$opt_d = {updates.optimizer(world, '$critic.parameters()')}",
    ]
    grads = world.dice.one(
        ["grads = torch.autograd.grad(scores.sum(), mixed, create_graph=True)[0]"],
        [
            "grads, = torch.autograd.grad(scores, mixed, grad_outputs=torch.ones_like(scores), create_graph=True, retain_graph=True)"
        ],
    )
    penalty = world.help(
        "gradient_penalty",
        under(
            "def gradient_penalty(critic, real, fake):",
            [
                "alpha = torch.rand(real.size(0), 1)",
                "mixed = (alpha * real + (1 - alpha) * fake).requires_grad_(True)",
                "scores = critic(mixed)",
                *grads,
                "return ((grads.norm(2, dim=1) - 1) ** 2).mean()",
            ],
        ),
    )
    lines = [
        *under(
            "for _ in range(2):",
            [
                "noise = torch.randn(x.size(0), 3)",
                "fake = $generator(noise).detach()",
                f"d_loss = $critic(fake).{last} - $critic(x).{last}",
                "d_loss = d_loss.sum()",
                f"d_loss = d_loss + 10 * {penalty}($critic, x, fake)",
                "$opt_d.zero_grad()",
                "d_loss.backward()",
                "$opt_d.step()",
            ],
        ),
    ]
    second = [
        "g_loss = -$critic($generator(torch.randn(x.size(0), 3))).mean()",
        "$opt_g.zero_grad()",
        "g_loss.backward()",
        "$opt_g.step()",
    ]
    if world.dice.chance(0.3):
        second = [*under("if $step % 2 == 1:", second), "$step += 1"]
        setup.append("$step = 0")
    return Plot(
        setup,
        [Stage("train_critic", lines, ("x",), ("d_loss",)), Stage("train_generator", second, ("x",))],
        width,
        2,
    )


def input_optimised(world: World) -> Plot:
    """The network stands, the input learns."""
    dice = world.dice
    width, out = sizes(world)
    freeze = dice.one(
        ["$model.requires_grad_(False)"],
        ["for p in $model.parameters():", "    p.requires_grad_(False)"],
        ["$model.eval().requires_grad_(False)"],
    )
    leaf = dice.one(
        f"torch.randn(4, {width}, requires_grad=True)",
        f"nn.Parameter(torch.rand(4, {width}))",
        f"torch.randn(4, {width}).requires_grad_()",
    )
    setup = [
        f"$model = {net(world, width, out, 3)}",
        *freeze,
        f"$image = {leaf}",
        f"$opt = {updates.optimizer(world, '[$image]')}",
    ]
    flow = [
        "pred = $model($image)",
        f"loss = {objectives.term(world, 'pred', 'y')} + 0.01 * ($image - x).abs().mean()",
    ]
    after = dice.one(
        [], under("with torch.no_grad():", ["$image.clamp_(-3, 3)"]), ["$image.data.clamp_(-3, 3)"]
    )
    return Plot(
        setup,
        [
            Stage("objective", flow, ("x", "y"), ("loss", "pred")),
            Stage("update", ["$opt.zero_grad()", "loss.backward()", "$opt.step()", *after], ("loss",)),
        ],
        width,
        out,
    )


def adversarial_examples(world: World) -> Plot:
    dice = world.dice
    width, out = sizes(world)
    setup = [
        f"$model = {net(world, width, out, 3)}",
        f"$opt = {updates.optimizer(world, '$model.parameters()')}",
    ]
    attack = dice.one(
        [
            "attacked = x.clone().requires_grad_(True)",
            f"attack = {objectives.term(world, '$model(attacked)', 'y')}",
            "grad, = torch.autograd.grad(attack, attacked)",
            "attacked = (x + 0.1 * grad.sign()).detach()",
        ],
        [
            "attacked = x.detach().clone()",
            "attacked.requires_grad = True",
            f"{objectives.term(world, '$model(attacked)', 'y')}.backward()",
            "attacked = (attacked + 0.1 * attacked.grad.sign()).detach()",
        ],
        [
            "delta = torch.zeros_like(x, requires_grad=True)",
            *under(
                "for _ in range(2):",
                [
                    f"attack = {objectives.term(world, '$model(x + delta)', 'y')}",
                    "attack.backward()",
                    "delta.data = (delta + 0.1 * delta.grad.sign()).clamp(-0.2, 0.2).detach()",
                    "delta.grad.zero_()",
                ],
            ),
            "attacked = x + delta.detach()",
        ],
    )
    flow = [*attack, "pred = $model(attacked)", f"loss = {objectives.term(world, 'pred', 'y')}"]
    return Plot(
        setup,
        [
            Stage("attack", flow, ("x", "y"), ("loss", "pred")),
            Stage(
                "update",
                ["$opt.zero_grad()", "loss.backward()", *updates.between(world, "$model"), "$opt.step()"],
                ("loss",),
            ),
        ],
        width,
        out,
    )
