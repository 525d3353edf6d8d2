"""The domain of the abstract tape: what a Python name can stand for, from constants to tensors in a graph."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterable, Mapping, Sequence
from enum import Enum, auto
from itertools import count
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from gradfix.defects.leaning import NOTHING as NOTHING

if TYPE_CHECKING:
    from gradfix.defects.leaning import Lean as Lean
    from gradfix.tape.domain.graph import Node, Storage, Tensor
    from gradfix.tape.domain.paths import Path
    from gradfix.tape.domain.torch_values import Opaque
    from gradfix.tape.domain.why import Why

Truth: TypeAlias = "bool | None"
"""Three-valued: True, False, or None for unknown."""

Shape: TypeAlias = "tuple[int | None, ...] | None"


class Join(Enum):
    """What a cell holds after several paths, each of which has left something else in it."""

    VALUE = auto()
    """A value: the alternatives."""
    ITEMS = auto()
    """A list of values: element by element."""
    ENTRIES = auto()
    """A dict of values: key by key."""
    NODE = auto()
    """A node of the graph: one whose parents are the alternatives."""
    TRUTH = auto()
    """True, False or None: None."""
    SOME = auto()
    """Whether something holds, where what isn't sure must count as true."""
    EVERY = auto()
    """Whether something holds, where what isn't sure must not count."""
    OLDEST = auto()
    """A generation: the oldest, which looks the base up again."""
    UNION = auto()
    """A set: what is in one of them."""
    AGREED = auto()
    """What all agree on, else None."""
    NAME = auto()
    """A name that all agree on, else none."""
    ALL = auto()
    """A list of things by identity: those of each, once."""
    MEMORY = auto()
    """A storage: one that nobody knows."""
    LEAVES = auto()
    """The parameters of a group: those of each, which aren't known to be all."""


Joins: TypeAlias = "Mapping[str, Join]"


class Foreign:
    """A place in another file than the one under analysis."""

    __slots__ = ("node", "path")

    def __init__(self, node: ast.AST, path: str) -> None:
        self.node = node
        self.path = path


Place: TypeAlias = "ast.AST | Foreign | None"


class Value:
    """Anything that a Python expression can evaluate to.

    What changes on a path (`JOINS`) and what it turns out to be (`LEARNT`) is written through the trail only.
    """

    __slots__ = ()


Args: TypeAlias = Sequence[Value]
Kwargs: TypeAlias = Mapping[str, Value]
"""What a call is given, by place and by name."""


class Const(Value):
    """A Python constant, known exactly."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value


NONE = Const(None)
TRUE = Const(True)
FALSE = Const(False)


stamp = count(1).__next__
"""Birth stamps: what was born inside a branch needn't be restored when the branch is undone."""


class Undefined(Value):
    """A name that a branch not taken would have bound."""

    __slots__ = ()


UNDEFINED = Undefined()


class Unknown(Value):
    """Not decided, and why; identity matters: one unknown read twice is the same value.

    `holds` are the values that went in (a call that gets them again through this one may change them).
    `tensor` is the tensor that it turned out to be when an operation used it as one; `requires` says whether
    that tensor is in a graph; `children` its attributes.
    """

    __slots__ = (
        "about",
        "array",
        "bare",
        "born",
        "built",
        "children",
        "guess",
        "holds",
        "lean",
        "least",
        "made",
        "method",
        "module",
        "offset",
        "options",
        "origin",
        "part",
        "requires",
        "tensor",
        "why",
    )
    JOINS: ClassVar[Joins] = {"requires": Join.TRUTH}
    LEARNT: ClassVar = frozenset(
        {"bare", "built", "children", "guess", "made", "module", "requires", "tensor"}
    )
    """What it may turn out to be, whichever path shows it."""

    def __init__(
        self, why: Why, holds: tuple[Value, ...] = (), requires: Truth = None, lean: Lean = NOTHING
    ) -> None:
        self.born = stamp()
        self.why = why
        self.holds = holds
        self.requires = requires
        self.lean = lean
        self.tensor: Tensor | None = None
        self.children: dict[str, Value] | None = None
        self.guess: Node | None = None
        """The node that stands for it where it is an operand, as long as what it holds has the same ones."""
        self.origin = ""
        """The dotted name of what was called to make it."""
        self.module: Opaque | None = None
        """The module that it turned out to be when its parameters went to an optimizer."""
        self.about: Storage | None = None
        """The memory that it is a fact of, where it says how much a tensor holds."""
        self.array: tuple[Shape, str] | None = None
        """The sizes of an array and the class of its dtype, where the call says them that made it."""
        self.made: Node | None = None
        """The node that made it, where a call of a module that isn't known did."""
        self.bare: Truth = None
        """Whether nothing that it holds has a history."""
        self.built = False
        """Whether a module's constructor built it by a call that isn't known: a submodule (convention B)."""
        self.options: tuple[tuple[Path, Value], ...] = ()
        """The values of which it is one, where these were too many to be kept apart."""
        self.part = False
        """Whether it is made from what it holds, and from nothing else."""
        self.least: int | None = None
        """What it is at least, where it is a number that counts something; or 1, an object that is there."""
        self.offset: tuple[Hashable, int] | None = None
        """What it is counted from, and by how much it differs from that; of a range, its end."""
        self.method = False
        """Whether a method of a tensor that isn't known gave it: which may cut it off as well as not."""


class Pattern(Value):
    """What a case of a match statement takes."""

    __slots__ = ("node",)

    def __init__(self, node: ast.pattern) -> None:
        self.node = node


class Never(Unknown):
    """What a call returns that doesn't come back."""

    __slots__ = ()


def counted(value: Value) -> tuple[Hashable, int] | None:
    """A number as what it is counted from, and how far: two that aren't known may differ by what is known."""
    if isinstance(value, Unknown):
        return value.offset or (value, 0)
    number = value.value if isinstance(value, Const) else None
    return (None, number) if type(number) is int else None


class Alt(Value):
    """A few alternatives, each under the path on which it is the value."""

    __slots__ = ("feasible", "joined", "options")

    def __init__(self, options: tuple[tuple[Path, Value], ...]) -> None:
        self.options = options
        self.joined: tuple[object, Node] | None = None
        """The node of those that have one, and what it was made of."""
        self.feasible: tuple[Path, list[tuple[Path, Value]]] | None = None
        """The path on which it was last looked at, and the options that it has there."""


class Seq(Value):
    """A list, tuple or set; `open` when it may hold more than `items`."""

    __slots__ = ("born", "items", "kind", "open", "place", "some")
    JOINS: ClassVar[Joins] = {"items": Join.ITEMS, "open": Join.SOME, "some": Join.SOME}

    def __init__(
        self, kind: str, items: list[Value], open: bool = False, place: Place = None, some: bool = False
    ) -> None:
        self.born = stamp()
        self.kind = kind
        self.items = items
        self.open = open
        self.place = place
        self.some = some
        """Whether these are what was asked, by a test that isn't known: any of them may not be there."""


class Range(Value):
    """`range(...)` of known bounds."""

    __slots__ = ("range",)

    def __init__(self, value: range) -> None:
        self.range = value


class Slice(Value):
    """A slice in a subscript."""

    __slots__ = ("lower", "step", "upper")

    def __init__(self, lower: Value, upper: Value, step: Value) -> None:
        self.lower = lower
        self.upper = upper
        self.step = step


class Map(Value):
    """A dict with constant keys; `open` when it may hold more."""

    __slots__ = ("born", "items", "open", "place")
    JOINS: ClassVar[Joins] = {"items": Join.ENTRIES, "open": Join.SOME}

    def __init__(self, items: dict[Hashable, Value], open: bool = False, place: Place = None) -> None:
        self.born = stamp()
        self.items = items
        self.open = open
        self.place = place


class External(Value):
    """A name of a package that isn't analysed, by its full dotted path."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = path


def either(facts: Iterable[Truth]) -> Truth:
    """Three-valued or."""
    result: Truth = False
    for fact in facts:
        if fact is True:
            return True
        if fact is None:
            result = None
    return result


def unknown_of(why: Why, *holds: Value) -> Unknown:
    """A value that isn't decided, made from others."""
    return Unknown(why, tuple(value for value in holds if not isinstance(value, Undefined)))


def asked_shape(args: Sequence[Value]) -> Shape:
    """The shape that a factory call's size arguments ask for; one alone that isn't known may be all of it."""
    if len(args) == 1 and isinstance(args[0], Seq) and not args[0].open:
        args = args[0].items
    elif len(args) == 1 and isinstance(args[0], (Seq, Unknown, Alt, External)):
        return None
    return tuple(arg.value if isinstance(arg, Const) and type(arg.value) is int else None for arg in args)
