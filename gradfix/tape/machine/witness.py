"""Whether the tests on a path can come out so at once: shown by values for which they do.

Each test is kept as a term over values. Two tests that share one of them need a witness: something that it
may be, so that both come out as the path says. Where none is found, nobody knows whether such a run exists.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, TypeAlias

from gradfix.tape.domain.paths import Arm, Caught, Settled, tested
from gradfix.tape.domain.values import Alt, Const, External, Map, Pattern, Seq, Undefined, Unknown, Value
from gradfix.tape.machine.lineage import ANY, COUNT, FACTS, SELF, lineage, mark, name_of, origins, tied
from gradfix.tape.machine.terms import OPERATIONS, UnprovableError, asked, only_asked_which, only_counted

if TYPE_CHECKING:
    from gradfix.tape.domain.paths import Key, Path
    from gradfix.tape.machine.lineage import Lineage
    from gradfix.tape.machine.terms import Asked, Term, Terms

ENOUGH = 30_000
"""So many steps to find a witness."""
MANY = 64
"""The longest list that is tried."""
FAILURES = (TypeError, ValueError, ArithmeticError, AttributeError, LookupError, MemoryError,
            RecursionError)  # fmt: skip
"""How Python refuses what somebody may not be."""
USUAL: tuple[object, ...] = (
    1,
    2,
    True,
    "other",
    None,
    0,
    False,
    3,
    -1,
    "",
    [],
    [0],
    [0, 0],
    [0, 0, 0],
    {},
    {"k": 0},
)
"""What a value may be about which nothing is said."""


def possible(terms: Terms, path: Path) -> bool:
    """Whether all tests of a path can come out so at once, as far as they are about the same values."""
    path = tested(path)
    if len(path) < 2:
        return True
    mark = path, len(terms.refused)
    found = terms.known.get(mark)
    if found is None:
        found = terms.known[mark] = all(_has_witness(terms, one, path) for one in _entangled(terms, path))
    return found


Literal: TypeAlias = "tuple[Key, bool]"


def _entangled(terms: Terms, path: Path) -> Iterator[list[Literal]]:
    """The tests of a path that share what they are about, put together; each of what is known by itself."""
    groups: list[tuple[set[Hashable], list[Literal]]] = []
    seen: dict[tuple[int, str], Lineage] = {}
    for literal in terms.in_order(path):
        about = set[Hashable]()
        for (number, part), leaf in _starts(terms, literal[0]).items():
            about |= {number, *(one for (one, _), behind in seen.items() if tied(terms, leaf, part, behind))}
            about |= {mark(above) for above, way in origins(terms, leaf) if way and way[0] == ANY}
            seen[number, part] = lineage(terms, leaf, part)
        if about:
            groups = _joined(groups, about, [literal])
        else:
            yield [literal]
    for refused in terms.refused:
        about = set(asked(terms, refused).leaves)
        if about and about <= set().union(*(group[0] for group in groups)):
            groups = _joined(groups, about, [])
    yield from (literals for _, literals in groups if len(literals) > 1)


def _joined(
    groups: list[tuple[set[Hashable], list[Literal]]], about: set[Hashable], more: list[Literal]
) -> list[tuple[set[Hashable], list[Literal]]]:
    """The groups, of which those are one that have something of this."""
    same = [group for group in groups if not group[0].isdisjoint(about)]
    whole = about.union(*(group[0] for group in same)), [*more, *(one for group in same for one in group[1])]
    return [*(group for group in groups if group[0].isdisjoint(about)), whole]


def _has_witness(terms: Terms, literals: Sequence[Literal], path: Path) -> bool:
    """Whether there are values for which all of these tests come out so."""
    about = [asked(terms, key) for key, _ in literals]
    if not all(one.whole for one in about):
        return False
    open_ = (literal for literal in literals if not _says_only_that_it_is_there(terms, *literal))
    starts = {start: leaf for key, _ in open_ for start, leaf in _starts(terms, key).items()}
    behind = {start: lineage(terms, leaf, start[1]) for start, leaf in starts.items()}
    apart = ((one, other) for one, other in combinations(behind, 2) if one[0] != other[0])
    if any(tied(terms, starts[one], one[1], behind[other]) for one, other in apart):
        return False
    there = {part for one in literals for part in _parts(terms, *one, there=True)}
    if any(part in there for one in literals for part in _parts(terms, *one, there=False)):
        return False
    variables = {number: leaf for one in about for number, leaf in one.leaves.items()}
    try:
        return _Trial(terms, literals, about, [*variables], path).succeeds()
    except EnoughError:  # what the program asserts, and nothing else, can hold: somebody has run it
        return all(literal in terms.asserted for literal in literals)


def _starts(terms: Terms, key: Key) -> dict[tuple[int, str], Value]:
    """What a test is about in the end: of what it asks for an entry, that one alone; of what it only counts,
    how many there are."""
    term = terms.tests.get(key)
    entry = term.operands[0] if term is not None and term.op in ("In", "NotIn") else None
    part = str(entry.value) if isinstance(entry, Const) else SELF
    leaves = asked(terms, key).leaves
    counted = only_counted(terms, key) if part == SELF else ()
    return {(number, COUNT if number in counted else part): leaf for number, leaf in leaves.items()}


def _says_only_that_it_is_there(terms: Terms, key: Key, holds: bool) -> bool:
    """Whether a test says no more than that something isn't None, or is true; or what the program says."""
    if (key, holds) in terms.asserted:
        return True
    found = _asked_for(terms, key, holds) or _entry(terms, key, holds)
    return found is not None and found[1] and not _computed(terms, found[0])


def _asked_for(terms: Terms, key: Key, holds: bool) -> tuple[Value, bool] | None:
    """What a test asks for, where it asks no more than whether that is there, or true; and what it says."""
    term = terms.tests.get(key)
    subject, *others = term.operands if term is not None else (None,)
    if term is None or not isinstance(subject, Value):
        return None
    if term.op == "true" and id(subject) in terms.values:
        kept = terms.values[id(subject)][1]
        path = kept.operands[0] if kept.op == "path" else None
        (inner,) = path if isinstance(path, frozenset) and len(path) == 1 else (None,)
        return _asked_for(terms, inner[0], inner[1] is holds) if inner is not None else None
    if term.op == "true" and isinstance(subject, Unknown):
        return (subject, holds) if name_of(subject) not in FACTS else None
    if len(others) == 1 and isinstance(others[0], Const) and others[0].value is None:
        return subject, holds is (term.op in ("NotEq", "IsNot"))
    return None


def _entry(terms: Terms, key: Key, holds: bool) -> tuple[Value, bool, str] | None:
    """Of what a test asks whether it has which entry, and what it says."""
    term = terms.tests.get(key)
    if term is None or term.op not in ("In", "NotIn"):
        return None
    entry, owner = term.operands
    if not isinstance(entry, Const) or not isinstance(owner, Value):
        return None
    return owner, holds is (term.op == "In"), str(entry.value)


def _parts(terms: Terms, key: Key, holds: bool, there: bool) -> Iterator[Hashable]:
    """The parts of things of which a test says that they are there, or aren't."""
    found, entry = _asked_for(terms, key, holds), _entry(terms, key, holds)
    if found is not None and found[1] is there:
        yield from ((mark(above), part) for above, part in origins(terms, terms.first(found[0])) if part)
    if entry is not None and entry[1] is there:
        yield mark(terms.first(entry[0])), entry[2]


def _computed(terms: Terms, value: Value) -> bool:
    """Whether something is what an operation answers about something else, and no part of that."""
    return any(part is None for _, part in origins(terms, terms.first(value)))


def _candidates(about: Iterable[Asked]) -> list[object]:
    """What the values may be: what they are compared with, what is near to that, and what is usual."""
    found: list[object] = []
    for constant in {repr(constant): constant for one in about for constant in one.constants}.values():
        found.append(constant)
        if isinstance(constant, (int, float)) and not isinstance(constant, bool):
            steps = (1, -1) if isinstance(constant, int) else (1, -1, 0.5, -0.5)
            found += [constant + by for by in steps]
        if isinstance(constant, int) and 0 < constant <= MANY:
            found.append([0] * constant)
        elif isinstance(constant, str):
            found += [f"{constant}_", f"_{constant}", constant.upper(), [constant], {constant: 1}]
    return [*found, *USUAL]


class Either:
    """How a test comes out of which nothing is said for what is chosen: as anybody wants it."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


EITHER = Either()


class EnoughError(Exception):
    """Too much was tried."""


class _Trial:
    """What the variables may be, one after the other, until all tests come out as they are to."""

    def __init__(
        self,
        terms: Terms,
        literals: Sequence[Literal],
        about: Sequence[Asked],
        variables: Sequence[int],
        path: Path,
    ) -> None:
        self.terms = terms
        self.caught = {key: holds for key, holds in path if isinstance(key, Caught)}
        self.variables = variables
        usual = _candidates(about)
        self.candidates = [self._texts(number, literals, about) or usual for number in variables]
        self.values: dict[int, object] = {}
        self.steps = iter(range(ENOUGH))
        order = {number: i for i, number in enumerate(variables)}
        self.due: list[list[Literal]] = [[] for _ in variables]
        self.settled: list[Literal] = []
        """The tests of what is known."""
        for literal, one in zip(literals, about, strict=True):
            last = max((order[number] for number in one.leaves), default=None)
            (self.settled if last is None else self.due[last]).append(literal)
        self.refused = [path for path in terms.refused if len(asked(terms, path).leaves) > 0 and
                        asked(terms, path).leaves.keys() <= order.keys()]  # fmt: skip

    def _texts(self, number: int, literals: Sequence[Literal], about: Sequence[Asked]) -> list[object]:
        """Those that are named, of what is only asked which of them it is: nobody knows of others."""
        asking = [literal[0] for literal, one in zip(literals, about, strict=True) if number in one.leaves]
        leaf = next(one.leaves[number] for one in about if number in one.leaves)
        which = all(only_asked_which(self.terms, leaf, key) for key in asking)
        return [*self.terms.named.get(number, ())] if which else []

    def succeeds(self) -> bool:
        """Whether there are such values; what nobody can compute of what is known may well come out so."""
        return all(self._agrees(literal) for literal in self.settled) and self._assign(0)

    def _agrees(self, literal: Literal) -> bool:
        try:
            return self.comes_to(literal[0]) == literal[1]
        except (UnprovableError, *FAILURES):
            return True

    def _assign(self, i: int) -> bool:
        if i == len(self.variables):
            return True
        for candidate in self.candidates[i]:
            self.values[self.variables[i]] = candidate
            if self._fits(i) and self._assign(i + 1):
                return True
        return False

    def _fits(self, i: int) -> bool:
        self._spend()
        try:
            if not all(self.comes_to(key) == holds for key, holds in self.due[i]):
                return False
            return i + 1 < len(self.variables) or not any(self.all_hold(path) for path in self.refused)
        except (UnprovableError, *FAILURES):
            return False

    def _spend(self) -> None:
        if next(self.steps, None) is None:
            raise EnoughError

    def comes_to(self, key: Key) -> object:
        """How a test comes out."""
        self._spend()
        if key in self.terms.tests:
            return bool(self._computed(self.terms.tests[key]))
        if isinstance(key, Caught):
            return self.caught.get(key, EITHER)
        if isinstance(key, Settled):
            if any(map(self.all_hold, key.yes)):
                return True
            return False if any(map(self.all_hold, key.no)) else EITHER
        if isinstance(key, Arm):
            arms = enumerate(key.chain.tests)
            taken = next((i for i, one in arms if self.all_hold(one)), len(key.chain.tests))
            return bool(key.arms >> taken & 1)
        raise UnprovableError

    def all_hold(self, path: Path) -> bool:
        """Whether all tests of a path come out so."""
        return all(self.comes_to(key) == holds for key, holds in self.terms.in_order(path))

    def _computed(self, term: Term) -> object:
        if term.op == "path":
            (path,) = term.operands
            assert isinstance(path, frozenset)
            return self.all_hold(path)
        if term.op not in OPERATIONS:
            raise UnprovableError
        return OPERATIONS[term.op](*map(self._value, term.operands))

    def _value(self, one: Value | Path) -> object:
        """What a value is, where the variables are these."""
        self._spend()
        if isinstance(one, Const):
            return one.value
        if isinstance(one, Pattern):
            return one.node
        assert isinstance(one, Value)
        one = self.terms.first(one)
        if isinstance(one, External):
            return self.values.get(id(self.terms.names.get(one.path)), self.terms.thing(one))
        if id(one) in self.values:
            return self.values[id(one)]
        if id(one) in self.terms.values:
            return self._computed(self.terms.values[id(one)][1])
        if isinstance(one, Seq) and not one.open:
            listed = [*map(self._value, one.items)]
            return tuple(listed) if one.kind == "tuple" else listed
        if isinstance(one, Map) and not one.open:
            return {key: self._value(item) for key, item in one.items.items()}
        if isinstance(one, Alt):
            for guard, option in one.options:
                if not isinstance(option, Undefined) and self.all_hold(guard):
                    return self._value(option)
        raise UnprovableError
