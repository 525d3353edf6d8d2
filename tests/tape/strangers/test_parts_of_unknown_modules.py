"""What is had from a module that isn't known may have the same parameters, whichever of the two an optimizer
was made with."""

from __future__ import annotations

import pytest
from short import kinds

SCALED = """
from somewhere import prepare

def train(model, other, loader):
    scaler = torch.amp.GradScaler("cuda")
    {made}
    rest = torch.optim.AdamW(other.parameters())
    for x, y in loader:
        optimizer.zero_grad()
        rest.zero_grad()
        loss = F.mse_loss(other(model(x)), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_({clipped}, 1.0)
        scaler.step(optimizer)
        scaler.step(rest)
        scaler.update()
"""
OF_ALL = "optimizer = torch.optim.AdamW(filter(lambda p: p.requires_grad, model.parameters()))"


@pytest.mark.parametrize(
    ("made", "clipped", "broken"),
    [
        pytest.param(OF_ALL, "model.module.parameters()", False, id="all of it under another name"),
        pytest.param(OF_ALL, "model.body.blocks[0].parameters()", False, id="a part of a part"),
        pytest.param(
            "optimizer = torch.optim.AdamW(model.module.parameters())",
            "model.parameters()",
            False,
            id="what holds the part that was unscaled",
        ),
        pytest.param(
            "net = nn.Linear(3, 3); optimizer = torch.optim.AdamW(net.parameters()); model = prepare(net)",
            "model.parameters()",
            False,
            id="what a function that is not known has made of it",
        ),
        pytest.param(OF_ALL, "other.parameters()", True, id="another module"),
        pytest.param(OF_ALL, "other.body.parameters()", True, id="a part of another module"),
    ],
)
def test_what_may_be_unscaled_with_others_is_not_said_to_be_scaled(
    made: str, clipped: str, broken: bool
) -> None:
    found = kinds(SCALED.format(made=made, clipped=clipped))
    assert ("clip_before_unscale" in found) is broken


@pytest.mark.parametrize(("second", "broken"), [("model.head", False), ("head", True)])
def test_what_may_be_cleared_with_others_is_not_said_to_be_stale(second: str, broken: bool) -> None:
    found = kinds(f"""
        def train(model, head, loader):
            optimizer = torch.optim.AdamW(model.parameters())
            second = torch.optim.SGD({second}.parameters(), lr=0.1)
            for x, y in loader:
                optimizer.zero_grad()
                loss = F.mse_loss(head(model(x)), y)
                loss.backward()
                second.step()
                optimizer.step()
    """)
    assert ("missing_zero_grad" in found) is broken


@pytest.mark.parametrize(("second", "broken"), [("model.head", False), ("head", True)])
def test_what_may_have_been_stepped_with_others_was_not_erased_unused(second: str, broken: bool) -> None:
    found = kinds(f"""
        def train(model, head, loader):
            optimizer = torch.optim.AdamW(model.parameters())
            second = torch.optim.SGD({second}.parameters(), lr=0.1)
            for x, y in loader:
                loss = F.mse_loss(head(model(x)), y)
                loss.backward()
                optimizer.step()
                second.zero_grad()
                second.step()
                optimizer.zero_grad()
    """)
    assert ("zero_grad_before_step" in found) is broken


@pytest.mark.parametrize(("inner", "broken"), [("model.module", False), ("make(2)", True)])
def test_what_may_be_reached_with_others_is_not_said_to_be_unreached(inner: str, broken: bool) -> None:
    found = kinds(f"""
        from somewhere import make

        model = make(1)
        optimizer = torch.optim.AdamW(model.parameters())
        inner = {inner}
        inner.parameters()
        for x, y in [(torch.ones(2, 3), torch.ones(2, 3))]:
            loss = F.mse_loss(inner(model(x).detach()), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """)
    assert ("unreached_parameters" in found) is broken
