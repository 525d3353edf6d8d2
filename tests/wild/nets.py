"""Module classes from blocks, and the ways to build one."""

from __future__ import annotations

from . import kinds, questions, towers
from .bodies import STEPS, Body
from .world import Lines, World, under

NEWER = (
    *(towers.sized, towers.sized, towers.turned, towers.turned, towers.iterated, towers.early, towers.nested),
    *(kinds.overridden, kinds.passed_on, kinds.inherited, kinds.property_read, kinds.registered),
    *(kinds.configured, kinds.assembled, kinds.moded),
    *(questions.asked, questions.asked, questions.watched, questions.laid_aside, questions.gently),
)
BLOCKS = (*STEPS, *NEWER)
STEMS = ("Net", "Model", "Encoder", "Policy", "Backbone", "Head", "Critic", "Mixer", "Tower", "Projector")


def net(world: World, width: int, out: int, most: int = 4, last: str = "") -> str:
    """The expression that builds a module of `width` rows to `out`; its class is written down."""
    dice = world.dice
    if dice.chance(0.12):
        return plain(world, width, out, last)
    name = world.fresh(dice.choice(STEMS))
    body = Body(world, width)
    if dice.chance(0.3):
        body.go(f"{body.linear(5)}({body.h})", 5)
    for step in dice.choices(BLOCKS, k=dice.randint(1, most)):
        if body.width < 3:
            body.go(f"{body.linear(4)}({body.h})", 4)
        step(body)
    head = body.linear(out, "head")
    answer = f"{head}({body.h})"
    world.help(name, written(name, body, f"{last}({answer})" if last else answer, world))
    return f"{name}()"


def plain(world: World, width: int, out: int, last: str) -> str:
    """Layers of torch's own."""
    dice, wide = world.dice, world.dice.randint(3, 8)
    parts = [f"nn.Linear({width}, {wide})", dice.one("nn.ReLU()", "nn.Tanh()", "nn.ReLU(inplace=True)")]
    parts += [f"nn.Linear({wide}, {out})", *(["nn.Sigmoid()"] if last else [])]
    return f"nn.Sequential({', '.join(parts)})" if dice.chance(0.8) or last else f"nn.Linear({width}, {out})"


def written(name: str, body: Body, answer: str, world: World) -> Lines:
    """The source of a class."""
    dice = world.dice
    start = dice.one("super().__init__()", f"super({name}, self).__init__()")
    forward = list(body.lines)
    if dice.chance(0.4):
        forward += [f"{body.h} = {answer}", f"return {body.h}"]
    else:
        forward.append(f"return {answer}")
    lines = [*under("def __init__(self):", [start, *body.made]), "", *body.methods]
    return under(f"class {name}(nn.Module):", [*lines, *under("def forward(self, x):", forward)])
