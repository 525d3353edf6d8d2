"""What a module registers, and what an optimizer got before a module was replaced."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Literal

from gradfix.defects import Assumption, Convention, Role, kind_of
from gradfix.defects.reasons import What
from gradfix.defects.records import Replaced as ReplacedFacts
from gradfix.defects.records import Unreached, Unregistered
from gradfix.tape.checks.wanted_cuts import asked_for
from gradfix.tape.domain.definitions import Instance
from gradfix.tape.domain.events import Add
from gradfix.tape.domain.graph import Tensor, upstream
from gradfix.tape.domain.torch_values import Layer, Opaque
from gradfix.tape.domain.values import Alt, Foreign, Map, Seq, Undefined, Unknown
from gradfix.tape.domain.why import Why, why_of
from gradfix.tape.interpreter.inside import all_in
from gradfix.tape.interpreter.state import Homeless
from gradfix.tape.machine.account import newest_call, why_of_call
from gradfix.tape.machine.cuts import LOSSES, MODES, all_cuts, leaves_behind
from gradfix.tape.machine.here import span_of
from gradfix.tape.machine.leaves import is_added
from gradfix.tape.torch.modules import children, leaves

if TYPE_CHECKING:
    from gradfix.defects import Span
    from gradfix.tape.domain.events import Backward
    from gradfix.tape.domain.graph import Node
    from gradfix.tape.domain.moments import Moment
    from gradfix.tape.domain.torch_values import Optimizer
    from gradfix.tape.domain.values import Value
    from gradfix.tape.interpreter.interpreter import Interpreter
    from gradfix.tape.interpreter.names import Names
    from gradfix.tape.interpreter.occasions import Built, Replaced
    from gradfix.tape.interpreter.program import Program
    from gradfix.tape.interpreter.state import Notes, Strangers
    from gradfix.tape.machine.gradients import Ended
    from gradfix.tape.machine.optimizers import Optimizers
    from gradfix.tape.machine.reports import Reports


def check_registered(vm: Interpreter, built: Built) -> None:
    """Layers and parameters in a plain list or dict of a module aren't in its parameters()."""
    instance = built.instance
    if "parameters" in instance.cls.attrs:
        return
    registered = None
    if vm.notes.homeless:
        registered = {id(leaf) for leaf in leaves(vm.machine, instance)[0]}
        vm.notes.homeless[:] = [
            one for one in vm.notes.homeless if not any(id(leaf) in registered for leaf in one.inside)
        ]
    for name, value in instance.attrs.items():
        if (
            not isinstance(value, (Seq, Map))
            or not isinstance(value.place, ast.AST)
            or (not vm.here.at_home and not vm.running.stack)
        ):
            continue
        items = value.items if isinstance(value, Seq) else list(value.items.values())
        holds = _holds(items)
        if not holds:
            continue
        registered = (
            registered if registered is not None else {id(leaf) for leaf in leaves(vm.machine, instance)[0]}
        )
        inner = tuple(vm.reports.span(item.place) for item in items if isinstance(item, Seq))
        items = [item for one in items for item in (one.items if isinstance(one, Seq) else [one])]
        inside = [
            leaf for item in items for leaf in leaves(vm.machine, item)[0] if Convention.B not in leaf.lean
        ]
        if inside and not any(id(leaf) in registered for leaf in inside) and _used(instance, name):
            facts = Unregistered(
                attribute=name,
                container="dict" if isinstance(value, Map) else "list",
                holds=holds,
                inner=tuple(span for span in inner if span is not None),
            )
            whys = tuple(_perhaps(vm.strangers, instance, inside))
            vm.notes.homeless.append(Homeless(inside, _owned(vm.reports, instance, value.place), facts, whys))


def _perhaps(strangers: Strangers, instance: Instance, inside: list[Tensor]) -> Iterator[Why]:
    """What may have registered leaves all the same: code that had the module, or what isn't known in it."""
    if id(instance) in strangers.loose or id(instance.cls) in strangers.loose:
        yield newest_call(strangers.timeline)
    for value in instance.attrs.values():
        if isinstance(value, Tensor) and Convention.B in value.lean:
            yield Why(What.ARGUMENT, value.name, value.place)
    for name, value in instance.attrs.items():
        if any(isinstance(one, Layer) and one.open for one in _registered(value)):
            yield Why(What.ATTRIBUTE, f"what `{name}` holds", instance.cls.node)
    memory = frozenset(id(leaf.storage) for leaf in inside)
    touches = strangers.machine.optimizers.touches
    for value in instance.attrs.values():
        if isinstance(value, Unknown) and touches is not None and touches.reach.holds([value], memory):
            yield why_of(value)


def _registered(value: Value) -> Iterator[Value]:
    """A module and what is in it."""
    stack, seen = [value], set[int]()
    while stack:
        one = stack.pop()
        if id(one) not in seen and isinstance(one, (Layer, Instance, Alt)):
            seen.add(id(one))
            yield one
            stack.extend(
                [part for _, part in one.options]
                if isinstance(one, Alt)
                else map(itemgetter(1), children(one))
            )


def homeless(entries: Sequence[Interpreter], ended: Ended) -> None:
    """At the end: layers in plain containers that no module registers and nobody steps."""
    trained = ended.trained | ended.updated
    places: dict[Span | None, list[tuple[Interpreter, Homeless]]] = {}
    for vm in entries:
        for one in vm.notes.homeless:
            places.setdefault(vm.reports.span(one.place), []).append((vm, one))
    for same in places.values():
        inside = [leaf for _, one in same for leaf in one.inside]
        if any(id(leaf) in trained for leaf in inside):
            continue
        whys = [why for _, one in same for why in one.whys]
        account = ended.held(Assumption.NOBODY_ELSE_REGISTERS, inside, whys)
        for vm, one in same:
            vm.reports.report("unregistered_parameters", one.place, [(one.place, Role.UNREGISTERED)],
                              one.facts, account=account)  # fmt: skip


def _owned(reports: Reports, instance: Instance, place: ast.AST) -> ast.AST | Foreign:
    return place if instance.cls.file == reports.findings.main else Foreign(place, instance.cls.file)


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
            for node in all_in(method):
                if isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.value, ast.Name):
                    if isinstance(node.ctx, ast.Store):
                        return False
                    reads = True
    return reads


def replaced(vm: Interpreter, told: Replaced) -> None:
    """Note that a module was replaced, for the end, when it is known which optimizer steps what."""
    old, new, node = told
    if isinstance(new, (Layer, Instance, Opaque, Tensor)) and vm.machine.optimizers.known:
        vm.notes.replacements.append((old, new, vm.here.at(node)))


def check_replacements(notes: Notes, ended: Ended) -> None:
    """At the end: trained layers that no optimizer holds, because theirs was built for the ones before."""
    for old, new, place in notes.replacements:
        before, after = leaves(notes.machine, old)[0], leaves(notes.machine, new)[0]
        fresh = [leaf for leaf in after if leaf.requires is True and is_added(leaf)]
        if not fresh or any(id(leaf) in ended.trained for leaf in fresh):
            continue
        for optimizer in notes.machine.optimizers.known:
            held_before = any(leaf is held for held in optimizer.leaves for leaf in before)
            if held_before and _stepped_for(optimizer, fresh):
                notes.reports.report("optimizer_before_replacement", optimizer.place,
                          [(optimizer.place, Role.TAKES), (place, Role.REPLACED_LATER)],
                          ReplacedFacts(replacement=notes.reports.span(place), optimizer=optimizer.name),
                          account=ended.held(Assumption.NOBODY_ELSE_HOLDS, fresh))  # fmt: skip


def _stepped_for(optimizer: Optimizer, fresh: list[Tensor]) -> bool:
    """Whether an optimizer stepped after a backward that reached these leaves: then it was meant for them."""
    if not (optimizer.stepped and optimizer.after):
        return False
    last: int = optimizer.after[0].number
    events = [event for leaf in fresh if leaf.slot for event in leaf.slot.events]
    return any(isinstance(event, Add) and event.backward.number <= last for event in events)


def check_unreached(names: Names) -> None:
    """At the end: optimizers that step parameters which no backward reached, because of a cut."""
    if not names.machine.severed.backwards or any(kind_of(kind).lost for kind, _ in names.reports.reported):
        return
    for optimizer in names.machine.optimizers.known:
        if not (optimizer.stepped and optimizer.complete and optimizer.after):
            continue
        never = [leaf for leaf in optimizer.leaves if leaf.requires is True and not is_added(leaf)]
        if never:
            names.reports.silence(optimizer.place, "no backward that is seen reaches some of what this holds")
        event, root = optimizer.after
        cut = _cut_before(names, optimizer, never, root) if never else None
        kept = _touching(names.machine.optimizers, event, never, cut) if cut is not None else None
        if cut is not None and kept is not None and all(moment.deed == "anything" for moment in kept):
            accounts = names.machine.leaves.accounts
            account = accounts.filled(never, more=[why_of_call(moment) for moment in kept])
            names.reports.report(
                "unreached_parameters",
                optimizer.place,
                [
                    (cut.cut_place, Role.CUT),
                    (event.place, Role.BACKWARD),
                    (optimizer.place, Role.NEVER_TRAINED),
                ],
                _unreached(names, optimizer, event, cut),
                lean=optimizer.lean,
                account=account,
            )


def _unreached(names: Names, optimizer: Optimizer, event: Backward, cut: Node) -> Unreached:
    """What a rewrite has to know: of a part that isn't recorded, where it runs and who else would meet it."""
    forward = names.reports.span(cut.place) if cut.cut in MODES else None
    backwards = names.machine.severed.backwards
    others = (root for one, root in backwards if one is not event)
    roots = [names.machine.graph.history(root) for one, root in backwards if one is event]
    wanted = {id(leaf) for leaf in optimizer.leaves if not is_added(leaf)}
    alone = [one for root in roots for one in _alone(root, wanted)]
    met = (_recorded_to(names.machine.graph.history(root)) for root in others)
    return Unreached(
        optimizer=optimizer.name,
        cut=names.reports.span(cut.cut_place),
        cut_kind=cut.cut,
        backward=names.reports.span(event.place),
        forward=(forward,) if forward else (),
        shared=any(node is cut for nodes in met for node in nodes),
        alone=cut.cut in MODES or any(cut is one for one in alone),
    )


def _recorded_to(root: Node) -> Iterator[Node]:
    """What a backward walks, and the cuts at which it ends."""
    return upstream([root], lambda node: () if node.cut else node.parents)


def _touching(optimizers: Optimizers, event: Backward, never: list[Tensor], cut: Node) -> list[Moment] | None:
    """What else than a backward sees to the parameters behind a cut, by hand, or may do so."""
    behind = {id(leaf) for leaf in leaves_behind(cut)}
    leaves = [leaf for leaf in never if id(leaf) in behind]
    touches, moment = optimizers.touches, event.moment
    if touches is None or moment is None:
        return None
    return touches.kept_otherwise(moment, leaves)


def _cut_before(names: Names, optimizer: Optimizer, never: list[Tensor], root: Tensor) -> Node | None:
    """The cut in a graph behind which only leaves lie that were never reached."""
    if root.requires is not True:
        return None
    wanted = {id(leaf) for leaf in never}
    node = names.machine.graph.history(root)
    for cut in (*_alone(node, wanted), *all_cuts(node, but=MODES)):
        if cut.cut in MODES:
            found = _names_all_behind(optimizer, wanted, cut)
        else:
            found = bool({id(leaf) for leaf in leaves_behind(cut, MODES) if leaf is not cut.leaf} & wanted)
        if found and not _wanted(names.program, cut):
            return cut
    return None


def _alone(root: Node, wanted: set[int]) -> list[Node]:
    """The cuts each of which keeps some leaves from a root by itself, but for the targets of losses."""
    nodes = list(_recorded_to(root))
    compared = [node.parents for node in nodes if node.op == "sub"]
    compared += [node.parents[1:] for node in nodes if node.op in LOSSES]
    targets = {id(one) for parents in compared for one in parents}
    return [cut for cut in nodes if cut.cut and id(cut) not in targets and _ends(cut) & wanted]


def _ends(cut: Node) -> set[int]:
    """The leaves that nothing but this cut keeps from what it gives."""
    behind = upstream(cut.parents, lambda one: () if one.cut else one.parents)
    return {id(one.leaf) for one in behind if one.leaf is not None}


def _names_all_behind(optimizer: Optimizer, never: set[int], cut: Node) -> bool:
    """Whether an optimizer, or one of its groups, was given just the leaves of a part that isn't recorded.

    A part of what it holds is frozen on purpose by who runs it unrecorded; not all of it.
    """
    behind = {id(leaf) for leaf in leaves_behind(cut)}
    groups = [group.weights.leaves for group in optimizer.groups or ()]
    for held in [optimizer.leaves, *groups]:
        trained = {id(leaf) for leaf in held if leaf.requires is True}
        if trained and trained <= never and trained <= behind:
            return True
    return False


def _wanted(program: Program, cut: Node) -> bool:
    place = cut.cut_place
    return isinstance(place, ast.AST) and asked_for(program.tree, span_of(place).line)
