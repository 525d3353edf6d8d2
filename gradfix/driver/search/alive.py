"""Values come alive: what they stand for is made, with objects that notice what is read of them."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from gradfix.driver.search.drafts import Path
from gradfix.driver.search.facts import Facts
from gradfix.driver.search.sources import text
from gradfix.driver.search.uses import Reader, Scope, Uses
from gradfix.driver.values import Argument, Config, Entries, Items, Made, Returns, Value, printed, referred
from gradfix.driver.values import needs as lines

Propose = Callable[[Facts, bool], Value]
ASKED = ("getattr", "hasattr")


class Bench:
    """Where the values of one try are made."""

    def __init__(self, names: dict[str, Any], propose: Propose, options: dict[str, Value]) -> None:
        self.names = names
        self.options = options
        """What the project gives for a name that is read of an object."""
        self.propose = propose
        self.building = True
        self.grown: dict[Path, list[tuple[str, Value]]] = {}
        """What was read of an object and is not yet among its values."""
        self.made: list[tuple[Path, Any]] = []
        """The modules and optimizers that were made, with their places."""

    def bring(self, value: Value) -> None:
        """Import what its source takes."""
        for line in lines(value):
            self.brought(line)

    def brought(self, line: str) -> None:
        """One import line, once."""
        if line not in self.names.setdefault("__lines__", set()):
            exec(line, self.names)
            self.names["__lines__"].add(line)

    def alive(self, value: Value, path: Path) -> Any:
        """What a value stands for."""
        self.bring(value)
        return self._made(value, path)

    def _made(self, value: Value, path: Path) -> Any:
        thing = self._of(value, path)
        if isinstance(thing, (nn.Module, torch.optim.Optimizer)):
            self.made.append((path, thing))
        return thing

    def _of(self, value: Value, path: Path) -> Any:
        if isinstance(value, Items):
            inner = [self._made(one, (*path, i)) for i, one in enumerate(value.items)]
            return inner if value.form == "list" else tuple(inner)
        if isinstance(value, Entries):
            return Noted(
                self,
                path,
                {
                    ast.literal_eval(key): self._made(one, (*path, i))
                    for i, (key, one) in enumerate(value.entries)
                },
            )
        if isinstance(value, Config):
            return Open(
                self,
                path,
                {name: self._made(one, (*path, i)) for i, (name, one) in enumerate(value.attributes)},
            )
        if isinstance(value, Returns):
            return lambda *_, **__: self._made(value.value, (*path, 0))
        if isinstance(value, Made):
            args, named = self.given(value.arguments, path)
            return eval(value.callee, self.names)(*args, **named)
        return eval(printed(value), self.names)

    def given(self, arguments: tuple[Argument, ...], path: Path) -> tuple[list[Any], dict[str, Any]]:
        """All arguments of a call, as it takes them."""
        made = self.each(arguments, path)
        named = {one.name: made[i] for i, one in enumerate(arguments) if one.keyword}
        return [made[i] for i, one in enumerate(arguments) if not one.keyword], named

    def each(self, arguments: tuple[Argument, ...], path: Path) -> dict[int, Any]:
        """What each of them stands for; those that another one is named in come first."""
        made: dict[int, Any] = {}
        order = sorted(range(len(arguments)), key=lambda i: len(list(referred(arguments[i].value))))
        for i in order:
            one = arguments[i]
            for line in lines(one.value):
                self.brought(line)
            for refers in referred(one.value):
                at = next((j for j, other in enumerate(arguments) if other.name == refers), None)
                if at is not None and at in made:
                    self.names[refers] = made[at]
            made[i] = self._made(one.value, (*path, i))
        return made

    def read(self, path: Path, name: str, kind: type) -> Any:
        """Something is read that isn't there: as it is used next, so it is made."""
        facts = self._facts(name, kind)
        if facts is None:
            raise LookupError(name)
        counted = bool(facts.number or facts.roles)
        said = self.options.get(name) if plain(facts) else None
        if said is not None:
            value: Value = said
        elif facts.called and facts.result is not None and not (facts.built or facts.module or facts.tensor):
            value = Returns(self.propose(facts.result, False))
        else:
            value = self.propose(facts, self.building or counted)
        grown = self.grown.setdefault(path, [])
        grown.append((name, value))
        return self.alive(value, (*path, f"+{name}"))

    def _facts(self, name: str, kind: type) -> Facts | None:
        """How it is used where it is read; None: somebody only asks whether it is there."""
        frame = sys._getframe(3)
        found, line = text(frame.f_code.co_filename), frame.f_lineno
        scope = Scope(frame.f_globals, frame.f_locals.get("self"), None, 0)
        for node in sorted(found.covering(line, kind), key=_of_self):
            if isinstance(getattr(node, "ctx", None), ast.Store):
                continue  # `self.width = config.width`: it is read on the right
            if getattr(node, "attr", None) == name or self._key(node) == name:
                facts = Facts()
                where = found.covering(line, (ast.FunctionDef, ast.AsyncFunctionDef))
                Uses(Reader(facts), found, scope).of(node, where[-1] if where else found.tree)
                return facts
        return None

    def _key(self, node: Any) -> Any:
        inner = getattr(node, "slice", None)
        return inner.value if isinstance(inner, ast.Constant) else None


def plain(facts: Facts) -> bool:
    """Whether something may be a number or a string, of which the turns of a loop aren't counted."""
    used = facts.called or facts.module or facts.mapping or facts.attributes
    return not used and not facts.tensor and "count" not in facts.roles


def _of_self(node: Any) -> bool:
    """Whether it is an attribute of the object itself, which has its own."""
    return isinstance(getattr(node, "value", None), ast.Name) and node.value.id == "self"


class Open:
    """An object whose attributes are made as they are read."""

    def __init__(self, bench: Bench, path: Path, known: dict[str, Any]) -> None:
        self.__dict__.update(known)
        self.__dict__["_bench"], self.__dict__["_path"] = bench, path

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            value = self._bench.read(self._path, name, ast.Attribute)
        except LookupError:
            raise AttributeError(f"'SimpleNamespace' object has no attribute '{name}'") from None
        self.__dict__[name] = value
        return value


class Noted(dict):  # type: ignore[type-arg]
    """A dict whose entries are made as they are read."""

    def __init__(self, bench: Bench, path: Path, known: dict[Any, Any]) -> None:
        super().__init__(known)
        self._bench, self._path = bench, path

    def __missing__(self, key: Any) -> Any:
        if not isinstance(key, str):
            raise KeyError(key)
        try:
            self[key] = self._bench.read(self._path, key, ast.Subscript)
        except LookupError:
            raise KeyError(key) from None
        return self[key]
