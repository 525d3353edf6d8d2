"""A recipe as the program that a person would have typed: imports, seed, build, inputs, call, step."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from gradfix.driver import values
from gradfix.driver.recipe import Recipe, Root, Target, subject_of
from gradfix.driver.standing import surrounded
from gradfix.driver.values import Argument, Made, Source, Tensor, Value, needs, printed

WIDTH = 88
STANDARD = ("from types", "import sys", "from unittest", "import math", "import argparse")
INDENT = "    "
TAKEN = {"torch", "nn", "F", "_"}
FUNCTIONAL = "from torch.nn import functional as F"
OPTIMIZER = "torch.optim.SGD({}.parameters(), lr=0.01)"


@dataclass(frozen=True, slots=True)
class Parts:
    """The program piece by piece, each a list of lines without indentation."""

    imports: list[str]
    build: list[str]
    """The seed, the object, its optimizer."""
    inputs: list[str]
    call: list[str]
    backward: list[str]
    """From the loss to the step; empty where the call does that itself."""
    subject: str
    """The name of what was built; nothing, of a function."""
    loss: str
    """The name of the loss; nothing, where there is none to be seen."""


def program(recipe: Recipe) -> str:
    """The whole text of a driver."""
    made = parts(recipe)
    turn = [*made.inputs, *made.call, *made.backward]
    loop = [f"for _ in range({recipe.repeats}):", *(INDENT + line for line in turn)]
    body = loop if recipe.repeats > 1 else turn
    blocks = [made.imports, [*made.build, *([""] if recipe.repeats > 1 else []), *body]]
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def parts(recipe: Recipe) -> Parts:
    """The program in pieces, for those who put another one around them."""
    target = recipe.target
    given = {one.name for one in recipe.call}
    subject = _free(subject_of(target), given) if recipe.build is not None else ""
    whole = len(recipe.roots) == 1 and recipe.roots[0] == Root("", True)
    output = _free("loss" if whole else "output", given)
    loss = _free("loss", given) if recipe.roots else ""
    kept, handed = _kept(recipe.call)
    inputs, passed = _inputs(recipe, handed, {subject, output, loss})
    callee = _callee(target, subject)
    call = wrapped(f"{output} = {callee}" if recipe.roots else callee, passed)
    backward = list(_backward(recipe, output, loss)) if recipe.roots else []
    build = [*_build(recipe, subject), *kept]
    return Parts(list(_imports(recipe, backward)), build, inputs, call, backward, subject, loss)


def summary(recipe: Recipe) -> str:
    """The recipe in one line: what is built, what it is called with."""
    target = recipe.target
    built = f"{target.name}({values.passed(recipe.build)})" if recipe.build is not None else target.name
    method = f".{target.method}" if target.method and recipe.build is not None else ""
    return f"{built}{method}({values.passed(recipe.call)})"


def _free(name: str, taken: set[str]) -> str:
    while name in taken or name in TAKEN:
        name += "_"
    return name


def _callee(target: Target, subject: str) -> str:
    if not subject:
        return target.name
    return f"{subject}.{target.method}" if target.method else subject


def _imports(recipe: Recipe, backward: Sequence[str]) -> Iterator[str]:
    """torch's first, then the project's."""
    target = recipe.target
    wanted = dict.fromkeys([values.TORCH, *_needed(recipe)])
    if any("F." in line for line in backward):
        wanted[FUNCTIONAL] = None
    own, more = surrounded(recipe, imported(target))
    wanted |= dict.fromkeys(more)
    first = [line for line in wanted if line.startswith(STANDARD)]
    torch = [
        line for line in wanted if line not in first and re.match(r"(?:import|from) (?:torch|numpy)\b", line)
    ]
    rest = [line for line in wanted if line not in (*first, *torch, *own)]
    blocks = [
        sorted(first, key=plain_first),
        sorted(torch, key=plain_first),
        [*own, *sorted(rest)] if more else [*sorted(rest), *own],
    ]
    yield from "\n\n".join("\n".join(block) for block in blocks if block).split("\n")


def plain_first(line: str) -> tuple[bool, str]:
    """The order of import lines."""
    return line.startswith("from"), line


def _needed(recipe: Recipe) -> Iterator[str]:
    for one in (*(recipe.build or ()), *recipe.call):
        yield from needs(one.value)


def imported(target: Target) -> list[str]:
    """The lines that bring the target's name into the program."""
    if all(part.isidentifier() and not keyword.iskeyword(part) for part in target.module.split(".")):
        return [f"from {target.module} import {target.name.partition('.')[0]}"]
    name = target.name.partition(".")[0]
    return ["import importlib", "", f'{name} = importlib.import_module("{target.module}").{name}']


def _build(recipe: Recipe, subject: str) -> Iterator[str]:
    yield "torch.manual_seed(0)"
    if recipe.build is None:
        return
    kept, handed = _kept(recipe.build)
    yield from kept
    passed = [_said(one, handed.get(one.name, one.value)) for one in recipe.build]
    yield from wrapped(f"{subject} = {recipe.target.name}", passed)
    if not recipe.training:
        yield f"{subject}.eval()"
    if recipe.learns and recipe.roots:
        yield f"optimizer = {OPTIMIZER.format(subject)}"


def _kept(arguments: Sequence[Argument]) -> tuple[list[str], dict[str, str]]:
    """What lasts from turn to turn, or is named in another argument, is made beforehand: lines and names."""
    own = {one.name for one in arguments}
    naming = {one.name for one in arguments if own & {*values.referred(one.value)}}
    named = {name for one in arguments for name in values.referred(one.value)} & own
    lasting = [one for one in arguments if one.name in named or isinstance(one.value, Made)]
    lasting = [one for one in lasting if one.name not in naming]
    lasting += [one for one in arguments if one.name in naming]
    lines = [f"{one.name} = {printed(one.value)}" for one in lasting]
    return lines, {one.name: one.name for one in lasting}


def _said(argument: Argument, value: Value | str) -> str:
    text = value if isinstance(value, str) else printed(value)
    return f"{argument.name}={text}" if argument.keyword else text


def _inputs(recipe: Recipe, handed: dict[str, str], taken: set[str]) -> tuple[list[str], list[str]]:
    """The lines that make tensors, and what is passed."""
    lines, passed = [], []
    for one in recipe.call:
        if one.name in handed:
            passed.append(_said(one, handed[one.name]))
        elif isinstance(one.value, Tensor):
            name = _free(one.name.lstrip("*") or "x", taken)
            grown = recipe.carries and one.value.kind in ("float", "share")
            lines.append(f"{name} = {grad(one.value) if grown else printed(one.value)}")
            passed.append(_said(one, f"{name}.clone()" if grown else name))
            taken = {*taken, name}
        else:
            passed.append(_said(one, carrying(one.value) if recipe.carries else one.value))
    return lines, passed


def grad(value: Tensor) -> str:
    """The tensor as a leaf that requires grad."""
    return f"{printed(value)[:-1]}, requires_grad=True)"


def carrying(value: Value) -> Value:
    """The same, its tensors made of leaves that require grad: what is handed over is no leaf."""
    if isinstance(value, Tensor) and value.kind in ("float", "share"):
        return Source(f"{grad(value)}.clone()", (values.TORCH,))
    if isinstance(value, values.Items):
        return replace(value, items=tuple(map(carrying, value.items)))
    if isinstance(value, values.Entries):
        return replace(value, entries=tuple((key, carrying(one)) for key, one in value.entries))
    if isinstance(value, values.Config):
        return replace(value, attributes=tuple((name, carrying(one)) for name, one in value.attributes))
    return value


def _backward(recipe: Recipe, output: str, loss: str) -> Iterator[str]:
    steps = recipe.learns and recipe.build is not None
    if output != loss:
        yield f"{loss} = {' + '.join(term(output + root.path, root) for root in recipe.roots)}"
    if steps:
        yield "optimizer.zero_grad()"
    yield f"{loss}.backward()"
    if steps:
        yield "optimizer.step()"


def term(text: str, root: Root) -> str:
    """What one part of the result adds to the loss."""
    return text if root.scalar else f"F.mse_loss({text}, torch.randn_like({text}))"


def wrapped(callee: str, arguments: Sequence[str]) -> list[str]:
    """A call in one line, or with one argument a line."""
    line = f"{callee}({', '.join(arguments)})"
    if len(line) + len(INDENT) <= WIDTH or not arguments:
        return [line]
    return [f"{callee}(", *(f"{INDENT}{each}," for each in arguments), ")"]
