"""A class is a module by its shape, where its base can't be read: by what it puts on itself."""

from __future__ import annotations

import pytest
from short import analysis, kinds

MADE = """
from models import Base

class Encoder(Base):
    def __init__(self, dim):
        super().__init__()
        self.conv = nn.Conv1d(dim, dim, 1)

    def forward(self, x):
        x = self.conv(x)
        y = self.conv(x)
        x += y
        return y
"""
IN_PLACE = "inplace_overwrites_saved"
BROKEN = {
    "the base is imported": MADE,
    "the base is made by what is not known": MADE.replace("(Base)", "(Base.of('torch'))"),
    "a class between them": MADE.replace(
        "class Encoder(Base)", "class Mid(Base): pass\n\nclass Encoder(Mid)"
    ),
    "the base is named as it is initialised": MADE.replace("super()", "super(Encoder, self)"),
}
HEALTHY = {
    "no base": MADE.replace("(Base)", ""),
    "a base of Python's own": MADE.replace("models import Base", "abc import ABC as Base"),
    "a base of another package of the name of one that is known": MADE.replace(
        "models import Base", "flax.linen import Module as Base"
    ),
    "the base does not begin": MADE.replace("super().__init__()", "pass"),
    "what it puts on itself has no parameters": MADE.replace("nn.Conv1d(dim, dim, 1)", "nn.Softmax(dim)"),
    "its layers are of another package": MADE.replace("from models", "import paddle.nn as nn\nfrom models"),
    "forward is given nothing": MADE.replace("forward(self, x):", "forward(self):").replace(
        "x = self.conv(x)", "x = self.conv(torch.ones(1, 3, 3))"
    ),
    "nothing is recorded in it": MADE.replace("    def forward", "    @torch.no_grad()\n    def forward"),
    "what is written is not saved": MADE.replace("x += y", "y += x"),
}


@pytest.mark.parametrize("program", BROKEN.values(), ids=BROKEN)
def test_a_class_that_is_made_like_a_module_is_one(program: str) -> None:
    assert IN_PLACE in kinds(program)
    assert [one.certainty for one in analysis(program).defects if one.kind == IN_PLACE] == ["likely"]


@pytest.mark.parametrize("program", HEALTHY.values(), ids=HEALTHY)
def test_what_only_looks_like_a_module_is_none(program: str) -> None:
    assert kinds(program) == set()


USED = """
encoder = Encoder(3)
optimizer = torch.optim.SGD(encoder.parameters(), lr=0.1)
for x in torch.ones(4, 1, 3, 3):
    {clear}
    encoder(x).mean().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(("clear", "certainties"), [("optimizer.zero_grad()", []), ("pass", ["likely"])])
def test_what_it_takes_that_it_is_a_module_goes_with_what_it_says(clear: str, certainties: list[str]) -> None:
    program = MADE.replace("x += y", "x = x + y") + USED.format(clear=clear)
    assert [one.certainty for one in analysis(program).defects] == certainties
