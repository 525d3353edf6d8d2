"""What the recorder calls parameters, as names and expressions of a test."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from gradfix.driver.recipe import Recipe
from gradfix.driver.written import parts
from gradfix.verify.verdicts import named

ASSIGNED = re.compile(r"(\w+) = ")


def variables(recipe: Recipe) -> list[str]:
    """The variables of a recipe's program, that of what was built first."""
    made = parts(recipe)
    found = [match[1] for line in (*made.build, *made.inputs) if (match := ASSIGNED.match(line))]
    return list(dict.fromkeys([*([made.subject] if made.subject else []), *found]))


def own(names: Iterable[str], heads: Sequence[str]) -> list[str]:
    """Those of the parameters that a variable holds, weights before biases."""
    found = [name for name in named(names) if "." in name and name.partition(".")[0] in heads]
    return sorted(found, key=lambda name: not name.endswith("weight"))


def path(name: str) -> str:
    """A parameter's name as the expression that gives it."""
    subject, *inner = name.split(".")
    if all(part.isidentifier() or part.isdigit() for part in inner):
        return subject + "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in inner)
    return f'{subject}.get_parameter("{".".join(inner)}")'


def phrase(names: Sequence[str]) -> str:
    """What the names of some parameters have in common, as part of a name."""
    firsts = list(dict.fromkeys(name.split(".")[1] for name in names))
    words = [re.sub(r"\W", "_", first) for first in firsts]
    return "_and_".join(words) if len(words) <= 2 and all(words) else "its_parameters"


def snake(recipe: Recipe) -> str:
    """What is called, in lower case."""
    target = recipe.target
    name = f"{target.name}_{target.method}" if target.method else target.name
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    return re.sub(r"_+", "_", re.sub(r"\W", "_", words)).strip("_").lower()
