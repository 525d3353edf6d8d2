"""The grammar as a Hypothesis strategy, for tests that want its shrinking."""

from __future__ import annotations

from hypothesis import strategies as st

from .choose import Chooser
from .programs import Program, program


@st.composite
def programs(draw: st.DrawFn) -> Program:
    return program(Chooser(lambda bound: draw(st.integers(0, bound - 1))))
