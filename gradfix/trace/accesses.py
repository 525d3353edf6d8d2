"""What programs do with a tensor beside operations: take its numbers, its data, its gradient, its graph."""

from __future__ import annotations

import sys
from typing import Any

import torch

from gradfix.defects import Role
from gradfix.trace import calls
from gradfix.trace.asked import only_asked
from gradfix.trace.calls import GETTERS, NUMBERS, QUESTIONS, SETTERS, floats, storage
from gradfix.trace.graphs import KEY
from gradfix.trace.places import Spot
from gradfix.trace.regions import Regions
from gradfix.trace.sources import Source, leaves
from gradfix.trace.state import State
from gradfix.trace.writes import Writes

_T: Any = torch.Tensor
OF_GRAPH = "Can't call numpy() on Tensor that requires grad"


class Accesses:
    """Notes what such an access cuts off, and does it."""

    def __init__(self, state: State, writes: Writes, regions: Regions) -> None:
        self.state = state
        self.writes = writes
        self.regions = regions

    def table(self) -> dict[Any, Any]:
        """What answers each of them; None where there is nothing to note."""
        table: dict[Any, Any] = dict.fromkeys(QUESTIONS)
        table.update(dict.fromkeys(NUMBERS, self._number))
        table.update(
            {
                _T.backward: None,
                GETTERS["is_leaf"]: None,
                GETTERS["requires_grad"]: None,
                GETTERS["grad_fn"]: None,
                GETTERS["grad"]: self._grad_read,
                GETTERS["data"]: self._data_read,
                SETTERS["grad"]: self._grad_set,
                SETTERS["data"]: self._data_set,
                SETTERS["requires_grad"]: self._requires,
                _T.requires_grad_: self._requires,
                _T.detach: self._detach,
                _T.detach_: self._detach_in_place,
                calls.set_grad_enabled: self._grad_mode,
            }
        )
        return table

    def _number(self, func: Any, args: Any, kwargs: Any) -> Any:
        value = args[0]
        source = (
            self._leaves_graph("converted_loss_path", NUMBERS[func.real], value) if floats(value) else None
        )
        try:
            result = func(*args, **kwargs)
        except RuntimeError as error:
            self._refused(value, str(error))
            raise
        self.state.count += 1
        if source is not None:
            if NUMBERS[func.real] == "numpy":
                self.state.origins.put(result, ((source, source.scalar),))
            else:
                self.state.origins.put_number(result, source)
        return result

    def _refused(self, value: Any, text: str) -> None:
        """An array was asked for of what has a graph."""
        if text.startswith(OF_GRAPH):
            made, spot = value.grad_fn and value.grad_fn.metadata.get(KEY), self.state.places.here(3)
            evidence = [(Role.GRAPH, made[1] if made else None), (Role.REFUSED, spot)]
            self.state.defect("numpy_of_graph", spot, evidence, text)

    def _detach(self, func: Any, args: Any, kwargs: Any) -> Any:
        return self._off_graph("detach", func, args, kwargs)

    def _data_read(self, func: Any, args: Any, kwargs: Any) -> Any:
        return self._off_graph("data", func, args, kwargs)

    def _off_graph(self, form: str, func: Any, args: Any, kwargs: Any) -> Any:
        value = args[0]
        # Who takes a gradient off the graph that it hasn't got means a constant.
        earlier = tuple(item for item in self.state.origins.get(value) if not item[0].asked)
        source = self._leaves_graph("detached_loss_path", form, value) if value.requires_grad else None
        result = func(*args, **kwargs)
        self.state.count += 1
        if source is not None:
            self.state.origins.put(result, ((source, source.scalar),))
        elif earlier:
            self.state.origins.put(result, earlier)
        return result

    def _detach_in_place(self, func: Any, args: Any, kwargs: Any) -> Any:
        source = self._leaves_graph("detached_loss_path", "detach_", args[0])
        result = func(*args, **kwargs)
        if source is not None:
            self.state.origins.put(args[0], ((source, source.scalar),))
        return result

    def _leaves_graph(self, kind: str, form: str, value: Any) -> Source | None:
        behind = self._behind(value)
        if not behind:
            return None
        spot = self.state.places.here(3)
        source = Source(kind, spot, form, value.numel() == 1, self.state.count, behind)
        return self.state.origins.cut(source)

    def _behind(self, value: Any) -> set[int]:
        """Leaves behind a value, through earlier cuts as well."""
        if value.requires_grad:
            return leaves(value)
        found: set[int] = set()
        for source, _ in self.state.origins.get(value):
            found |= source.leaves if not source.asked else set()
        return found

    def _grad_read(self, func: Any, args: Any, kwargs: Any) -> Any:
        result = func(*args, **kwargs)
        value = args[0]
        if value.is_leaf:
            self.state.ledger.read(value)
            if result is not None:
                spot = self.state.places.here(2)
                source = Source("leaf_rebound", spot, "grad", False, self.state.count, {id(value)})
                self.state.origins.put(result, ((source, True),))
        elif not value.retains_grad and self.state.places.is_user(sys._getframe(2).f_code.co_filename):
            asked = only_asked(sys._getframe(2))
            self.state.ledger.read_of_non_leaf(value, self.state.places.here(2), asked)
        return result

    def _grad_set(self, func: Any, args: Any, kwargs: Any) -> Any:
        if len(args) > 1 and args[1] is None:
            rebound = [s for s, _ in self.state.origins.get(args[0]) if s.rebinds]
            if rebound and not args[0].is_leaf:
                cleared = [(Role.GRAD_CLEARED, self.state.places.here(2))]
                self.state.defect("leaf_rebound", rebound[0].spot, cleared)
            self.state.ledger.erased([args[0]], self.state.places.here(2), "")
        return func(*args, **kwargs)

    def _data_set(self, func: Any, args: Any, kwargs: Any) -> Any:
        before = storage(args[0])
        self.writes.settle()
        result = func(*args, **kwargs)
        self.state.count += 1
        # `p.data *= mask` ends by putting back what it took: the write itself has been seen.
        if storage(args[0]) != before:
            self.writes.replaced(args[0], self.state.places.here(2))
        return result

    def _requires(self, func: Any, args: Any, kwargs: Any) -> Any:
        result = func(*args, **kwargs)
        value, wanted = args[0], (args[1] if len(args) > 1 else kwargs.get("requires_grad", True))
        if not wanted:
            self.state.frozen.add(value, self.state.count, None)
        elif id(value) in self.state.frozen.held:
            self.state.frozen.held.pop(id(value))
        known = self.state.origins.behind(value)
        cuts = [(s, term) for s, term in known if s.cut and s.form != "grad"]
        if wanted and cuts and value.is_leaf:
            behind = set().union(*(source.leaves for source, _ in cuts))
            here = self.state.places.here(2)
            source = Source("requires_grad_on_result", here, "", False, self.state.count, behind)
            self.state.origins.put(value, ((source, False), *cuts))
        return result

    def _grad_mode(self, func: Any, args: Any, kwargs: Any) -> Any:
        self.regions.switched(bool(args[0]), sys._getframe(2))
        return func(*args, **kwargs)

    def wrapped(self, form: str, given: Any, result: Any, spot: Spot | None) -> None:
        """A leaf made of a tensor: what was behind the tensor is cut off."""
        behind = self._behind(given)
        if behind and given is not result and id(result) not in behind:
            source = Source("converted_loss_path", spot, form, given.numel() == 1, self.state.count, behind)
            self.state.origins.put(result, ((self.state.origins.cut(source), True),))
