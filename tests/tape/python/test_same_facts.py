"""What several tests ask of one thing is one thing: they don't come out as nobody has seen them."""

from __future__ import annotations

import pytest
from short import listed

ASKED = """
import argparse, os
from contextlib import nullcontext
parser = argparse.ArgumentParser()
args = parser.parse_args()
def block(x, mode):
    h = nn.Linear(4, 4)(x)
    if {one}:
        h = torch.sigmoid(h)
    if {other}:
        h += x
    h.sum().backward()
"""
APART = [
    ("args.mode != 'res'", "args.mode != 'sig'"),
    ("mode != 'res'", "mode not in ('sig', 'both')"),
    ("'A' in os.environ", "os.environ.get('A') is None"),
    ("os.getenv('A') is None", "'A' in os.environ"),
    ("x.is_cuda", "x.device.type == 'cpu'"),
    ("x.ndim == 3", "x.dim() == 2"),
    ("torch.device('cpu').type == 'cuda'", "mode == 'sig'"),
]
TOGETHER = [
    ("args.mode != 'res'", "args.other != 'sig'"),
    ("mode != 'res'", "mode != 'sig' and mode != 'both'"),
    ("'A' in os.environ", "args.mode == 'sig'"),
    ("args.device == 'cpu'", "args.mode == 'sig'"),
    ("x.is_cuda", "mode == 'sig'"),
]


@pytest.mark.parametrize(("one", "other"), APART)
def test_what_is_asked_of_one_thing_in_two_ways_chooses_no_way(one: str, other: str) -> None:
    assert listed(ASKED.format(one=one, other=other)) == set()


@pytest.mark.parametrize(("one", "other"), TOGETHER)
def test_what_is_asked_of_two_things_may_come_out_as_it_likes(one: str, other: str) -> None:
    third = "    if mode == 'sum': h = h * 2\n    if {one}"
    assert listed(ASKED.replace("    if {one}", third, 1).format(one=one, other=other)) == {
        "inplace_overwrites_saved"
    }


WRAPPED = """
def log(f):
    def w(*a):
        return f(*a)
    return w
{decorator}
def update(p):
    p.add_(1)
w = torch.ones(3, requires_grad=True)
{mode}
update(w)
"""


@pytest.mark.parametrize("decorator", ["", "@log"])
def test_a_mode_around_a_function_holds_in_what_a_decorator_made_of_it(decorator: str) -> None:
    off = "update = torch.no_grad()(update)"
    assert listed(WRAPPED.format(decorator=decorator, mode=off)) == set()
    assert listed(WRAPPED.format(decorator=decorator, mode="")) == {"inplace_on_leaf"}
