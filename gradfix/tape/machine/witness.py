"""Whether the tests on a path can come out so at once: shown by values for which they do.

Each test is kept as a term over values. Two tests that share one of them need a witness: something that it
may be, so that both come out as the path says. Where none is found, nobody knows whether such a run exists.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from gradfix.tape.domain.paths import Arm, Settled, tested
from gradfix.tape.domain.values import Alt, Const, External, Map, Pattern, Seq, Undefined, Unknown
from gradfix.tape.machine.terms import (
    OPERATIONS,
    UnprovableError,
    constants_in,
    hidden,
    of_test,
    thing,
    tied,
)

if TYPE_CHECKING:
    from gradfix.tape.domain.paths import Key, Path
    from gradfix.tape.domain.values import Value
    from gradfix.tape.machine.terms import Term, Terms

ENOUGH = 6000
"""So many tries to find a witness."""
MANY = 64
"""The longest list that is tried."""
FAILURES = (TypeError, ValueError, ArithmeticError, AttributeError, LookupError, MemoryError)
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
    found = terms.known.get(path)
    if found is None:
        found = terms.known[path] = all(_has_witness(terms, one) for one in _entangled(terms, path))
    return found


def _entangled(terms: Terms, path: Path) -> Iterator[list[tuple[Key, bool]]]:
    """The tests of a path that share what they are about, put together."""
    groups: list[tuple[set[Hashable], list[tuple[Key, bool]]]] = []
    for literal in path:
        leaves = [*of_test(terms, literal[0])]
        about = {*map(id, leaves), *(mark for one in leaves for mark, _ in hidden(terms, one))}
        if not about:
            yield [literal]
            continue
        same = [group for group in groups if not group[0].isdisjoint(about)]
        merged = about.union(*(group[0] for group in same))
        groups = [group for group in groups if group not in same]
        groups.append((merged, [literal, *(one for group in same for one in group[1])]))
    for refused in terms.refused:
        both = {id(leaf) for key, _ in tested(refused) for leaf in of_test(terms, key)}
        joined = [group for group in groups if not group[0].isdisjoint(both)]
        if len(joined) > 1 and both <= set().union(*(group[0] for group in joined)):
            groups = [group for group in groups if group not in joined]
            groups.append(
                (set().union(*(group[0] for group in joined)), [one for group in joined for one in group[1]])
            )
    yield from (literals for _, literals in groups if len(literals) > 1)


def _has_witness(terms: Terms, literals: Sequence[tuple[Key, bool]]) -> bool:
    """Whether there are values for which all of these tests come out so."""
    about = [(key, holds, {id(leaf): leaf for leaf in of_test(terms, key)}) for key, holds in literals]
    asked = [one[2] for one in about if not _says_only_that_it_is_there(terms, one[0], one[1])]
    behind = {number: {*hidden(terms, leaf)} for leaves in asked for number, leaf in leaves.items()}
    for one, other in combinations(behind, 2):
        if tied(one, behind[one], other, behind[other]):
            return False
    if not any(leaves for _, _, leaves in about):
        return _agrees(terms, *literals[0])
    variables = {number: leaf for _, _, leaves in about for number, leaf in leaves.items()}
    return _search(terms, about, [*variables], _candidates(terms, literals))


def _agrees(terms: Terms, key: Key, holds: bool) -> bool:
    """Whether a test of what is known comes out so, or nobody knows how."""
    try:
        return _comes_to(terms, key, {}) == holds
    except (UnprovableError, *FAILURES):
        return True


def _says_only_that_it_is_there(terms: Terms, key: Key, holds: bool) -> bool:
    """Whether a test says no more than that something isn't None, or is true."""
    term = terms.tests.get(key)
    if term is None:
        return False
    if term.op == "true" and holds:
        asked = term.operands[0]
        return isinstance(asked, Unknown) and id(asked) not in terms.values and id(asked) not in terms.same
    none = len(term.operands) == 2 and isinstance(term.operands[1], Const) and term.operands[1].value is None
    return none and holds is (term.op in ("NotEq", "IsNot"))


def _candidates(terms: Terms, literals: Iterable[tuple[Key, bool]]) -> list[object]:
    """What the values may be: what they are compared with, what is near to that, and what is usual."""
    found: list[object] = []
    for constant in {repr(one): one for key, _ in literals for one in constants_in(terms, key)}.values():
        found.append(constant)
        if isinstance(constant, (int, float)) and not isinstance(constant, bool):
            steps = (1, -1) if isinstance(constant, int) else (1, -1, 0.5, -0.5)
            found += [constant + by for by in steps]
            found.append([0] * min(int(abs(constant)), MANY))
        elif isinstance(constant, str):
            found += [f"{constant}_", f"_{constant}", constant.upper(), [constant], {constant: 1}]
    return [*found, *USUAL]


def _search(
    terms: Terms,
    about: Sequence[tuple[Key, bool, Mapping[int, Value]]],
    variables: Sequence[int],
    candidates: Sequence[object],
) -> bool:
    """Try what the variables may be, one after the other."""
    order = {number: i for i, number in enumerate(variables)}
    due: list[list[tuple[Key, bool]]] = [[] for _ in variables]
    for key, holds, leaves in about:
        if leaves:
            due[max(order[number] for number in leaves)].append((key, holds))
    left = [ENOUGH]
    values: dict[int, object] = {}
    refused = [path for path in terms.refused if _is_about(terms, path, order)]

    def fits(i: int) -> bool:
        try:
            if not all(_comes_to(terms, key, values) == holds for key, holds in due[i]):
                return False
            return i + 1 < len(variables) or not any(_all(terms, path, values) for path in refused)
        except (UnprovableError, *FAILURES):
            return False

    def assign(i: int) -> bool:
        if i == len(variables):
            return True
        for candidate in candidates:
            left[0] -= 1
            if left[0] < 0:
                return False
            values[variables[i]] = candidate
            if fits(i) and assign(i + 1):
                return True
        return False

    return assign(0)


class Either:
    """How a test comes out of which nothing is said for what is chosen: as anybody wants it."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


EITHER = Either()


def _is_about(terms: Terms, path: Path, variables: Container[int]) -> bool:
    """Whether a path is about nothing else than these."""
    about = [id(leaf) for key, _ in tested(path) for leaf in of_test(terms, key)]
    return bool(about) and all(number in variables for number in about)


def _comes_to(terms: Terms, key: Key, values: Mapping[int, object]) -> object:
    """How a test comes out."""
    if key in terms.tests:
        return bool(_computed(terms, terms.tests[key], values))
    if isinstance(key, Settled):
        if any(_all(terms, path, values) for path in key.yes):
            return True
        return EITHER if not any(_all(terms, path, values) for path in key.no) else False
    if isinstance(key, Arm):
        taken = next(
            (i for i, one in enumerate(key.chain.tests) if _all(terms, one, values)), len(key.chain.tests)
        )
        return bool(key.arms >> taken & 1)
    raise UnprovableError


def _all(terms: Terms, path: Path, values: Mapping[int, object]) -> bool:
    return all(_comes_to(terms, key, values) == holds for key, holds in path)


def _computed(terms: Terms, term: Term, values: Mapping[int, object]) -> object:
    if term.op == "path":
        (path,) = term.operands
        assert isinstance(path, frozenset)
        return _all(terms, path, values)
    if term.op not in OPERATIONS:
        raise UnprovableError
    return OPERATIONS[term.op](*(_value(terms, one, values) for one in term.operands))


def _value(terms: Terms, one: Value | Path, values: Mapping[int, object]) -> object:
    """What a value is, where its leaves are these."""
    if isinstance(one, Const):
        return one.value
    if isinstance(one, Pattern):
        return one.node
    if id(one) in terms.same:
        one = terms.same[id(one)][0]
    if isinstance(one, External):
        return values.get(id(terms.one(one)), thing(one))
    if id(one) in values:
        return values[id(one)]
    if id(one) in terms.values:
        return _computed(terms, terms.values[id(one)][1], values)
    if isinstance(one, Seq) and not one.open:
        listed = [_value(terms, item, values) for item in one.items]
        return tuple(listed) if one.kind == "tuple" else listed
    if isinstance(one, Map) and not one.open:
        return {key: _value(terms, item, values) for key, item in one.items.items()}
    if isinstance(one, Alt):
        for guard, option in one.options:
            if not isinstance(option, Undefined) and _all(terms, guard, values):
                return _value(terms, option, values)
    raise UnprovableError
