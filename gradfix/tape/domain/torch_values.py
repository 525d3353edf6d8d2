"""What torch builds around tensors: modules, their weights, optimizers, scalers and grad modes."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from gradfix.tape.domain.values import NOTHING, Join, Value, stamp

if TYPE_CHECKING:
    from gradfix.tape.domain.effect import ModuleEffect
    from gradfix.tape.domain.events import Backward
    from gradfix.tape.domain.graph import Tensor
    from gradfix.tape.domain.paths import Path
    from gradfix.tape.domain.values import Joins, Lean, Place, Truth


class Layer(Value):
    """A module of torch.nn, `kind` by name; containers hold `items`; parameters and buffers are in attrs."""

    __slots__ = (
        "args",
        "attrs",
        "born",
        "effect",
        "inplace",
        "items",
        "kind",
        "lean",
        "open",
        "place",
        "training",
    )
    JOINS: ClassVar[Joins] = {
        "inplace": Join.TRUTH,
        "items": Join.ENTRIES,
        "open": Join.SOME,
        "place": Join.AGREED,
        "training": Join.TRUTH,
    }

    def __init__(self, kind: str, effect: ModuleEffect | None, args: dict[str, Value], place: Place) -> None:
        self.born = stamp()
        self.kind = kind
        self.effect = effect
        self.args = args
        self.place = place
        self.attrs: dict[str, Value] = {}
        self.items: dict[str, Value] | None = None
        self.open = False
        self.inplace: Truth = False
        self.training: Truth = None
        self.lean: Lean = NOTHING
        """What it takes that it is built as it is read."""


class Opaque(Value):
    """A module of unknown class: its call requires grad through `weights`, one leaf that stands for all."""

    __slots__ = ("born", "children", "lean", "of", "weights")

    def __init__(self, of: Value, weights: Tensor, lean: Lean) -> None:
        self.born = stamp()
        self.of = of
        self.weights = weights
        self.lean = lean
        self.children: dict[str, Value] = {}


class Weights(Value):
    """`module.parameters()`: the leaves of a module, `complete` when they are all of them."""

    __slots__ = ("complete", "leaves", "met", "named", "of")

    def __init__(self, of: Value, leaves: list[Tensor], complete: bool, named: bool = False) -> None:
        self.of = of
        self.leaves = leaves
        self.complete = complete
        self.named = named
        self.met: Path | None = None
        """The path on which a loop took it for each one of them: a test inside may pick some."""


class Group(Value):
    """One of an optimizer's `param_groups`: a dict, of which the parameters matter."""

    __slots__ = ("born", "weights")
    JOINS: ClassVar[Joins] = {"weights": Join.LEAVES}

    def __init__(self, weights: Weights) -> None:
        self.born = stamp()
        self.weights = weights


class Optimizer(Value):
    """An optimizer over leaves; `leaves` None when it isn't known what it holds."""

    __slots__ = (
        "after",
        "born",
        "complete",
        "fused",
        "groups",
        "iterates",
        "kind",
        "lean",
        "leaves",
        "name",
        "own",
        "parts",
        "perhaps",
        "place",
        "stepped",
    )
    JOINS: ClassVar[Joins] = {
        "after": Join.AGREED,
        "complete": Join.EVERY,
        "groups": Join.AGREED,
        "leaves": Join.ALL,
        "name": Join.NAME,
        "stepped": Join.EVERY,
    }

    def __init__(self, kind: str, leaves: list[Tensor], complete: bool, place: Place) -> None:
        self.born = stamp()
        self.kind = kind
        self.leaves = leaves
        self.complete = complete
        self.place = place
        self.lean: Lean = NOTHING
        self.perhaps: list[Tensor] = []
        """What it may hold as well: it was given what isn't known, and was made of these."""
        self.groups: list[Group] | None = None
        """What its leaves are grouped in; None where that isn't known."""
        self.parts: list[list[Tensor]] = []
        """The leaves of each module that was asked for them to make up the list that it was given."""
        self.fused: Truth = False
        self.iterates: Truth = False
        """Whether a step calls its closure several times."""
        self.name = ""
        self.own: dict[str, Value] = {}
        """What the program has put in the place of its methods, or beside them."""
        self.stepped = False
        self.after: tuple[Backward, Tensor] | None = None
        """The backward that ran last before its latest step."""


class Scaler(Value):
    """An AMP GradScaler, or the value that `scaler.scale(loss)` returned."""

    __slots__ = ("born", "enabled", "place", "stepped")
    JOINS: ClassVar[Joins] = {"stepped": Join.ALL}

    def __init__(self, enabled: Truth, place: Place) -> None:
        self.born = stamp()
        self.enabled = enabled
        self.place = place
        self.stepped: tuple[Optimizer, ...] = ()
        """The optimizers that have stepped through it."""


class Mode(Value):
    """A grad mode as a context manager or decorator: what it sets, and the call that made it."""

    __slots__ = ("kind", "place", "sets")

    def __init__(self, kind: str, sets: Value, place: Place) -> None:
        self.kind = kind
        self.sets = sets
        self.place = place
