"""The loops of a training: over epochs and over batches, counted, endless, and by hand."""

from __future__ import annotations

from .plot import Plot
from .world import Lines, World, under

LEAVE = "@leave"
"""A way out of a step: out of its function, or on to the next batch."""


def rounds(world: World, plot: Plot, step: Lines, loader: str = "$loader") -> Lines:
    """Epochs and batches."""
    dice = world.dice
    noise = [] if dice.chance(0.85) else ["x = x + 0.01 * torch.randn_like(x)"]
    named = any(line.startswith("$model = ") for line in plot.setup)
    train = ["$model.train()"] if named and dice.chance(0.4) else []
    step = [line.replace(LEAVE, "continue") for line in step]
    body = [*train, *plot.begin, *_batches(world, [*noise, *step], loader), *plot.after]
    return [*_epochs(world, body), *plot.end]


def _epochs(world: World, body: Lines) -> Lines:
    dice = world.dice
    if dice.chance(0.8):
        return under("for epoch in range(2):", body)
    last = dice.one("if epoch == 2:", "if epoch >= 2:", "if not epoch < 2:")
    return dice.one(
        ["epoch = 0", *under("while epoch < 2:", [*body, "epoch += 1"])],
        ["epoch = 0", *under("while True:", [*body, "epoch += 1", *under(last, ["break"])])],
        ["epoch = 0", *under("while True:", [*under(last, ["break"]), *body, "epoch += 1"])],
        under("for epoch in range(2):", body) + under("else:", ['print("all epochs")']),
        under("for epoch in range(5):", [*under(last, ["break"]), *body]),
    )


def _batches(world: World, step: Lines, loader: str) -> Lines:
    dice = world.dice
    if dice.chance(0.2):
        return _by_hand(world, step, loader)
    return dice.one(
        under(f"for x, y in {loader}:", step),
        under(f"for i, (x, y) in enumerate({loader}):", step),
        under(f"for batch in {loader}:", [dice.one("x, y = batch", "x, y = batch[0], batch[1]"), *step]),
    )


def _by_hand(world: World, step: Lines, loader: str) -> Lines:
    """Batches that are asked for one by one."""
    ask, start = "x, y = next(batches)", f"batches = iter({loader})"
    ended = [*under("try:", [ask]), *under("except StopIteration:", ["break"])]
    again = [*under("try:", [ask]), *under("except StopIteration:", [start, ask])]
    return world.dice.one(
        [start, *under("while True:", [*ended, *step])],
        [start, *under("for _ in range(3):", [*ended, *step])],
        [start, *under("for _ in range(3):", [*again, *step])],
        [start, "asked = 0", *under("while asked < 2:", [ask, "asked += 1", *step])],
    )
