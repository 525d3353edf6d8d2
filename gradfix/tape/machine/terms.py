"""What values and tests were made of, as terms: what they are about in the end, and what that hides."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from gradfix.tape.domain.graph import Tensor
from gradfix.tape.domain.paths import Arm, Settled
from gradfix.tape.domain.values import Alt, Const, External, Map, Pattern, Seq, Unknown, Value
from gradfix.tape.effects import table

if TYPE_CHECKING:
    from gradfix.tape.domain import graph
    from gradfix.tape.domain.paths import Key, Path

    Node: TypeAlias = Value | Path | Key
    """What can be looked into: a value, a path, or a test by its key."""

LARGE = 1000
"""The largest base and exponent that are raised."""
FAR = 2000
"""How many parts of a test are looked at."""
COUNTS = frozenset({"size", "numel", "nelement"})
"""Questions that are answered by how many of something there are."""
OF_PARTS = frozenset({"get", "getattr", "hasattr"})
"""Questions about the part of something that is named."""


class Term(NamedTuple):
    """What a value, or a test, was made of, and how."""

    op: str
    operands: tuple[Value | Path, ...]


NO_TERM = Term("", ())
MACHINE = "platform"
OF_ONE_MACHINE = ("platform.", "sys.platform", "os.name", "os.uname", "sys.version_info", "sys.maxsize")
"""The names of what tells of the one machine on which a program is run."""


class Thing:
    """Something that is itself and nothing else."""


class Terms:
    """What the values and tests of one analysis were made of."""

    def __init__(self) -> None:
        self.values: dict[int, tuple[Value, Term]] = {}
        """By identity, with the value, which has to stay as long as it has that."""
        self.tests: dict[Key, Term] = {}
        self.sorted: dict[Path, list[tuple[Key, bool]]] = {}
        self.ages: dict[Key, int] = {}
        """As which of all tests each was met first."""
        self.named: dict[int, dict[str, None]] = {}
        """The texts with which something is compared, by identity."""
        self.asserted: set[tuple[Key, bool]] = set()
        """The tests that the program says come out so."""
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
        self.counts: set[int] = set()
        """How many of something there are, by identity."""
        self.parts: dict[int, str] = {}
        """Which part of its owner something is, or tells of, by identity."""
        self.kept: list[Value] = []
        """What is known by identity alone."""
        self.questions: dict[int, tuple[str, tuple[Value, ...]]] = {}
        """What was asked, by the identity of the first answer."""
        self.tensors: dict[int, tuple[graph.Node, list[Path]]] = {}
        """The histories of what was backpropagated, which is a tensor then, with the paths of that."""

    def one(self, name: External) -> External:
        """The same value for the same name."""
        if name.path not in self.names and name.path.startswith(OF_ONE_MACHINE):
            self.of[id(name)] = (self.names.setdefault(MACHINE, External(MACHINE)),)
        return self.names.setdefault(name.path, name)

    def first(self, value: Value) -> Value:
        """The first answer where a question was asked again."""
        return self.same[id(value)][0] if id(value) in self.same else value

    def entry_of(self, owner: External, *asked: Value | Path) -> External:
        """What is asked of a thing that many share: one entry of it, where that is named."""
        whole = self.one(owner)
        if not asked or not isinstance(asked[0], Const):
            return whole
        entry = self.one(External(f"{owner.path}[{asked[0].value!r}]"))
        self.of[id(entry)], self.parts[id(entry)] = (whole,), str(asked[0].value)
        return entry

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
            self.questions[id(first)] = question, operands
            self.fact_of(first, *operands)
            if question in COUNTS:
                self.counts.add(id(first))
            if question in OF_PARTS and len(operands) > 1 and isinstance(operands[1], Const):
                self.parts[id(first)] = str(operands[1].value)

    def fact_of(self, value: Value, *owners: Value) -> None:
        """Note of what something tells that nobody knows."""
        self.of[id(value)] = owners
        self.kept.extend((value, *owners))

    def part_of(self, value: Value, whole: Value, key: Value) -> None:
        """Note which part of a thing's parts, as of a shape, something is."""
        if id(whole) in self.of and isinstance(value, (Unknown, Seq)):
            self.fact_of(value, *self.of[id(whole)])
            if isinstance(key, Const):
                self.counts.add(id(value))
                self.parts[id(value)] = f"[{key.value}]"

    def test(self, key: Key, op: str, *operands: Value | Path) -> None:
        """Note what a test asks."""
        for one, other in sides(op, operands):
            if (texts := _texts(other)) is not None:
                self.named.setdefault(id(one), {}).update(dict.fromkeys(texts))
        self.tests[key] = Term(op, operands)
        self.ages.setdefault(key, len(self.ages))

    def in_order(self, path: Path) -> list[tuple[Key, bool]]:
        """The tests of a path, in the order in which they were met: the same in each run."""
        found = self.sorted.get(path)
        if found is None:
            found = self.sorted[path] = sorted(path, key=lambda one: (self._age(one[0]), one[1]))
        return found

    def _age(self, key: Key) -> tuple[int, ...]:
        if key in self.ages:
            return (self.ages[key],)
        if isinstance(key, Arm):
            return -1, key.chain.number, key.arms
        told = [*key.yes, *key.no] if isinstance(key, Settled) else []
        inner = [self.ages[one] for path in told for one, _ in path if one in self.ages]
        return -2, len(told), len(inner), min(inner, default=0), sum(inner)


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
    "sum": sum, "any": any, "all": all, "isinstance": isinstance, "callable": callable, "str": str,
    "type": type,
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


NUMBERS = frozenset({"builtins.float", "builtins.int", "builtins.bool", "builtins.complex"})
TENSORS = frozenset({"torch.Tensor", "torch.autograd.Variable"})


def denies_tensor(terms: Terms, key: Key, holds: bool) -> Value | None:
    """What a test says to be no tensor."""
    term = terms.tests.get(key)
    answer = term.operands[0] if term is not None and term.op == "true" else None
    if not isinstance(answer, Value):
        return None
    answer = terms.first(answer)
    op, operands = terms.questions.get(id(answer)) or (
        terms.values[id(answer)][1] if id(answer) in terms.values else ("", ())
    )
    if len(operands) < 2 or not isinstance(operands[0], Value):
        return None
    subject, other = terms.first(operands[0]), operands[1]
    if op == "isinstance" and isinstance(other, External):
        return subject if other.path in (NUMBERS if holds else TENSORS) else None
    named = other.value if op == "hasattr" and isinstance(other, Const) else None
    return subject if isinstance(named, str) and table.method(named) and not holds else None


NONE_LEFT: Mapping[tuple[str, object], bool] = {
    ("Eq", 0): True, ("NotEq", 0): False, ("Gt", 0): False, ("LtE", 0): True, ("Lt", 1): True,
    ("GtE", 1): False,
}  # fmt: skip
"""What a comparison comes to where there is none of what is counted."""


def says_empty(terms: Terms, key: Key, holds: bool) -> bool:
    """Whether a test says that there is nothing in a tensor: nobody learns from that."""
    term = terms.tests.get(key)
    if term is None or not _counts(terms, term.operands[0]):
        return False
    if term.op == "true":
        return not holds
    other = term.operands[1] if len(term.operands) == 2 else None
    return isinstance(other, Const) and NONE_LEFT.get((term.op, other.value)) is holds


def _counts(terms: Terms, value: Value | Path) -> bool:
    """Whether something is a size of a tensor; a list may be empty for all that is learnt."""
    made = terms.values.get(id(value))
    if made is not None and made[1].op == "len":
        whole = made[1].operands[0]
        return isinstance(whole, Tensor) or (isinstance(whole, Unknown) and whole.tensor is not None)
    return isinstance(value, Value) and id(terms.first(value)) in terms.counts


def only_asked_which(terms: Terms, one: Value, key: Key) -> bool:
    """Whether a test asks no more of something than which of some texts it is."""
    term = terms.tests.get(key)
    pairs = sides(term.op, term.operands) if term is not None else ()
    return any(subject is one and _texts(other) is not None for subject, other in pairs)


def sides(op: str, operands: tuple[Value | Path, ...]) -> Iterator[tuple[Value | Path, Value | Path]]:
    """Of which of two it is asked which of the other one's it is."""
    if op in WHICH and len(operands) == 2:
        yield operands[0], operands[1]
        if op in ("Eq", "NotEq"):
            yield operands[1], operands[0]


ONE_OF = WHICH | {"Is", "IsNot", "isinstance"}
"""What asks whether something is another thing, which has a name of its own."""


class Asked(NamedTuple):
    """What something asks about."""

    leaves: dict[int, Value]
    """The values that it is made of in the end, by identity."""
    constants: list[object]
    whole: bool
    """Whether these are all."""


def only_counted(terms: Terms, key: Key) -> set[int]:
    """The packages' things of which a test asks no more than how many they hold, by identity."""
    counted = {id(terms.one(operand)) for operand in _counted(terms, key) if isinstance(operand, External)}
    return counted - asked(terms, key, whole=False).leaves.keys() if counted else counted


def _counted(terms: Terms, key: Key) -> Iterator[Value | Path]:
    """What `len` is asked of in a test."""
    stack: list[Node] = [key]
    seen = set[Hashable]()
    while stack and len(seen) < FAR:
        one = stack.pop()
        if isinstance(one, Value):
            one = terms.first(one)
            term = terms.values.get(id(one), (one, NO_TERM))[1]
            if term.op == "len":
                yield term.operands[0]
        number = id(one) if isinstance(one, Value) else one
        if number not in seen:
            seen.add(number)
            stack.extend(_parts(terms, one) or ())


def asked(terms: Terms, *start: Node, whole: bool = True) -> Asked:
    """What values, tests or paths are about in the end, each part looked at once; `whole`: also those that
    are only counted."""
    found = Asked({}, [], True)
    stack, seen = [*start], set[Hashable]()
    while stack:
        one = stack.pop()
        if isinstance(one, Value):
            one = terms.first(one)
        number = id(one) if isinstance(one, Value) else one
        if number in seen:
            continue
        if len(seen) > FAR:
            return found._replace(whole=False)
        seen.add(number)
        if not whole and isinstance(one, Value) and terms.values.get(id(one), (one, NO_TERM))[1].op == "len":
            continue
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
        return [key for key, _ in terms.in_order(one)]
    if isinstance(one, Value):
        if id(one) in terms.values:
            return _operands(terms, *terms.values[id(one)][1])
        if isinstance(one, Alt):
            return [part for option in one.options for part in option]
        if isinstance(one, Seq) and one.open and id(one) in terms.of:
            return None
        if isinstance(one, (Seq, Map)):
            return one.items if isinstance(one, Seq) else one.items.values()
        return None
    if one in terms.tests:
        return _operands(terms, *terms.tests[one])
    if isinstance(one, Settled):
        return [*one.yes, *one.no]
    return one.chain.tests if isinstance(one, Arm) else ()


def _operands(terms: Terms, op: str, operands: tuple[Value | Path, ...]) -> list[Value | Path]:
    """What an operation is about: of things that others share what they hold, unless something else is asked
    whether it is one of them."""
    subject, *others = operands
    if op in ("In", "NotIn") and isinstance(others[0], External):
        others = [terms.entry_of(others[0], subject)]
    elif op not in ONE_OF:
        others = [terms.one(one) if isinstance(one, External) else one for one in others]
    return [terms.one(subject) if isinstance(subject, External) else subject, *others]
