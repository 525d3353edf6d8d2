"""Tensors as autograd sees them: storages with versions, what operations saved, nodes, gradient slots."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, ClassVar, TypeAlias, TypedDict

from gradfix.tape.domain.paths import ALWAYS
from gradfix.tape.domain.values import NOTHING, Join, Value, stamp

if TYPE_CHECKING:
    from gradfix.defects.written import Written
    from gradfix.tape.domain.events import Backward, SlotEvent
    from gradfix.tape.domain.moments import Moment
    from gradfix.tape.domain.paths import Path
    from gradfix.tape.domain.torch_values import Optimizer, Scaler
    from gradfix.tape.domain.values import Joins, Lean, Place, Shape, Truth, Unknown


class Storage:
    """The memory of one or more tensors: its version is the number of writes that count."""

    __slots__ = (
        "argument",
        "base",
        "generation",
        "inference",
        "inferred",
        "lent",
        "parts",
        "savers",
        "shown",
        "writes",
    )

    def __init__(self, argument: bool = False) -> None:
        self.writes: list[Write] = []
        self.savers: list[Saved] = []
        self.generation = 0
        self.base: Tensor | None = None
        self.inference: Place = None
        """Where the inference mode was entered in which it was made."""
        self.inferred: Path = ALWAYS
        """The path on which that is so."""
        self.argument = argument
        """Whether it came in as an argument of a function whose callers aren't known."""
        self.lent = False
        """Whether code that isn't known had it where nothing was recorded: it may have been written there."""
        self.shown: list[Path] = []
        """The paths on which something was kept that may show this memory."""
        self.parts: tuple[tuple[Path, Tensor], ...] = ()
        """The tensors whose memory this is, each on its path, where several are looked at as one."""


class NodeFacts(TypedDict, total=False):
    """What is known of a node besides what it does."""

    value: Unknown
    """The value that it stands for."""
    made_of: list[tuple[Node, ...]]
    """The histories of those of which that value is one."""
    of: Tensor
    """The leaf whose gradient it reads."""
    scaler: Scaler
    name: str
    """How that scaler is called."""
    factory: str
    """The function that made it of nothing."""
    target: str
    frozen: Place
    """Where a leaf was told not to require grad."""
    within: Place
    """Where recording was turned off around a cut: without the cut, nothing would be recorded either."""
    unasked: bool
    """Whether that is what the function does which made it, unless it is told otherwise."""
    unreduced: bool
    criterion: Place
    """Where the loss module was built that made it, and that was told not to reduce."""
    wider: Place
    """The operand of a sum that has several elements, where the other one is a single number."""
    past: bool
    """Whether it may pass nothing on: what it returns is of a class that lets nothing of its own into it, or
    comes of a method that may cut it off."""
    handed: bool
    """Whether code that isn't known had it for its effect: it may have detached it in place."""
    several: bool
    """Whether it has more than one element, though its shape isn't known."""
    along: int
    """The dimension along which a tensor of its own memory was cut into pieces."""
    whole: Tensor
    """That tensor."""
    repeats: Shape
    """Whether it shows one place of memory as several elements, though not all sizes are known."""
    rank: int
    """How many dimensions it has, where it says which elements are best."""
    width: int | None
    """How many elements the last dimension has that it says so of."""


class Write:
    """One in-place write to a storage."""

    __slots__ = (
        "aliased", "born", "built", "counter", "form", "later", "leaf", "lean", "module", "moment", "parts",
        "path", "place", "silent", "stepped", "unrecorded", "written",
    )  # fmt: skip

    def __init__(self, place: Place, path: Path, form: str, silent: bool, counter: Tensor | None) -> None:
        self.born = stamp()
        self.place = place
        self.path = path
        self.form = form
        """augassign, setitem, method, keyword, out, module, step, buffer."""
        self.silent = silent
        """Whether it leaves the version counter alone (`.data = `, fused optimizers)."""
        self.counter = counter
        """The version counter that it raises: see Tensor."""
        self.lean: Lean = NOTHING
        """What is taken for granted of that it happens."""
        self.later = False
        """Whether it was done in a turn of a loop that isn't known to have one."""
        self.unrecorded = False
        """Whether nothing was recorded where it was done, or perhaps not: data is written so, and what nobody
        trains."""
        self.parts: list[Write] = []
        """The same write as each of the tensors sees it that were looked at as one."""
        self.written: Written | None = None
        """What a rewrite has to know of it, where something was saved or may be."""
        self.leaf: Tensor | None = None
        """The parameter, or other leaf, that was written."""
        self.moment: Moment | None = None
        self.module = ""
        """The module that did it, `nn.ReLU`."""
        self.built: Place = None
        """Where that was built."""
        self.stepped: tuple[Optimizer, Tensor] | None = None
        """The optimizer whose step it is part of, and the leaf that was stepped."""

    def everywhere(self) -> Iterator[Write]:
        """The write, and as each of the tensors sees it that were looked at as one."""
        yield self
        for part in self.parts:
            yield from part.everywhere()


class Saved:
    """What a graph node keeps of a storage, at the version that it had."""

    __slots__ = ("argument", "counter", "lean", "node", "path", "seen", "tensor", "tested", "writes")

    def __init__(self, tensor: Tensor, node: Node, path: Path, tested: Path, lean: Lean) -> None:
        self.tensor = tensor
        self.argument = tensor.storage.argument
        self.counter = tensor.counter
        self.writes = tensor.storage.writes
        self.seen = len(self.writes)
        """How many writes the memory had seen by then."""
        self.node = node
        self.path = path
        self.tested = tested
        """The part of the path that statements test; the rest says which alternative of a value this is."""
        self.lean = lean


class Spoil:
    """A saved value and the write that overwrote it; `silent` where its version counter doesn't show it."""

    __slots__ = ("saved", "silent", "write")

    def __init__(self, saved: Saved, write: Write, silent: bool) -> None:
        self.saved = saved
        self.write = write
        self.silent = silent


class Node:
    """An operation in the graph (or outside it: `requires` False), with what went in.

    `cut` marks an edge that carries no gradient: how it was cut (detach, item, no_grad ...) and where.
    `may` marks an operation that isn't known: what went in may or may not be what comes out.
    """

    __slots__ = (
        "born",
        "branch",
        "clean",
        "cut",
        "cut_place",
        "doubted",
        "facts",
        "freed",
        "guards",
        "leaf",
        "lean",
        "may",
        "number",
        "op",
        "parents",
        "path",
        "place",
        "reach",
        "requires",
        "saves",
        "spoiled",
        "writes",
    )
    JOINS: ClassVar[Joins] = {}
    LEARNT: ClassVar = frozenset({"lean"})

    def __init__(self, op: str, place: Place, parents: tuple[Node, ...], requires: Truth) -> None:
        self.born = stamp()
        """When it was made: what went in is older."""
        self.op = op
        self.place = place
        self.parents = parents
        self.requires = requires
        self.guards: tuple[Path, ...] | None = None
        """Where histories are joined: the path on which each parent is the one."""
        self.branch: tuple[Path, ...] = ()
        """The guards of the nearest join behind it, where that decides whether it is in a graph."""
        self.path: Path = ALWAYS
        self.lean: Lean = NOTHING
        self.cut = ""
        self.cut_place: Place = None
        self.may = False
        self.doubted = False
        """Whether something that isn't known was entered around it, which may have turned recording off."""
        self.leaf: Tensor | None = None
        self.saves = False
        """Whether it keeps anything, so that a second backward finds it freed."""
        self.freed: list[tuple[Backward, Path]] | None = None
        self.spoiled: list[Spoil] | None = None
        self.clean = -1
        self.reach: tuple[object, tuple[Node, ...]] | None = None
        """The leaves that a backward from here surely fills and meets nothing else, and as of when."""
        self.number = False
        """Whether the value is a plain Python number."""
        self.writes = False
        """Whether it writes in place: what it wrote to is the first that went in."""
        self.facts: NodeFacts | None = None


Onward: TypeAlias = "Callable[[Node], Iterable[Node]]"


def upstream(starts: Iterable[Node], onward: Onward | None = None) -> Iterator[Node]:
    """Some nodes and what went into them, each once; `onward` says where it goes on, if not everywhere."""
    seen: set[int] = set()
    stack = list(starts)
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            stack.extend(node.parents if onward is None else onward(node))


class Slot:
    """The `.grad` of a leaf: what was added, used by steps, and cleared, in order."""

    __slots__ = ("events", "tensor")

    def __init__(self) -> None:
        self.events: list[SlotEvent] = []
        self.tensor: Tensor | None = None
        """What `.grad` reads as."""


class Tensor(Value):
    """A tensor: which memory it looks at, which node made it, whether backward reaches it."""

    __slots__ = (
        "base",
        "born",
        "counter",
        "created",
        "data_of",
        "dtype",
        "generation",
        "grad_of",
        "layout",
        "leaf",
        "lean",
        "maybe",
        "name",
        "node",
        "parameter",
        "piece",
        "place",
        "requires",
        "retained",
        "seen",
        "shape",
        "slot",
        "storage",
        "strides",
        "view",
    )
    JOINS: ClassVar[Joins] = {
        "generation": Join.OLDEST,
        "layout": Join.TRUTH,
        "leaf": Join.TRUTH,
        "lean": Join.UNION,
        "node": Join.NODE,
        "requires": Join.TRUTH,
        "retained": Join.SOME,
        "shape": Join.AGREED,
        "storage": Join.MEMORY,
        "strides": Join.AGREED,
    }

    def __init__(self, node: Node, storage: Storage, requires: Truth, leaf: Truth) -> None:
        self.born = stamp()
        self.node = node
        self.storage = storage
        self.requires = requires
        self.leaf = leaf
        self.lean: Lean = node.lean
        self.shape: Shape = None
        self.dtype = ""
        """float, half, int, bool, or "" for unknown."""
        self.layout: Truth = None
        """Whether it is contiguous."""
        self.strides: tuple[int, ...] | None = None
        """How far apart the elements of a view lie, where all of it is known."""
        self.base: Tensor | None = None
        self.view = ""
        """"" for its own memory; plain, many (chunk, split) or no_grad for a view; loose (detach, .data)."""
        self.piece: tuple[Node, int] | None = None
        """Which one it is, or shows, of the views that one call returned: each has elements of its own."""
        self.generation = 0
        self.seen = 0
        """How many writes its memory had seen when the view was made."""
        self.maybe: Tensor | None = None
        """The tensor that this one may be, or show."""
        self.slot: Slot | None = None
        self.parameter = False
        self.retained: Truth = False
        """None: code that isn't known may have had it keep its gradient."""
        self.place: Place = node.place
        self.name = ""
        self.grad_of: Tensor | None = None
        """The leaf whose `.grad` this is."""
        self.counter: Tensor | None = None
        """The `.data` whose version counter it shares; None for the counter that its memory began with."""
        self.data_of: Tensor | None = None
        """The tensor whose `.data` this is."""

    def gradient(self) -> Slot:
        """Its gradient slot."""
        if self.slot is None:
            self.slot = Slot()
        return self.slot


def are_apart(one: Tensor, other: Tensor) -> bool:
    """Whether two views are known to have no element in common."""
    if one.piece is None or other.piece is None or one.maybe is not None or other.maybe is not None:
        return False
    return one.piece[0] is other.piece[0] and one.piece[1] != other.piece[1]


def is_result(tensor: Tensor) -> bool:
    """Whether a tensor is known to be no leaf that requires grad."""
    return tensor.leaf is False or tensor.requires is False


class Number(Value):
    """A Python number or array that was converted from a tensor: outside the graph, with its origin."""

    __slots__ = ("kind", "node", "place", "shape")

    def __init__(self, node: Node, place: Place, kind: str) -> None:
        self.node = node
        self.place = place
        self.kind = kind
        """number, list or array."""
        self.shape: Shape = None
