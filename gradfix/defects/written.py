"""What is known of a write in place that autograd doesn't survive, or doesn't notice."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from gradfix.defects.facts import Facts
from gradfix.defects.places import Span, Touched, together


@dataclass(frozen=True, slots=True, kw_only=True)
class Written(Facts):
    """An in-place write. The culprit is the writing node: an AugAssign statement, an Assign statement whose
    target is a Subscript or attribute of the written tensor, or a Call (`y.add_(1)`, `F.relu(y,
    inplace=True)`, `torch.add(a, b, out=y)`)."""

    form: str = ""
    """augassign, setitem, method, keyword, out or module."""
    target: str = ""
    """Source text of the name, attribute or list element that holds the written tensor: `x` for `x += 1`,
    `x[0] = v`, `x[:, 0] += 1` and `x.view(-1).add_(1)`; `xs[i]` for `xs[i] += y` and `xs[i][0] = v` where xs
    is a list; "" for a value that nothing holds."""
    aliased: bool = False
    """Whether another live name sees the write, so that out of place would change what it reads."""
    met_again: bool = False
    """Whether it is in a closure that a step calls several times, and the next call meets what is written:
    the graph that the write has put it into is freed by then."""
    promotes: bool = False
    """Whether dtypes are known to differ, so that out of place would change the dtype."""
    in_tuple: bool = False
    """Whether what is written is an element of a tuple, to which nothing can be assigned."""
    unrecorded: bool = False
    """Whether nothing is recorded where it stands, though what it writes has a graph."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overwritten(Written):
    """A write over something that an operation has saved for backward."""

    carries: bool = False
    """Whether what is written takes its graph along into the next turn or call, which saves it again."""
    saver: str = ""
    """Name of the operation, `relu`."""
    save: Span | None = None
    """The expression whose operation saved it."""
    parameter: bool = False
    """Whether it is a parameter or another leaf, which is to be written behind backward."""
    backward: Span | None = None
    under: Span | None = None
    """What that backward's function does, under which the leaf is written."""
    until: Touched = None
    """What touches these leaves in that function before this backward."""

    def again(self, other: Overwritten) -> Overwritten:
        """What holds of both times that the defect happens."""
        if (self.backward, self.under) != (other.backward, other.under):
            return replace(self, under=None)
        return replace(self, until=together((self.until, other.until)))


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenByModule(Overwritten):
    """The same by a module. The culprit is the Call that builds it (`nn.ReLU(inplace=True)`,
    `nn.Dropout(0.5, True)`) or the assignment `m.inplace = True`."""

    module: str = ""
    """`nn.ReLU`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenThroughData(Overwritten):
    """The same through `.data`, which autograd doesn't notice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenView(Written):
    """A write to one of several views."""

    maker: str = ""
    """Name of the operation that returned them, `chunk`."""
    unreadable: bool = False
    """Whether torch refuses to read the view too: it is from a block that records nothing, and what it shows
    was written since."""
    of_leaf: bool = False
    """Whether what they show may be a leaf: then torch refuses a view of its own as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedWrite(Written):
    """A write that torch refuses whatever is trained."""

    why: Literal["shared", "inference", "out", ""] = ""
    """shared: several elements lie in one place; inference: made in inference mode, written outside of it;
    out: a result that would have to be recorded goes to `out=`."""
    what: str = "a tensor that torch lets nobody write"
    """The same in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenLeaf(Written):
    """A write to a leaf that requires grad."""

    role: Literal["update", "value"] = "update"
    """update: the leaf is optimised, initialised or has its .grad read, so that the write isn't to be
    recorded; value: a new value is made of it, out of place."""
    parameter: bool = False
    """Whether it is a parameter: an attribute of a module that holds one takes no other tensor."""
    frozen: bool = False
    """Whether it is told to need no gradient later on, as only a leaf can be."""
