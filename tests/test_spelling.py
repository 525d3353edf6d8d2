"""Which names were meant to be `requires_grad`."""

from __future__ import annotations

import pytest

from gradfix.spelling import distance, misspelt

SLIPS = """
requires_grads require_grad require_grads_ requiers_grad require_gard required_grad requiresgrad requiresGrad
requires_gradient require_gradient require_gradients requires_grad_ Requires_grad requries_grad reqiuresgrad
requires_gradd requires_gra requies_grad reguires_grad
"""
OTHER_WORDS = """
requires_grad requires_graph requires_grid requires_grade requires_gpu requires_bias require_group retain_grad
requires_grad_buffer requires_guard rescale_grad register_grad reduce_grad grad required requirements drag
requires_drag require_backward_grad_sync require_W_grad requires_a_grad requires_any_grad
"""


@pytest.mark.parametrize("name", SLIPS.split())
def test_a_slip_or_two_is_a_misspelling(name: str) -> None:
    assert misspelt(name)


@pytest.mark.parametrize("name", OTHER_WORDS.split())
def test_another_word_is_none(name: str) -> None:
    assert not misspelt(name)


@pytest.mark.parametrize(
    ("one", "other", "slips"),
    [
        pytest.param("grad", "grad", 0, id="nothing differs"),
        pytest.param("gard", "grad", 1, id="two neighbours swapped"),
        pytest.param("gra", "grad", 1, id="one left out"),
        pytest.param("grade", "grad", 1, id="one too many"),
        pytest.param("drag", "grad", 2, id="two replaced"),
        pytest.param("", "grad", 4, id="nothing there"),
    ],
)
def test_slips_are_counted(one: str, other: str, slips: int) -> None:
    assert distance(one, other) == distance(other, one) == slips
