"""Losses as people spell them, and what they write into their books."""

from __future__ import annotations

from .world import Lines, World, under


def loss(world: World, pred: str, y: str, kind: str = "rows", name: str = "loss") -> Lines:
    """Lines that end with the loss of a prediction under a name."""
    dice = world.dice
    if dice.chance(0.15):
        return _several(world, pred, y, kind, name)
    if dice.chance(0.1):
        return _weighed(world, pred, y, kind, name)
    return [f"{name} = {term(world, pred, y, kind)}"]


def term(world: World, pred: str, y: str, kind: str = "rows") -> str:
    """A scalar loss as one expression."""
    dice = world.dice
    if dice.chance(0.15):
        return f"{_criterion(world, kind)}({pred}, {y})"
    if kind == "classes":
        return dice.one(
            f"F.cross_entropy({pred}, {y})",
            f"F.nll_loss(F.log_softmax({pred}, dim=1), {y})",
            f"-torch.log_softmax({pred}, dim=-1).gather(1, {y}.unsqueeze(1)).mean()",
            f"nn.CrossEntropyLoss(label_smoothing=0.1)({pred}, {y})",
            f"F.cross_entropy({pred}, {y}, reduction='none').mean()",
        )
    return dice.one(
        f"F.mse_loss({pred}, {y})",
        f"({pred} - {y}).pow(2).mean()",
        f"(({pred} - {y}) ** 2).mean()",
        f"F.smooth_l1_loss({pred}, {y})",
        f"F.l1_loss({pred}, {y})",
        f"torch.mean(torch.abs({pred} - {y}))",
        f"nn.MSELoss()({pred}, {y})",
        f"F.mse_loss({pred}, {y}, reduction='none').sum(1).mean()",
        f"F.binary_cross_entropy_with_logits({pred}, torch.sigmoid({y}))",
        f"torch.norm({pred} - {y})",
        f"(1 - F.cosine_similarity({pred}, {y}, dim=1)).mean()",
        f"({pred} - {y}).square().sum(dim=1).sqrt().mean()",
        f"F.huber_loss({pred}, {y})",
        f"F.kl_div(F.log_softmax({pred}, dim=1), F.softmax({y}, dim=1), reduction='batchmean')",
    )


def _criterion(world: World, kind: str) -> str:
    """A loss module of the program's own, or one of torch's under a name."""
    dice = world.dice
    if kind == "classes":
        return world.help("criterion", ["criterion = nn.CrossEntropyLoss()"])
    if dice.chance(0.5):
        return world.help("mse", [f"mse = nn.{dice.one('MSELoss', 'SmoothL1Loss', 'L1Loss')}()"])
    flow = dice.one(
        ["difference = pred - target", "return (difference * difference).mean()"],
        [
            "error = torch.abs(pred - target)",
            "small = error < 1",
            "return torch.where(small, 0.5 * error ** 2, error - 0.5).mean()",
        ],
        ["loss = (pred - target).pow(2).sum(dim=1)", "loss = loss.mean()", "return loss"],
    )
    if dice.chance(0.5):
        return world.help("distance", under("def distance(pred, target):", flow))
    name = world.help(
        "Distance", under("class Distance(nn.Module):", under("def forward(self, pred, target):", flow))
    )
    return f"{name}()"


def _several(world: World, pred: str, y: str, kind: str, name: str) -> Lines:
    """A loss of several terms in a container."""
    dice = world.dice
    first, second = term(world, pred, y, kind), f"{pred}.pow(2).mean()"
    form = dice.randint(0, 4)
    if form == 0:
        return [f'terms = {{"fit": {first}, "size": 0.1 * {second}}}', f"{name} = sum(terms.values())"]
    if form == 1:
        return [
            "terms = []",
            f"terms.append({first})",
            f"terms.append(0.1 * {second})",
            f"{name} = torch.stack(terms).sum()",
        ]
    if form == 2:
        return [f"{name} = 0.0", f"for term in ({first}, 0.01 * {second}):", f"    {name} = {name} + term"]
    if form == 3:
        return [f"{name} = 0", f"{name} += {first}", f"{name} += 0.1 * {second}"]
    return [f"fit = {first}", f"size = {second}", f"{name} = fit + 0.1 * size"]


def _weighed(world: World, pred: str, y: str, kind: str, name: str) -> Lines:
    """A loss for each sample, weighed."""
    if kind == "classes":
        return [
            f"each = F.cross_entropy({pred}, {y}, reduction='none')",
            f"{name} = (each * torch.linspace(0.5, 1.5, len(each))).mean()",
        ]
    weights = world.dice.one(
        "torch.exp(-each.detach())", "torch.softmax(each.detach(), 0)", "(each.detach() < 10).float()"
    )
    return [
        f"each = ({pred} - {y}).pow(2).mean(1)",
        f"weights = {weights}",
        f"{name} = (weights * each).sum() / weights.sum().clamp(min=1e-3)",
    ]


def extras(world: World, loss: str, net: str) -> Lines:
    """Terms that come on top, most of them behind a flag."""
    dice = world.dice
    term = dice.one(
        f"1e-3 * sum(p.pow(2).sum() for p in {net}.parameters())",
        f"1e-4 * sum(p.abs().sum() for p in {net}.parameters() if p.requires_grad)",
        f"1e-3 * torch.stack([p.norm() for p in {net}.parameters()]).sum()",
    )
    line = dice.one(f"{loss} = {loss} + {term}", f"{loss} = {term} + {loss}")
    form = dice.randint(0, 3)
    if form == 0:
        return [line]
    if form == 1:
        return under(f"if {world.flag()}:", [line])
    if form == 2:
        name = world.fresh("penalty_")
        return [
            f"{name} = 0.0",
            *under(f"for p in {net}.parameters():", [f"{name} = {name} + p.pow(2).mean()"]),
            f"{loss} = {loss} + 1e-3 * {name}",
        ]
    return under(f"if {world.flag()} and not {world.flag()}:", [f"{loss} = 2 * {loss}"])


def arms(world: World, loss: str, pred: str) -> Lines:
    """A long choice by a word."""
    dice = world.dice
    many = dice.choice([3, 4, 5, 8, 20, 60, 200]) if dice.chance(0.5) else 3
    world.arms = max(world.arms, many)
    lines: Lines = []
    for number in range(many - 1):
        word = "elif" if number else "if"
        change = dice.one(
            f"{loss} = {loss} * {1 + number % 7 / 10}",
            f"{loss} = {loss} + {number % 5 + 1}e-3 * {pred}.pow(2).mean()",
            f"{loss} = {loss} + 0.01 * {pred}.abs().mean()",
            f"{loss} = {loss} / {1 + number % 3}",
        )
        lines += under(f'{word} {world.mode} == "m{number + 1}":', [change])
    return lines + (under("else:", [f"{loss} = {loss} * 1.0"]) if dice.chance(0.5) else [])


def many_flags(world: World, loss: str, pred: str) -> Lines:
    """Flags in a row, each with a little to do."""
    dice = world.dice
    many = dice.choice([3, 4, 6, 10, 40, 200])
    lines: Lines = []
    for _ in range(many):
        change = dice.one(
            f"{loss} = {loss} * 1.01",
            f"{loss} = {loss} + 1e-3 * {pred}.pow(2).mean()",
            'print("option")',
            f"history.append({loss}.item())",
        )
        lines += under(f"if {world.numbered_flag()}:", [change])
    return ["history = []", *lines]


def books(world: World, loss: str, pred: str, net: str) -> Lines:
    """What is written down after a batch: none of it is trained on. `$log` is a list, `$sums` a number."""
    dice = world.dice
    line = dice.one(
        f"$log.append({loss}.item())",
        f"$log.append(float({loss}))",
        f"$log.append({loss}.detach())",
        f"$log += [{loss}.item()]",
        f"$total = $total + {loss}.item()",
        f"$total += {loss}.detach()",
        f"$total += float({loss}) * len({pred})",
        f"$total += {loss}.data",
        f'print(f"loss {{{loss}.item():.3f}}")',
        f'print("step", {loss}.detach().numpy())',
        f"$best = min($best, {loss}.item())",
        f"$log.append({pred}.detach().mean().item())",
        f"$log.append(({pred}.detach().argmax(1) == 0).float().mean().item())",
        f"$log.append(sum(p.grad.norm().item() for p in {net}.parameters() if p.grad is not None))",
        f"$log.append(torch.stack([p.detach().norm() for p in {net}.parameters()]).max())",
    )
    lines = [line]
    if dice.chance(0.25):
        lines = under(f"if {world.flag()}:", lines)
    elif dice.chance(0.2):
        lines = under("with torch.no_grad():", lines)
    return lines
