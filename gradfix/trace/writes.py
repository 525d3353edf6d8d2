"""The log of in-place writes, and the calls that torch refuses because of one."""

from __future__ import annotations

import re
import sys
from collections import OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch

from gradfix.defects import Role
from gradfix.trace.calls import name_of, storage
from gradfix.trace.extents import Extent, extent, meet
from gradfix.trace.places import Spot
from gradfix.trace.state import State

MOST_WRITES = 4000
MOST_KEPT = 256
"""Elements of what a silent write has replaced."""
REFUSED = {
    "more than one element of the written-to tensor": "a tensor of which several elements lie in one place",
    "Inplace update to inference tensor": "a tensor that was made in inference mode",
    "functions with out=... arguments": "`out=`, which autograd doesn't follow",
}
"""What torch says of a write that it refuses whatever is trained, and what is written there."""
MAKER = re.compile(r"[Oo]utput \d+ of (\w+?)(?:Backward\d*)? ")


@dataclass(eq=False, slots=True)
class Write:
    """One call that wrote in place, be it to one tensor or, as a step, to many."""

    spot: Spot | None
    at: int
    name: str
    silent: bool = False
    """It does not count in the version that autograd checks."""
    extent: Extent | None = None
    """Which part of the storage it wrote, where that matters; None: all of it."""
    undone: bool = False
    """What it replaced was put back by a later one."""
    since: int = -1
    """It put back what was there at this time: for what was saved before, nothing has changed."""
    leaf: bool = False
    step: str = ""
    """The optimizer whose step it was."""
    backward: Spot | None = None
    """The backward whose gradients that step used."""
    module: str = ""
    built: Spot | None = None
    """Where the in-place module was built."""

    def spoils(self, at: int, value: Any) -> bool:
        """Whether a value that was saved at a time is no longer what it was."""
        if self.undone or not self.at >= at > self.since:
            return False
        return meet(self.extent, extent(value))


@dataclass(eq=False, slots=True)
class Stepped:
    """What one step of an optimizer wrote: looked into only when something is missing."""

    name: str
    spot: Spot | None
    at: int
    parameters: list[Any]
    """Weakly."""
    versions: tuple[list[int], list[int]]
    """Before and after."""
    given: list[Spot | None]
    """The backwards whose gradients it used."""

    def write(self, backward: Spot | None, *, silent: bool = False) -> Write:
        """The write to one parameter."""
        return Write(self.spot, self.at, "step", silent, leaf=True, step=self.name, backward=backward)

    def entries(self) -> Iterator[tuple[int, int, Write]]:
        """One for each parameter that lives and has changed."""
        for held, old, new, given in zip(self.parameters, *self.versions, self.given, strict=True):
            parameter = held()
            if new != old and parameter is not None:
                yield storage(parameter), new, self.write(given)


class Writes:
    """Every in-place write of the run, the newest kept."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.log: deque[tuple[int, int, Write]] = deque(maxlen=MOST_WRITES)
        """Which storage, its version afterwards, by what."""
        self.steps: deque[Stepped] = deque()
        self.held = 0
        """How many parameters the steps have."""
        self.silent: deque[tuple[int, Write]] = deque(maxlen=MOST_WRITES)
        self.before: OrderedDict[tuple[int, Extent | None], tuple[Any, list[Write]]] = OrderedDict()
        """What silent writes to a part have replaced, and those since, the last of which may put it back."""

    def add(self, storage: int, version: int, write: Write) -> None:
        """Keep a write to one storage."""
        self.log.append((storage, version, write))
        if write.silent:
            self.silent.append((storage, write))
            self.state.ledger.measured.clear()

    def stepped(self, step: Stepped) -> None:
        """Keep what a step has written."""
        self.steps.append(step)
        self.held += len(step.parameters)
        while self.held > MOST_WRITES and len(self.steps) > 1:
            self.held -= len(self.steps.popleft().parameters)

    def settle(self) -> None:
        """A tensor is about to get another storage: the steps have written to the one that it has."""
        while self.steps:
            self.log.extend(self.steps.popleft().entries())
        self.held = 0

    def to(self, key: int) -> list[tuple[int, Write]]:
        """The writes to a storage, each with the version that it left, in their order."""
        self.settle()
        found = [(after, write) for held, after, write in self.log if held == key]
        return sorted(found, key=lambda one: one[1].at)

    def wrote(self, func: Any, value: Any, spot: Spot | None, copied: Any = None) -> None:
        """Log what a call has done to one of its arguments; `copied`: which part, and what was there."""
        data = next((s for s, _ in self.state.origins.get(value) if s.form == "data"), None)
        leaf = data is not None and len(data.leaves) == 1
        part, before = copied or (value, None)
        silent = data is not None and (before is None or self._differ(before, part))
        write = Write(spot, self.state.count, name_of(func), silent=silent, leaf=leaf)
        if silent:
            write.extent = extent(part)
            if before is not None and before.numel() <= MOST_KEPT:
                self._put_back((storage(part), write.extent), before, part, write)
        module = inplace_module(sys._getframe(3))
        if module is not None:
            write.module = f"nn.{type(module).__name__}"
            write.built = self.state.built_at(module)
        self.add(storage(value), value._version, write)
        if not value.requires_grad:
            # It may be the data of a gradient, whose own version says that it is as it was measured.
            self.state.ledger.measured.clear()
        if refuses(value):
            return
        if value.grad_fn is not None and data is None and not on_a_clone(value):
            self.state.write(spot, name_of(func))
        self.by_hand(value, data.leaves if data is not None else set(), spot)

    def _put_back(self, key: tuple[int, Extent | None], before: Any, part: Any, write: Write) -> None:
        """gradcheck and its like change a value and restore it."""
        first, since = self.before.setdefault(key, (before, []))
        if since and not self._differ(first, part):
            write.since = since[0].at
            for one in since:
                one.undone = True
            del self.before[key]
            return
        since.append(write)
        if len(self.before) > MOST_WRITES or len(since) > MOST_WRITES:
            self.before.popitem(last=False)

    def _differ(self, before: Any, part: Any) -> bool:
        with self.state.quiet():
            return not torch.equal(before, part)

    def by_hand(self, value: Any, owners: set[int], spot: Spot | None) -> None:
        """Tell the ledger when the write looks like an update of a leaf."""
        ledger = self.state.ledger
        if value.requires_grad and value.is_leaf:
            ledger.updated_by_hand(id(value), spot)
        elif len(owners) == 1:
            ledger.updated_by_hand(next(iter(owners)), spot)

    def replaced(self, owner: Any, spot: Spot | None) -> None:
        """`owner.data = ...`: another storage behind the same version."""
        write = Write(spot, self.state.count, "data", silent=True, leaf=owner.is_leaf)
        self.add(storage(owner), owner._version, write)
        if owner.requires_grad and owner.is_leaf:
            self.state.ledger.updated_by_hand(id(owner), spot)

    def refused(self, func: Any, values: list[Any], error: BaseException, spot: Spot | None) -> None:
        """A call that torch did not allow: name the rule that it broke."""
        text = str(error)
        if "leaf Variable that requires grad" in text:
            self._refused("inplace_on_leaf", func, text, spot, {})
        elif "multiple views" in text and "modified inplace" in text:
            found = MAKER.search(text)
            maker = found.group(1).lower() if found else ""
            self._refused("inplace_on_view_of_many", func, text, spot, {"maker": maker})
        elif (what := next((what for said, what in REFUSED.items() if said in text), None)) is not None:
            self._refused("write_refused", func, text, spot, {"what": what})
        elif text.startswith("Inference tensors cannot be saved"):
            self._in_inference(values, text, spot)

    def _refused(self, kind: str, func: Any, text: str, spot: Spot | None, facts: dict[str, Any]) -> None:
        built = None
        module = inplace_module(sys._getframe(3))
        if module is not None:
            built = self.state.built_at(module)
        evidence = [(Role.BUILT, built)] if built else []
        self.state.defect(kind, spot, evidence, text, {"operation": name_of(func), **facts})

    def _in_inference(self, values: list[Any], text: str, spot: Spot | None) -> None:
        sources = [s for value in values for s, _ in self.state.origins.get(value)]
        region = next((s for s in sources if s.region), None)
        if region is None:
            region = next((s for s in sources if s.kind == "made"), None)
        place = region.spot if region is not None else spot
        form = region.form if region is not None else ""
        self.state.defect("forward_in_no_grad", place, [(Role.USED, spot)], text, {"form": form})


def refuses(value: Any) -> bool:
    """Whether a tensor won't tell its history: a view made without grad, once its base was written."""
    try:
        return value.grad_fn is NotImplemented
    except RuntimeError:
        return True


def on_a_clone(value: Any) -> bool:
    """Whether the write went to a copy made for it."""
    before = [node for node, _ in value.grad_fn.next_functions if node is not None]
    return any(node.name() == "CloneBackward0" for node in before)


def inplace_module(frame: FrameType | None) -> Any:
    """The torch module (`nn.ReLU(inplace=True)`) whose forward is running between torch and the user."""
    for _ in range(8):
        if frame is None:
            return None
        code = frame.f_code
        # Only a forward that reads the flag: asking a frame for its variables is slow.
        if code.co_name == "forward" and "inplace" in code.co_names:
            module = frame.f_locals.get("self")
            if getattr(module, "inplace", False) is True:
                return module
        frame = frame.f_back
    return None
