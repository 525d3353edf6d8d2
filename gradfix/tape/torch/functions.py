"""Functions of torch by the table: `torch.name(...)` and `F.name(...)`."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from gradfix.defects.reasons import What
from gradfix.tape.domain.alternatives import alternatives
from gradfix.tape.domain.graph import Tensor
from gradfix.tape.domain.values import FALSE, Const, External, Seq, Unknown, unknown_of
from gradfix.tape.domain.why import Why
from gradfix.tape.effects import table
from gradfix.tape.effects.operations import told
from gradfix.tape.effects.overloads import choose
from gradfix.tape.interpreter.conditions import truth
from gradfix.tape.interpreter.granted import is_granted, leaning_on_it
from gradfix.tape.torch.tensors import in_graph

if TYPE_CHECKING:
    from gradfix.tape.domain.effect import Effect
    from gradfix.tape.domain.values import Args, Kwargs, Value
    from gradfix.tape.interpreter.interpreter import Interpreter

DROPS = told("drops")
"""Operations that leave out some elements, and the mode that they are in unless told."""
MODULE_TWINS = {"logsigmoid": "LogSigmoid"}
"""Functionals that are compiled and can't be recorded by name; their module can."""


def torch_function(vm: Interpreter, name: str, args: Args, kwargs: Kwargs, node: ast.AST) -> Value:
    """`torch.name(...)` by the table."""
    args = [in_graph(vm.graph, arg) for arg in args]
    if name == "split" and len(args) > 1 and isinstance(args[1], Seq):
        name = "split_with_sizes"
    known = table.function(name)
    picked = choose(known, args, kwargs) if known else None
    if picked is None:
        if not known and isinstance(node, ast.Call):
            return vm.call_unknown(External(f"torch.{name}"), args, kwargs, node)
        result = unknown_of(Why(What.OPERATION, f"torch.{name} with these arguments"), *args)
        result.part = True
        return result
    effect, bound = picked
    if not any(isinstance(value, (Tensor, Seq, Unknown)) for value in bound.values()):
        return Unknown(Why(What.OPERATION, f"torch.{name}"))
    return vm.forks.operate(name, effect, bound, vm.here.at(node), "out" if "out" in kwargs else "method")


def functional(vm: Interpreter, name: str, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    """`F.name(...)`; with `inplace=True` it writes its input."""
    known = table.functional(name)
    twin = table.module(MODULE_TWINS.get(name, ""))
    if twin is not None:
        known = (twin.train,)
    if not known:
        return torch_function(vm, name, args, kwargs, node)
    picked = choose(known, args, kwargs)
    if picked is None:
        return unknown_of(Why(What.OPERATION, f"F.{name} with these arguments"), *args)
    effect, bound = picked
    flag = bound.get("inplace", FALSE)
    if name in DROPS and isinstance(p := bound.get("p"), Const) and p.value == 0:
        return _out_of_place(vm, name, effect, bound, node)
    inplace = table.functional_inplace(name)
    on, yes, no = truth(vm.notes, flag, node) if inplace else (False, frozenset(), frozenset())
    if on is False:
        return _out_of_place(vm, name, effect, bound, node)
    chosen = choose(inplace, args, kwargs)
    if chosen is None:
        return unknown_of(Why(What.OPERATION, f"F.{name} in place"), *args)
    if on is True:
        return vm.forks.operate(name, chosen[0], chosen[1], vm.here.at(node), "keyword")
    results: list[tuple[frozenset, Value]] = []  # type: ignore[type-arg]
    vm.forks.fork(
        [
            (
                yes,
                lambda: results.append(
                    (yes, vm.forks.operate(name, chosen[0], chosen[1], vm.here.at(node), "keyword"))
                ),
            ),
            (no, lambda: results.append((no, _out_of_place(vm, name, effect, bound, node)))),
        ]
    )
    return alternatives(results)


def _out_of_place(
    vm: Interpreter, name: str, effect: Effect, bound: dict[str, Value], node: ast.Call
) -> Value:
    if name in DROPS and isinstance(p := bound.get("p", Const(0.5)), Const):
        if p.value == 0:
            return next(iter(bound.values()))
        on = bound.get("training", Const(DROPS[name] == "train"))
        if effect.returns_self == "maybe" and isinstance(on, Const) and on.value:
            effect = replace(effect, returns_self="", view="")
        if is_granted(vm.notes, on):
            return leaning_on_it(
                vm.notes, lambda: vm.forks.operate(name, _allocated(effect, bound), bound, vm.here.at(node))
            )
    return vm.forks.operate(name, _allocated(effect, bound), bound, vm.here.at(node))


def _allocated(effect: Effect, bound: Mapping[str, Value]) -> Effect:
    """The effect where nothing is given to write into."""
    if not effect.writes or isinstance(bound.get("out"), Tensor):
        return effect
    return replace(effect, writes=effect.args[:1] if effect.returns_self == "always" else ())
