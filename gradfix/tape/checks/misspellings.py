"""Switches that autograd never reads: `requires_grad` misspelt, compared, set on a module or passed over."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gradfix import spelling
from gradfix.defects import NOTHING, Assumption, Convention, Role
from gradfix.defects.records import Misspelt
from gradfix.spelling import SWITCH
from gradfix.tape.domain.definitions import Instance
from gradfix.tape.domain.graph import Tensor
from gradfix.tape.domain.torch_values import Layer, Opaque, Weights
from gradfix.tape.domain.values import Const, Unknown
from gradfix.tape.interpreter.inside import all_in
from gradfix.tape.interpreter.state import Switched
from gradfix.tape.torch.modules import leaves

if TYPE_CHECKING:
    from gradfix.tape.domain.definitions import Class
    from gradfix.tape.domain.values import Lean, Value
    from gradfix.tape.interpreter.interpreter import Interpreter
    from gradfix.tape.interpreter.occasions import AttributeBound, Compared, PassedOver, SwitchAsked
    from gradfix.tape.interpreter.program import Program
    from gradfix.tape.machine.machine import Machine


def misspelt(vm: Interpreter, bound: AttributeBound) -> None:
    """An attribute that looks like requires_grad and isn't, or is set on a module, where it means nothing."""
    owner, name, value, node = bound
    on_module = isinstance(owner, (Layer, Opaque)) or (isinstance(owner, Instance) and owner.module)
    if name != SWITCH and not spelling.misspelt(name):
        return
    if isinstance(owner, Instance) and (
        name.startswith("_") or _reads_it(vm.program, owner.cls, name) or _handed_in(vm, owner, node)
    ):
        return
    if name == SWITCH:
        if not on_module:
            return
        if not (isinstance(value, Const) and not value.value) and _trains(vm.machine, owner):
            return  # it is on, or may be meant to be
    elif not (isinstance(owner, (Tensor, Weights)) or on_module) or _so_already(vm.machine, owner, value):
        return
    if isinstance(node, ast.Assign):
        read_elsewhere = isinstance(owner, Instance) and name != SWITCH  # by a subclass in another file, say
        lean: Lean = frozenset({Convention.B}) if isinstance(owner, Opaque) or read_elsewhere else NOTHING
        if name != SWITCH and not isinstance(value, Const):
            lean = lean | {Assumption.SET_OTHERWISE}
        said = f"{name} = {vm.reports.text(node.value)}"
        facts = Misspelt(attribute=said, on="module" if on_module else "tensor")
        place = vm.here.at(node)
        draft = vm.reports.draft("requires_grad_misspelt", place, [(place, Role.IGNORED)], facts, lean=lean)
        if draft is not None:
            called = _last(node.targets[0].value) if isinstance(node.targets[0], ast.Attribute) else ""
            vm.notes.switched.append(Switched(draft, owner, value, called))


def asked_for(vm: Interpreter, asked: SwitchAsked) -> None:
    """Who asks a module for a switch that was set on it gives that switch a meaning."""
    vm.notes.switches_asked.append((asked.owner, asked.node))


def never_switched(entries: Sequence[Interpreter]) -> None:
    """At the end: switches that were set in vain; nobody asks for them, or has done otherwise what they were
    to do."""
    met = [(vm, one) for vm in entries for one in vm.notes.switched]
    asked = [each for vm in entries for each in vm.notes.switches_asked]
    trees = {id(vm.program.tree): vm.program.tree for vm in entries}.values()
    used = [(owner, node) for owner, node in asked if not any(_is_shown(tree, node) for tree in trees)]
    heeded = {id(owner) for owner, _ in used}
    # Of what isn't known, nothing but how it is called says which module it may be.
    strangers = (node for owner, node in used if isinstance(owner, Unknown))
    called = {_last(node.value) for node in strangers if isinstance(node, ast.Attribute)}
    done = {
        one.draft.culprit
        for vm, one in met
        if id(one.owner) in heeded or one.called in called or _so_already(vm.machine, one.owner, one.wanted)
    }
    for vm, one in met:
        if one.draft.culprit not in done:
            vm.reports.note(one.draft, one.draft.facts, vm.reports.granted)


def compared(vm: Interpreter, stated: Compared) -> None:
    """A comparison that was to be an assignment: what it asks isn't so."""
    owner, name, wanted, node = stated
    on_module = isinstance(owner, (Layer, Opaque)) or (isinstance(owner, Instance) and owner.module)
    if name != SWITCH or not isinstance(wanted, Const):
        return
    if isinstance(owner, Tensor):
        held = [owner]
    else:
        held = (
            owner.leaves if isinstance(owner, Weights) else leaves(vm.machine, owner)[0] if on_module else []
        )
    if any(leaf.requires is (not wanted.value) and leaf.leaf is True for leaf in held):
        lean = frozenset({Convention.B}) if isinstance(owner, Opaque) else NOTHING
        facts = Misspelt(attribute=f"{name} ==", on="module" if on_module else "tensor")
        place = vm.here.at(node)
        vm.reports.report("requires_grad_misspelt", place, [(place, Role.COMPARED)], facts, lean=lean)


def switched_in_vain(vm: Interpreter, told: PassedOver) -> None:
    """`if p.requires_grad: p.requires_grad = wanted`: asked to let learn again what this has frozen."""
    guarded = _guarded(told.node)
    if guarded is None:
        return
    owner, wanted = vm.eval(guarded.targets[0].value), vm.eval(guarded.value)  # type: ignore[attr-defined]
    held = owner.leaves if isinstance(owner, Weights) else [owner] if isinstance(owner, Tensor) else []
    here = vm.here.at(guarded)
    frozen = [leaf for leaf in held if (leaf.node.facts or {}).get("frozen") is here]
    if isinstance(wanted, Const) and wanted.value is True and frozen and len(frozen) == len(held):
        place = vm.here.at(told.node)
        facts = Misspelt(attribute=f"{SWITCH} = {vm.reports.text(guarded.value)}", guarded=True)
        vm.reports.report(
            "requires_grad_misspelt",
            place,
            [(here, Role.FROZEN_HERE), (place, Role.IN_VAIN)],
            facts,
            when=vm.here.path,
        )


def _guarded(node: ast.If) -> ast.Assign | None:
    """The only statement under a test of a switch, where it sets that switch to what a name says."""
    test, first = node.test, node.body[0]
    if not (isinstance(test, ast.Attribute) and test.attr == SWITCH and isinstance(test.value, ast.Name)):
        return None
    if len(node.body) > 1 or node.orelse or not isinstance(first, ast.Assign) or len(first.targets) > 1:
        return None
    target = first.targets[0]
    same = isinstance(target, ast.Attribute) and ast.unparse(target) == ast.unparse(test)
    return first if same and isinstance(first.value, ast.Name) else None


def _handed_in(vm: Interpreter, owner: Instance, node: ast.AST) -> bool:
    """Whether a method keeps an argument of its own under that name: a setting, not a switch."""
    code = vm.names.frame.code
    if vm.names.frame.receiver is not owner or code is None or not isinstance(node, ast.Assign):
        return False
    given = code.node.args
    names = {arg.arg for arg in (*given.posonlyargs, *given.args, *given.kwonlyargs)}
    return isinstance(node.value, ast.Name) and node.value.id in names


def _so_already(machine: Machine, owner: Value, value: Value) -> bool:
    """Whether what was meant would change nothing, as of a constant that is told to require no grad: or,
    of a tensor, may change nothing, or be refused as that is no leaf."""
    if not isinstance(value, Const):
        return False
    wanted = bool(value.value)
    if isinstance(owner, Tensor):
        return machine.graph.requires(owner) is not (not wanted) or owner.leaf is not True
    held = leaves(machine, owner)[0]
    return bool(held) and all(leaf.requires is wanted for leaf in held)


def _trains(machine: Machine, module: Value) -> bool:
    """Whether every parameter of a module requires grad already."""
    return all(leaf.requires is True for leaf in leaves(machine, module)[0])


def _reads_it(program: Program, cls: Class, name: str) -> bool:
    """Whether a class, or for a name that only its objects have anybody in the file, has a use for it."""
    if cls.lookup(name) is not None or _read_in(cls.node, name, "self"):
        return True
    return name != SWITCH and _read_in(program.tree, name)


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_shown(tree: ast.AST, node: ast.AST) -> bool:
    """Whether what is asked is only shown to somebody, or stated."""
    showing = (one for one in all_in(tree) if isinstance(one, ast.Assert) or _prints(one))
    return any(one is node for within in showing for one in all_in(within))


def _prints(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"


def _read_in(within: ast.AST, name: str, owner: str = "") -> bool:
    """Whether an attribute of this name is read there, of this owner or of any."""
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == name
        and isinstance(node.ctx, ast.Load)
        and (not owner or (isinstance(node.value, ast.Name) and node.value.id == owner))
        for node in all_in(within)
    )
