"""Learning from rewards alone, or from values that are looked up."""

from __future__ import annotations

from . import updates
from .nets import net
from .plot import Plot, Stage, sizes
from .world import World, under


def reinforce(world: World) -> Plot:
    dice = world.dice
    width, actions = sizes(world)
    setup = [
        f"$policy = {net(world, width, actions, 3)}",
        f"$opt = {updates.optimizer(world, '$policy.parameters()')}",
        "$saved = []",
        "$rewards = []",
    ]
    act = [
        "dist = torch.distributions.Categorical(logits=$policy(state.unsqueeze(0)))",
        "action = dist.sample()",
        "$saved.append(dist.log_prob(action))",
        "$rewards.append(float(action.item() == 0))",
    ]
    learn = [
        "returns, running = [], 0.0",
        *under(
            "for reward in $rewards[::-1]:",
            ["running = reward + 0.9 * running", "returns.insert(0, running)"],
        ),
        "returns = torch.tensor(returns)",
        "returns = (returns - returns.mean()) / (returns.std() + 1e-6)",
        *dice.one(
            [
                "losses = [-log_prob * value for log_prob, value in zip($saved, returns)]",
                "loss = torch.cat(losses).sum()",
            ],
            ["loss = -(torch.cat($saved) * returns).sum()"],
            [
                "loss = 0",
                *under(
                    "for log_prob, value in zip($saved, returns):", ["loss = loss - (log_prob * value).sum()"]
                ),
            ],
            ["loss = torch.stack([-l * r for l, r in zip($saved, returns)]).mean()"],
        ),
        "$opt.zero_grad()",
        "loss.backward()",
        "$opt.step()",
        *dice.one(
            ["$saved.clear()", "$rewards.clear()"],
            ["$saved = []", "$rewards = []"],
            ["del $saved[:]", "del $rewards[:]"],
        ),
    ]
    return Plot(
        setup, [Stage("play", under("for state in x:", act), ("x",)), Stage("learn", learn)], width, 2
    )


def q_learning(world: World) -> Plot:
    dice = world.dice
    width, actions = sizes(world)
    world.imports.add("import copy")
    setup = [
        f"$online = {net(world, width, actions, 3)}",
        f"$target = {dice.one('copy.deepcopy($online)', 'copy.deepcopy($online).eval()', 'copy.deepcopy($online).requires_grad_(False)')}",
        f"$opt = {updates.optimizer(world, '$online.parameters()')}",
    ]
    target = dice.one(
        under(
            "with torch.no_grad():", ["best = $target(following).max(1).values", "goal = reward + 0.9 * best"]
        ),
        ["goal = reward + 0.9 * $target(following).max(dim=1)[0].detach()"],
        ["goal = (reward + 0.9 * $target(following).amax(1)).detach()"],
        under(
            "with torch.no_grad():",
            [
                "chosen = $online(following).argmax(1, keepdim=True)",
                "goal = reward + 0.9 * $target(following).gather(1, chosen).squeeze(1)",
            ],
        ),
    )
    flow = [
        f"action = torch.randint(0, {actions}, (x.size(0),))",
        "reward = y[:, 0]",
        "following = x.roll(1, 0)",
        dice.one(
            "q = $online(x).gather(1, action.unsqueeze(1)).squeeze(1)",
            "q = $online(x)[torch.arange(x.size(0)), action]",
        ),
        *target,
    ]
    flow += [
        dice.one(
            "loss = F.smooth_l1_loss(q, goal)",
            "loss = F.mse_loss(q, goal)",
            "loss = (q - goal).pow(2).mean()",
        )
    ]
    sync = dice.one(
        ["$target.load_state_dict($online.state_dict())"],
        under(
            "with torch.no_grad():",
            under(
                "for p, q in zip($target.parameters(), $online.parameters()):",
                ["p.mul_(0.9).add_(q, alpha=0.1)"],
            ),
        ),
        under(
            "for p, q in zip($target.parameters(), $online.parameters()):",
            ["p.data.copy_(0.1 * q.data + 0.9 * p.data)"],
        ),
        under("for p, q in zip($target.parameters(), $online.parameters()):", ["p.data.lerp_(q.data, 0.1)"]),
    )
    return Plot(
        setup,
        [
            Stage("target_loss", flow, ("x", "y"), ("loss",)),
            Stage("update", updates.update(world, "$opt", "loss", "$online"), ("loss",)),
            Stage("sync", sync),
        ],
        width,
        2,
    )
