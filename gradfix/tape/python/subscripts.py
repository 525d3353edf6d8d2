"""Reading and writing by index: containers exactly, tensors as views and copies."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gradfix.defects.reasons import What
from gradfix.tape.domain.alternatives import one_of, wide
from gradfix.tape.domain.definitions import Instance, Method
from gradfix.tape.domain.graph import Node, Number, Tensor
from gradfix.tape.domain.narrowing import there
from gradfix.tape.domain.torch_values import Group, Layer, Optimizer
from gradfix.tape.domain.values import Alt, Const, External, Map, Range, Seq, Slice, Unknown
from gradfix.tape.domain.why import Why
from gradfix.tape.effects import pieces, strides
from gradfix.tape.interpreter.occasions import PutSomewhere, Replaced
from gradfix.tape.python.arithmetic import OPERATORS, operate
from gradfix.tape.python.containers import store_in_mapping, store_in_sequence
from gradfix.tape.strangers.handed_out import escape
from gradfix.tape.strangers.kept import keep
from gradfix.tape.torch.elements import part
from gradfix.tape.torch.module_methods import register
from gradfix.tape.torch.param_groups import group_entry, store_group_entry, written
from gradfix.tape.torch.tensors import filled, in_graph, method_call

if TYPE_CHECKING:
    from gradfix.tape.domain.trail import Trail
    from gradfix.tape.domain.values import Truth, Value
    from gradfix.tape.interpreter.forks import Forks
    from gradfix.tape.interpreter.interpreter import Interpreter
    from gradfix.tape.interpreter.state import Strangers
    from gradfix.tape.machine.machine import Machine
    from gradfix.tape.machine.results import Results


def load_item(machine: Machine, owner: Value, key: Value, node: ast.AST) -> Value:
    """`owner[key]`."""
    if isinstance(owner, Unknown) and not _names(key) and (owner.tensor is not None or _only_tensors(key)):
        owner = machine.graph.tensor_of(owner)
    if isinstance(owner, Tensor) and _names(key):
        return Unknown(Why(What.ELEMENT, "an entry of what only looked like a tensor"))
    if isinstance(owner, Tensor):
        return tensor_item(machine, owner, key, node)
    if isinstance(owner, Seq):
        found = _sequence_item(owner, key)
        machine.reports.findings.terms.part_of(found, owner, key)
        return found
    if isinstance(owner, Map):
        return _mapping_item(owner, key)
    if isinstance(owner, Layer) and owner.items is not None:
        return _layer_item(owner, key)
    if (
        isinstance(owner, Range)
        and isinstance(key, Const)
        and isinstance(key.value, int)
        and key.value < len(owner.range)
    ):
        return Const(owner.range[key.value])
    if isinstance(owner, Number):
        return Number(Node("item", node, (owner.node,), False), machine.here.at(node), "number")
    if isinstance(owner, Const) and isinstance(owner.value, (str, tuple)) and isinstance(key, Const):
        try:
            return Const(owner.value[key.value])  # type: ignore[index, call-overload]
        except (TypeError, IndexError, KeyError):
            return Unknown(Why(What.ELEMENT, "an element"))
    if isinstance(owner, Group):
        return group_entry(owner, key)
    found = _unknown_item(machine.trail, owner, key)
    if isinstance(owner, External) and type(found) is Unknown:
        terms = machine.reports.findings.terms
        terms.fact_of(found, terms.entry_of(owner, key))
    return found


def _names(key: Value) -> bool:
    """Whether only a mapping can be indexed like this."""
    return isinstance(key, Const) and isinstance(key.value, str)


def _only_tensors(key: Value) -> bool:
    """Whether only a tensor or array can be indexed like this."""
    return isinstance(key, Seq) and any(isinstance(item, Slice) for item in key.items)


def _unknown_item(trail: Trail, owner: Value, key: Value) -> Value:
    if isinstance(owner, (Method, Optimizer)):
        return Unknown(Why(What.ELEMENT, "an element"))
    if isinstance(owner, Unknown) and isinstance(key, Const) and isinstance(key.value, (str, int)):
        name = f"[{key.value!r}]"
        if owner.children is None or name not in owner.children:
            trail.learn_part(owner, "children", name, part(owner))
        assert owner.children is not None
        return owner.children[name]
    return part(owner)


def _sequence_item(owner: Seq, key: Value) -> Value:
    if _shifted(owner.items, key):
        owner = Seq(owner.kind, [one_of(item) for item in owner.items], open=True, some=owner.some)
        key = (
            key
            if isinstance(key, Slice)
            else Unknown(Why(What.ELEMENT, "a place in a list that may lack elements"))
        )
    if isinstance(key, Const) and isinstance(key.value, int) and not isinstance(key.value, bool):
        if -len(owner.items) <= key.value < len(owner.items) and not (owner.open and key.value < 0):
            return owner.items[key.value]
        if owner.open and owner.items and key.value < 0:
            return Unknown(Why(What.ELEMENT, "the end of a list that may be longer"), tuple(owner.items))
    if isinstance(key, Slice):
        bounds = pieces.bounds_of(key)
        if bounds is not None and not owner.open:
            return Seq(owner.kind, owner.items[bounds], some=owner.some)
        return Seq(owner.kind, list(owner.items), open=True, some=owner.some)
    result = Unknown(Why(What.ELEMENT, "an element"), tuple(owner.items))
    result.part = True
    if (
        owner.items
        and not owner.open
        and all(isinstance(item, Tensor) and item.requires is False for item in owner.items)
    ):
        result.requires = False
    return result


def _shifted(items: Sequence[Value], key: Value) -> bool:
    """Whether an index means another element where some are lacking."""
    if isinstance(key, Const) and isinstance(key.value, int):
        items = items[key.value :] if key.value < 0 else items[: key.value]
    return isinstance(key, (Const, Slice)) and not all(map(there, items))


def _mapping_item(owner: Map, key: Value) -> Value:
    if isinstance(key, Const) and key.value in owner.items:
        return owner.items[key.value]
    if isinstance(key, Const) and owner.open:
        found = Unknown(Why(What.ELEMENT, "an entry"), tuple(owner.items.values()))
        owner.items[key.value] = found
        return found
    return Unknown(Why(What.ELEMENT, "an entry"), tuple(owner.items.values()))


def _layer_item(owner: Layer, key: Value) -> Value:
    items = owner.items or {}
    if not (isinstance(key, Const) and isinstance(key.value, str)) and _shifted([*items.values()], key):
        return Unknown(
            Why(What.ALTERNATIVES, "one of several modules"), tuple(one_of(item) for item in items.values())
        )
    if isinstance(key, Const):
        if isinstance(key.value, str) and key.value in items:
            return items[key.value]
        if isinstance(key.value, int) and not owner.open and -len(items) <= key.value < len(items):
            return list(items.values())[key.value]
    if isinstance(key, Slice):
        sliced = Layer(owner.kind, None, {}, owner.place)
        bounds = pieces.bounds_of(key)
        if bounds is not None and not owner.open:
            kept = list(items.items())[bounds]
            sliced.items = dict(kept)
        else:
            sliced.items, sliced.open = dict(items), True
        return sliced
    return Unknown(Why(What.ALTERNATIVES, "one of several modules"), tuple(items.values()))


def tensor_item(machine: Machine, owner: Tensor, key: Value, node: ast.AST) -> Value:
    """A basic index is a view; an advanced one copies, and saves its indices."""
    basic = is_basic(key)
    chosen = [one for one in (key.items if isinstance(key, Seq) else (key,)) if isinstance(one, Tensor)]
    made = machine.recording.node("getitem", machine.here.at(node), [owner, *chosen])
    result = machine.results.output(made)
    result.dtype = owner.dtype
    result.shape = pieces.indexed(owner.shape, key)
    result.layout = owner.layout or None
    if basic is True:
        _look_at(machine.results, result, owner, key)
    elif basic is False and made.requires is True:
        made.saves = True
        for index in chosen:
            machine.keeping.save(made, index, frozenset())
    elif basic is None:
        result.layout = None
        machine.results.may_be(result, owner)
        if made.requires is True:
            made.saves = False
    return result


def _look_at(results: Results, result: Tensor, owner: Tensor, key: Value) -> None:
    """Make the result of an index a view: rows lie as what they are rows of."""
    results.look(result, owner, "plain")
    rows = isinstance(key, Slice) and isinstance(key.step, Const) and key.step.value is None
    if not rows and not isinstance(key, Const):
        result.layout = None
    strides.looks(result, strides.of_index(owner, key))


def is_basic(key: Value) -> Truth:
    """Whether an index makes a view: numbers (in a tensor as well), slices, None and Ellipsis do."""
    if isinstance(key, Const):
        return not isinstance(key.value, bool)
    if isinstance(key, (Slice, Number)):
        return True
    if isinstance(key, Seq) and key.kind == "tuple":
        kinds = [is_basic(item) for item in key.items]
        return False if False in kinds else (None if None in kinds else True)
    if isinstance(key, Tensor) and key.dtype != "bool":
        return key.dtype == "int" or None if key.shape == () else (None if key.shape is None else False)
    return False if isinstance(key, (Tensor, Seq)) else None


def store_item(vm: Interpreter, owner: Value, key: Value, value: Value, node: ast.AST, form: str) -> None:
    """`owner[key] = value`."""
    if isinstance(owner, Unknown) and owner.options and owner.tensor is None and not wide(owner):
        ways = Alt(owner.options)  # too many to be kept apart
        vm.forks.on_each(ways, lambda one: store_item(vm, one, key, value, node, form))
        return
    written(vm.machine, owner, node)
    if isinstance(owner, Unknown) and owner.holds:
        vm.tell(PutSomewhere(owner, value, node))
    if isinstance(owner, Unknown) and _names(key):
        _store_entry(vm.strangers, owner, key, value)
    elif isinstance(owner, Unknown) and (owner.tensor is not None or _only_tensors(key)):
        owner = vm.graph.tensor_of(owner)
    if isinstance(owner, Tensor) and _names(key):
        escape(vm.strangers, value)
    elif isinstance(owner, Tensor):
        _store_tensor_item(vm.forks, owner, key, value, node, form)
    elif isinstance(owner, Map):
        store_in_mapping(vm.trail, owner, key, value)
    elif isinstance(owner, Seq):
        store_in_sequence(vm.trail, owner, key, value)
    elif isinstance(owner, Layer) and owner.items is not None and not isinstance(key, Const):
        vm.tell(PutSomewhere(owner, value, node))
        register(vm.trail, owner, None, value)
    elif isinstance(owner, Layer) and owner.items is not None:
        name = str(key.value) if isinstance(key, Const) else ""
        if name in owner.items:
            vm.tell(Replaced(owner.items[name], value, node))
        vm.trail.put(owner, owner.items, name, value)
    elif isinstance(owner, Unknown) and (
        isinstance(value, (Layer, Instance)) or (isinstance(value, Unknown) and isinstance(key, Const))
    ):
        _store_entry(vm.strangers, owner, key, value)
    elif isinstance(owner, Unknown):
        escape(vm.strangers, value)
    elif isinstance(owner, Group):
        store_group_entry(vm.machine, owner, key, node)
        escape(vm.strangers, value)


def _store_entry(strangers: Strangers, owner: Unknown, key: Value, value: Value) -> None:
    """An entry of a mapping that isn't known; what it held before stays the other alternative."""
    escape(strangers, value)
    keep(strangers, owner, [value])
    strangers.graph.put_into(owner, value)
    _unknown_item(strangers.trail, owner, key)
    if owner.children is not None and isinstance(key, Const):
        strangers.trail.put(owner, owner.children, f"[{key.value!r}]", value)
    elif isinstance(value, (Layer, Instance)):  # a part, whichever it takes the place of
        one = Unknown(Why(What.ALTERNATIVES, "one of several modules"), (value,))
        strangers.trail.learn_part(owner, "children", "[?]", one)


def _store_tensor_item(
    forks: Forks, owner: Tensor, key: Value, value: Value, node: ast.AST, form: str
) -> None:
    given = in_graph(forks.graph, value)
    if owner.grad_of is not None and _whole(key) and isinstance(value, Const) and value.value == 0:
        forks.machine.gradients.clear([owner.grad_of], forks.here.at(node), zeros=True)
    elif owner.grad_of is not None:
        filled(forks.machine, owner.grad_of, node)
        if not isinstance(value, (Const, Tensor)):
            forks.machine.gradients.clear([owner.grad_of], None, must=False)

    def write() -> Value:
        _overwrite_item(forks.machine, owner, key, given, node, form)
        return owner

    forks.parted(owner, write)


def _overwrite_item(
    machine: Machine, owner: Tensor, key: Value, value: Value, node: ast.AST, form: str
) -> None:
    made = machine.recording.node("copy_", machine.here.at(node), [owner, value])
    made.op = "setitem"
    basic = is_basic(key)
    if basic is False or (basic is True and owner.view != "many"):
        made.saves = made.requires is True and not _whole(key)
    machine.operations.overwrite(owner, made, machine.here.at(node), form)
    if basic is False and made.requires is True:
        for index in key.items if isinstance(key, Seq) else (key,):
            if isinstance(index, Tensor):
                machine.keeping.save(made, index, frozenset())


def _whole(key: Value) -> bool:
    """Whether an index means all of a tensor, so that no view is made for the write."""
    if isinstance(key, Const):
        return key.value is ...
    return isinstance(key, Slice) and all(
        isinstance(b, Const) and b.value is None for b in (key.lower, key.upper, key.step)
    )


def augment_tensor_item(
    vm: Interpreter, owner: Tensor, key: Value, right: Value, node: ast.AugAssign
) -> None:
    """`x[i] += y`: reads the item, writes it in place, and stores it again."""
    item = tensor_item(vm.machine, owner, key, node)
    if is_basic(key) is True and isinstance(item, Tensor):
        name, _ = OPERATORS[type(node.op)]
        target, method = item, f"__i{name}__"

        def write(one: Value) -> Value:
            return method_call(vm, target, method, [in_graph(vm.graph, one)], {}, node, form="augassign")

        vm.forks.on_each(right, write)
        return
    result = vm.forks.each(right, lambda one: operate(vm, type(node.op), item, one, node))
    _store_tensor_item(vm.forks, owner, key, result, node, "augassign")
