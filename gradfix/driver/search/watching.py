"""What torch was asked for in one try: how far it came, what failed, whether it went backward."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode

BACKWARD = (torch.Tensor.backward, torch.autograd.backward)


class Watch(TorchFunctionMode):
    """Sees every call of torch with tensors in it."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.failed: tuple[str, list[Any]] | None = None
        """The innermost call that raised, with the tensors that it was given."""
        self.backwards = 0
        self.refused = False
        """Whether a backward has raised."""

    def __torch_function__(self, func: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls += 1
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
