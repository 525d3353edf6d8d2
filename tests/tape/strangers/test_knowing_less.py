"""What isn't known is neither a yes nor a no: texts of which less is known, beside twins that are found."""

from __future__ import annotations

import pytest

from gradfix.source import Source, parse
from gradfix.tape.entries import analyse

IMPORTS = "import torch\nfrom torch import nn\nfrom torch.autograd import Variable\n"
UNDECIDED = {
    "a leaf that may require grad by itself, in a loop over what isn't known": """
from elsewhere import blur
w = Variable(blur(torch.randn(4)), requires_grad=blur(True))
for turn in range(blur(3)):
    w.sum().backward()
""",
    "a leaf written through a view where recording may be off": """
w = torch.ones(4, requires_grad=True)
with mode(torch.no_grad()):
    w.view(-1).add_(1)
w.abs().max().backward()
print(w.grad)
""",
    "a leaf written through a view, and shared by two backwards": """
w = torch.ones(4, requires_grad=True)
with mode(torch.no_grad()):
    w.view(-1)[0] = 1.0
w.exp().sum().backward()
w.sum().backward()
""",
}
FOUND = {
    "a copy that was asked not to require grad": (
        "converted_loss_path",
        """
from elsewhere import blur
w = Variable(blur(torch.randn(4)))
for turn in range(blur(3)):
    w.sum().backward()
""",
    ),
    "a result written through a view where recording may be off": (
        "grad_of_non_leaf",
        """
w = torch.ones(4, requires_grad=True) * 2
with mode(torch.no_grad()):
    w.view(-1).add_(1)
w.abs().max().backward()
print(w.grad)
""",
    ),
    "a result of such a leaf that is shared by two backwards": (
        "backward_twice",
        """
w = torch.ones(4, requires_grad=True)
with mode(torch.no_grad()):
    w.view(-1)[0] = 1.0
y = w.exp()
y.sum().backward()
y.mean().backward()
""",
    ),
}


def listed(body: str) -> set[str]:
    source = parse("program.py", (IMPORTS + body).encode())
    assert isinstance(source, Source)
    defects = analyse(source).defects
    return {d.kind for d in defects if d.impact != "style" and d.certainty != "suspect"}


@pytest.mark.parametrize("body", UNDECIDED.values(), ids=UNDECIDED)
def test_nothing_is_listed_of(body: str) -> None:
    assert not listed(body)


@pytest.mark.parametrize(("kind", "body"), FOUND.values(), ids=FOUND)
def test_its_twin_is_found(kind: str, body: str) -> None:
    assert kind in listed(body)
