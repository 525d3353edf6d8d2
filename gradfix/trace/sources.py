"""Remembers where tensors without a gradient come from: cuts, grad modes, conversions, factories."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import torch

from gradfix.trace.places import Spot

_torch: Any = torch
MOST_SOURCES = 8
MOST_NUMBERS = 512
MOST_NODES = 4000
CUTS = "gradfix_cuts"
"""Under what a node holds the cuts whose values went into it."""
Collector: Any = _torch._C._functions.AccumulateGrad
"""The node that collects the gradient of a leaf."""


@dataclass(eq=False)
class Source:
    """One place where a value left the graph, or was made outside of it."""

    kind: str
    """The rule that it may come to, or "made" for a factory."""
    spot: Spot | None
    form: str = ""
    scalar: bool = False
    at: int = 0
    """The count of torch calls when it happened."""
    leaves: set[int] = field(default_factory=set)
    """Leaves whose gradient would have come through here."""
    entered: bool = False
    """Whether what came of it went into a graph that was backpropagated: a log is no loss."""
    inner: list[Spot] = field(default_factory=list)
    """Calls that a grad mode kept out of the graph."""

    @property
    def number(self) -> bool:
        """Whether a plain value was made of a result."""
        return self.kind == "converted_loss_path"

    @property
    def rebinds(self) -> bool:
        """Whether the name of a leaf may have been bound to a result."""
        return self.kind == "leaf_rebound"

    @property
    def asked(self) -> bool:
        """Whether it is a gradient that `torch.autograd.grad` has handed out without a graph."""
        return self.kind == "gradient_without_graph"

    @property
    def region(self) -> bool:
        """Whether nothing is recorded for a whole stretch."""
        return self.kind == "forward_in_no_grad"

    @property
    def checkpoint(self) -> bool:
        """Whether it is a reentrant checkpoint."""
        return self.kind == "reentrant_checkpoint_cut"

    @property
    def cut(self) -> bool:
        """Whether a gradient was lost here."""
        return self.kind != "made" and bool(self.leaves)


Sources: TypeAlias = "tuple[tuple[Source, bool], ...]"
"""Each with whether it entered as a term of a sum."""


class Keyed(weakref.ref[Any]):
    """A weak reference that knows under which identity it is filed."""

    __slots__ = ("key",)
    key: int


class Origins:
    """The sources of live values, found again by identity and dropped with the value."""

    def __init__(self) -> None:
        self.forget = self._forget
        self.of_tensor: dict[int, tuple[Any, Sources]] = {}
        self.of_number: OrderedDict[int, tuple[Any, Source]] = OrderedDict()
        self.recent: list[Source] = []
        self.all: list[Source] = []
        self.waiting: set[Source] = set()
        """Cuts whose values have gone into a graph that nobody has backpropagated yet."""

    def get(self, value: Any) -> Sources:
        """What is known of a tensor or an array."""
        found = self.of_tensor.get(id(value))
        return found[1] if found is not None and found[0]() is value else ()

    def put(self, value: Any, sources: Sources) -> None:
        """Remember a tensor's sources for as long as it lives."""
        try:
            reference = Keyed(value, self.forget)
        except TypeError:
            return
        reference.key = id(value)
        self.of_tensor[reference.key] = (reference, sources[:MOST_SOURCES])

    def _forget(self, reference: Any) -> None:
        """The value is gone, and its identity may already be another's."""
        found = self.of_tensor.get(reference.key)
        if found is not None and found[0] is reference:
            del self.of_tensor[reference.key]

    def put_number(self, value: Any, source: Source) -> None:
        """Remember which conversion a plain number came from."""
        if isinstance(value, list):
            for item in value[:16]:
                self.put_number(item, source)
        if isinstance(value, (float, list)):
            self.of_number[id(value)] = (value, source)
            if len(self.of_number) > MOST_NUMBERS:
                self.of_number.popitem(last=False)

    def number(self, value: Any) -> Source | None:
        """The conversion that made this very number."""
        found = self.of_number.get(id(value))
        return found[1] if found is not None and found[0] is value else None

    def into(self, node: Any, sources: Sources) -> None:
        """What came of these went into a node of a graph."""
        cuts = [source for source, _ in sources if source.cut and not source.entered]
        if cuts:
            node.metadata.setdefault(CUTS, set()).update(cuts)
            self.waiting.update(cuts)

    def entered(self, roots: Iterable[Any], inner: Iterable[Any]) -> None:
        """These were backpropagated, with the nodes behind them: whatever went in has entered a loss."""
        found = {source for root in roots for source, _ in self.get(root)}
        if self.waiting:
            found |= {source for node in inner for source in node.metadata.get(CUTS, ())}
        for source in found:
            source.entered = True
        self.waiting -= found

    def behind(self, value: Any) -> Sources:
        """A value's sources; where plain numbers broke the chain, the conversions since the last backward."""
        sources = self.get(value)
        if any(source.cut for source, _ in sources):
            return sources
        made = [source.at for source, _ in sources if source.kind == "made"]
        numbers = [s for s in self.recent if s.number]
        if made:
            numbers = [s for s in numbers if s.at <= max(made)]
        return tuple((source, True) for source in numbers[-4:]) + sources

    def cut(self, source: Source) -> Source:
        """Note a cut, so that the end of the run can name it."""
        self.recent.append(source)
        self.all.append(source)
        del self.recent[:-64]
        del self.all[:-2000]
        return source


def joined(many: Iterable[Sources], *, term: bool) -> Sources:
    """The sources of a result, from those of its arguments; `term`: the result is a sum of them."""
    many = list(many)
    if len(many) == 1 and len(many[0]) == 1:
        return many[0] if term else ((many[0][0][0], False),)
    found: dict[Source, bool] = {}
    for sources in many:
        for source, was_term in sources:
            found[source] = found.get(source, False) or (was_term and term)
    return tuple(sorted(found.items(), key=lambda item: not item[0].cut)[:MOST_SOURCES])


def nodes(roots: Iterable[Any], most: int = 1_000_000) -> Iterator[tuple[Any, Any]]:
    """Each graph node behind the roots with the node that led to it, roots first."""
    queue = [(root, None) for root in roots if root is not None]
    seen = {root for root, _ in queue}
    for node, via in queue:
        yield node, via
        if len(seen) > most:
            continue
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                queue.append((following, node))


def behind(roots: Iterable[Any], most: int = 1_000_000) -> tuple[list[Any], list[Any]]:
    """The leaves behind some roots, and the nodes on the way to them, in one loop: every backward asks."""
    inner = [root for root in roots if root is not None]
    seen, found = set(inner), []
    for node in inner:
        if len(seen) > most:
            break
        for one, _ in node.next_functions:
            if one is not None and one not in seen:
                seen.add(one)
                if type(one) is Collector:
                    found.append(one.variable)
                else:
                    inner.append(one)
    return found, inner


def leaves(value: Any) -> set[int]:
    """The identities of the leaves that a tensor's gradient would reach."""
    if not value.requires_grad:
        return set()
    if value.grad_fn is None:
        return {id(value)}
    return {id(leaf) for leaf in behind([value.grad_fn], MOST_NODES)[0]}
