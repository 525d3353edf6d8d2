"""How an argument is used where it is taken: followed through names, attributes and calls, by what lives."""

from __future__ import annotations

import ast
import builtins
import inspect
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from gradfix.driver.search import callees
from gradfix.driver.search.facts import Facts
from gradfix.driver.search.sources import Function, Text, class_node, node_of, written
from gradfix.driver.targets import methods, reached_from

DEEPEST = 4
NOWHERE = object()
STRINGS = frozenset(("lower", "upper", "startswith", "endswith", "strip", "split", "replace", "format"))
NAMES = ("ReLU", "relu", "Adam", "StepLR")
"""What a name may be by which something is taken of one of torch's modules."""
OF_DICT = frozenset(("keys", "items", "get"))
FIRST_NAMES = ("ReLU", "relu", "Adam", "StepLR")
"""What a name may be by which something is taken of one of torch's modules."""
OF_DICT = frozenset(("get", "pop"))
OF_MODULES = frozenset(("parameters", "named_parameters", "train", "eval", "state_dict"))
RESHAPES = frozenset(("permute",))
SAME = frozenset(("float", "to", "contiguous", "cuda", "cpu", "clone", "detach", "half", "double", "type_as"))


class Reader:
    """Gathers facts of one argument, in a function and in all that it is handed to."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.seen: set[tuple[int, str]] = set()

    def parameter(self, function: Any, name: str, this: Any = None, cls: Any = None, deep: int = 0) -> None:
        """The uses of a parameter."""
        found = node_of(function)
        function = written(function)
        function = inspect.unwrap(getattr(function, "__func__", function))
        if found is None or deep > DEEPEST or (id(found[1]), name) in self.seen:
            return
        self.seen.add((id(found[1]), name))
        Uses(self, found[0], Scope(function.__globals__, this, cls, deep, function)).of_name(found[1], name)


class Scope:
    """Where a name is looked up."""

    def __init__(self, names: dict[str, Any], this: Any, cls: Any, deep: int, function: Any = None) -> None:
        self.names = names
        self.this = this
        self.cls = cls if cls is not None else type(this) if this is not None else None
        self.deep = deep
        self.function = function

    def builds(self, where: ast.AST) -> bool:
        """Whether a function runs while an object is made."""
        name = getattr(where, "name", "")
        found = class_node(self.cls) if self.cls is not None and not callees.is_torch(self.cls) else None
        if found is None:
            return name == "__init__"
        own = methods(found[1])
        return name in reached_from("__init__", own) and name not in reached_from("forward", own)

    def find(self, node: ast.expr) -> Any:
        """What an expression of names and dots stands for; NOWHERE, if that isn't known."""
        if isinstance(node, ast.Name):
            if node.id == "self" and self.cls is not None:
                return self.this if self.this is not None else self.cls
            return self.names.get(node.id, getattr(builtins, node.id, NOWHERE))
        if isinstance(node, ast.Attribute):
            if inherits(node.value) and self.cls is not None:
                return self._inherited(node.attr)
            owner = self.find(node.value)
            if owner is NOWHERE:
                return NOWHERE
            try:
                return (
                    inspect.getattr_static(owner, node.attr)
                    if callees.lazy(owner)
                    else getattr(owner, node.attr)
                )
            except AttributeError:
                return NOWHERE
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            owner = self.find(node.value)
            if isinstance(owner, nn.ModuleList | nn.ModuleDict | list | dict | tuple):
                try:
                    return owner[node.slice.value]  # type: ignore[index]
                except (LookupError, TypeError):
                    return NOWHERE
        return NOWHERE

    def _inherited(self, name: str) -> Any:
        mro = self.cls.__mro__ if self.cls is not None else ()
        own = next((i for i, one in enumerate(mro) if one.__dict__.get("__init__") is self.function), 0)
        for one in mro[own + 1 :]:
            if name in one.__dict__:
                return one.__dict__[name]
        return NOWHERE


class Uses:
    """The uses in one text."""

    def __init__(self, reader: Reader, text: Text, scope: Scope) -> None:
        self.reader = reader
        self.facts = reader.facts
        self.text = text
        self.scope = scope

    def of_name(self, where: ast.AST, name: str) -> None:
        """Everywhere in a function that a name is read."""
        for node in ast.walk(where):
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
                self.of(node, where)

    def of(self, node: ast.expr, where: ast.AST) -> None:
        """One use."""
        above = self.text.above.get(node)
        kind = type(above).__name__
        handler = getattr(self, f"_{kind.lower()}", None)
        if handler is not None:
            handler(node, above, where)

    def _attribute(self, node: ast.expr, above: ast.Attribute, where: ast.AST) -> None:
        facts, name = self.facts, above.attr
        call = self.text.above.get(above)
        method = isinstance(call, ast.Call) and call.func is above
        if name in OF_DICT and method:
            facts.mapping += 1
            facts.keys += [one.value for one in call.args[:1] if isinstance(one, ast.Constant)]  # type: ignore[union-attr,misc]
        elif name in STRINGS and method:
            facts.roles.append("string")
        elif name == "append":
            facts.sequence += 1
        elif name in OF_MODULES and method:
            facts.module += 1
        elif hasattr(torch.Tensor, name):
            self._of_tensor(above, call if method else None, where)
        else:
            facts.attributes.append(name)

    def _of_tensor(self, above: ast.Attribute, call: Any, where: ast.AST) -> None:
        facts, name = self.facts, above.attr
        facts.tensor += name not in ("device", "dtype")
        outer = self.text.above.get(call or above)
        if name in ("shape", "size"):
            parts = outer.targets[0] if isinstance(outer, ast.Assign) and not (call and call.args) else None
            if isinstance(parts, ast.Tuple) and not any(isinstance(one, ast.Starred) for one in parts.elts):
                facts.has(len(parts.elts))
            at = call.args[0] if call and call.args else getattr(outer, "slice", None)
            if isinstance(at, ast.Constant) and isinstance(at.value, int):
                facts.least = max(facts.least, at.value + 1 if at.value >= 0 else -at.value)
        elif name in RESHAPES and call is not None and len(call.args) > 1:
            facts.has(len(call.args))
        elif name in SAME and isinstance(outer, ast.Assign | ast.Tuple) and call is not None:
            self.of(call, where)
        elif name == "backward" and call is not None:
            facts.root += 1
        elif name in ("long", "int"):
            facts.index += 1
        elif name == "bool" or (name in ("masked_fill", "masked_fill_", "where") and call is None):
            facts.mask += 1

    def _subscript(self, node: ast.expr, above: ast.Subscript, where: ast.AST) -> None:
        facts, inner = self.facts, above.slice
        if node is inner:
            owner = self.scope.find(above.value)
            keys = list(owner.keys()) if isinstance(owner, dict | nn.ModuleDict) else []
            if keys and all(isinstance(key, str) for key in keys):
                facts.strings += keys
            else:
                facts.index += 1
        elif isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            facts.mapping += 1  # what is read by a key is made when it is read
        elif isinstance(inner, ast.Tuple):
            facts.tensor += 1
            missing = any(isinstance(one, ast.Constant) and one.value in (..., None) for one in inner.elts)
            facts.least = max(facts.least, 0 if missing else len(inner.elts))
        elif isinstance(inner, ast.Constant) and isinstance(inner.value, int):
            facts.sequence += 1
            facts.unpacked = max(facts.unpacked, inner.value + 1 if inner.value >= 0 else -inner.value)
            self._item(above, where)
        else:
            facts.sequence += 1

    def _item(self, node: ast.expr, where: ast.AST) -> None:
        """An item of it is used as this."""
        self.facts.items = self.facts.items or Facts()
        inner = Reader(self.facts.items)
        inner.seen = self.reader.seen
        Uses(inner, self.text, self.scope).of(node, where)

    def _call(self, node: ast.expr, above: ast.Call, where: ast.AST) -> None:
        if above.func is node:
            self.facts.called.append(len(above.args) + len(above.keywords))
            self.facts.spread += any(isinstance(one, ast.Starred) for one in above.args)
            self.facts.built += self.scope.builds(where)
            self.facts.result = self.facts.result or Facts()
            inner = Reader(self.facts.result)
            inner.seen = self.reader.seen
            Uses(inner, self.text, self.scope).of(above, where)
            return
        if not self._turns(node, above, where):
            self._handed(above, above.args.index(node), "", where)

    def _keyword(self, node: ast.expr, above: ast.keyword, where: ast.AST) -> None:
        call = self.text.above.get(above)
        if above.arg is None:
            self.facts.mapping += 1
        elif isinstance(call, ast.Call):
            self._handed(call, -1, above.arg, where)

    def _handed(self, call: ast.Call, position: int, name: str, where: ast.AST) -> None:
        """It is an argument of a call."""
        if isinstance(call.func, ast.Attribute) and self.scope.find(call.func) is NOWHERE:
            callees.method(call.func.attr, position, self.facts, len(call.args) > 1)
            return
        if name == "device":
            self.facts.device += 1
            return
        callee = self.scope.find(call.func)
        if callee is getattr and position == 1:
            owner = self.scope.find(call.args[0])
            self.facts.strings += [one for one in NAMES if hasattr(owner, one)][:1]
            return
        if callee is NOWHERE or any(isinstance(one, ast.Starred) for one in call.args[: max(position, 0)]):
            return
        outer = self.text.above.get(call)
        if callees.through(callee) and isinstance(outer, ast.Assign):
            self._assign(call, outer, where)
        own = isinstance(call.func, ast.Attribute) and of_own(call.func.value)
        handed = callees.Handed(callee, position, name, self.scope.deep, self.scope.cls if own else None)
        callees.told(self.reader, handed)

    def _assign(self, node: ast.expr, above: ast.Assign, where: ast.AST) -> None:
        for target in above.targets:
            if isinstance(target, ast.Tuple | ast.List):
                self.facts.sequence += 1
                self.facts.unpacked = max(self.facts.unpacked, len(target.elts))
                for at, one in enumerate(target.elts):
                    if isinstance(one, ast.Name):
                        self._named(self.facts.part(at), where, one.id)
            elif isinstance(target, ast.Name):
                self._alias(where, target.id, above)
            elif isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self":
                self._kept(target.attr)

    def _other_item(self, where: ast.AST, name: str) -> None:
        self.facts.items = self.facts.items or Facts()
        self._named(self.facts.items, where, name)

    def _named(self, facts: Facts, where: ast.AST, name: str) -> None:
        """A part of it is known by a name."""
        inner = Reader(facts)
        inner.seen = self.reader.seen
        Uses(inner, self.text, self.scope)._alias(where, name, None)

    def _alias(self, where: ast.AST, name: str, since: ast.AST | None) -> None:
        """It is known by another name from here on."""
        key = (id(where), name)
        if key not in self.reader.seen:
            self.reader.seen.add(key)
            self.of_name(where, name)

    def _kept(self, name: str) -> None:
        """The object keeps it: all that its class does with the attribute."""
        cls = self.scope.cls
        for one in cls.__mro__ if cls is not None else ():
            found = class_node(one) if not callees.is_torch(one) else None
            key = (id(found[1]) if found else 0, f"self.{name}")
            if found is None or key in self.reader.seen:
                continue
            self.reader.seen.add(key)
            inner = Uses(self.reader, found[0], self.scope)
            for where, node in reads(found[1], name):
                inner.of(node, where)

    def _binop(self, node: ast.expr, above: ast.BinOp, where: ast.AST) -> None:
        if isinstance(above.op, ast.MatMult):
            self.facts.tensor += 1
        elif isinstance(above.op, ast.FloorDiv | ast.Mod):
            self.facts.roles.append("heads" if node is above.right else "width")
        elif isinstance(above.op, ast.Pow):
            self.facts.roles.append("heads")
        else:
            self.facts.number += 1
            outer = self.text.above.get(above)
            if isinstance(outer, ast.Call | ast.keyword | ast.BinOp) or (
                isinstance(outer, ast.Assign) and not self.facts.tensor
            ):
                self.of(above, where)

    def _compare(self, node: ast.expr, above: ast.Compare, where: ast.AST) -> None:
        for other in (above.left, *above.comparators):
            inner = other.elts if isinstance(other, ast.Tuple | ast.List | ast.Set) else [other]
            values = [one.value for one in inner if isinstance(one, ast.Constant)]
            self.facts.optional = self.facts.optional or None in values
            self.facts.strings += [value for value in values if isinstance(value, str)]
            self.facts.number += sum(type(value) in (int, float) for value in values)
            self.facts.constants += [value for value in values if type(value) is int]

    def _boolop(self, node: ast.expr, above: ast.BoolOp, where: ast.AST) -> None:
        self.facts.flag += 1

    def _unaryop(self, node: ast.expr, above: ast.UnaryOp, where: ast.AST) -> None:
        self.facts.flag += isinstance(above.op, ast.Not)

    def _if(self, node: ast.expr, above: ast.If, where: ast.AST) -> None:
        self.facts.flag += node is above.test

    def _ifexp(self, node: ast.expr, above: ast.IfExp, where: ast.AST) -> None:
        if node is above.test:
            self.facts.flag += 1
        else:
            self.of(above, where)

    def _for(self, node: ast.expr, above: ast.For, where: ast.AST) -> None:
        self._taken(above.target, where)

    def _turns(self, node: ast.expr, call: ast.Call, where: ast.AST) -> bool:
        """What is put around it gives its items, to a loop or to a name: whether it is that."""
        outside: list[tuple[Any, int]] = []
        inner: ast.AST = node
        above: Any = call
        while isinstance(above, ast.Call) and inner in above.args:
            outside.append((self.scope.find(above.func), above.args.index(inner)))
            inner, above = above, self.text.above.get(above)
        if not all(callees.gives_items(callee) for callee, _ in outside):
            return False
        if isinstance(above, ast.For | ast.comprehension) and inner is above.iter:
            self._items_of(above.target, outside, where)
            return True
        return self._kept_items(above, outside, where)

    def _items_of(self, target: ast.expr | None, outside: list[tuple[Any, int]], where: ast.AST) -> None:
        """What a loop calls its items, behind what counts them and puts others beside them."""
        for callee, at in reversed(outside):
            if callee in (enumerate, zip):
                place = 1 if callee is enumerate else at
                parts = target.elts if isinstance(target, ast.Tuple) else []
                target = parts[place] if place < len(parts) else None
        if target is not None:
            self._taken(target, where)

    def _kept_items(self, node: ast.AST, outside: list[tuple[Any, int]], where: ast.AST) -> bool:
        """A name that is looped over later, as `bar = tqdm(loader)`: whether it is that."""
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "optional_vars", None)
        loops = (one.iter for one in ast.walk(where) if isinstance(one, ast.For | ast.comprehension))
        named = {each.id for one in loops for each in ast.walk(one) if isinstance(each, ast.Name)}
        counted = any(one in (enumerate, zip) for one, _ in outside)
        if not isinstance(target, ast.Name) or target.id not in named or counted:
            return False
        self._alias(where, target.id, node)
        return True

    def _taken(self, target: ast.expr, where: ast.AST) -> None:
        """Its items are known by a name, or taken apart."""
        self.facts.sequence += 1
        if isinstance(target, ast.Name):
            self._other_item(where, target.id)
        elif isinstance(target, ast.Tuple):
            self.facts.items = self.facts.items or Facts()
            self.facts.items.sequence += 1
            self.facts.items.unpacked = len(target.elts)
            for at, one in enumerate(target.elts):
                if isinstance(one, ast.Name):
                    self._named(self.facts.items.part(at), where, one.id)

    def _comprehension(self, node: ast.expr, above: ast.comprehension, where: ast.AST) -> None:
        self._taken(above.target, where)

    def _starred(self, node: ast.expr, above: ast.Starred, where: ast.AST) -> None:
        self.facts.sequence += 1

    def _tuple(self, node: ast.expr, above: ast.Tuple, where: ast.AST) -> None:
        """Of sizes, or of what is put together: as its neighbours would be used."""
        outer = self.text.above.get(above)
        target = outer.targets[0] if isinstance(outer, ast.Assign) else None
        if isinstance(target, ast.Tuple) and len(target.elts) == len(above.elts):
            other = target.elts[above.elts.index(node)]
            if isinstance(other, ast.Name):
                self._alias(where, other.id, above)
            elif isinstance(other, ast.Attribute) and ast.unparse(other.value) == "self":
                self._kept(other.attr)
        callee = self.scope.find(outer.func) if isinstance(outer, ast.Call) else NOWHERE
        sized = isinstance(outer, ast.Call) and outer.args[:1] == [above] and len(above.elts) > 1
        if sized and callee is NOWHERE and isinstance(outer.func, ast.Attribute):  # type: ignore[union-attr]
            callees.method(outer.func.attr, above.elts.index(node), self.facts, more=True)  # type: ignore[union-attr]
            return
        if callees.gathers(callee):
            self.facts.tensor += 1
        elif isinstance(outer, ast.Call) and callee not in callees.SEQUENCES:
            self.of(above, where)

    _list = _tuple

    def _name(self, node: ast.expr, above: ast.AST, where: ast.AST) -> None:
        """A name is above nothing."""


def inherits(node: ast.expr) -> bool:
    """`super()` or `super(Net, self)`."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"


def of_own(node: ast.expr) -> bool:
    """Whether a method of the object itself is called on it, be it an inherited one."""
    return inherits(node) or (isinstance(node, ast.Name) and node.id == "self")


def reads(cls: ast.ClassDef, name: str) -> Iterator[tuple[ast.AST, ast.expr]]:
    """Where the methods of a class read an attribute of self."""
    for function in cls.body:
        if isinstance(function, Function):
            for node in ast.walk(function):
                if (
                    isinstance(node, ast.Attribute)
                    and node.attr == name
                    and isinstance(node.ctx, ast.Load)
                    and isinstance(node.value, ast.Name)
                    and node.value.id == "self"
                ):
                    yield function, node
