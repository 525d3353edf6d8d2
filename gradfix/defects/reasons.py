"""Why something isn't known: what it is, what a person calls it, where it is, and what would settle it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from gradfix.defects.places import Span


class What(Enum):
    """What isn't known can be, each with how it is said and what would settle it."""

    ARGUMENT = "argument `{}`", "a caller of it in a file that is read"
    CALL = "the result of {}, which isn't followed", "a value whose source is in the project or the table"
    IMPORT = "the result of {}, which isn't read", "its module beside this file, or a row for its framework"
    CALLED = "what {} does, which isn't followed", "its source in the project, or a row for its framework"
    MODULE = "what a module returns", "the class of the module in a file that is read"
    SUBCLASS = "what is left to subclasses", "a subclass in a file that is read"
    CALLER = "whoever calls {}", "a caller of it in a file that is read"
    UNCALLED = "nobody here calls {}", "a caller of it in a file that is read"
    WAY = "no way that is followed leads here", "a call that leads here, or a test that can hold"
    MEANT = "{}", "whoever wrote it: a run without the cut shows what it would teach"
    UNHELD = "{}", "an optimizer that is seen to hold what is behind it"
    FRAMEWORK = "{}", "a row for the framework that says so"
    BUDGET = "{}", "a shorter way to it: what costs too much is left out"
    ALTERNATIVES = "{}", "fewer alternatives: no more than a few are kept apart"
    ATTRIBUTE = "{}", "the place where it is set, in what is followed"
    ELEMENT = "{}", "an index and a length that are written out"
    COMPUTED = "{}", "what it is made of"
    OPERATION = "{}", "an operation that the table knows, with these arguments"
    OPTIMIZER = "what {} holds", "an optimizer whose parameters are all seen"
    BACKWARD = "a backward that comes to what isn't known", "a loss that is followed down to its leaves"
    RUN_TIME = "{}", "a run: it is decided there"
    """A number, a text, a truth."""
    OBJECT = "{}", "a run, which shows what this is"

    def __init__(self, says: str, settled_by: str) -> None:
        self.says = says
        self.settled_by = settled_by


BY_A_RUN = frozenset({What.RUN_TIME, What.OBJECT})
"""What a run decides."""
DERIVED = frozenset({What.ALTERNATIVES, What.ATTRIBUTE, What.ELEMENT, What.COMPUTED})
"""What is unknown only as that is which it was taken from, where that isn't known."""
NAMELESS = {
    What.CALL: "a call",
    What.IMPORT: "a call",
    What.CALLED: "a call",
    What.OPTIMIZER: "an optimizer",
    What.CALLER: "this",
    What.UNCALLED: "this",
}
"""How that is called which has no name."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why something isn't known."""

    what: What
    name: str = ""
    """As a person would call it."""
    span: Span | None = None
    """Where it came from, if that is known."""
    path: str | None = None
    """The file, where it isn't the one that was analysed."""
    of: Reason | None = None
    """Why that isn't known which it is a part of."""

    @property
    def says(self) -> str:
        """What it is, in words."""
        own = self.what.says.format(self.name or NAMELESS.get(self.what, ""))
        return f"{own} of {self.of.says}" if self.of is not None else own

    @property
    def settled_by(self) -> str:
        """What one would have to see to know it."""
        return self.root.what.settled_by

    @property
    def root(self) -> Reason:
        """The first that isn't known on the way to it."""
        return self.of.root if self.of is not None else self

    @property
    def first(self) -> Reason | None:
        """It or what it is a part of, whichever is the first of which is known where it came from."""
        return next((one for one in self._parts() if one.span is not None), None)

    @property
    def line(self) -> int:
        """The line that it or what it is a part of came from; 0 where that isn't known."""
        return self.first.span.line if self.first is not None and self.first.span is not None else 0

    @property
    def told(self) -> str:
        """What it is and where, in words."""
        file = next((f"{one.path}:" for one in self._parts() if one.span and one.path), "line ")
        return f"{self.says} ({file}{self.line})" if self.line else self.says

    def _parts(self) -> Iterator[Reason]:
        yield self
        if self.of is not None:
            yield from self.of._parts()
