"""Whether the tests on a path can come out so at once: shown by values for which they do.

Each test is kept as a term over values. Two tests that share one of them need a witness: something that it
may be, so that both come out as the path says. Where none is found, nobody knows whether such a run exists.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from gradfix.defects.reasons import What
from gradfix.tape.domain.graph import Tensor
from gradfix.tape.domain.paths import Arm, Settled, tested
from gradfix.tape.domain.values import Alt, Const, External, Map, Pattern, Seq, Undefined, Unknown

if TYPE_CHECKING:
    from gradfix.tape.domain.paths import Key, Path
    from gradfix.tape.domain.values import Value

ENOUGH = 6000
"""So many tries to find a witness."""
MANY = 64
"""The longest list that is tried."""
MOST = 4
"""Of how many values that went into one it is asked whether they went into another."""
DEEP = 12
"""How far a value is followed down to what it was made of."""


class Term(NamedTuple):
    """What a value, or a test, was made of, and how."""

    op: str
    operands: tuple[Value | Path, ...]


class Terms:
    """What the values and tests of one analysis were made of."""

    def __init__(self) -> None:
        self.values: dict[int, tuple[Value, Term]] = {}
        """By identity, with the value, which has to stay as long as it has that."""
        self.tests: dict[Key, Term] = {}
        self.of: dict[int, tuple[Value, ...]] = {}
        """What such an answer was asked for."""
        self.kept: list[Value] = []
        self.refused: dict[Path, None] = {}
        """The paths on which functions have raised."""
        self.known: dict[Path, bool] = {}
        """The paths that were asked for."""
        self.names: dict[str, External] = {}
        self.answers: dict[tuple[Hashable, ...], Value] = {}
        self.same: dict[int, tuple[Value, Value]] = {}
        """Of what was asked again the first answer, by identity, and what it was asked for."""

    def one(self, name: External) -> External:
        """The same value for the same name."""
        return self.names.setdefault(name.path, name)

    def made(self, value: Value, op: str, *operands: Value | Path) -> None:
        """Note what a value that isn't known was made of."""
        if type(value) is Unknown:
            self.values[id(value)] = value, Term(op, operands)

    def answered(self, value: Value, asked: str, *operands: Value) -> None:
        """Note what answers a question that has the same answer as long as it is about the same."""
        if type(value) is Unknown:
            marks = [one.value if isinstance(one, Const) else id(one) for one in operands]
            first = self.answers.setdefault((asked, *marks), value)
            self.same[id(value)] = first, value
            self.of[id(first)] = operands
            self.kept.extend(operands)

    def test(self, key: Key, op: str, *operands: Value | Path) -> None:
        """Note what a test asks."""
        self.tests[key] = Term(op, operands)

    def possible(self, path: Path) -> bool:
        """Whether all tests of a path can come out so at once, as far as they are about the same values."""
        path = tested(path)
        if len(path) < 2:
            return True
        found = self.known.get(path)
        if found is None:
            found = self.known[path] = all(_has_witness(self, one) for one in _entangled(self, path))
        return found


class UnprovableError(Exception):
    """Nobody knows what this comes to."""


class Thing:
    """Something that is itself and nothing else."""


def _within(part: object, whole: Container[object]) -> bool:
    return part in whole


def _without(part: object, whole: Container[object]) -> bool:
    return part not in whole


def matches(subject: object, pattern: ast.pattern) -> bool:
    """Whether a case takes a value."""
    match pattern:
        case ast.MatchValue(ast.Constant(constant)):
            return bool(subject == constant)
        case ast.MatchSingleton(constant):
            return subject is constant
        case ast.MatchOr(patterns):
            return any(matches(subject, one) for one in patterns)
        case ast.MatchAs(None):
            return True
        case ast.MatchSequence(patterns) if not any(isinstance(one, ast.MatchStar) for one in patterns):
            if not isinstance(subject, (list, tuple)) or len(subject) != len(patterns):
                return False
            return all(map(matches, subject, patterns))
    raise UnprovableError


OPERATIONS: Mapping[str, Callable[..., object]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv,
    "floordiv": operator.floordiv, "mod": operator.mod, "pow": operator.pow, "and": operator.and_,
    "or": operator.or_, "xor": operator.xor, "neg": operator.neg, "positive": operator.pos,
    "Eq": operator.eq, "NotEq": operator.ne, "Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt,
    "GtE": operator.ge, "Is": operator.is_, "IsNot": operator.is_not,
    "In": _within, "NotIn": _without,
    "true": bool, "bool": bool, "int": int, "float": float, "len": len, "abs": abs, "max": max, "min": min,
    "any": any, "all": all, "isinstance": isinstance, "callable": callable, "str": str, "type": type,
    "matches": matches, ".lower": str.lower, ".upper": str.upper, ".strip": str.strip,
    ".startswith": str.startswith, ".endswith": str.endswith,
}  # fmt: skip
"""What terms are made with, as Python does it."""
KINDS: Mapping[str, type] = {
    f"builtins.{one.__name__}": one for one in (int, float, str, bool, list, tuple, dict, set)
}
TEXT_METHODS = frozenset(name[1:] for name in OPERATIONS if name.startswith("."))
FAILURES = (TypeError, ValueError, ArithmeticError, AttributeError, LookupError, MemoryError)
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


def _leaves(terms: Terms, one: Value | Path, deep: int = DEEP) -> Iterator[Value]:
    """What a value is made of in the end."""
    if not deep or isinstance(one, (Const, External, Pattern)):
        return
    if id(one) in terms.same:
        one = terms.same[id(one)][0]
    if isinstance(one, frozenset):
        for key, _ in one:
            yield from _of_test(terms, key, deep - 1)
    elif id(one) in terms.values:
        for operand in terms.values[id(one)][1].operands:
            yield from _leaves(terms, operand, deep - 1)
    elif isinstance(one, Alt):
        for guard, option in one.options:
            yield from _leaves(terms, guard, deep - 1)
            yield from _leaves(terms, option, deep - 1)
    elif isinstance(one, (Seq, Map)):
        for item in one.items if isinstance(one, Seq) else one.items.values():
            yield from _leaves(terms, item, deep - 1)
    else:
        yield one


def _of_test(terms: Terms, key: Key, deep: int = DEEP) -> Iterator[Value]:
    """What a test is about in the end."""
    if not deep:
        return
    if key in terms.tests:
        for operand in terms.tests[key].operands:
            yield from _leaves(terms, operand, deep - 1)
        if isinstance(subject := terms.tests[key].operands[0], External):
            yield terms.one(subject)
    elif isinstance(key, Settled):
        for path in (*key.yes, *key.no):
            yield from _leaves(terms, path, deep - 1)
    elif isinstance(key, Arm):
        for path in key.chain.tests:
            yield from _leaves(terms, path, deep - 1)


def _entangled(terms: Terms, path: Path) -> Iterator[list[tuple[Key, bool]]]:
    """The tests of a path that share what they are about, put together."""
    groups: list[tuple[set[Hashable], list[tuple[Key, bool]]]] = []
    for literal in path:
        leaves = [*_of_test(terms, literal[0])]
        about = {*map(id, leaves), *(mark for one in leaves for mark, _ in _hidden(terms, one))}
        if not about:
            yield [literal]
            continue
        same = [group for group in groups if not group[0].isdisjoint(about)]
        merged = about.union(*(group[0] for group in same))
        groups = [group for group in groups if group not in same]
        groups.append((merged, [literal, *(one for group in same for one in group[1])]))
    for refused in terms.refused:
        both = {id(leaf) for key, _ in tested(refused) for leaf in _of_test(terms, key)}
        joined = [group for group in groups if not group[0].isdisjoint(both)]
        if len(joined) > 1 and both <= set().union(*(group[0] for group in joined)):
            groups = [group for group in groups if group not in joined]
            groups.append(
                (set().union(*(group[0] for group in joined)), [one for group in joined for one in group[1]])
            )
    yield from (literals for _, literals in groups if len(literals) > 1)


def _hidden(
    terms: Terms, leaf: Value, deep: int = 4, element: bool = False
) -> Iterator[tuple[Hashable, bool]]:
    """What a leaf was computed of that nobody knows how, or is a fact of, by identity; and whether it is only
    one element of that: others of its elements may be anything."""
    if isinstance(leaf, Tensor):
        yield id(leaf.storage), element
    if not isinstance(leaf, Unknown) or not deep:
        return
    if leaf.about is not None:
        yield id(leaf.about), element
    if leaf.origin and not leaf.holds:
        yield leaf.origin, element
    of = terms.of.get(id(leaf), ()) or leaf.holds[:MOST]
    if _has_a_name(leaf) and id(leaf.holds[0]) not in terms.of:
        of = ()
    element = element or leaf.why.what is What.ELEMENT
    for held in of:
        if isinstance(held, Tensor):
            yield id(held.storage), element
        elif type(held) is Unknown:
            yield id(held), element
            yield from _hidden(terms, held, deep - 1, element)
        elif isinstance(held, (Seq, Alt)):
            for one in _leaves(terms, held, deep):
                yield id(one), element


def _has_a_name(leaf: Unknown) -> bool:
    """Whether it is what its owner has by a name: what else that has says nothing of it."""
    owner = leaf.holds[0] if leaf.holds else None
    held = owner.children if isinstance(owner, Unknown) else None
    return held is not None and any(one is leaf for one in held.values())


def _tied(
    one: int, behind: set[tuple[Hashable, bool]], other: int, beyond: set[tuple[Hashable, bool]]
) -> bool:
    """Whether two values say something of each other that nobody knows: what was computed of one thing."""
    whole = {mark for mark, element in behind if not element} | {one}
    if not whole.isdisjoint({mark for mark, element in beyond if not element} | {other}):
        return True
    return (other, True) in behind or (one, True) in beyond


def _has_witness(terms: Terms, literals: Sequence[tuple[Key, bool]]) -> bool:
    """Whether there are values for which all of these tests come out so."""
    about = [(key, holds, {id(leaf): leaf for leaf in _of_test(terms, key)}) for key, holds in literals]
    asked = [one[2] for one in about if not _says_only_that_it_is_there(terms, one[0], one[1])]
    behind = {number: {*_hidden(terms, leaf)} for leaves in asked for number, leaf in leaves.items()}
    for one, other in combinations(behind, 2):
        if _tied(one, behind[one], other, behind[other]):
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
    for constant in {repr(one): one for key, _ in literals for one in _constants(terms, key)}.values():
        found.append(constant)
        if isinstance(constant, (int, float)) and not isinstance(constant, bool):
            steps = (1, -1) if isinstance(constant, int) else (1, -1, 0.5, -0.5)
            found += [constant + by for by in steps]
            found.append([0] * min(int(abs(constant)), MANY))
        elif isinstance(constant, str):
            found += [f"{constant}_", f"_{constant}", constant.upper(), [constant], {constant: 1}]
    return [*found, *USUAL]


def _constants(terms: Terms, one: Key | Value | Path, deep: int = DEEP) -> Iterator[object]:
    """The constants in a test."""
    if not deep:
        return
    inner: Iterable[object] = ()
    if isinstance(one, Const):
        yield one.value
    elif isinstance(one, Pattern):
        yield from (each.value for each in ast.walk(one.node) if isinstance(each, ast.Constant))
    elif isinstance(one, External):
        yield _thing(one)
    elif isinstance(one, frozenset):
        inner = [key for key, _ in one]
    elif isinstance(one, (Seq, Map)):
        inner = one.items if isinstance(one, Seq) else one.items.values()
    elif isinstance(one, Alt):
        inner = [part for option in one.options for part in option]
    elif isinstance(one, Settled):
        inner = [*one.yes, *one.no]
    elif isinstance(one, Arm):
        inner = one.chain.tests
    elif isinstance(one, Unknown):
        inner = terms.values[id(one)][1].operands if id(one) in terms.values else ()
    elif one in terms.tests:
        inner = terms.tests[one].operands
    for part in inner:
        yield from _constants(terms, part, deep - 1)


THINGS: dict[str, Thing] = {}


def _thing(external: External) -> object:
    """What a name of a package stands for: a class of Python, or something of its own."""
    if external.path in KINDS:
        return KINDS[external.path]
    return THINGS.setdefault(external.path, Thing())


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
    about = [id(leaf) for key, _ in tested(path) for leaf in _of_test(terms, key)]
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
        return values.get(id(terms.one(one)), _thing(one))
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
