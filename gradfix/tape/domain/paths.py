"""Path conditions: what has to hold for an event to happen, as a set of literals."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import count
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, cast

if TYPE_CHECKING:
    from typing_extensions import Self

Key: TypeAlias = Hashable
Path: TypeAlias = frozenset[tuple[Key, bool]]

ALWAYS: Path = frozenset()


WIDEST = 400
"""How much is told of what settles a test, before everything may."""


class Equals(NamedTuple):
    """The literal `subject == constant`; two of them with different constants exclude each other."""

    subject: Key
    constant: Hashable


ENTRY: Final = ("entry",)
"""The subject of the literal that says from where execution started: nobody tests it."""


def tested(path: Path) -> Path:
    """The literals that statements test."""
    return frozenset([one for one in path if not (type(one[0]) is Equals and one[0].subject == ENTRY)])


class Caught(NamedTuple):
    """The literal that a handler takes what a `try` has raised."""

    handler: int
    clock: int


class Decided:
    """A literal of which others may tell."""

    __slots__ = ()

    def refuted(self, holds: bool, said: Path) -> bool:
        """Whether what is said settles the contrary."""
        raise NotImplementedError

    def concerned(self, said: Path) -> bool:
        """Whether what is said may settle it, alone or with more."""
        raise NotImplementedError


class Settled(tuple[Key], Decided):
    """The literal of a test whose answer follows from paths: `yes` where it holds, `no` where it fails.

    The same test is the same literal, whatever was known of it: as a tuple it holds nothing but the test.
    """

    def __new__(cls, where: Key, yes: Sequence[Path], no: Sequence[Path]) -> Self:
        """The literal of this test."""
        return super().__new__(cls, (where,))

    def __init__(self, where: Key, yes: Sequence[Path], no: Sequence[Path]) -> None:
        self.yes = yes
        self.no = no
        deep = [path for path in (*yes, *no) if _decided[path]]
        self.deep = bool(deep)
        """Whether these paths have literals that others settle."""
        others = [key for path in deep for key, _ in path if isinstance(key, Decided)]
        inner = [key.told_by for key in others if isinstance(key, Settled) and not key.by_more]
        self.by_more: bool = len(inner) < len(others) or sum(map(len, inner)) > WIDEST
        """Whether more settles them than is told: which arms of a chain are left, or too much."""
        self.told_by: Path = ALWAYS.union(*yes, *no, *(() if self.by_more else inner))
        """What these paths say, and what settles that."""

    def refuted(self, holds: bool, said: Path) -> bool:
        """Whether what is said settles the contrary."""
        contrary = self.no if holds else self.yes
        for path in contrary:
            if path <= said:
                return True
        return self.deep and _follows(contrary, said)

    def concerned(self, said: Path) -> bool:
        """Whether what is said may settle it, alone or with more."""
        if not self.told_by.isdisjoint(said):
            return True
        return self.deep and (self.by_more or not said)


class Chain:
    """Tests one after the other: the first that holds is the arm that is taken, else the rest."""

    __slots__ = ("all", "first", "live", "number", "subjects", "tests", "texts", "turning")
    numbers = count()

    def __init__(self, first: object, tests: Sequence[Path], texts: Sequence[str]) -> None:
        self.number = next(self.numbers)
        self.first = first
        """Where the first of them stands."""
        self.tests = tests
        self.texts = texts
        self.all = (1 << len(tests) + 1) - 1
        """All arms, as bits; the rest is the last."""
        self.live = self.all
        """Those that run to their end."""
        self.turning: dict[tuple[Key, bool], int] = {}
        """What a literal leaves of the arms: none that comes after a test that holds, not that of one that
        fails."""
        self.subjects: dict[Key, tuple[int, dict[Hashable, int]]] = {}
        """What equals something in the tests: in which arms, and in which one of them what."""
        for i, test in enumerate(tests):
            if len(test) == 1:
                self._note(i, *next(iter(test)))

    def _note(self, i: int, key: Key, holds: bool) -> None:
        self.turning.setdefault((key, holds), (1 << i + 1) - 1)
        self.turning.setdefault((key, not holds), ~(1 << i))
        if holds and type(key) is Equals:
            arms, constants = self.subjects.get(key.subject, (0, {}))
            constants[key.constant] = constants.get(key.constant, 0) | 1 << i
            self.subjects[key.subject] = arms | 1 << i, constants

    def joined(self, arms: int) -> None:
        """These arms have run to their end, or had before."""
        self.live = arms if self.live == self.all else self.live | arms

    def left(self, arms: int, path: Path) -> int:
        """Which of some arms are possible on a path."""
        for literal in path:
            key, holds = literal
            if type(key) is Arm:
                if key.chain is self:
                    arms &= key.arms if holds else ~key.arms
                continue
            arms &= self.turning.get(literal, -1)
            if holds and type(key) is Equals and key.subject in self.subjects:
                own, constants = self.subjects[key.subject]
                arms &= ~own | constants.get(key.constant, 0)
        return arms


class Arm(Decided):
    """The literal that one of these arms of a chain is taken; the arms as bits."""

    __slots__ = ("arms", "chain")

    def __init__(self, chain: Chain, arms: int) -> None:
        self.chain = chain
        self.arms = arms

    def __eq__(self, other: object) -> bool:
        return type(other) is Arm and self.chain is other.chain and self.arms == other.arms

    def __hash__(self) -> int:
        return hash((id(self.chain), self.arms))

    def refuted(self, holds: bool, said: Path) -> bool:
        """Whether what is said leaves none of these arms."""
        chain = self.chain
        return not chain.left(self.arms if holds else chain.all & ~self.arms, said)

    def concerned(self, said: Path) -> bool:
        """Whether what is said may settle it, alone or with more."""
        turning = self.chain.turning
        for literal in said:
            if literal in turning or type(literal[0]) is Arm or type(literal[0]) is Equals:
                return True
        return False

    @property
    def text(self) -> str:
        """The test of the arm, where it is one."""
        first = self.arms.bit_length() - 1
        return self.chain.texts[first] if self.arms == 1 << first and first < len(self.chain.texts) else ""


def _follows(paths: Sequence[Path], said: Path) -> bool:
    """Whether all of one of some paths is said, or settled by what is."""
    for path in paths:
        for literal in path:
            if literal not in said and not (
                isinstance(key := literal[0], Decided) and key.refuted(not literal[1], said)
            ):
                break
        else:
            return True
    return False


def contradicts(one: Path, other: Path) -> bool:
    """Whether no run can satisfy both."""
    if not one or not other:
        return False
    if len(one) > len(other):
        one, other = other, one
    for key, holds in one - other:
        if (key, not holds) in other:
            return True
        if holds and type(key) is Equals and _excluded(key, other):
            return True
    if (there := _decided[other]) and _refuted(there, one, other):
        return True
    return bool((here := _decided[one]) and _refuted(here, other, one))


def _refuted(decided: Sequence[tuple[Decided, bool]], more: Path, said: Path) -> bool:
    """Whether one of the literals of a path is settled otherwise where more is said."""
    more = more - said
    said |= more
    for literal, holds in decided:  # noqa: SIM110 - asked a million times
        if literal.concerned(more) and literal.refuted(holds, said):
            return True
    return False


KEPT = 1 << 14
"""Of how many paths it is kept which of their literals others settle."""


class _DecidedIn(dict[Path, tuple[tuple[Decided, bool], ...]]):
    """The literals of each path that others settle: most have none, and are asked often."""

    def __missing__(self, path: Path) -> tuple[tuple[Decided, bool], ...]:
        if len(self) >= KEPT:
            self.clear()
        told = [literal for literal in path if isinstance(literal[0], Decided)]
        found = self[path] = tuple(cast("list[tuple[Decided, bool]]", told))
        return found


_decided = _DecidedIn()


def forget() -> None:
    """Another program is read: its literals may look like those of this one."""
    _decided.clear()


def _excluded(key: Equals, path: Path) -> bool:
    subject, constant = key
    for other, holds in path:
        if holds and type(other) is Equals and other[0] == subject and other[1] != constant:
            return True
    return False


def implies(strong: Path, weak: Path) -> bool:
    """Whether every run that satisfies `strong` satisfies `weak`."""
    return weak <= strong


FEW = 6
"""How many paths are put together to see whether one of them always holds."""


def covered(path: Path, by: Sequence[Path]) -> bool:
    """Whether every run that satisfies `path` satisfies one of a few others."""
    if len(by) > FEW:
        return False
    for one in by:
        if one <= path:
            return True
    left = [one for one in by if not contradicts(one, path)]
    if len(left) < 2:
        return False
    key = min(left, key=len).difference(path)
    subject = next(iter(key))[0]
    return covered(path | {(subject, True)}, left) and covered(path | {(subject, False)}, left)


MANY = 64
"""Of how many paths it is looked for pairs that differ in one test."""


def simplest(paths: Iterable[Path]) -> list[Path]:
    """The same paths in as few and as short ones as there are: where two differ only in how one test comes
    out, that test makes no difference."""
    given = _chained(paths)
    if not 1 < len(given) <= MANY:
        return given
    covers = {path: 1 << i for i, path in enumerate(given)}
    due, parts = list(covers), set[Path]()
    while due:
        path = due.pop()
        for key, holds in path:
            rest = path - {(key, holds)}
            if (twin := rest | {(key, not holds)}) in covers:
                parts |= {path, twin}
                both = covers[path] | covers[twin]
                if covers.get(rest, 0) | both != covers.get(rest, 0):
                    covers[rest] = covers.get(rest, 0) | both
                    due.append(rest)
    whole = [path for path in covers if path not in parts]
    return _enough(sorted(whole, key=lambda path: (len(path), covers[path])), covers)


def _enough(paths: list[Path], covers: dict[Path, int]) -> list[Path]:
    """Of some paths those that are needed, the first before the others."""
    chosen: list[Path] = []
    seen = 0
    for path in paths:
        if covers[path] & ~seen and not any(one < path for one in chosen):
            chosen.append(path)
            seen |= covers[path]
    return chosen


def _chained(paths: Iterable[Path]) -> list[Path]:
    """Some paths, with one for those that differ only in which arms of a chain are taken."""
    left = dict.fromkeys(map(_once, paths))
    arms: dict[tuple[Chain, Path], int] = {}
    for path in [*left] if any(map(_decided.__getitem__, left)) else ():
        taken_here = [key for key, holds in path if isinstance(key, Arm) and holds]
        if taken_here:
            del left[path]
            arm = max(taken_here, key=lambda arm: arm.chain.number)
            mark = arm.chain, path - {(arm, True)}
            arms[mark] = arms.get(mark, 0) | arm.arms
    for (chain, rest), taken in arms.items():
        left[rest if taken & chain.live == chain.live else rest | {(Arm(chain, taken), True)}] = None
    return list(left)


def _once(path: Path) -> Path:
    """A path that says of each chain once which of its arms are left."""
    told: list[Arm] = [key for key, _ in _decided[path] if isinstance(key, Arm)]
    chains = {arm.chain for arm in told} if len(told) > 1 else set[Chain]()
    for chain in chains if len(chains) < len(told) else ():
        own = frozenset([one for one in path if isinstance(one[0], Arm) and one[0].chain is chain])
        path = path - own | {(Arm(chain, chain.left(chain.all, own)), True)}
    return path


def beyond(path: Path, given: Path) -> Path:
    """What a path says more than what is given, without tests that follow from both together."""
    said = path | given
    return frozenset([one for one in path - given if not follows_from(one, said)])


def follows(said: Path, path: Path) -> bool:
    """Whether all that a path says, which says something, follows from what is said."""
    return bool(tested(path)) and _follows([tested(path)], said)


def follows_from(literal: tuple[Key, bool], said: Path) -> bool:
    """Whether a test is one that what is said settles this way."""
    key, holds = literal
    return type(key) is Settled and any(way <= said for way in (key.yes if holds else key.no))


def narrowest(path: Path) -> Path:
    """The same, without arms of a chain that others of it are among."""
    taken = [key for key, holds in path if holds and type(key) is Arm]
    wider = [
        one
        for one in taken
        if any(one.chain is other.chain and other.arms & ~one.arms == 0 and other != one for other in taken)
    ]
    return path - {(one, True) for one in wider}


def meet(one: Path, other: Path) -> Path | None:
    """Both at once; None where no run can do that."""
    if not other or other <= one:
        return one
    return None if contradicts(one, other) else one | other
