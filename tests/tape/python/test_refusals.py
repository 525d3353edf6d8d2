"""What a function raises for doesn't come behind it; what a comprehension asks for need not be there."""

from __future__ import annotations

import pytest
from short import listed

REFUSED = """
class Block(nn.Module):
    def __init__(self, act, residual):
        super().__init__()
        {refusal}
        self.lin = nn.Linear(4, 4)
        self.act, self.residual = act, residual

    def forward(self, x):
        h = self.lin(x)
        if self.act == "exp":
            h = torch.exp(h)
        if self.residual:
            h += x
        return h
"""
REFUSALS = [
    ("nothing is refused", "pass", True),
    ("both together are refused", 'if act == "exp" and residual: raise ValueError(act)', False),
    ("both together are refused, the other way round", 'if residual and act == "exp": raise ValueError(act)',
     False),
    ("one in the other is refused", 'if act == "exp":\n            if residual: raise ValueError(act)',
     False),
    ("one of them is refused", 'if act == "exp": raise ValueError(act)', False),
    ("another is refused", 'if act == "log" and residual: raise ValueError(act)', True),
    ("the contrary is refused", 'if act == "exp" and not residual: raise ValueError(act)', True),
    ("both and a third are refused", 'if act == "exp" and residual and len(act) > 9: raise ValueError(act)',
     True),
    ("what is raised is taken",
     'try:\n            if act == "exp" and residual: raise ValueError(act)\n'
     '        except ValueError:\n            print(act)', True),
]  # fmt: skip


@pytest.mark.parametrize(("refusal", "found"), [pytest.param(*row[1:], id=row[0]) for row in REFUSALS])
def test_no_object_is_what_its_constructor_refuses(refusal: str, found: bool) -> None:
    assert listed(REFUSED.format(refusal=refusal)) == ({"inplace_overwrites_saved"} if found else set())


FROZEN = """
net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
for p in {some}:
    p.requires_grad_(False)
net(torch.randn(2, 4)).mean().backward()
"""
FILTERS = [
    ("all", "net.parameters()", True),
    ("all in a list", "[p for p in net.parameters()]", True),
    ("all by name", "[p for n, p in net.named_parameters()]", True),
    ("some by name", "[p for n, p in net.named_parameters() if 'bias' not in n]", False),
    ("some by their rank", "[p for p in net.parameters() if p.ndim > 1]", False),
    ("some by their number", "[p for p in net.parameters() if p.numel() > 4]", False),
    ("some in a set", "{p for p in net.parameters() if p.ndim > 1}", False),
    ("some in a generator expression", "(p for p in net.parameters() if p.ndim > 1)", False),
    ("some of a filter", "filter(lambda p: p.ndim > 1, net.parameters())", False),
]


@pytest.mark.parametrize(("some", "found"), [pytest.param(*row[1:], id=row[0]) for row in FILTERS])
def test_what_is_listed_under_a_test_may_lack_any(some: str, found: bool) -> None:
    assert listed(FROZEN.format(some=some)) == ({"no_leaf_requires_grad"} if found else set())


STEPPED = """
enc, dec = nn.Linear(4, 4), nn.Linear(4, 1)
opt = torch.optim.SGD({some}, lr=0.1)
for _ in range(3):
    out = dec(enc(torch.randn(2, 4)))
    opt.zero_grad()
    out.mean().backward(retain_graph=True)
    opt.step()
    out.pow(2).mean().backward()
"""


@pytest.mark.parametrize(
    ("some", "found"),
    [
        pytest.param("dec.parameters()", True, id="all"),
        pytest.param("[p for p in dec.parameters()]", True, id="all in a list"),
        pytest.param("[p for p in dec.parameters() if p.ndim == 1]", False, id="some"),
    ],
)
def test_an_optimizer_may_lack_what_was_listed_under_a_test(some: str, found: bool) -> None:
    assert ("step_before_backward" in listed(STEPPED.format(some=some))) is found
