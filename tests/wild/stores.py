"""What is kept from earlier turns: pools of pictures, buffers of play, slow copies of a network."""

from __future__ import annotations

from . import objectives, updates
from .nets import net
from .plot import Plot, Stage, sizes
from .world import Lines, World, under


def pooled(world: World) -> Plot:
    """A critic that sees older pictures, too, and a generator that learns every other turn."""
    dice = world.dice
    width, _ = sizes(world)
    setup = [
        f"$generator = {net(world, 3, width, 2)}",
        f"$critic = {net(world, width, 1, 2)}",
        f"$pool = {_pool(world, width)}()",
        f"$opt_g = {updates.optimizer(world, '$generator.parameters()')}",
        f"$opt_d = {updates.optimizer(world, '$critic.parameters()')}",
        "$turn = 0",
    ]
    critic = [
        "fake = $generator(torch.randn(x.size(0), 3))",
        "old = $pool.query(fake)",
        "d_loss = F.softplus(-$critic(x)).mean() + F.softplus($critic(old)).mean()",
        *updates.cleared(world, "$opt_d", "$critic"),
        "d_loss.backward()",
        "$opt_d.step()",
    ]
    again = dice.one([], ["fake = $generator(torch.randn(x.size(0), 3))"])
    maker = [
        *again,
        "g_loss = F.softplus(-$critic(fake)).mean()",
        "$opt_g.zero_grad()",
        "g_loss.backward()",
        "$opt_g.step()",
    ]
    lines = dice.one(
        [*critic, "$turn += 1", *under("if $turn % 2 == 0:", maker)],
        [*critic, *under("if $turn % 2 == 1:", maker), "$turn += 1"],
        ["$turn += 1", *critic, *under("if $turn % 2 != 0:", ["@leave"]), *maker],
        ["n_critic = 2", "$turn += 1", *critic, *under("if not $turn % n_critic:", maker)],
    )
    return Plot(setup, [Stage("step", lines, ("x",))], width, 2)


def _pool(world: World, width: int) -> str:
    """A class that answers with what it is given, or with what it was given before."""
    dice = world.dice
    if dice.chance(0.4):
        body = under("def __init__(self):", [f"self.kept = torch.zeros(6, {width})", "self.at = 0"])
        store = dice.one("self.kept[self.at] = image.detach()", "self.kept[self.at].copy_(image.detach())")
        flow = under("for image in images:", [store, "self.at = (self.at + 1) % 6"])
        answer = dice.one("return self.kept[:images.size(0)].clone()", "return self.kept.clone()")
        return world.help(
            "Ring", under("class Ring:", [*body, *under("def query(self, images):", [*flow, answer])])
        )
    world.imports.add("import random")
    start = dice.one("images = images.detach()", "images = images.data", "images = images.detach().clone()")
    inner = [
        "image = image.unsqueeze(0)",
        *under("if len(self.kept) < 6:", ["self.kept.append(image)", "answer.append(image)", "continue"]),
        *under(
            "if random.random() > 0.5:",
            [
                "place = random.randrange(len(self.kept))",
                "answer.append(self.kept[place].clone())",
                "self.kept[place] = image",
            ],
        ),
        *under("else:", ["answer.append(image)"]),
    ]
    flow = [start, "answer = []", *under("for image in images:", inner), "return torch.cat(answer, 0)"]
    body = under("def __init__(self):", ["self.kept = []"]) + under("def query(self, images):", flow)
    return world.help("Pool", under("class Pool:", body))


def replayed(world: World) -> Plot:
    """Steps of play are kept without their graphs, and drawn from later; a slow copy gives the goals."""
    dice = world.dice
    width, actions = sizes(world)
    world.imports |= {"import copy", "import random", "from collections import deque"}
    setup = [
        f"$online = {net(world, width, actions, 3)}",
        "$slow = copy.deepcopy($online)",
        dice.one("$memory = deque(maxlen=16)", "$memory = []"),
        f"$opt = {updates.optimizer(world, '$online.parameters()')}",
    ]
    frozen = under("for p in $slow.parameters():", ["p.requires_grad = False"])
    setup += dice.one([], ["$slow.eval()"], frozen, ["$slow.load_state_dict($online.state_dict())"])
    learn = [
        *under("if len($memory) < 4:", ["@leave"]),
        "batch = random.sample(list($memory), 4)",
        "states, taken, rewards, after = map(torch.stack, zip(*batch))",
        "values = $online(states).gather(1, taken.unsqueeze(1)).squeeze(1)",
        *_goal(world),
        f"loss = {dice.one('F.smooth_l1_loss(values, goal)', 'F.mse_loss(values, goal)', '(values - goal).pow(2).mean()')}",
        *updates.cleared(world, "$opt", "$online"),
        "loss.backward()",
        *updates.between(world, "$online"),
        "$opt.step()",
    ]
    stages = [Stage("play", _play(world), ("x", "y")), Stage("learn", learn), Stage("follow", _follow(world))]
    return Plot(setup, stages, width, 2)


def _play(world: World) -> Lines:
    """Rows of a batch as states, what was done, and what came after."""
    dice = world.dice
    act = dice.one(
        [*under("with torch.no_grad():", ["action = $online(state.unsqueeze(0)).argmax(1)[0]"])],
        ["action = $online(state.unsqueeze(0)).argmax(1)[0]"],
        ["action = $online(state.unsqueeze(0)).detach().max(1)[1][0]"],
    )
    keep = "$memory.append((state.detach(), action, reward.float().detach(), state * 0.9))"
    return under("for state, reward in zip(x, y[:, 0]):", [*act, keep])


def _goal(world: World) -> Lines:
    best = world.dice.one("$slow(after).max(1)[0]", "$slow(after).amax(dim=1)")
    return world.dice.one(
        under("with torch.no_grad():", [f"goal = rewards + 0.9 * {best}"]),
        [f"goal = rewards + 0.9 * {best}.detach()"],
        [f"goal = (rewards + 0.9 * {best}).detach()"],
    )


def _follow(world: World) -> Lines:
    pairs = "for old, new in zip($slow.parameters(), $online.parameters()):"
    return world.dice.one(
        under(pairs, ["old.data.copy_(0.9 * old.data + 0.1 * new.data)"]),
        under("with torch.no_grad():", under(pairs, ["old.lerp_(new, 0.1)"])),
        under(pairs, ["old.data.mul_(0.9)", "old.data.add_(0.1 * new.data)"]),
        [
            "slow_state, new_state = $slow.state_dict(), $online.state_dict()",
            *under(
                "for key in new_state:", ["slow_state[key] = 0.1 * new_state[key] + 0.9 * slow_state[key]"]
            ),
            "$slow.load_state_dict(slow_state)",
        ],
    )


def swapped(world: World) -> Plot:
    """An average stands in for the weights while it is looked at, and they are put back."""
    dice = world.dice
    width, out = sizes(world)
    body = [
        *under(
            "def __init__(self, model):",
            [
                "self.model = model",
                "self.average = {n: p.detach().clone() for n, p in model.named_parameters()}",
                "self.kept = {}",
            ],
        ),
        *under(
            "def update(self):",
            under(
                "for n, p in self.model.named_parameters():",
                [
                    dice.one(
                        "self.average[n].mul_(0.9).add_(p.data, alpha=0.1)",
                        "self.average[n] = 0.9 * self.average[n] + 0.1 * p.detach()",
                    )
                ],
            ),
        ),
        *under(
            "def apply(self):",
            under(
                "for n, p in self.model.named_parameters():",
                under(
                    "if p.requires_grad:",
                    [
                        dice.one("self.kept[n] = p.data", "self.kept[n] = p.data.clone()"),
                        "p.data = self.average[n]",
                    ],
                ),
            ),
        ),
        *under(
            "def restore(self):",
            [
                *under(
                    "for n, p in self.model.named_parameters():",
                    under("if n in self.kept:", ["p.data = self.kept[n]"]),
                ),
                "self.kept = {}",
            ],
        ),
    ]
    name = world.help("Average", under("class Average:", body))
    setup = [
        f"$model = {net(world, width, out, 3)}",
        f"$opt = {updates.optimizer(world, '$model.parameters()')}",
        f"$shadow = {name}($model)",
    ]
    learn = [
        "pred = $model(x)",
        *objectives.loss(world, "pred", "y"),
        *updates.cleared(world, "$opt", "$model"),
        "loss.backward()",
        "$opt.step()",
        "$shadow.update()",
    ]
    look = [
        "$shadow.apply()",
        *under("with torch.no_grad():", ["value = $model(x).pow(2).mean()"]),
        "$shadow.restore()",
    ]
    return Plot(
        setup, [Stage("learn", learn, ("x", "y"), ("loss", "pred")), Stage("look", look, ("x",))], width, out
    )


def rounded(world: World) -> Plot:
    """Rough weights for the way there and back, the fine ones for the step."""
    dice = world.dice
    width, out = sizes(world)
    setup = [
        f"$model = {net(world, width, out, 3)}",
        f"$opt = {updates.optimizer(world, '$model.parameters()')}",
    ]
    each = "for p in $model.parameters():"
    rough = dice.one("p.data.sign() * p.data.abs().mean()", "torch.round(p.data * 8) / 8", "p.data * 0.9")
    take, back = dice.one(
        (
            ["kept = [p.data for p in $model.parameters()]", *under(each, [f"p.data = {rough}"])],
            under("for p, fine in zip($model.parameters(), kept):", ["p.data = fine"]),
        ),
        (
            [
                "kept = [p.data.clone() for p in $model.parameters()]",
                *under(each, [f"p.data.copy_({rough})"]),
            ],
            under("for p, fine in zip($model.parameters(), kept):", ["p.data.copy_(fine)"]),
        ),
        (
            [
                "kept = {}",
                *under(
                    "for name, p in $model.named_parameters():", ["kept[name] = p.data", f"p.data = {rough}"]
                ),
            ],
            under("for name, p in $model.named_parameters():", ["p.data = kept[name]"]),
        ),
    )
    flow = ["pred = $model(x)", *objectives.loss(world, "pred", "y"), "$opt.zero_grad()", "loss.backward()"]
    tried = [*under("try:", flow), *under("finally:", back)] if dice.chance(0.3) else [*flow, *back]
    lines = [*take, *tried, "$opt.step()"]
    return Plot(setup, [Stage("step", lines, ("x", "y"), ("loss", "pred"))], width, out)
