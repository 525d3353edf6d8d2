"""Tests of what does its own backward and step: that it starts from no gradient, and that weights move."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from gradfix.driver.recipe import Recipe
from gradfix.driver.written import parts
from gradfix.regression.mended import Check
from gradfix.regression.names import own, path, snake, variables
from gradfix.verify.verdicts import Facts


def steps(seen: Facts) -> list[Any]:
    """What the optimizers did."""
    return [event for event in seen.recording["events"] if event["event"] == "step"]


def stepped(seen: Facts) -> frozenset[str]:
    """What the optimizers were given."""
    return frozenset(name for event in steps(seen) for name in event["parameters"])


def stale(seen: Facts) -> frozenset[str]:
    """What was stepped by a gradient that an earlier step had used."""
    found = (each.items() for each in (event["parameters"] for event in steps(seen)))
    return frozenset(name for items in found for name, at in items if at["state"] == "stale")


def idle(seen: Facts) -> frozenset[str]:
    """What was stepped without a gradient, each time."""
    moved = {name for event in steps(seen) for name, at in event["parameters"].items() if at["norm"]}
    return stepped(seen) - moved


def cleared(recipe: Recipe, before: Facts, after: Facts) -> Iterator[Check]:
    """That two calls on the same batch leave the same gradient, when nothing moves."""
    names = own(stale(before) - stale(after), variables(recipe))
    optimizer = next((name for event in steps(before) if (name := held(recipe, event["optimizer"]))), "")
    if names and optimizer:
        once = replace(recipe, repeats=1)
        setup = ("# so that the weights stay as they are", f'{optimizer}.param_groups[0]["lr"] = 0.0')
        where = path(names[0])
        lines = ("first, second = gradients", "assert torch.allclose(first, second)")
        yield Check(once, f"{snake(recipe)}_clears_gradients", lines, "twice", setup, f"{where}.grad.clone()")


def held(recipe: Recipe, name: str) -> str:
    """An optimizer as the test gets at it; nothing, where it doesn't."""
    subject = parts(recipe).subject
    if subject and name.startswith("self."):
        return f"{subject}.{name.removeprefix('self.')}"
    return name if name.partition(".")[0] in variables(recipe) else ""


def moved(recipe: Recipe, before: Facts, after: Facts) -> Iterator[Check]:
    """That a step changes what it is given."""
    names = own(idle(before) - idle(after), variables(recipe))
    if names:
        where = path(names[0])
        setup = f"before = {where}.detach().clone()"
        lines = (f"assert not torch.equal({where}, before)",)
        yield Check(replace(recipe, repeats=1), f"{snake(recipe)}_moves_the_weights", lines, "once", (setup,))
        yield Check(recipe, f"{snake(recipe)}_moves_the_weights", lines, "once", (setup,))
