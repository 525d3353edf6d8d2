"""Arguments of calls: evaluated, split where they vary, bound to parameters."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gradfix.tape.domain.alternatives import one_of
from gradfix.tape.domain.narrowing import there, varying
from gradfix.tape.domain.values import Alt, Map, Seq
from gradfix.tape.torch.elements import elements, part

if TYPE_CHECKING:
    from gradfix.tape.domain.values import Args, Value
    from gradfix.tape.interpreter.forks import Forks
    from gradfix.tape.interpreter.interpreter import Interpreter

SPLITS = 16
"""How many times a call is made for alternatives of its arguments that vary by themselves."""


def arguments(vm: Interpreter, node: ast.Call) -> tuple[list[Value], dict[str, Value]]:
    """The evaluated arguments; what a star may add is unknown."""
    args: list[Value] = []
    for arg in node.args:
        if isinstance(arg, ast.Starred):
            value = vm.eval(arg.value)
            items, known = elements(vm, value, arg)
            args.extend(items if items is not None else [part(value)])
            if not known:
                args.append(Seq("star", [], open=True))
        else:
            args.append(vm.eval(arg))
    kwargs: dict[str, Value] = {}
    if not node.keywords:
        return args, kwargs
    for keyword in node.keywords:
        value = vm.eval(keyword.value)
        if keyword.arg is not None:
            kwargs[keyword.arg] = value
        elif isinstance(value, Map):
            kwargs.update({key: item for key, item in value.items.items() if isinstance(key, str)})
            if value.open:
                kwargs["**"] = value
        else:
            kwargs["**"] = value
    return args, kwargs


def each_argument(forks: Forks, args: Args, run: Callable[[Args], Value]) -> Value:
    """Split on the first argument that has alternatives."""
    first = 0
    for arg in args:
        if type(arg) is Alt:
            break
        first += 1
    else:
        return run(args)
    if len(args) > 1 or not there(args[first]):
        args = _bounded(args)
    if type(args[first]) is not Alt:
        return each_argument(forks, args, run)
    return forks.each(
        args[first], lambda one: each_argument(forks, [*args[:first], one, *args[first + 1 :]], run)
    )


def unstarred(args: Args) -> Args:
    """Arguments without the mark of a star that may add more."""
    for arg in args:
        if type(arg) is Seq and arg.kind == "star":
            return [one for one in args if not (isinstance(one, Seq) and one.kind == "star")]
    return args


def _bounded(args: Args) -> list[Value]:
    """Arguments of which few vary by themselves: more would multiply."""
    bounded: list[Value] = []
    seen: set[Any] = set()
    times = 1
    for arg in args:
        if not there(arg):
            arg = one_of(arg)
        elif isinstance(arg, Alt):
            keys = varying(arg)
            if keys not in seen:
                if times * len(arg.options) > SPLITS:
                    arg = one_of(arg)
                else:
                    times *= len(arg.options)
                    seen.add(keys)
        bounded.append(arg)
    return bounded
