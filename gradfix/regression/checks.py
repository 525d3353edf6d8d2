"""What could tell the text before from the text after: asserts, made of what two runs have shown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from gradfix.driver.recipe import Recipe
from gradfix.driver.written import INDENT
from gradfix.regression.mended import Check
from gradfix.regression.names import own, path, phrase, snake, variables
from gradfix.regression.updating import cleared, moved, stepped
from gradfix.verify.verdicts import Facts

MOST = 3
"""So many parameters are asserted one by one."""


def checks(recipe: Recipe, before: Facts, after: Facts) -> Iterator[Check]:
    """The ways to test what a rewrite has mended, the plainest first."""
    heads = variables(recipe)
    given = stepped(before)
    trained = own(stepped(after) - given, heads) if given else []
    if trained:
        yield registering(next(ways(recipe)), trained[0])
    gained = own(after.fine - before.fine, heads) or zeroed(before, after, heads)
    for way in ways(recipe):
        if before.failed and not after.failed:
            reached = own(after.fine, heads)[:1]
            yield Check(way, f"backward_through_{snake(recipe)}_runs", arriving(reached))
        if gained:
            yield from reaching(way, gained, whole=not after.missed)
    if not recipe.roots:
        yield from cleared(recipe, before, after)
        yield from moved(recipe, before, after)


def ways(recipe: Recipe) -> Iterator[Recipe]:
    """The program with nothing that isn't needed, then as it was run."""
    if recipe.roots:
        yield replace(recipe, learns=False, repeats=1)
        yield replace(recipe, learns=False)
    else:
        yield replace(recipe, repeats=1)
    yield recipe


def zeroed(before: Facts, after: Facts, heads: Sequence[str]) -> list[str]:
    """Those at which nothing but zeros arrived before."""
    names = before.fine & after.fine
    return own(frozenset(n for n in names if not before.norms[n] and after.norms[n]), heads)


def registering(recipe: Recipe, name: str) -> Check:
    """That a parameter is among those of its module."""
    subject, _, inner = name.partition(".")
    lines = (
        f"names = [name for name, _ in {subject}.named_parameters()]",
        f'assert "{inner}" in names',
    )
    part = re.sub(r"\W", "_", inner.partition(".")[0])
    return Check(recipe, f"{snake(recipe)}_registers_{part}", lines, "built")


def reaching(recipe: Recipe, names: Sequence[str], whole: bool) -> Iterator[Check]:
    """That a gradient arrives: everywhere, or at those where none did."""
    subjects = {name.partition(".")[0] for name in names}
    if whole and len(subjects) == 1:
        yield Check(recipe, f"gradients_reach_all_of_{snake(recipe)}", everywhere(*subjects))
    yield Check(recipe, f"gradients_reach_{phrase(names)}_of_{snake(recipe)}", arriving(names))


def everywhere(subject: str) -> tuple[str, ...]:
    """That every parameter gets a gradient."""
    return (
        f"for name, parameter in {subject}.named_parameters():",
        f'{INDENT}assert parameter.grad is not None, f"no gradient reaches {{name}}"',
    )


def arriving(names: Sequence[str]) -> tuple[str, ...]:
    """That these parameters get a gradient; where it is one, that it isn't zero."""
    lines = [f"assert {path(name)}.grad is not None" for name in names[:MOST]]
    if len(names) == 1:
        lines.append(f"assert {path(names[0])}.grad.abs().sum() > 0")
    return tuple(lines)
