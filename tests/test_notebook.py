"""A notebook is one program, and gets back every byte that no rewrite touches."""

from __future__ import annotations

import ast
import json
import random
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradfix.defects import Span
from gradfix.notebook import Notebook
from gradfix.places import lines
from gradfix.source import Failure, Foreign, Source, parse

PYTHON = {"language_info": {"name": "python"}}


def code(*source: str, **more: Any) -> dict[str, Any]:
    return {"cell_type": "code", "metadata": {}, "outputs": [], "source": list(source), **more}


def content(cells: Iterable[dict[str, Any]], **more: Any) -> bytes:
    whole = {"cells": list(cells), "metadata": PYTHON, "nbformat": 4, "nbformat_minor": 5, **more}
    return json.dumps(whole, indent=1, ensure_ascii=False).encode()


def read(given: bytes) -> Source:
    source = parse("a.ipynb", given)
    assert isinstance(source, Source), source
    return source


def book(given: bytes) -> Notebook:
    notebook = read(given).notebook
    assert notebook is not None
    return notebook


def refused(given: bytes) -> Failure:
    failure = parse("a.ipynb", given)
    assert isinstance(failure, Failure)
    return failure


TWO = content([{"cell_type": "markdown", "source": "# Hi"}, code("%a\n", "x = 1"), code("y = x\n", "z = y")])


def test_the_cells_are_one_program_with_a_mark_before_each() -> None:
    assert read(TWO).text == "pass  # %%\npass  # %% 0\nx = 1\npass  # %%\ny = x\nz = y\n"
    assert book(TWO).shown == "# %%\n%a\nx = 1\n# %%\ny = x\nz = y\n"


def test_a_line_of_the_program_is_one_of_a_cell() -> None:
    notebook = book(TWO)
    found = [(notebook.cell_at(line)[0].number, notebook.cell_at(line)[1]) for line in (2, 3, 5, 6)]
    assert found == [(2, 1), (2, 2), (3, 1), (3, 2)]
    assert read(TWO).cells == ((2, 1), (3, 4))


def test_a_stretch_of_the_program_is_one_of_the_file() -> None:
    given = content([code('s = "\\u2028"\n', "x = 'é'\n", "y = 2")])
    span = book(given).in_file(Span(3, 4, 3, 7))
    line = given.decode().split("\n")[span.line - 1]
    assert line[span.column : span.end_column] == "'é'"


def test_a_mark_is_one_that_no_cell_holds() -> None:
    assert book(content([code("# %%\n", "x = 1")])).mark == "# %%%"


def rewritten(given: bytes, *pairs: tuple[str, str]) -> str:
    source = read(given)
    text = source.text
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new, 1)
    return source.encode(text).decode()


def test_only_the_string_of_a_changed_line_changes() -> None:
    assert rewritten(TWO, ("y = x", "y = 2")) == TWO.decode().replace('"y = x\\n"', '"y = 2\\n"')


def test_a_new_line_is_a_string_of_its_own_between_its_neighbours() -> None:
    after = rewritten(TWO, ("z = y", "new\nz = y"))
    assert after == TWO.decode().replace('"y = x\\n",\n', '"y = x\\n",\n    "new\\n",\n')


def test_a_line_that_goes_takes_its_string_with_it() -> None:
    assert rewritten(TWO, ("y = x\n", "")) == TWO.decode().replace('    "y = x\\n",\n', "")
    assert rewritten(TWO, ("z = y\n", "")) == TWO.decode().replace('"y = x\\n",\n    "z = y"', '"y = x"')


def test_a_last_line_gets_an_end_when_another_one_follows() -> None:
    after = rewritten(TWO, ("z = y\n", "z = y\nnew\n"))
    assert after == TWO.decode().replace('"z = y"', '"z = y\\n",\n    "new"')


def test_a_last_line_with_an_end_keeps_it() -> None:
    given = content([code("x\n", "y\n")])
    assert rewritten(given, ("y\n", "y\nz\n")) == content([code("x\n", "y\n", "z\n")]).decode()


def test_a_source_that_is_one_string_stays_one() -> None:
    given = content([{**code(), "source": "x = 1\ny = 2"}])
    assert rewritten(given, ("x = 1", "x = 3\nw")) == given.decode().replace("x = 1", "x = 3\\nw")


def test_a_character_is_spelled_as_in_the_rest_of_its_cell() -> None:
    given = content([code("a @ b\n", "c")]).replace(b"@", b"\\u003c")
    assert "d \\u003c e" in rewritten(given, ("c\n", "d < e\n"))


def test_what_is_new_is_escaped_where_the_file_is_ascii() -> None:
    assert "\\u00e9" in rewritten(content([code("a")]), ("a\n", "é\n"))
    assert "é" in rewritten(content([code("a  # è")]), ("a  #", "é  #"))


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        pytest.param("pass  # %%\ny", "y", "beyond its cell", id="that takes the border of a cell away"),
        pytest.param("pass  # %% 0", "f()  # %% 0", "change a line that IPython reads", id="of a magic"),
        pytest.param("pass  # %% 0\n", "", "take away a line that IPython reads", id="that drops a magic"),
    ],
)
def test_a_rewrite_is_refused(old: str, new: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        rewritten(TWO, (old, new))


def test_nothing_may_stand_above_the_magic_of_a_cell() -> None:
    with pytest.raises(ValueError, match="above the magic"):
        rewritten(content([code("%%time\n", "x")]), ("pass  # %% 0", "new\npass  # %% 0"))


def test_a_comment_may_be_written_behind_a_magic() -> None:
    given = content([code("%time f()\n", "x")])
    assert "%time f()  # why" in rewritten(given, ("%% 0", "%% 0  # why"))


@pytest.mark.parametrize(
    ("given", "reason", "cell", "line"),
    [
        pytest.param(b'{"cells": [\n}', "not JSON: Expecting value", None, 2, id="that is no JSON"),
        pytest.param(b"[1]", "not a notebook: it has no nbformat", None, None, id="of other JSON"),
        pytest.param(
            content([], nbformat=3), "notebook format 3 is older", None, None, id="of an old format"
        ),
        pytest.param(b'{"nbformat": 4}', "without a list of cells", None, None, id="without cells"),
        pytest.param(
            content([code("x\n", "def f(:")]), "invalid syntax", 1, 2, id="with a cell that is no Python"
        ),
        pytest.param(content([code("x"), code("print 1")]), "Python 2", 2, 1, id="in Python 2"),
        pytest.param(
            content([code(), {**code(), "source": 3}]), "without a source", 2, None, id="without a source"
        ),
        pytest.param(content(["cell"]), "not a cell", 1, None, id="with a cell that is none"),  # type: ignore[list-item]
        pytest.param(b"\xff\xfa", "not utf-8: byte 0xff", None, 1, id="in another encoding"),
        pytest.param(
            content([code("f("), code(")")]),
            "was never closed",
            1,
            1,
            id="with a cell that goes on in the next",
        ),
        pytest.param(
            content([code("  x\n", " y")]), "unindent", 1, 2, id="with a cell that is indented unevenly"
        ),
    ],
)
def test_a_file_is_refused(given: bytes, reason: str, cell: int | None, line: int | None) -> None:
    failure = refused(given)
    assert reason in failure.reason
    assert (failure.cell, failure.line) == (cell, line)


@pytest.mark.parametrize(
    ("metadata", "language"),
    [
        pytest.param({"language_info": {"name": "R"}}, "R", id="by its language"),
        pytest.param({"kernelspec": {"language": "julia", "name": "j"}}, "julia", id="by its kernel"),
        pytest.param({"kernelspec": {"name": "ir"}}, "R", id="by the name of its kernel"),
    ],
)
def test_a_notebook_in_another_language_is_nobodys_fault(metadata: Any, language: str) -> None:
    failure = refused(content([code("x <- 1")], metadata=metadata))
    assert isinstance(failure, Foreign)
    assert failure.reason == f"a notebook in {language}"


def test_a_cell_in_another_language_is_left_out() -> None:
    foreign = code("x <- 1", metadata={"vscode": {"languageId": "r"}})
    assert read(content([foreign, code("x = 1")])).text == "pass  # %%\npass  # %% 0\npass  # %%\nx = 1\n"


def test_a_notebook_without_metadata_is_taken_for_python() -> None:
    assert read(content([code("x = 1")], metadata={})).text == "pass  # %%\nx = 1\n"


def test_a_byte_order_mark_is_kept() -> None:
    given = b"\xef\xbb\xbf" + TWO
    source = read(given)
    assert source.bom
    assert source.encode(source.text) == given


def test_a_cell_that_is_indented_as_a_whole_keeps_its_columns() -> None:
    given = content([code("  x = 1\n", "  y = 2")])
    source = read(given)
    assert isinstance(source.tree.body[0], ast.If)
    assert rewritten(given, ("y = 2", "y = 3")) == given.decode().replace("y = 2", "y = 3")


STATEMENTS = (
    "x = 1",
    "y = 'é<&>/'",
    "# ünï \U0001f600",
    "%time f(x)",
    "!ls -l",
    "f?",
    "",
    "for i in x:\n    !ls {i}",
    's = """\n%no magic\n"""',
    "if x:\n\ty = 2\n",
    "z = (1,\n  2)",
    "a = 'tab\\t \\\\ \\\" end'",
)
HEADS = st.sampled_from(["", "", "", "%%time\n", "%%bash\n", "\n"])
CELL = st.builds(
    lambda head, body, end: head + "\n".join(body) + end,
    HEADS,
    st.lists(st.sampled_from(STATEMENTS)),
    st.sampled_from(["", "\n"]),
)


class Odd:
    """Writes JSON in every way that is allowed."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.ascii = chance.random() < 0.5
        self.end = chance.choice(["\n", "\r\n", " ", ""])
        self.escaped = set(chance.sample("<>&/=é", 3))

    def written(self, value: Any) -> str:
        if isinstance(value, str):
            return f'"{"".join(map(self.character, value))}"'
        if isinstance(value, list):
            return f"[{self.space()}{','.join(self.item(self.written(one)) for one in value)}]"
        if isinstance(value, dict):
            members = [
                f"{self.written(key)}{self.space()}:{self.item(self.written(one))}"
                for key, one in value.items()
            ]
            return f"{{{self.space()}{','.join(map(self.item, members))}}}"
        return json.dumps(value)

    def character(self, one: str) -> str:
        if one == "/" and one in self.escaped:
            return "\\/"
        if one in self.escaped:
            return f"\\u{ord(one):04{self.chance.choice('xX')}}"
        return json.dumps(one, ensure_ascii=self.ascii)[1:-1]

    def item(self, text: str) -> str:
        return f"{self.space()}{text}{self.space()}"

    def space(self) -> str:
        return self.chance.choice(["", " ", self.end, f"{self.end}\t "])


def split(text: str, chance: random.Random) -> str | list[str]:
    """A source as one string, as a list of lines, or as a list of whatever stretches."""
    kind = chance.choice(["string", "lines", "lines", "lines", "stretches"])
    if kind == "string":
        return text
    if kind == "lines":
        return text.splitlines(keepends=True)
    cuts = sorted(chance.randrange(len(text) + 1) for _ in range(3))
    return [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def odd(texts: list[str], seed: int) -> bytes:
    """A notebook of these cells, oddly written."""
    chance = random.Random(seed)
    cells = []
    for text in texts:
        items: list[tuple[str, Any]] = list(
            {
                "source": split(text, chance),
                "id": "ü",
                "outputs": [{"x": [1.50, None, "é\n"]}],
                "metadata": {"a": []},
            }.items()
        )
        chance.shuffle(items)
        cells.append({"cell_type": "code", **dict(items)})
        if chance.random() < 0.3:
            cells.append({"cell_type": "markdown", "source": "*é*", "metadata": {}})
    top = [
        ("cells", cells),
        ("metadata", {}),
        ("nbformat", 4),
        ("nbformat_minor", 5),
        ("more", {"source": ["x"]}),
    ]
    chance.shuffle(top)
    text = Odd(chance).written(dict(top)) + chance.choice(["", "\n", "\r\n\n"])
    return chance.choice([b"", b"", b"\xef\xbb\xbf"]) + text.encode()


@settings(deadline=None)
@given(st.lists(CELL, max_size=4), st.integers(0, 10**6))
def test_what_is_not_rewritten_comes_back_byte_for_byte(texts: list[str], seed: int) -> None:
    given = odd(texts, seed)
    source = read(given)
    assert source.encode(source.text) == given
    assert [cell.text for cell in book(given).cells] == texts


def changed(text: str, chance: random.Random) -> str:
    """A program with a line replaced, taken away, or put in; no stand-in and no mark among them."""
    parts = lines(text)
    free = [i for i, line in enumerate(parts) if "# %%" not in line]
    for _ in range(chance.randrange(1, 4)):
        at = chance.choice(free)
        new = chance.choice(
            ["new = 'é<' \"\\\\\"\n", "", f"a\n{parts[at]}", f"{parts[at]}b\n", parts[at].replace("x", "xyz")]
        )
        parts[at] = new
    return "".join(parts)


@settings(deadline=None)
@given(st.lists(CELL, min_size=1, max_size=4), st.integers(0, 10**6))
def test_only_the_sources_that_are_rewritten_change(texts: list[str], seed: int) -> None:
    given = odd(texts, seed)
    source, chance = read(given), random.Random(seed)
    text = source.text
    if any("# %%" not in line for line in lines(text)):
        text = changed(text, chance)
    try:
        after = source.encode(text)
    except ValueError as error:
        assert "IPython" in str(error) or "magic" in str(error)
        return
    old, new = json.loads(given), json.loads(after)
    for before, now in zip(old["cells"], new["cells"], strict=True):
        if before["cell_type"] == "code":
            assert isinstance(before.pop("source"), str) == isinstance(now.pop("source"), str)
    assert json.dumps(new) == json.dumps(old)
    assert [cell.text for cell in _cells(after)] == list(source.notebook._texts(text))  # type: ignore[union-attr]
    for cell, then in zip(book(given).cells, _cells(after), strict=True):
        same = cell.text == then.text
        assert (cell.raw[slice(*cell.value)] == then.raw[slice(*then.value)]) == same
    assert _around(given) == _around(after)


def _cells(given: bytes) -> Any:
    """The cells of a notebook, also of one that isn't Python any more."""
    from gradfix.notebook import _cells as found
    from gradfix.notebook import _decoded, _fields

    raw = _decoded(given)
    return list(found(raw, _fields(raw)))


def _around(given: bytes) -> list[str]:
    """What stands around the sources."""
    cells = _cells(given)
    edges = [0, *(edge for cell in cells for edge in cell.value)]
    raw = given.decode("utf-8-sig")
    return [raw[start:end] for start, end in zip(edges[::2], [*edges[1::2], len(raw)], strict=True)]
