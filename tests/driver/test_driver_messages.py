"""A size of nothing is a size like any other."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from gradfix.driver.search.attempt import Result
from gradfix.driver.search.drafts import Draft
from gradfix.driver.search.failures import fitted
from gradfix.driver.search.messages import Constraint
from gradfix.driver.values import Argument, Number

pytestmark = pytest.mark.torch


def test_what_came_without_a_size_divides_nothing() -> None:
    draft = Draft((Argument("width", Number(16)),), (), {})
    for changes in fitted(draft, Constraint("size", 0, 24), Result(draft)):
        assert changes
