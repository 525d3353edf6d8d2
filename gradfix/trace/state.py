"""What the parts of the recorder share: the clock, the sources, the ledger, the way out for events."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch

from gradfix.defects import Role
from gradfix.trace.places import Places, Spot, resolve
from gradfix.trace.report import BOOKS, Chained, RecordedDefect, WriteEvent
from gradfix.trace.settled import Settled
from gradfix.trace.sources import Origins

if TYPE_CHECKING:
    from gradfix.trace.ledger import Ledger
    from gradfix.trace.naming import Names

Step = tuple[Role, "Spot | None"]
_torch: Any = torch


class ByIdentity:
    """Objects with where and when they were built; whatever they think of equality."""

    def __init__(self) -> None:
        self.held: dict[int, tuple[Any, int, Spot | None]] = {}
        self.aside: dict[int, tuple[Any, int, Spot | None]] = {}

    def add(self, value: Any, at: int, spot: Spot | None) -> None:
        """Remember an object for as long as it lives."""
        key, held = id(value), self.held
        held[key] = (weakref.ref(value, lambda _: held.pop(key, None)), at, spot)

    def get(self, value: Any) -> tuple[int, Spot | None] | None:
        """When and where it was built."""
        found = self.held.get(id(value))
        return found[1:] if found is not None else None

    def set_aside(self) -> None:
        """Forget all until they are used: a fork has inherited them, and may have no part in them."""
        self.aside, self.held = self.held, {}

    def use(self, value: Any) -> None:
        """Something that was set aside is used after all."""
        known = self.aside.pop(id(value), None) if self.aside else None
        if known is not None:
            self.add(value, *known[1:])

    def living(self) -> list[Any]:
        """Those that live, and nothing else."""
        found = (one() for one, *_ in list(self.held.values()))
        return [one for one in found if one is not None]

    def items(self) -> list[tuple[Any, int, Spot | None]]:
        """Those that live, oldest first."""
        return [(one(), at, spot) for one, at, spot in list(self.held.values()) if one() is not None]


class Quiet:
    """No function mode and no subclass hears of torch calls inside. No generator: it runs at every step."""

    __slots__ = ("before", "guard", "state")

    def __init__(self, state: State) -> None:
        self.state = state

    def __enter__(self) -> None:
        self.before, self.state.active = self.state.active, False
        self.guard = _torch._C.DisableTorchFunction()
        self.guard.__enter__()

    def __exit__(self, *error: object) -> None:
        self.guard.__exit__(*error)
        self.state.active = self.before


class Forgiving(Quiet):
    """The same where the recorder explains: its own mistakes must never become the program's."""

    __slots__ = ()

    def __exit__(self, *error: object) -> bool:  # type: ignore[override]
        super().__exit__(*error)
        mistake = error[1] if len(error) > 1 else None
        if isinstance(mistake, Exception):
            self.state.off(BOOKS, mistake)
            return True
        return False


class Unwatched:
    """Only the recorder looks away. No generator either."""

    __slots__ = ("away", "before", "state")

    def __init__(self, state: State) -> None:
        self.state = state

    def __enter__(self) -> None:
        self.before, self.state.active = self.state.active, False
        self.away = self.state.suspend()

    def __exit__(self, *error: object) -> None:
        self.state.active = self.before
        if self.away:
            self.state.resume()


class State:
    """One recording under way."""

    ledger: Ledger
    names: Names

    def __init__(self, emit: Callable[[Any], None]) -> None:
        self.emit = emit
        self.active = True
        self.count = 0
        self.settled = Settled()
        self.stepping = False
        """A step without a closure is running: its calls are torch's own."""
        self.places = Places()
        self.origins = Origins()
        self.modules = ByIdentity()
        self.kept: list[Any] = []
        """The modules alive at the last backward: they are asked about when their function is over."""
        self.optimizers = ByIdentity()
        self.frozen = ByIdentity()
        """Leaves that the program has told to require no gradient, after they did."""
        self.unasked = ByIdentity()
        """Weights that were made without a gradient by what does so unless told otherwise."""
        self.turns = 0
        """Steps so far, of optimizers and by hand."""
        self.used: dict[int, Spot | None] = {}
        """Parameters that took part in a call with a gradient -> the latest such call."""
        self.said: set[tuple[Any, ...]] = set()
        self.notes: list[str] = []
        self.blind: dict[str, str] = {}
        """The parts of the recorder that are off -> what went wrong there."""
        self.suspend: Callable[[], bool] = lambda: False
        """Takes the mode away while torch is among itself: cheaper than asking it to look away."""
        self.resume: Callable[[], None] = lambda: None

    def defect(
        self,
        kind: str,
        spot: Spot | None,
        evidence: Sequence[Step] = (),
        torch_says: str = "",
        facts: dict[str, Any] | None = None,
    ) -> None:
        """Say a broken rule, once per kind and place."""
        if spot is None:
            return
        key = (kind, id(spot[0]), spot[1])
        if key in self.said:
            return
        self.said.add(key)
        seen = [(role.name, resolve(where)) for role, where in evidence if where is not None]
        chain = [Chained(role=role, place=place) for role, place in seen]
        self.emit(
            RecordedDefect(
                event="defect",
                kind=kind,
                place=resolve(spot),
                evidence=chain,
                torch_says=torch_says,
                facts=dict(facts or {}),
            )
        )

    def write(self, spot: Spot | None, operation: str) -> None:
        """Say a write on a tensor of the graph, once per place: legal, but some forbid it."""
        if spot is None or ("write", id(spot[0]), spot[1]) in self.said:
            return
        self.said.add(("write", id(spot[0]), spot[1]))
        self.emit(WriteEvent(event="write", place=resolve(spot), operation=operation))

    def off(self, part: str, mistake: BaseException) -> None:
        """A part has failed: whatever it would have said from here on is missing."""
        self.blind.setdefault(part, f"{type(mistake).__name__}: {mistake}"[:300])

    @contextlib.contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Around what a part needs of torch: if it is not there, the part is off."""
        try:
            yield
        except Exception as mistake:
            self.off(name, mistake)

    def step_left_open(self) -> None:
        """A step that raised never told us that it was over."""
        if self.stepping:
            self.stepping = False
            self.active = True
            self.resume()

    def built_at(self, module: Any) -> Spot | None:
        """Where a module was built."""
        found = self.modules.get(module)
        return found[1] if found is not None else None

    def quiet(self) -> Quiet:
        """Around the recorder's own calls: neither it nor the program is told of them."""
        return Quiet(self)

    def forgiving(self) -> Forgiving:
        """Around explanations: the program's own outcome goes before them."""
        return Forgiving(self)

    def unwatched(self) -> Unwatched:
        """Around what torch does on the program's behalf: only the recorder looks away."""
        return Unwatched(self)

    def weak(self, value: Any) -> Any:
        """A reference that keeps nothing alive."""
        return weakref.ref(value)
