"""A gradient that is asked for by name: torch refuses that without a graph, and behind a cut it is None."""

from __future__ import annotations

import pytest
from short import culprits, kinds

ASKED = """
net, head = nn.Linear(3, 3), nn.Linear(3, 1)
x = torch.ones(2, 3)
{made}
h.{asked}
loss = head({used}).sum()
loss.backward()
print(h.grad.norm())
"""
DETACHED = "h = net(x).detach()"
UNRECORDED = "with torch.no_grad():\n    h = net(x)"
RECORDED = "h = net(x)"


@pytest.mark.parametrize("asked", ["retain_grad()", "register_hook(print)"])
@pytest.mark.parametrize(
    ("made", "expected"),
    [
        pytest.param(DETACHED, {"detached_loss_path": ["h = net(x).detach()"]}, id="detached"),
        pytest.param(UNRECORDED, {"forward_in_no_grad": ["with torch.no_grad():"]}, id="not recorded"),
        pytest.param(RECORDED, {}, id="in a graph"),
        pytest.param(DETACHED + ".requires_grad_()", {}, id="a new leaf"),
        pytest.param("h = unknown(x)", {}, id="not known"),
        pytest.param("h = torch.ones(2, 3)", {}, id="made of nothing"),
    ],
)
def test_what_torch_refuses_of_a_result_without_a_graph(
    asked: str, made: str, expected: dict[str, list[str]]
) -> None:
    text = ASKED.format(made=made, asked=asked, used="h").replace("print(h.grad.norm())\n", "")
    for kind in ("detached_loss_path", "forward_in_no_grad"):
        assert culprits(text, kind) == expected.get(kind, [])


def test_who_first_asks_whether_there_is_a_graph_is_refused_nothing() -> None:
    text = ASKED.format(made=DETACHED, asked="size()\nif h.requires_grad:\n    h.retain_grad()", used="h")
    assert "detached_loss_path" not in kinds(text)


@pytest.mark.parametrize(
    ("used", "expected"),
    [
        pytest.param("h.detach()", ["loss = head(h.detach()).sum()"], id="cut off"),
        pytest.param("h", [], id="reached"),
        pytest.param("h.detach() + h", [], id="reached beside the cut"),
        pytest.param("h.detach() + unknown(h)", [], id="perhaps reached"),
        pytest.param("x", [], id="not used"),
    ],
)
def test_a_kept_gradient_is_none_where_the_backward_ended_before(used: str, expected: list[str]) -> None:
    text = ASKED.format(made=RECORDED, asked="retain_grad()", used=used)
    assert culprits(text, "detached_loss_path") == expected
