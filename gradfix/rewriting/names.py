"""Where a scope binds, reads and rebinds a name: what a rewrite has to know before it assigns to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from gradfix.tree import Tree, children

LOOPS = (cst.For, cst.While)
SCOPES = (cst.FunctionDef, cst.ClassDef, cst.Lambda)


def walk(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """A node and all below it, in source order."""
    yield node
    for child in children(node):
        yield from walk(child)


def reads(node: cst.CSTNode) -> Iterator[str]:
    """The variables that running this node may read; those of functions defined in it too."""
    if isinstance(node, cst.Name):
        yield node.value
    elif isinstance(node, (cst.Attribute, cst.Arg)):
        yield from reads(node.value)
    elif isinstance(node, (cst.AssignTarget, cst.AnnAssign, cst.For, cst.CompFor, cst.NamedExpr, cst.AsName)):
        yield from _reads_beside_target(node)
    elif isinstance(node, (cst.Import, cst.ImportFrom, cst.Global, cst.Nonlocal)):
        return
    elif isinstance(node, (cst.Param, cst.FunctionDef, cst.ClassDef)):
        yield from (name for child in children(node) if child is not node.name for name in reads(child))
    else:
        yield from (name for child in children(node) for name in reads(child))


def _reads_beside_target(node: cst.CSTNode) -> Iterator[str]:
    for child in children(node):
        if child is getattr(node, "target", None) or isinstance(node, cst.AsName):
            yield from (
                name for part in _parts(child) if not isinstance(part, cst.Name) for name in reads(part)
            )
        else:
            yield from reads(child)


def binds(node: cst.CSTNode) -> Iterator[str]:
    """The variables that running this node may bind in its own scope."""
    if isinstance(node, (cst.FunctionDef, cst.ClassDef)):
        yield node.name.value
        return
    if isinstance(node, cst.Lambda):
        return
    if isinstance(node, (cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.For, cst.NamedExpr)):
        yield from _bound(node.target)
    elif isinstance(node, cst.AsName):
        yield from _bound(node.name)
    elif isinstance(node, cst.ImportAlias) and node.asname is None:
        yield node.evaluated_name.partition(".")[0]
    for child in children(node):
        yield from binds(child)


def _bound(target: cst.CSTNode) -> Iterator[str]:
    return (part.value for part in _parts(target) if isinstance(part, cst.Name))


def _parts(target: cst.CSTNode) -> Iterator[cst.CSTNode]:
    if isinstance(target, (cst.Tuple, cst.List)):
        for element in target.elements:
            yield from _parts(element.value)
    else:
        yield target


def assignable(tree: Tree, node: cst.CSTNode, name: str) -> bool:
    """Whether an assignment to this name beside `node` leaves the name in the scope that it has there."""
    function = tree.function(node)
    if function is None:
        return True
    parameters = (param.name.value for param in walk(function.params) if isinstance(param, cst.Param))
    return name in parameters or name in binds(function.body) or name in _declared(function)


def visible(tree: Tree, node: cst.CSTNode, dotted: str) -> bool:
    """Whether the name that a dotted expression starts with is bound where `node` stands, if anywhere."""
    name = dotted.partition(".")[0]
    function = tree.function(node)
    while function is not None:
        if assignable(tree, next(iter(function.body.body), function.body), name):
            return True
        function = tree.function(function)
    elsewhere = any(isinstance(one, cst.Param) and one.name.value == name for one in walk(tree.module))
    return name in binds(tree.module) or not elsewhere


def _declared(function: cst.FunctionDef) -> Iterator[str]:
    for node in walk(function.body):
        if isinstance(node, (cst.Global, cst.Nonlocal)):
            yield from (item.name.value for item in node.names)


def read_later(tree: Tree, node: cst.CSTNode, name: str) -> bool:
    """Whether the scope may read the name after the statement that holds `node`, before rebinding it."""
    inner: cst.CSTNode = tree.small_statement(node) or tree.statement(node)
    for above in tree.ancestors(inner):
        if isinstance(above, SCOPES):
            return False
        if isinstance(above, cst.Try):
            return True
        use = _first_use(_after(above, inner), name)
        if use is None and isinstance(above, LOOPS):
            use = _first_use(_again(above, inner), name)
        if use is not None:
            return use == "read"
        inner = above
    return False


def _after(holder: cst.CSTNode, inner: cst.CSTNode) -> Sequence[cst.CSTNode]:
    """The statements of a body that follow one of them."""
    body = getattr(holder, "body", ())
    if not isinstance(body, Sequence):
        return ()
    at = next((i for i, item in enumerate(body) if item is inner), len(body))
    return body[at + 1 :]


def _again(loop: cst.CSTNode, inner: cst.CSTNode) -> Sequence[cst.CSTNode]:
    """What a loop runs on its next turn."""
    assert isinstance(loop, LOOPS)
    header: cst.CSTNode = loop.test if isinstance(loop, cst.While) else cst.AssignTarget(loop.target)
    return (header, *loop.body.body)


def _first_use(statements: Sequence[cst.CSTNode], name: str) -> str | None:
    for statement in statements:
        if name in reads(statement) or _augments(statement, name):
            return "read"
        if isinstance(statement, (cst.SimpleStatementLine, cst.BaseSmallStatement, cst.AssignTarget)) and (
            name in binds(statement)
        ):
            return "bound"
    return None


def _augments(statement: cst.CSTNode, name: str) -> bool:
    return any(isinstance(node, cst.AugAssign) and name in _bound(node.target) for node in walk(statement))
