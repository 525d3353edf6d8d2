"""What could tell the text before from the text after: asserts, made of what two runs have shown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from gradfix.driver.recipe import Recipe
from gradfix.driver.written import INDENT, parts
from gradfix.verify.verdicts import Facts, named

MOST = 3
"""So many parameters are asserted one by one."""
RATE = re.compile(r"\blr=[\d.e-]+")


@dataclass(frozen=True, slots=True)
class Check:
    """One way to test: the program to run, what to assert behind it, and how the test is called."""

    recipe: Recipe
    name: str
    lines: tuple[str, ...] = ()
    built: bool = False
    """Whether nothing has to be called for it."""


def checks(recipe: Recipe, before: Facts, after: Facts) -> Iterator[Check]:
    """The ways to test what a rewrite has mended, the plainest first."""
    subject = parts(recipe).subject
    gained = own(after.fine - before.fine, subject) or zeroed(before, after, subject)
    given = stepped(before)
    trained = own(stepped(after) - given, subject) if given else []
    if trained:
        bare = next(ways(recipe))
        yield Check(bare, f"{snake(recipe)}_registers_its_parameters", registered(subject, trained), True)
    for way in ways(recipe):
        if before.failed and not after.failed:
            reached = own(after.fine, subject)
            yield Check(way, f"backward_through_{snake(recipe)}_runs", arriving(subject, reached[:1]))
        if gained:
            whole = not after.missed and bool(subject)
            name = "all" if whole else phrase(gained, subject)
            lines = everywhere(subject) if whole else arriving(subject, gained)
            yield Check(way, f"gradients_reach_{name}_of_{snake(recipe)}", lines)
            yield Check(
                way,
                f"gradients_reach_{phrase(gained, subject)}_of_{snake(recipe)}",
                arriving(subject, gained),
            )


def ways(recipe: Recipe) -> Iterator[Recipe]:
    """The program with nothing that isn't needed, then as it was run."""
    if recipe.roots:
        yield replace(recipe, learns=False, repeats=1)
        yield replace(recipe, learns=False)
    else:
        yield replace(recipe, repeats=1)
    yield recipe


def own(names: frozenset[str], subject: str) -> list[str]:
    """Those of the parameters of what was built, weights before biases."""
    found = [name for name in named(names) if subject and name.startswith(f"{subject}.")]
    return sorted(found, key=lambda name: not name.endswith("weight"))


def zeroed(before: Facts, after: Facts, subject: str) -> list[str]:
    """Those at which nothing but zeros arrived before."""
    names = before.fine & after.fine
    return own(frozenset(n for n in names if not before.norms[n] and after.norms[n]), subject)


def stepped(seen: Facts) -> frozenset[str]:
    """What the optimizers were given."""
    steps = [event for event in seen.recording["events"] if event["event"] == "step"]
    return frozenset(name for event in steps for name in event["parameters"])


def registered(subject: str, names: Sequence[str]) -> tuple[str, ...]:
    """That parameters are among those of their module."""
    short = [name.removeprefix(f"{subject}.") for name in names]
    wanted = f'"{short[0]}"'
    return (
        f"names = [name for name, _ in {subject}.named_parameters()]",
        f"assert {wanted} in names",
    )


def everywhere(subject: str) -> tuple[str, ...]:
    """That every parameter gets a gradient."""
    return (
        f"for name, parameter in {subject}.named_parameters():",
        f'{INDENT}assert parameter.grad is not None, f"no gradient reaches {{name}}"',
    )


def arriving(subject: str, names: Sequence[str]) -> tuple[str, ...]:
    """That these parameters get a gradient, and one that isn't zero."""
    lines = []
    for name in names[:MOST]:
        where = path(name)
        lines.append(f"assert {where}.grad is not None")
        if len(names) == 1:
            lines.append(f"assert {where}.grad.abs().sum() > 0")
    return tuple(lines)


def path(name: str) -> str:
    """A parameter's name as the expression that gives it."""
    subject, *inner = name.split(".")
    if all(part.isidentifier() or part.isdigit() for part in inner):
        return subject + "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in inner)
    return f'{subject}.get_parameter("{".".join(inner)}")'


def phrase(names: Sequence[str], subject: str) -> str:
    """What the names of some parameters have in common, as part of a name."""
    parts_of = [name.removeprefix(f"{subject}.").split(".") for name in names]
    firsts = list(dict.fromkeys(each[0] for each in parts_of))
    words = [re.sub(r"\W", "_", first) for first in firsts]
    return "_and_".join(words) if len(words) <= 2 and all(words) else "its_parameters"


def snake(recipe: Recipe) -> str:
    """What is called, in lower case."""
    target = recipe.target
    name = target.name if not target.method else f"{target.name}_{target.method}"
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    return re.sub(r"_+", "_", re.sub(r"\W", "_", words)).strip("_").lower()
