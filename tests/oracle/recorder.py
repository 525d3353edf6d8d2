"""Watches torch while a program runs: which backward reached which leaf, and what each step used."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import torch
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from .claims import classify
from .facts import PROGRAM, Backward, Failure, Held, Run, Step
from .grafts import Graft

Tensor = torch.Tensor


@dataclass
class Slot:
    """The gradient of one leaf: whose contributions it holds, and which steps have used them."""

    leaf: Tensor
    holds: list[tuple[int, int]] = field(default_factory=list)
    """(number, line) of backwards."""
    erased: list[tuple[int, int]] = field(default_factory=list)
    used: dict[int, set[int]] = field(default_factory=dict)
    seen: tuple[int, int] = (0, 0)
    ever: bool = False
    flows: bool = False
    """Whether the gradient was not all zeros after the last backward."""
    void: set[int] = field(default_factory=set)
    """Backwards after which it was all zeros: whether `.data.zero_()` cleared those can't be seen."""

    def state(self) -> tuple[int, int]:
        grad = self.leaf.grad
        return (0, 0) if grad is None else (id(grad), grad._version)

    def cleared(self) -> bool:
        """Whether the gradient is gone or all zeros; `grad.data.zero_()` shows in no version."""
        grad = self.leaf.grad
        if grad is None:
            return True
        return (self.flows or self.state() != self.seen) and not bool(grad.any())

    def refresh(self) -> None:
        """Notice that somebody has cleared the gradient."""
        if self.holds and self.cleared():
            spent = set().union(*self.used.values())
            self.erased += [each for each in self.holds if each[0] not in spent]
            if self.flows or self.leaf.grad is None:
                self.holds = []  # else zeros were written over zeros: clipping does that as well as zero_()
        self.seen = self.state()

    def add(self, number: int, line: int) -> None:
        if self.state() != self.seen and self.leaf.grad is not None:
            self.holds.append((number, line))
            self.ever = True
            self.flows = bool(self.leaf.grad.any())
            self.void |= set() if self.flows else {number}
        self.seen = self.state()


class Recorder:
    """Fills a Run. One at a time: torch's hooks are global."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.slots: dict[int, Slot] = {}
        self.made: list[tuple[int, Optimizer]] = []
        self.steps: dict[int, int] = {}
        self.by_hand: set[int] = set()
        """The tensors that are updated by hand."""
        self.count = 0

    def slot(self, leaf: Tensor) -> Slot:
        return self.slots.setdefault(id(leaf), Slot(leaf))

    def failed(self, error: RuntimeError) -> None:
        key = classify(str(error))
        if not key:
            raise error
        lines = [*outer_lines(), *traceback_lines(error)]
        self.run.failures.append(Failure(key, str(error), tuple(dict.fromkeys(lines))))

    def settle(self, line: int) -> None:
        """A line has run: notice which gradients it has erased."""
        for slot in self.slots.values():
            known = len(slot.erased)
            slot.refresh()
            self.run.erasers |= {(line, at) for _, at in slot.erased[known:]}

    def before_backward(self, leaves: list[Tensor], roots: list[Tensor], line: int) -> list[Slot]:
        for slot in self.slots.values():
            slot.refresh()
        if any(root.is_leaf and root.requires_grad for root in roots):
            self.run.leaf_roots.append(line)
        reached = [self.slot(leaf) for leaf in leaves]
        for slot in reached:
            slot.refresh()
        return reached

    def after_backward(self, reached: list[Slot], nodes: int, line: int, sums: tuple[float, float]) -> None:
        mark, value = sums
        self.count += 1
        for slot in reached:
            slot.add(self.count, line)
        if not reached:
            self.run.lost.append(line)
        got = sum(slot.leaf.grad is not None for slot in reached)
        self.run.backwards.append(Backward(line, got, nodes, round(mark, 4), torch.is_grad_enabled(), value))

    def before_step(self, key: int, parameters: list[Tensor], line: int) -> None:
        slots = [self.slot(p) for p in parameters]
        for slot in slots:
            slot.refresh()
        for slot in slots:
            self.note_stale(slot, key, line)
        erased = sorted({at for slot in slots for _, at in slot.erased})
        if erased:
            lost = not any(slot.holds for slot in slots)
            (self.run.erased if lost else self.run.partly_erased).append(Step(line, tuple(erased)))

    def note_stale(self, slot: Slot, key: int, line: int) -> None:
        spent = slot.used.get(key, set())
        old = [each for each in slot.holds if each[0] in spent]
        new = [each for each in slot.holds if each[0] not in spent]
        if old:
            lines = tuple(sorted({at for _, at in old + new}))
            harmful = new and slot.flows and any(number not in slot.void for number, _ in old)
            (self.run.stale if harmful else self.run.repeated).append(Step(line, lines))

    def after_step(self, key: int, parameters: list[Tensor]) -> None:
        self.steps[key] = self.steps.get(key, 0) + 1
        for slot in map(self.slot, parameters):
            slot.used.setdefault(key, set()).update(number for number, _ in slot.holds)
            slot.erased = []

    def update(self, tensor: object, rebinds: bool) -> None:
        """A hand-written step of one tensor."""
        if not isinstance(tensor, Tensor) or not tensor.is_leaf:
            return
        line = current_line()
        self.by_hand.add(id(tensor))
        if rebinds and tensor.requires_grad:
            self.run.rebound.append(line)
        self.before_step(-1, [tensor], line)
        self.after_step(-1, [tensor])

    def close(self) -> None:
        wanted = self.by_hand | {id(leaf) for _, optimizer in self.made for leaf in held(optimizer)}
        self.run.trained = sum(slot.ever for key, slot in self.slots.items() if key in wanted)
        for line, optimizer in self.made:
            slots = [self.slot(p) for p in held(optimizer) if p.requires_grad]
            unreached = sum(not slot.ever for slot in slots)
            self.run.optimizers.append(Held(line, len(slots), unreached, self.steps.get(id(optimizer), 0)))


def graph_of(roots: list[Tensor]) -> tuple[list[Tensor], int]:
    """The leaves that a backward from these roots reaches, and how many nodes it passes."""
    found: dict[int, Tensor] = {id(r): r for r in roots if r.is_leaf and r.requires_grad}
    stack: list[Any] = [root.grad_fn for root in roots if root.grad_fn is not None]
    seen = set(stack)
    while stack:
        node = stack.pop()
        leaf = getattr(node, "variable", None)
        if leaf is not None and not isinstance(leaf, Graft):
            found[id(leaf)] = leaf
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                stack.append(following)
    return list(found.values()), len(seen)


def current_line() -> int:
    """The program line that is running, seen from inside torch or this recorder."""
    return next(iter(outer_lines()), 0)


def outer_lines() -> list[int]:
    """Program lines of the calling frames, innermost first."""
    lines = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == PROGRAM:
            lines.append(frame.f_lineno)
        frame = frame.f_back
    return lines


def traceback_lines(error: BaseException) -> list[int]:
    lines = []
    at = error.__traceback__
    while at is not None:
        if at.tb_frame.f_code.co_filename == PROGRAM:
            lines.append(at.tb_lineno)
        at = at.tb_next
    return lines


@contextmanager
def recording(run: Run) -> Iterator[Recorder]:
    """Torch with its eyes open: backward, optimizers and warnings tell the recorder."""
    recorder = Recorder(run)
    backward, init = torch.autograd.backward, Optimizer.__init__
    hooks = [
        register_optimizer_step_pre_hook(
            lambda o, a, k: recorder.before_step(id(o), held(o), current_line())
        ),
        register_optimizer_step_post_hook(lambda o, a, k: recorder.after_step(id(o), held(o))),
    ]
    torch.autograd.backward = watched_backward(recorder, backward)
    Optimizer.__init__ = watched_init(recorder, init)  # type: ignore[method-assign]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = lambda *given, **named: note_warning(
                run, str(given[0]), given[2], given[3]
            )
            yield recorder
    finally:
        torch.autograd.backward = backward
        Optimizer.__init__ = init  # type: ignore[method-assign]
        for hook in hooks:
            hook.remove()


def held(optimizer: Optimizer) -> list[Tensor]:
    return [p for group in optimizer.param_groups for p in group["params"]]


def note_warning(run: Run, message: str, file: object, line: object) -> None:
    if "not a leaf Tensor" in message and file == PROGRAM and isinstance(line, int):
        run.non_leaf_reads.append(line)


def watched_backward(recorder: Recorder, backward: Any) -> Any:
    def wrapper(tensors: Any, *args: Any, **kwargs: Any) -> None:
        roots = [tensors] if isinstance(tensors, Tensor) else list(tensors)
        line = current_line()
        leaves, nodes = graph_of(roots)
        reached = recorder.before_backward(leaves, roots, line)
        arrived: list[float] = []  # not the sum in `.grad`: a huge one swallows what is added to it
        hooks = [watch(leaf, arrived) for leaf in leaves if leaf.requires_grad]
        try:
            backward(tensors, *args, **kwargs)
        finally:
            for hook in hooks:
                hook.remove()
        value = sum(float(root.detach().sum()) for root in roots)
        recorder.after_backward(reached, nodes, line, (sum(arrived), value))

    return wrapper


def watch(leaf: Tensor, arrived: list[float]) -> Any:
    """Note how much arrives at a leaf."""
    note: Any = leaf.register_hook
    return note(lambda gradient: arrived.append(float(gradient.detach().abs().sum())))


def watched_init(recorder: Recorder, init: Any) -> Any:
    def wrapper(self: Optimizer, *args: Any, **kwargs: Any) -> None:
        recorder.made.append((current_line(), self))
        init(self, *args, **kwargs)

    return wrapper
