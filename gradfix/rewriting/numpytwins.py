"""Which functions and methods of numpy and math torch has too, and with which arguments."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from gradfix.rewriting.names import walk
from gradfix.rewriting.seats import dotted
from gradfix.tape.effects.operations import having, told, where
from gradfix.tree import Tree

ARRAYS = {"numpy", "math"}
TWINS = {alias: name for name, aliases in told("numpy").items() for alias in aliases.split(",")}
SAME_FOR_TENSORS = having("array")
REDUCTIONS = where("shape", "reduced") & TWINS.keys()
ARGUMENTS = {alias: int(count) for alias, name in TWINS.items() if (count := told("numpy-takes").get(name))}
"""How many arguments a function takes by position; one, where nothing is said."""
AXES = {"axis", "dim"}
KEEPS = {"keepdims", "keepdim"}
NAMED = {name: set(filter(None, names.split(","))) for name, names in told("array-names").items()}
"""What a method of an array may be given by name, where numpy has names that torch does not know."""


class NoTwinError(Exception):
    """Between the cut and the loss stands something that tensors have no exact twin of."""


def function_takes(name: str, args: Sequence[cst.Arg]) -> bool:
    """Whether torch's twin of a function of numpy or math understands a call's arguments alike."""
    if not args or args[0].keyword is not None or any(arg.star for arg in args):
        return False
    if name in REDUCTIONS:
        return _reduces(name, args[1:])
    given, named = _split(args)
    allowed: set[str] = {"linalg.norm": AXES | KEEPS | {"ord"}, "squeeze": AXES}.get(name, set())
    return len(given) <= ARGUMENTS.get(name, 1) and set(named) <= allowed


def method_takes(name: str, args: Sequence[cst.Arg], array: bool) -> bool:
    """Whether a tensor's method understands the arguments of a call on what may be an array."""
    if any(arg.star for arg in args):
        return not array
    given, named = _split(args)
    if name in REDUCTIONS:
        return _reduces(name, args)
    if not array:
        return True
    if name in {"max", "min"}:  # along an axis a tensor's give the places beside the values
        return not args or "dim" in named
    if any(isinstance(value, cst.SimpleString) for value in given) and name != "to":
        return False  # an order of numpy's
    return name not in NAMED or set(named) <= NAMED[name]


def _reduces(name: str, args: Sequence[cst.Arg]) -> bool:
    """Whether torch takes the arguments of a reduction behind its tensor."""
    given, named = _split(args)
    axis = given[0] if given else next((named[key] for key in AXES if key in named), None)
    second = len(given) == 2 and dotted(given[1]) in {"True", "False"}
    keeps = second or bool(KEEPS & set(named))
    if len(given) > 1 + second or not set(named) <= AXES | KEEPS | {"dtype"}:
        return False
    if not dotted(named.get("dtype", cst.Name("torch"))).startswith(("torch", "th.")):
        return False
    if (
        name == "prod"
        and axis is not None
        and (isinstance(axis, (cst.Tuple, cst.List)) or dotted(axis) == "None")
    ):
        return False
    return axis is not None or not keeps


def _split(args: Sequence[cst.Arg]) -> tuple[list[cst.BaseExpression], dict[str, cst.BaseExpression]]:
    """The arguments by position, and those by name."""
    given = [arg.value for arg in args if arg.keyword is None]
    return given, {arg.keyword.value: arg.value for arg in args if arg.keyword is not None}


def array_function(tree: Tree, func: cst.BaseExpression) -> tuple[str, str]:
    """The module and the name of a function of numpy or math, else two empty texts."""
    root, _, name = dotted(func).partition(".")
    room = imported(tree).get(root, "")
    if room in ARRAYS and name:
        return room, name
    package, _, inner = room.partition(".")
    return (package, inner) if package in ARRAYS and inner and not name else ("", "")


def imported(tree: Tree) -> dict[str, str]:
    """The names that a file's imports bind, with what they stand for."""
    bound: dict[str, str] = {}
    for node in walk(tree.module):
        if isinstance(node, cst.Import):
            for alias in node.names:
                bound[alias.evaluated_alias or alias.evaluated_name] = alias.evaluated_name
        elif isinstance(node, cst.ImportFrom) and not isinstance(node.names, cst.ImportStar):
            source = dotted(node.module) if node.module is not None else ""
            for alias in node.names:
                bound[alias.evaluated_alias or alias.evaluated_name] = f"{source}.{alias.evaluated_name}"
    return bound
