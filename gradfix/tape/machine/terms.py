"""What values and tests were made of, as terms: what they are about in the end, and what that hides."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from gradfix.defects.reasons import What
from gradfix.tape.domain.graph import Tensor
from gradfix.tape.domain.paths import Arm, Settled
from gradfix.tape.domain.values import Alt, Const, External, Map, Pattern, Seq, Unknown

if TYPE_CHECKING:
    from gradfix.tape.domain.paths import Key, Path
    from gradfix.tape.domain.values import Value

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

    def fact_of(self, value: Value, owner: Value) -> None:
        """Note what a list of facts, each new as it is asked for, tells of."""
        self.of[id(value)] = (owner,)
        self.kept.extend((value, owner))

    def test(self, key: Key, op: str, *operands: Value | Path) -> None:
        """Note what a test asks."""
        self.tests[key] = Term(op, operands)


class UnprovableError(Exception):
    """Nobody knows what this comes to."""


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


def leaves_of(terms: Terms, one: Value | Path, deep: int = DEEP) -> Iterator[Value]:
    """What a value is made of in the end."""
    if not deep or isinstance(one, (Const, External, Pattern)):
        return
    if id(one) in terms.same:
        one = terms.same[id(one)][0]
    if isinstance(one, frozenset):
        for key, _ in one:
            yield from of_test(terms, key, deep - 1)
    elif id(one) in terms.values:
        for operand in terms.values[id(one)][1].operands:
            yield from leaves_of(terms, operand, deep - 1)
    elif isinstance(one, Alt):
        for guard, option in one.options:
            yield from leaves_of(terms, guard, deep - 1)
            yield from leaves_of(terms, option, deep - 1)
    elif isinstance(one, (Seq, Map)):
        for item in one.items if isinstance(one, Seq) else one.items.values():
            yield from leaves_of(terms, item, deep - 1)
    else:
        yield one


def of_test(terms: Terms, key: Key, deep: int = DEEP) -> Iterator[Value]:
    """What a test is about in the end."""
    if not deep:
        return
    if key in terms.tests:
        for operand in terms.tests[key].operands:
            yield from leaves_of(terms, operand, deep - 1)
        if isinstance(subject := terms.tests[key].operands[0], External):
            yield terms.one(subject)
    elif isinstance(key, Settled):
        for path in (*key.yes, *key.no):
            yield from leaves_of(terms, path, deep - 1)
    elif isinstance(key, Arm):
        for path in key.chain.tests:
            yield from leaves_of(terms, path, deep - 1)


def hidden(
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
    of = terms.of.get(id(leaf), ()) or leaf.holds[:MOST]
    if _has_a_name(leaf) and id(leaf.holds[0]) not in terms.of:
        of = ()
    element = element or leaf.why.what is What.ELEMENT
    for held in of:
        if isinstance(held, Tensor):
            yield id(held.storage), element
        elif type(held) is Unknown:
            yield id(held), element
            yield from hidden(terms, held, deep - 1, element)
        elif id(held) in terms.of:
            yield from ((id(one.storage), False) for one in terms.of[id(held)] if isinstance(one, Tensor))
        elif isinstance(held, (Seq, Alt)):
            for one in leaves_of(terms, held, deep):
                yield id(one), element


def _has_a_name(leaf: Unknown) -> bool:
    """Whether it is what its owner has by a name: what else that has says nothing of it."""
    owner = leaf.holds[0] if leaf.holds else None
    held = owner.children if isinstance(owner, Unknown) else None
    return held is not None and any(one is leaf for one in held.values())


def tied(
    one: int, behind: set[tuple[Hashable, bool]], other: int, beyond: set[tuple[Hashable, bool]]
) -> bool:
    """Whether two values say something of each other that nobody knows: what was computed of one thing."""
    whole = {mark for mark, element in behind if not element} | {one}
    if not whole.isdisjoint({mark for mark, element in beyond if not element} | {other}):
        return True
    return (other, True) in behind or (one, True) in beyond


def constants_in(terms: Terms, one: Key | Value | Path, deep: int = DEEP) -> Iterator[object]:
    """The constants in a test."""
    if not deep:
        return
    inner: Iterable[object] = ()
    if isinstance(one, Const):
        yield one.value
    elif isinstance(one, Pattern):
        yield from (each.value for each in ast.walk(one.node) if isinstance(each, ast.Constant))
    elif isinstance(one, External):
        yield thing(one)
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
        yield from constants_in(terms, part, deep - 1)


class Thing:
    """Something that is itself and nothing else."""


THINGS: dict[str, Thing] = {}


def thing(external: External) -> object:
    """What a name of a package stands for: a class of Python, or something of its own."""
    if external.path in KINDS:
        return KINDS[external.path]
    return THINGS.setdefault(external.path, Thing())
