"""A module of torch's own that is built of nothing else is one call: all that happens in it has one line."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 - as torch's users write it

if TYPE_CHECKING:
    from gradfix.trace.mode import Calls

_torch: Any = torch
_module: Any = nn.modules.module
WHOLE: set[type] = {
    nn.Sequential, nn.MultiheadAttention, nn.Transformer, nn.TransformerEncoder, nn.TransformerEncoderLayer,
    nn.TransformerDecoder, nn.TransformerDecoderLayer,
}  # fmt: skip
"""Those that run every module which they hold."""
HELD = {nn.ModuleList}
"""What holds modules for them."""
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
EVERYWHERE = tuple(
    vars(_module).get(f"_global{name}", {}) for name in (*HOOKS, "_forward_hooks_always_called")
)
ACTIVATIONS: tuple[Any, ...] = (None, F.relu, F.gelu)
LAYERS: dict[type, bool] = {}
"""Type -> whether it is a layer of torch's own; asked once each."""


class Units:
    """Stands in front of every module that is called."""

    def __init__(self, calls: Calls) -> None:
        self.calls = calls
        self.real: Any = None

    def open(self) -> None:
        """From here on; without a guard, for every module pays for it."""
        real = self.real = vars(nn.Module).get("__call__")
        if not callable(real):
            return
        among, called, enabled = WHOLE, self.called, _torch._C._is_torch_function_mode_enabled

        @functools.wraps(real)
        def call(module: Any, *args: Any, **kwargs: Any) -> Any:
            if type(module) in among and enabled():
                return called(real, module, args, kwargs)
            return real(module, *args, **kwargs)

        setattr(nn.Module, "__call__", call)  # noqa: B010 - a method, for the type checker

    def close(self) -> None:
        """Put back what was there."""
        if callable(self.real):
            setattr(nn.Module, "__call__", self.real)  # noqa: B010
            self.real = None

    def called(self, real: Any, module: Any, args: Any, kwargs: Any) -> Any:
        """A module is called: as one call where nothing in it could be of interest by itself."""
        parameters: list[Any] = []
        try:
            one = self._listens((*args, *kwargs.values())) and plain(module, parameters)
        except Exception:
            one = False
        if not one:
            return real(module, *args, **kwargs)
        _torch._C._pop_torch_function_stack()
        try:
            return self.calls.unit(real, (module, *args), kwargs, parameters)
        finally:
            _torch._C._push_on_torch_function_stack(self.calls)

    def _listens(self, given: tuple[Any, ...]) -> bool:
        """Whether the recorder does, to a graph that grows, and none of what is given was cut off another."""
        calls, c = self.calls, _torch._C
        if not calls.state.active or calls.hunt.armed or any(EVERYWHERE) or not torch.is_grad_enabled():
            return False
        if c._get_function_stack_at(c._len_torch_function_stack() - 1) is not calls:
            return False
        for one in given:
            if isinstance(one, torch.Tensor):
                if id(one) in calls.of_tensor and any(s.cut for s, _ in calls.state.origins.get(one)):
                    return False
            elif one is not None and type(one) is not bool:
                return False
        return True


def plain(module: Any, parameters: list[Any]) -> bool:
    """Whether all of a module is torch's own and keeps to itself; its parameters are gathered."""
    held, kind = vars(module), type(module)
    layer = LAYERS.get(kind)
    if layer is None:
        layer = LAYERS[kind] = kind.__module__.startswith("torch.nn.modules.")
    if not layer or "forward" in held or held["_buffers"] or held.get("inplace") or held.get("max_norm"):
        return False
    for name in HOOKS:
        if held[name]:
            return False
    parameters += [one for one in held["_parameters"].values() if one is not None]
    inner = held["_modules"]
    if not inner:
        return True
    if (kind not in WHOLE and kind not in HELD) or held.get("activation") not in ACTIVATIONS:
        return False
    return all(one is None or plain(one, parameters) for one in inner.values())
