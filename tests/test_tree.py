"""The tree finds what `ast` names, in any layout."""

from __future__ import annotations

import ast
from pathlib import Path

import libcst as cst
import pytest
from toy import span_of

from gradfix.defects import Span
from gradfix.tree import Tree, UnfaithfulError

LAYOUTS = """\
@ decorated . twice (1)
async def f(a, *b: int, é="ü", **c) -> None:
    if a: b; c ;
    elif (é, 1): x = ((a, 2)); g(y for y in z)
    else:
        # a comment
        (
        u) = (y for y in (z)) ; q . r [1 : 2, ...]
    async with a as b, (c): pass
\x0c
    for x, y in "é", 'ü' "ñ": x += - y ** 2 if not z else (yield); del x
    try: a
    except E as e: raise
    finally: return
    # the end
class C(D, metaclass = M):
\tdef m(self): return [*a, {**b}, {c: d for c in e if f}, lambda x=1: (x), f"{é!r:>{w}}", a < b <= c]
"""


def test_every_statement_and_expression_of_ast_is_found() -> None:
    tree = Tree(LAYOUTS)
    for node in ast.walk(ast.parse(LAYOUTS)):
        within = isinstance(node, ast.Slice | ast.FormattedValue | ast.JoinedStr | ast.Starred)
        if isinstance(node, ast.stmt | ast.expr) and not within and not _only_in_ast(node):
            found = tree.at(span_of(node))
            assert found is not None, ast.dump(node)
            assert tree.span(found) == span_of(node)
            assert tree.text(span_of(node)) == ast.get_source_segment(LAYOUTS, node)


def _only_in_ast(node: ast.AST) -> bool:
    """The tuple of several subscripts, and what stands in an f-string, whose places vary by version."""
    text = ast.get_source_segment(LAYOUTS, node) or ""
    return text == "1 : 2, ..." or (
        isinstance(node, ast.Name | ast.Constant) and 'f"' in LAYOUTS.split("\n")[node.lineno - 1]
    )


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"], ids=["newlines", "both", "carriage returns"])
def test_places_hold_whatever_ends_the_lines(newline: str) -> None:
    text = newline.join(["a", "\x0cif b:", "  \x0c", "\té; x += y", ""])
    tree = Tree(text)
    (node,) = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.AugAssign)]
    found = tree.at(span_of(node), cst.AugAssign)
    assert found is not None
    assert tree.code(found) == "x += y"
    assert tree.span(found) == span_of(node)


def test_the_outermost_node_of_the_wanted_types_is_found() -> None:
    tree = Tree("f(x)\n")
    span = Span(1, 0, 1, 4)
    assert isinstance(tree.at(span), cst.Module | cst.SimpleStatementLine)
    assert isinstance(tree.at(span, cst.BaseSmallStatement), cst.Expr)
    assert isinstance(tree.at(span, cst.BaseExpression), cst.Call)
    assert tree.at(span, cst.Assign) is None
    assert tree.at(Span(1, 0, 1, 3)) is None


def test_the_way_up_from_a_node() -> None:
    tree = Tree("def f():\n    if a: x = g(y); z\n    return\n")
    call = tree.at(Span(2, 14, 2, 18), cst.Call)
    assert call is not None
    small, function = tree.small_statement(call), tree.function(call)
    assert isinstance(small, cst.Assign) and function is not None
    assert isinstance(tree.statement(call), cst.If)
    assert [type(each) for each in tree.block(small)] == [cst.Assign, cst.Expr]
    assert [type(each) for each in tree.block(tree.statement(call))] == [cst.If, cst.SimpleStatementLine]
    assert tree.parent(function) is tree.module
    assert tree.function(function) is None


def test_a_condition_is_in_no_small_statement() -> None:
    tree = Tree("if a:\n    b\n")
    condition = tree.at(Span(1, 3, 1, 4), cst.Name)
    assert condition is not None
    assert tree.small_statement(condition) is None


@pytest.mark.parametrize(
    ("text", "name"),
    [
        pytest.param("import torch\n", "torch", id="plain"),
        pytest.param("import os, torch as th\n", "th", id="under another name"),
        pytest.param("import torch.nn\n", "torch", id="by a submodule"),
        pytest.param(
            "import torch.nn as nn\nfrom torch import optim\n", None, id="not by an alias of a submodule"
        ),
        pytest.param(
            "try:\n    import torch\nexcept ImportError:\n    torch = None\n", "torch", id="in a try"
        ),
        pytest.param("if a: pass\nelif b: import torch as t\nelse: c\n", "t", id="in an elif"),
        pytest.param("def f():\n    import torch\n", None, id="not in a function"),
        pytest.param("import torchvision\n", None, id="not by a like name"),
    ],
)
def test_the_name_of_torch(text: str, name: str | None) -> None:
    assert Tree(text).torch == name


def test_a_file_that_libcst_would_garble_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cst.Module, "code", "something else\n")
    with pytest.raises(UnfaithfulError, match="line 1"):
        Tree("x = 1\n")


def test_this_projects_own_files_come_back_as_they_are() -> None:
    for path in sorted(Path(__file__).parent.parent.joinpath("gradfix").glob("*.py")):
        text = path.read_text("utf-8")
        assert Tree(text).rendered == text
