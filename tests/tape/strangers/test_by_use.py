"""Arguments are what they are used as: models, optimizers, losses; what may be done to them is in doubt."""

from __future__ import annotations

import textwrap

import pytest
from short import analysis, culprits, kinds, whole

from gradfix.defects import Role
from gradfix.defects.reasons import What


def trained(
    turn: str, head: str = "def train(model, loader, optimizer, criterion):", before: str = ""
) -> str:
    """A function that gets all it works with as arguments."""
    body = textwrap.indent(textwrap.dedent(turn).strip(), " " * 8)
    return f"{head}\n    {before or 'model.train()'}\n    for x, y in loader:\n{body}\n"


LOSS = "loss = criterion(model(x), y)\n"
BY_USE = {
    "cleared after backward": (
        trained(LOSS + "loss.backward()\noptimizer.zero_grad()\noptimizer.step()"),
        "zero_grad_before_step",
        "optimizer.zero_grad()",
    ),
    "stepped before backward": (
        trained("optimizer.zero_grad()\n" + LOSS + "optimizer.step()\nloss.backward()"),
        "zero_grad_before_step",
        "optimizer.zero_grad()",
    ),
    "stepped before backward, in a function without a loop": (
        """
        def turn(model, x, y, optimizer, criterion):
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            optimizer.step()
            loss.backward()
        """,
        "zero_grad_before_step",
        "optimizer.zero_grad()",
    ),
    "cleared before the loop only": (
        trained(LOSS + "loss.backward()\noptimizer.step()", before="optimizer.zero_grad()"),
        "missing_zero_grad",
        "loss.backward()",
    ),
    "stepped by a GradScaler": (
        trained(
            LOSS + "scaler.scale(loss).backward()\noptimizer.zero_grad()\nscaler.step(optimizer)",
            before="scaler = torch.amp.GradScaler()",
        ),
        "zero_grad_before_step",
        "optimizer.zero_grad()",
    ),
    "kept by an object": (
        """
        class Trainer:
            def __init__(self, model, optimizer):
                self.model, self.optimizer = model, optimizer
            def fit(self, loader, criterion):
                for x, y in loader:
                    criterion(self.model(x), y).backward()
                    self.optimizer.zero_grad()
                    self.optimizer.step()
        """,
        "zero_grad_before_step",
        "self.optimizer.zero_grad()",
    ),
    "the loss is made under no_grad": (
        trained("with torch.no_grad():\n    loss = criterion(model(x), y)\nloss.backward()"),
        "forward_in_no_grad",
        "with torch.no_grad():",
    ),
    "the prediction is made under no_grad": (
        trained("with torch.no_grad():\n    out = model(x)\nF.cross_entropy(out, y).backward()"),
        "forward_in_no_grad",
        "with torch.no_grad():",
    ),
    "the prediction is detached": (
        trained("F.cross_entropy(model(x).detach(), y).backward()"),
        "detached_loss_path",
        "F.cross_entropy(model(x).detach(), y).backward()",
    ),
    "the loss is a number": (
        trained("criterion(model(x), y).item().backward()"),
        "converted_loss_path",
        "criterion(model(x), y).item().backward()",
    ),
}
DOUBTFUL = {
    "the backward is for an input": trained(
        "y.requires_grad_()\nF.mse_loss(y, x.sigmoid()).backward()\noptimizer.zero_grad()\noptimizer.step()"
    ),
    "all is well": trained("optimizer.zero_grad()\n" + LOSS + "loss.backward()\noptimizer.step()"),
    "cleared at the end": trained(LOSS + "loss.backward()\noptimizer.step()\noptimizer.zero_grad()"),
    "a scheduler that nobody clears beside an optimizer that is cleared": trained(
        "optimizer.zero_grad()\n" + LOSS + "loss.backward()\noptimizer.step()\nscheduler.step()",
        head="def train(model, loader, optimizer, criterion, scheduler):",
    ),
    "cleared by the model": trained(
        "model.zero_grad()\n" + LOSS + "loss.backward()\noptimizer.step()", before="optimizer.zero_grad()"
    ),
    "gradients put there by hand": trained(
        LOSS
        + "loss.backward()\noptimizer.zero_grad()\n"
        + "for p in model.parameters():\n    p.grad = x\noptimizer.step()"
    ),
    "the loss is of as many parts as a loop that isn't known makes": trained(
        """
        critic(x).backward()
        losses = []
        for part in y:
            losses.append(criterion(model(part)))
        loss = torch.stack(losses).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        """,
        head="def train(model, critic, loader, optimizer, criterion):",
    ),
    "stepped once to please a scheduler": trained(
        LOSS + "loss.backward()\noptimizer.step()\noptimizer.zero_grad()",
        before="optimizer.zero_grad()\n    optimizer.step()",
    ),
    "two optimizers": trained(
        """
        one.zero_grad()
        criterion(model(x), y).backward()
        one.step()
        two.zero_grad()
        criterion(other(x), y).backward()
        two.step()
        """,
        head="def train(model, other, loader, one, two, criterion):",
    ),
    "a teacher's prediction under no_grad": trained(
        "with torch.no_grad():\n    t = teacher(x)\ncriterion(model(x), t).backward()"
    ),
    "a frozen backbone before a head": trained(
        "with torch.no_grad():\n    h = backbone(x)\nF.cross_entropy(head(h), y).backward()"
    ),
    "a detached target": trained("F.mse_loss(x, y.detach()).backward()"),
    "what was taken out may be a prediction": trained(
        "F.mse_loss(model.frozen(x).detach(), y).backward()",
        head="def train(model, loader):",
        before="loader = model.rollout(loader)",
    ),
}


@pytest.mark.parametrize(("body", "kind", "line"), BY_USE.values(), ids=BY_USE.keys())
def test_a_function_is_judged_by_how_it_uses_its_arguments(body: str, kind: str, line: str) -> None:
    assert (kinds(body), culprits(body, kind)) == ({kind}, [line])
    assert {defect.certainty for defect in analysis(body).defects if defect.kind == kind} == {"likely"}


@pytest.mark.parametrize("body", DOUBTFUL.values(), ids=DOUBTFUL.keys())
def test_what_arguments_may_do_is_in_doubt(body: str) -> None:
    assert kinds(body) == set()


PERHAPS_CLEARED = {
    "never cleared in sight: its own step may do that": trained(LOSS + "loss.backward()\noptimizer.step()"),
    "never cleared, and an unknown call is given it": trained(
        LOSS + "loss.backward()\noptimizer.step()\nhook(optimizer)",
        head="def train(model, loader, optimizer, criterion, hook):",
    ),
    "never cleared, and a call that isn't followed is made of what has it": trained(
        "trainer.start()\n" + LOSS + "loss.backward()\noptimizer.step()",
        head="def train(model, loader, optimizer, criterion, trainer):",
    ),
}


@pytest.mark.parametrize("body", PERHAPS_CLEARED.values(), ids=PERHAPS_CLEARED)
def test_what_is_never_cleared_in_sight_may_be_cleared_by_who_has_it(body: str) -> None:
    assert {(one.kind, one.certainty) for one in analysis(body).defects} == {("missing_zero_grad", "suspect")}


AFTER_ANOTHER = """
    import torch
    from torch import nn
    from losses import loss_of
    from optim import Reweighting
    net, other = nn.Linear(2, 1), nn.Linear(2, 1)
    net(torch.ones(4, 2)).sum().backward()
    optimizer = Reweighting(net.parameters())
    for x, weight in loader:
        optimizer.zero_grad()
        {loss}.backward()
        optimizer.step(weight=weight)
"""


@pytest.mark.parametrize("loss", ["loss_of(x, net, weight)", "loss_of(x, [net], weight)", "loss_of(x)"])
def test_a_loss_that_is_not_known_may_be_of_what_an_optimizer_was_given(loss: str) -> None:
    (found,) = analysis(AFTER_ANOTHER.format(loss=loss)).defects
    assert (found.kind, found.certainty) == ("zero_grad_before_step", "suspect")
    assert [one.what for one in found.unknowns] == [What.BACKWARD]


@pytest.mark.parametrize("loss", ["other(torch.ones(4, 2)).sum()", "other.weight.pow(2).sum()"])
def test_a_loss_of_another_network_brings_nothing_to_what_an_optimizer_was_given(loss: str) -> None:
    (found,) = analysis(AFTER_ANOTHER.format(loss=loss)).defects
    assert (found.kind, found.certainty) == ("zero_grad_before_step", "likely")


def test_a_function_that_is_handed_on_may_fill_the_lists_around_it() -> None:
    body = """
        from somewhere import each
        def gather(data):
            found = []
            def collect(tensor):
                found.append(tensor)
                return tensor
            each(data, collect)
            return found
        def check(model, x):
            torch.cat([one.view(-1) for one in gather(model(x))]).sum().backward()
    """
    assert kinds(body) == set()


SOONER = """
    import torch
    from torch import nn
    from elsewhere import draw
    net, other = nn.Linear(4, 1), nn.Linear(4, 1)
    {frozen}
    first, second = {root}(draw()).mean(), net(torch.ones(3, 4)).mean()
    first.backward()
    second.backward()
"""
FROZEN = "net.requires_grad_(False)"


@pytest.mark.parametrize(
    ("root", "backwards"),
    [("net", ["second.backward()", "first.backward()"]), ("other", ["second.backward()"])],
)
def test_a_backward_before_that_may_fail_alike_is_named_as_well(root: str, backwards: list[str]) -> None:
    body = SOONER.format(frozen=FROZEN, root=root)
    (found,) = analysis(body).defects
    text = whole(body).splitlines()
    named = [text[one.span.line - 1].strip() for one in found.evidence if one.role is Role.BACKWARD]
    assert (found.kind, found.certainty, named) == ("no_leaf_requires_grad", "certain", backwards)


ASKED = """
    import torch
    from torch import nn
    from elsewhere import blur
    weights = blur(1)
    error = (blur(weights) - torch.ones(4, 2)) ** 2
    grads = torch.autograd.grad({root}, weights{more})
"""


@pytest.mark.parametrize(
    ("root", "more", "expected"),
    [
        ("error", "", [("non_scalar_backward", "likely")]),
        ("error.sum()", "", []),
        ("error", ", grad_outputs=torch.ones(4, 2)", []),
        ("error", ", **blur(2)", []),
    ],
)
def test_gradients_are_asked_for_of_one_number_whatever_it_is_made_of(
    root: str, more: str, expected: list[tuple[str, str]]
) -> None:
    found = analysis(ASKED.format(root=root, more=more)).defects
    assert [(defect.kind, defect.certainty) for defect in found] == expected
