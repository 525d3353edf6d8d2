"""Tests on one path hold at once only where a value is found for which they do."""

from __future__ import annotations

import ast
from collections.abc import Callable
from itertools import count
from typing import Any, TypeAlias

import pytest

from gradfix.defects.reasons import What
from gradfix.tape.domain.graph import Storage
from gradfix.tape.domain.paths import Arm, Chain, Path, Settled
from gradfix.tape.domain.values import FALSE, NONE, TRUE, Alt, Const, External, Map, Seq, Unknown, Value
from gradfix.tape.domain.why import Why, fact, thing
from gradfix.tape.machine import terms as noted
from gradfix.tape.machine import witness
from gradfix.tape.machine.terms import UnprovableError, matches


class Terms(noted.Terms):
    """Tests are asked for one after the other, each under a key of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.keys = count()

    def asked(self, op: str, *operands: Value, holds: bool = True) -> Path:
        """The path on which a test comes out so."""
        key = ("test", next(self.keys))
        self.test(key, op, *operands)
        return frozenset({(key, holds)})

    def possible(self, path: Path) -> bool:
        """Whether there is a witness."""
        return witness.possible(self, path)

    def computed(self, op: str, *operands: Value) -> Unknown:
        """A value that was made so of others."""
        value = unknown()
        self.made(value, op, *operands)
        return value


def unknown() -> Unknown:
    return Unknown(fact("a number"))


def called(*holds: Value) -> Unknown:
    """What a call that isn't followed made of these."""
    return Unknown(Why(What.CALL, "a call"), holds)


def some(*constants: object) -> Seq:
    return Seq("tuple", [Const(one) for one in constants])


def name(path: str) -> External:
    return External(path)


Asked: TypeAlias = "tuple[Any, ...]"
"""What is asked, and of what besides."""
PAIRS: list[tuple[str, str, Asked, Asked, bool]] = [
    ("it is 1", "it is 1, asked anew", ("Eq", Const(1)), ("Eq", Const(1)), True),
    ("it is above 1", "it is 1", ("Gt", Const(1)), ("Eq", Const(1)), False),
    ("it is above 1", "it is 2", ("Gt", Const(1)), ("Eq", Const(2)), True),
    ("it is above 5", "it is below 5", ("Gt", Const(5)), ("Lt", Const(5)), False),
    ("it is above 5", "it is below 6", ("Gt", Const(5)), ("Lt", Const(6)), False),
    ("it is above 5", "it is below 6.5", ("Gt", Const(5)), ("Lt", Const(6.5)), True),
    ("it is above 5", "it is below 7", ("Gt", Const(5)), ("Lt", Const(7)), True),
    ("it is None", "it is true", ("Is", NONE), ("true",), False),
    ("it isn't None", "it is true", ("IsNot", NONE), ("true",), True),
    ("it is 'c'", "it is one of 'a' and 'b'", ("Eq", Const("c")), ("In", some("a", "b")), False),
    ("it is 'b'", "it is one of 'a' and 'b'", ("Eq", Const("b")), ("In", some("a", "b")), True),
    ("it is one of two", "it is one of two others", ("In", some(1, 2)), ("In", some(3, 4)), False),
    ("it is one of two", "it is another of two", ("In", some(1, 2)), ("In", some(2, 3)), True),
    ("it is none of two", "it is one of them", ("NotIn", some("a", "b")), ("Eq", Const("a")), False),
    ("it starts with x", "it is y", (".startswith", Const("x")), ("Eq", Const("y")), False),
    ("it starts with x", "it isn't y", (".startswith", Const("x")), ("NotEq", Const("y")), True),
    ("it is an int", "it is a text", ("isinstance", name("builtins.int")),
     ("isinstance", name("builtins.str")), False),
    ("it is an int", "it is a truth", ("isinstance", name("builtins.int")),
     ("isinstance", name("builtins.bool")), True),
    ("it is None", "it is a text", ("Is", NONE), ("isinstance", name("builtins.str")), False),
    ("it is one phase", "it is another", ("Is", name("phases.TRAIN")), ("Eq", name("phases.TEST")), False),
    ("it is one phase", "it equals it", ("Is", name("phases.TRAIN")), ("Eq", name("phases.TRAIN")), True),
    ("it is True", "it is 1", ("Is", TRUE), ("Eq", Const(1)), True),
    ("it is False", "it is true", ("Is", FALSE), ("true",), False),
]  # fmt: skip


@pytest.mark.parametrize(
    ("one", "other", "possible"),
    [
        pytest.param(one, other, holds, id=f"{first} and {second}")
        for first, second, one, other, holds in PAIRS
    ],
)
def test_two_tests_of_one_value_need_a_value_for_both(one: Asked, other: Asked, possible: bool) -> None:
    terms, value = Terms(), unknown()
    path = terms.asked(one[0], value, *one[1:]) | terms.asked(other[0], value, *other[1:])
    assert terms.possible(path) is possible
    assert terms.possible(path) is possible, "the answer is kept"


def test_a_test_and_its_contrary_hold_for_two_values_but_not_for_one() -> None:
    terms, value = Terms(), unknown()
    holds = terms.asked("Eq", value, Const(1))
    assert not terms.possible(holds | terms.asked("Eq", value, Const(1), holds=False))
    assert terms.possible(holds | terms.asked("Eq", unknown(), Const(1), holds=False))


def test_one_test_alone_is_believed() -> None:
    terms, value = Terms(), unknown()
    assert terms.possible(terms.asked("Lt", value, value))


def test_what_nobody_can_compute_is_believed_alone_and_not_beside_another() -> None:
    terms, value = Terms(), unknown()
    strange = terms.asked("a question of its own", value)
    assert terms.possible(strange)
    assert not terms.possible(strange | terms.asked("Eq", value, Const(1)))


def test_a_witness_is_looked_for_only_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    def path(terms: Terms) -> Path:
        value = unknown()
        return terms.asked("NotEq", value, Const(1)) | terms.asked("Gt", value, Const(0))

    first, second = Terms(), Terms()
    assert first.possible(path(first))
    monkeypatch.setattr(witness, "ENOUGH", 0)
    assert not second.possible(path(second))


@pytest.mark.parametrize(("number", "possible"), [(3, True), (4, False)])
def test_what_was_computed_of_a_value_goes_with_it(number: int, possible: bool) -> None:
    terms, value = Terms(), unknown()
    more = terms.computed("add", value, Const(1))
    path = terms.asked("Eq", value, Const(2)) | terms.asked("Eq", more, Const(number))
    assert terms.possible(path) is possible


@pytest.mark.parametrize(("rest", "possible"), [(1, False), (0, True)])
def test_an_even_number_leaves_no_rest(rest: int, possible: bool) -> None:
    terms, value = Terms(), unknown()
    path = terms.asked("Eq", terms.computed("mod", value, Const(2)), Const(0)) | terms.asked(
        "Eq", terms.computed("mod", value, Const(2)), Const(rest)
    )
    assert terms.possible(path) is possible


def test_what_a_call_made_of_a_value_may_depend_on_it() -> None:
    terms, value = Terms(), unknown()
    made = called(value)
    assert not terms.possible(terms.asked("Eq", value, Const(2)) | terms.asked("Eq", made, Const(1)))
    assert terms.possible(terms.asked("Eq", unknown(), Const(2)) | terms.asked("Eq", made, Const(1)))


def test_that_something_is_there_says_nothing_of_what_a_call_makes_of_it() -> None:
    terms, value = Terms(), unknown()
    made = called(value)
    assert terms.possible(terms.asked("IsNot", value, NONE) | terms.asked("Eq", made, Const(1)))
    assert terms.possible(terms.asked("true", value) | terms.asked("Eq", made, Const(1)))


def test_what_is_asked_again_of_the_same_has_the_same_answer() -> None:
    terms, config = Terms(), Unknown(thing("a config"))
    first, second = unknown(), unknown()
    terms.answered(first, "get", config, Const("act"))
    terms.answered(second, "get", config, Const("act"))
    said = terms.asked("Eq", first, Const("sigmoid"))
    assert not terms.possible(said | terms.asked("Eq", second, Const("none")))
    assert terms.possible(said | terms.asked("Eq", second, Const("none"), holds=False))


def test_what_is_asked_of_one_thing_in_two_ways_has_no_witness() -> None:
    terms, config = Terms(), Unknown(thing("a config"))
    first, other = unknown(), unknown()
    terms.answered(first, "get", config, Const("act"))
    terms.answered(other, "pop", config, Const("act"))
    said = terms.asked("Eq", first, Const("sigmoid"))
    assert not terms.possible(said | terms.asked("Eq", other, Const("none")))
    assert terms.possible(said | terms.asked("IsNot", config, NONE))


def test_elements_of_one_thing_say_nothing_of_each_other_but_of_the_whole() -> None:
    terms, whole = Terms(), Unknown(thing("a list"))
    first, second = (Unknown(Why(What.ELEMENT, "an element"), (whole,)) for _ in range(2))
    said = terms.asked("Eq", first, Const(1))
    assert terms.possible(said | terms.asked("Eq", second, Const(2)))
    assert not terms.possible(said | terms.asked("Eq", whole, Const(2)))


@pytest.mark.parametrize(("number", "possible"), [(2, False), (3, True)])
def test_what_a_function_has_raised_for_is_no_witness(number: int, possible: bool) -> None:
    terms, one, other = Terms(), unknown(), unknown()
    terms.refused[terms.asked("Eq", one, Const(1)) | terms.asked("Eq", other, Const(2))] = None
    path = terms.asked("Eq", one, Const(1)) | terms.asked("Eq", other, Const(number))
    assert terms.possible(path) is possible


def test_what_was_raised_for_something_else_says_nothing() -> None:
    terms, one, other = Terms(), unknown(), unknown()
    terms.refused[terms.asked("Eq", one, Const(1)) | terms.asked("Eq", unknown(), Const(2))] = None
    assert terms.possible(terms.asked("Eq", one, Const(1)) | terms.asked("Eq", other, Const(2)))


def test_two_facts_of_one_thing_have_no_witness() -> None:
    terms, rank, size = Terms(), unknown(), unknown()
    rank.about = size.about = Storage()
    assert not terms.possible(terms.asked("Eq", rank, Const(2)) | terms.asked("Gt", size, Const(1)))
    assert terms.possible(terms.asked("Eq", rank, Const(2)) | terms.asked("Gt", unknown(), Const(1)))


def test_a_name_of_a_package_is_one_value_wherever_it_is_read() -> None:
    terms = Terms()
    said = terms.asked("Eq", name("flags.mode"), Const("a"))
    assert not terms.possible(said | terms.asked("Eq", name("flags.mode"), Const("b")))
    assert terms.possible(said | terms.asked("Eq", name("flags.kind"), Const("b")))


@pytest.mark.parametrize(("number", "possible"), [(1, True), (2, False)])
def test_an_alternative_is_what_its_path_says(number: int, possible: bool) -> None:
    terms, value = Terms(), unknown()
    on, off = terms.asked("Gt", value, Const(0)), terms.asked("Gt", value, Const(0), holds=False)
    either = Alt(((on, Const(1)), (off, Const(2))))
    path = terms.asked("Eq", value, Const(5)) | terms.asked("Eq", either, Const(number))
    assert terms.possible(path) is possible


@pytest.mark.parametrize(("number", "possible"), [(1, True), (3, False)])
def test_a_settled_test_holds_where_its_paths_do(number: int, possible: bool) -> None:
    terms, value = Terms(), unknown()
    key = Settled("later", [terms.asked("Lt", value, Const(2))], [terms.asked("GtE", value, Const(2))])
    assert terms.possible(frozenset({(key, True)}) | terms.asked("Eq", value, Const(number))) is possible


def test_a_settled_test_may_come_out_as_anybody_wants_where_no_path_says() -> None:
    terms, value = Terms(), unknown()
    key = Settled("later", [terms.asked("Eq", value, Const(1))], [terms.asked("Eq", value, Const(2))])
    for holds in (True, False):
        assert terms.possible(frozenset({(key, holds)}) | terms.asked("Eq", value, Const(3)))


@pytest.mark.parametrize(("number", "possible"), [(1, False), (2, True), (3, False)])
def test_an_arm_is_taken_where_its_test_is_the_first_that_holds(number: int, possible: bool) -> None:
    terms, value = Terms(), unknown()
    chain = Chain("if", [terms.asked("Eq", value, Const(1)), terms.asked("Lt", value, Const(3))], ["", ""])
    path = frozenset({(Arm(chain, 0b010), True)}) | terms.asked("Eq", value, Const(number))
    assert terms.possible(path) is possible


@pytest.mark.parametrize(("length", "possible"), [(0, False), (2, True)])
def test_a_list_is_as_long_as_it_is_true(length: int, possible: bool) -> None:
    terms, value = Terms(), unknown()
    long = terms.computed("len", value)
    assert terms.possible(terms.asked("true", value) | terms.asked("Eq", long, Const(length))) is possible


@pytest.mark.parametrize(
    ("container", "possible"),
    [
        pytest.param(lambda one: Seq("list", [one, Const(0)]), False, id="in a list"),
        pytest.param(lambda one: Map({"k": one}), True, id="in a dict, which holds keys"),
        pytest.param(lambda one: Seq("list", [one], True), False, id="in a list that may hold more"),
    ],
)
def test_what_is_in_a_container_is_looked_at(container: Callable[[Value], Value], possible: bool) -> None:
    terms, value = Terms(), unknown()
    path = terms.asked("Eq", value, Const(1)) | terms.asked("In", Const(1), container(value), holds=False)
    assert terms.possible(path) is possible


@pytest.mark.parametrize(
    ("case", "subject", "taken"),
    [
        ("1", 1, True),
        ("1", 2, False),
        ("None", None, True),
        ("None", 0, False),
        ("1 | 2", 2, True),
        ("1 | 2", 3, False),
        ("_", 3, True),
        ("('a', True)", ("a", True), True),
        ("('a', True)", ("a", False), False),
        ("('a', True)", ("a",), False),
        ("('a', _)", "ab", False),
    ],
)
def test_a_case_takes_what_python_has_it_take(case: str, subject: object, taken: bool) -> None:
    python: dict[str, object] = {"subject": subject}
    exec(f"match subject:\n    case {case}:\n        hit = True\n", python)
    assert ("hit" in python) is taken
    assert matches(subject, _pattern(case)) is taken


@pytest.mark.parametrize("case", ["[1, *_]", "{'k': 1}", "int()"])
def test_nobody_knows_what_other_cases_take(case: str) -> None:
    with pytest.raises(UnprovableError):
        matches([1], _pattern(case))


def _pattern(case: str) -> ast.pattern:
    (statement,) = ast.parse(f"match subject:\n    case {case}:\n        pass\n").body
    assert isinstance(statement, ast.Match)
    return statement.cases[0].pattern
