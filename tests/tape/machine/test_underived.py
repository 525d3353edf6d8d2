"""Operations that say that they require grad and have no derivative: a backward that comes to them raises."""

from __future__ import annotations

import pytest
from short import kinds, whole

PROGRAM = """
net = nn.Linear(3, 4)
out = net(torch.randn(2, 3))
{made}
loss = out.mean() + {term}
loss.backward()
"""
RAISES = {
    "a floor division": ("floors = out // 2", "floors.sum()"),
    "the function": ("floors = torch.floor_divide(out, 2)", "floors.pow(2).sum()"),
    "a step": ("floors = torch.heaviside(out, torch.zeros(1))", "(floors * out).sum()"),
}
PASSES = {
    "it isn't walked": ("floors = out // 2", "out.std()"),
    "it is cut off": ("floors = out // 2", "(floors.detach() * out).sum()"),
    "of data": ("floors = torch.arange(4) // 2", "out[:, floors].sum()"),
    "of a size": ("floors = out.size(1) // 2", "out[:, :floors].sum()"),
    "it is rounded otherwise": ("floors = torch.div(out, 2, rounding_mode='floor')", "floors.sum()"),
}


@pytest.mark.parametrize("lines", RAISES.values(), ids=RAISES.keys())
def test_a_backward_comes_to(lines: tuple[str, str]) -> None:
    assert "non_differentiable_loss" in kinds(PROGRAM.format(made=lines[0], term=lines[1]))


@pytest.mark.parametrize("lines", PASSES.values(), ids=PASSES.keys())
def test_no_backward_comes_to(lines: tuple[str, str]) -> None:
    assert "non_differentiable_loss" not in kinds(PROGRAM.format(made=lines[0], term=lines[1]))


@pytest.mark.torch
@pytest.mark.parametrize("lines", [*RAISES.values(), *PASSES.values()], ids=[*RAISES.keys(), *PASSES.keys()])
def test_what_torch_does(lines: tuple[str, str]) -> None:
    pytest.importorskip("torch")
    program = compile(whole(PROGRAM.format(made=lines[0], term=lines[1])), "case.py", "exec")
    if lines in RAISES.values():
        with pytest.raises(RuntimeError, match="is not implemented"):
            exec(program, {})
    else:
        exec(program, {})
