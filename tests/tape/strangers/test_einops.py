"""einops: what a pattern makes is a view where the package itself makes one for sure, and else perhaps."""

from __future__ import annotations

import pytest
from short import listed

from gradfix.tape.effects.patterns import parsed

HEAD = "from einops import rearrange\nnet, lin = nn.Conv2d(4, 12, 1), nn.Linear(3, 3)\n"
VIEWED = (
    "b c x y -> b c x y", "b c x y -> c b y x", "b (h d) x y -> b h d x y", "b c x y -> b c (x y)",
    "b (h d) x y -> b h (x y) d", "b c x y -> b 1 c x y", "b c (x u) (y v) -> b c x u y v", "... y -> y ...",
    "b c x y -> (b c x y)",
)  # fmt: skip
COPIED = (
    "b c x y -> b (x y c)", "b c x y -> b (c y) x", "b (h d) x y -> b (d h) x y", "b c x y -> (b y) c x",
    "b c (x u) (y v) -> b (x y) (c u v)",
)  # fmt: skip
SOURCES = {
    "rows": "torch.ones(2, 4, 6, 6, requires_grad=True) * 1",
    "a piece": "(torch.ones(2, 8, 6, 6, requires_grad=True) * 1).chunk(2, dim=1)[0]",
    "an image": "nn.Conv2d(2, 4, 1)(torch.ones(2, 2, 6, 6))",
    "a piece of an image": "nn.Conv2d(2, 8, 1)(torch.ones(2, 2, 6, 6)).split(4, 1)[1]",
    "an image that lies with its channels last": (
        "net(torch.ones(2, 4, 6, 6).to(memory_format=torch.channels_last))"
    ),
    "an image of a network that is told so": (
        "nn.Conv2d(2, 4, 1).to(memory_format=torch.channels_last)(torch.ones(2, 2, 6, 6))"
    ),
    "turned": "(torch.ones(6, 6, 4, 2, requires_grad=True) * 1).permute(3, 2, 1, 0)",
}
SIZES = "h=2, u=2, v=3"


@pytest.mark.torch
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("pattern", [*VIEWED, *COPIED])
def test_what_is_said_to_be_a_view_is_one(source: str, pattern: str) -> None:
    import einops
    import torch

    names = {"torch": torch, "nn": torch.nn, "net": torch.nn.Conv2d(4, 4, 1)}
    whole = eval(SOURCES[source], names)
    sizes = {name: size for name, size in {"h": 2, "u": 2, "v": 3}.items() if name in pattern}
    shown = einops.rearrange(whole, pattern, **sizes)
    shares = shown.untyped_storage().data_ptr() == whole.untyped_storage().data_ptr()
    said = ", ".join(f"{name}={size}" for name, size in sizes.items())
    found = listed(f"""
from einops import rearrange
net = nn.Conv2d(4, 4, 1)
whole = {SOURCES[source]}
held = whole.pow(2)
part = rearrange(whole, "{pattern}", {said})
part += 1
held.sum().backward()
""")
    assert shares or not found


@pytest.mark.parametrize("pattern", VIEWED)
def test_what_splits_and_reorders_is_a_view_of_what_is_contiguous(pattern: str) -> None:
    assert listed(f"""
from einops import rearrange
kept = torch.ones(2, 4, 6, 6, requires_grad=True).exp()
part = rearrange(kept, "{pattern}", {SIZES})
part += 1
kept.sum().backward()
""") == {"inplace_overwrites_saved"}


@pytest.mark.parametrize("pattern", COPIED)
def test_what_merges_in_another_order_is_perhaps_a_copy(pattern: str) -> None:
    assert (
        listed(f"""
from einops import rearrange
kept = torch.ones(2, 4, 6, 6, requires_grad=True).exp()
part = rearrange(kept, "{pattern}", {SIZES})
part += 1
kept.sum().backward()
""")
        == set()
    )


@pytest.mark.parametrize(
    "text",
    ["b c", "b c -> c", "b c -> (b (c))", "b 2 -> b 2", "b c -> b d", "b (...) -> b ...", "b b -> b b", ""],
)
def test_a_pattern_that_einops_does_not_take_is_not_understood(text: str) -> None:
    assert parsed(text).names is None


PIECES = """
q, k, v = net(torch.ones(2, 4, 3, 3)).chunk(3, dim=1)
q, k = (rearrange(one, "b (h d) x y -> b h (x y) d", h=2) for one in (q, k))
q *= 0.5
(q @ k.transpose(-1, -2)).sum().backward()
"""
ROWS = """
x = torch.ones(4, 5, 3)
x = x + lin(x)
head = rearrange(x[:, 0], "(b n) c -> b n c", b=2)
head = head + lin(F.layer_norm(head, (3,), lin.weight[0]))
x[:, 0] = rearrange(head, "b n c -> (b n) c")
x.sum().backward()
"""


def test_a_piece_that_is_rearranged_may_still_not_be_written() -> None:
    assert listed(HEAD + PIECES) == {"inplace_on_view_of_many"}


def test_what_was_kept_of_a_rearranged_slice_is_overwritten_through_the_whole() -> None:
    assert listed(HEAD + ROWS) == {"inplace_overwrites_saved"}


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(PIECES.replace("q *= 0.5", "q = q * 0.5"), id="out of place"),
        pytest.param(
            PIECES.replace("b h (x y) d", "(b h) (x y) d"), id="merged with the dimension that was cut"
        ),
        pytest.param(
            PIECES.replace('"b (h d) x y -> b h (x y) d"', "input()"), id="a pattern that isn't known"
        ),
        pytest.param(ROWS.replace("x[:, 0] =", "y = x.clone()\ny[:, 0] ="), id="a copy is written"),
        pytest.param("kept = torch.ones(2, 6, requires_grad=True).exp()\n"
                     "part = rearrange(kept, 'b (h d) -> b (d h)', h=2)\npart += 1\nkept.sum().backward()",
                     id="what was merged anew"),
        pytest.param("kept = torch.ones(2, 6, requires_grad=True) * 2\n"
                     "part = rearrange(kept, 'b (h d) -> b h d', h=2)\npart += 1\nkept.sum().backward()",
                     id="a view of what nobody keeps"),
    ],
)  # fmt: skip
def test_nothing_is_said_of(body: str) -> None:
    assert listed(HEAD + body) == set()
