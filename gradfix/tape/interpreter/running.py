"""What is running: the calls one inside the other, the statement, and as what it was entered."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, TypedDict

from gradfix.tape.domain.within import Within

if TYPE_CHECKING:
    from gradfix.tape.domain.definitions import Code
    from gradfix.tape.domain.trail import Trail
    from gradfix.tape.domain.values import Value
    from gradfix.tape.interpreter.modes import Modes


if TYPE_CHECKING:
    from typing_extensions import Unpack


class Scoped(TypedDict, total=False):
    """What differs inside of something only."""

    later_turn: bool
    statement: ast.AST | None
    compared: ast.AST | None
    looped: ast.AST | None
    at_yield: Callable[[Value], object] | None
    root: Code | None
    uncalled: bool
    exported: bool
    trying: bool
    kept: ast.AST | None
    whole: tuple[ast.AST, ...]
    stack: list[Code]
    modes: list[Modes]


class Running:
    """The state of execution that is entered and left again."""

    def __init__(self, trail: Trail) -> None:
        self.trail = trail
        self.stack: list[Code] = []
        self.modes: list[Modes] = []
        """The grad modes outside the with statements that are running, innermost last."""
        self.later_turn = False
        """Whether loops met here run one turn only: the loop around them is in a later turn of its own."""
        self.statement: ast.AST | None = None
        """The call that the present expression statement consists of."""
        self.compared: ast.AST | None = None
        """What is looked at to see whether it is None."""
        self.demanded: set[ast.AST] = set()
        """What is compared in an assertion: it has to hold."""
        self.root: Code | None = None
        """The function whose result a framework backpropagates."""
        self.uncalled = False
        """Whether a function runs that was entered on its own, as nobody calls it here."""
        self.exported = False
        """Whether a function of autograd was run that has no backward."""
        self.kept: ast.AST | None = None
        """The expression whose value is given a name, handed back or looped over: nobody asks for its items
        at once."""
        self.whole: tuple[ast.AST, ...] = ()
        """The expressions all of whose items are asked for at once."""
        self.trying = False
        """Whether what runs is tried, so that what is raised may be taken."""
        self.looped: ast.AST | None = None
        """The call whose generator a loop is about to go through."""
        self.at_yield: Callable[[Value], object] | None = None
        """What the function that is entered next runs at its yields."""

    def within(self, **now: Unpack[Scoped]) -> Within:
        """A block in which this is so, and as it was after it."""
        return Within(self, self.trail, now)

    def is_statement(self, node: ast.AST) -> bool:
        """Whether a call stands alone, so that its effect lasts."""
        return self.statement is node
