"""Actors with a critic beside them."""

from __future__ import annotations

from . import updates
from .nets import net
from .plot import Plot, Stage, sizes
from .world import World, under


def actor_critic(world: World) -> Plot:
    dice = world.dice
    width, actions = sizes(world)
    shared = dice.chance(0.4)
    if shared:
        body = under(
            "def __init__(self):",
            [
                "super().__init__()",
                f"self.trunk = {net(world, width, 6, 2)}",
                f"self.actor = nn.Linear(6, {actions})",
                "self.value = nn.Linear(6, 1)",
            ],
        )
        body += under(
            "def forward(self, x):",
            ["h = torch.tanh(self.trunk(x))", "return self.actor(h), self.value(h).squeeze(-1)"],
        )
        name = world.help("ActorCritic", under("class ActorCritic(nn.Module):", body))
        setup = [f"$agent = {name}()", f"$opt = {updates.optimizer(world, '$agent.parameters()')}"]
        flow = ["logits, values = $agent(x)"]
        run = [
            "loss = policy_loss + 0.5 * value_loss - 0.01 * dist.entropy().mean()",
            "$opt.zero_grad()",
            "loss.backward()",
            *updates.between(world, "$agent"),
            "$opt.step()",
        ]
    else:
        setup = [
            f"$actor = {net(world, width, actions, 3)}",
            f"$critic = {net(world, width, 1, 3)}",
            f"$opt_a = {updates.optimizer(world, '$actor.parameters()')}",
            f"$opt_c = {updates.optimizer(world, '$critic.parameters()')}",
        ]
        flow = ["logits = $actor(x)", "values = $critic(x).squeeze(-1)"]
        run = dice.one(
            [
                "$opt_a.zero_grad()",
                "policy_loss.backward()",
                "$opt_a.step()",
                "$opt_c.zero_grad()",
                "value_loss.backward()",
                "$opt_c.step()",
            ],
            [
                "loss = policy_loss + value_loss",
                "$opt_a.zero_grad()",
                "$opt_c.zero_grad()",
                "loss.backward()",
                "$opt_a.step()",
                "$opt_c.step()",
            ],
            [
                "$opt_c.zero_grad()",
                "value_loss.backward()",
                "$opt_c.step()",
                "",
                "$opt_a.zero_grad()",
                "policy_loss.backward()",
                "$opt_a.step()",
            ],
        )
        run = [line for line in run if line]
    flow += [
        "dist = torch.distributions.Categorical(logits=logits)",
        "action = dist.sample()",
        "rewards = (action == 0).float() + y[:, 0]",
    ]
    returns = dice.one(
        ["returns = rewards + 0.9 * values.detach().roll(-1)"],
        under("with torch.no_grad():", ["returns = rewards + 0.9 * torch.roll(values, -1)"]),
        [
            "returns = []",
            "running = 0.0",
            *under(
                "for reward in reversed(rewards.tolist()):",
                ["running = reward + 0.9 * running", "returns.insert(0, running)"],
            ),
            "returns = torch.tensor(returns)",
        ],
        [
            "returns = torch.zeros_like(rewards)",
            "running = torch.zeros(())",
            *under(
                "for t in range(len(rewards) - 1, -1, -1):",
                ["running = rewards[t] + 0.95 * running", "returns[t] = running"],
            ),
        ],
    )
    flow += returns
    flow += [
        dice.one(
            "advantage = returns - values.detach()",
            "advantage = (returns - values).detach()",
            "advantage = returns - values.data",
        )
    ]
    if dice.chance(0.3):
        flow.append("advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-6)")
    policy = dice.one(
        "policy_loss = -(dist.log_prob(action) * advantage).mean()",
        "policy_loss = -(advantage * dist.log_prob(action)).sum()",
        "policy_loss = (-dist.log_prob(action) * advantage).mean()",
    )
    flow += [
        policy,
        dice.one(
            "value_loss = F.mse_loss(values, returns)",
            "value_loss = (returns - values).pow(2).mean()",
            "value_loss = F.smooth_l1_loss(values, returns)",
        ),
    ]
    return Plot(setup, [Stage("learn", [*flow, *run], ("x", "y"), ("policy_loss", "value_loss"))], width, 2)


def soft_actor(world: World) -> Plot:
    """A deterministic actor, a critic of state and action, a temperature."""
    dice = world.dice
    width, act = sizes(world)
    setup = [
        f"$actor = {net(world, width, act, 3)}",
        f"$critic = {net(world, width + act, 1, 2)}",
        dice.one(
            "$log_alpha = torch.zeros(1, requires_grad=True)", "$log_alpha = nn.Parameter(torch.zeros(1))"
        ),
        f"$opt_a = {updates.optimizer(world, '$actor.parameters()')}",
        f"$opt_c = {updates.optimizer(world, '$critic.parameters()')}",
        "$opt_t = torch.optim.Adam([$log_alpha], lr=1e-2)",
    ]
    critic = [
        *under(
            "with torch.no_grad():",
            ["action = torch.tanh($actor(x))", "goal = y[:, :1] + 0.9 * $critic(torch.cat([x, action], 1))"],
        ),
        f"q = $critic(torch.cat([x, torch.randn(x.size(0), {act})], dim=1))",
        "q_loss = F.mse_loss(q, goal)",
        "$opt_c.zero_grad()",
        "q_loss.backward()",
        "$opt_c.step()",
    ]
    freeze = dice.chance(0.4)
    actor = [
        *(["$critic.requires_grad_(False)"] if freeze else []),
        "mean = torch.tanh($actor(x))",
        "action = mean + 0.1 * torch.randn_like(mean)",
        "log_prob = -(action - mean).pow(2).sum(1) - mean.pow(2).sum(1)",
        dice.one(
            "alpha = $log_alpha.exp().detach()",
            "alpha = $log_alpha.detach().exp()",
            "alpha = $log_alpha.exp().item()",
        ),
        "a_loss = (alpha * log_prob - $critic(torch.cat([x, action], 1)).squeeze(1)).mean()",
        "$opt_a.zero_grad()",
        "a_loss.backward()",
        "$opt_a.step()",
        *(["$critic.requires_grad_(True)"] if freeze else []),
    ]
    heat = [
        dice.one(
            "t_loss = -($log_alpha * (log_prob + 1.0).detach()).mean()",
            "t_loss = -($log_alpha.exp() * (log_prob.detach() + 1.0)).mean()",
        ),
        "$opt_t.zero_grad()",
        "t_loss.backward()",
        "$opt_t.step()",
    ]
    return Plot(
        setup,
        [
            Stage("train_critic", critic, ("x", "y"), ("q_loss",)),
            Stage("train_actor", actor, ("x",), ("a_loss", "log_prob")),
            Stage("train_alpha", heat, ("log_prob",)),
        ],
        width,
        2,
    )
