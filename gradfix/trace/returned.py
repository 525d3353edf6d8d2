"""What the program's own modules return before the first backward: no rewrite may change it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from gradfix.trace.ledger import norms
from gradfix.trace.report import ReturnedEvent
from gradfix.trace.state import State

MOST = 200


class Returned:
    """Listens to modules until the first backward."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.values: list[tuple[str, float]] = []
        self.handle: Any = None

    def start(self) -> None:
        """Hear of every module that has run."""
        self.handle = torch.nn.modules.module.register_module_forward_hook(self._heard)

    def stop(self) -> None:
        """Hear no more."""
        if self.handle is not None:
            self.handle.remove()
            self.handle = None

    def tell(self) -> None:
        """The first backward begins: what was returned until now was forward."""
        if self.handle is not None:
            self.stop()
            if self.values:
                self.state.emit(ReturnedEvent(event="returned", values=self.values))

    def _heard(self, module: Any, given: Any, result: Any) -> None:
        own = not type(module).__module__.startswith("torch.")
        if self.state.active and own and len(self.values) < MOST:
            with self.state.forgiving():
                found = [float(value) for value in norms(list(numbers(result)))]
                self.values.append((type(module).__name__, sum(found)))


def numbers(result: Any) -> Iterator[Any]:
    """The tensors of numbers in what a module returned."""
    if isinstance(result, torch.Tensor) and result.is_floating_point():
        yield result.detach()
    elif isinstance(result, (list, tuple)):
        for one in result:
            yield from numbers(one)
    elif isinstance(result, dict):
        yield from numbers(list(result.values()))
