"""What path conditions are tests of: memory, what a turn of a loop has made, whether there is a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypedDict

from gradfix.tape.domain.paths import Chain
from gradfix.tape.domain.within import Within

if TYPE_CHECKING:
    import ast
    from collections.abc import Hashable, Sequence

    from typing_extensions import Unpack

    from gradfix.tape.domain.graph import Node, Storage
    from gradfix.tape.domain.paths import Key, Path
    from gradfix.tape.domain.trail import Trail
    from gradfix.tape.domain.values import Value


class Count(NamedTuple):
    """A test of which turn it is: where it stands, of how many one is meant, and whether that is known; which
    turn this is, and those around it."""

    place: ast.Compare
    number: Hashable
    known: bool
    at: Hashable
    around: tuple[int, ...]

    def beside(self, other: Count) -> bool:
        """Whether it is the same test in the next turn of the same loop, or the one before."""
        if self.place is not other.place or self.number != other.number or self.around != other.around:
            return False
        if isinstance(self.at, int) and isinstance(other.at, int):
            return abs(self.at - other.at) == 1
        return self.at != other.at


class Scoped(TypedDict, total=False):
    """What differs inside of something only."""

    turns: list[int]
    cut: int
    floors: dict[Hashable, int]


class Tested:
    """The path conditions of one entry that say something of what the machine knows."""

    def __init__(self, trail: Trail, before: Tested | None) -> None:
        self.trail = trail
        self.about: dict[Key, list[Storage]] = (
            {key: [*held] for key, held in before.about.items()} if before else {}
        )
        """The memory that a path condition is a test of."""
        self.values: dict[Key, list[Node]] = (
            {key: [*held] for key, held in before.values.items()} if before else {}
        )
        """The values that a path condition is a test of."""
        self.turns: list[int] = [0]
        """When the turns began that are running, of loops that are not run to their end."""
        self.floors: dict[Hashable, int] = {}
        """How much the ends are at least that running loops count to, as a second turn of theirs is run."""
        self.drawn: dict[int, int] = {**before.drawn} if before else {}
        """What such a turn was given of an iterable that isn't known, by identity, and that turn."""
        self.cut = 0
        """When the innermost loop began that has more turns than are run."""
        self.grown: dict[int, Value] = {}
        """The lists that a turn of such a loop has made longer, by identity."""
        self.counted: set[int] = set()
        """The calls that ask how long one of them is, by identity."""
        self.outcomes: dict[int, set[bool]] = {}
        """How the tests came out that hold such a call, by identity."""
        self.picks: dict[Key, int] = {**before.picks} if before else {}
        """The path conditions that are tests of what such a turn has made, and that turn."""
        self.counts: dict[Key, Count] = {**before.counts} if before else {}
        """The path conditions that count turns."""
        self.graph_tests: set[tuple[Key, bool]] = {*before.graph_tests} if before else set()
        """Tests that say, come out so, that something is in a graph."""
        self.chains: dict[Hashable, Chain] = {**before.chains} if before else {}
        """The chains of tests, by where they stand and what they test."""
        self.keep_alive: list[Value] = []
        """What path conditions are about: their keys are identities."""

    def within(self, **now: Unpack[Scoped]) -> Within:
        """A block in which this is so, and as it was after it."""
        return Within(self, self.trail, now)

    def counting(self, path: Path) -> bool:
        """Whether a path is one of turns that a test counts out."""
        return any(holds and key in self.counts for key, holds in path)

    def beside(self, path: Path, here: Path) -> Count | None:
        """The test that says of two paths that they are of turns next to each other."""
        counts = [self.counts[key] for key, holds in here if holds and key in self.counts]
        for key, holds in path if counts else ():
            if holds and (count := self.counts.get(key)) is not None:
                found = next((one for one in counts if one.beside(count)), None)
                if found is not None:
                    return found
        return None

    def chain(self, node: ast.If, tests: Sequence[Path], texts: Sequence[str]) -> Chain:
        """A chain of tests, the same one where the same things are tested."""
        mark = (id(node), *tests)
        if mark not in self.chains:
            self.chains[mark] = Chain(node, tests, texts)
        return self.chains[mark]
