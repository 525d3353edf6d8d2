"""Where a suppression holds."""

from __future__ import annotations

import pytest

from gradfix.registry import codemods
from gradfix.source import Source, parse
from gradfix.suppressions import Suppressions, read


def suppressions(text: str) -> Suppressions:
    source = parse("x.py", text.encode())
    assert isinstance(source, Source)
    return read(source)


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        pytest.param("x  # gradfix: ignore[GF101]\n", 1, True, id="its code"),
        pytest.param("x  # gradfix: ignore[graph_leak, by_name]\n", 1, True, id="its name, among others"),
        pytest.param("x  # gradfix: ignore\n", 1, True, id="all rules"),
        pytest.param("x  #gradfix:ignore [ GF101 ]\n", 1, True, id="other spacing"),
        pytest.param("x  # noqa  # gradfix: ignore[GF101] we know\n", 1, True, id="among other words"),
        pytest.param("x  # gradfix: ignore[GF999]\n", 1, False, id="another code"),
        pytest.param("x  # gradfix: ignore[GF1]\n", 1, True, id="the beginning of its code"),
        pytest.param("x  # gradfix: ignore[GF2]\n", 1, False, id="the beginning of another code"),
        pytest.param("x  # gradfix: ignore[gf101]\n", 1, True, id="its code in small letters"),
        pytest.param("x  # gradfix: ignore[ALL]\n", 1, True, id="all rules by a word"),
        pytest.param("x  # gradfix: ignore[]\n", 1, False, id="an empty list"),
        pytest.param("x  # gradfix: ignore GF201\n", 1, True, id="text behind it is a comment"),
        pytest.param("x  # gradfix: ignored\n", 1, False, id="another word"),
        pytest.param("x = '# gradfix: ignore'\n", 1, False, id="in a string"),
        pytest.param("# gradfix: ignore\nx\n", 2, False, id="on the line above"),
        pytest.param("f(a,\n  b)  # gradfix: ignore\n", 1, True, id="at the end of the statement"),
        pytest.param("f(  # gradfix: ignore\n  b)\n", 2, True, id="at the start of the statement"),
        pytest.param("f(\n  # gradfix: ignore\n  b)\nx\n", 4, False, id="not beyond the statement"),
        pytest.param("with a:  # gradfix: ignore\n    x\n", 1, True, id="the head of a block"),
        pytest.param("with a:  # gradfix: ignore\n    x\n", 2, False, id="not the block itself"),
        pytest.param("a\rx  # gradfix: ignore\rb", 2, True, id="lone carriage returns"),
        pytest.param("a\n\x0cx  # gradfix: ignore\n", 2, True, id="after a form feed"),
    ],
)
def test_a_suppression_holds_for_its_logical_line(text: str, line: int, expected: bool) -> None:
    assert (suppressions(text).silencing(line, "GF101", "by_name") is not None) is expected


@pytest.mark.parametrize(
    ("comment", "words"),
    [
        pytest.param("ignore[GF101]", "", id="a code"),
        pytest.param("ignore[GF1, graph_leak]", "", id="the beginning of a code, and a name"),
        pytest.param("ignore", "", id="every rule"),
        pytest.param("ignore all of it, see the 3rd page", "", id="every rule, with a comment"),
        pytest.param("ignore (see #12)", "", id="every rule, with a comment in parentheses"),
        pytest.param("ignore 3 calls", "", id="every rule, with a number in the comment"),
        pytest.param("ignore[GF999]", "'GF999' names no rule, see --list-rules", id="an unknown code"),
        pytest.param("ignore[GF101, G102]", "'G102' names no rule, did you mean GF102?", id="a slip"),
        pytest.param("ignore[graph_leek]", "did you mean graph_leak?", id="a slip in a name"),
        pytest.param("ignore[]", "silences nothing; write `# gradfix: ignore[GF101]`", id="an empty list"),
        pytest.param("ignore GF101", "silences every rule", id="a code without brackets"),
        pytest.param("ignore: GF999", "silences every rule", id="an unknown code behind a colon"),
        pytest.param("ignore graph_leak", "silences every rule", id="a name without brackets"),
        pytest.param("ignore[GF101", "silences every rule", id="a bracket that is not closed"),
    ],
)
def test_a_suppression_that_may_be_misread_is_doubted(comment: str, words: str) -> None:
    (ignore,) = suppressions(f"x  # gradfix: {comment}\n").ignores
    doubt = ignore.doubt(codemods())
    assert words in doubt and bool(words) == bool(doubt)


def test_a_file_is_skipped_wherever_the_comment_stands() -> None:
    assert suppressions("x\n\n    # gradfix: skip-file\n").skip_file
    assert not suppressions("x = '# gradfix: skip-file'\n").skip_file
