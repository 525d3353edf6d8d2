"""What nobody calls is entered in the order in which it tells most."""

from __future__ import annotations

import ast

import pytest
from short import analysis, whole

from gradfix.tape.strangers.whole_models import called_on_itself

CLASS = """
class Solver:
    def run(self):
        self.net.train()
        self.meter.update(1)
        {call}
"""


@pytest.mark.parametrize(
    ("call", "names"),
    [("self.fit()", {"fit"}), ("super().fit()", {"fit"}), ("self.fit.go()", set()), ("fit()", set())],
    ids=["on itself", "on its base", "on a part", "a function"],
)
def test_methods_are_called_by_their_own_class(call: str, names: set[str]) -> None:
    found = ast.parse(CLASS.format(call=call)).body[0]
    assert isinstance(found, ast.ClassDef)
    assert called_on_itself(found) == names


TRAINER = """
class Mix(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells = nn.ModuleList([nn.Linear(4, 4) for _ in range(4)])

    def forward(self, x):
        for cell in self.cells:
            y = torch.softmax(cell(x), -1) * torch.sigmoid(x) + torch.tanh(x) / 2.0
            x = y + x.mean(-1, keepdim=True) * y.std(-1, keepdim=True) - y.max(-1, keepdim=True)[0]
        return x

class Solver:
    def __init__(self, batches):
        self.batches, self.net = batches, nn.Sequential(Mix(), Mix(), Mix())
        self.opt = torch.optim.Adam(self.net.parameters(), lr=0.1)

    def test(self):
        for x in self.batches:
            print(self.net(x).mean().item(), self.net(x).std().item())
        for x in self.batches:
            print(self.net(x).amax().item(), self.net(x).amin().item())

    def train(self):
        self.net.train()
        for x in self.batches:
            out = self.net(x)
            self.opt.zero_grad()
            out.mean().backward(retain_graph=True)
            {between}
            self.opt.zero_grad()
            out.std().backward()
            self.opt.step()
"""


@pytest.mark.parametrize(("between", "said"), [("self.opt.step()", True), ("pass", False)])
def test_what_trains_is_entered_before_what_only_looks(between: str, said: bool) -> None:
    lines = whole(TRAINER.format(between=between)).splitlines()
    defects = analysis(TRAINER.format(between=between)).defects
    blamed = [lines[one.culprit.line - 1].strip() for one in defects if one.kind == "step_before_backward"]
    assert (between in blamed) is said
