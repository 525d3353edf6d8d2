"""Puts the recorder into a program and takes it out again without a trace."""

from __future__ import annotations

import functools
import importlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch

from gradfix.trace.backwards import Backwards
from gradfix.trace.endings import Endings
from gradfix.trace.hunt import Hunt
from gradfix.trace.ledger import Ledger
from gradfix.trace.mode import Calls
from gradfix.trace.naming import Names
from gradfix.trace.parts import Patches, Watcher
from gradfix.trace.regions import Regions
from gradfix.trace.report import BACKWARD, CALLS, STEPS, Ending, Failure
from gradfix.trace.returned import Returned
from gradfix.trace.shortcut import Shortcut
from gradfix.trace.state import State
from gradfix.trace.steps import Steps
from gradfix.trace.units import Units
from gradfix.trace.writes import Writes

_torch: Any = torch
_optimizers: Any = importlib.import_module("torch.optim.optimizer")
EAGERLY = "what torch.compile was given ran eagerly, so that the recorder could see into it"
SCALER = ("scale", "unscale_", "step", "update")
CLIPS = ("clip_grad_norm_", "clip_grad_value_")

UNDER_WAY: list[Session] = []
"""A session within another one goes on counting: both see the same nodes."""


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
        self.returned = Returned(self.state)
        self.backwards.first = self.returned.tell
        self.patches = Patches(self.state)
        self.shortcut = Shortcut(self.mode)
        self.units = Units(self.calls)
        self.handles: list[Any] = []
        self.suspended = False
        self.entered = False
        self.reasons: dict[str, str] = {}
        """Parameter without a gradient -> why: known at the end."""

    def start(self) -> None:
        """Begin to record in this thread. What torch lacks switches a part off and never raises."""
        if UNDER_WAY:
            self.state.count = UNDER_WAY[-1].state.count
        UNDER_WAY.append(self)
        for part, owner, names, watcher in self._watched():
            for name in names:
                self.patches.watch(part, owner, name, watcher)
        with self.state.part(STEPS):
            self.handles = [
                _optimizers.register_optimizer_step_pre_hook(self.steps.before),
                _optimizers.register_optimizer_step_post_hook(self.steps.finished),
            ]
        with self.state.part("what modules return"):
            self.returned.start()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forked)
        with self.state.part(CALLS):
            self.mode.__enter__()
            self.entered = True
            self.shortcut.open()
            self.units.open()
            self.state.suspend, self.state.resume = self._suspend, self._resume

    def _watched(self) -> Iterator[tuple[str, Callable[[], Any], tuple[str, ...], Watcher]]:
        """Each part with the functions of torch that it stands in front of."""
        autograd, optimizer = (lambda: _torch.autograd), (lambda: torch.optim.Optimizer)
        yield BACKWARD, autograd, ("backward",), self.backwards.backward
        yield BACKWARD, autograd, ("grad",), self.backwards.grad
        yield "custom Functions", lambda: _torch.autograd.Function, ("apply",), self._applied
        yield "where modules are built", lambda: torch.nn.Module, ("__init__",), self._built
        yield "zero_grad", lambda: torch.nn.Module, ("zero_grad",), self.steps.zero_grad
        yield "zero_grad", optimizer, ("zero_grad",), self.steps.zero_grad
        yield "where optimizers are built", optimizer, ("__init__",), self.steps.init
        yield "inference_mode", lambda: torch.inference_mode, ("__enter__",), self._inference(True)
        yield "inference_mode", lambda: torch.inference_mode, ("__exit__",), self._inference(False)
        yield "Parameter(...)", lambda: type(torch.nn.Parameter), ("__call__",), self._parameter("Parameter")
        variable = lambda: type(_torch.autograd.Variable)  # noqa: E731
        yield "Variable(...)", variable, ("__call__",), self._parameter("Variable")
        for layer in ("Embedding", "EmbeddingBag"):
            frozen = functools.partial(getattr, torch.nn, layer)
            yield "from_pretrained", frozen, ("from_pretrained",), self._from_pretrained
        yield "from_numpy", lambda: torch, ("from_numpy",), self._from_numpy
        yield "torch.compile", lambda: torch, ("compile",), self._compile
        for name in SCALER:
            yield "gradient scalers", scaler, (name,), self.steps.scaler(name)
        yield "clipping", lambda: torch.nn.utils, CLIPS, self.steps.clip
        yield "clipping", lambda: _torch.nn.utils.clip_grad, CLIPS, self.steps.clip

    def _suspend(self) -> bool:
        """True: the mode was there, and is gone until `_resume`."""
        if self.suspended or not self._on_top():
            return False
        self.mode.__exit__(None, None, None)
        self.suspended = True
        return True

    def _on_top(self) -> bool:
        return _torch.overrides._get_current_function_mode() is self.mode

    def _resume(self) -> None:
        if self.suspended:
            self.suspended = False
            self.mode.__enter__()

    def hush(self) -> None:
        """Record no more, though the program goes on: in the middle of a step nothing can be put back."""
        self.state.active = False
        self._suspend()

    def anew(self) -> None:
        """In a fork that goes on by itself: what was built is known, nothing has happened yet."""
        self.state.active, self.state.stepping = True, False
        self.state.said.clear()
        self.state.ledger.steps.clear()
        self.state.ledger.hand.clear()
        self.state.optimizers.set_aside()
        self.backwards.filled = self.backwards.succeeded = 0
        self._resume()

    def stop(self) -> None:
        """Put everything back."""
        UNDER_WAY.remove(self)
        # A mode that the program has entered since and not left stands above ours, which is deaf from now on.
        if self.entered and not self.suspended and self._on_top():
            self.mode.__exit__(None, None, None)
        for handle in self.handles:
            handle.remove()
        self.returned.stop()
        self.units.close()
        self.shortcut.close()
        self.patches.undo()
        self.state.active = False

    def endings(self) -> Endings:
        """What can be asked when the program is over."""
        return Endings(self.state, self.backwards, self.steps)

    def ending(self, how: Any, error: Failure | None) -> Ending:
        """What can be said when the program is over."""
        steps: dict[str, int] = {}
        with self.state.forgiving():
            self.calls.sums.close()
            self.backwards.close()
            if error is not None and "has no attribute 'backward'" in error["message"]:
                self.backwards.severed.number(error["message"], None)
            self.reasons = self.endings().close()
            steps = self.steps.counted()
        return Ending(
            event="end", how=how, error=error, reasons=self.reasons,
            lines=self.state.places.lines(), held_back=[], notes=self.state.notes, blind=self.state.blind,
            torch=str(torch.__version__), steps=steps, compiler=False,
        )  # fmt: skip

    def _forked(self) -> None:
        """Children are not recorded, unless somebody begins anew in them."""
        self.state.active = False
        self.state.stepping = False

    def _built(self, real: Any, module: Any, *args: Any, **kwargs: Any) -> None:
        if self.state.active:
            self.state.modules.add(module, self.state.count, self.state.places.here(2))
        real(module, *args, **kwargs)

    def _applied(self, real: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
        """Where a custom Function was called: function modes do not hear of it."""
        result = real(cls, *args, **kwargs)
        if self.state.active:
            with self.state.forgiving():
                self.calls.applied(result, self.state.places.here(2))
        return result

    def _inference(self, enter: bool) -> Watcher:
        def watch(real: Any, mode: Any, *args: Any) -> Any:
            if self.state.active and getattr(mode, "mode", True):
                self.regions.inference(enter, sys._getframe(0))
            return real(mode, *args)

        return watch

    def _compile(self, real: Any, model: Any = None, **kwargs: Any) -> Any:
        """Compiled code cannot be seen into: it runs eagerly, and the report says so."""
        if not self.state.active:
            return real(model, **kwargs)
        if EAGERLY not in self.state.notes:
            self.state.notes.append(EAGERLY)
        return model if model is not None else lambda given: given

    def _from_numpy(self, real: Any, array: Any) -> Any:
        """torch hands arrays in past its function modes."""
        result = real(array)
        sources = self.state.origins.get(array)
        if self.state.active and sources:
            self.state.origins.put(result, sources)
        return result

    def _from_pretrained(self, real: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
        """Embeddings that are frozen as they are made, as nobody has said whether they are to be."""
        layer = real(cls, *args, **kwargs)
        if self.state.active and len(args) < 2 and "freeze" not in kwargs:
            self.state.unasked.add(layer.weight, self.state.count, self.state.places.here(2))
            # That was torch, and not the program, which told them to require none.
            self.state.frozen.held.pop(id(layer.weight), None)
        return layer

    def _parameter(self, form: str) -> Watcher:
        """`Parameter(t)` and `Variable(t)` make a leaf of whatever they are given."""

        def watch(real: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
            result = real(cls, *args, **kwargs)
            given = args[0] if args else kwargs.get("data")
            if self.state.active and isinstance(given, torch.Tensor) and isinstance(result, torch.Tensor):
                with self.state.quiet():
                    self.calls.accesses.wrapped(form, given, result, self.state.places.here(2))
            return result

        return watch


def scaler() -> Any:
    """The class of gradient scalers, in torch.amp since 2.3."""
    return getattr(getattr(_torch, "amp", None), "GradScaler", None) or _torch.cuda.amp.GradScaler
