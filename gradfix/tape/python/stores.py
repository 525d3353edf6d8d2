"""Statements that bind: assignments, augmented assignments, deletions, imports, definitions."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gradfix.tape.domain.alternatives import alternatives, multiply, one_of
from gradfix.tape.domain.definitions import Instance
from gradfix.tape.domain.graph import Tensor
from gradfix.tape.domain.torch_values import Layer, Opaque, Optimizer
from gradfix.tape.domain.values import (
    NONE,
    UNDEFINED,
    Alt,
    Const,
    External,
    Map,
    Never,
    Seq,
    Slice,
    Undefined,
    Unknown,
)
from gradfix.tape.interpreter.imports import imported, module_value, star_import
from gradfix.tape.interpreter.occasions import Added, AttributeNamed, Compared, Dropped, ItemAdded, NameBound
from gradfix.tape.machine.deeds import done
from gradfix.tape.python.arithmetic import in_place_operator
from gradfix.tape.python.containers import may_lose
from gradfix.tape.python.control import refused
from gradfix.tape.python.subscripts import augment_tensor_item, load_item, store_item
from gradfix.tape.strangers.handed_out import escape
from gradfix.tape.torch.elements import elements, part

if TYPE_CHECKING:
    from gradfix.tape.domain.trail import Trail
    from gradfix.tape.domain.values import (
        Value,
    )
    from gradfix.tape.interpreter.interpreter import Interpreter
    from gradfix.tape.machine.machine import Machine


def expression_statement(vm: Interpreter, node: ast.Expr) -> str | None:
    value: Value | None = None
    if not isinstance(node.value, ast.Constant):
        with vm.running.within(statement=node.value):
            value = vm.eval(node.value)
        if isinstance(node.value, ast.Compare):
            _compared(vm, node.value)
        if isinstance(value, Tensor) and value.node.place is node.value and value.node.parents[:1]:
            vm.tell(Dropped(value, node.value))
    if _ends_the_program(vm, node.value):
        refused(vm, vm.here.path)
        return "raise"
    return "raise" if type(value) is Never else None


ENDS = frozenset({
    "builtins.exit", "builtins.quit", "sys.exit", "os._exit", "os.abort", "os.execl", "os.execlp", "os.execv",
    "os.execve", "os.execvp", "os.execvpe", "pytest.exit", "pytest.fail", "pytest.skip", "pytest.xfail",
})  # fmt: skip
"""What never returns."""


def _ends_the_program(vm: Interpreter, node: ast.expr) -> bool:
    """Whether this is a call of what ends the program, under whatever name."""
    func = node.func if isinstance(node, ast.Call) else None
    if isinstance(func, ast.Attribute) and func.attr in ("error", "exit") and _is_dotted(func.value):
        parser = vm.eval(func.value)
        if isinstance(parser, Unknown) and parser.origin == "argparse.ArgumentParser":
            return True
    owner = func.value if isinstance(func, ast.Attribute) else func
    named = vm.eval(owner) if isinstance(owner, ast.Name) else None
    if not isinstance(named, External):
        return False
    return (f"{named.path}.{func.attr}" if isinstance(func, ast.Attribute) else named.path) in ENDS


def _is_dotted(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and _is_dotted(node.value))


def _compared(vm: Interpreter, node: ast.Compare) -> None:
    """`p.requires_grad == False` in a function or a block: at the top of a file, a notebook may show it."""
    match node:
        case ast.Compare(
            ast.Attribute(ast.Name() as owner, name), [ast.Eq()], [ast.Constant() | ast.Name() as flag]
        ):
            value = vm.eval(flag)
            if node.col_offset and isinstance(value, Const) and isinstance(value.value, bool):
                vm.tell(Compared(vm.eval(owner), name, value, node))


def assign_statement(vm: Interpreter, node: ast.Assign) -> str | None:
    value = (
        vm.eval_kept(node.value)
        if isinstance(node.targets[0], (ast.Name, ast.Attribute))
        else vm.eval(node.value)
    )
    for target in node.targets:
        assign(vm, target, value, node)
    return None


def annotated_statement(vm: Interpreter, node: ast.AnnAssign) -> str | None:
    if node.value is not None:
        assign(vm, node.target, vm.eval(node.value), node)
    return None


TELLING = frozenset({Optimizer, Alt, Tensor, Instance, Layer, Opaque})
"""What makes a difference when a name is bound to it."""


def _named(machine: Machine, name: str, value: Value) -> None:
    """Let an optimizer, a tensor or a flag be called by the name that it is first bound to."""
    if isinstance(value, Optimizer) and not value.name:
        machine.trail.set(value, "name", name)
    options = value.options if isinstance(value, Alt) else ()
    for tensor in [value, *(option for _, option in options)]:
        if isinstance(tensor, Tensor) and not tensor.name:
            tensor.name = name
    for guard, option in options:
        if isinstance(option, Const) and option.value is True and len(guard) == 1:
            ((key, holds),) = guard
            if holds:
                machine.reports.findings.texts[key] = name


def assign(vm: Interpreter, target: ast.expr, value: Value, node: ast.AST) -> None:
    """Bind a target to a value."""
    if isinstance(target, ast.Name):
        if type(value) in TELLING:
            _named(vm.machine, target.id, value)
            vm.tell(NameBound(target.id, value, node))
        vm.names.store(target.id, value)
    elif isinstance(target, ast.Attribute):
        vm.tell(AttributeNamed(target, node))
        owner = vm.eval(target.value)
        vm.forks.on_each(owner, lambda one: vm.set_attribute(one, target.attr, value, node))
    elif isinstance(target, ast.Subscript):
        owner = vm.eval(target.value)
        key = vm.eval(target.slice)
        done(vm.reports, node, owner)
        vm.forks.on_each(owner, lambda one: store_item(vm, one, key, value, node, "setitem"))
    elif isinstance(target, (ast.Tuple, ast.List)):
        _unpack(vm, target.elts, value, node)
    elif isinstance(target, ast.Starred):
        assign(vm, target.value, Seq("list", [value], open=True), node)


def _unpack(vm: Interpreter, targets: Sequence[ast.expr], value: Value, node: ast.AST) -> None:
    star = next((i for i, target in enumerate(targets) if isinstance(target, ast.Starred)), None)
    pieces = _each_unpacked(vm, value, len(targets), star, node)
    for target, piece in zip(targets, pieces, strict=False):
        assign(vm, target.value if isinstance(target, ast.Starred) else target, piece, node)


def _each_unpacked(vm: Interpreter, value: Value, count: int, star: int | None, node: ast.AST) -> list[Value]:
    """The same for each alternative, on its own path."""
    if not isinstance(value, Alt):
        return unpacked(vm, value, count, star, node)
    options = [(guard, unpacked(vm, one, count, star, node)) for guard, one in value.options
               if not isinstance(one, Undefined)]  # fmt: skip
    if not options:
        return unpacked(vm, UNDEFINED, count, star, node)
    return [alternatives([(guard, pieces[i]) for guard, pieces in options]) for i in range(count)]


def unpacked(vm: Interpreter, value: Value, count: int, star: int | None, node: ast.AST) -> list[Value]:
    """A value taken apart into so many pieces."""
    items, known = elements(vm, value, node)
    if items is None:
        pieces = [part(value) for _ in range(count)]
        if star is not None:
            pieces[star] = Seq("list", [part(value)], open=True)
        return pieces
    if star is not None:
        after = count - star - 1
        if len(items) < count - 1:
            items = items + [part(value)] * (count - 1 - len(items))
        middle = items[star : len(items) - after]
        return [*items[:star], Seq("list", middle, open=not known), *items[len(items) - after :]]
    while len(items) < count:
        items = [*items, _another(items[-1]) if items and not known else part(value)]
    return items[:count]


def _another(item: Value) -> Value:
    """One more output of an operation that returns any number of them."""
    if not isinstance(item, Tensor):
        return item
    twin = Tensor(item.node, item.storage, item.requires, item.leaf)
    for name in (
        "base",
        "dtype",
        "generation",
        "layout",
        "lean",
        "place",
        "seen",
        "shape",
        "view",
        "data_of",
        "counter",
    ):
        setattr(twin, name, getattr(item, name))
    return twin


def augmented_statement(vm: Interpreter, node: ast.AugAssign) -> str | None:
    target = node.target
    if isinstance(target, ast.Name):
        held = vm.names.load(target.id)
        done(vm.reports, node, held)
        right = _other(held, vm.eval(node.value))
        result = vm.forks.each(held, lambda one: in_place_operator(vm, one, right, node))
        if vm.names.frame.loops:
            vm.tell(Added(target.id, held, right, result, node))
        if result is not held:
            vm.names.store(target.id, result)
    elif isinstance(target, ast.Attribute):
        owner = vm.eval(target.value)
        held = vm.forks.each(owner, lambda one: vm.attribute(one, target.attr, target))
        done(vm.reports, node, held)
        right = _other(held, vm.eval(node.value))
        vm.tell(ItemAdded(owner, held, right, node))
        result = vm.forks.each(held, lambda one: in_place_operator(vm, one, right, node))
        if result is not held or isinstance(owner, Tensor):
            vm.forks.on_each(
                owner, lambda one: vm.set_attribute(one, target.attr, result, node, augmented=True)
            )
    elif isinstance(target, ast.Subscript):
        owner = vm.eval(target.value)
        key = vm.eval(target.slice)
        done(vm.reports, node, owner)
        right = _other(owner, vm.eval(node.value))
        vm.forks.each(owner, lambda one: _augment_item(vm, one, key, right, node))
    return None


def _other(held: Value, right: Value) -> Value:
    """The right side of an augmented assignment, as one value where its alternatives would multiply."""
    return one_of(right) if isinstance(right, Alt) and multiply(held, right) else right


def _augment_item(vm: Interpreter, owner: Value, key: Value, right: Value, node: ast.AugAssign) -> Value:
    if isinstance(owner, Tensor):
        vm.tell(ItemAdded(owner, owner, right, node))
        augment_tensor_item(vm, owner, key, right, node)
        return owner
    held = load_item(vm.machine, owner, key, node)
    vm.tell(ItemAdded(owner, held, right, node))
    result = vm.forks.each(held, lambda one: in_place_operator(vm, one, right, node))
    if result is not held:
        store_item(vm, owner, key, result, node, "setitem")
    return owner


def delete_statement(vm: Interpreter, node: ast.Delete) -> str | None:
    for target in node.targets:
        if isinstance(target, ast.Name):
            scope = vm.names.scope
            vm.trail.drop(scope, scope.names, target.id)
        elif isinstance(target, ast.Subscript):
            owner, key = vm.eval(target.value), vm.eval(target.slice)
            if isinstance(owner, Unknown):
                escape(vm.strangers, owner)
            _delete_item(vm.trail, owner, key)
        elif isinstance(target, ast.Attribute):
            owner = vm.eval(target.value)
            if isinstance(owner, (Instance, Layer)):
                vm.trail.drop(owner, owner.attrs, target.attr)
            elif target.attr == "grad":
                vm.forks.on_each(owner, lambda one: vm.set_attribute(one, "grad", NONE, node))
    return None


def _delete_item(trail: Trail, owner: Value, key: Value) -> None:
    if isinstance(owner, Map) and isinstance(key, Const):
        items = dict(owner.items)
        items.pop(key.value, None)
        trail.set(owner, "items", items)
    elif isinstance(owner, Seq) and isinstance(key, Const) and isinstance(key.value, int):
        listed = list(owner.items)
        if -len(listed) <= key.value < len(listed):
            del listed[key.value]
        trail.set(owner, "items", listed)
    elif isinstance(owner, Seq) and isinstance(key, Slice) and key.lower is NONE and key.upper is NONE:
        trail.set(owner, "items", [])  # `del xs[:]`
        trail.set(owner, "open", False)
    elif isinstance(owner, (Seq, Map)):
        may_lose(trail, owner)


def import_statement(vm: Interpreter, node: ast.Import) -> str | None:

    for alias in node.names:
        if alias.asname:
            vm.names.store(alias.asname, module_value(vm.names, alias.name, 0))
        else:
            vm.names.store(
                alias.name.partition(".")[0], module_value(vm.names, alias.name.partition(".")[0], 0)
            )
    return None


def import_from_statement(vm: Interpreter, node: ast.ImportFrom) -> str | None:

    module = node.module or ""
    for alias in node.names:
        if alias.name == "*":
            star_import(vm, module, node.level)
        else:
            vm.names.store(alias.asname or alias.name, imported(vm.names, module, node.level, alias.name))
    return None


def global_statement(vm: Interpreter, node: ast.Global) -> str | None:
    vm.names.frame.aliases.update((name, vm.names.scope.globals) for name in node.names)
    return None


def nonlocal_statement(vm: Interpreter, node: ast.Nonlocal) -> str | None:
    for name in node.names:
        scope = vm.names.scope.outer
        while scope is not None and name not in scope.names:
            scope = scope.outer
        if scope is not None:
            vm.names.frame.aliases[name] = scope
    return None
