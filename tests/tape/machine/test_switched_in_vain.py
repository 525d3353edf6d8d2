"""What is set only where it is set already: a switch that freezes and never lets anything learn again."""

from __future__ import annotations

import pytest
from short import kinds

SWITCHED = """
def switch(module, flag):
    for p in module.parameters():
        {body}
net, other = nn.Linear(3, {size}), nn.Linear(3, 1)
{calls}
"""
ONE_WAY = "if p.requires_grad:\n            p.requires_grad = flag"


@pytest.mark.parametrize("size", [1, 40])
@pytest.mark.parametrize(
    ("body", "calls", "expected"),
    [
        pytest.param(ONE_WAY, "switch(net, False)\nswitch(net, True)", True, id="off and on"),
        pytest.param(ONE_WAY, "switch(net, False)", False, id="off"),
        pytest.param(ONE_WAY, "switch(net, True)\nswitch(net, False)", False, id="on and off"),
        pytest.param(ONE_WAY, "switch(net, False)\nswitch(other, True)", False, id="another one on"),
        pytest.param(
            ONE_WAY, "net.requires_grad_(False)\nswitch(net, True)", False, id="frozen elsewhere for good"
        ),
        pytest.param(ONE_WAY, "switch(net, False)\nswitch(net, unknown())", False, id="on perhaps"),
        pytest.param(
            ONE_WAY,
            "switch(net, False)\nunknown(net)\nswitch(net, True)",
            False,
            id="perhaps on again by then",
        ),
        pytest.param(
            ONE_WAY + "\n            print(p)", "switch(net, False)\nswitch(net, True)", False, id="with more"
        ),
        pytest.param(
            "p.requires_grad = flag", "switch(net, False)\nswitch(net, True)", False, id="without the test"
        ),
    ],
)
def test_a_switch_that_only_turns_off_is_asked_to_turn_on(
    size: int, body: str, calls: str, expected: bool
) -> None:
    assert ("requires_grad_misspelt" in kinds(SWITCHED.format(body=body, calls=calls, size=size))) is expected
