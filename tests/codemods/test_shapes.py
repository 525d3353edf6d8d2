"""Shapes find what libcst's own matchers find, for every way in which a codemod asks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import libcst as cst
import pytest
from libcst import matchers

from gradfix.rewriting import shapes

TEXT = "\n".join(
    path.read_text()
    for path in sorted((Path(__file__).parent.parent.parent / "fixtures").glob("[m-s]*/*/before.py"))[::6]
)
MODULE = cst.parse_module(TEXT + "\nx = f(x) + x\ntotal += x\nreturned = [*{}]\ndef h(x): return x\n")


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(lambda m: m.Call(), id="a kind alone"),
        pytest.param(lambda m: m.Name("x"), id="a part by its place"),
        pytest.param(
            lambda m: m.Call(func=m.Attribute(attr=m.Name("parameters")), args=[]), id="no arguments"
        ),
        pytest.param(lambda m: m.Assign(value=m.Call()), id="a part of a kind"),
        pytest.param(lambda m: m.Assign(targets=[m.AssignTarget(m.Name("x"))]), id="a list of one"),
        pytest.param(lambda m: m.Call(args=[m.Arg(m.Name("x"))]), id="an argument"),
        pytest.param(lambda m: m.AugAssign(m.Name("total"), m.AddAssign(), m.Name()), id="three by place"),
        pytest.param(lambda m: m.BinaryOperation(m.Call(), m.Add(), m.Name("x")), id="an operator"),
        pytest.param(lambda m: m.Import() | m.ImportFrom() | m.Dict(), id="one of three kinds"),
        pytest.param(lambda m: m.Return(m.Name("x")) | m.NamedExpr(m.Name("x")), id="one of two with parts"),
    ],
)
def test_a_shape_finds_what_a_matcher_finds(ask: Any) -> None:
    expected = matchers.findall(MODULE, ask(matchers))
    assert expected
    assert {id(node) for node in shapes.findall(MODULE, ask(shapes))} == {id(node) for node in expected}
    assert not shapes.matches(MODULE, ask(shapes))
