"""Reads a call that writes in place and gives its twin: methods and their chains, flags, `out=`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from gradfix.rewriting.holders import same
from gradfix.rewriting.names import reads, walk
from gradfix.rewriting.twins import FLAG_OF_FUNCTION, FUNCTIONS, METHODS
from gradfix.rule import Decline
from gradfix.tree import Tree

FLAG_FROM_OUTSIDE = Decline("the call takes its in-place flag from elsewhere; let it be False there")


@dataclass(frozen=True, slots=True)
class Write:
    """A call that writes in place."""

    call: cst.Call
    """The whole chain of in-place calls."""
    tensor: cst.BaseExpression
    """What is written."""
    twin: cst.BaseExpression | None
    """The same out of place; None: torch has none."""


def written(tree: Tree, call: cst.Call, target: str) -> Write | Decline:
    """What a call writes, and its twin."""
    out = keyword(call, "out")
    if out is not None:
        return Write(call, out.value, None if isinstance(out.value, cst.Tuple) else without(call, out))
    flag = in_place_flag(call)
    if flag is not None:
        return _flagged(tree, call, flag)
    if _is_function(tree, call, target):
        return Write(call, call.args[0].value, _function_twin(call))
    return _chain(tree, call)


def keyword(call: cst.Call, name: str) -> cst.Arg | None:
    return next((arg for arg in call.args if arg.keyword is not None and arg.keyword.value == name), None)


def in_place_flag(call: cst.Call, positions: dict[str, int] = FLAG_OF_FUNCTION) -> cst.Arg | None:
    """The argument that says `inplace`, by keyword or by position."""
    named = keyword(call, "inplace")
    at = positions.get(last_name(call.func))
    if named is not None or at is None or len(call.args) <= at:
        return named
    plain = all(arg.keyword is None and not arg.star for arg in call.args[: at + 1])
    return call.args[at] if plain else None


def last_name(func: cst.BaseExpression) -> str:
    if isinstance(func, cst.Attribute):
        return func.attr.value
    return func.value if isinstance(func, cst.Name) else ""


def without(call: cst.Call, gone: cst.Arg) -> cst.Call:
    """The call without one argument, in the layout that it has; one that others follow becomes False."""
    at = next(i for i, arg in enumerate(call.args) if arg is gone)
    rest = [arg for arg in call.args if arg is not gone]
    if gone.keyword is None and any(arg.keyword is None for arg in rest[at:]):
        kept = gone.with_changes(value=cst.Name("False"))
        return call.with_changes(args=[kept if arg is gone else arg for arg in call.args])
    if not rest:
        return _empty(call)
    if at == len(rest):
        end = {"comma": gone.comma, "whitespace_after_arg": gone.whitespace_after_arg}
        rest[-1] = rest[-1].with_changes(**end)
    return call.with_changes(args=rest)


def _empty(call: cst.Call) -> cst.Call:
    """The call without arguments, on one line unless a comment stands between its brackets."""
    if any(isinstance(part, cst.Comment) for part in walk(call.whitespace_before_args)):
        return call.with_changes(args=())
    return call.with_changes(args=(), whitespace_before_args=cst.SimpleWhitespace(""))


def is_true(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Name) and node.value == "True"


def _flagged(tree: Tree, call: cst.Call, flag: cst.Arg) -> Write | Decline:
    if not is_true(flag.value):
        return FLAG_FROM_OUTSIDE
    tensor = keyword(call, "input") or call.args[0]
    return Write(call, tensor.value, without(call, flag))


def _is_function(tree: Tree, call: cst.Call, target: str) -> bool:
    """`F.relu_(h)`, where `h.relu_()` would be a method."""
    if not last_name(call.func).endswith("_") or not call.args:
        return False
    if isinstance(call.func, cst.Name):
        return True
    assert isinstance(call.func, cst.Attribute)
    owner = tree.code(call.func.value)
    if target:
        return same(tree.code(call.args[0].value), target) and not same(owner, target)
    return owner in {tree.torch, "torch", "F", "nn.functional", "torch.nn.functional"}


def _function_twin(call: cst.Call) -> cst.BaseExpression | None:
    name = last_name(call.func)[:-1]
    if name not in FUNCTIONS or not isinstance(call.func, cst.Attribute):
        return None
    return call.with_changes(func=call.func.with_changes(attr=cst.Name(name)))


def _chain(tree: Tree, call: cst.Call) -> Write | Decline:
    """`x.add_(1).mul_(2)`: every link writes the same tensor, so all of them change together."""
    top = call
    while (above := _next_link(tree, top)) is not None:
        top = above
    tensor: cst.BaseExpression = top
    while isinstance(tensor, cst.Call) and _in_place_name(tensor):
        assert isinstance(tensor.func, cst.Attribute)
        tensor = tensor.func.value
    if tensor is top:
        return Decline("this call does not say how it writes in place")
    plain = not set(reads(tensor)) & set(_read_between(top, tensor))
    return Write(top, tensor, _renamed(top, tensor) if plain else None)


def later_link(call: cst.CSTNode) -> bool:
    """Whether a call goes on with what one before it has written: `.mul_(2)` in `x.add_(1).mul_(2)`."""
    before = call.func.value if isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute) else None
    return isinstance(before, cst.Call) and _in_place_name(before) is not None


def _read_between(top: cst.BaseExpression, tensor: cst.BaseExpression) -> Iterator[str]:
    """What the arguments of the later links read, after the first has written."""
    link = top
    while later_link(link):
        assert isinstance(link, cst.Call) and isinstance(link.func, cst.Attribute)
        yield from (name for arg in link.args for name in reads(arg))
        link = link.func.value


def _next_link(tree: Tree, call: cst.Call) -> cst.Call | None:
    method = tree.parent(call)
    if not isinstance(method, cst.Attribute) or method.attr.value.removesuffix("_") not in METHODS:
        return None
    above = tree.parent(method)
    linked = method.attr.value.endswith("_") and isinstance(above, cst.Call) and above.func is method
    return above if linked and isinstance(above, cst.Call) else None


def _in_place_name(call: cst.Call) -> str | None:
    name = call.func.attr.value if isinstance(call.func, cst.Attribute) else ""
    return name if name.endswith("_") and not name.endswith("__") else None


def _renamed(link: cst.BaseExpression, tensor: cst.BaseExpression) -> cst.BaseExpression | None:
    if link is tensor:
        return tensor
    assert isinstance(link, cst.Call) and isinstance(link.func, cst.Attribute)
    owner = _renamed(link.func.value, tensor)
    name = link.func.attr.value[:-1]
    if owner is None or name not in METHODS:
        return None
    return link.with_changes(func=link.func.with_changes(value=owner, attr=cst.Name(name)))
