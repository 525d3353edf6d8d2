"""What a project gives for the names of its options: parsers, classes of constants, dicts, yaml."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from gradfix.driver.values import Items, Number, Value

LARGE, PARTS = 256, 64
"""From here on a number that has so many parts is a width, of which a fourth does."""
MOST = 4096
SWITCHES = {"store_true": False, "store_false": True}
GPU = re.compile(r"(?:cuda|gpu)(?::\d+)?")
ENTRY = re.compile(r"^[ \t]*([A-Za-z_]\w*):[ \t]+([^\s#{\[&*|>][^#\n]*?)[ \t]*(?:#.*)?$", re.MULTILINE)
WORDS = {"true": True, "false": False}


def options(trees: Iterable[ast.Module], texts: Iterable[str]) -> dict[str, Value]:
    """Names with what is given for them, by the first who says it: programs before files beside them."""
    found: dict[str, Value] = {}
    for tree in trees:
        for name, value in said(tree):
            if value is not None:
                found.setdefault(name, value)
    for text in texts:
        for name, word in ENTRY.findall(text):
            found.setdefault(name, of_word(word.strip("'\"")))
    return found


def said(tree: ast.Module) -> Iterator[tuple[str, Value | None]]:
    """All names of one program: those of its parsers first."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add_argument":
            yield from of_parser(node)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and constant(node):
            for one in ast.walk(node):
                yield from of_statement(one)
    for one in tree.body:
        yield from of_dict(one)
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Attribute):
            yield one.targets[0].attr, plain(one.value)


def of_parser(call: ast.Call) -> Iterator[tuple[str, Value | None]]:
    """One option of a program."""
    flags = [one.value for one in call.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    given = {one.arg: one.value for one in call.keywords}
    if not flags:
        return
    name = max(flags, key=len).lstrip("-").replace("-", "_")
    action = given.get("action")
    if "default" in given:
        yield name, plain(given["default"])
    elif isinstance(action, ast.Constant) and action.value in SWITCHES:
        yield name, Number(SWITCHES[action.value])


def constant(node: ast.ClassDef) -> bool:
    """Whether a class does nothing but hold values: it assigns, in its body or while it is made."""
    for one in node.body:
        inner = one.body if isinstance(one, ast.FunctionDef) and one.name == "__init__" else [one]
        if not all(isinstance(each, ast.Assign | ast.AnnAssign | ast.Expr | ast.Pass) for each in inner):
            return False
    return True


def of_statement(node: ast.AST) -> Iterator[tuple[str, Value | None]]:
    """`width = 4`, `width: int = 4`, `self.width = 4`."""
    if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        name = getattr(target, "id", None) or getattr(target, "attr", None)
        if name:
            yield name, plain(node.value)


def of_dict(node: ast.stmt) -> Iterator[tuple[str, Value | None]]:
    """The entries of a dict that a module has."""
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
        for one in ast.walk(node.value):
            if isinstance(one, ast.Dict):
                for key, value in zip(one.keys, one.values, strict=True):
                    if isinstance(key, ast.Constant) and isinstance(key.value, str):
                        yield key.value, plain(value)


def plain(node: ast.expr) -> Value | None:
    """A constant, or a list of constants; None: it is something else, or nothing."""
    try:
        return of_constant(ast.literal_eval(node))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def of_constant(value: object) -> Value | None:
    """As it is given to a try: not as large as it is, and never on a GPU."""
    if isinstance(value, list | tuple) and value:
        inner = [of_constant(one) for one in value]
        whole = tuple(one for one in inner if one is not None)
        form = "list" if isinstance(value, list) else "tuple"
        return Items(whole, form) if len(whole) == len(inner) else None  # type: ignore[arg-type]
    if isinstance(value, str):
        return Number("cpu" if GPU.fullmatch(value) else value)
    if isinstance(value, bool | float):
        return Number(value)
    return Number(small(value)) if isinstance(value, int) else None


def small(number: int) -> int:
    """A fourth of a large width; of what can't be one, no more than there is room for."""
    if number >= LARGE and number % PARTS == 0:
        return min(number // 4, MOST)
    return min(number, MOST)


def of_word(word: str) -> Value:
    """An entry of a file of options."""
    if word.lower() in WORDS:
        return Number(WORDS[word.lower()])
    for kind in (int, float):
        try:
            return of_constant(kind(word)) or Number(word)
        except ValueError:
            continue
    return of_constant(word) or Number(word)
