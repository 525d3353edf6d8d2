"""Where a suppression holds."""

from __future__ import annotations

import pytest

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


def test_a_file_is_skipped_wherever_the_comment_stands() -> None:
    assert suppressions("x\n\n    # gradfix: skip-file\n").skip_file
    assert not suppressions("x = '# gradfix: skip-file'\n").skip_file
