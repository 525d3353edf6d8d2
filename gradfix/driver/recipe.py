"""What to run and with what: a target is code without a script, a recipe how to build and call it."""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass
from typing import Any, Literal

from gradfix.driver import values
from gradfix.driver.values import Argument

Form = Literal["module", "method", "function"]
"""An nn.Module that is called, a method of a class, a function."""


ASKED = (
    "trainer", "log", "log_dict", "optimizers", "configured", "lr_schedulers", "manual_backward",
    "toggle_optimizer", "untoggle_optimizer",
)  # fmt: skip
"""What a module asks of its framework, and that of its trainer."""


@dataclass(frozen=True, slots=True)
class Target:
    """The way to some lines: what has to be built and called."""

    path: str
    """The file, absolute."""
    root: str
    """The folder from which it is imported."""
    module: str
    """Its name from there."""
    name: str
    """The class or function, as it is written in the module."""
    form: Form
    method: str = ""
    """What is called of the class; nothing: the object itself, and with it `forward`."""
    line: int = 0
    """Where it is defined."""
    lines: tuple[int, ...] = ()
    """The lines that are to be reached; none: any."""
    loss: Literal["", "parts", "whole"] = ""
    """Whether what is returned is the loss though nothing flows through it, and whether as it is."""

    @property
    def shown(self) -> str:
        """As a person says it."""
        return f"{self.name}.{self.method}" if self.method else self.name


def subject_of(target: Target) -> str:
    """What a person would call the object: a module is a model, any other thing goes by its class."""
    if target.form == "module":
        return "model"
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", target.name).lower()
    return words if words.isidentifier() and not keyword.iskeyword(words) else "subject"


@dataclass(frozen=True, slots=True)
class Root:
    """A part of the result that is backpropagated."""

    path: str = ""
    """What follows the result: nothing, `[0]`, `["loss"]`, `.logits`."""
    scalar: bool = False
    """Whether it is one number: a loss already."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to build a target, what to call it with, and what to backpropagate."""

    target: Target
    build: tuple[Argument, ...] | None = None
    """What the class is given; None: there is nothing to build."""
    call: tuple[Argument, ...] = ()
    roots: tuple[Root, ...] = (Root(),)
    """None of them: the call does its own backward, or returns nothing that could be backpropagated."""
    learns: bool = True
    """Whether what is built has parameters, so that an optimizer steps."""
    carries: bool = False
    """Whether the inputs require grad, as what an earlier layer hands over does."""
    training: bool = True
    at_home: bool = False
    """Whether what would go to a GPU stays where it is, as there is none."""
    repeats: int = 2
    steps: int = 0
    """After so many steps all has been seen, and the run may end; 0: it runs to its end."""
    framed: bool = False
    """Whether what a module asks of its framework's trainer is stood in for."""
    stood: tuple[str, ...] = ()
    """Modules that aren't installed, and that something without a known effect stands in for."""
    assumed: tuple[str, ...] = ()
    """What was taken for granted, in phrases."""


@dataclass(frozen=True, slots=True)
class Driver:
    """A program that runs a target: never on disk unless somebody writes it there."""

    path: str
    """Where it would stand, so that its imports find the target."""
    text: str
    recipe: Recipe


@dataclass(frozen=True, slots=True)
class Undriven:
    """A target that could not be run, and what stopped the last try."""

    target: Target
    reason: str
    tries: int = 0


@dataclass(frozen=True, slots=True)
class Given:
    """A call that the project has: what is passed by position and by name; None: that can not be said."""

    args: tuple[values.Value | None, ...] = ()
    kwargs: tuple[tuple[str, values.Value | None], ...] = ()
    steps: tuple[tuple[int | str, tuple[int | str, ...]], ...] = ()
    """Of an optimizer among them, by position or by name, which of them it steps."""


NAMES: dict[str, Any] = {each.__name__: each for each in (Target, Root, Recipe, Undriven, Given)}


def from_json(data: Any) -> Any:
    """A target, a recipe or what became of one, as `values.to_json` has told it."""
    return values.from_json(data, NAMES)
