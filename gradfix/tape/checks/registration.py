"""What a module registers, and what an optimizer got before a module was replaced."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Literal

from gradfix.defects import Assumption, Convention, Role
from gradfix.defects.reasons import What
from gradfix.defects.records import Replaced as ReplacedFacts
from gradfix.defects.records import Unregistered
from gradfix.tape.domain.definitions import Function, Instance
from gradfix.tape.domain.events import Add
from gradfix.tape.domain.graph import Tensor
from gradfix.tape.domain.torch_values import Layer, Opaque
from gradfix.tape.domain.values import Alt, Foreign, Map, Seq, Undefined, Unknown
from gradfix.tape.domain.why import Why, why_of
from gradfix.tape.interpreter.inside import all_in
from gradfix.tape.interpreter.state import Homeless
from gradfix.tape.machine.account import newest_call
from gradfix.tape.machine.leaves import is_added
from gradfix.tape.torch.modules import children, leaves

if TYPE_CHECKING:
    from gradfix.defects import Span
    from gradfix.tape.domain.definitions import Class
    from gradfix.tape.domain.torch_values import Optimizer
    from gradfix.tape.domain.values import Value
    from gradfix.tape.interpreter.interpreter import Interpreter
    from gradfix.tape.interpreter.occasions import Built, Replaced
    from gradfix.tape.interpreter.program import Program
    from gradfix.tape.interpreter.state import Notes, Strangers
    from gradfix.tape.machine.gradients import Ended
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
        if not holds or _hidden(instance, value.place):
            continue
        registered = (
            registered if registered is not None else {id(leaf) for leaf in leaves(vm.machine, instance)[0]}
        )
        inner = tuple(vm.reports.span(item.place) for item in items if isinstance(item, Seq))
        items = [item for one in items for item in (one.items if isinstance(one, Seq) else [one])]
        inside = [
            leaf
            for item in items
            for leaf in leaves(vm.machine, item)[0]
            if Convention.B not in leaf.lean and leaf.requires is not False
        ]
        if inside and not any(id(leaf) in registered for leaf in inside) and _used(instance, name):
            facts = Unregistered(
                attribute=name,
                container=_container(value),
                holds=holds,
                inner=tuple(span for span in inner if span is not None),
            )
            whys = tuple(_perhaps(vm.strangers, instance, inside))
            place = _owned(vm.reports, instance, value.place)
            vm.notes.homeless.append(Homeless(inside, items, place, facts, whys, instance.cls))


def _container(value: Seq | Map) -> Literal["list", "tuple", "dict"]:
    if isinstance(value, Map):
        return "dict"
    return "tuple" if value.kind == "tuple" else "list"


def _hidden(instance: Instance, display: ast.AST) -> bool:
    """Whether somebody has put what came in, alone, into a list: so that it isn't registered."""
    match display:
        case ast.List([ast.Name(name)]) | ast.Tuple([ast.Name(name)]):
            init = instance.cls.lookup("__init__")
            given = init.code.node.args if isinstance(init, Function) else None
            return given is not None and name in {one.arg for one in (*given.args, *given.kwonlyargs)}
    return False


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
        whys = [
            why
            for vm, one in same
            for why in (*one.whys, *_handed_on(vm.program, one), *_given_away(vm.strangers, one))
        ]
        account = ended.held(Assumption.NOBODY_ELSE_REGISTERS, inside, whys)
        for vm, one in same:
            crashes = _run_as_one(vm.program, one.cls, one.facts.attribute)
            vm.reports.report("unregistered_parameters", one.place, [(one.place, Role.UNREGISTERED)],
                              one.facts, account=account, impact="crashes" if crashes else None,
                              says=NOT_CALLABLE.format(one.facts.container) if crashes else "")  # fmt: skip


NOT_CALLABLE = "'{}' object is not callable"


def _run_as_one(program: Program, cls: Class, attribute: str) -> bool:
    """Whether a class calls what it holds as if it were a module: a comma too many makes a tuple of one."""
    codes = (program.codes.get(id(method)) for method in cls.node.body)
    return any(
        isinstance(one, ast.Call)
        and isinstance(one.func, ast.Attribute)
        and one.func.attr == attribute
        and code.is_first(one.func.value)
        for code in codes
        if code is not None
        for one in all_in(code.node)
    )


def _given_away(strangers: Strangers, homeless: Homeless) -> Iterator[Why]:
    """Other modules that hold the same, and that code that isn't known has: it may register them anywhere."""
    own = {id(part) for item in homeless.items for part in _registered(item)}
    for one in [*strangers.loose.values()]:
        if isinstance(one, Instance) and one.module and id(one) not in own:
            held = {id(leaf) for leaf in leaves(strangers.machine, one)[0]}
            if any(id(leaf) in held for leaf in homeless.inside):
                yield newest_call(strangers.timeline)
                return


LOOKING = frozenset({"len", "enumerate", "zip", "range", "reversed", "iter", "isinstance", "print"})
"""What hands nothing on that it is given."""


def _handed_on(program: Program, one: Homeless) -> Iterator[Why]:
    """The methods that nobody has entered and that give the container to a call: to an optimizer, say."""
    for method in one.cls.node.body:
        code = program.codes.get(id(method))
        if isinstance(method, ast.FunctionDef) and not (code is not None and code.entered):
            calls = (node for node in all_in(method) if isinstance(node, ast.Call))
            if any(_given(call, one.facts.attribute) for call in calls):
                yield Why(What.CALLER, f"`{method.name}`", method)


def _given(call: ast.Call, attribute: str) -> bool:
    """Whether a call is given an attribute whole, or what is made of it, and not one of its elements."""
    if isinstance(call.func, ast.Name) and call.func.id in LOOKING:
        return False
    within = [node for arg in (*call.args, *(each.value for each in call.keywords)) for node in all_in(arg)]
    elements = {id(node.value) for node in within if isinstance(node, ast.Subscript)}
    return any(
        isinstance(node, ast.Attribute) and node.attr == attribute and id(node) not in elements
        for node in within
    )


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
        vm.notes.replacements.append((old, new, vm.here.at(node), vm.timeline.now))


def check_replacements(notes: Notes, ended: Ended) -> None:
    """At the end: trained layers that no optimizer holds, because theirs was built for the ones before."""
    for old, new, place, moment in notes.replacements:
        accounts = notes.machine.leaves.accounts
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
                          account=ended.held(Assumption.NOBODY_ELSE_HOLDS, fresh,
                                             accounts.had(optimizer.leaves, moment - 1)))  # fmt: skip


def _stepped_for(optimizer: Optimizer, fresh: list[Tensor]) -> bool:
    """Whether an optimizer stepped after a backward that reached these leaves: then it was meant for them."""
    if not (optimizer.stepped and optimizer.after):
        return False
    last: int = optimizer.after[0].number
    events = [event for leaf in fresh if leaf.slot for event in leaf.slot.events]
    return any(isinstance(event, Add) and event.backward.number <= last for event in events)
