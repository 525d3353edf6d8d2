"""What happens to a graph and to gradients: a backward, what it adds to a leaf, who clears and uses that."""

from __future__ import annotations

import ast
from itertools import count
from typing import TYPE_CHECKING, TypeAlias

from gradfix.tape.domain.paths import ALWAYS, Path
from gradfix.tape.domain.values import stamp

if TYPE_CHECKING:
    from gradfix.tape.domain.graph import Node, NodeFacts, Tensor
    from gradfix.tape.domain.moments import Moment
    from gradfix.tape.domain.torch_values import Optimizer
    from gradfix.tape.domain.values import Lean, Place, Truth
    from gradfix.tape.domain.why import Why

Met: TypeAlias = dict[int, tuple[Path, ...]]
"""The nodes that a backward has visited, and under which guards."""


class Backward:
    """One call of backward (or, where a module's output is taken to be backpropagated, the wish for one)."""

    __slots__ = (
        "aimed",
        "anchored",
        "arms",
        "assumed",
        "delivered",
        "doubted",
        "kept",
        "lean",
        "met",
        "moment",
        "number",
        "path",
        "place",
        "raised",
        "retain",
        "returns",
        "root",
        "scaler",
        "spoilt",
        "start",
        "strange",
        "virtual",
    )
    numbers = count()

    def __init__(self, place: Place, path: Path, retain: Truth, virtual: bool, lean: Lean) -> None:
        self.place = place
        self.path = path
        self.retain = retain
        self.virtual = virtual
        self.lean = lean
        self.assumed: Path = ALWAYS
        """The part of the path that says which alternative of the root this is."""
        self.number = next(self.numbers)
        self.arms: tuple[tuple[int, int], ...] = ()
        """Which alternative of which values it is done for."""
        self.root: Tensor | None = None
        self.start: Node | None = None
        """What the root was made by when it ran: it may be written afterwards."""
        self.doubted = False
        """Whether it came to what may not have been recorded."""
        self.aimed: tuple[Tensor, ...] = ()
        """The tensors that it is for, where it names them."""
        self.returns = False
        """Whether it hands the gradients to who called it, and leaves none with the leaves."""
        self.anchored = False
        """Whether it surely fills some leaf, so that it has a graph without all that isn't known."""
        self.delivered = False
        """Whether it reached a leaf that isn't merely a converted result."""
        self.kept = False
        """Whether gradients that it brought were copied: clearing them afterwards loses nothing."""
        self.raised = False
        """Whether it met what an earlier one has freed, and went no further."""
        self.strange = False
        """Whether it came to what isn't known: that may lead to any leaf."""
        self.met: Met = {}
        """The nodes that it visited, from all its roots, and under which guards."""
        self.spoilt: set[int] = set()
        """The places of the steps that have overwritten what it needs."""
        self.moment: Moment | None = None
        """When it ran, among the moments of its entry."""
        self.scaler: NodeFacts | None = None
        """What a GradScaler multiplied the root with."""


class Add:
    """A contribution to a gradient slot."""

    __slots__ = ("backward", "born", "lean", "must", "path")

    def __init__(self, backward: Backward, must: bool, lean: Lean, path: Path | None = None) -> None:
        self.backward = backward
        self.must = must
        self.path = backward.path if path is None else path
        self.lean = lean
        self.born = stamp()


def shared(adds: list[Add], one: Add) -> Path:
    """What has to hold for a contribution, whichever alternative of its root brought it."""
    return one.path.intersection(*(add.path for add in adds if add.backward.place is one.backward.place))


class Clear:
    """A gradient set to zero or None; `must` False where an unknown call may have done it."""

    __slots__ = ("loops", "moment", "must", "number", "path", "place", "why", "zeros")

    def __init__(self, place: Place, path: Path, must: bool, zeros: bool = False) -> None:
        self.place = place
        self.path = path
        self.must = must
        self.loops = 0
        """In how many loops it was done of which not all turns are run."""
        self.zeros = zeros
        """Whether a gradient of zeros is left, which a step uses like any other."""
        self.number = next(Backward.numbers)
        self.moment: Moment | None = None
        """When it was done, where that is known."""
        self.why: Why | None = None
        """Why it isn't known whether it was done, where a call that wasn't followed may have."""


class Empty:
    """A test found that there is no gradient: on its path nothing is left of what came before."""

    __slots__ = ("path",)

    def __init__(self, path: Path) -> None:
        self.path = path


class Use:
    """A step that used a gradient: `by` is the optimizer, or the leaf itself for a hand-written update."""

    __slots__ = ("by", "moment", "number", "path", "place")

    def __init__(self, place: Place, path: Path, by: Optimizer | Tensor, moment: Moment | None) -> None:
        self.place = place
        self.path = path
        self.by = by
        self.number = next(Backward.numbers)
        self.moment = moment


class Unscale:
    """A GradScaler took its factor out of a gradient."""

    __slots__ = ("path",)

    def __init__(self, path: Path) -> None:
        self.path = path


class Doubt:
    """Something that may have filled or cleared gradients: the call, where it is one."""

    __slots__ = ("call", "path", "why")

    def __init__(self, call: ast.AST | None, path: Path, why: Why | None) -> None:
        self.call = call
        self.path = path
        self.why = why
        """Why it isn't known what it did; None where it is as likely as not that it did so."""


SlotEvent: TypeAlias = "Add | Clear | Empty | Use | Unscale | Doubt"
"""What can happen to the gradient of a leaf."""
