"""The shortest way to some lines: a module that is called, a method, a function. Read, never run."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace

from gradfix.driver.recipe import Form, Target

MODULES = ("Module", "LightningModule")
"""Classes of torch and its frameworks whose own classes have a `forward`."""
CALLED = "forward"
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Place:
    """From where a file is imported, and as what."""

    path: str
    root: str
    module: str


def place(path: str, tree: ast.Module) -> Place:
    """The folder above the package that it is in, or the one from which its own imports are found."""
    path = os.path.abspath(path)
    folder = top = os.path.dirname(path)
    while os.path.isfile(os.path.join(top, "__init__.py")):
        top = os.path.dirname(top)
    level = max((node.level for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)), default=0)
    for _ in range(level - len(os.path.relpath(folder, top).split(os.sep)) + (folder == top)):
        top = os.path.dirname(
            top
        )  # what imports its neighbours by dots is in a package, be there a mark or not
    names = set(_imported(tree))
    folders = [top, *above(top), *([] if level else [folder])]
    root = max(folders, key=lambda each: sum(_finds(each, name) for name in names))
    inner = os.path.relpath(path, root)[: -len(".py")].split(os.sep)
    return Place(path, root, ".".join(inner[:-1] if inner[-1] == "__init__" else inner))


def above(folder: str) -> Iterator[str]:
    """A folder and those above it, up to the project's."""
    while True:
        yield folder
        upper = os.path.dirname(folder)
        marks = (".git", "pyproject.toml", "setup.py", "requirements.txt")
        if upper == folder or any(os.path.exists(os.path.join(folder, mark)) for mark in marks):
            return
        folder = upper


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def _finds(folder: str, module: str) -> bool:
    """Whether a name with dots, or one of a file, is found in a folder: a folder alone proves nothing."""
    inner = os.path.join(folder, *module.split("."))
    return os.path.isfile(f"{inner}.py") or os.path.isfile(os.path.join(inner, "__init__.py"))


def to_line(path: str, tree: ast.Module, line: int, end_line: int = 0) -> list[Target]:
    """The ways to some lines, the best first; none, where they are in the module's own statements."""
    asked = body(tree, line) or set(range(line, max(line, end_line) + 1))
    lines = tuple(sorted(asked if asked & (run := set(statements(tree))) else {nearest(run, line)}))
    return [replace(one, lines=lines) for one in _ways(path, tree, line)]


def statements(tree: ast.Module) -> Iterator[int]:
    """The lines that a run comes to: those of statements, and the heads of blocks."""
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            blocks = getattr(node, "body", None)
            last = blocks[0].lineno - 1 if blocks else node.end_lineno or node.lineno
            yield from range(node.lineno, max(last, node.lineno) + 1)


def nearest(lines: set[int], line: int) -> int:
    """Of a line that a rewrite has left empty, the one before it."""
    return max((one for one in lines if one < line), default=line)


def body(tree: ast.Module, line: int) -> set[int]:
    """Of a function whose head or decorator a line is in, all that it does; of any other line, nothing."""
    for node in ast.walk(tree):
        if isinstance(node, Function) and covers(node, line) and line < node.body[0].lineno:
            return set(range(node.body[0].lineno, (node.end_lineno or line) + 1))
    return set()


def _ways(path: str, tree: ast.Module, line: int) -> list[Target]:
    where = place(path, tree)
    for node in tree.body:
        if covers(node, line):
            if isinstance(node, ast.ClassDef):
                own = list(_in_class(where, tree, node, line))
                heirs = [replace(own[0], name=one.name, line=one.lineno) for one in inheriting(tree, node)]
                return [*own[:1], *heirs[:1], *own[1:], *heirs[1:]] if own else []
            if isinstance(node, ast.FunctionDef):
                return list(_to_function(where, tree, node, line))
    return []


def inheriting(tree: ast.Module, node: ast.ClassDef) -> Iterator[ast.ClassDef]:
    """The classes of a file that inherit from one: what it leaves open they may have."""
    names = {node.name}
    for one in tree.body:
        if isinstance(one, ast.ClassDef) and names & {*bases(one)}:
            names.add(one.name)
            yield one


def modules(path: str, tree: ast.Module) -> list[Target]:
    """Every class of a file that has, or inherits here, a `forward`."""
    where = place(path, tree)
    known = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    return [target(where, node, "module") for node in known.values() if _has_forward(node, known)]


def covers(node: ast.stmt, line: int) -> bool:
    """Whether a line is in a definition, its decorators among it."""
    first: int = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
    return first <= line <= (node.end_lineno or node.lineno)


def target(where: Place, node: ast.ClassDef | Function, form: Form, method: str = "") -> Target:
    """The target that a definition is."""
    return Target(where.path, where.root, where.module, node.name, form, method, node.lineno)


def methods(node: ast.ClassDef) -> dict[str, Function]:
    """The methods that a class has itself."""
    return {one.name: one for one in node.body if isinstance(one, Function)}


def bases(node: ast.ClassDef) -> list[str]:
    """The last words of the names of its bases."""
    return [ast.unparse(base).rpartition(".")[2] for base in node.bases]


def is_module(node: ast.ClassDef, known: dict[str, ast.ClassDef]) -> bool:
    """Whether a class is an nn.Module, as far as the file shows it."""
    waiting, seen = [node], set[str]()
    while waiting:
        for base in bases(waiting.pop()):
            if base in MODULES:
                return True
            if base in known and base not in seen:
                seen.add(base)
                waiting.append(known[base])
    return False


def _has_forward(node: ast.ClassDef, known: dict[str, ast.ClassDef]) -> bool:
    if not is_module(node, known):
        return CALLED in methods(node) and bool(node.bases) and "Function" not in bases(node)
    return CALLED in methods(node) or any(
        _has_forward(known[base], known) for base in bases(node) if base in known and base != node.name
    )


def reached_from(start: str, own: dict[str, Function]) -> set[str]:
    """The methods that one of them calls on itself, however far down."""
    found, waiting = set[str](), {start} & own.keys()
    while waiting:
        found |= waiting
        called = (ast.walk(own[name]) for name in waiting)
        waiting = {attr for walk in called for attr in _on_self(walk)} & own.keys() - found
    return found


def _on_self(walk: Iterator[ast.AST]) -> Iterator[str]:
    for node in walk:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
            yield node.attr


def _in_class(where: Place, tree: ast.Module, node: ast.ClassDef, line: int) -> Iterator[Target]:
    """Through `forward` where that leads to the line; else the method itself, or one that calls it."""
    own = methods(node)
    name = next((name for name, one in own.items() if covers(one, line)), "")
    known = {one.name: one for one in tree.body if isinstance(one, ast.ClassDef)}
    module = is_module(node, known) or CALLED in own
    through = CALLED in own and name in (*reached_from(CALLED, own), "__init__", "")
    if module and (through or (name == "__init__" and _has_forward(node, known))):
        yield target(where, node, "module")
    if name and not name.startswith("__") and name != CALLED:
        yield target(where, node, "method", name)
    if name in ("__init__", "__call__", CALLED):
        plain = "__call__" if "__call__" in own else ""
        for other in own if name == "__init__" else (name,):
            if other not in ("__init__", CALLED) and (other == plain or not other.startswith("_")):
                yield target(where, node, "method", other)
    for caller, one in own.items():
        if name and caller not in (name, CALLED, "__init__") and name in _on_self(ast.walk(one)):
            yield target(where, node, "method", caller)


def _to_function(where: Place, tree: ast.Module, node: ast.FunctionDef, line: int) -> Iterator[Target]:
    """The function itself, then what calls it here."""
    yield target(where, node, "function")
    for other in tree.body:
        if other is node or not isinstance(other, (ast.FunctionDef, ast.ClassDef)):
            continue
        for call in ast.walk(other):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == node.name:
                found = (
                    [target(where, other, "function")]
                    if isinstance(other, ast.FunctionDef)
                    else list(_in_class(where, tree, other, call.lineno))
                )
                yield from found
                break
