"""Who sets the grad mode in a file is of concern where somebody may come by."""

from __future__ import annotations

import pytest
from short import kinds

SETS = "def sets(on):\n    torch.set_grad_enabled(on)\n"
BODY = "w = torch.ones(3, requires_grad=True)\n{}\ny = w.exp()\ny += 1\ny.sum().backward()\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(SETS + BODY.format("elsewhere()"), {"inplace_overwrites_saved"}, id="nobody names"),
        pytest.param(SETS + BODY.format("elsewhere(sets)"), set(), id="who isn't known is given"),
        pytest.param(
            BODY.format("elsewhere()") + SETS, {"inplace_overwrites_saved"}, id="stands below it all"
        ),
    ],
)
def test_an_unknown_call_may_switch_recording_by_a_function_that(text: str, expected: set[str]) -> None:
    assert kinds(text) == expected
