"""torch's own functions in Python look for a mode by a long way: to the recorder's there is a short one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

_torch: Any = torch
ASKING = ("nn.functional", "functional", "_tensor")
"""The modules of torch whose functions hand themselves over."""
NAME = "handle_torch_function"


class Shortcut:
    """Stands in for the function by which they do, as long as it is the recorder's mode that is asked."""

    def __init__(self, mode: Any) -> None:
        self.mode = mode
        self.replaced: list[tuple[Any, Any]] = []

    def open(self) -> None:
        """Where torch has another shape, the long way stays."""
        for path in ASKING:
            try:
                place = functools.reduce(getattr, path.split("."), _torch)
                self.replaced.append((place, vars(place)[NAME]))
                setattr(place, NAME, self._past(vars(place)[NAME]))
            except (AttributeError, KeyError):
                continue

    def close(self) -> None:
        """Put back what was there."""
        for place, real in reversed(self.replaced):
            setattr(place, NAME, real)
        self.replaced.clear()

    def _past(self, real: Callable[..., Any]) -> Callable[..., Any]:
        mode, asked = self.mode, self.mode.__torch_function__
        enabled, many = _torch._C._is_torch_function_mode_enabled, _torch._C._len_torch_function_stack
        at, push = _torch._C._get_function_stack_at, _torch._C._push_on_torch_function_stack
        pop = _torch._C._pop_torch_function_stack

        @functools.wraps(real)
        def handle(public_api: Any, relevant_args: Any, *args: Any, **kwargs: Any) -> Any:
            if not enabled() or at(many() - 1) is not mode:
                return real(public_api, relevant_args, *args, **kwargs)
            pop()
            try:
                return asked(public_api, (), args, kwargs)
            finally:
                push(mode)

        return handle
