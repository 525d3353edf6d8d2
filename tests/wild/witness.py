"""Watches torch while a program runs: which gradients arrive, pile up, are used, are erased.

It stands in the place of `torch.autograd.backward`, of `Tensor.grad` and of the optimizers' doors, and looks
at every leaf whenever something passes one of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import torch
from torch import nn

from .facts import Backward, Chain, Facts, Group

PROGRAM = "program.py"
GRAD: Any = torch._C.TensorBase.grad


def chain() -> Chain:
    """The program's own lines on the stack."""
    frame: FrameType | None = sys._getframe(1)
    lines = []
    while frame is not None:
        if frame.f_code.co_filename == PROGRAM:
            lines.append(frame.f_lineno)
        frame = frame.f_back
    return tuple(lines)


@dataclass
class Share:
    """What one backward pass has added to a gradient."""

    number: int
    void: bool = False
    """Whether it is all zeros: then only its absence shows that it was cleared."""
    stepped: bool = False
    read: bool = False


@dataclass
class Leaf:
    """A tensor that gradients arrive at."""

    tensor: Any
    name: str
    value: Any
    start: Any
    shares: list[Share] = field(default_factory=list)
    reached: bool = False
    read: bool = False
    owned: bool = False
    cleared: Chain = ()
    """Where a gradient that no step had used was cleared, as long as no other has come."""
    known: bool = False
    """Whether the program has ever read its gradient."""
    wanted: bool = False
    """Whether it has required grad when its optimizer stepped."""
    touched: bool = False
    """Whether a step or an update by hand has used its gradient."""

    @property
    def grad(self) -> Any:
        return GRAD.__get__(self.tensor)


class Witness:
    """One run's observations."""

    def __init__(self) -> None:
        self.facts = Facts()
        self.leaves: dict[int, Leaf] = {}
        self.optimizers: list[tuple[Any, Group]] = []
        self.inside = 0
        self.closure = False
        self.reads: set[int] = set()

    def leaf(self, tensor: Any) -> Leaf:
        found = self.leaves.get(id(tensor))
        if found is None:
            value = tensor.detach().clone()
            found = Leaf(tensor, f"free{len(self.leaves)}", value, value)
            self.leaves[id(tensor)] = found
        return found

    def made(self, optimizer: Any) -> None:
        """An optimizer has been given leaves."""
        known = next((group for each, group in self.optimizers if each is optimizer), None)
        if known is None:
            known = Group(chain())
            self.facts.groups.append(known)
            self.optimizers.append((optimizer, known))
        number = self.facts.groups.index(known)
        names = []
        for position, tensor in enumerate(owned(optimizer)):
            leaf = self.leaf(tensor)
            if not leaf.owned:
                leaf.name, leaf.owned = f"{number}.{position}", True
            names.append(leaf.name)
        known.leaves = tuple(names)

    def settle(self, where: Chain = ()) -> None:
        """Notice what has been cleared, and what has been changed by hand, since the last look."""
        for leaf in self.leaves.values():
            self.by_hand(leaf, where)
            grad = leaf.grad
            void = all(share.void for share in leaf.shares)
            if leaf.shares and (grad is None or not (void or grad.any())):
                self.erase(leaf, where)
            leaf.value = leaf.tensor.detach().clone()

    def by_hand(self, leaf: Leaf, where: Chain) -> None:
        """A leaf that has changed since its gradient was read has been stepped by hand."""
        changed = leaf.read and leaf.shares and not torch.equal(leaf.value, leaf.tensor.detach())
        if changed and not self.inside:
            self.facts.by_hand = True
            self.use(leaf, where, [share for share in leaf.shares if share.read])

    def erase(self, leaf: Leaf, where: Chain) -> None:
        for share in leaf.shares:
            backward = self.facts.backwards[share.number]
            if self.closure:
                backward.stepped = True
            elif not share.stepped:
                backward.erased = (*backward.erased, where)
                leaf.cleared = where
        leaf.shares, leaf.read = [], False

    def use(self, leaf: Leaf, where: Chain, shares: list[Share]) -> None:
        """A step, or an update by hand, uses the gradient of a leaf."""
        old = [share for share in shares if share.stepped and not share.void]
        for share in shares:
            backward = self.facts.backwards[share.number]
            if old and not share.stepped:
                self.facts.stale.append((backward.lines, where))
            share.stepped = backward.stepped = leaf.touched = True
        leaf.read = False

    def stepping(self, optimizer: Any) -> None:
        """An optimizer is about to use what it finds."""
        self.settle(chain())
        group = next(group for each, group in self.optimizers if each is optimizer)
        group.steps += 1
        for tensor in owned(optimizer):
            leaf = self.leaf(tensor)
            leaf.wanted = leaf.wanted or tensor.requires_grad
            if leaf.cleared and not leaf.shares:
                self.facts.starved.append((leaf.cleared, chain()))
            if leaf.grad is not None:
                leaf.touched = True
                self.use(leaf, chain(), leaf.shares)

    def backward(self, run: Callable[[], Any], roots: Any, inputs: Any) -> Any:
        tensors = [roots] if isinstance(roots, torch.Tensor) else list(roots)
        self.settle(chain())
        leaves = (
            [self.leaf(t) for t in reached(tensors)] if inputs is None else [self.leaf(t) for t in inputs]
        )
        record = Backward(chain(), sum(float(t.detach().double().sum()) for t in tensors))
        number = len(self.facts.backwards)
        self.facts.backwards.append(record)
        before = {leaf.name: 0.0 if leaf.grad is None else told(leaf.grad) for leaf in leaves}
        self.inside += 1
        try:
            answer = run()
        finally:
            self.inside -= 1
        for leaf in leaves:
            grad = leaf.grad
            if grad is None:
                continue
            record.reached = (*record.reached, leaf.name)
            record.sums = (*record.sums, round(told(grad) - before[leaf.name], 9))
            leaf.reached = True
            leaf.shares.append(Share(number, void=not grad.any()))
            leaf.cleared = ()
        return answer

    def looked(self, tensor: Any) -> None:
        """The program reads a gradient."""
        leaf = self.leaves.get(id(tensor))
        if leaf is not None and leaf.shares:
            self.by_hand(leaf, chain())
            leaf.value = tensor.detach().clone()
            leaf.read = leaf.known = True
            for share in leaf.shares:
                share.read = True
                self.facts.backwards[share.number].read = True

    def ended(self, lines: Iterable[int]) -> Facts:
        """The facts, with what can be told only at the end."""
        self.settle()
        facts = self.facts
        facts.lines = tuple(sorted(set(lines)))
        facts.reads = tuple(sorted(self.reads))
        for optimizer, group in self.optimizers:
            mine = [self.leaf(tensor) for tensor in owned(optimizer)]
            group.unreached = tuple(leaf.name for leaf in mine if leaf.wanted and not leaf.touched)
            group.unchanged = tuple(
                leaf.name for leaf in mine if leaf.wanted and torch.equal(leaf.start, leaf.tensor.detach())
            )
        facts.unowned = sum(self.forgotten(leaf) for leaf in self.leaves.values())
        return facts

    @staticmethod
    def forgotten(leaf: Leaf) -> bool:
        """A parameter that learns from a backward, and that nobody ever changes or looks at."""
        used = leaf.owned or leaf.touched or leaf.known or not torch.equal(leaf.start, leaf.tensor.detach())
        return isinstance(leaf.tensor, nn.Parameter) and leaf.reached and not used


def told(grad: Any) -> float:
    """A number that tells gradients apart, also those whose elements add up to nothing as behind a softmax."""
    whole = grad.detach().double().flatten()
    return float((whole * torch.arange(1, whole.numel() + 1, dtype=torch.float64).cos()).sum())


def owned(optimizer: Any) -> Iterator[Any]:
    return (tensor for group in optimizer.param_groups for tensor in group["params"])


def reached(roots: Iterable[Any]) -> list[Any]:
    """The leaves behind some tensors."""
    waiting = [root.grad_fn for root in roots if root.grad_fn is not None]
    found = {id(root): root for root in roots if root.grad_fn is None and root.requires_grad}
    seen = set(waiting)
    while waiting:
        node = waiting.pop()
        if hasattr(node, "variable") and type(node).__name__ == "AccumulateGrad":
            found[id(node.variable)] = node.variable
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                waiting.append(following)
    return list(found.values())


class Stand:
    """The witness that the doors of torch report to; they are opened once for each process."""

    now: Witness | None = None


def install() -> None:
    """Stand at the doors of this process."""
    _watch_backward()
    _watch_grad()
    _watch_asked()
    _watch_optimizers()


def _watch_backward() -> None:
    plain = torch.autograd.backward

    def backward(tensors: Any, *given: Any, **named: Any) -> Any:
        witness = Stand.now
        if witness is None or not chain():
            return plain(tensors, *given, **named)
        return witness.backward(lambda: plain(tensors, *given, **named), tensors, named.get("inputs"))

    torch.autograd.backward = backward


def _watch_asked() -> None:
    plain = torch.autograd.grad

    def grad(*given: Any, **named: Any) -> Any:
        answer = plain(*given, **named)
        if Stand.now is not None and not Stand.now.inside and chain():
            Stand.now.facts.asked.append(tuple(0.0 if one is None else round(told(one), 9) for one in answer))
        return answer

    torch.autograd.grad = grad


def _watch_grad() -> None:
    def get(tensor: Any) -> Any:
        value = GRAD.__get__(tensor)
        if Stand.now is not None and sys._getframe(1).f_code.co_filename == PROGRAM:
            if value is None:
                Stand.now.reads.add(sys._getframe(1).f_lineno)
            Stand.now.looked(tensor)
        return value

    def put(tensor: Any, value: Any) -> None:
        GRAD.__set__(tensor, value)
        if Stand.now is not None and not Stand.now.inside and sys._getframe(1).f_code.co_filename == PROGRAM:
            _put(Stand.now, tensor, value)

    tensor: Any = torch.Tensor
    tensor.grad = property(get, put, lambda tensor: GRAD.__set__(tensor, None))


def _put(witness: Witness, tensor: Any, value: Any) -> None:
    leaf = witness.leaf(tensor)
    if value is None:
        witness.settle(chain())
        return
    for share in leaf.shares:
        witness.facts.backwards[share.number].read = True
    leaf.shares, leaf.reached, leaf.cleared = [], True, ()


def _watch_optimizers() -> None:
    kind: Any = torch.optim.Optimizer
    module: Any = nn.Module
    plain_add, plain_clear, plain_module = kind.add_param_group, kind.zero_grad, module.zero_grad

    def add(self: Any, group: Any) -> None:
        plain_add(self, group)
        if Stand.now is not None and chain():
            Stand.now.made(self)

    def clear(self: Any, *given: Any, **named: Any) -> None:
        _cleared(lambda: plain_clear(self, *given, **named))

    def clear_module(self: Any, *given: Any, **named: Any) -> None:
        _cleared(lambda: plain_module(self, *given, **named))

    kind.add_param_group, kind.zero_grad, module.zero_grad = add, clear, clear_module
    doors = sys.modules["torch.optim.optimizer"]
    doors.register_optimizer_step_pre_hook(_before)
    doors.register_optimizer_step_post_hook(_after)


def _cleared(run: Callable[[], None]) -> None:
    if Stand.now is not None:
        Stand.now.settle(chain())
    run()
    if Stand.now is not None:
        Stand.now.settle(chain())


def _closure(given: Any, named: Any) -> Any:
    return named.get("closure") or next(
        (each for each in given if callable(each) and not isinstance(each, torch.optim.Optimizer)), None
    )


def _before(optimizer: Any, given: Any, named: Any) -> None:
    witness = Stand.now
    if witness is None:
        return
    if _closure(given, named):
        witness.settle(chain())
        witness.closure = True
    else:
        witness.stepping(optimizer)


def _after(optimizer: Any, given: Any, named: Any) -> None:
    witness = Stand.now
    if witness is None:
        return
    if witness.closure:
        witness.closure = False
        witness.inside += 1
        witness.stepping(optimizer)
        witness.inside -= 1
    for tensor in owned(optimizer):
        leaf = witness.leaf(tensor)
        leaf.value = tensor.detach().clone()
