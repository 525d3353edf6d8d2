"""Ways to forget what a text says: each names parts of it, and how they are handed to unknown code.

What is less known, and what isn't, where it is subtle:

- A call becomes a call of something unknown that gets the same arguments, and with them whoever was called,
  if that can hold anything: the receiver of a method, a function or class that this file has bound. An
  unknown function that wasn't given `opt` couldn't have stepped it; one that was may still do just that.
- An argument, a value, an operand, a test, a default or a base becomes what something unknown makes of it: a
  bare unknown name couldn't be the same tensor, nor the parameters of the same network.
- An attribute becomes `getattr(x, __unknown__)`, which may be the same one; `x.__unknown__` can't be.
- `super()`, `locals()`, `globals()`, `vars()`, `eval()` and `exec()` are left alone: they read the frame that
  they are called in, and what stands for them can't. Their arguments are blurred like others.
- Nothing inside of f-strings is blurred, and nothing where the result wouldn't parse.
- An unknown test, or an unknown call where `sys.exit()` stood, may let code run that was known never to run.
  What is found there is counted apart: see `comparing`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

from .edits import Edit, Text

Function: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda"
Part: TypeAlias = "list[Edit]"
"""What has to change for one thing to be forgotten."""
Blur: TypeAlias = "Callable[[Text, ast.Module], Iterator[Part]]"

NAME = b"__unknown__"
NOWHERE = b"__elsewhere__"
READS_ITS_FRAME = frozenset({"super", "locals", "globals", "vars", "eval", "exec"})
FROM = re.compile(rb"from\s*(\.[.\s]*[\w.]*|[\w.]+)\s*import")


def nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those in f-strings, which have no places of their own."""
    for child in ast.iter_child_nodes(tree):
        if not isinstance(child, ast.JoinedStr):
            yield child
            yield from nodes(child)


def wrapped(text: Text, node: ast.expr) -> Part:
    """An expression handed to something unknown."""
    twice = isinstance(node, (ast.Tuple, ast.GeneratorExp))
    start, end = text.start(node), text.end(node)
    return [
        Edit(start, start, NAME + (b"((" if twice else b"(")),
        Edit(end, end, b"))" if twice else b")"),
    ]


def each_wrapped(text: Text, expressions: Iterable[ast.expr | None]) -> Iterator[Part]:
    for node in expressions:
        inner = node.value if isinstance(node, ast.Starred) else node
        if inner is not None and not isinstance(inner, (ast.Yield, ast.YieldFrom, ast.JoinedStr)):
            yield wrapped(text, inner)


def calls(text: Text, tree: ast.Module) -> Iterator[Part]:
    """Any call by one of something unknown."""
    bound, packages = _bound(tree), _packages(tree)
    for node in nodes(tree):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Name) and node.func.id in READS_ITS_FRAME:
            continue
        opening = _opening(text, node)
        if opening is None:
            continue
        holds = _holds(node.func, bound, packages)
        start, more = text.start(node), b", " if node.args or node.keywords else b""
        if not holds:
            yield [text.on_its_lines(start, opening + 1, NAME + b"(")]
        elif isinstance(node.func, ast.Attribute):
            dot = _dot(text, node.func)
            yield [Edit(start, start, NAME + b"("), text.on_its_lines(dot, opening + 1, more)]
        else:
            yield [Edit(start, start, NAME + b"("), text.on_its_lines(opening, opening + 1, more)]


def _opening(text: Text, node: ast.Call) -> int | None:
    """Where the parenthesis of a call opens, if nothing stands before it."""
    end = text.end(node.func)
    opening = text.content.find(b"(", end)
    return opening if opening >= 0 and not text.content[end:opening].strip(b" \t\\\r\n") else None


def _dot(text: Text, node: ast.Attribute) -> int:
    return text.content.rindex(b".", 0, text.end(node) - len(node.attr.encode()))


def _bound(tree: ast.Module) -> set[str]:
    """The names that a file binds otherwise than by an import."""
    named = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and _stored(node)}
    named |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    made = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return named | {node.name for node in ast.walk(tree) if isinstance(node, made)}


def _stored(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def _packages(tree: ast.Module) -> set[str]:
    """The names of whole modules, and of what comes from torch: nothing of this file can hide there."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "torch":
            found |= {alias.asname or alias.name for alias in node.names}
    return found


def _holds(callee: ast.expr, bound: set[str], packages: set[str]) -> bool:
    """Whether who is called may hold something, so that it has to be handed on."""
    if isinstance(callee, ast.Name):
        return callee.id in bound
    root = callee
    while isinstance(root, ast.Attribute):
        root = root.value
    return not (isinstance(root, ast.Name) and root.id in packages - bound)


def arguments(text: Text, tree: ast.Module) -> Iterator[Part]:
    """Any argument by what something unknown makes of it."""
    for node in nodes(tree):
        if isinstance(node, ast.Call):
            alone = len(node.args) == 1 and isinstance(node.args[0], ast.GeneratorExp)
            yield from each_wrapped(text, [] if alone else node.args)
            yield from each_wrapped(text, (keyword.value for keyword in node.keywords))


def values(text: Text, tree: ast.Module) -> Iterator[Part]:
    """Any value that is assigned, returned, looped over or entered."""
    for node in nodes(tree):
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return)):
            yield from each_wrapped(text, [node.value])
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
            yield from each_wrapped(text, [node.iter])
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            yield from each_wrapped(text, (item.context_expr for item in node.items))


def operands(text: Text, tree: ast.Module) -> Iterator[Part]:
    """Any operand, subscript or element of a display."""
    for node in nodes(tree):
        if isinstance(node, ast.BinOp):
            yield from each_wrapped(text, [node.left, node.right])
        elif isinstance(node, ast.UnaryOp):
            yield from each_wrapped(text, [node.operand])
        elif isinstance(node, ast.List) and isinstance(node.ctx, ast.Load):
            yield from each_wrapped(text, node.elts)
        elif isinstance(node, ast.Dict):
            yield from each_wrapped(text, node.values)
        elif isinstance(node, ast.Subscript) and not isinstance(node.slice, (ast.Slice, ast.Tuple)):
            yield from each_wrapped(text, [node.slice])


def tests(text: Text, tree: ast.Module) -> Iterator[Part]:
    """Any condition."""
    for node in nodes(tree):
        if isinstance(node, (ast.If, ast.While, ast.IfExp, ast.Assert)):
            yield from each_wrapped(text, [node.test])
        elif isinstance(node, ast.comprehension):
            yield from each_wrapped(text, node.ifs)


def attributes(text: Text, tree: ast.Module) -> Iterator[Part]:
    """Any attribute that is read or called by an unknown one of the same thing."""
    for node in nodes(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            start = text.start(node)
            ending = text.on_its_lines(_dot(text, node), text.end(node), b", " + NAME + b")")
            yield [Edit(start, start, b"getattr("), ending]


def imports(text: Text, tree: ast.Module) -> Iterator[Part]:
    """Any import by one that can't be found."""
    for node in nodes(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = (alias.asname or alias.name.partition(".")[0]).encode()
                new = NOWHERE + b" as " + name
                yield [text.on_its_lines(text.start(alias), text.end(alias), new)]
        elif isinstance(node, ast.ImportFrom) and node.module != "__future__":
            named = FROM.match(text.content, text.start(node))
            if named is not None:
                yield [Edit(named.start(1), named.end(1), b" " + NOWHERE + b" ")]


def functions(tree: ast.Module) -> Iterator[Function]:
    for node in nodes(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            yield node


def annotated(text: Text, tree: ast.Module) -> Iterator[Part]:
    """Any annotation of a parameter or of what is returned, by none."""
    for node in functions(tree):
        given = node.args
        for arg in (*given.posonlyargs, *given.args, *given.kwonlyargs):
            if arg.annotation is not None:
                named = text.start(arg) + len(arg.arg.encode())
                yield [text.on_its_lines(named, text.end(arg), b"")]
        if not isinstance(node, ast.Lambda) and node.returns is not None:
            arrow = text.content.rindex(b"->", 0, text.start(node.returns))
            if not text.content[arrow + 2 : text.start(node.returns)].strip():
                yield [text.on_its_lines(arrow, text.end(node.returns), b"")]


def defaults(text: Text, tree: ast.Module) -> Iterator[Part]:
    """Any default of a parameter by what something unknown makes of it."""
    for node in functions(tree):
        yield from each_wrapped(text, [*node.args.defaults, *node.args.kw_defaults])


def decorators(text: Text, tree: ast.Module) -> Iterator[Part]:
    """Any decorator, and any base of a class."""
    for node in nodes(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield from each_wrapped(text, node.decorator_list)
        if isinstance(node, ast.ClassDef):
            yield from each_wrapped(text, node.bases)


BLURS: Mapping[str, Blur] = {
    "call": calls,
    "argument": arguments,
    "value": values,
    "operand": operands,
    "test": tests,
    "attribute": attributes,
    "import": imports,
    "annotation": annotated,
    "default": defaults,
    "decorator or base": decorators,
}
"""Each way by its name."""
