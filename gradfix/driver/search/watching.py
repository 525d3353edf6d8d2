"""What torch was asked for in one try: how far it came, what failed, whether it went backward."""

from __future__ import annotations

import re
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

BACKWARD = (torch.Tensor.backward, torch.autograd.backward)


REFUSED = re.compile(
    r"modified by an inplace operation|modified inplace|leaf Variable that requires grad"
    r"|does not require grad and does not have a grad_fn|Can't call numpy\(\) on Tensor that requires grad"
    r"|Inference tensors cannot be saved|has no attribute 'backward'|backward through the graph a second time"
    r"|grad can be implicitly created only for scalar|cannot be modified inplace because it is"
)
"""What torch says where a rule of autograd is broken: that is what is looked for."""


def refused(error: BaseException) -> bool:
    """Whether a try has met what it is made for."""
    return isinstance(error, (RuntimeError, AttributeError)) and REFUSED.search(str(error)) is not None


MOST_STEPS = 3


class EnoughError(BaseException):
    """All that was wanted has been seen: what comes behind it doesn't matter."""


class Steps:
    """Counts the steps of optimizers that came behind the lines which are to be reached."""

    def __init__(self, wanted: set[int], reached: set[int]) -> None:
        self.wanted = wanted
        self.reached = reached
        self.counts: dict[int, int] = {}
        self.done = 0
        """So many steps each of them had taken when the lines had been reached."""

    def __call__(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """One more."""
        self.counts[id(optimizer)] = self.counts.get(id(optimizer), 0) + 1
        if self.wanted & self.reached:
            self.done = min(self.counts.values())
            if self.done >= MOST_STEPS:
                raise EnoughError


class Watch(TorchFunctionMode):
    """Sees every call of torch with tensors in it."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.failed: tuple[str, list[Any]] | None = None
        """The innermost call that raised, with the tensors that it was given."""
        self.backwards = 0
        self.shapes: set[tuple[int, ...]] = set()
        """Those of all tensors that something was done with."""
        self.refused = False
        """Whether a backward has raised."""

    def __torch_function__(self, func: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls += 1
        self.shapes.update(tuple(one.shape) for one in args if isinstance(one, torch.Tensor))
        backward = func in BACKWARD
        self.backwards += backward
        try:
            return func(*args, **(kwargs or {}))
        except Exception:
            self.refused = self.refused or backward
            if self.failed is None:
                self.failed = getattr(func, "__name__", ""), list(tensors([args, kwargs or {}]))
            raise


def tensors(value: Any, deep: int = 0) -> Any:
    """All tensors in it."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)) and deep < 4:
        for one in value:
            yield from tensors(one, deep + 1)
    elif isinstance(value, dict) and deep < 4:
        yield from tensors(list(value.values()), deep + 1)
