"""The torch function mode that sees every call of the program, and leaves its result alone."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from gradfix.trace import calls, extents
from gradfix.trace.accesses import Accesses
from gradfix.trace.calls import additive, floats, name_of, tensors, versioned
from gradfix.trace.dropped import Dropped
from gradfix.trace.graphs import KEY
from gradfix.trace.hunt import Hunt
from gradfix.trace.parts import Once
from gradfix.trace.places import Spot
from gradfix.trace.regions import Regions
from gradfix.trace.report import CALLS
from gradfix.trace.sources import Source, Sources, joined, leaves
from gradfix.trace.state import State
from gradfix.trace.sums import ADDS, Sums
from gradfix.trace.writes import Writes

_T: Any = torch.Tensor
Parameter: Any = torch.nn.Parameter
PROFILER = "_record_function"
"""What optimizers do around their steps."""


class Calls(TorchFunctionMode):
    """Notes the place of every graph node, every write, every cut."""

    def __init__(self, state: State, writes: Writes, regions: Regions) -> None:
        super().__init__()
        self.state = state
        self.writes = writes
        self.regions = regions
        # What every call asks for, one step nearer.
        self.places, self.used = state.places, state.used
        self.of_tensor, self.of_number = state.origins.of_tensor, state.origins.of_number
        self.sums = Sums(state)
        self.hunt = Hunt(state, armed=False)
        self.adding: dict[Any, bool] = {}
        """Function -> whether it adds up; asked once each."""
        self.dropped = Dropped(state)
        self.accesses = Accesses(state, writes, regions)
        self.special = self.accesses.table()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        special = self.special.get(func, self)
        if special is None or not self.state.active:
            return func(*args, **kwargs) if kwargs else func(*args)
        if special is self:
            return self._call(func, args, kwargs)
        call, kwargs = Once(func), kwargs or {}
        try:
            return special(call, args, kwargs)
        except Exception as mistake:
            if mistake is call.error:
                raise
            self.state.off(CALLS, mistake)
            return call.outcome(mistake, *args, **kwargs)

    def _call(self, func: Any, args: Any, kwargs: Any) -> Any:
        copied = None
        try:
            found, before = versioned(args, kwargs)
            if args and id(args[0]) in self.of_tensor:
                copied = self._copied(func, args)
        except Exception as mistake:
            self.state.off(CALLS, mistake)
            return func(*args, **(kwargs or {}))
        try:
            result = func(*args, **kwargs) if kwargs else func(*args)
        except RuntimeError as error:
            with self.state.part(CALLS):
                self.writes.refused(func, found, error, self.places.here(2))
            raise
        try:
            self._called(func, args, found, before, copied, result)
        except Exception as mistake:
            self.state.off(CALLS, mistake)
        return result

    def unit(self, real: Any, args: Any, kwargs: Any, parameters: list[Any]) -> Any:
        """A module that is one call, with the parameters that it uses."""
        result = self._call(real, args, kwargs)
        first = result[0] if isinstance(result, tuple) and result else result
        if getattr(first, "requires_grad", False):
            self.used.update(dict.fromkeys(map(id, parameters), self.places.here(3)))
        return result

    def _called(self, func: Any, args: Any, found: Any, before: Any, copied: Any, result: Any) -> None:
        if not found and name_of(func).startswith(PROFILER):
            self.special[func] = None
            return
        self.state.count += 1
        spot = self.places.here(4)
        for value, version in zip(found, before):  # noqa: B905 - the same length, and asked at every call
            if version >= 0 and value._version != version:
                self.writes.wrote(func, value, spot, copied)
        if isinstance(result, _T):
            self._made(func, args, found, result, spot)
        elif result is None and len(found) > 1 and name_of(func) == "__setitem__":
            self._put_in(func, args, found)
        elif isinstance(result, (tuple, list)):
            for item in result:
                if isinstance(item, _T):
                    self._made(func, args, found, item, spot)

    def _put_in(self, func: Any, args: Any, found: list[Any]) -> None:
        """An item is written: what holds it comes of what that came of."""
        target = args[0]
        sources = self._sources(func, args, found) if self._traced(args, found) else ()
        if sources and target.grad_fn is None:
            self.state.origins.put(target, sources)
        elif sources:
            self.state.origins.into(target.grad_fn, sources)

    def _made(self, func: Any, args: Any, found: list[Any], result: Any, spot: Spot | None) -> None:
        try:
            node = result.grad_fn
        except RuntimeError:  # a view made without grad, whose base was written: it has no history to tell
            return
        if node is None:
            self._without_gradient(func, args, found, result, spot)
            return
        node.metadata.setdefault(KEY, (self.state.count, spot))
        if self.hunt.armed:
            self.hunt.forward(name_of(func), found, result, spot)
        table, traced = self.of_tensor, False
        for value in found:
            if type(value) is Parameter:
                self.used[id(value)] = spot
            if id(value) in table:
                traced = True
        adds = self.adding.get(func)
        if adds or (adds is None and self._adds(func)):
            self.sums.added(result, found, spot)
        if traced or (self.of_number and found and self._traced(args, found)):
            self._terms(func, args, found, result)

    def _adds(self, func: Any) -> bool:
        found = self.adding[func] = name_of(func) in ADDS
        return found

    def applied(self, result: Any, spot: Spot | None) -> None:
        """Note the place of what a custom Function gave."""
        self.state.count += 1
        for value in tensors((result,), None):
            node = value.grad_fn
            if node is not None:
                node.metadata.setdefault(KEY, (self.state.count, spot))

    def _copied(self, func: Any, args: Any) -> Any:
        """What a write through `.data` is about to replace: if it puts the same there, it spoils nothing."""
        target = args[0]
        for source, _ in self.state.origins.get(target):
            if source.form == "data" and calls.in_place(name_of(func)):
                break
        else:
            return None
        with self.state.quiet(), torch.no_grad():
            part = extents.region(target, name_of(func), args)
            return part, part.clone()

    def _traced(self, args: Any, found: list[Any]) -> bool:
        """Whether anything is known of where a call's arguments come from."""
        table = self.state.origins.of_tensor
        for value in found:
            if id(value) in table:
                return True
        return bool(self.state.origins.of_number) and any(isinstance(one, (float, list)) for one in args)

    def _terms(self, func: Any, args: Any, found: list[Any], result: Any) -> None:
        """A result in the graph remembers only terms that were cut off it."""
        sources = self._rebound(self._sources(func, args, found), found)
        self.state.origins.into(result.grad_fn, sources)
        terms: Sources = tuple((source, term) for source, term in sources if term and source.cut)
        if any(source.asked and not term for source, term in sources) and additive(func, args):
            terms = (*terms, *self._asked(found))
        if terms:
            self.state.origins.put(result, terms)

    def _asked(self, found: list[Any]) -> Sources:
        """Terms made of gradients that have no graph. What a leaf is moved by is a step, and no term."""
        if any(value.is_leaf and value.requires_grad for value in found):
            return ()
        numbers = [value for value in found if not value.requires_grad and value.dim() == 0]
        known = [source for value in numbers for source, _ in self.state.origins.get(value)]
        return tuple((source, True) for source in known if source.asked)

    def _rebound(self, sources: Sources, found: list[Any]) -> Sources:
        """`w - lr * w.grad`: what comes out takes the place of the leaf, without being one."""
        ours = [s for s, _ in sources if s.form == "grad" and s.rebinds]
        if not ours:
            return sources
        leaf = {id(value) for value in found if value.is_leaf}
        if not any(source.leaves & leaf for source in ours):
            return sources
        rest = tuple(item for item in sources if item[0] not in ours)
        behind: set[int] = set().union(*(source.leaves for source in ours))
        spot = self.state.places.here(4)
        return ((Source("leaf_rebound", spot, "", False, self.state.count, behind), True), *rest)

    def _sources(self, func: Any, args: Any, found: list[Any]) -> Sources:
        get = self.state.origins.get
        many = [get(value) for value in found]
        if self.state.origins.of_number:
            many.extend(self._numbers(args))
        many = [sources for sources in many if sources]
        return joined(many, term=additive(func, args)) if many else ()

    def _numbers(self, args: Any) -> list[Sources]:
        found: list[Sources] = []
        for value in args:
            items = value if type(value) is list else (value,)
            for item in items[:16]:
                source = self.state.origins.number(item) if isinstance(item, (float, list)) else None
                if source is not None:
                    found.append(((source, source.scalar),))
        return found

    def _without_gradient(
        self, func: Any, args: Any, found: list[Any], result: Any, spot: Spot | None
    ) -> None:
        sources = self._sources(func, args, found) if self._traced(args, found) else ()
        if sources and result.requires_grad:
            # An update in place leaves the leaf where it was: its own gradient cuts nothing off it.
            sources = tuple(
                (s, term) for s, term in sources if id(result) not in s.leaves or s.form != "grad"
            )
        elif sources:
            sources = self._rebound(sources, found)
        lost = [value for value in found if value.requires_grad and value is not result]
        if lost:
            source = self._cut_by(func, lost, result, spot)
            if source is not None:
                term = source.scalar and additive(func, args)
                sources = ((source, term), *(item for item in sources if item[0] is not source))
        elif not found and not sources:
            sources = ((Source("made", spot, name_of(func), at=self.state.count), False),)
        if sources:
            self.state.origins.put(result, sources)
            self.dropped.made(name_of(func), found, result, spot)

    def _cut_by(self, func: Any, lost: list[Any], result: Any, spot: Spot | None) -> Source | None:
        name = name_of(func)
        if name in calls.FROM_DATA:
            scalar = all(value.numel() == 1 for value in lost)
            form = "tensor" if len(lost) == 1 and result.dim() == 0 else "tensor_of_list"
            return self._cut("converted_loss_path", form, lost, spot, scalar)
        if not torch.is_grad_enabled():
            return self.regions.keeps_out(lost, spot)
        if floats(result) and name not in calls.NO_GRADIENT:
            return None
        return self._cut("non_differentiable_loss", name, lost, spot, False)

    def _cut(self, kind: str, form: str, lost: list[Any], spot: Spot | None, scalar: bool) -> Source:
        found: set[int] = set()
        for value in lost:
            found |= leaves(value)
        return self.state.origins.cut(Source(kind, spot, form, scalar, self.state.count, found))
