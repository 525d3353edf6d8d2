"""Blocks that are classes, functions and words of the program's own: defaults, registries, settings, inheritance."""

from __future__ import annotations

from .bodies import Body
from .world import World, under

KEEPS_INPUT = ("nn.SiLU", "nn.GELU", "nn.Mish", "nn.Softplus", "nn.Identity")
"""Layers whose result may be written."""


def overridden(body: Body) -> None:
    """A default whose result may not be written, and callers that all bring another."""
    dice = body.world.dice
    if dice.chance(0.5):
        return _overridden_function(body)
    init = ["super().__init__()", "self.fc = nn.Linear(width, width)", "self.act = act(**kwargs)"]
    flow = ["h = self.act(self.fc(x))", "h += x", "return h"]
    body.world.help(
        "Mixed",
        under(
            "class Mixed(nn.Module):",
            [
                *under(
                    f"def __init__(self, width, act={dice.one('nn.Sigmoid', 'nn.ReLU')}, **kwargs):", init
                ),
                *under("def forward(self, x):", flow),
            ],
        ),
    )
    given = dice.one(
        *[f"act={kind}" for kind in KEEPS_INPUT],
        "nn.SiLU",
        'act=nn.GELU, approximate="tanh"',
        "nn.Softplus, beta=2",
        "act=nn.SiLU, inplace=True",
    )
    body.go(f"{body.make('mixed', f'Mixed({body.width}, {given})')}({body.h})")
    return None


def _overridden_function(body: Body) -> None:
    dice = body.world.dice
    flow = ["h = act(layer(x), **kwargs)", "h *= 0.5", "return h"]
    default = dice.one("torch.sigmoid", "torch.tanh", "F.relu")
    name = body.world.help("mixed", under(f"def mixed(x, layer, act={default}, **kwargs):", flow))
    given = dice.one("F.silu", "act=F.gelu", "act=F.softplus, beta=2", "act=lambda t: t * 2", "torch.abs")
    body.go(f"{name}({body.h}, {body.linear()}, {given})")


def passed_on(body: Body) -> None:
    """What is given is given on."""
    dice, h = body.world.dice, body.h
    name = body.world.help(
        "through", under("def through(call, *given, **named):", ["return call(*given, **named)"])
    )
    if dice.chance(0.4):
        plain = dice.one("F.dropout, {}, p=0.1, training=self.training", "torch.clamp, {}, min=-4, max=4")
        return body.go(f"{name}({plain.format(h)})")
    layer = body.linear()
    return body.go(
        dice.one(
            f"{name}(F.relu, {layer}({h}), inplace=True)",
            f"{name}({layer}, {h})",
            f"{name}(torch.add, {h}, {layer}({h}), alpha=0.5)",
        )
    )


def inherited(body: Body) -> None:
    """A class whose forward goes through that of its parent."""
    dice, world = body.world.dice, body.world
    parent = _parent(world)
    name = world.fresh("Wide")
    init = ["super().__init__(width)", "self.extra = nn.Linear(width, width)"]
    flow = dice.one(
        ["h = super().forward(x)", "return h + self.extra(h)"],
        ["h = self.extra(super().forward(x))", "h += x", "return h"],
        [f"h = super({name}, self).forward(x)", "return self.extra(h)"],
        ["return self.extra(super().forward(x)).mul_(0.5)"],
    )
    change = dice.one("F.silu(h)", "torch.abs(h)", "h * 2", "F.softplus(h)")
    lines = [
        *under("def __init__(self, width):", init),
        *under("def activate(self, h):", [f"return {change}"]),
    ]
    world.help(name, under(f"class {name}({parent}):", [*lines, *under("def forward(self, x):", flow)]))
    body.go(f"{body.make('wide', f'{name}({body.width})')}({body.h})")


def _parent(world: World) -> str:
    lines = under("def __init__(self, width):", ["super().__init__()", "self.fc = nn.Linear(width, width)"])
    lines += under("def activate(self, h):", ["raise NotImplementedError"])
    lines += under("def forward(self, x):", ["h = self.activate(self.fc(x))", "h += 0.1", "return h"])
    return world.help("Block", under("class Block(nn.Module):", lines))


def property_read(body: Body) -> None:
    dice, width = body.world.dice, body.width
    stem = body.attribute("gain")
    name = stem.removeprefix("self.")
    kept = body.make("log_gain", f"nn.Parameter(torch.zeros({width}))")
    value = dice.one(f"{kept}.exp()", f"F.softplus({kept})", f"1 + {kept}")
    body.methods += ["@property", *under(f"def {name}(self):", [f"return {value}"]), ""]
    body.go(dice.one(f"{body.h} * {stem}", f"{stem} * {body.h} + {stem}"))


def registered(body: Body) -> None:
    """An activation by its name."""
    dice, h = body.world.dice, body.h
    layer = body.linear()
    table = body.world.help(
        "ACTIVATIONS", ['ACTIVATIONS = {"relu": nn.ReLU, "tanh": nn.Tanh, "silu": nn.SiLU, "gelu": nn.GELU}']
    )
    word = dice.one("silu", "gelu")
    form = dice.randint(0, 4)
    if form <= 1:
        kind = dice.one(f'{table}["{word}"]()', 'getattr(nn, "SiLU")()', f'{table}.get("{word}", nn.Tanh)()')
        body.go(f"{body.make('act', kind)}({layer}({h}))")
    elif form == 2:
        kind = body.make("kind", f'"{word}"')
        body.go(f"getattr(F, {kind})({layer}({h}))")
    elif form == 3:
        kind = body.make("kind", f'"{word}"')
        body.go(f'{{"silu": F.silu, "gelu": F.gelu, "tanh": torch.tanh}}[{kind}]({layer}({h}))')
    else:
        kind = body.make("kind", f'"{word}"')
        body.go(f"{layer}({h})")
        body.lines += under(f'if {kind} == "tanh":', [f"{body.h} = torch.tanh({body.h})"])
        body.lines += under(f'elif {kind} in ("silu", "gelu"):', [f"{body.h} = F.silu({body.h})"])
        body.lines += under("else:", ["raise NotImplementedError"])
    if dice.chance(0.5):
        body.lines.append(f"{body.h} *= 0.5")


def configured(body: Body) -> None:
    """A block by a dataclass."""
    dice, world = body.world.dice, body.world
    world.imports.add("from dataclasses import dataclass, field")
    fields = ["width: int = 6", 'act: str = "silu"', "residual: bool = False"]
    fields.append("sizes: list = field(default_factory=lambda: [5, 4])")
    name = world.help("Config", ["@dataclass", *under("class Config:", fields)])
    config = body.make("config", dice.one(f"{name}()", f"{name}(width=5)", f'{name}(act="silu", width=7)'))
    up = body.make("up", f"nn.Linear({body.width}, {config}.width)")
    down = body.make("down", f"nn.Linear({config}.width, {body.width})")
    wide = body.local("wide")
    body.lines.append(f"{wide} = {up}({body.h})")
    body.lines += under(f'if {config}.act == "silu":', [f"{wide} = F.silu({wide})"])
    body.lines += under("else:", [f"{wide} = torch.sigmoid({wide})"])
    body.lines += under(f"if not {config}.residual:", [f"{wide} += 0.1"])
    body.go(f"{down}({wide})")


def assembled(body: Body) -> None:
    """Layers that are put into another object's container, one after the other."""
    dice, width = body.world.dice, body.width
    init = ["super().__init__()", "self.blocks = nn.ModuleList()"]
    flow = under("for block in self.blocks:", ["x = torch.tanh(block(x))"])
    lines = [*under("def __init__(self):", init), *under("def forward(self, x):", [*flow, "return x"])]
    name = body.world.help("Stack", under("class Stack(nn.Module):", lines))
    stack = body.make("stacked", f"{name}()")
    layer = f"nn.Linear({width}, {width})"
    body.made += under(
        "for i in range(2):",
        dice.one(
            [f"{stack}.blocks.append({layer})"],
            [f"block = {layer}", "nn.init.xavier_uniform_(block.weight)", f"{stack}.blocks.append(block)"],
            [f"{stack}.blocks.add_module(str(i), {layer})"],
            [f"{stack}.blocks += [{layer}]"],
            [f"{stack}.blocks.insert(0, {layer})"],
        ),
    )
    body.go(f"{stack}({body.h})")


def moded(body: Body) -> None:
    """A mode by its name decides whether gradients are made."""
    dice, layer = body.world.dice, body.linear()
    name = body.attribute("features").removeprefix("self.")
    inside = under('with torch.set_grad_enabled(mode == "train"):', [f"t = torch.tanh({layer}(t))"])
    flow = dice.one(
        [*inside, "return t"],
        [
            *under('if mode == "train":', [f"return {layer}(t)"]),
            *under("with torch.no_grad():", [f"return {layer}(t)"]),
        ],
        [
            *under('if mode == "val":', under("with torch.no_grad():", [f"t = {layer}(t)"])),
            *under('elif mode == "train":', [f"t = {layer}(t)"]),
            *under("else:", ["raise ValueError(mode)"]),
            "t += 0.1",
            "return t",
        ],
    )
    body.methods += [*under(f'def {name}(self, t, mode="train"):', flow), ""]
    mode = dice.one("", ', "train"', ', mode="train" if torch.is_grad_enabled() else "val"')
    body.go(f"self.{name}({body.h}{mode})")
