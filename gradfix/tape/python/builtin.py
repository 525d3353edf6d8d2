"""Python's own functions."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Hashable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeGuard

from gradfix.defects.reasons import What
from gradfix.tape.domain.definitions import Instance
from gradfix.tape.domain.graph import Number, Tensor
from gradfix.tape.domain.narrowing import there
from gradfix.tape.domain.torch_values import Layer, Weights
from gradfix.tape.domain.values import (
    FALSE,
    NONE,
    TRUE,
    Const,
    External,
    Map,
    Range,
    Seq,
    Unknown,
    counted,
    unknown_of,
)
from gradfix.tape.domain.why import BEGUN, RANGE, Why, fact, thing
from gradfix.tape.effects import table
from gradfix.tape.interpreter.conditions import truthy
from gradfix.tape.interpreter.imports import from_star
from gradfix.tape.interpreter.occasions import PutSomewhere
from gradfix.tape.python.arithmetic import operate
from gradfix.tape.python.iterating import iterating
from gradfix.tape.python.type_tests import is_instance, type_test
from gradfix.tape.strangers.handed_out import escape, let_gradients_go
from gradfix.tape.strangers.kept import may_set_any
from gradfix.tape.torch.conversions import number
from gradfix.tape.torch.elements import elements, gone_through, length, part, some_of
from gradfix.tape.torch.module_methods import register
from gradfix.tape.torch.tensors import method_call

if TYPE_CHECKING:
    from gradfix.tape.domain.trail import Trail
    from gradfix.tape.domain.values import (
        Args,
        Kwargs,
        Value,
    )
    from gradfix.tape.interpreter.interpreter import Interpreter
    from gradfix.tape.interpreter.names import Names

BUILTINS = frozenset(dir(builtins))
QUIET = frozenset({
    "print", "str", "repr", "format", "hash", "id", "callable", "open", "input", "ord", "chr", "dir", "vars",
    "round", "divmod", "bytes", "bytearray", "hex", "issubclass", "breakpoint",
})  # fmt: skip
OF_TENSORS = frozenset({"data", "grad", "grad_fn", "requires_grad", "shape", "dtype", "device", "backward"})
"""What each tensor has besides its methods."""
NAMING = frozenset({"exec", "eval", "locals"})
"""What gets at all that has a name in the running function."""


def builtin(names: Names, name: str) -> Value:
    """A name that no scope binds."""
    if names.program.stars:
        starred = from_star(names.program, name)
        if starred is not None:
            return starred
    if name in BUILTINS:
        return External(f"builtins.{name}")
    if name == "__name__":
        return Const("__main__" if names.here.at_home else names.here.file)
    value = names.unbound.get(name)
    if value is None:
        value = names.unbound[name] = Unknown(thing(f"`{name}` isn't bound here"))
        names.reports.findings.texts.setdefault(("true", id(value)), name)
    return value


def call_builtin(vm: Interpreter, name: str, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    """Call one of Python's own functions."""
    if name in ("list", "tuple", "set", "sorted", "reversed", "frozenset"):
        return _collect(vm, name, args, kwargs, node)
    if name == "dict" and args and isinstance(args[0], Weights):
        return unknown_of(fact("parameters by name"), args[0])
    if name == "dict":
        items: dict[Hashable, Value] = _entries(args[0]) if args else {}
        items.update(kwargs)
        return Map(items, open=bool(args) and not _whole(args[0]))
    if name in ("float", "int", "bool", "complex", "abs", "sum", "max", "min"):
        return _numeric(vm, name, args, kwargs, node)
    if name in ("range", "len"):
        if vm.machine.tested.grown and args and id(args[0]) in vm.machine.tested.grown:
            vm.machine.tested.counted.add(id(node))
        return _counting(name, args)
    if name in ("enumerate", "zip", "map", "filter", "iter", "next"):
        return iterating(vm, name, args, node)
    if name == "delattr" and len(args) == 2 and isinstance(args[0], (Instance, Layer)):
        _without(vm.trail, args[0], args[1])
        return NONE
    if name in ("isinstance", "hasattr", "getattr", "setattr"):
        return _introspecting(vm, name, args, node)
    if name in ("any", "all"):
        return Unknown(fact("a truth"))
    if name in QUIET:
        vm.timeline.note("uses", (*args, *kwargs.values()), vm.here.at(node), vm.here.path)
        return _quiet(name, args)
    if name == "object":
        return Unknown(fact("an object"))
    if name == "type" and args:
        if isinstance(args[0], Tensor) and args[0].leaf is False:
            return External("torch.Tensor")
        return args[0].cls if isinstance(args[0], Instance) else Unknown(fact("a type"))
    reached = [*args, *(vm.names.scope.names.values() if name in NAMING else ())]
    vm.timeline.note("anything", (External(f"builtins.{name}"), *reached), vm.here.at(node), vm.here.path)
    for one in reached:
        escape(vm.strangers, one)
    return unknown_of(fact(f"{name}()"), *args)


def _without(trail: Trail, owner: Instance | Layer, name: Value) -> None:
    """An attribute is taken away; where it isn't known which, it may be any of the object's own."""
    for each in [name.value] if isinstance(name, Const) else [*owner.attrs]:
        if each in owner.attrs:
            trail.drop(owner, owner.attrs, each)


def _entries(given: Value) -> dict[Hashable, Value]:
    """What a dict is made of: pairs whose keys aren't known are entries all the same."""
    if isinstance(given, Map):
        return dict(given.items)
    pairs = [one.items for one in (given.items if isinstance(given, Seq) else ()) if _is_pair(one)]
    return {_key(pair[0], i): pair[1] for i, pair in enumerate(pairs)}


def _is_pair(value: Value) -> TypeGuard[Seq]:
    return isinstance(value, Seq) and len(value.items) == 2 and not value.open


def _key(value: Value, number: int) -> Hashable:
    known = value.value if isinstance(value, Const) else None
    return known if isinstance(known, (str, int)) else ("unknown", number)


def _whole(given: Value) -> bool:
    """Whether all entries are known that a dict is made of."""
    if isinstance(given, Map):
        return not given.open
    return (
        isinstance(given, Seq)
        and not given.open
        and all(_is_pair(one) and isinstance(_key(one.items[0], 0), (str, int)) for one in given.items)
    )


def _quiet(name: str, args: Args) -> Value:
    if name in ("str",) and args and isinstance(args[0], Const):
        return Const(str(args[0].value))
    if name == "print":
        return NONE
    found = unknown_of(fact(f"{name}()"), *(args if name == "vars" else ()))
    found.origin = f"builtins.{name}" if name == "open" else ""
    return found


def _collect(vm: Interpreter, name: str, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    kind = {"sorted": "list", "reversed": "generator", "frozenset": "set"}.get(name, name)
    if not args:
        return Seq(kind, [], place=node)
    if isinstance(args[0], Weights):
        return (
            args[0]
            if args[0].named
            else Seq(kind, list(args[0].leaves), open=not args[0].complete, place=node)
        )
    if name == "reversed" and isinstance(args[0], Range):
        return Range(args[0].range[::-1])
    if isinstance(args[0], Range) and len(args[0].range) <= 64 and name != "sorted":
        return Seq(kind, [Const(i) for i in args[0].range])
    items, known = elements(vm, args[0], node)
    gone_through(vm.trail, args[0])
    some = some_of(args[0])
    if items is None or (name == "reversed" and not known):
        return Seq(kind, [part(args[0])], open=True, some=some)
    if name == "reversed":
        items = list(reversed(items))
    plain = [item for item in items if isinstance(item, Const)]
    if name == "sorted" and len(plain) == len(items):
        ordered = _sorted(plain, kwargs) if known else None
        return Seq(kind, [part(args[0])], open=True) if ordered is None else Seq(kind, ordered, place=node)
    return Seq(kind, list(items), open=not known or name == "sorted", place=node, some=some)


def _plain(item: Const) -> Any:
    return item.value


def _sorted(items: list[Const], kwargs: Kwargs) -> list[Value] | None:
    """Plain values in order, where it is known which order that is."""
    reverse = kwargs.get("reverse", Const(False))
    if not isinstance(reverse, Const) or not kwargs.keys() <= {"reverse"}:
        return None
    try:
        return [*sorted(items, key=_plain, reverse=bool(reverse.value))]
    except TypeError:
        return None


def _numeric(vm: Interpreter, name: str, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    if not args:
        return Const({"float": 0.0, "int": 0, "bool": False}.get(name, 0))
    first = args[0]
    if name in ("float", "int", "bool", "complex"):
        if isinstance(first, (Tensor, Number)):
            return number(vm.machine, first, "float" if name != "bool" else "bool", node)
        if isinstance(first, Const) and not isinstance(first.value, str):
            try:
                return Const(getattr(builtins, name)(first.value))
            except (TypeError, ValueError):
                return Unknown(fact("a number"))
        if name == "bool" and (known := truthy(first)) is not None:
            return TRUE if known else FALSE
        return Unknown(fact("a number"), tuple(args))
    if name == "abs" and isinstance(first, Tensor):
        return method_call(vm, first, "abs", [], {}, node)
    if name == "sum":
        return _sum(vm, args, node)
    if all(isinstance(arg, Const) for arg in args) and not isinstance(first.value, str):  # type: ignore[attr-defined]
        try:
            return Const(getattr(builtins, name)(*(arg.value for arg in args if isinstance(arg, Const))))
        except TypeError:
            return Unknown(fact("a number"))
    return unknown_of(fact(f"{name}()"), *args)


def _sum(vm: Interpreter, args: Args, node: ast.Call) -> Value:
    items, known = elements(vm, args[0], node)
    gone_through(vm.trail, args[0])
    total: Value = args[1] if len(args) > 1 else Const(0)
    for item in items or ():
        total = vm.forks.each(total, partial(_plus, vm, node, item))
    if items is None or (not known and vm.graph.requires(total) is False):
        result = unknown_of(Why(What.COMPUTED, "a sum"), total, *args)
        result.part = True
        return result
    return total


def _plus(vm: Interpreter, node: ast.Call, item: Value, total: Value) -> Value:
    return vm.forks.each(item, lambda one: operate(vm, ast.Add, total, one, node))


def _counting(name: str, args: Args) -> Value:
    if name == "range":
        bounds = [arg.value for arg in args if isinstance(arg, Const) and isinstance(arg.value, int)]
        if bounds and len(bounds) == len(args) and (len(bounds) < 3 or bounds[2] != 0):
            return Range(range(*bounds))
        start = args[0] if len(args) == 2 else Const(0)
        begins = len(args) < 3 and isinstance(start, Const) and type(start.value) is int
        found = Unknown(BEGUN if begins else RANGE, (start,) if begins else (), requires=False)
        found.offset = counted(args[-1]) if args and begins else None
        return found
    if args and isinstance(args[0], (Seq, Map)) and not args[0].open:
        items = args[0].items if isinstance(args[0], Seq) else args[0].items.values()
        return Const(len(items)) if all(map(there, items)) else Unknown(fact("a length"))
    if args and isinstance(args[0], Layer) and args[0].items is not None and not args[0].open:
        return Const(len(args[0].items))
    if args and isinstance(args[0], Range):
        return Const(len(args[0].range))
    return length(args[0]) if args else Unknown(fact("a length"))


def _introspecting(vm: Interpreter, name: str, args: Args, node: ast.Call) -> Value:
    if name == "isinstance" and len(args) > 1:
        known = is_instance(args[0], args[1])
        return type_test(vm.notes, args[0], args[1]) if known is None else (TRUE if known else FALSE)
    key = args[1].value if len(args) > 1 and isinstance(args[1], Const) else None
    if not isinstance(key, str):
        if name == "setattr" and len(args) > 2:
            escape(vm.strangers, args[0])
            vm.tell(PutSomewhere(args[0], args[2], node))
            may_set_any(vm.trail, args[0])
            vm.forks.on_each(args[0], lambda one: register(vm.trail, one, args[1], args[2]))
        if name == "getattr":
            let_gradients_go(vm.machine, args[:1])  # it may be the gradient that is got, or a backward
            if isinstance(args[0], Unknown):
                for one in vm.machine.optimizers.known:
                    vm.machine.gradients.perhaps_cleared(one.leaves)
        found = unknown_of(fact(f"{name}()"), *args)
        if name == "getattr" and isinstance(args[0], Unknown):
            vm.trail.learn_part(args[0], "children", f"?{id(node)}", found)
            vm.reports.findings.terms.answered(found, name, *args[:2])
        return found
    if name == "setattr" and len(args) > 2:
        vm.forks.on_each(args[0], lambda one: vm.set_attribute(one, key, args[2], node))
        return NONE
    if name == "hasattr":
        if isinstance(args[0], Instance) and (key in args[0].attrs or args[0].cls.lookup(key) is not None):
            return TRUE
        if isinstance(args[0], Tensor) and (table.method(key) or key in OF_TENSORS):
            return TRUE
        found = Unknown(fact("whether it has an attribute"))
        vm.reports.findings.terms.answered(found, "hasattr", *args)
        return found
    if isinstance(args[0], External):
        return vm.attribute(args[0], key, node)
    return vm.forks.each(args[0], lambda one: vm.attribute(one, key, node))
