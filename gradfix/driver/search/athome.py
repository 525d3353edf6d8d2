"""Where there is no GPU: what would go to one stays. A driver that needs it has its text."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode


class AtHome(TorchFunctionMode):
    """Says `cpu` wherever somebody says `cuda`."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.Tensor.cuda:
            return args[0]
        named = {name: self.here(one) for name, one in (kwargs or {}).items()}
        return func(*map(self.here, args), **named)

    def here(self, one: Any) -> Any:
        gpu = isinstance(one, (str, torch.device)) and str(one).partition(":")[0] == "cuda"
        return torch.device("cpu") if gpu else one
