"""What is kept comes back as it was, or not at all."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradfix.cache.records import NAMED, UnlikeError, reader, written
from gradfix.defects import Span
from gradfix.outcome import Outcome
from gradfix.rule import Finding

NOT_KEPT = ("verdicts", "reading")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=30,
)


def sample(kind: Any, depth: int = 3) -> Any:
    """A value of a type in which nothing is as by default."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Literal:
        return arguments[-1]
    if origin in (Union, UnionType):
        other = next(one for one in arguments if one is not type(None))
        return sample(other, depth - 1) if depth else None
    if origin is tuple:
        kinds = (arguments[0],) * 2 if arguments[1:] == (...,) else arguments
        return tuple(sample(one, depth) for one in kinds)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return list(kind)[-1]
    if is_dataclass(kind):
        hints = get_type_hints(kind, localns=NAMED)
        names = [each.name for each in fields(kind) if each.name not in NOT_KEPT]
        make: Any = kind
        return make(**{name: sample(hints[name], depth) for name in names})
    return {int: 7, bool: True, str: 'say "ä" \udc80\n', bytes: bytes(range(256))}[kind]


def through_json(value: object) -> Any:
    return json.loads(json.dumps(written(value)))


def test_an_outcome_with_all_that_it_may_have_comes_back_the_same() -> None:
    full: Outcome = sample(Outcome)
    assert all(getattr(full, f.name) != f.default for f in fields(Outcome) if f.name not in NOT_KEPT)
    assert full.findings[0].unknowns[0].of is not None
    assert reader(Outcome)(through_json(full)) == full


def test_what_is_as_by_default_takes_no_room() -> None:
    assert written(Outcome("x.py")) == ["x.py"]
    assert reader(Outcome)(["x.py"]) == Outcome("x.py")


@pytest.mark.parametrize("field", [each.name for each in fields(Finding)])
@pytest.mark.parametrize("wrong", [{}, 1.5, [[[]]], {"a": 1}], ids=repr)
def test_a_finding_with_a_field_of_another_type_is_none(field: str, wrong: object) -> None:
    full: Outcome = sample(Outcome)
    told = through_json(full.findings[0])
    told[[each.name for each in fields(Finding)].index(field)] = wrong
    with pytest.raises((UnlikeError, KeyError, ValueError)):
        reader(Finding)(told)


@pytest.mark.parametrize(
    "told",
    [
        pytest.param([1, 2, 3], id="a field too few"),
        pytest.param([1, 2, 3, 4, 5], id="a field too many"),
        pytest.param([1, 2, 3, True], id="a flag for a number"),
        pytest.param({"line": 1}, id="names for places"),
        pytest.param(None, id="nothing"),
    ],
)
def test_a_span_is_four_numbers(told: object) -> None:
    with pytest.raises(UnlikeError):
        reader(Span)(told)


def test_no_verdict_is_ever_read() -> None:
    full = replace(Outcome("x.py"), verdicts=("flows",))  # type: ignore[arg-type]
    with pytest.raises(UnlikeError):
        reader(Outcome)(through_json(full))


@settings(max_examples=200, deadline=None)
@given(JSON)
def test_whatever_somebody_wrote_there_is_an_outcome_or_refused(told: Any) -> None:
    try:
        read = reader(Outcome)(told)
    except (UnlikeError, KeyError, ValueError, TypeError):
        return
    assert through_json(read) == through_json(reader(Outcome)(through_json(read)))
