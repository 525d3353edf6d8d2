"""Bad input is named with its reason; good input is read as Python reads it."""

from __future__ import annotations

import codecs
import sys

import pytest

from gradfix.gate import passes
from gradfix.source import Failure, Source, parse
from gradfix.tape.effects.frameworks import Row

READ_AS = f" (read as Python {sys.version_info[0]}.{sys.version_info[1]})"


@pytest.mark.parametrize(
    ("content", "stage", "reason", "line"),
    [
        pytest.param(b"x = (\ny = 1\n", "parse", "'(' was never closed", 1, id="a syntax error"),
        pytest.param(b"a = 1 1\n", "parse", f"invalid syntax{READ_AS}", 1, id="maybe a newer syntax"),
        pytest.param(b"def f\n", "parse", READ_AS, 1, id="something expected, maybe a newer syntax"),
        pytest.param(b"a\nprint 'x'\n", "parse", "Python 2 (Missing parentheses", 2, id="a print statement"),
        pytest.param(b"exec 'x'\n", "parse", "Python 2 (Missing parentheses", 1, id="an exec statement"),
        pytest.param(b"raise E, 'x'\n", "parse", "Python 2 (", 1, id="raise with a comma"),
        pytest.param(
            b"try:\n  a\nexcept E, e:\n  b\n", "parse", "Python 2, or newer", 3, id="except with a comma"
        ),
        pytest.param(
            b'x = f\'a\', `b` + [""a"]\n', "parse", "unterminated string", 1, id="a text that has no end"
        ),
        pytest.param(b"x = 0777\n", "parse", "Python 2 (", 1, id="an octal number"),
        pytest.param(b"x = 10L\n", "parse", "Python 2 (", 1, id="a long number"),
        pytest.param(b"if a <> b: c\n", "parse", "Python 2 (", 1, id="a diamond"),
        pytest.param(b"x = `y`\n", "parse", "Python 2 (", 1, id="backticks"),
        pytest.param(
            b"if x:\n\ty\n        z\n", "parse", "inconsistent use of tabs", 3, id="tabs and spaces"
        ),
        pytest.param(b"a\nx = '\xe9'\n", "decode", "not utf-8: byte 0xe9", 2, id="latin-1 without a cookie"),
        pytest.param(
            b"# coding: ascii\nx = '\xc3\xa9'\n", "decode", "not ascii: byte 0xc3", 2, id="a wrong cookie"
        ),
        pytest.param(
            b"# coding: nonsense\n", "decode", "unknown encoding: nonsense", 1, id="an unknown cookie"
        ),
        pytest.param(b"# coding: rot13\nk = 1\n", "decode", "not a text encoding", 1, id="no text encoding"),
        pytest.param(
            codecs.BOM_UTF8 + b"# coding: latin-1\n",
            "decode",
            "encoding problem: utf-8",
            1,
            id="a cookie against a mark",
        ),
        pytest.param("x = 1\n".encode("utf-16"), "decode", "UTF-16", 1, id="utf-16"),
        pytest.param(
            "x = 1\n".encode("utf-16-le"), "decode", "contains a NUL byte", 1, id="utf-16 without its mark"
        ),
        pytest.param(b"a\nb\0\n", "decode", "contains a NUL byte", 2, id="a nul byte"),
        pytest.param(
            b"(" * 5000 + b")" * 5000, "parse", "too many nested parentheses", 1, id="5,000 parentheses"
        ),
        pytest.param(b"-" * 100_000 + b"1", "parse", "nested too deeply", None, id="100,000 signs"),
    ],
)
def test_what_is_not_python_is_named(content: bytes, stage: str, reason: str, line: int | None) -> None:
    failure = parse("x.py", content)
    assert isinstance(failure, Failure)
    assert (failure.stage, failure.line) == (stage, line)
    assert reason in failure.reason


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"x = " + b"+".join([b"y"] * 100_000), id="100,000 terms"),
        pytest.param(b"x" + b".y" * 100_000, id="100,000 attributes"),
        pytest.param(b"x = " + b"[" * 150 + b"]" * 150, id="150 brackets"),
    ],
)
def test_what_only_some_versions_of_python_can_parse_is_parsed_or_named(content: bytes) -> None:
    source = parse("x.py", content)
    assert isinstance(source, Source) or "nested too deeply" in source.reason


@pytest.mark.parametrize(
    ("content", "text", "encoding", "newline"),
    [
        pytest.param(b"", "", "utf-8", "\n", id="an empty file"),
        pytest.param("é = 1\r\n".encode(), "é = 1\r\n", "utf-8", "\r\n", id="utf-8"),
        pytest.param(codecs.BOM_UTF8 + b"x\n", "x\n", "utf-8-sig", "\n", id="a byte order mark"),
        pytest.param(
            b"#!x\n# coding: latin-1\n'\xe9'",
            "#!x\n# coding: latin-1\n'é'",
            "iso-8859-1",
            "\n",
            id="a cookie",
        ),
        pytest.param(b"x = '\\d'\r", "x = '\\d'\r", "utf-8", "\r", id="a warning is no error"),
    ],
)
def test_a_text_comes_back_as_it_was(content: bytes, text: str, encoding: str, newline: str) -> None:
    source = parse("x.py", content)
    assert isinstance(source, Source)
    assert (source.text, source.encoding, source.newline) == (text, encoding, newline)
    assert source.encode(source.text) == content
    assert source.bom == content.startswith(codecs.BOM_UTF8)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param(b"import torch\n", True, id="torch"),
        pytest.param(b"loss.backward()\n", True, id="a backward"),
        pytest.param("import torch\n".encode("utf-16"), True, id="utf-16, which hides it"),
        pytest.param(b"import t\0orch\n", True, id="nul bytes, which hide it"),
        pytest.param(b"import numpy as np\n", False, id="numpy alone"),
        pytest.param(b"from transformers import Trainer\n", True, id="a framework's class, and no torch"),
        pytest.param(b"from transformers import AutoTokenizer\n", False, id="its package alone"),
        pytest.param(b"class Trainer: pass\n", False, id="the name of its class alone"),
        pytest.param(b"from ours import Coach\n", False, id="a class that nobody has told of"),
        pytest.param(b"", False, id="nothing"),
    ],
)
def test_the_gate_lets_pass_what_may_concern_autograd(content: bytes, expected: bool) -> None:
    assert passes(content) is expected


def test_the_gate_knows_the_frameworks_of_the_user() -> None:
    assert passes(b"from ours import Coach\n", [("Coach", Row(own=True))])
    assert passes(b"from ours import tools\ntools.Coach()\n", [("tools.Coach", Row(own=True))])
