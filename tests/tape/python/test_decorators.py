"""What a decorator of the source makes of a function is what is called in its place."""

from __future__ import annotations

import pytest
from short import listed

TRAINED = """
import functools

{decorator}

net = nn.Linear(4, 1)

{decorated}
def loss(x):
    return net(x).pow(2)

loss(torch.randn(8, 4)).backward()
"""
REDUCES = """
def reduces(function):
    {wraps}
    def inner(*args, **kwargs):
        return function(*args, **kwargs){what}
    return inner
"""
NAMED = """
def named(how):
    def decorate(function):
        def inner(x):
            return function(x).mean() if how == "mean" else function(x) * 2
        return inner
    return decorate
"""
KEPT = "kept = []\ndef keep(function):\n    kept.append(function)\n    return function\n"
STACKED = """
def reduces(function):
    return lambda x: function(x).mean()
def doubles(function):
    return lambda x: function(x) * 2
def squeezes(function):
    return lambda x: function(x)[:3]
"""
OBJECT = """
class Around:
    def __init__(self, function):
        self.function = function
    def __call__(self, x):
        return self.function(x).mean()
"""
PARTIAL = """
def named(function, how="double"):
    return lambda x: function(x).mean() if how == "mean" else function(x) * 2
"""
CASES = [
    ("it reduces", REDUCES.format(wraps="", what=".mean()"), "@reduces", False),
    ("it reduces and keeps the name", REDUCES.format(wraps="@functools.wraps(function)", what=".mean()"),
     "@reduces", False),
    ("it doubles", REDUCES.format(wraps="", what=" * 2"), "@reduces", True),
    ("it doubles and keeps the name", REDUCES.format(wraps="@functools.wraps(function)", what=" * 2"),
     "@reduces", True),
    ("it is made with what has it reduce", NAMED, "@named('mean')", False),
    ("it is made with something else", NAMED, "@named('double')", True),
    ("it keeps the function as it is", KEPT, "@keep", True),
    ("one of two reduces, the last", STACKED, "@reduces\n@doubles", False),
    ("one of two reduces, the first", STACKED, "@doubles\n@reduces", False),
    ("neither of two reduces", STACKED, "@doubles\n@squeezes", True),
    ("an object of a class stands in its place", OBJECT, "@Around", False),
    ("it is given more by partial", PARTIAL, "@functools.partial(named, how='mean')", False),
    ("what torch brings keeps the result", "", "@torch.enable_grad()", True),
]  # fmt: skip


@pytest.mark.parametrize(
    ("decorator", "decorated", "found"), [pytest.param(*row[1:], id=row[0]) for row in CASES]
)
def test_a_decorated_function_gives_what_the_wrapper_gives(
    decorator: str, decorated: str, found: bool
) -> None:
    kinds = listed(TRAINED.format(decorator=decorator, decorated=decorated))
    assert kinds == ({"non_scalar_backward"} if found else set())


@pytest.mark.parametrize("factor", ["x.mean() * 2", "x * 2"])
def test_the_wrapper_is_called_with_the_function_itself(factor: str) -> None:
    body = f"""
    def around(function):
        def inner(x):
            x = function(x)
            return {factor}
        return inner

    @around
    def loss(x):
        return x.pow(2)

    loss(nn.Linear(4, 1)(torch.randn(2, 4))).backward()
    """
    assert bool(listed(body)) is (factor == "x * 2")


METHOD = """
def around(method):
    def inner(self, x):
        return method(self, x){what}
    return inner

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 1)
    @around
    def forward(self, x):
        return self.fc(x)

Net()(torch.randn(2, 4)).backward()
"""


@pytest.mark.parametrize(("what", "found"), [(".mean()", False), (" * 2", True)])
def test_a_decorated_method_is_given_its_object(what: str, found: bool) -> None:
    assert bool(listed(METHOD.format(what=what))) is found


PROPERTY = """
class State:
    def __init__(self):
        self._h = torch.zeros(1, 4)
    @property
    def h(self):
        return self._h
    @h.setter
    def h(self, value):
        self._h = value{what}

cell, state = nn.GRUCell(4, 4), State()
for _ in range(3):
    out = cell(torch.randn(1, 4), state.h)
    {written}
    out.sum().backward()
"""


@pytest.mark.parametrize("written", ["state.h = {}", "setattr(state, 'h', {})"])
@pytest.mark.parametrize(("what", "found"), [("", True), (".detach()", False)])
def test_what_a_property_is_given_comes_to_its_setter(what: str, written: str, found: bool) -> None:
    body = PROPERTY.format(what=what, written=written.format("out"))
    assert ("backward_twice" in listed(body)) is found


MODE = """
def losses(x):
    return nn.Linear(4, 1)(x).sum()

with torch.no_grad():
    loss = {mode}(losses)(torch.randn(2, 4))
loss.backward()
"""


@pytest.mark.parametrize(
    ("mode", "found"),
    [
        ("torch.enable_grad()", False),
        ("torch.enable_grad", False),
        ("torch.set_grad_enabled(True)", False),
        ("torch.set_grad_enabled(False)", True),
        ("torch.no_grad()", True),
    ],
)
def test_a_mode_that_is_called_with_a_function_is_on_as_it_runs(mode: str, found: bool) -> None:
    assert bool(listed(MODE.format(mode=mode))) is found


ELSEWHERE = """
from {package} import {name}

@{name}
def error(p, t):
    return torch.abs(p - t)

w = torch.randn(8, 4, requires_grad=True)
error(w, torch.zeros(8, 4)).backward()
"""


@pytest.mark.parametrize(
    ("package", "name", "said"),
    [
        ("mmdet.models.losses.utils", "weighted_loss", set()),
        ("elsewhere", "reduced", set()),
        ("functools", "cache", {"non_scalar_backward"}),
        ("beartype", "beartype", {"non_scalar_backward"}),
    ],
)
def test_what_another_package_decorates_may_return_something_else(
    package: str, name: str, said: set[str]
) -> None:
    assert listed(ELSEWHERE.format(package=package, name=name)) == said
