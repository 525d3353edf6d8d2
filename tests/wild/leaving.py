"""Ways out and ways round: what is asked before an update, what is tried, and how a program ends.

A line `@leave` is `return` in a function and `continue` in a loop, wherever it is put.
"""

from __future__ import annotations

from .world import Lines, World, under


def guarded(world: World, lines: Lines) -> Lines:
    """The lines of an update of `loss`, behind a question or in a `try`."""
    dice = world.dice
    if dice.chance(0.35):
        return _tried(world, lines)
    if dice.chance(0.3):
        return under(f"if {dice.choice(RIGHT)}:", lines)
    world.imports.add("import sys")
    way = dice.one(
        ["@leave"],
        ["@leave"],
        ['print("not a number")', "@leave"],
        ["exit(1)"],
        ['sys.exit("diverged")'],
        ["raise SystemExit(1)"],
        ['raise ValueError("diverged")'],
    )
    return [*under(f"if {dice.choice(WRONG)}:", way), *lines]


RIGHT = (
    "loss.requires_grad",
    "loss.grad_fn",
    "loss.grad_fn is not None",
    "torch.isfinite(loss).all()",
    "torch.is_grad_enabled()",
)
WRONG = (
    "not torch.isfinite(loss).all()",
    "torch.isnan(loss).any()",
    "loss.grad_fn is None",
    "not loss.requires_grad",
    "loss.item() != loss.item()",
    "loss.detach().abs() > 1e9",
)


def _tried(world: World, lines: Lines) -> Lines:
    world.imports.add("import sys")
    return world.dice.one(
        under("try:", lines)
        + under(
            "except RuntimeError as error:",
            [*under('if "out of memory" not in str(error):', ["raise"]), "@leave"],
        ),
        under("try:", lines) + under("except RuntimeError:", ['print("a batch is left out")', "@leave"]),
        under("try:", lines) + under("finally:", ['print("a step")']),
        under("try:", lines) + under("except KeyboardInterrupt:", ["raise SystemExit"]),
        under("try:", lines)
        + under("except (RuntimeError, ValueError) as error:", ["sys.exit(str(error))"])
        + under("else:", ["steps_done = 1"]),
    )


def visit(world: World, look: Lines) -> Lines:
    """A look at what was learnt, and no training where a flag asks for it."""
    world.imports.add("import sys")
    way = world.dice.one("break", "exit(0)", "sys.exit(0)", "raise SystemExit", "sys.exit()")
    return under(f"if {world.flag()}:", [*look, way])


def ending(world: World) -> Lines:
    """How a script says that it is done."""
    world.imports.add("import sys")
    return world.dice.one(["exit(0)"], ["sys.exit(0)"], ["raise SystemExit"], ["exit()"], ["sys.exit()"])
