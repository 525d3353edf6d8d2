"""Functions that run in the calls of a module: before its forward, and after it with what came out."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from gradfix.defects.reasons import What
from gradfix.tape.domain.definitions import Bound, Function, Hook, Instance, Partial
from gradfix.tape.domain.graph import Tensor
from gradfix.tape.domain.torch_values import Layer, Opaque
from gradfix.tape.domain.values import FALSE, NONE, Alt, Const, Map, Seq, Unknown, stamp, unknown_of
from gradfix.tape.domain.why import Why, fact
from gradfix.tape.interpreter.inside import all_in
from gradfix.tape.strangers.handed_out import hand_out
from gradfix.tape.torch.modules import children

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gradfix.tape.domain.values import Args, Kwargs, Value
    from gradfix.tape.interpreter.interpreter import Interpreter

HOOKING = frozenset({"register_forward_hook", "register_forward_pre_hook"})
NO_MATTER = frozenset({"prepend", "always_call"})
"""Options that change nothing in what a hook is given."""
MANY = 200
"""How many parts of a module are looked through for another one."""
REPLACED = Why(What.COMPUTED, "what a hook may have put in the place of what came out")
THERE = (Tensor, Seq, Map, Instance)
"""What a hook returns that is surely not None."""


def hook(vm: Interpreter, module: Value, name: str, args: Args, kwargs: Kwargs) -> Value:
    """`module.register_forward_hook(function)`: the handle by which it can be taken away."""
    handle = Unknown(fact("the handle of a hook"))
    first = kwargs.get("prepend", FALSE)
    known = isinstance(module, (Layer, Instance)) and kwargs.keys() <= NO_MATTER and isinstance(first, Const)
    made = Hook(args[0], module, name == "register_forward_pre_hook", vm.here.path, handle, known, [])
    mark = id(args[0]), id(module)
    if isinstance(first, Const) and first.value:
        others = {key: one for key, one in vm.strangers.hooks.items() if key != mark}
        vm.strangers.hooks.clear()
        vm.strangers.hooks.update({mark: made, **others})
    else:
        vm.strangers.hooks[mark] = made
    if not known:
        may_run(vm, made)
    return handle


def unhook(vm: Interpreter) -> None:
    """`handle.remove()`: nobody knows which of them run from here on."""
    for key, one in vm.strangers.hooks.items():
        vm.strangers.hooks[key] = one._replace(known=False)


def with_hooks(
    vm: Interpreter, module: Value, args: Args, node: ast.Call, forward: Callable[[Args], Value]
) -> Value:
    """The call of a module, with what its hooks do."""
    if not vm.strangers.hooks:
        return forward(args)
    due = [one for one in vm.strangers.hooks.values() if _runs(vm, one, module)]
    for one in due:
        if one.before:
            args = _handed_on(_run(vm, one, [module, Seq("tuple", [*args])], node), args)
    began = stamp()
    result = forward(args)
    for one in due:
        if not one.before:
            put = _run(vm, one, [module, Seq("tuple", [*args]), result], node)
            if put is not NONE:
                result = put if isinstance(put, THERE) else unknown_of(REPLACED, put, result)
    others = [one for one in vm.strangers.hooks.values() if all(one is not each for each in due)]
    for one in [one for one in others if not _is_told(one, module, began)]:
        may_run(vm, one)
        if (one.module is module or not one.known) and _may_return(one.function):
            result = unknown_of(REPLACED, result)
    return result


def _runs(vm: Interpreter, one: Hook, module: Value) -> bool:
    """Whether a hook surely runs in a call of a module."""
    running = any(code is getattr(one.function, "code", None) for code in vm.running.stack)
    followed = isinstance(one.function, (Function, Bound, Partial))
    return one.known and followed and one.module is module and one.path <= vm.here.path and not running


def _is_told(one: Hook, module: Value, began: int) -> bool:
    """Whether it is known if a hook has run in the call of a module that isn't its own."""
    if not one.known or one.module is module or isinstance(module, Opaque):
        return False
    return any(run > began for run in one.runs) or not _is_within(one.module, module)


def _is_within(part: Value, whole: Value) -> bool:
    stack, seen = [whole], set[int]()
    while stack and len(seen) < MANY:
        value = stack.pop()
        if value is part or type(value) is Unknown:
            return True
        if id(value) not in seen:
            seen.add(id(value))
            stack.extend(child for _, child in children(value))
    return bool(stack)


def _run(vm: Interpreter, one: Hook, given: list[Value], node: ast.Call) -> Value:
    one.runs.append(stamp())
    return vm.call(one.function, given, {}, node)


def _handed_on(given: Value, args: Args) -> Args:
    """What a module gets after a hook that may have changed it."""
    if given is NONE:
        return args
    if isinstance(given, Seq) and given.kind == "tuple" and not given.open:
        return given.items
    return [given] if isinstance(given, Tensor) else [unknown_of(REPLACED, given, *args)]


def may_run(vm: Interpreter, one: Hook) -> None:
    """A hook may have done what it can to all that it has."""
    hand_out(vm.strangers, one.function)


def _may_return(function: Value) -> bool:
    """Whether a hook returns something, as far as that is written."""
    inner = function.function if isinstance(function, (Bound, Partial)) else function
    if isinstance(inner, Alt):
        return any(_may_return(option) for _, option in inner.options)
    return not isinstance(inner, Function) or any(_returns(inner.code.node))


def _returns(node: ast.AST) -> Iterator[bool]:
    """Where something is returned; what a list answers that gets one more element is nothing."""
    if isinstance(node, ast.Lambda):
        called = node.body.func if isinstance(node.body, ast.Call) else None
        yield not (isinstance(called, ast.Attribute) and called.attr in ("append", "update", "extend"))
    for one in all_in(node):
        if isinstance(one, ast.Return) and one.value is not None:
            yield not (isinstance(one.value, ast.Constant) and one.value.value is None)
