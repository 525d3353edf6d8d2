"""Puts an expression in another's place: brackets only where they are needed, and no `x = x` left behind."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import libcst as cst

from gradfix.rule import Edit
from gradfix.tree import Tree

BRACKETS_ARE_SYNTAX = (cst.Tuple, cst.GeneratorExp, cst.NamedExpr, cst.Yield, cst.Await)
SPACE = re.compile(r"\s+")


class Swapped(cst.CSTTransformer):
    """Nodes put where others stand, found by identity, several at once."""

    def __init__(self, swaps: Mapping[cst.CSTNode, cst.CSTNode | cst.RemovalSentinel]) -> None:
        super().__init__()
        self.swaps = swaps

    def on_visit(self, node: cst.CSTNode) -> bool:
        return node not in self.swaps

    def on_leave(  # type: ignore[override]  # the signature of libcst promises less than its visitor takes
        self, original_node: cst.CSTNode, updated_node: cst.CSTNode
    ) -> cst.CSTNode | cst.RemovalSentinel:
        return self.swaps.get(original_node, updated_node)


def put(tree: Tree, swaps: Mapping[cst.BaseExpression, cst.BaseExpression]) -> tuple[Edit, ...]:
    """The edits that put each new expression in the place of an old one; idle statements vanish."""
    seated = {old: fitted(tree, old, new) for old, new in swaps.items()}
    edits: dict[cst.CSTNode, Edit] = {}
    for old, new in seated.items():
        small = tree.small_statement(old)
        if small is not None and _idle(tree, small, seated):
            edits.update((edit.old, edit) for edit in vanished(tree, small))
        elif tree.code(old) != tree.code(new):
            edits[old] = Edit(old, new)
    return tuple(edits.values())


def fitted(tree: Tree, old: cst.BaseExpression, new: cst.BaseExpression) -> cst.BaseExpression:
    """The new expression with as few brackets as its place allows."""
    bracketed = _bracketed(old, new)
    if isinstance(new, BRACKETS_ARE_SYNTAX) or _commented(tree, bracketed):
        return bracketed
    bare = new.with_changes(lpar=(), rpar=())
    outer = _outermost(tree, old)
    meant = _meaning(tree, outer, {old: bracketed})
    return bare if meant == _meaning(tree, outer, {old: bare}) else bracketed


def vanished(tree: Tree, small: cst.BaseSmallStatement) -> tuple[Edit, ...]:
    """The edits that take a small statement away, and with it the comment on its line."""
    gone = Edit(small, cst.RemoveFromParent())
    line = tree.parent(small)
    if not isinstance(line, cst.SimpleStatementLine):
        return (gone,)
    if len(line.body) == 1:
        trailing = line.trailing_whitespace
        if trailing.comment is None:
            return (gone,)
        plain = trailing.with_changes(comment=None, whitespace=cst.SimpleWhitespace(""))
        return gone, Edit(trailing, plain)
    before = line.body[-2]
    if line.body[-1] is small and isinstance(before.semicolon, cst.Semicolon):
        return gone, Edit(before.semicolon, cst.RemoveFromParent())
    return (gone,)


def shown(tree: Tree, edits: Sequence[Edit]) -> str:
    """What the edited statements become, each on one line."""
    said: dict[str, None] = {}
    for edit in edits:
        small = tree.small_statement(edit.old)
        if small is not None and not isinstance(edit.old, (cst.TrailingWhitespace, cst.Semicolon)):
            said[_shown(tree, small, edits)] = None
        elif isinstance(edit.new, cst.BaseExpression):
            said[one_line(tree.code(edit.new))] = None
    return "; ".join(said)


def _shown(tree: Tree, small: cst.BaseSmallStatement, edits: Iterable[Edit]) -> str:
    swaps = {edit.old: edit.new for edit in edits if isinstance(edit.new, cst.CSTNode)}
    if any(edit.old is small and isinstance(edit.new, cst.RemovalSentinel) for edit in edits):
        return f"remove `{one_line(tree.code(_without_semicolon(small)))}`"
    after = small.visit(Swapped(swaps))
    assert isinstance(after, cst.BaseSmallStatement)
    return one_line(tree.code(_without_semicolon(after)))


def one_line(code: str) -> str:
    return SPACE.sub(" ", code).replace("( ", "(").replace(" )", ")").strip()


def dotted(node: cst.CSTNode) -> str:
    """`torch.nn.Linear` for such a chain of names, else an empty text."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        before = dotted(node.value)
        return f"{before}.{node.attr.value}" if before else ""
    return ""


def appended(node: cst.CSTNode | None) -> Iterator[tuple[str, cst.BaseExpression]]:
    """The list and the entry, where a statement or a call appends one entry to a list."""
    call = node.value if isinstance(node, cst.Expr) else node
    if isinstance(call, cst.Call) and len(call.args) == 1:
        receiver, _, method = dotted(call.func).rpartition(".")
        if receiver and method == "append":
            yield receiver, call.args[0].value


def targets(small: cst.CSTNode | None) -> list[str]:
    """The plain names that a statement assigns."""
    if isinstance(small, cst.Assign):
        return [each.target.value for each in small.targets if isinstance(each.target, cst.Name)]
    if isinstance(small, (cst.AugAssign, cst.AnnAssign)) and isinstance(small.target, cst.Name):
        return [small.target.value]
    return []


def _without_semicolon(small: cst.BaseSmallStatement) -> cst.BaseSmallStatement:
    return small.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)


def _bracketed(old: cst.BaseExpression, new: cst.BaseExpression) -> cst.BaseExpression:
    if new.lpar:
        return new
    lpar, rpar = old.lpar or [cst.LeftParen()], old.rpar or [cst.RightParen()]
    return new.with_changes(lpar=lpar, rpar=rpar)


def _commented(tree: Tree, node: cst.BaseExpression) -> bool:
    """Whether the brackets of an expression hold a comment, which would go with them."""
    around = [tree.module.code_for_node(each) for each in (*node.lpar, *node.rpar)]
    return any("#" in code for code in around)


def _outermost(tree: Tree, node: cst.BaseExpression) -> cst.BaseExpression:
    outer = node
    for above in tree.ancestors(node):
        if isinstance(above, (cst.BaseStatement, cst.BaseSmallStatement)):
            break
        if isinstance(above, cst.BaseExpression):
            outer = above
    return outer


def _meaning(
    tree: Tree, outer: cst.BaseExpression, swaps: Mapping[cst.CSTNode, cst.CSTNode | cst.RemovalSentinel]
) -> str | None:
    after = outer.visit(Swapped(swaps))
    assert isinstance(after, cst.CSTNode)
    try:
        return ast.dump(ast.parse("_ = " + tree.code(after)))
    except SyntaxError:
        return None


def _idle(
    tree: Tree, small: cst.BaseSmallStatement, swaps: Mapping[cst.BaseExpression, cst.BaseExpression]
) -> bool:
    """Whether an assignment would only give a name its own value."""
    if not isinstance(small, cst.Assign) or len(small.targets) != 1:
        return False
    value = small.value.visit(Swapped(dict(swaps.items())))
    assert isinstance(value, cst.BaseExpression)
    own, other = list(parts(small.targets[0].target)), list(parts(value))
    return all(_place(part) for part in own) and [tree.code(part) for part in own] == [
        tree.code(part) for part in other
    ]


def _place(node: cst.BaseExpression) -> bool:
    return bool(dotted(node))


def parts(node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """The entries of a tuple, and what is none itself."""
    if isinstance(node, cst.Tuple):
        for element in node.elements:
            yield from parts(element.value)
    else:
        yield node.with_changes(lpar=(), rpar=())
