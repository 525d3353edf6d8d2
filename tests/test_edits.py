"""Edits become text: only what is edited changes, whatever the file's bytes look like."""

from __future__ import annotations

import ast
import time

import libcst as cst
import pytest

from gradfix.defects import Span
from gradfix.edits import apply, changes, compatible, text_edits
from gradfix.rule import Edit, TextEdit
from gradfix.tree import Tree


def span_of(node: ast.stmt | ast.expr) -> Span:
    """The span that `ast` gives a node."""
    assert node.end_lineno is not None and node.end_col_offset is not None
    return Span(node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)


def augmented(tree: Tree, text: str) -> list[cst.AugAssign]:
    """The augmented assignments of a text, found through their `ast` spans."""
    spans = [span_of(node) for node in ast.walk(ast.parse(text)) if isinstance(node, ast.AugAssign)]
    found = [tree.at(span, cst.AugAssign) for span in sorted(spans)]
    return [node for node in found if node is not None]


def out_of_place(node: cst.AugAssign) -> Edit:
    """`x += y` as `x = x + y`."""
    value = cst.BinaryOperation(cst.ensure_type(node.target, cst.Name), cst.Add(), node.value)
    return Edit(node, cst.Assign([cst.AssignTarget(node.target)], value))


def mended(text: str) -> str:
    """A text with every `+=` rewritten."""
    tree = Tree(text)
    return apply(tree, [out_of_place(node) for node in augmented(tree, text)])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("x += y\n", "x = x + y\n", id="a plain line"),
        pytest.param("x += y", "x = x + y", id="no newline at the end of the file"),
        pytest.param("a\r\nx += y\r\nb\r\n", "a\r\nx = x + y\r\nb\r\n", id="carriage returns and newlines"),
        pytest.param("a\rx += y\rb\r", "a\rx = x + y\rb\r", id="lone carriage returns"),
        pytest.param("a\r\nx += y\nb", "a\r\nx = x + y\nb", id="mixed line ends"),
        pytest.param("a\n\x0cx += y\n", "a\n\x0cx = x + y\n", id="a form feed before the edited line"),
        pytest.param("\x0ca\nx += y\n\x0cb\n", "\x0ca\nx = x + y\n\x0cb\n", id="form feeds on other lines"),
        pytest.param(
            "if é:\n\tx += ñ;  z # ü\n", "if é:\n\tx = x + ñ;  z # ü\n", id="tabs and letters of all kinds"
        ),
        pytest.param("é = 'ü'; x += y\n", "é = 'ü'; x = x + y\n", id="after wide letters on the same line"),
        pytest.param("if a: x += y\n", "if a: x = x + y\n", id="a body on the line of its if"),
        pytest.param("x += y; x += z\n", "x = x + y; x = x + z\n", id="two on one line"),
        pytest.param(
            "s = '''\n\x0c\u2028'''\nx += y \\\n\n",
            "s = '''\n\x0c\u2028'''\nx = x + y \\\n\n",
            id="odd lines",
        ),
    ],
)
def test_an_edit_changes_its_own_node_and_nothing_else(before: str, after: str) -> None:
    assert mended(before) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("a\nx += y\nb\n", "a\nb\n", id="the line goes"),
        pytest.param("if a:\n    x += y\n", "if a:\n    pass\n", id="an emptied block gets pass"),
        pytest.param("if a: x += y\n", "if a: pass\n", id="an emptied one-line body gets pass"),
        pytest.param("# why\nx += y  # because\nb\n", "# why\n# because\nb\n", id="comments stay"),
        pytest.param("a\n\nx += y\n\nb\n", "a\n\nb\n", id="blank lines do not pile up"),
        pytest.param(
            "if a:\n    b\n    # why\n    x += y\nc\n",
            "if a:\n    b\n    # why\nc\n",
            id="a comment at the end",
        ),
        pytest.param("a; x += y; b\n", "a; b\n", id="one of several on a line"),
    ],
)
def test_a_removed_statement_leaves_its_comments_and_a_body_that_parses(before: str, after: str) -> None:
    tree = Tree(before)
    removed = [Edit(node, cst.RemoveFromParent()) for node in augmented(tree, before)]
    assert apply(tree, removed) == after


def test_a_removed_line_leaves_its_comments_as_well() -> None:
    tree = Tree("# why\nx += y\nb\n")
    line = tree.statement(augmented(tree, tree.source)[0])
    assert apply(tree, [Edit(line, cst.RemoveFromParent())]) == "# why\nb\n"


def test_one_node_can_become_several() -> None:
    tree = Tree("if a:\n    x += y\n")
    line = tree.statement(augmented(tree, tree.source)[0])
    twice = cst.FlattenSentinel([line, cst.parse_statement("done()")])
    assert apply(tree, [Edit(line, twice)]) == "if a:\n    x += y\n    done()\n"


def test_fixes_that_touch_the_same_nodes_are_not_applied_together() -> None:
    tree = Tree("x += y\nif a:\n    x += z\n")
    first, second = (out_of_place(node) for node in augmented(tree, tree.source))
    around = Edit(tree.module.body[1], cst.RemoveFromParent())
    assert compatible(tree, [[first], [second], [around], [first]]) == [0, 1]
    assert compatible(tree, [[around], [second], [first]]) == [0, 2]


def test_an_edit_of_a_foreign_node_is_refused() -> None:
    with pytest.raises(ValueError, match="not in this tree"):
        apply(Tree("a\n"), [Edit(cst.Name("a"), cst.Name("b"))])


def test_text_edits_are_the_shortest_stretches() -> None:
    tree = Tree("é = 1\nif x:\n    ñ; x += y\nz\n")
    (node,) = augmented(tree, tree.source)
    assert text_edits(tree, changes(tree, [out_of_place(node)])) == (TextEdit(3, 10, 3, 12, "= x +"),)


def test_text_edits_of_a_removed_line_take_its_end_along() -> None:
    tree = Tree("a\nx += y\nz")
    (node,) = augmented(tree, tree.source)
    assert text_edits(tree, changes(tree, [Edit(node, cst.RemoveFromParent())])) == (
        TextEdit(2, 1, 3, 1, ""),
    )


def test_two_statements_are_changed_at_once() -> None:
    tree = Tree("x += y\n\n\nif a:\n    x += z\n")
    edits = [out_of_place(node) for node in augmented(tree, tree.source)]
    assert [(change.start, change.end) for change in changes(tree, edits)] == [(0, 1), (4, 5)]
    assert apply(tree, edits) == "x = x + y\n\n\nif a:\n    x = x + z\n"


def test_many_findings_in_one_file_cost_no_more_than_each() -> None:
    text = "import torch\n" + "x += y\n" * 1000
    tree = Tree(text)
    start = time.process_time()
    for node in augmented(tree, text):
        changes(tree, [out_of_place(node)])
    assert time.process_time() - start < 3
