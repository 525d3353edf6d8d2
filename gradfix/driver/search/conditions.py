"""On what it hangs whether lines are reached: the tests around and before them, and who sets what."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from gradfix.driver.search.sources import Function, Text

LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


@dataclass(slots=True)
class Conditions:
    """The names on which it hangs, and what they are compared to."""

    names: set[str] = field(default_factory=set)
    constants: dict[str, list[object]] = field(default_factory=dict)

    def test(self, node: ast.expr) -> None:
        """One more test."""
        self.names |= set(words(node))
        for one in ast.walk(node):
            if isinstance(one, ast.Compare):
                sides = [one.left, *one.comparators]
                values = [
                    each.value for side in sides for each in _inner(side) if isinstance(each, ast.Constant)
                ]
                for name in (word for side in sides for word in words(side)):
                    self.constants.setdefault(name, []).extend(values)


def _inner(side: ast.expr) -> Sequence[ast.expr]:
    return side.elts if isinstance(side, ast.Tuple | ast.List | ast.Set) else [side]


def words(node: ast.AST) -> Iterator[str]:
    """The names in an expression, of variables and of attributes."""
    for one in ast.walk(node):
        if isinstance(one, ast.Name):
            yield one.id
        elif isinstance(one, ast.Attribute):
            yield one.attr
        elif isinstance(one, ast.Subscript) and isinstance(one.slice, ast.Constant):
            yield str(one.slice.value)


def conditions(text: Text, lines: Sequence[int]) -> Conditions:
    """What has to be so that these lines are reached."""
    found = Conditions()
    for line in lines:
        functions = text.covering(line, Function)
        for node in text.covering(line, (ast.If, ast.While, ast.IfExp)):
            found.test(node.test)
        for function in functions:
            for node in ast.walk(function):
                early = isinstance(node, ast.If) and (node.end_lineno or 0) < line
                if early and any(isinstance(one, LEAVES) for one in ast.walk(node)):
                    found.test(node.test)  # type: ignore[attr-defined]
        for cls in text.covering(line, ast.ClassDef):
            _set(found, cls)
        for function in functions:
            _set(found, function)
    return found


def _set(found: Conditions, where: ast.AST) -> None:
    """Who sets what is tested: those names count as well."""
    assigned = [node for node in ast.walk(where) if isinstance(node, ast.Assign)]
    for _ in range(3):
        for node in assigned:
            for target in node.targets:
                for name in {*words(target)} & found.names - {"self"}:
                    more = set(words(node.value)) - {"self"}
                    for other in more - found.names:
                        found.constants.setdefault(other, []).extend(found.constants.get(name, ()))
                    found.names |= more
