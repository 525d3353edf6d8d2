"""What happens to leaves and their gradients, in the order in which it happens, and under which calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from gradfix.defects.reasons import What
from gradfix.tape.domain.paths import contradicts
from gradfix.tape.domain.why import Why

if TYPE_CHECKING:
    from gradfix.defects import TouchKind
    from gradfix.tape.domain.graph import Tensor
    from gradfix.tape.domain.paths import Path
    from gradfix.tape.domain.values import Place, Value

Deed: TypeAlias = "TouchKind | Literal['uses', 'may step']"
"""What is done: as a touch says it; `uses` is a read of whatever the values hold, `may step` a step of what
isn't known."""


class Site:
    """A call that is under way: where it stands, and the call that it runs under."""

    __slots__ = ("outer", "place")

    def __init__(self, place: Place, outer: Site | None) -> None:
        self.place = place
        self.outer = outer


class Moment:
    """Something done to values, when and where: `what` is what it was done to or with."""

    __slots__ = ("deed", "number", "path", "place", "site", "skipped", "what", "why")

    def __init__(self, number: int, deed: Deed, what: Sequence[object], place: Place, path: Path) -> None:
        self.number = number
        self.deed = deed
        self.what = what
        self.place = place
        self.path = path
        self.site: Site | None = None
        self.why: Why | None = None
        """Why it isn't known what was done, once somebody has asked."""
        self.skipped = False
        """Whether it is a call of known code that wasn't followed: what it returned may be made of all that
        this code can get at."""


NEVER = -2
"""The number of a moment that wasn't kept."""
MOST = 100_000
"""How many moments are kept; what comes later has no known order."""


class Timeline:
    """The moments of one entry. Nothing is kept before something trains: `on` says when that begins."""

    def __init__(self, before: Timeline | None = None) -> None:
        self.first = 0 if before is None else before.now
        self.on: bool = before is not None and before.on
        self.moments: list[Moment] = []
        self.site: Site | None = None
        self.schedules: dict[int, tuple[Value, Value]] = {} if before is None else dict(before.schedules)
        """The schedulers, by identity, each with the optimizer that it was made for."""
        self.strange: bool = before is not None and before.strange
        """Whether leaves that aren't known are stepped or cleared by what may be any optimizer."""
        self.newest: Moment | None = None
        """The newest step."""
        self.before = before
        self.strangers: list[Moment] = []
        """The calls that weren't followed, also those before anything trains."""
        self.left_out: list[Moment] = []
        """The turns of loops that weren't run for what they were about."""

    @property
    def now(self) -> int:
        return self.first + len(self.moments)

    @property
    def full(self) -> bool:
        return len(self.moments) >= MOST

    def note(self, deed: Deed, what: Sequence[object], place: Place, path: Path) -> Moment:
        """Something is done."""
        moment = Moment(self.now if self.on else NEVER, deed, what, place, path)
        moment.site = self.site
        if self.on and len(self.moments) < MOST:
            self.moments.append(moment)
        if deed == "anything":
            self.strangers.append(moment)
        return moment

    def unfollowed(self) -> Iterator[Moment]:
        """All calls that weren't followed, in their order; those that the module itself made come first."""
        if self.before is not None:
            yield from self.before.unfollowed()
        yield from self.strangers
        yield from self.left_out

    @property
    def stranger(self) -> Moment | None:
        """The newest call that wasn't followed."""
        return self.strangers[-1] if self.strangers else None

    def leave_out(self, turns: Sequence[Value], place: Place, path: Path) -> None:
        """A loop isn't run for some of what it is about: what it makes may be made of that."""
        moment = Moment(self.now if self.on else NEVER, "anything", turns, place, path)
        moment.site, moment.skipped = self.site, True
        moment.why = Why(What.BUDGET, "a loop that isn't run to its end", place)
        self.left_out.append(moment)

    def step(self, leaves: Sequence[Tensor], place: Place, path: Path) -> None:
        """A step of known leaves."""
        self.newest = self.note("steps", leaves, place, path)

    def between(self, first: Moment, last: Moment) -> Iterator[Moment] | None:
        """What happened after the one and before the other; None where that isn't known."""
        if self.full or not self.on or not self.first - 1 <= first.number <= last.number:
            return None
        path = first.path | last.path
        found = self.moments[first.number + 1 - self.first : last.number - self.first]
        return (moment for moment in found if not contradicts(moment.path, path))

    def beginning(self, last: Moment) -> Moment:
        """The moment before all that is known of, as the running function sees it."""
        before = Moment(self.first - 1, "looks", (), None, last.path)
        before.site = last.site
        return before

    def ending(self, first: Moment) -> Moment:
        """The moment after all that is known of, as the running function sees it."""
        after = Moment(self.now, "looks", (), None, first.path)
        after.site = first.site
        return after

    def earlier(self, first: Moment) -> Iterator[Moment]:
        """What happened before."""
        return iter(self.moments[: first.number - self.first])


def under(moment: Moment, sites: Sequence[Site | None]) -> tuple[bool, Place]:
    """Where something happened as one of several running functions sees it, if it happened under one."""
    place, site = moment.place, moment.site
    while True:
        if any(site is one for one in sites):
            return True, place
        if site is None:
            return False, None
        place, site = site.place, site.outer
