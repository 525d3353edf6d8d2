"""A class is looked through in Python's order."""

from __future__ import annotations

import ast
import random

import pytest

from gradfix.tape.domain.definitions import Class
from gradfix.tape.domain.values import Const, External, Value


def _made(name: str, bases: list[Value], **attrs: Value) -> Class:
    (node,) = ast.parse(f"class {name}: pass").body
    assert isinstance(node, ast.ClassDef)
    return Class(node, bases, dict(attrs), "case.py")


@pytest.mark.parametrize("seed", range(30))
def test_the_order_of_bases_is_that_of_python(seed: int) -> None:
    rng = random.Random(seed)
    python: dict[str, type] = {}
    tape: dict[str, Class] = {}
    for name in "ABCDEFGH":
        bases = rng.sample(sorted(python), min(len(python), rng.randrange(4)))
        try:
            python[name] = type(name, tuple(python[base] for base in bases), {})
        except TypeError:
            continue  # Python finds no order
        tape[name] = _made(name, [tape[base] for base in bases])
    for name, cls in tape.items():
        assert [one.name for one in cls.order] == [one.__name__ for one in python[name].__mro__[:-1]]


def test_what_the_second_base_overrides_is_found_before_what_both_share() -> None:
    shared = _made("Shared", [], deed=Const(1))
    first, second = _made("First", [shared]), _made("Second", [shared], deed=Const(2))
    found = _made("Mine", [first, second]).lookup("deed")
    assert isinstance(found, Const) and found.value == 2


def test_bases_that_nobody_knows_are_left_out_of_the_order() -> None:
    known = _made("Known", [], deed=Const(1))
    mine = _made("Mine", [External("package.Base"), known])
    assert mine.order == (mine, known)
    assert mine.lookup("deed") is known.attrs["deed"]
    assert mine.lookup("other") is None


def test_where_python_finds_no_order_there_is_one_all_the_same() -> None:
    first, second = _made("First", []), _made("Second", [])
    mine = _made("Mine", [_made("One", [first, second]), _made("Other", [second, first])])
    assert {one.name for one in mine.order} == {"Mine", "One", "Other", "First", "Second"}
