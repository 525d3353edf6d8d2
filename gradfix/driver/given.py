"""What a project itself gives: the calls of its classes and functions, and the defaults of its options."""

from __future__ import annotations

import ast
import contextlib
import itertools
import operator
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from gradfix.driver.options import options
from gradfix.driver.recipe import Given
from gradfix.driver.targets import Place, place
from gradfix.driver.values import Argument, Entries, Items, Made, Number, Source, Tensor, Value
from gradfix.source import Source as File
from gradfix.source import parse

MOST_FILES = 400
MOST_PARSED = 24
"""Files that are parsed for one name."""
LARGEST = 400_000
MOST_CALLS = 4
DEEPEST = 3
OF_OPTIONS = ("add_argument", "dataclass", "Config", "config")
"""What is written where options are given."""
MOST_BESIDE = 20
MOST_MODULES = 80
MODULES = frozenset(("Module", "LightningModule"))
PASSED_OVER = frozenset((".git", ".venv", "venv", "node_modules", "build", "dist", "site-packages"))
OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv, ast.Pow: operator.pow,
}  # fmt: skip
FACTORIES = {"randn": "float", "rand": "float", "zeros": "float", "ones": "float", "randint": "index"}
NN = "from torch import nn"
Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Module


@dataclass(slots=True)
class Read:
    """One file of the project."""

    where: Place
    tree: ast.Module
    scoped: list[tuple[ast.Call, Scope]]
    assigned: list[tuple[str, ast.expr, Scope]]


CLASS = re.compile(r"^class +(\w+)\(([^)]*)\):", re.MULTILINE)
FORWARD = re.compile(r"def +forward\(\s*self\s*,?([^)]*)\)")
HAS = re.compile(r"def +(\w+)\(|self\.(\w+)(?: *:[^=\n]+)? *=[^=]")
PROMPT = re.compile(r"^\s*(?:>>>|\.\.\.) ?(.*)$", re.MULTILINE)
DEFINED = re.compile(rb"^(?:class|def) +(\w+)", re.MULTILINE)


@dataclass(slots=True)
class Project:
    """All files below a folder: looked into once, parsed where they say a name that is asked for."""

    root: str
    texts: dict[str, bytes] = field(default_factory=dict)
    parsed: dict[str, Read | None] = field(default_factory=dict)
    homes: dict[str, str] = field(default_factory=dict)
    """The file in which a class or function is defined."""
    options: dict[str, Value] = field(default_factory=dict)
    """What it gives for an option that nobody names."""

    def read(self) -> Project:
        """Look into all of them."""
        for path in paths(self.root):
            with contextlib.suppress(OSError), open(path, "rb") as file:
                self.texts[path] = file.read(LARGEST)
        for path, text in self.texts.items():
            for name in DEFINED.findall(text):
                self.homes.setdefault(name.decode(), path)
        reads = [read for word in OF_OPTIONS for read in self.saying(word)]
        trees = {id(read.tree): read.tree for read in reads}
        self.options = options(trees.values(), beside(self.root))
        return self

    def saying(self, name: str) -> Iterator[Read]:
        """The files in which a name is, those of few words first."""
        found = [path for path, text in self.texts.items() if name.encode() in text]
        for path in sorted(found, key=lambda path: len(self.texts[path]))[:MOST_PARSED]:
            read = self.of(path)
            if read is not None:
                yield read

    def of(self, path: str) -> Read | None:
        """One file; None: it can't be read."""
        if path not in self.parsed:
            found = parse(path, self.texts[path])
            self.parsed[path] = read_of(path, found.tree) if isinstance(found, File) else None
        return self.parsed[path]

    def home(self, name: str) -> Place | None:
        """From where a class or function is imported."""
        path = self.homes.get(name)
        read = self.of(path) if path is not None else None
        return read.where if read is not None else None

    def builds(self, name: str) -> list[Given]:
        """The calls of a class or function, those first that say most."""
        found: list[Given] = []
        for read in self.saying(name):
            for call, scope in read.scoped:
                if last(call.func) == name and not any(isinstance(one, ast.Starred) for one in call.args):
                    found.append(self._given(call, Here(self, read, scope)))
        unique = list(dict.fromkeys(one for one in found if one.args or one.kwargs))
        return sorted(unique, key=unknown)[:MOST_CALLS]

    def called(self, name: str) -> list[Given]:
        """The calls of what such a class has made, where both are in one function."""
        found: list[Given] = []
        for read in self.saying(name):
            held = {(id(scope), target) for target, value, scope in read.assigned if last(value) == name}
            for call, scope in read.scoped:
                if isinstance(call.func, ast.Name) and (id(scope), call.func.id) in held:
                    found.append(self._given(call, Here(self, read, scope)))
        unique = [one for one in dict.fromkeys(found) if one.args and not unknown(one)]
        return unique[:MOST_CALLS]

    def modules(self) -> list[tuple[str, str, list[str]]]:
        """Its classes of modules: the file, the name, and the attributes that a glance shows."""
        found: dict[str, tuple[str, set[str], set[str]]] = {}
        for path, text in self.texts.items():
            pieces = CLASS.split(text.decode("utf-8", "replace")) if b"Module" in text else []
            for name, bases, body in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True):
                has = {one or other for one, other in HAS.findall(body)} | taking(body)
                found.setdefault(name, (path, {*re.findall(r"\w+", bases)}, has))
        known = {name for name, (_, bases, _) in found.items() if bases & MODULES}
        known |= {name for name, (_, bases, _) in found.items() if bases & known}
        some = sorted(known)[:MOST_MODULES]
        return [(found[name][0], name, sorted(self._has(name, found))) for name in some]

    def heirs(self, name: str) -> Iterator[tuple[str, str]]:
        """The classes of other files that inherit from one: their files and names."""
        for path, text in self.texts.items():
            for own, inherited in (
                CLASS.findall(text.decode("utf-8", "replace")) if name.encode() in text else ()
            ):
                if name in re.findall(r"\w+", inherited):
                    yield path, own

    def _has(self, name: str, found: dict[str, tuple[str, set[str], set[str]]], deep: int = 0) -> set[str]:
        """Its attributes, those of its bases among them."""
        _, bases, has = found[name]
        own = (base for base in bases if base in found and base != name and deep < DEEPEST)
        return has.union(*(self._has(base, found, deep + 1) for base in own))

    def _given(self, call: ast.Call, here: Here) -> Given:
        args = tuple(here.value(one) for one in call.args)
        named = tuple((one.arg, here.value(one.value)) for one in call.keywords if one.arg)
        return Given(args, named, tuple(here.steps(call)))


@dataclass(slots=True)
class Here:
    """The place of a call, from which its names are looked up."""

    project: Project
    read: Read
    scope: Scope
    deep: int = 0

    def value(self, node: ast.expr) -> Value | None:
        """What an expression is, where that can be said without running it."""
        if self.deep > 12:
            return None
        self.deep += 1
        try:
            return self._of(node)
        finally:
            self.deep -= 1

    def _of(self, node: ast.expr) -> Value | None:
        if isinstance(node, ast.Constant):
            plain = node.value is None or isinstance(node.value, int | float | str)
            return Number(node.value, free=False) if plain else None  # type: ignore[arg-type]
        if isinstance(node, ast.Tuple | ast.List):
            inner = [self.value(one) for one in node.elts]
            whole = tuple(one for one in inner if one is not None)
            form = "list" if isinstance(node, ast.List) else "tuple"
            return Items(whole, form) if len(whole) == len(inner) else None  # type: ignore[arg-type]
        if isinstance(node, ast.Dict):
            return self._entries(node)
        if isinstance(node, ast.BinOp | ast.UnaryOp):
            return self._number(node)
        if isinstance(node, ast.Name):
            return self._name(node.id)
        if isinstance(node, ast.Attribute):
            return self._attribute(node)
        return self._call(node) if isinstance(node, ast.Call) else None

    def steps(self, call: ast.Call) -> Iterator[tuple[int | str, tuple[int | str, ...]]]:
        """Which arguments of a call are optimizers, and of whose parameters."""
        passed: list[tuple[int | str, ast.expr]] = [*enumerate(call.args)]
        passed += [(one.arg, one.value) for one in call.keywords if one.arg]
        places = {one.id: at for at, one in passed if isinstance(one, ast.Name)}
        for at, one in passed:
            made = self.assigned(one.id) if isinstance(one, ast.Name) else one
            if isinstance(made, ast.Call) and made.args:
                stepped = tuple(places[name] for name in learning(made.args[0]) if name in places)
                if stepped and at not in stepped:
                    yield at, stepped

    def assigned(self, name: str) -> ast.expr | None:
        """What a variable is set to, where that happens once."""
        for scope in dict.fromkeys((self.scope, self.read.tree)):
            found = [
                value for target, value, where in self.read.assigned if target == name and where is scope
            ]
            if found:
                return found[0] if len(found) == 1 else None
        return None

    def _entries(self, node: ast.Dict) -> Value | None:
        found = []
        for key, one in zip(node.keys, node.values, strict=True):
            value = self.value(one)
            if not isinstance(key, ast.Constant) or value is None:
                return None
            found.append((repr(key.value), value))
        return Entries(tuple(found))

    def _number(self, node: ast.BinOp | ast.UnaryOp) -> Value | None:
        sides = [node.operand] if isinstance(node, ast.UnaryOp) else [node.left, node.right]
        values = [one.value for one in map(self.value, sides) if isinstance(one, Number)]
        if len(values) != len(sides) or not all(isinstance(one, int | float) for one in values):
            return None
        if isinstance(node, ast.UnaryOp):
            return Number(-values[0], free=False) if isinstance(node.op, ast.USub) else None  # type: ignore[operator]
        if type(node.op) not in OPERATORS:
            return None
        try:
            return Number(OPERATORS[type(node.op)](*values), free=False)
        except (ArithmeticError, ValueError):
            return None

    def _name(self, name: str) -> Value | None:
        """A variable that is set once, the default of a parameter, or a class of the project."""
        for scope in dict.fromkeys((self.scope, self.read.tree)):
            found = [
                value for target, value, where in self.read.assigned if target == name and where is scope
            ]
            if found:
                return self.value(found[0]) if len(found) == 1 else None
            if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
                given, default = defaults(scope).get(name, (False, None))
                if given:
                    return self.value(default) if default is not None else None
        return self._home(name)

    def _home(self, name: str) -> Value | None:
        home = self.project.home(name)
        if home is None or not importable(home):
            return None
        return Source(name, (f"from {home.module} import {name}",))

    def _attribute(self, node: ast.Attribute) -> Value | None:
        """Something of torch's, or an option."""
        text = ast.unparse(node)
        if text.startswith(("nn.", "torch.nn.")):
            return Source(text.removeprefix("torch."), (NN,))
        if isinstance(node.value, ast.Name) and node.value.id != "self":
            return self.project.options.get(node.attr)
        return None

    def _call(self, node: ast.Call) -> Value | None:
        name, text = last(node.func), ast.unparse(node.func)
        if text.startswith("torch.") and name in FACTORIES:
            return self._tensor(node, name)
        if name in ("to", "cuda", "float", "cpu") and isinstance(node.func, ast.Attribute):
            return self.value(node.func.value)
        callee = self._attribute(node.func) if isinstance(node.func, ast.Attribute) else self._home(name)
        if not isinstance(callee, Source) or self.deep > DEEPEST * 2:
            return None
        inner = self.project._given(node, self)
        named = [Argument(key, one) for key, one in inner.kwargs if one is not None]
        if unknown(inner):
            return Made(callee.text, tuple(named), callee.needs, open=True) if callee.needs != (NN,) else None
        placed = [Argument("", one, keyword=False) for one in inner.args if one is not None]
        return Made(callee.text, (*placed, *named), callee.needs)

    def _tensor(self, node: ast.Call, name: str) -> Value | None:
        """A tensor of sizes that are known, small enough for a try."""
        args = list(node.args)
        high = 2
        if name == "randint":
            bounds = [self.value(one) for one in args[:-1]]
            if not bounds or not isinstance(bounds[-1], Number) or not isinstance(bounds[-1].value, int):
                return None
            high, args = bounds[-1].value, args[-1:]
        given = [self.value(one) for one in args]
        if len(given) == 1 and isinstance(given[0], Items):
            given = list(given[0].items)
        sizes = [one.value for one in given if isinstance(one, Number) and type(one.value) is int]
        if len(sizes) != len(given) or not sizes:
            return None
        return Tensor(tuple(sizes), FACTORIES[name], high)  # type: ignore[arg-type]


def read_of(path: str, tree: ast.Module) -> Read:
    """A file that was parsed, with the examples in its texts."""
    trees = [tree, *examples(tree)]
    calls = [one for each in trees for one in scoped(each)]
    return Read(place(path, tree), tree, calls, [one for each in trees for one in assigned(each)])


def examples(tree: ast.Module) -> Iterator[ast.Module]:
    """What doc strings show behind `>>>`."""
    for node in ast.walk(tree):
        text = node.value.value if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) else ""
        if isinstance(text, str) and ">>>" in text:
            found = parse("example.py", "\n".join(PROMPT.findall(text)).encode())
            if isinstance(found, File):
                yield found.tree


def beside(root: str) -> Iterator[str]:
    """The files of options that are no programs."""
    for path in itertools.islice(paths(root, (".yaml", ".yml")), MOST_BESIDE):
        with contextlib.suppress(OSError, UnicodeDecodeError), open(path, encoding="utf-8") as file:
            yield file.read(LARGEST)


def paths(root: str, ends: tuple[str, ...] = (".py", ".ipynb")) -> Iterator[str]:
    """The programs and notebooks below a folder, as many as are looked at."""
    count = 0
    for folder, inner, names in os.walk(root):
        inner[:] = sorted(one for one in inner if one not in PASSED_OVER and not one.startswith("."))
        for name in sorted(names):
            if name.endswith(ends) and count < MOST_FILES:
                count += 1
                yield os.path.join(folder, name)


def taking(body: str) -> set[str]:
    """With how many arguments a class of modules may be called, as names that no attribute has."""
    head = FORWARD.search(body)
    if head is None or "*" in head[1]:
        return set()
    given = [one for one in head[1].split(",") if one.strip()]
    least = sum("=" not in one for one in given)
    return {f"forward/{count}" for count in range(least, len(given) + 1)}


def learning(node: ast.expr) -> Iterator[str]:
    """The variables whose `parameters()` are in an expression."""
    for one in ast.walk(node):
        if isinstance(one, ast.Attribute) and one.attr == "parameters" and isinstance(one.value, ast.Name):
            yield one.value.id


def importable(home: Place) -> bool:
    """Whether it has a name that an import line may say."""
    return all(part.isidentifier() for part in home.module.split("."))


def unknown(given: Given) -> int:
    """How much of a call can't be said."""
    return sum(one is None for one in (*given.args, *(value for _, value in given.kwargs)))


def last(node: ast.expr) -> str:
    """The last word of what is called; of a call, of its function."""
    if isinstance(node, ast.Call):
        return last(node.func)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def scoped(tree: ast.Module) -> Iterator[tuple[ast.Call, Scope]]:
    """All calls, each with the function that it is in."""
    return ((node, scope) for node, scope in walked(tree, tree) if isinstance(node, ast.Call))


def assigned(tree: ast.Module) -> Iterator[tuple[str, ast.expr, Scope]]:
    """Every variable that is set, to what and where."""
    for node, scope in walked(tree, tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    yield target.id, node.value, scope


def walked(node: ast.AST, scope: Scope) -> Iterator[tuple[ast.AST, Scope]]:
    """All that is in a text, each with the innermost function around it."""
    for child in ast.iter_child_nodes(node):
        yield child, scope
        inner = child if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) else scope
        yield from walked(child, inner)


def defaults(function: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, tuple[bool, ast.expr | None]]:
    """The parameters of a function with their defaults."""
    args = function.args
    placed = [*args.posonlyargs, *args.args]
    given: list[ast.expr | None] = [None] * (len(placed) - len(args.defaults)) + list(args.defaults)
    pairs = [*zip(placed, given, strict=True), *zip(args.kwonlyargs, args.kw_defaults, strict=True)]
    return {one.arg: (True, default) for one, default in pairs}
