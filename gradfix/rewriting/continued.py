"""Lets what follows a backslash move as far to the left as the statement that it belongs to."""

from __future__ import annotations

import libcst as cst


def moved_out(line: cst.CSTNode, block: cst.BaseSuite) -> cst.CSTNode:
    """A statement of a block, to stand where that stands; what is in brackets goes along by itself."""
    indent = block.indent if isinstance(block, cst.IndentedBlock) else None
    moved = line.visit(_Continued("\\\n" + (indent or "    ")))
    assert isinstance(moved, cst.CSTNode)
    return moved


class _Continued(cst.CSTTransformer):
    def __init__(self, begins: str) -> None:
        super().__init__()
        self.begins = begins

    def on_leave(  # type: ignore[override]  # the signature of libcst promises less than its visitor takes
        self, original: cst.CSTNode, updated: cst.CSTNode
    ) -> cst.CSTNode:
        if not isinstance(updated, cst.SimpleWhitespace) or self.begins not in updated.value:
            return updated
        return updated.with_changes(value=updated.value.replace(self.begins, "\\\n"))
