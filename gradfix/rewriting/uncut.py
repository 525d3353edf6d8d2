"""Takes conversions off a tensor: the expression that keeps the graph where a cut or a plain number stood."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import libcst as cst

from gradfix.rewriting.calls import last_name
from gradfix.rewriting.names import walk
from gradfix.rewriting.numpytwins import (
    SAME_FOR_TENSORS,
    TWINS,
    NoTwinError,
    array_function,
    function_takes,
    method_takes,
)
from gradfix.rewriting.seats import dotted, one_line
from gradfix.tape.effects.operations import also_in_place, having, told, where
from gradfix.tree import Tree, children

CUTS = also_in_place(having("detaches")) | {"requires_grad_"}
NUMBERS = having("converts")
WRAPPERS = having("rebuilds")
OF_A_LIST = having("of-a-list")
CASTS = {name: told("dtype")[name] for name in WRAPPERS & where("dtype", "double", "half")}


@dataclass(frozen=True)
class Uncut:
    """Rewrites an expression so that the tensors in it keep their graph.

    `cuts` are the nodes that lost the graph; `carried` are the names that hold their results on the way to
    the loss, `lists` those of them that are lists, and `inline` what may be written in place of a name.
    """

    tree: Tree
    cuts: Collection[cst.CSTNode]
    carried: Collection[str] = ()
    lists: Collection[str] = ()
    inline: Mapping[str, cst.BaseExpression] = field(default_factory=dict)

    def __call__(self, node: cst.BaseExpression) -> cst.BaseExpression:
        """The expression with its conversions off, wherever the lost graph passes through it."""
        if not self.hot(node):
            return freed(node)
        for attempt in (self._peeled, self._twin, self._method):
            found = attempt(node)
            if found is not None:
                return found
        return self._inside(node)

    def hot(self, node: cst.CSTNode) -> bool:
        """Whether the cut value passes through a node."""
        if isinstance(node, cst.Call) and dotted(node.func) == "len":
            return False
        if node in self.cuts or (isinstance(node, cst.Name) and node.value in self.carried):
            return True
        return any(self.hot(each) for each in children(node))

    def _peeled(self, node: cst.BaseExpression) -> cst.BaseExpression | None:
        listed = self._stacked(node)
        if listed is not None:
            return listed
        under = unwrapped(node)
        if under is None:
            return None
        inner = bare(under) if node in self.cuts else self(under)
        return _cast(node, _keeping_brackets(node, inner))

    def _stacked(self, node: cst.BaseExpression) -> cst.BaseExpression | None:
        """`torch.stack` of a list, for a tensor built from one."""
        if not isinstance(node, cst.Call) or last_name(node.func) not in OF_A_LIST or not node.args:
            return None
        entries = node.args[0].value
        if isinstance(entries, (cst.List, cst.Tuple)):
            built = self._rows(entries)
        elif isinstance(entries, (cst.ListComp, cst.GeneratorExp)):
            built = self._stack(entries.with_changes(elt=self._entry(entries.elt)))
        elif isinstance(entries, cst.Name) and entries.value in self.lists:
            built = self._stack(entries)
        else:
            return None
        return _cast(node, built)

    def _rows(self, entries: cst.List | cst.Tuple) -> cst.BaseExpression:
        if any(isinstance(element, cst.StarredElement) for element in entries.elements):
            raise NoTwinError("a starred entry hides how many tensors there are")
        rows = [element.with_changes(value=self._row(element.value)) for element in entries.elements]
        return self._stack(entries.with_changes(elements=rows))

    def _row(self, value: cst.BaseExpression) -> cst.BaseExpression:
        if all_numbers(value):
            return cst.Call(self.torch("tensor"), [cst.Arg(value)])
        return self._rows(value) if isinstance(value, (cst.List, cst.Tuple)) else self._entry(value)

    def _entry(self, value: cst.BaseExpression) -> cst.BaseExpression:
        return self(value) if self.hot(value) else freed(value)

    def _stack(self, entries: cst.BaseExpression) -> cst.Call:
        return cst.Call(self.torch("stack"), [cst.Arg(entries)])

    def torch(self, name: str) -> cst.BaseExpression:
        if self.tree.torch is None:
            raise NoTwinError("torch is not imported under a name of its own")
        return cst.parse_expression(f"{self.tree.torch}.{name}")

    def _twin(self, node: cst.BaseExpression) -> cst.BaseExpression | None:
        """The torch function for one of numpy or math."""
        if not isinstance(node, cst.Call):
            return None
        room, name = array_function(self.tree, node.func)
        if not room:
            return None
        if name not in TWINS:
            raise NoTwinError(f"`{dotted(node.func)}` has no exact torch twin here")
        if not function_takes(name, node.args):
            raise NoTwinError(f"torch's twin of `{dotted(node.func)}` does not take these arguments")
        args = [each.with_changes(value=self._argument(each.value)) for each in node.args]
        return node.with_changes(func=self.torch(TWINS[name]), args=args)

    def _argument(self, value: cst.BaseExpression) -> cst.BaseExpression:
        if isinstance(value, cst.Name) and value.value in self.lists:
            return self._stack(value)
        if isinstance(value, cst.List):
            return self._rows(value)
        if isinstance(value, cst.ListComp):
            return self._stack(value.with_changes(elt=self._entry(value.elt)))
        return self(value)

    def _method(self, node: cst.BaseExpression) -> cst.BaseExpression | None:
        """A method on a converted value: the tensor has the same, or there is no twin."""
        if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
            return None
        if not self.hot(node.func.value):
            return None
        name = node.func.attr.value
        if name not in SAME_FOR_TENSORS:
            raise NoTwinError(f"`.{name}()` has no exact torch twin here")
        if not method_takes(name, node.args, self._array(node.func.value)):
            raise NoTwinError(f"a tensor's `.{name}()` does not take these arguments alike")
        return _on(node, self(node.func.value))

    def _array(self, value: cst.BaseExpression) -> bool:
        """Whether a value may be one of numpy's, and not a tensor that was merely cut off."""
        for each in walk(value):
            if isinstance(each, cst.Name) and each.value in self.carried:
                return True
            if isinstance(each, cst.Call) and (last_name(each.func) == "numpy" or self._of_array(each.func)):
                return True
        return False

    def _of_array(self, func: cst.BaseExpression) -> bool:
        return bool(array_function(self.tree, func)[0])

    def _inside(self, node: cst.BaseExpression) -> cst.BaseExpression:
        if isinstance(node, cst.BinaryOperation):
            return node.with_changes(left=self(node.left), right=self(node.right))
        if isinstance(node, cst.UnaryOperation):
            return node.with_changes(expression=self(node.expression))
        if isinstance(node, (cst.ListComp, cst.GeneratorExp)):
            return node.with_changes(elt=self(node.elt))
        if isinstance(node, cst.Subscript):
            return node.with_changes(value=self(node.value))
        if isinstance(node, (cst.List, cst.Tuple)):
            return node.with_changes(elements=[e.with_changes(value=self(e.value)) for e in node.elements])
        if isinstance(node, cst.Call) and dotted(node.func) in {"sum", "abs"}:
            return node.with_changes(args=[a.with_changes(value=self(a.value)) for a in node.args])
        if isinstance(node, cst.Name):
            return self.inline.get(node.value, node)
        return self._elsewhere(node)

    def _elsewhere(self, node: cst.BaseExpression) -> cst.BaseExpression:
        """An expression that merely holds the cut, as an argument for instance."""
        held = next((each for each in walk(node) if each in self.cuts), node)
        if held is node:
            raise NoTwinError(f"gradfix cannot rewrite `{one_line(self.tree.code(node))}`")
        assert isinstance(held, cst.BaseExpression)
        replaced = node.deep_replace(held, self(held))
        assert isinstance(replaced, cst.BaseExpression)
        return replaced


def bare(node: cst.BaseExpression) -> cst.BaseExpression:
    """A tensor without the cuts that stand directly on it: `x.detach().cpu()` is `x.cpu()`."""
    under = unwrapped(node)
    if under is not None:
        return node if _new_leaf(node, under) else bare(under)
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        kept = node.func.value
        found = bare(kept) if node.func.attr.value in SAME_FOR_TENSORS else kept
        return node if found is kept else _on(node, found)
    return node


def _new_leaf(node: cst.BaseExpression, under: cst.BaseExpression) -> bool:
    """Whether a value begins a graph: `nn.Parameter(x)`, or what is taken out of one to begin another,
    `x.detach().requires_grad_()`."""
    if not isinstance(node, cst.Call):
        return False
    name = last_name(node.func)
    told = any(arg.keyword is not None and arg.keyword.value == "requires_grad" for arg in node.args)
    if name == "Parameter" or told or (name in WRAPPERS and all_numbers(under)):
        return True
    return name == "requires_grad_" and unwrapped(under) is not None


def unwrapped(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """What stands directly under a conversion or a cut; None for any other expression."""
    if isinstance(node, cst.Attribute):
        return node.value if node.attr.value == "data" else None
    if not isinstance(node, cst.Call):
        return None
    name = last_name(node.func)
    if isinstance(node.func, cst.Attribute) and name in CUTS | NUMBERS and not _torch_function(node.func):
        return node.func.value
    first = node.args[0].value if node.args and node.args[0].keyword is None else None
    bare_number = isinstance(node.func, cst.Name) and name == "float"
    return first if bare_number or name in WRAPPERS else None


def freed(node: cst.BaseExpression) -> cst.BaseExpression:
    """A sum of plain numbers beside the cut one, each as the tensor that it was read from."""
    if isinstance(node, cst.BinaryOperation):
        left, right = freed(node.left), freed(node.right)
        same = left is node.left and right is node.right
        return node if same else node.with_changes(left=left, right=right)
    if isinstance(node, cst.UnaryOperation):
        inner = freed(node.expression)
        return node if inner is node.expression else node.with_changes(expression=inner)
    read = isinstance(node, cst.Call) and last_name(node.func) in {"item", "float"}
    under = unwrapped(node) if read else None
    return node if under is None or all_numbers(under) else _keeping_brackets(node, bare(under))


def method_of(above: cst.CSTNode, below: cst.BaseExpression) -> bool:
    return isinstance(above, cst.Call) and isinstance(above.func, cst.Attribute) and above.func.value is below


def all_numbers(node: cst.BaseExpression) -> bool:
    """Whether an entry is a literal number, or a list of such."""
    if isinstance(node, (cst.List, cst.Tuple)):
        return all(all_numbers(element.value) for element in node.elements)
    if isinstance(node, cst.UnaryOperation):
        return all_numbers(node.expression)
    return isinstance(node, (cst.Integer, cst.Float))


def _torch_function(func: cst.Attribute) -> bool:
    """`torch.detach(x)` takes its tensor as an argument."""
    return dotted(func.value) in {"torch", "th"}


def on(method: cst.Attribute, receiver: cst.BaseExpression) -> cst.Call:
    """A method called on a value, in brackets where an operator would come apart."""
    closed = isinstance(receiver, (cst.Name, cst.Attribute, cst.Call, cst.Subscript)) or receiver.lpar
    if not closed:
        receiver = receiver.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return cst.Call(method.with_changes(value=receiver))


def _on(call: cst.Call, receiver: cst.BaseExpression) -> cst.Call:
    """The same call on another value."""
    assert isinstance(call.func, cst.Attribute)
    return call.with_changes(func=on(call.func, receiver).func)


def _keeping_brackets(old: cst.BaseExpression, new: cst.BaseExpression) -> cst.BaseExpression:
    return new.with_changes(lpar=old.lpar, rpar=old.rpar) if old.lpar and not new.lpar else new


def _cast(old: cst.BaseExpression, new: cst.BaseExpression) -> cst.BaseExpression:
    """Keep the dtype and the device that a constructor was given."""
    if not isinstance(old, cst.Call):
        return new
    cast = CASTS.get(last_name(old.func))
    if cast is not None:
        return _call_on(new, cast, ())
    kept = [arg for arg in old.args if arg.keyword is not None and arg.keyword.value in {"dtype", "device"}]
    if not kept or last_name(old.func) not in WRAPPERS:
        return new
    alone = [kept[0].with_changes(keyword=None, equal=cst.MaybeSentinel.DEFAULT)] if len(kept) == 1 else kept
    return _call_on(new, "to", [_on_one_line(arg) for arg in alone])


def _on_one_line(arg: cst.Arg) -> cst.Arg:
    return arg.with_changes(comma=cst.MaybeSentinel.DEFAULT, whitespace_after_arg=cst.SimpleWhitespace(""))


def _call_on(value: cst.BaseExpression, method: str, args: Collection[cst.Arg]) -> cst.Call:
    return on(cst.Attribute(value, cst.Name(method)), value).with_changes(args=list(args))
