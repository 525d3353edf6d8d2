"""What the blocks of one program share: the dice, the names, the flags and the helpers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")
Lines = list[str]


class Dice(random.Random):
    """Chance as blocks ask for it."""

    def one(self, *options: T) -> T:
        return self.choice(options)

    def chance(self, share: float) -> bool:
        return self.random() < share

    def some(self, options: Sequence[T], least: int, most: int) -> list[T]:
        """Some of these, in random order."""
        return self.sample(list(options), min(len(options), self.randint(least, most)))


def under(header: str, body: Sequence[str]) -> Lines:
    """A compound statement."""
    return [header, *("    " + line for line in (body or ["pass"]))]


FLAGS = (
    *("clip", "log_grads", "use_ema", "warmup", "residual", "normalise", "augment", "penalty", "track"),
    *("debug", "verbose", "bias", "extra", "mixup", "anneal", "smooth", "noise", "scale_loss", "dropout"),
    *("gate", "save_best", "schedule", "centre", "sparse", "aux", "double", "profile"),
)
CONFIGS = ("argparse", "namespace", "set", "dict", "dataclass")


@dataclass
class World:
    """One program in the making. A name behind `$` is state: a global, a local of main or an attribute."""

    dice: Dice
    flags: list[str] = field(default_factory=list)
    arms: int = 0
    """How many values `mode` can have; 0: there is none."""
    imports: set[str] = field(default_factory=set)
    helpers: dict[str, Lines] = field(default_factory=dict)
    """Functions and classes at the top of the file, by name, in order."""
    counts: dict[str, int] = field(default_factory=dict)
    config: str = ""

    def __post_init__(self) -> None:
        self.config = self.dice.one(*CONFIGS)

    def fresh(self, stem: str) -> str:
        """A name that the program doesn't have yet."""
        number = self.counts.get(stem, 0)
        self.counts[stem] = number + 1
        return f"{stem}{number + 1}" if number else stem

    def flag(self) -> str:
        """A condition that nobody can know before the program runs."""
        new = [name for name in FLAGS if name not in self.flags]
        if new and (not self.flags or self.dice.chance(0.6)):
            self.flags.append(self.dice.choice(new))
            return self.asked(self.flags[-1])
        return self.asked(self.dice.choice(self.flags))

    def numbered_flag(self) -> str:
        """One of very many flags."""
        self.flags.append(self.fresh("option"))
        return self.asked(self.flags[-1])

    def asked(self, flag: str) -> str:
        if self.config == "set":
            return f'"{flag}" in CHOSEN'
        return f'settings["{flag}"]' if self.config == "dict" else f"settings.{flag}"

    @property
    def mode(self) -> str:
        return {"set": "MODE", "dict": 'settings["mode"]'}.get(self.config, "settings.mode")

    def help(self, name: str, lines: Lines) -> str:
        """A function or class of the program's own, written down once."""
        self.helpers.setdefault(name, lines)
        return name

    def settings(self) -> Lines:
        """How the flags come in: by the command line, in one of several ways."""
        if not self.flags and not self.arms:
            return []
        return _CONFIGS[self.config](self)


def _argparse(world: World) -> Lines:
    world.imports.add("import argparse")
    lines = ["parser = argparse.ArgumentParser()"]
    lines += [f'parser.add_argument("--{flag}", action="store_true")' for flag in world.flags]
    lines += ['parser.add_argument("--mode", default="m0")'] if world.arms else []
    return [*lines, "settings = parser.parse_args()"]


def _namespace(world: World) -> Lines:
    world.imports |= {"import sys", "from types import SimpleNamespace"}
    given = [f'{flag}="--{flag}" in sys.argv' for flag in world.flags]
    given += [f"mode={_MODE}"] if world.arms else []
    return [f"settings = SimpleNamespace({', '.join(given)})"]


def _set(world: World) -> Lines:
    world.imports.add("import sys")
    lines = ['CHOSEN = {word.lstrip("-") for word in sys.argv[1:]}']
    return lines + ([f"MODE = {_MODE}"] if world.arms else [])


def _dict(world: World) -> Lines:
    world.imports.add("import sys")
    given = [f'"{flag}": "--{flag}" in sys.argv' for flag in world.flags]
    given += [f'"mode": {_MODE}'] if world.arms else []
    return ["settings = {" + ", ".join(given) + "}"]


def _dataclass(world: World) -> Lines:
    world.imports |= {"import sys", "from dataclasses import dataclass"}
    fields = [f"{flag}: bool = False" for flag in world.flags]
    fields += ['mode: str = "m0"'] if world.arms else []
    read = 'given = {word[2:]: True for word in sys.argv[1:] if "=" not in word}'
    mode = [f'given["mode"] = {_MODE}'] if world.arms else []
    return ["@dataclass", *under("class Settings:", fields), read, *mode, "settings = Settings(**given)"]


_MODE = 'next((w.split("=")[1] for w in sys.argv[1:] if "=" in w), "m0")'
_CONFIGS = {
    "argparse": _argparse,
    "namespace": _namespace,
    "set": _set,
    "dict": _dict,
    "dataclass": _dataclass,
}
