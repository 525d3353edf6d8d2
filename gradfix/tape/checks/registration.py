"""What a module registers, and what an optimizer got before a module was replaced."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Literal

from gradfix.defects import Assumption, Convention, Lean, Role, kind_of
from gradfix.defects.records import Replaced as ReplacedFacts
from gradfix.defects.records import Unreached, Unregistered
from gradfix.tape.checks.wanted_cuts import asked_for
from gradfix.tape.domain.definitions import Instance
from gradfix.tape.domain.events import Add, Backward
from gradfix.tape.domain.graph import Node, Tensor
from gradfix.tape.domain.torch_values import Layer, Opaque, Optimizer
from gradfix.tape.domain.values import Alt, Foreign, Map, Seq, Undefined, Unknown, Value
from gradfix.tape.interpreter.interpreter import Interpreter
from gradfix.tape.interpreter.occasions import Built, Replaced
from gradfix.tape.machine.cuts import MODES
from gradfix.tape.machine.gradients import Ended
from gradfix.tape.machine.reports import span_of
from gradfix.tape.torch.modules import leaves


def check_registered(vm: Interpreter, built: Built) -> None:
    """Layers and parameters in a plain list or dict of a module aren't in its parameters()."""
    instance = built.instance
    if "parameters" in instance.cls.attrs:
        return
    registered = None
    if vm.homeless:
        registered = {id(leaf) for leaf in leaves(vm, instance)[0]}
        vm.homeless[:] = [one for one in vm.homeless if not registered.intersection(one[0])]
    for name, value in instance.attrs.items():
        if (
            not isinstance(value, (Seq, Map))
            or not isinstance(value.place, ast.AST)
            or (not vm.at_home and not vm.stack)
        ):
            continue
        items = value.items if isinstance(value, Seq) else list(value.items.values())
        holds = _holds(items)
        if not holds:
            continue
        registered = registered if registered is not None else {id(leaf) for leaf in leaves(vm, instance)[0]}
        inner = tuple(vm.span(item.place) for item in items if isinstance(item, Seq))
        items = [item for one in items for item in (one.items if isinstance(one, Seq) else [one])]
        inside = [leaf for item in items for leaf in leaves(vm, item)[0] if Convention.B not in leaf.lean]
        known = inside and not any(id(leaf) in registered for leaf in inside) and _used(instance, name)
        if known and not _perhaps(vm, instance, inside):
            facts = Unregistered(
                attribute=name,
                container="dict" if isinstance(value, Map) else "list",
                holds=holds,
                inner=tuple(span for span in inner if span is not None),
            )
            vm.homeless.append(([id(leaf) for leaf in inside], _owned(vm, instance, value.place), facts))


def _perhaps(vm: Interpreter, instance: Instance, inside: list[Tensor]) -> bool:
    """Whether leaves may be registered all the same: by code that had the module, or in what isn't known."""
    if id(instance) in vm.loose:
        return True
    unknown = [value for value in instance.attrs.values() if isinstance(value, Unknown)]
    memory = frozenset(id(leaf.storage) for leaf in inside)
    return vm.touches is not None and vm.touches.reach.holds(unknown, memory)


def homeless(entries: Sequence[Interpreter], ended: Ended) -> None:
    """At the end: layers in plain containers that no module registers and nobody steps."""
    trained = ended.trained | ended.updated
    found = [(vm, *one) for vm in entries for one in vm.homeless]
    stepped = {vm.span(place) for vm, inside, place, _ in found if trained.intersection(inside)}
    lean = _unless_trained_elsewhere(ended, Assumption.NOBODY_ELSE_REGISTERS)
    for vm, _, place, facts in found:
        if vm.span(place) not in stepped:
            vm.report("unregistered_parameters", place, [(place, Role.UNREGISTERED)], facts, lean=lean)


def _unless_trained_elsewhere(ended: Ended, gap: Assumption) -> Lean:
    """What it takes that no optimizer holds a leaf: where none is in sight, that who trains a module trains
    its parameters (D); where it isn't known what one holds, that it holds no others."""
    if not ended.optimizers:
        return frozenset({Convention.D})
    return frozenset({Convention.B}) if all(one.complete for one in ended.optimizers) else frozenset({gap})


def _owned(vm: Interpreter, instance: Instance, place: ast.AST) -> ast.AST | Foreign:
    return place if instance.cls.file == vm.findings.main else Foreign(place, instance.cls.file)


def _holds(items: list[Value]) -> Literal["", "modules", "parameters"]:
    if items and (all(map(_is_module, items)) or all(map(_is_row, items))):
        return "modules"
    if items and all(isinstance(item, Tensor) and item.parameter for item in items):
        return "parameters"
    return ""


def _is_row(item: Value) -> bool:
    """Whether an item is itself a list of modules, written out."""
    if not isinstance(item, Seq) or not isinstance(item.place, ast.AST) or item.open:
        return False
    return bool(item.items) and all(map(_is_module, item.items))


def _is_module(item: Value) -> bool:
    if isinstance(item, Alt):  # appended under a condition, or one of several
        return all(isinstance(one, Undefined) or _is_module(one) for _, one in item.options)
    return isinstance(item, (Layer, Instance)) and bool(getattr(item, "module", True))


def _used(instance: Instance, name: str) -> bool:
    """Whether methods other than the constructor read the attribute, and none puts something else there."""
    reads = False
    for method in instance.cls.node.body:
        if isinstance(method, ast.FunctionDef) and method.name != "__init__":
            for node in ast.walk(method):
                if isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.value, ast.Name):
                    if isinstance(node.ctx, ast.Store):
                        return False
                    reads = True
    return reads


def replaced(vm: Interpreter, told: Replaced) -> None:
    """Note that a module was replaced, for the end, when it is known which optimizer steps what."""
    old, new, node = told
    if isinstance(new, (Layer, Instance, Opaque, Tensor)) and vm.optimizers:
        vm.replacements.append((old, new, vm.at(node)))


def check_replacements(vm: Interpreter, ended: Ended) -> None:
    """At the end: trained layers that no optimizer holds, because theirs was built for the ones before."""
    for old, new, place in vm.replacements:
        before, after = leaves(vm, old)[0], leaves(vm, new)[0]
        fresh = [leaf for leaf in after if leaf.requires is True and vm.is_added(leaf)]
        if not fresh or any(id(leaf) in ended.trained for leaf in fresh):
            continue
        for optimizer in vm.optimizers:
            held_before = any(leaf is held for held in optimizer.leaves for leaf in before)
            if held_before and _stepped_for(optimizer, fresh):
                vm.report("optimizer_before_replacement", optimizer.place,
                          [(optimizer.place, Role.TAKES), (place, Role.REPLACED_LATER)],
                          ReplacedFacts(replacement=vm.span(place), optimizer=optimizer.name),
                          lean=_unless_trained_elsewhere(ended, Assumption.NOBODY_ELSE_HOLDS))  # fmt: skip


def _stepped_for(optimizer: Optimizer, fresh: list[Tensor]) -> bool:
    """Whether an optimizer stepped after a backward that reached these leaves: then it was meant for them."""
    if not (optimizer.stepped and optimizer.after):
        return False
    last: int = optimizer.after[0].number
    events = [event for leaf in fresh if leaf.slot for event in leaf.slot.events]
    return any(isinstance(event, Add) and event.backward.number <= last for event in events)


def check_unreached(vm: Interpreter) -> None:
    """At the end: optimizers that step parameters which no backward reached, because of a cut."""
    if not vm.backwards or any(kind_of(kind).lost for kind, _ in vm.reported):
        return
    for optimizer in vm.optimizers:
        if not (optimizer.stepped and optimizer.complete and optimizer.after):
            continue
        never = [leaf for leaf in optimizer.leaves if leaf.requires is True and not vm.is_added(leaf)]
        event, root = optimizer.after
        cut = _cut_before(vm, never, root) if never else None
        if cut is not None and not _kept_otherwise(vm, event, never, cut):
            gap = {Assumption.NOBODY_ELSE_FILLS} if any(map(vm.may_be_filled, never)) else set()
            vm.report(
                "unreached_parameters",
                optimizer.place,
                [
                    (cut.cut_place, Role.CUT),
                    (event.place, Role.BACKWARD),
                    (optimizer.place, Role.NEVER_TRAINED),
                ],
                Unreached(
                    optimizer=optimizer.name,
                    cut=vm.span(cut.cut_place),
                    cut_kind=cut.cut,
                    backward=vm.span(event.place),
                ),
                lean=optimizer.lean | gap,
            )


def _kept_otherwise(vm: Interpreter, event: Backward, never: list[Tensor], cut: Node) -> bool:
    """Whether something else than a backward sees to the parameters behind a cut, or may do so."""
    behind = {id(leaf) for leaf in vm.leaves_behind(cut)}
    leaves = [leaf for leaf in never if id(leaf) in behind]
    return vm.touches is None or event.moment is None or vm.touches.kept_otherwise(event.moment, leaves)


def _cut_before(vm: Interpreter, never: list[Tensor], root: Tensor) -> Node | None:
    """The cut in a graph behind which only leaves lie that were never reached."""
    if root.requires is not True:
        return None
    wanted = {id(leaf) for leaf in never}
    for cut in vm.all_cuts(vm.history(root)):
        if cut.cut in MODES:  # a part of a forward that somebody runs unrecorded is frozen on purpose
            continue
        behind = {id(leaf) for leaf in vm.leaves_behind(cut)}
        if behind & wanted and not _wanted(vm, cut):
            return cut
    return None


def _wanted(vm: Interpreter, cut: Node) -> bool:
    place = cut.cut_place
    return isinstance(place, ast.AST) and asked_for(vm.program.tree, span_of(place).line)
