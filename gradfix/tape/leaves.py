"""What happens to leaves and their gradients by name: rebound, read, misspelt, accumulated, checkpointed."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from gradfix.tape.byhand import made_of_gradient
from gradfix.tape.defects import Span
from gradfix.tape.definitions import Class, Instance
from gradfix.tape.events import Backward
from gradfix.tape.graph import Node, Tensor
from gradfix.tape.interpreter import Interpreter
from gradfix.tape.modules import leaves
from gradfix.tape.paths import implies
from gradfix.tape.registration import replaced
from gradfix.tape.reports import span_of
from gradfix.tape.torchvalues import Layer, Opaque, Optimizer, Weights
from gradfix.tape.values import Alt, Const, Place, Value

RIGHT = "requires_grad"
NOTED = frozenset({Optimizer, Alt, Tensor, Instance, Layer, Opaque})
"""What makes a difference when a name is bound to it."""


def rebinding(vm: Interpreter, name: str, value: Value, node: ast.AST) -> None:
    """A name is bound to another value."""
    if type(value) not in NOTED:
        return
    if isinstance(value, Optimizer) and not value.name:
        value.name = name
    held = vm.scope.names.get(name)
    if isinstance(value, Alt):
        _name_condition(vm, name, value)
    if isinstance(value, Tensor):
        if not value.name:
            value.name = name
        if isinstance(node, ast.Assign) and isinstance(held, (Tensor, Const)) and _adds_to(node.value, name):
            accumulating(vm, name, held, value, value, node)
        if (
            isinstance(held, Tensor)
            and held is not value
            and held.requires is True
            and held.leaf is True
            and not (value.leaf is True and value.requires is True)
            and made_of_gradient(vm, value, held)
        ):
            vm.rebound[id(value)] = (value, held, node)
        elif isinstance(held, Tensor) and id(held) in vm.rebound and vm.rebound[id(held)][2] is node:
            vm.rebound[id(value)] = (value, vm.rebound[id(held)][1], node)
    if (
        isinstance(held, (Instance, Layer, Opaque))
        and isinstance(value, (Instance, Layer, Opaque))
        and held is not value
    ):
        replaced(vm, held, value, node)


def _name_condition(vm: Interpreter, name: str, value: Alt) -> None:
    """Let a flag be called by its name where a condition is told."""
    for guard, option in value.options:
        if isinstance(option, Const) and option.value is True and len(guard) == 1:
            ((key, holds),) = guard
            if holds:
                vm.texts[key] = name


def _adds_to(node: ast.expr, name: str) -> bool:
    return (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Add)
        and any(isinstance(side, ast.Name) and side.id == name for side in (node.left, node.right))
    )


def accumulating(vm: Interpreter, name: str, held: Value, right: Value, result: Value, node: ast.AST) -> None:
    """A total that takes a graph in at every turn of a loop."""
    if not vm.frame.loops or vm.file != vm.main or isinstance(held, Alt):
        return
    if (
        isinstance(node, ast.AugAssign)
        and isinstance(node.op, ast.Add)
        and walked_already(vm, right) is not None
    ):
        kept(vm, right, node.value, node, name)
        return
    if (
        isinstance(result, Tensor)
        and result.requires is True
        and isinstance(right, Tensor)
        and right.requires is True
    ):
        added = right
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp):
            sides = [vm.scope.names.get(s.id) if isinstance(s, ast.Name) and s.id != name else None
                     for s in (node.value.left, node.value.right)]  # fmt: skip
            added = next((side for side in sides if isinstance(side, Tensor)), right)
        elif not isinstance(node, ast.AugAssign) or not isinstance(node.op, ast.Add):
            return
        vm.accumulated.setdefault(span_of(node), []).append(
            (name, result, vm.history(result), vm.history(added), node)
        )


def walked_already(vm: Interpreter, value: Value) -> Node | None:
    """The node of a result whose graph a backward has walked and freed: nobody can need it again."""
    if not isinstance(value, Tensor) or value.requires is not True:
        return None
    stack, seen = [vm.history(value)], 0
    while stack and seen < 8:
        node = stack.pop(0)
        seen += 1
        if any(implies(vm.path, path) for _, path in node.freed or ()):
            return node
        stack.extend(parent for parent in node.parents if parent.requires is True)
    return None


def kept(vm: Interpreter, value: Value, expression: ast.AST, node: ast.AST, target: str) -> None:
    """A result is put by after its graph was walked: the graph stays in memory for nothing."""
    freed = walked_already(vm, value)
    if freed is None or vm.file != vm.main or not isinstance(value, Tensor):
        return
    vm.report(
        "graph_leak",
        node,
        [(freed.place, "the graph that is kept"), (vm.at(node), "kept here, after backward has walked it")],
        impact="trains wrong",
        lean=vm.lean(value),
        when=vm.path,
        facts={"value": span_of(expression), "number": False, "target": target},
    )
    vm.put_by.append((span_of(node), vm.history(value), next(Backward.numbers)))


def kept_on_attribute(vm: Interpreter, target: ast.Attribute, node: ast.AST) -> None:
    """`self.total = self.total + loss`."""
    value = node.value if isinstance(node, ast.Assign) else None
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        for own, added in ((value.left, value.right), (value.right, value.left)):
            if (
                isinstance(own, ast.Attribute)
                and ast.dump(own.value) == ast.dump(target.value)
                and own.attr == target.attr
            ):
                if isinstance(added, ast.Name):
                    kept(vm, vm.load(added.id), added, node, vm.text(target))
                return


def leaked(vm: Interpreter) -> None:
    """At the end: totals whose graph was kept and never walked, though what they add was."""
    for span, root, when in vm.put_by:
        if root.clean > when:  # a later backward wanted it: a part of the next loss, not a souvenir
            vm.found.pop(("graph_leak", span), None)
    for entries in vm.accumulated.values():
        if len(entries) < 2:
            continue
        nodes = [total for _, _, total, _, _ in entries]
        if any(node.clean >= 0 for node in nodes) or any(id(node) in vm.passed_on for node in nodes):
            continue
        if not any(added.clean >= 0 for _, _, _, added, _ in entries):
            continue
        name, _, _, added, node = entries[0]
        value = node.value if isinstance(node, (ast.AugAssign, ast.Assign)) else None
        if isinstance(value, ast.BinOp):
            value = value.right if isinstance(value.left, ast.Name) and value.left.id == name else value.left
        kept = [(added.place, "the graph that is kept"), (node, "added to a total that nothing walks back")]
        vm.report("graph_leak", node, kept,
                  impact="trains wrong", lean=added.lean,
                  facts={"value": span_of(value) if value else None, "number": False,
                         "target": name})  # fmt: skip


def wanted_gradient(vm: Interpreter, owner: Tensor, node: ast.AST) -> bool:
    """Somebody cares for a tensor's `.grad`: not to be had where its name was bound to a result."""
    bound = vm.rebound.get(id(owner))
    if bound is not None and not (owner.leaf is True and owner.requires is True):
        _, held, statement = bound
        vm.report("leaf_rebound", statement, [(held.place, "the leaf"),
                  (statement, "its name is bound to another tensor here"),
                  (vm.at(node), "and .grad is None here")], facts={"target": owner.name}, when=vm.path,
                  says="'NoneType' object")  # fmt: skip
        return True
    return False


NOT_A_LEAF = "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed"


def read_gradient(vm: Interpreter, owner: Tensor, node: ast.AST) -> None:
    """`.grad` is read: of a leaf it is what backward left there, of anything else it is None."""
    vm.read_grads.append(owner)
    if wanted_gradient(vm, owner, node):
        return
    if (
        owner.requires is True
        and owner.leaf is False
        and not owner.retained
        and vm.backwards
        and not vm.hooked
    ):
        if any(root is owner for _, root in vm.backwards) or not _walked(vm, owner):
            return
        made = (owner.node.place, "made here, not a leaf")
        vm.report("grad_of_non_leaf", owner.node.place, [made, (vm.at(node), ".grad is None here")],
                  impact="crashes", when=vm.path, lean=owner.lean,
                  facts={"read": span_of(node), "target": owner.name,
                         "factory": factory_inside(vm, owner)},
                  says=NOT_A_LEAF)  # fmt: skip


def factory_inside(vm: Interpreter, result: Tensor) -> Span | None:
    """The call that makes the leaf, where a result is made of one in one expression."""
    factory = _factory(result.node)
    return vm.span(factory) if factory is not None and _inside(factory, result.node.place) else None


def _factory(node: Node) -> Place:
    """The one call at the start of a chain of operations."""
    while len(parents := [parent for parent in node.parents if parent.requires is True]) == 1:
        node = parents[0]
    return node.place if node.leaf is not None else None


def _walked(vm: Interpreter, owner: Tensor) -> bool:
    return vm.history(owner).clean >= 0


def _inside(inner: object, outer: object) -> bool:
    if not isinstance(inner, ast.AST) or not isinstance(outer, ast.AST):
        return False
    return any(node is inner for node in ast.walk(outer))


def misspelt(vm: Interpreter, owner: Value, name: str, value: Value, node: ast.AST) -> None:
    """An attribute that looks like requires_grad and isn't, or is set on a module, where it means nothing."""
    on_module = isinstance(owner, (Layer, Opaque)) or (isinstance(owner, Instance) and owner.module)
    if name != RIGHT and not _close(name):
        return
    if isinstance(owner, Instance) and (
        name.startswith("_") or _reads_it(owner.cls, name) or _handed_in(vm, owner, node)
    ):
        return
    if name == RIGHT:
        if not on_module:
            return
        if isinstance(value, Const) and value.value and _trains(vm, owner):
            return
    elif not (isinstance(owner, (Tensor, Weights)) or on_module):
        return
    if isinstance(node, ast.Assign):
        lean = frozenset({"B"}) if isinstance(owner, Opaque) else frozenset()
        vm.report("requires_grad_misspelt", vm.at(node),
                  [(vm.at(node), "sets an attribute that autograd never reads")],
                  impact="trains wrong", lean=lean,
                  facts={"attribute": name, "on": "module" if on_module else "tensor"})  # fmt: skip


def _handed_in(vm: Interpreter, owner: Instance, node: ast.AST) -> bool:
    """Whether a method keeps an argument of its own under that name: a setting, not a switch."""
    code = vm.frame.code
    if vm.frame.receiver is not owner or code is None or not isinstance(node, ast.Assign):
        return False
    given = code.node.args
    names = {arg.arg for arg in (*given.posonlyargs, *given.args, *given.kwonlyargs)}
    return isinstance(node.value, ast.Name) and node.value.id in names


def _trains(vm: Interpreter, module: Value) -> bool:
    """Whether every parameter of a module requires grad already."""
    return all(leaf.requires is True for leaf in leaves(vm, module)[0])


def _reads_it(cls: Class, name: str) -> bool:
    """Whether a class has a use of its own for the attribute."""
    return cls.lookup(name) is not None or any(
        isinstance(node, ast.Attribute)
        and node.attr == name
        and isinstance(node.ctx, ast.Load)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
        for node in ast.walk(cls.node)
    )


SLIPS = frozenset({
    "requiregrad", "requiresgrads", "requiresgradient", "requiregrads", "requiregradient", "requiredgrad",
    "requresgrad", "requriesgrad", "reqiuresgrad",
})  # fmt: skip


def _close(name: str) -> bool:
    """Whether a name is one or two slips away from requires_grad."""
    bare = name.replace("_", "").lower()
    if bare == "requiresgrad":
        return name != RIGHT
    return bare in SLIPS


def checkpointed(
    vm: Interpreter, args: Sequence[Value], kwargs: Mapping[str, Value], result: Value, node: ast.Call
) -> Value:
    """Reentrant checkpointing walks only from inputs that require grad."""
    reentrant = kwargs.get("use_reentrant")
    if reentrant is None or not isinstance(reentrant, Const) or not reentrant.value:
        return result
    facts = [vm.requires(arg) for arg in args[1:]]
    if not facts or any(fact is not False for fact in facts) or vm.requires(result) is not True:
        return result
    given = [below for arg in args[1:] for below in vm.nodes(arg)]
    if any(vm.behind(cut) for below in given for cut in vm.cuts(below)):
        return vm.output(vm.node("checkpoint", vm.at(node), args[1:]))
    if vm.grad is True:
        vm.report("reentrant_checkpoint_cut", vm.at(node),
                  [(vm.at(node), "no input requires grad, so nothing inside is reached")],
                  impact="trains wrong", lean=vm.lean(result),
                  facts={"function": vm.text(node.args[0]) if node.args else ""})  # fmt: skip
    return result
