"""The optimizers of an entry, when they have stepped, and what lies between two steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradfix.defects import Touched
    from gradfix.tape.domain.graph import Tensor
    from gradfix.tape.domain.moments import Moment
    from gradfix.tape.domain.torch_values import Optimizer
    from gradfix.tape.domain.values import Place
    from gradfix.tape.machine.touches import Touches


class Optimizers:
    """The optimizers that are known to a program."""

    def __init__(self, before: Optimizers | None) -> None:
        self.known: list[Optimizer] = [*before.known] if before else []
        self.steps: list[int] = [*before.steps] if before else []
        """When an optimizer has stepped, in the numbers of the backwards."""
        self.supposed: list[int] = [*before.supposed] if before else []
        """When one has stepped that isn't known."""
        self.asked: list[tuple[Place, list[Tensor]]] = [*before.asked] if before else []
        """What the `parameters()` of modules gave, and where."""
        self.touches: Touches | None = None
        """Who answers what touches leaves between two moments."""

    def train(self) -> bool:
        """Whether one of them holds what can be trained."""
        return any(leaf.requires is True for optimizer in self.known for leaf in optimizer.leaves)

    def parts(self, held: list[Tensor]) -> list[list[Tensor]]:
        """What modules gave one after the other to make a list of leaves; none where it isn't all of that,
        or where one line asked several of them, which names none."""
        parts: list[tuple[Place, list[Tensor]]] = []
        start = 0
        while start < len(held):
            fitting = (one for one in self.asked if one[1] and _begins(held, start, one[1]))
            longest = max(fitting, key=lambda one: len(one[1]), default=None)
            if longest is None or any(longest[0] is place for place, _ in parts):
                return []
            parts.append(longest)
            start += len(longest[1])
        return [leaves for _, leaves in parts]

    def between(self, first: Moment | None, last: Moment | None, leaves: list[Tensor]) -> Touched:
        """What touches leaves or their gradients after one moment and before another; None: not known."""
        if first is None or last is None or self.touches is None:
            return None
        return self.touches.between(first, last, leaves)

    def until(self, last: Moment, leaf: Tensor) -> Touched:
        """What touches a leaf, and those that are stepped with it, before a moment; None: not known."""
        if self.touches is None:
            return None
        alike = next((one.leaves for one in self.known if any(leaf is each for each in one.leaves)), [leaf])
        return self.touches.until(last, alike)


def _begins(held: list[Tensor], start: int, part: list[Tensor]) -> bool:
    """Whether leaves stand in a list from there on, in this order."""
    return [id(one) for one in held[start : start + len(part)]] == [id(one) for one in part]
