"""What the machine asks of the program that runs on it: it knows nothing of Python itself."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gradfix.tape.domain.events import Backward
    from gradfix.tape.domain.graph import Node, Tensor
    from gradfix.tape.domain.values import Place


class Python(Protocol):
    """Who knows the names and the text around what is executed."""

    def written(self, place: Place) -> ast.expr | None:
        """The expression of the analysed file that a statement or call writes."""

    def sees_write(self, tensor: Tensor, place: Place) -> bool:
        """Whether another live name would see a write to a tensor's memory."""

    def meets_again(self, tensor: Tensor) -> bool:
        """Whether the next call of a closure that is called several times meets the same memory."""

    def lives_on(self, tensor: Tensor) -> bool:
        """Whether the next turn of a loop that runs meets the same memory."""

    def in_tuple(self, place: Place) -> bool:
        """Whether what is written is an element of a tuple, to which nothing can be assigned."""

    def in_this_function(self, place: Place) -> bool:
        """Whether a place stands in the text of the function that runs."""

    def on_a_module(self, tensor: Tensor) -> bool:
        """Whether a tensor hangs on a module, which may have been moved since."""

    def for_others(self, leaf: Tensor) -> bool:
        """Whether a leaf is written for callers who are elsewhere, and may well switch off recording."""

    def outside(self, node: Node, earlier: Backward, event: Backward) -> str:
        """The name outside the running function that gives each of its calls the same graph."""

    def blames_rebinding(self, below: Iterable[Node]) -> bool:
        """Whether a leaf whose name was bound to a result explains a root with nothing but this below."""
