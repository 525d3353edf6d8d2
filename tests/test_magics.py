"""What IPython reads in a cell and Python doesn't: each line gets a stand-in, which keeps its number."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradfix.magics import translated
from gradfix.places import lines

MARK = "# %%"


def python(text: str, boldly: bool = True) -> list[str]:
    """The lines that Python reads, without what marks a stand-in."""
    part = translated(text, MARK, 0, boldly)
    ast.parse(f"{part.head}\n{part.text}")
    read = lines(part.text)
    assert len(read) == len(lines(text))
    return [line.partition(MARK)[0].rstrip() for line in read]


def untouched(text: str) -> bool:
    return translated(text, MARK, 0).text == text


@pytest.mark.parametrize(
    ("text", "read"),
    [
        pytest.param("%matplotlib inline\nx = 1", ["pass", "x = 1"], id="a line magic does nothing"),
        pytest.param("!pip install torch\nx = 1", ["pass", "x = 1"], id="a shell line does nothing"),
        pytest.param(
            "!pip install \\\n  torch\nx", ["pass", "pass", "x"], id="a shell line goes on behind its end"
        ),
        pytest.param("?model\nmodel?\nnn.Linear??", ["pass"] * 3, id="a call for help does nothing"),
        pytest.param(
            "for f in x:\n    !ls {f}", ["for f in x:", "    pass"], id="a shell line keeps its indentation"
        ),
        pytest.param("files = !ls", ["files = get_ipython()"], id="what a shell line gives isn't known"),
        pytest.param("a, b = %sql select", ["a, b = get_ipython()"], id="nor what a magic gives"),
        pytest.param("%time loss.backward()", ["pass; loss.backward()"], id="a timed statement is run"),
        pytest.param("%timeit -n 10 -o f(x)", ["pass;            f(x)"], id="options are no part of it"),
        pytest.param("y = %time f(x)", ["y =       f(x)"], id="what a timed statement gives is known"),
        pytest.param("%run train.py", ["from get_ipython import *"], id="a program that is run brings names"),
        pytest.param("%%time\nf(x)", ["pass", "f(x)"], id="a cell that is timed is Python"),
        pytest.param("%%capture out\nf(x)", ["pass", "f(x)"], id="so is one whose output is kept"),
        pytest.param(
            "# why\n%%time\nf(x)", ["# why", "pass", "f(x)"], id="a comment may stand above a magic"
        ),
        pytest.param("%%bash\nls -l\necho $X", ["pass"] * 3, id="a cell for the shell is left out"),
        pytest.param("%%writefile a.py\nx = 1", ["pass"] * 2, id="so is one that becomes a file"),
        pytest.param("%%wandb\nf(x)", ["pass", "f(x)"], id="a magic that nobody knows may run Python"),
        pytest.param(
            "pip install torch", ["pass"], id="a cell of one line may name a magic without its sign"
        ),
        pytest.param("  x = 1\n  y = 2", ["  x = 1", "  y = 2"], id="a cell may be indented as a whole"),
    ],
)
def test_a_cell_is_read_as_ipython_reads_it(text: str, read: list[str]) -> None:
    assert python(text) == read


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('"""\n%time\n!ls\n"""', id="in a string of several lines"),
        pytest.param("x = (a\n  % b)", id="in brackets"),
        pytest.param("x = a \\\n  % b", id="behind a backslash"),
        pytest.param("s = 'ls = !x'", id="in a string"),
        pytest.param("f(a != b, '?')", id="in an expression"),
        pytest.param("# what?", id="in a comment"),
        pytest.param("s = 'a\\\n%b'", id="in a string that goes on behind a backslash"),
        pytest.param("s = r'\\'\nt = '''\n!x\n'''", id="behind a raw string"),
    ],
)
def test_what_only_looks_like_a_magic_is_python(text: str) -> None:
    assert untouched(text)


def test_what_no_magic_runs_is_left_out_where_it_is_no_python() -> None:
    assert python("%%cooking\n2 eggs", boldly=False) == ["pass", "pass"]
    assert python("%time 2 eggs", boldly=False) == ["pass"]


def test_a_statement_that_a_magic_runs_keeps_its_column() -> None:
    for text in ("%time loss.backward()", "  %prun -l 3 loss.backward()", "y = %timeit loss.backward()"):
        assert lines(translated(text, MARK, 0).text)[0].index("loss") == text.index("loss")


def test_stand_ins_are_numbered_from_where_the_last_cell_ended() -> None:
    part = translated("%a\nx\n!b", MARK, 4)
    assert part.text == "pass  # %% 4\nx\npass  # %% 5"
    assert part.originals == ("%a", "!b")


LINES = (
    "x = 1",
    "%matplotlib inline",
    "!ls {x} \\\n  more",
    "y = !ls",
    "z = %env HOME",
    "x?",
    "?nn.Linear",
    "f(x\n  % y)",
    "if x:\n    %cd ..\n    y = 2\nelse:\n    !rm a",
    's = """\n%time\n!ls"""',
    "t = 'x\\\n%y'",
    "u = x \\\n  % y",
    "# !no %magic?",
    "v = [  # open (\n1,\n2]",
    "",
    "w = a if b else '?'",
    "def g():\n    '''doc?\n!x\n    '''\n    return {'%': 1}",
)


def plain(text: str) -> list[str]:
    """The statements of a cell that are no magic's."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        for body in (getattr(node, name, None) for name in ("body", "orelse")):
            if isinstance(body, list):
                body[:] = [one for one in body if not _magic(one)] or [ast.Pass()]
    return [ast.unparse(one) for one in tree.body]


def _magic(node: ast.AST) -> bool:
    return isinstance(node, ast.Pass) or "get_ipython()" in ast.unparse(node).partition("\n")[0]


@settings(deadline=None)
@given(st.lists(st.sampled_from(LINES), max_size=6))
def test_the_statements_of_a_cell_are_those_that_ipython_makes_of_it(parts: list[str]) -> None:
    transformer = pytest.importorskip("IPython.core.inputtransformer2").TransformerManager()
    cell = "\n".join(parts)
    assert plain(translated(cell, MARK, 0).text) == plain(transformer.transform_cell(cell))
