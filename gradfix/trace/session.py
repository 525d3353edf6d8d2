"""Puts the recorder into a program and takes it out again without a trace."""

from __future__ import annotations

import functools
import importlib
import os
import sys
from collections.abc import Callable
from typing import Any

import torch

from gradfix.trace.backwards import Backwards
from gradfix.trace.endings import Endings
from gradfix.trace.hunt import Hunt
from gradfix.trace.ledger import Ledger
from gradfix.trace.mode import Calls
from gradfix.trace.naming import Names
from gradfix.trace.regions import Regions
from gradfix.trace.report import Ending, Failure
from gradfix.trace.state import State
from gradfix.trace.steps import Steps
from gradfix.trace.writes import Writes

_torch: Any = torch
_optimizers: Any = importlib.import_module("torch.optim.optimizer")
EAGERLY = "what torch.compile was given ran eagerly, so that the recorder could see into it"
SCALER = ("scale", "unscale_", "step", "update")


class Session:
    """One recording: `start`, run the program, `stop`."""

    def __init__(self, emit: Callable[[Any], None], hunt: bool = False) -> None:
        self.state = State(emit)
        self.state.ledger = Ledger(self.state)
        self.state.names = Names(self.state)
        self.writes = Writes(self.state)
        self.regions = Regions(self.state)
        self.calls = Calls(self.state, self.writes, self.regions)
        self.calls.hunt = self.hunt = Hunt(self.state, hunt)
        self.mode: Any = self.calls
        self.backwards = Backwards(self.state, self.writes)
        self.backwards.hunt = self.hunt
        self.steps = Steps(self.state, self.writes)
        self.replaced: list[tuple[Any, str, Any]] = []
        self.handles: list[Any] = []
        self.suspended = False

    def start(self) -> None:
        """Begin to record in this thread."""
        self._patch(_torch.autograd, "backward", self.backwards.wrap)
        self._patch(_torch.autograd, "grad", self.backwards.wrap)
        self._patch(_torch.autograd.Function, "apply", self._applied)
        self._patch(torch.nn.Module, "__init__", self._built)
        self._patch(torch.nn.Module, "zero_grad", self.steps.wrap_zero_grad)
        self._patch(torch.optim.Optimizer, "zero_grad", self.steps.wrap_zero_grad)
        self._patch(torch.optim.Optimizer, "__init__", self.steps.wrap_init)
        self._patch(torch.inference_mode, "__enter__", self._inference(True))
        self._patch(torch.inference_mode, "__exit__", self._inference(False))
        self._patch(type(torch.nn.Parameter), "__call__", self._parameter("Parameter"))
        self._patch(type(_torch.autograd.Variable), "__call__", self._parameter("Variable"))
        self._patch(torch, "from_numpy", self._from_numpy)
        self._patch(torch, "compile", self._compile)
        self._patch_tools()
        self.handles = [
            _optimizers.register_optimizer_step_pre_hook(self.steps.before),
            _optimizers.register_optimizer_step_post_hook(self.steps.finished),
        ]
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forked)
        self.mode.__enter__()
        self.state.suspend, self.state.resume = self._suspend, self._resume

    def _patch_tools(self) -> None:
        amp = getattr(_torch, "amp", None)
        scaler = getattr(amp, "GradScaler", None) or _torch.cuda.amp.GradScaler
        for name in SCALER:
            self._patch(scaler, name, self.steps.wrap_scaler)
        for owner in (torch.nn.utils, _torch.nn.utils.clip_grad):
            for name in ("clip_grad_norm_", "clip_grad_value_"):
                self._patch(owner, name, self.steps.wrap_clip)

    def _patch(self, owner: Any, name: str, wrap: Callable[[Any], Any]) -> None:
        own = vars(owner).get(name)
        self.replaced.append((owner, name, own))
        setattr(owner, name, wrap(getattr(owner, name)))

    def _suspend(self) -> bool:
        """True: the mode was there, and is gone until `_resume`."""
        if self.suspended or _torch.overrides._get_current_function_mode() is not self.mode:
            return False
        self.mode.__exit__(None, None, None)
        self.suspended = True
        return True

    def _resume(self) -> None:
        if self.suspended:
            self.suspended = False
            self.mode.__enter__()

    def stop(self) -> None:
        """Put everything back."""
        if not self.suspended:
            self.mode.__exit__(None, None, None)
        for handle in self.handles:
            handle.remove()
        for owner, name, own in reversed(self.replaced):
            if own is None:
                delattr(owner, name)
            else:
                setattr(owner, name, own)
        self.replaced.clear()
        self.state.active = False

    def ending(self, how: Any, error: Failure | None) -> Ending:
        """What can be said when the program is over."""
        reasons: dict[str, str] = {}
        with self.state.forgiving():
            self.calls.sums.close()
            if error is not None and "has no attribute 'backward'" in error["message"]:
                self.backwards.severed.number(error["message"], None)
            reasons = Endings(self.state, self.backwards, self.steps).close()
        return Ending(
            event="end", how=how, error=error, reasons=reasons,
            lines=self.state.places.lines(), held_back=[], notes=self.state.notes,
        )  # fmt: skip

    def _forked(self) -> None:
        """Children (DataLoader workers) are not recorded."""
        self.state.active = False
        self.state.stepping = False

    def _built(self, real: Any) -> Any:
        state = self.state

        @functools.wraps(real)
        def watched(module: Any, *args: Any, **kwargs: Any) -> None:
            if state.active:
                state.modules.add(module, state.count, state.places.here(2))
            real(module, *args, **kwargs)

        return watched

    def _applied(self, real: Any) -> Any:
        """Where a custom Function was called: function modes do not hear of it."""

        @functools.wraps(real.__func__)
        def watched(cls: Any, *args: Any, **kwargs: Any) -> Any:
            result = real.__func__(cls, *args, **kwargs)
            if self.state.active:
                with self.state.forgiving():
                    self.calls.applied(result, self.state.places.here(2))
            return result

        return classmethod(watched)

    def _inference(self, enter: bool) -> Callable[[Any], Any]:
        def wrap(real: Any) -> Any:
            @functools.wraps(real)
            def watched(mode: Any, *args: Any) -> Any:
                if self.state.active and getattr(mode, "mode", True):
                    self.regions.inference(enter, sys._getframe(0))
                return real(mode, *args)

            return watched

        return wrap

    def _compile(self, real: Any) -> Any:
        """Compiled code cannot be seen into: it runs eagerly, and the report says so."""

        @functools.wraps(real)
        def watched(model: Any = None, **kwargs: Any) -> Any:
            if not self.state.active:
                return real(model, **kwargs)
            if EAGERLY not in self.state.notes:
                self.state.notes.append(EAGERLY)
            return model if model is not None else lambda given: given

        return watched

    def _from_numpy(self, real: Any) -> Any:
        """torch hands arrays in past its function modes."""

        @functools.wraps(real)
        def watched(array: Any) -> Any:
            result = real(array)
            sources = self.state.origins.get(array)
            if self.state.active and sources:
                self.state.origins.put(result, sources)
            return result

        return watched

    def _parameter(self, form: str) -> Callable[[Any], Any]:
        """`Parameter(t)` and `Variable(t)` make a leaf of whatever they are given."""

        def wrap(real: Any) -> Any:
            def watched(cls: Any, *args: Any, **kwargs: Any) -> Any:
                result = type.__call__(cls, *args, **kwargs)
                given = args[0] if args else kwargs.get("data")
                if self.state.active and isinstance(given, torch.Tensor) and isinstance(result, torch.Tensor):
                    with self.state.quiet():
                        self.calls.accesses.wrapped(form, given, result, self.state.places.here(2))
                return result

            return watched

        return wrap


def warm() -> None:
    """Import what programs are about to import: the optimizers pull in the compiler."""
    try:
        import torch._dynamo
        import torch.utils.data  # noqa: F401
    except ImportError:
        return
