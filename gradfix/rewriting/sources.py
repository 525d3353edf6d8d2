"""What a rebuilt tensor was computed from: conversions in its expression and behind the names it reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import libcst as cst

from gradfix.rewriting.calls import last_name
from gradfix.rewriting.names import binds, walk
from gradfix.rewriting.numpytwins import SAME_FOR_TENSORS, NoTwinError, array_function, imported
from gradfix.rewriting.seats import appended, dotted, targets
from gradfix.rewriting.uncut import OF_A_LIST, WRAPPERS, Uncut, all_numbers, unwrapped
from gradfix.tree import Tree

GATHERING = {"sum", "abs", "max", "min"}
LEAVES = {"Parameter", "requires_grad_"}
SEQUENCES = (cst.List, cst.Tuple)
COMPREHENSIONS = (cst.ListComp, cst.GeneratorExp)


@dataclass
class Sources:
    """The conversions behind an expression, and the names through which they come."""

    tree: Tree
    built: cst.BaseExpression
    cuts: set[cst.BaseExpression] = field(default_factory=set)
    lists: set[str] = field(default_factory=set)
    made: dict[str, list[cst.BaseExpression]] = field(default_factory=dict)
    """For each name that carries a converted value: what is assigned, added or appended to it."""
    seen: set[str] = field(default_factory=set)

    def collect(self, node: cst.BaseExpression, named: bool = False) -> bool:
        """Find the conversions behind an expression, or behind a name that it reads; False for none."""
        before = len(self.cuts)
        atoms = list(self._atoms(node))
        for atom in atoms:
            under = unwrapped(atom)
            if _of_leaf(atom) or (named and self._of_data(atom, under)):
                continue
            if isinstance(under, cst.Name) and _of_a_list(atom):
                self._copied(atom, under.value)
            elif under is not None and not all_numbers(under):
                self.cuts.add(atom)
            elif isinstance(atom, cst.Name):
                self._name(atom.value)
        if len(self.cuts) == before:
            self.cuts |= {each for each in walk(node) if self._of_math(each) and isinstance(each, cst.Call)}
        return len(self.cuts) > before

    def swaps(self) -> tuple[dict[cst.BaseExpression, cst.BaseExpression], Uncut]:
        """What the definitions of the carrying names become, and how to rewrite what reads them."""
        inline: dict[str, cst.BaseExpression] = {}
        uncut = Uncut(self.tree, frozenset(self.cuts), frozenset(self.made), frozenset(self.lists), inline)
        swaps: dict[cst.BaseExpression, cst.BaseExpression] = {}
        for name, values in self.made.items():
            kept = uncut(values[0]) if len(values) == 1 and name not in self.lists else None
            if kept is not None and dotted(kept) and self._still(kept, name, values[0]):
                inline[name] = kept
            else:
                swaps |= {value: uncut(value) for value in values if uncut.hot(value)}
        return swaps, uncut

    def _atoms(self, node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
        """The expressions that a value is computed from by arithmetic and by numpy alone."""
        inner = list(self._operands(node))
        if not inner:
            yield node
        for each in inner:
            yield from self._atoms(each)

    def _operands(self, node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
        if isinstance(node, cst.BinaryOperation):
            yield from (node.left, node.right)
        elif isinstance(node, cst.UnaryOperation):
            yield node.expression
        elif isinstance(node, SEQUENCES):
            yield from (element.value for element in node.elements)
        elif isinstance(node, COMPREHENSIONS):
            yield node.elt
        elif isinstance(node, cst.Subscript):
            yield node.value
        elif isinstance(node, cst.Call) and unwrapped(node) is None:
            yield from self._arguments(node)

    def _arguments(self, call: cst.Call) -> Iterator[cst.BaseExpression]:
        if array_function(self.tree, call.func)[0] or dotted(call.func) in GATHERING:
            yield from (arg.value for arg in call.args if arg.keyword is None)
        elif isinstance(call.func, cst.Attribute) and call.func.attr.value in SAME_FOR_TENSORS:
            yield call.func.value

    def _of_math(self, node: cst.CSTNode) -> bool:
        if not isinstance(node, cst.Call) or array_function(self.tree, node.func)[0] != "math":
            return False
        return not all(all_numbers(arg.value) for arg in node.args)

    def _of_data(self, atom: cst.BaseExpression, under: cst.BaseExpression | None) -> bool:
        """Whether a tensor is made of what never had a graph, as far as one can see from its text."""
        rebuilt = isinstance(atom, cst.Call) and last_name(atom.func) in WRAPPERS
        return rebuilt and under is not None and not Sources(self.tree, atom).collect(under)

    def _copied(self, atom: cst.BaseExpression, name: str) -> None:
        """Look behind a tensor that is made of what a name holds: another tensor, or a list of numbers."""
        values, is_list = self._reaching(name)
        if not is_list:
            if not values or any(self._by_function(value) for value in values):
                raise NoTwinError(f"gradfix cannot see whether `{name}` is a tensor or a list of numbers")
            self.cuts.add(atom)
            return
        self._name(name)
        entries = (entry for value in values for entry in self._entries(value))
        if name not in self.lists and not all(map(_plain, entries)):
            raise NoTwinError(f"gradfix cannot see whether `{name}` holds tensors or numbers")

    def _by_function(self, value: cst.BaseExpression) -> bool:
        """Whether a value is what a function returns, which may be a list."""
        if not isinstance(value, cst.Call) or not isinstance(value.func, cst.Name):
            return False
        defined = (node.name.value for node in walk(self.tree.module) if isinstance(node, cst.FunctionDef))
        return value.func.value in {*defined, *imported(self.tree)}

    def _name(self, name: str) -> None:
        """Look behind a name: at what is assigned, added and appended to it before the tensor is built."""
        if name in self.seen:
            return
        self.seen.add(name)
        values, is_list = self._reaching(name)
        entries = [entry for value in values for entry in (self._entries(value) if is_list else (value,))]
        found = [self.collect(entry, named=True) for entry in entries]
        if any(found):
            self.made[name] = values
            if is_list:
                self.lists.add(name)

    def _entries(self, value: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
        yield from self._operands(value) if isinstance(value, (cst.List, cst.ListComp)) else (value,)

    def _reaching(self, name: str) -> tuple[list[cst.BaseExpression], bool]:
        """The values that a name is made of, and whether it is a list."""
        values: list[cst.BaseExpression] = []
        is_list = False
        last = self.tree.small_statement(self.built)
        for small in self._statements():
            if small is last:
                break
            value = assigned_value(small, name)
            if value is not None:
                values, is_list = [value], isinstance(value, (cst.List, cst.ListComp))
            elif isinstance(small, cst.Assign) and name in binds(small):
                values, is_list = [], False
            elif isinstance(small, cst.AugAssign) and name in targets(small):
                values.append(small.value)
            else:
                values += [entry for receiver, entry in appended(small) if receiver == name]
        return values, is_list

    def _statements(self) -> Iterator[cst.BaseSmallStatement]:
        scope = self.tree.function(self.built) or self.tree.module
        yield from (node for node in walk(scope) if isinstance(node, cst.BaseSmallStatement))

    def _still(self, kept: cst.BaseExpression, name: str, value: cst.BaseExpression) -> bool:
        """Whether an expression means the same where the tensor is built as where the name was assigned."""
        root = dotted(kept).partition(".")[0]
        first, last = self.tree.small_statement(value), self.tree.small_statement(self.built)
        between = False
        for small in self._statements():
            between = between or small is first
            if small is last:
                return True
            if between and root in binds(small):
                return False
        return False


def assigned_value(small: cst.CSTNode, name: str) -> cst.BaseExpression | None:
    """What an assignment gives to a name, alone or as one of several: `losses, weights = [], []`."""
    if not isinstance(small, cst.Assign):
        return None
    if name in targets(small):
        return small.value
    for each in small.targets:
        if isinstance(each.target, cst.Tuple) and isinstance(small.value, cst.Tuple):
            pairs = zip(each.target.elements, small.value.elements, strict=False)
            for own, given in pairs:
                if isinstance(own.value, cst.Name) and own.value.value == name:
                    return given.value
    return None


def _of_leaf(node: cst.BaseExpression) -> bool:
    """Whether an expression makes a leaf that is to learn: gradients end there, none was lost before."""
    if not isinstance(node, cst.Call):
        return False
    told = any(arg.keyword is not None and arg.keyword.value == "requires_grad" for arg in node.args)
    return told or last_name(node.func) in LEAVES


def _of_a_list(node: cst.BaseExpression) -> bool:
    """Whether a conversion is one that takes lists as well as tensors."""
    return isinstance(node, cst.Call) and last_name(node.func) in OF_A_LIST


def _plain(entry: cst.BaseExpression) -> bool:
    """Whether an entry is plainly a number, whichever way a condition goes."""
    if isinstance(entry, cst.IfExp):
        return _plain(entry.body) and _plain(entry.orelse)
    return all_numbers(entry)
