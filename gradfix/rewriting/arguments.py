"""Adds a keyword to a call and takes one out, in the style that the call is written in."""

from __future__ import annotations

import libcst as cst

Space = cst.BaseParenthesizableWhitespace


def keyword(call: cst.Call, name: str) -> cst.Arg | None:
    """The argument that is passed under this name."""
    return next((arg for arg in call.args if arg.keyword is not None and arg.keyword.value == name), None)


def with_keyword(call: cst.Call, name: str, value: str) -> cst.Call:
    """The call with a keyword added at the end: on a line of its own where the others have one."""
    added = cst.Arg(cst.parse_expression(value), keyword=cst.Name(name), equal=_equal(call))
    if not call.args:
        return call.with_changes(args=[added])
    *others, last = call.args
    between = _separator(call)
    if isinstance(last.comma, cst.Comma):
        end = last.comma.whitespace_after
        added = added.with_changes(comma=last.comma.with_changes(whitespace_after=_without_comment(end)))
        between = _with_comment_of(between, end)
    added = added.with_changes(whitespace_after_arg=last.whitespace_after_arg)
    last = last.with_changes(
        comma=cst.Comma(whitespace_after=between), whitespace_after_arg=cst.SimpleWhitespace("")
    )
    return call.with_changes(args=[*others, last, added])


def without_argument(call: cst.Call, gone: cst.Arg) -> cst.Call:
    """The call with one argument less; what stood before the closing bracket stays there."""
    kept = [arg for arg in call.args if arg is not gone]
    if kept and call.args[-1] is gone:
        kept[-1] = kept[-1].with_changes(comma=gone.comma, whitespace_after_arg=gone.whitespace_after_arg)
    return call.with_changes(args=kept)


def _equal(call: cst.Call) -> cst.AssignEqual:
    """The equals sign as the call's other keywords write it."""
    for arg in call.args:
        if isinstance(arg.equal, cst.AssignEqual):
            return arg.equal
    none = cst.SimpleWhitespace("")
    return cst.AssignEqual(whitespace_before=none, whitespace_after=none)


def _separator(call: cst.Call) -> Space:
    """What stands between two arguments."""
    if len(call.args) > 1 and isinstance(call.args[-2].comma, cst.Comma):
        return _without_comment(call.args[-2].comma.whitespace_after)
    if isinstance(call.whitespace_before_args, cst.ParenthesizedWhitespace):
        return _without_comment(call.whitespace_before_args)
    return cst.SimpleWhitespace(" ")


def _without_comment(space: Space) -> Space:
    if not isinstance(space, cst.ParenthesizedWhitespace):
        return space
    bare = cst.TrailingWhitespace(newline=space.first_line.newline)
    return space.with_changes(first_line=bare, empty_lines=())


def _with_comment_of(space: Space, other: Space) -> Space:
    if isinstance(space, cst.ParenthesizedWhitespace) and isinstance(other, cst.ParenthesizedWhitespace):
        return space.with_changes(first_line=other.first_line)
    return space
