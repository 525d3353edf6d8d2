"""What values and tests were made of, as terms: what they are about in the end, and what that hides."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from gradfix.defects.reasons import What
from gradfix.tape.domain.graph import Tensor
from gradfix.tape.domain.paths import Arm, Settled
from gradfix.tape.domain.values import Alt, Const, External, Map, Pattern, Seq, Unknown, Value

if TYPE_CHECKING:
    from typing import TypeAlias

    from gradfix.tape.domain.paths import Key, Path

    Node: TypeAlias = Value | Path | Key
    """What can be looked into: a value, a path, or a test by its key."""

MOST = 4
"""Of how many values that went into one it is asked whether they went into another."""
LARGE = 1000
"""The largest base and exponent that are raised."""
FAR = 2000
"""How many parts of a test are looked at."""


class Term(NamedTuple):
    """What a value, or a test, was made of, and how."""

    op: str
    operands: tuple[Value | Path, ...]


class Thing:
    """Something that is itself and nothing else."""


class Terms:
    """What the values and tests of one analysis were made of."""

    def __init__(self) -> None:
        self.values: dict[int, tuple[Value, Term]] = {}
        """By identity, with the value, which has to stay as long as it has that."""
        self.tests: dict[Key, Term] = {}
        self.named: dict[int, dict[str, None]] = {}
        """The texts with which something is compared, by identity."""
        self.refused: dict[Path, None] = {}
        """The paths on which functions have raised."""
        self.known: dict[tuple[Path, int], bool] = {}
        """Whether the paths that were asked for are possible, with how many had been refused by then."""
        self.names: dict[str, External] = {}
        """The names of packages that are asked for their truth, as if they were values."""
        self.things: dict[str, Thing] = {}
        """What all other names of packages stand for."""
        self.answers: dict[tuple[Hashable, ...], Value] = {}
        """The first answer to each question."""
        self.same: dict[int, tuple[Value, Value]] = {}
        """Of what was asked again the first answer, by identity, with what stands for it."""
        self.of: dict[int, tuple[Value, ...]] = {}
        """What is a fact of what, by identity."""
        self.kept: list[Value] = []
        """What is known by identity alone."""

    def one(self, name: External) -> External:
        """The same value for the same name."""
        return self.names.setdefault(name.path, name)

    def first(self, value: Value) -> Value:
        """The first answer where a question was asked again."""
        return self.same[id(value)][0] if id(value) in self.same else value

    def thing(self, name: External) -> object:
        """What a name of a package stands for: a class of Python, or something of its own."""
        return KINDS.get(name.path) or self.things.setdefault(name.path, Thing())

    def made(self, value: Value, op: str, *operands: Value | Path) -> None:
        """Note what a value that isn't known was made of."""
        if type(value) is Unknown:
            self.values[id(value)] = value, Term(op, operands)

    def answered(self, value: Value, question: str, *operands: Value) -> None:
        """Note what answers a question that has the same answer as long as it is about the same."""
        if type(value) is Unknown:
            marks = [
                one.value
                if isinstance(one, Const)
                else id(self.one(one) if isinstance(one, External) else one)
                for one in operands
            ]
            first = self.answers.setdefault((question, *marks), value)
            self.same[id(value)] = first, value
            self.fact_of(first, *operands)

    def fact_of(self, value: Value, *owners: Value) -> None:
        """Note of what something tells that nobody knows."""
        self.of[id(value)] = owners
        self.kept.extend((value, *owners))

    def test(self, key: Key, op: str, *operands: Value | Path) -> None:
        """Note what a test asks."""
        for one, other in (operands, operands[::-1]) if op in WHICH and len(operands) == 2 else ():
            if (texts := _texts(other)) is not None:
                self.named.setdefault(id(one), {}).update(dict.fromkeys(texts))
        self.tests[key] = Term(op, operands)


class UnprovableError(Exception):
    """Nobody knows what this comes to."""


def _within(part: object, whole: Container[object]) -> bool:
    return part in whole


def _without(part: object, whole: Container[object]) -> bool:
    return part not in whole


def _power(one: float, other: float) -> object:
    if abs(other) > LARGE or abs(one) > LARGE:
        raise UnprovableError
    return one**other


def _product(one: object, other: object) -> object:
    """Of numbers alone: what is repeated may be of any length."""
    if not isinstance(one, (int, float)) or not isinstance(other, (int, float)):
        raise UnprovableError
    return one * other


def _remainder(one: object, other: object) -> object:
    if not isinstance(one, (int, float)) or not isinstance(other, (int, float)):
        raise UnprovableError  # a text is filled in
    return one % other


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
    "add": operator.add, "sub": operator.sub, "mul": _product, "truediv": operator.truediv,
    "floordiv": operator.floordiv, "mod": _remainder, "pow": _power, "and": operator.and_,
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


WHICH = frozenset({"Eq", "NotEq", "In", "NotIn"})
"""What asks which of several something is."""


def _texts(one: Value | Path) -> list[str] | None:
    """A text, or each of several; None for anything else."""
    listed = one.items if isinstance(one, Seq) and not one.open else [one]
    texts = [each.value for each in listed if isinstance(each, Const) and isinstance(each.value, str)]
    return texts if len(texts) == len(listed) else None


def only_asked_which(terms: Terms, one: Value, key: Key) -> bool:
    """Whether a test asks no more of something than which of some texts it is."""
    term = terms.tests.get(key)
    if term is None or term.op not in WHICH or one not in term.operands:
        return False
    return any(_texts(other) is not None for other in term.operands if other is not one)


def entry_of(owner: External, *asked: Value | Path) -> External:
    """What is asked of a thing that many share: one entry of it, where that is named."""
    return External(f"{owner.path}[{asked[0].value!r}]") if asked and isinstance(asked[0], Const) else owner


class Asked(NamedTuple):
    """What something asks about."""

    leaves: dict[int, Value]
    """The values that it is made of in the end, by identity."""
    constants: list[object]
    whole: bool
    """Whether these are all."""


def asked(terms: Terms, *start: Node) -> Asked:
    """What values, tests or paths are about in the end, each part looked at once."""
    found = Asked({}, [], True)
    stack, seen = [*start], set[Hashable]()
    while stack:
        one = stack.pop()
        if isinstance(one, Value):
            one = terms.first(one)
        mark = id(one) if isinstance(one, Value) else one
        if mark in seen:
            continue
        if len(seen) > FAR:
            return found._replace(whole=False)
        seen.add(mark)
        inside = _parts(terms, one)
        if inside is not None:
            stack.extend(inside)
        elif isinstance(one, Const):
            found.constants.append(one.value)
        elif isinstance(one, Pattern):
            found.constants.extend(
                each.value for each in ast.walk(one.node) if isinstance(each, ast.Constant)
            )
        elif isinstance(one, External) and one is not terms.names.get(one.path):
            found.constants.append(terms.thing(one))
        elif isinstance(one, Value):
            found.leaves[id(one)] = one
    return found


def _parts(terms: Terms, one: Node) -> Iterable[Node] | None:
    """What something is made of; None where that is nothing else."""
    if isinstance(one, frozenset):
        return [key for key, _ in one]
    if isinstance(one, Value):
        if id(one) in terms.values:
            return terms.values[id(one)][1].operands
        if isinstance(one, Alt):
            return [part for option in one.options for part in option]
        if isinstance(one, (Seq, Map)):
            return one.items if isinstance(one, Seq) else one.items.values()
        return None
    if one in terms.tests:
        op, (subject, *others) = terms.tests[one]
        if op in ("In", "NotIn") and isinstance(others[0], External):
            others = [terms.one(entry_of(others[0], subject))]
        return [terms.one(subject) if isinstance(subject, External) else subject, *others]
    if isinstance(one, Settled):
        return [*one.yes, *one.no]
    return one.chain.tests if isinstance(one, Arm) else ()


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
    name = name_of(leaf)
    if name and id(leaf.holds[0]) not in terms.of and FACTS.isdisjoint((name, name_of(leaf.holds[0]))):
        of = ()
    element = element or leaf.why.what is What.ELEMENT
    for held in of:
        if isinstance(held, Tensor):
            yield id(held.storage), element
        elif type(held) is Unknown:
            yield id(held), element
            yield from hidden(terms, held, deep - 1, element)
        elif isinstance(held, External):
            yield id(terms.one(held)), element
        elif id(held) in terms.of:
            yield from ((id(one.storage), False) for one in terms.of[id(held)] if isinstance(one, Tensor))
        elif isinstance(held, (Seq, Alt)):
            for one in asked(terms, held).leaves:
                yield one, element


FACTS = frozenset(
    {"device", "dim", "dtype", "is_cuda", "is_leaf", "layout", "ndim", "requires_grad", "shape"}
)
"""What tensors have: one such fact of a tensor may say something of another."""


def name_of(leaf: Value) -> str:
    """The name by which its owner has it, if any: what else that has mostly says nothing of it."""
    owner = leaf.holds[0] if isinstance(leaf, Unknown) and leaf.holds else None
    held = owner.children if isinstance(owner, Unknown) and owner.children else {}
    return next((name for name, one in held.items() if one is leaf), "")


def tied(
    one: int, behind: set[tuple[Hashable, bool]], other: int, beyond: set[tuple[Hashable, bool]]
) -> bool:
    """Whether two values say something of each other that nobody knows: what was computed of one thing."""
    whole = {mark for mark, element in behind if not element} | {one}
    if not whole.isdisjoint({mark for mark, element in beyond if not element} | {other}):
        return True
    return (other, True) in behind or (one, True) in beyond
