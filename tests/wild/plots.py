"""Whole ways to train, as pieces that a house puts together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from . import objectives, updates
from .nets import net
from .world import Lines, World, under


@dataclass
class Stage:
    """Lines of a step that may live in a function of their own."""

    name: str
    lines: Lines
    takes: tuple[str, ...] = ()
    gives: tuple[str, ...] = ()


@dataclass
class Plot:
    """What is made, what happens with each batch, and what follows an epoch."""

    setup: Lines
    stages: list[Stage]
    width: int = 4
    out: int = 2
    kind: str = "rows"
    begin: Lines = field(default_factory=list)
    after: Lines = field(default_factory=list)
    end: Lines = field(default_factory=list)
    whole: bool = False
    """Whether the stages share more than they take and give, so that none can live by itself."""


def sizes(world: World) -> tuple[int, int]:
    return world.dice.randint(3, 6), world.dice.randint(2, 4)


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


PLOTS: tuple[Callable[[World], Plot], ...] = (
    supervised,
    supervised,
    supervised,
    accumulated,
    micro_batches,
    two_optimizers,
    one_for_both,
    gan,
    gan,
    wgan_gp,
    actor_critic,
    actor_critic,
    reinforce,
    q_learning,
    soft_actor,
    meta_learning,
    reptile,
    variational,
    distilled,
    self_taught,
    truncated,
    by_hand,
    by_hand,
    input_optimised,
    adversarial_examples,
    closured,
    retained,
    surgery,
    sharpness,
    tasks,
    fine_tuned,
    contrastive,
    scaled,
    alternating,
    continual,
    unsupervised_energy,
    wide,
)
