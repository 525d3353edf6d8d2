"""A file's libcst tree, with the ways to find the node that an `ast` span names."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import libcst as cst

    from gradfix.tape.defects import Span

N = TypeVar("N", bound="cst.CSTNode")


class Tree:
    """Contract for the rules; made by the engine when a file has something to rewrite.

    module                      the cst.Module
    at(span, *types)            the outermost node of these types that covers exactly the ast span, or None
    parent(node)                its parent node
    statement(node)             the SimpleStatementLine or compound statement that holds the node
    small_statement(node)       the small statement (Assign, AugAssign, Expr ...) that holds the node, if one does
    block(statement)            the body (IndentedBlock / Module / SimpleStatementSuite) that holds a statement, as a list
    function(node)              the FunctionDef that holds the node, or None
    code(node)                  its source text
    span(node)                  its ast span (UTF-8 byte columns)
    text(span)                  the source text of a span
    torch                       the name that torch is bound to in this file ("torch", "th"), or None when there is none
    """
