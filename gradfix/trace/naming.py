"""Names tensors as users know them: `model.fc1.weight`, or the variable that holds them."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any

import torch

from gradfix.trace.state import State


class Names:
    """Looks names up in the user's frames and modules, once per tensor."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.known: dict[int, tuple[Any, str]] = {}

    def of(self, value: Any) -> str:
        """A tensor's name; its shape when nobody named it."""
        name = self.by_id(id(value))
        if not name:
            self.scan(sys._getframe(1))
            name = self.by_id(id(value))
        if not name:
            name = f"tensor{list(value.shape)}#{len(self.known)}"
            self._learn(value, name)
        return name

    def all(self, values: list[Any]) -> list[str]:
        """The names of many: most are known."""
        known, found = self.known, []
        for value in values:
            one = known.get(id(value))
            found.append(one[1] if one is not None and one[0]() is value else self.of(value))
        return found

    def by_id(self, key: int) -> str:
        """The name of a living tensor, or nothing."""
        found = self.known.get(key)
        return found[1] if found is not None and found[0]() is not None else ""

    def _learn(self, value: Any, name: str) -> None:
        if not self.by_id(id(value)):
            self.known[id(value)] = (weakref.ref(value), name)

    def variables(self) -> list[tuple[str, Any]]:
        """Every variable of the user's frames and of `__main__`."""
        found: list[tuple[str, Any]] = []
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if self.state.places.is_user(frame.f_code.co_filename):
                found.extend(frame.f_locals.items())
            frame = frame.f_back
        main = sys.modules.get("__main__")
        found.extend(vars(main).items() if main is not None else ())
        return [(name, value) for name, value in found if not name.startswith("__")]

    def scan(self, frame: FrameType | None) -> None:
        """Read the variables of every user frame, innermost last, and of `__main__`."""
        spaces: list[Mapping[str, Any]] = []
        while frame is not None:
            if self.state.places.is_user(frame.f_code.co_filename):
                spaces.append(dict(frame.f_locals))
            frame = frame.f_back
        main = sys.modules.get("__main__")
        spaces.append(dict(vars(main)) if main is not None else {})
        for space in reversed(spaces):
            for name, value in named(space):
                self._learn_from(name, value)
        self._modules()

    def _learn_from(self, name: str, value: Any) -> None:
        if isinstance(value, torch.nn.Module):
            self._learn_module(name, value)
        elif isinstance(value, torch.Tensor):
            self._learn(value, name)
        elif isinstance(value, (list, tuple)):
            for index, item in enumerate(value[:64]):
                if isinstance(item, (torch.Tensor, torch.nn.Module)):
                    self._learn_from(f"{name}[{index}]", item)
        elif isinstance(value, dict):
            for key, item in list(value.items())[:64]:
                if isinstance(item, (torch.Tensor, torch.nn.Module)):
                    self._learn_from(f"{name}[{key!r}]", item)
        elif hasattr(value, "__dict__") and self._users(value):
            for key, item in list(vars(value).items())[:64]:
                if isinstance(item, (torch.Tensor, torch.nn.Module)):
                    self._learn_from(f"{name}.{key}", item)

    def _users(self, value: Any) -> bool:
        module = sys.modules.get(type(value).__module__)
        file = getattr(module, "__file__", None)
        return not isinstance(value, type) and isinstance(file, str) and self.state.places.is_user(file)

    def _learn_module(self, name: str, module: Any) -> None:
        for path, parameter in module.named_parameters():
            self._learn(parameter, f"{name}.{path}")
        for path, child in module.named_modules():
            prefix = f"{name}.{path}" if path else name
            for key, value in vars(child).items():
                if isinstance(value, (list, tuple, dict)) and not key.startswith("_"):
                    self._learn_unregistered(f"{prefix}.{key}", value)

    def _learn_unregistered(self, name: str, held: Any) -> None:
        """What a module holds in a plain container: named as it would be once it is registered."""
        items = held.items() if isinstance(held, dict) else enumerate(held)
        for key, item in list(items)[:64]:
            if isinstance(item, (torch.Tensor, torch.nn.Module)):
                self._learn_from(f"{name}.{key}", item)

    def _modules(self) -> None:
        """Modules that no variable names: by their class."""
        inner = {id(child) for module, *_ in self.state.modules.items() for child in children(module)}
        for module, *_ in self.state.modules.items():
            if id(module) not in inner and "_parameters" in vars(module):
                self._learn_module(type(module).__name__, module)


def children(module: Any) -> Iterator[Any]:
    """A module's direct children, even while it is being built."""
    return iter(vars(module).get("_modules", {}).values())


def named(space: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The variables of a frame that may hold tensors; `self` last, since its name says least."""
    items = [(name, value) for name, value in space.items() if not name.startswith("__")]
    yield from sorted(items, key=lambda item: item[0] == "self")
