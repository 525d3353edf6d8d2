"""Networks that learn from others, from copies of themselves, or without any target."""

from __future__ import annotations

from . import objectives, updates
from .nets import net
from .plot import Plot, Stage, sizes
from .world import World, under


def variational(world: World) -> Plot:
    width, _ = sizes(world)
    setup = [
        f"$encoder = {net(world, width, 6, 3)}",
        f"$decoder = {net(world, 3, width, 3)}",
        f"$opt = {updates.optimizer(world, updates.all_of(world, '$encoder', '$decoder'))}",
    ]
    dice = world.dice
    flow = [
        dice.one(
            "mu, logvar = $encoder(x).chunk(2, dim=1)",
            "stats = $encoder(x)\nmu, logvar = stats[:, :3], stats[:, 3:]",
        ),
        dice.one("std = torch.exp(0.5 * logvar)", "std = logvar.mul(0.5).exp()", "std = (logvar / 2).exp()"),
        dice.one(
            "z = mu + std * torch.randn_like(std)",
            "z = torch.randn_like(std).mul(std).add_(mu)",
            "eps = torch.randn(mu.shape)\nz = eps * std + mu",
            "z = torch.distributions.Normal(mu, std).rsample()",
        ),
        "pred = $decoder(z)",
        f"fit = {objectives.term(world, 'pred', 'x')}",
        dice.one(
            "kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).mean()",
            "kl = -0.5 * torch.mean(1 + logvar - mu ** 2 - torch.exp(logvar))",
        ),
        "loss = fit + 0.1 * kl",
    ]
    flow = [line for part in flow for line in part.split("\n")]
    run = ["$opt.zero_grad()", "loss.backward()", "$opt.step()"]
    return Plot(
        setup, [Stage("objective", flow, ("x",), ("loss", "pred")), Stage("update", run, ("loss",))], width, 2
    )


def distilled(world: World) -> Plot:
    dice = world.dice
    width, out = sizes(world)
    setup = [
        f"$teacher = {net(world, width, out, 3)}",
        *dice.one(
            ["$teacher.eval()"],
            ["$teacher.requires_grad_(False)"],
            ["for p in $teacher.parameters():", "    p.requires_grad = False"],
            [],
        ),
        f"$student = {net(world, width, out, 3)}",
        f"$opt = {updates.optimizer(world, updates.all_of(world, '$student'))}",
    ]
    ask = dice.one(
        under("with torch.no_grad():", ["soft = $teacher(x)"]),
        ["soft = $teacher(x).detach()"],
        under(
            f"with {dice.one('torch.no_grad', 'torch.inference_mode')}():",
            ["soft = F.softmax($teacher(x) / 2, dim=1)"],
        ),
    )
    flow = [
        *ask,
        "pred = $student(x)",
        f"loss = {objectives.term(world, 'pred', 'y')}",
        dice.one(
            "loss = loss + 0.5 * (pred - soft).pow(2).mean()",
            "loss = 0.5 * loss + F.kl_div(F.log_softmax(pred, 1), F.softmax(soft, 1), reduction='batchmean')",
            "loss += 0.3 * F.mse_loss(pred, soft)",
        ),
    ]
    return Plot(
        setup,
        [
            Stage("objective", flow, ("x", "y"), ("loss", "pred")),
            Stage("update", updates.update(world, "$opt", "loss", "$student"), ("loss",)),
        ],
        width,
        out,
    )


def self_taught(world: World) -> Plot:
    """Two views, a slow copy of the network and a predictor."""
    dice = world.dice
    width, out = sizes(world)
    world.imports.add("import copy")
    setup = [
        f"$online = {net(world, width, out, 3)}",
        "$slow = copy.deepcopy($online)",
        f"$predictor = nn.Linear({out}, {out})",
        f"$opt = {updates.optimizer(world, updates.all_of(world, '$online', '$predictor'))}",
    ]
    if dice.chance(0.5):
        setup += under("for p in $slow.parameters():", ["p.requires_grad = False"])
    flow = [
        "first, second = x + 0.1 * torch.randn_like(x), x * 0.9",
        "pred = $predictor($online(first))",
        *dice.one(
            under("with torch.no_grad():", ["goal = $slow(second)"]), ["goal = $slow(second).detach()"]
        ),
        dice.one(
            "loss = -F.cosine_similarity(pred, goal, dim=1).mean()",
            "loss = 2 - 2 * (F.normalize(pred, dim=-1) * F.normalize(goal, dim=-1)).sum(-1).mean()",
            "loss = F.mse_loss(pred, goal)",
        ),
    ]
    moving = dice.one(
        under(
            "with torch.no_grad():",
            under(
                "for old, fast in zip($slow.parameters(), $online.parameters()):",
                ["old.mul_(0.99).add_(fast, alpha=0.01)"],
            ),
        ),
        under(
            "for old, fast in zip($slow.parameters(), $online.parameters()):",
            ["old.data = 0.99 * old.data + 0.01 * fast.data"],
        ),
        under(
            "for name, fast in $online.named_parameters():",
            [
                "old = dict($slow.named_parameters())[name]",
                "old.data.mul_(0.99).add_(fast.detach(), alpha=0.01)",
            ],
        ),
    )
    return Plot(
        setup,
        [
            Stage("objective", flow, ("x",), ("loss", "pred")),
            Stage("update", ["$opt.zero_grad()", updates.backward(world, "loss"), "$opt.step()"], ("loss",)),
            Stage("follow", moving),
        ],
        width,
        out,
    )


def contrastive(world: World) -> Plot:
    dice = world.dice
    width, out = sizes(world)
    setup = [
        f"$encoder = {net(world, width, out, 3)}",
        f"$queue = F.normalize(torch.randn(6, {out}), dim=1)",
        f"$opt = {updates.optimizer(world, '$encoder.parameters()')}",
    ]
    flow = [
        "q = F.normalize($encoder(x), dim=1)",
        *dice.one(
            under("with torch.no_grad():", ["k = F.normalize($encoder(x * 0.9), dim=1)"]),
            ["k = F.normalize($encoder(x * 0.9), dim=1).detach()"],
        ),
        "positive = (q * k).sum(dim=1, keepdim=True)",
        dice.one(
            "negative = q @ $queue.t()",
            'negative = torch.einsum("nc,kc->nk", q, $queue)',
            "negative = q @ $queue.clone().detach().t()",
        ),
        "logits = torch.cat([positive, negative], dim=1) / 0.2",
        "loss = F.cross_entropy(logits, torch.zeros(x.size(0), dtype=torch.long))",
    ]
    store = ["$queue = torch.cat([k, $queue])[:6]"]
    if dice.chance(0.4):
        store = under("with torch.no_grad():", ["$queue = torch.cat([$queue[k.size(0):], k])"])
    return Plot(
        setup,
        [
            Stage("objective", flow, ("x",), ("loss", "k")),
            Stage("update", updates.update(world, "$opt", "loss", "$encoder"), ("loss",)),
            Stage("store", store, ("k",)),
        ],
        width,
        out,
    )


def unsupervised_energy(world: World) -> Plot:
    """Samples by steps along the gradient of an energy, then a step of the energy."""
    width, _ = sizes(world)
    setup = [
        f"$energy = nn.Sequential(nn.Linear({width}, 6), nn.SiLU(), nn.Linear(6, 1))",
        f"$opt = {updates.optimizer(world, '$energy.parameters()')}",
    ]
    sample = [
        "sample = torch.randn_like(x)",
        *under(
            "for _ in range(2):",
            world.dice.one(
                [
                    "sample.requires_grad_(True)",
                    "force = torch.autograd.grad($energy(sample).sum(), sample)[0]",
                    "sample = (sample - 0.1 * force + 0.01 * torch.randn_like(sample)).detach()",
                ],
                [
                    "sample = sample.detach().requires_grad_()",
                    "force, = torch.autograd.grad($energy(sample).sum(), [sample])",
                    "sample = sample - 0.1 * force",
                ],
            ),
        ),
        "sample = sample.detach()",
    ]
    return Plot(
        setup,
        [
            Stage("draw", sample, ("x",), ("sample",)),
            Stage(
                "learn",
                [
                    "loss = $energy(x).mean() - $energy(sample).mean()",
                    "loss = loss + 0.01 * ($energy(x).pow(2) + $energy(sample).pow(2)).mean()",
                    *updates.update(world, "$opt", "loss", "$energy"),
                ],
                ("x", "sample"),
                ("loss",),
            ),
        ],
        width,
        2,
    )
