"""Objects of frameworks: their methods that run backward, step and clear, the functions that they call."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gradfix.defects import Convention
from gradfix.defects.reasons import What
from gradfix.tape.domain.definitions import Bound, Class, Function, Instance, Partial
from gradfix.tape.domain.events import Backward
from gradfix.tape.domain.graph import Number, Tensor
from gradfix.tape.domain.torch_values import Layer, Mode, Opaque, Optimizer
from gradfix.tape.domain.values import FALSE, NONE, Alt, Const, Map, Seq, Unknown
from gradfix.tape.domain.why import INDEX, Why, fact
from gradfix.tape.interpreter.modes import kept, restore
from gradfix.tape.torch.modules import opaque
from gradfix.tape.torch.walks import run_backward

if TYPE_CHECKING:
    from gradfix.tape.domain.values import Args, Kwargs, Value
    from gradfix.tape.effects.frameworks import Entry, Row
    from gradfix.tape.interpreter.interpreter import Interpreter
    from gradfix.tape.interpreter.program import Program
    from gradfix.tape.interpreter.state import Strangers

NOT_A_TENSOR = "'float' object has no attribute 'backward'"


def row_of(program: Program, path: str) -> Row | None:
    """What is known of a dotted name: by the whole of it, or by its end."""
    return program.rows.get(path) or program.rows.get(path.rpartition(".")[2]) if path else None


def rows_of(program: Program, cls: Class) -> Iterator[tuple[Row, bool]]:
    """The rows of a class's bases, and whether they are surely those."""
    for name in _lineage(cls):
        row = program.rows.get(name)
        if row is not None and row.own:
            yield row, True
    for path in cls.externals():
        row = row_of(program, path)
        if row is not None:
            yield row, row.trusts(path)


def _lineage(cls: Class) -> Iterator[str]:
    """The names of a class and of its bases, as far as their source is at hand."""
    yield cls.name
    for base in cls.bases:
        if isinstance(base, Class):
            yield from _lineage(base)


def unknown_host(
    vm: Interpreter, receiver: Unknown, name: str, args: Args, kwargs: Kwargs, node: ast.Call
) -> Value | None:
    """A method of what a framework's function or class has made; None where no row speaks of it."""
    row = row_of(vm.program, receiver.origin)
    if row is None or ("." in receiver.origin and not row.trusts(receiver.origin)):
        return None
    return _perform(vm, row, receiver.holds, name, args, kwargs, node)


def instance_host(
    vm: Interpreter, receiver: Instance, name: str, args: Args, kwargs: Kwargs, node: ast.Call
) -> Value | None:
    """A method that an object has from a framework's class; of its own ones, those that the user tells of."""
    written = receiver.cls.lookup(name) is not None or name in receiver.attrs
    for row, sure in rows_of(vm.program, receiver.cls):
        own = receiver.cls.lookup(name)
        if sure and name in row.unrecorded and isinstance(own, Function):
            unrecorded = own.under(((Mode("no_grad", FALSE, vm.here.at(node)), node), *own.decorators))
            return vm.call(Bound(receiver, unrecorded), args, kwargs, node)
        if not sure or (written and not row.own):
            continue
        if name in row.made_by:
            return _made(vm, receiver, row.made_by[name], node)
        if name in row.makes:
            made = Unknown(Why(What.FRAMEWORK, f"what `{name}` makes"), (*args, *kwargs.values()))
            made.origin = row.makes[name]
            return made
        done = _perform(vm, row, tuple(receiver.attrs.values()), name, args, kwargs, node)
        if done is not None:
            return done
    return None


def wrapped_host(
    vm: Interpreter, receiver: Value, name: str, args: Args, kwargs: Kwargs, node: ast.Call
) -> Value | None:
    """A method of a module that a framework has wrapped."""
    found = vm.strangers.wrapped.get(id(receiver))
    return _perform(vm, found[1], found[2], name, args, kwargs, node) if found else None


def wrap(strangers: Strangers, path: str, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    """`deepspeed.initialize(...)`: the model as an engine, and its optimizer."""
    row = strangers.program.rows[path]
    given = {**dict(zip(row.signature, args, strict=False)), **kwargs}
    model, optimizer = given.get("model", NONE), given.get("optimizer", NONE)
    if isinstance(model, Unknown):
        opaque(strangers.machine, model)
    if isinstance(model, (Unknown, Layer, Instance, Opaque)):
        strangers.wrapped[id(model)] = (model, row, (optimizer,))
    if not isinstance(optimizer, Optimizer):
        optimizer = Unknown(Why(What.FRAMEWORK, "an optimizer that is made by a configuration"))
    made = {"model": model, "optimizer": optimizer}
    return Seq("tuple", [made.get(what) or Unknown(Why(What.FRAMEWORK, f"a {what}")) for what in row.returns])


def _perform(
    vm: Interpreter, row: Row, held: tuple[Value, ...], name: str, args: Args, kwargs: Kwargs, node: ast.Call
) -> Value | None:
    """Backward, step, clear: whichever of them the method does, in this order."""
    if name in row.prepares:
        return args[0] if len(args) == 1 else Seq("tuple", list(args))
    if name in row.harmless:
        return Unknown(fact("a context"))
    if not any(name in does for does in (row.backward, row.step, row.zero_grad)):
        return None
    if name in row.backward:
        root = args[0] if args else next(iter(kwargs.values()), NONE)
        options = {key: value for key, value in kwargs.items() if key in OPTIONS}
        vm.forks.each(root, lambda one: backpropagated(vm, one, options, node))
    optimizers = list(_optimizers((*args, *kwargs.values()))) or list(_optimizers(held))
    if name in row.step:
        due = kwargs.get(row.switch, Const(True))
        for optimizer in optimizers:
            vm.machine.gradients.step(
                optimizer, vm.here.at(node), must=isinstance(due, Const) and bool(due.value)
            )
    if name in row.zero_grad:
        for optimizer in optimizers:
            vm.machine.gradients.clear(optimizer.leaves, vm.here.at(node))
    if not optimizers and name not in row.backward - row.step - row.zero_grad:
        vm.timeline.note(
            "anything", (Unknown(Why(What.FRAMEWORK, f"`{name}`")), *args), vm.here.at(node), vm.here.path
        )
        vm.machine.gradients.perhaps_cleared(vm.machine.leaves.every_leaf)
    return NONE


OPTIONS = frozenset({"gradient", "retain_graph", "create_graph", "inputs"})


def backpropagated(vm: Interpreter, root: Value, options: Kwargs, node: ast.AST) -> Value:
    """Backward from what a framework is handed."""
    if isinstance(root, Number):
        event = Backward(vm.here.at(node), vm.here.path, False, False, frozenset())
        vm.machine.severed.severed(root.node, event, root.node.lean, NOT_A_TENSOR)
    elif isinstance(root, (Tensor, Unknown)):
        tensor = vm.graph.tensor_of(root) if isinstance(root, Unknown) else root
        run_backward(vm, tensor, options, node)
    return NONE


def _optimizers(values: Sequence[Value], depth: int = 0) -> Iterator[Optimizer]:
    """The optimizers among some values, or in what they hold."""
    for value in values:
        if isinstance(value, Optimizer):
            yield value
        elif isinstance(value, Unknown) and depth < 2:
            yield from _optimizers(value.holds, depth + 1)
        elif isinstance(value, Seq) and depth < 3:
            yield from _optimizers(value.items, depth + 1)
        elif isinstance(value, Map) and depth < 3:
            yield from _optimizers(list(value.items.values()), depth + 1)


def _made(vm: Interpreter, receiver: Instance, method: str, node: ast.Call) -> Value:
    """What a method of the object makes, once: one optimizer, or a list of them."""
    key = f"<{method}>"
    if key not in receiver.attrs:
        found = receiver.cls.lookup(method)
        if not isinstance(found, Function):
            return Unknown(Why(What.FRAMEWORK, f"what `{method}` makes"))
        made = vm.call(Bound(receiver, found), [], {}, node)
        if isinstance(made, Alt):
            return Unknown(Why(What.FRAMEWORK, f"what `{method}` makes"), (made,))
        vm.trail.put(receiver, receiver.attrs, key, made)
    kept = list(_optimizers((receiver.attrs[key],)))
    if not kept:
        return Unknown(Why(What.FRAMEWORK, f"what `{method}` makes"))
    return kept[0] if len(kept) == 1 else Seq("list", list(kept))


def hand_over(vm: Interpreter, path: str, args: Args, kwargs: Kwargs, node: ast.Call) -> None:
    """Enter the functions that a framework is given, as it will call them."""
    row = row_of(vm.program, path)
    if row is None or not row.functions or not row.trusts(path):
        return
    given = {**{str(i): arg for i, arg in enumerate(args)}, **kwargs}
    for key, entry in row.functions.items():
        function = given.get(key)
        if isinstance(function, (Function, Bound, Partial)):
            enter(vm, function, entry, node)


def enter(vm: Interpreter, function: Value, entry: Entry, node: ast.AST) -> None:
    """Call a function as a framework does: twice where it is the body of a loop over batches."""
    code = function.code if isinstance(function, Function) else None
    code = function.function.code if isinstance(function, Bound) else code
    with kept(vm), vm.running.within(root=code if entry.root else None):
        if not entry.grad:
            restore(vm.machine, (False, Mode("", FALSE, None), vm.grad_mode.inference, False))
        for turn in range(2 if entry.loops else 1):
            with (
                vm.reports.within(repeat=vm.reports.repeat or turn > 0),
                vm.running.within(later_turn=vm.running.later_turn or turn > 0),
            ):
                vm.call(function, [_given(kind) for kind in entry.given], {}, node)


def _given(kind: str) -> Value:
    """An argument that a framework passes."""
    value = Unknown(Why(What.FRAMEWORK, "an argument from the framework"))
    if kind == "batch":
        value.requires, value.lean = False, frozenset({Convention.A})
    elif kind == "prediction":
        value.requires, value.lean = True, frozenset({Convention.D})
    elif kind == "index":
        value = Unknown(INDEX)
    elif kind == "module":
        value.built, value.origin = True, "module"
    else:
        value.origin = kind
    return value


def returned(vm: Interpreter, value: Value, node: ast.Return) -> None:
    """Backpropagate what a function hands back to its framework: the loss, or the "loss" of a dict."""
    with vm.grad_mode.within(grad=True):
        vm.forks.each(value, lambda one: backpropagated(vm, _loss(one), {}, node))


def _loss(value: Value) -> Value:
    if isinstance(value, Map):
        return value.items.get("loss", NONE)
    if isinstance(value, Seq) and value.kind == "tuple" and value.items:
        return value.items[0]
    return value
