"""An attribute of a class's own may be read by a file that nobody has seen, a subclass in it say."""

from __future__ import annotations

import pytest
from short import analysis

from gradfix.defects import Convention

OF_ITS_OWN = """
class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 4)
        self.require_grad = False
"""
OF_A_LAYER = """
def freeze():
    head = nn.Linear(4, 4)
    head.require_grad = False
    return head
"""


@pytest.mark.parametrize(
    ("body", "leans"),
    [
        pytest.param(OF_ITS_OWN, {Convention.B}, id="what a class sets on its own object leans on a custom"),
        pytest.param(OF_A_LAYER, set(), id="what is set on one of torch's layers is read by nobody"),
    ],
)
def test_what_others_may_read_is_never_certain(body: str, leans: set[Convention]) -> None:
    (defect,) = analysis(body).defects
    assert defect.kind == "requires_grad_misspelt"
    assert set(defect.lean) == leans
