"""How a rule changes a call: the method put behind a value, and keyword arguments in the layout of the others."""

from __future__ import annotations

import libcst as cst

BARE = (cst.Name, cst.Attribute, cst.Call, cst.Subscript)


def method_call(value: cst.BaseExpression, name: str) -> cst.Call:
    """`value.name()`, with brackets around the value where its first dot would bind tighter."""
    if not isinstance(value, BARE) and not getattr(value, "lpar", ()):
        value = value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return cst.Call(cst.Attribute(value, cst.Name(name)))


def with_argument(call: cst.Call, keyword: str, value: cst.BaseExpression) -> cst.Call:
    """The call with this keyword argument, in the layout that its arguments have."""
    args = list(call.args)
    for number, arg in enumerate(args):
        if arg.keyword is not None and arg.keyword.value == keyword:
            args[number] = arg.with_changes(value=value)
            return call.with_changes(args=args)
    equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    new = cst.Arg(value, keyword=cst.Name(keyword), equal=equal)
    if not args:
        return call.with_changes(args=[new])
    last = args[-1]
    between = call.whitespace_before_args if _own_lines(call) else cst.SimpleWhitespace(" ")
    args[-1] = last.with_changes(
        comma=cst.Comma(whitespace_after=between), whitespace_after_arg=cst.SimpleWhitespace("")
    )
    args.append(new.with_changes(comma=last.comma, whitespace_after_arg=last.whitespace_after_arg))
    return call.with_changes(args=args)


def without_argument(call: cst.Call, keyword: str) -> cst.Call:
    """The call without this keyword argument; a bracket that stood behind it stays where it is."""
    args = [arg for arg in call.args if arg.keyword is None or arg.keyword.value != keyword]
    if args and len(args) < len(call.args):
        last = call.args[-1]
        args[-1] = args[-1].with_changes(comma=last.comma, whitespace_after_arg=last.whitespace_after_arg)
    return call.with_changes(args=args)


def _own_lines(call: cst.Call) -> bool:
    return isinstance(call.whitespace_before_args, cst.ParenthesizedWhitespace)
