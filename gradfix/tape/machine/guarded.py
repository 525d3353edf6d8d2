"""The order in which a backward visits what it reaches on some paths only."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

from gradfix.tape.domain.paths import simplest

if TYPE_CHECKING:
    from gradfix.tape.domain.graph import Node
    from gradfix.tape.domain.paths import Path


class Guarded:
    """The nodes that a backward has yet to visit on some paths only: the youngest first, so that each is
    visited when all the paths to it are known, and those that make no difference have fallen away."""

    def __init__(self) -> None:
        self.order: list[tuple[int, Node]] = []
        self.paths: dict[int, list[Path]] = {}

    def add(self, node: Node, path: Path) -> None:
        known = self.paths.get(-node.born)
        if known is None:
            self.paths[-node.born] = [path]
            heappush(self.order, (-node.born, node))
        else:
            known.append(path)

    def pop(self) -> tuple[Node, Path]:
        mark, node = self.order[0]
        paths = self.paths[mark]
        if len(paths) > 1:
            paths = self.paths[mark] = simplest(paths)
        path = paths.pop()
        if not paths:
            heappop(self.order)
            del self.paths[mark]
        return node, path
