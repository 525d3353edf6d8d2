"""Whole programs, as people ask about them: the defect that is to blame is named, and no other."""

from __future__ import annotations

import textwrap

import pytest

from gradfix.defects.ordered import EarlyClear
from gradfix.defects.severed import Cut
from gradfix.source import Source, parse
from gradfix.tape.entries import analyse

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"
OFF = {"inplace_on_graph_tensor", "backward_in_no_grad"}


def found(body: str) -> list[tuple[str, int]]:
    source = parse("case.py", (HEAD + textwrap.dedent(body)).encode())
    assert isinstance(source, Source)
    return [
        (defect.kind, defect.culprit.line) for defect in analyse(source).defects if defect.kind not in OFF
    ]


PROGRAMS = {
    "outputs gathered from a carried state are no leak: the next backward wants them": (
        """
        rnn, head = nn.RNN(3, 4), nn.Linear(4, 1)
        state = None
        for _ in range(3):
            out, state = rnn(torch.ones(5, 2, 3), state)
            outs = []
            for t in range(5):
                outs.append(head(out[t]))
            torch.stack(outs).mean().backward()
        """,
        {"backward_twice"},
    ),
}

LINES = {
    "a comparison of what was not recorded is not to blame": (
        """
        backbone, head = nn.Linear(3, 5), nn.Linear(5, 4)
        features = backbone(torch.ones(2, 3))
        with torch.no_grad():
            scores = head(features)
        error = torch.abs(scores - 1)
        torch.where(error < 1, error ** 2, error).mean().backward()
        """,
        [("forward_in_no_grad", 7)],
    ),
    "a cut that was there when there was a graph is not to blame": (
        """
        gen, dis = nn.Linear(3, 3), nn.Linear(3, 1)
        for x in torch.ones(2, 4, 3):
            fake = gen(x).detach()
            dis(fake).mean().backward()
            for p in dis.parameters():
                p.requires_grad_(False)
        """,
        [],
    ),
    "of two clearings the first erases": (
        """
        net = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for x in torch.ones(3, 4, 3):
            optimizer.zero_grad()
            optimizer.step()
            net(x).mean().backward()
            optimizer.zero_grad()
        """,
        [("zero_grad_before_step", 11)],
    ),
    "what more alternatives than are followed agree on is known": (
        """
        import os
        x = torch.ones(3, requires_grad=True)
        y = x.exp()
        if "a" in os.environ:
            y = y + 1
        if "b" in os.environ:
            y = y + 2
        if "c" in os.environ:
            y = y + 3
        y = y.sigmoid()
        y += 1
        y.sum().backward()
        """,
        [("inplace_overwrites_saved", 15)],
    ),
    "what is the same whichever way a test comes out is one alternative": (
        """
        import os
        x = torch.ones(3, requires_grad=True)
        y = x.exp()
        if "a" in os.environ:
            y = y + 1
        if "b" in os.environ:
            y = y + 2
        y = y.sigmoid()
        if "c" in os.environ:
            y += 1
        y.sum().backward()
        """,
        [("inplace_overwrites_saved", 14)],
    ),
    "what stars give a dataclass may be any of its fields": (
        """
        import sys
        from dataclasses import dataclass
        @dataclass
        class Settings:
            scale: float = 1.0
            plain: bool = True
        settings = Settings(**{word: False for word in sys.argv[1:]})
        x = torch.ones(3, requires_grad=True)
        y = x.exp()
        if not settings.plain:
            y += 1
        y.sum().backward()
        """,
        [("inplace_overwrites_saved", 15)],
    ),
    "what autograd.grad returns is nothing that a step could have used": (
        """
        model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x in [torch.ones(4, 3), torch.zeros(4, 3)]:
            parameters = list(model.parameters())
            gradients = torch.autograd.grad(model(x).mean(), parameters)
            for p, g in zip(parameters, gradients):
                p.grad = g
            optimizer.step()
        """,
        [],
    ),
    "an optimizer asks its closure with recording on": (
        """
        model = nn.Linear(3, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        def closure():
            optimizer.zero_grad()
            loss = model(torch.ones(4, 3)).mean()
            loss.backward()
            return loss
        with torch.no_grad():
            optimizer.step(closure)
        """,
        [],
    ),
    "it does not in inference mode": (
        """
        model = nn.Linear(3, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        def closure():
            optimizer.zero_grad()
            loss = model(torch.ones(4, 3)).mean()
            loss.backward()
            return loss
        with torch.inference_mode():
            optimizer.step(closure)
        """,
        [("forward_in_no_grad", 12)],
    ),
    "a network that only runs frozen here may write over what it would have saved": (
        """
        class Trunk(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.Sequential(nn.Linear(3, 4), nn.Sigmoid(), nn.ReLU(inplace=True))
            def forward(self, x):
                return self.layers(x)
        trunk, head = Trunk(), nn.Linear(4, 2)
        for p in trunk.parameters():
            p.requires_grad = False
        optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
        for x in [torch.ones(5, 3), torch.zeros(5, 3)]:
            optimizer.zero_grad()
            head(trunk(x)).mean().backward()
            optimizer.step()
        """,
        [],
    ),
    "a teacher that only runs unrecorded, while its student learns": (
        """
        class Teacher(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.Sequential(nn.Linear(3, 4), nn.Sigmoid(), nn.ReLU(inplace=True))
            def forward(self, x):
                return self.layers(x)
        teacher, student = Teacher(), nn.Linear(3, 4)
        optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
        for x in [torch.ones(5, 3), torch.zeros(5, 3)]:
            with torch.no_grad():
                target = teacher(x)
            optimizer.zero_grad()
            F.mse_loss(student(x), target).backward()
            optimizer.step()
        """,
        [],
    ),
    "a detached branch is not to blame for a layer behind what somebody runs unrecorded": (
        """
        class Projector(nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.head = nn.Linear(3, 3), nn.Linear(3, 3)
            def forward(self, x):
                with torch.no_grad():
                    hidden = self.first(x)
                return self.head(hidden)
        model = Projector()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x in [torch.ones(5, 3), torch.zeros(5, 3)]:
            positive = model(x) * model(x * 0.9).detach()
            optimizer.zero_grad()
            positive.mean().backward()
            optimizer.step()
        """,
        [],
    ),
    "gradients that are put together of two losses, of more parameters than a later turn looks at": (
        """
        import sys
        from types import SimpleNamespace
        settings = SimpleNamespace(extra=sys.argv)
        class Head(nn.Module):
            def __init__(self):
                super().__init__()
                self.extra = settings.extra
                self.first, self.last = nn.Linear(5, 5), nn.Linear(5, 4)
            def forward(self, x):
                return self.last(self.first(x))
        def main():
            model = Head()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            def step(x, y):
                out = model(x)
                params = [p for p in model.parameters() if p.requires_grad]
                kept = []
                for i, loss in enumerate([F.mse_loss(out, y), out.pow(2).mean()]):
                    loss.backward(retain_graph=i == 0)
                    kept.append([p.grad.clone() for p in params if p.grad is not None])
                optimizer.zero_grad()
                for p, a, b in zip(params, *kept):
                    p.grad = a + 0.5 * b
                optimizer.step()
            for x, y in [(torch.ones(2, 5), torch.ones(2, 4))] * 2:
                step(x, y)
        main()
        """,
        [],
    ),
    "a trainer that builds its model again has an optimizer of the one before": (
        """
        class Trainer:
            def __init__(self, wide=False):
                self.model = nn.Linear(3, 1)
                self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
                if wide:
                    self.model = nn.Linear(3, 2)
            def fit(self):
                for x in [torch.ones(5, 3), torch.zeros(5, 3)]:
                    self.optimizer.zero_grad()
                    self.model(x).mean().backward()
                    self.optimizer.step()
        Trainer(wide=True).fit()
        """,
        [("optimizer_before_replacement", 8)],
    ),
    "a trainer that builds the optimizer again too": (
        """
        class Trainer:
            def __init__(self, wide=False):
                self.model = nn.Linear(3, 1)
                self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
                if wide:
                    self.model = nn.Linear(3, 2)
                    self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
            def fit(self):
                for x in [torch.ones(5, 3), torch.zeros(5, 3)]:
                    self.optimizer.zero_grad()
                    self.model(x).mean().backward()
                    self.optimizer.step()
        Trainer(wide=True).fit()
        """,
        [],
    ),
    "a trainer that wraps the model that its optimizer holds": (
        """
        class Trainer:
            def __init__(self, wide=False):
                self.model = nn.Linear(3, 1)
                self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
                if wide:
                    self.model = nn.DataParallel(self.model)
            def fit(self):
                for x in [torch.ones(5, 3), torch.zeros(5, 3)]:
                    self.optimizer.zero_grad()
                    self.model(x).mean().backward()
                    self.optimizer.step()
        Trainer(wide=True).fit()
        """,
        [],
    ),
    "a parameter is not cut off by being made one, where its module runs unrecorded": (
        """
        class Encoder(nn.Module):
            def __init__(self):
                super().__init__()
                self.down = nn.Parameter(torch.randn(3, 2) * 0.1)
            @torch.no_grad()
            def forward(self, x):
                return x @ self.down
        encoder, head = Encoder(), nn.Linear(2, 1)
        optimizer = torch.optim.SGD(nn.Sequential(encoder, head).parameters(), lr=0.1)
        for x in [torch.ones(5, 3), torch.zeros(5, 3)]:
            optimizer.zero_grad()
            head(encoder(x)).mean().backward()
            optimizer.step()
        """,
        [],
    ),
    "a detached value is not to blame where a mode keeps all of it out of the graph": (
        """
        critic = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
        for x in [torch.ones(5, 3), torch.zeros(5, 3)]:
            with torch.no_grad():
                value = critic(x)
            advantage = 1 - value.detach()
            optimizer.zero_grad()
            advantage.mean().backward()
            optimizer.step()
        """,
        [("forward_in_no_grad", 8)],
    ),
    "all parameters are frozen by a loop, also in a later turn that looks at one of them": (
        """
        critic = nn.ModuleList([nn.Linear(3, 1) for _ in range(3)])
        actor = nn.Linear(3, 3)
        optimizer = torch.optim.SGD(actor.parameters(), lr=0.1)
        for epoch in range(2):
            for x in [torch.ones(5, 3), torch.zeros(5, 3)]:
                sum(head(x) for head in critic).mean().backward()
                for p in critic.parameters():
                    p.requires_grad_(False)
                made = actor(x)
                loss = sum(head(made) for head in critic).mean()
                optimizer.zero_grad()
                made.zero_()
                loss.backward()
                optimizer.step()
                for p in critic.parameters():
                    p.requires_grad_(True)
        """,
        [],
    ),
    "a network that was tried on data here is meant to learn elsewhere": (
        """
        class Trunk(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.Sequential(nn.Linear(3, 4), nn.Sigmoid(), nn.ReLU(inplace=True))
            def forward(self, x):
                return self.layers(x)
        with torch.no_grad():
            print(Trunk()(torch.ones(5, 3)).shape)
        """,
        [("inplace_module", 8)],
    ),
    "parameters that are moved by hand have used their gradients, however many they are": (
        """
        model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x in [torch.ones(5, 3), torch.zeros(5, 3)]:
            model(x).mean().backward()
            with torch.no_grad():
                for p in model.parameters():
                    p.add_(0.1 * p.grad)
            optimizer.zero_grad()
            optimizer.step()
        """,
        [],
    ),
    "a sample keeps gradients from what it was drawn from": (
        """
        from torch.distributions import Normal
        encoder, decoder = nn.Linear(8, 2), nn.Linear(2, 8)
        optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()])
        for x in [torch.ones(4, 8), torch.zeros(4, 8)]:
            loss = (decoder(Normal(encoder(x), 1.0).sample()) - x).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
        [("unreached_parameters", 7)],
    ),
    "a step between the two losses of an actor and a critic, on a sample that was reparametrised": (
        """
        actor, critic = nn.Linear(3, 2), nn.Linear(5, 1)
        actor_optimizer = torch.optim.Adam(actor.parameters())
        critic_optimizer = torch.optim.Adam(critic.parameters())
        for state in [torch.ones(6, 3), torch.zeros(6, 3)]:
            action = torch.distributions.Normal(actor(state), 1.0).rsample()
            actor_loss = -critic(torch.cat([state, action], -1)).mean()
            critic_loss = critic(torch.cat([state, action.detach()], -1)).pow(2).mean()
            critic_optimizer.zero_grad()
            critic_loss.backward()
            critic_optimizer.step()
            actor_optimizer.zero_grad()
            actor_loss.backward()
            actor_optimizer.step()
        """,
        [("step_before_backward", 14)],
    ),
    "a size that is a pair is taken where one number may stand for it": (
        (
            "x = torch.ones(1, 3, 8, 8, requires_grad=True)\ny = F.interpolate(x, size=(4, 4)).sigmoid()\n"
            "y += 1\ny.sum().backward()"
        ),
        [("inplace_overwrites_saved", 6)],
    ),
    "a step without gradients is the doing of the cut that kept them out, not of the zero_grad before it": (
        """
        encoder, decoder = nn.Linear(8, 4), nn.Linear(4, 8)
        encoder_optimizer = torch.optim.Adam(encoder.parameters())
        decoder_optimizer = torch.optim.Adam(decoder.parameters())
        for x in [torch.ones(5, 8), torch.zeros(5, 8)]:
            encoder_loss = (decoder(encoder(x)) - x).pow(2).mean()
            encoder_optimizer.zero_grad()
            encoder_loss.backward()
            encoder_optimizer.step()
            decoder_loss = encoder(decoder(torch.randn(5, 4)).detach()).pow(2).mean()
            decoder_optimizer.zero_grad()
            decoder_loss.backward()
            decoder_optimizer.step()
        """,
        [("detached_loss_path", 13)],
    ),
    "a chain of writes is refused once, where it begins": (
        "x = torch.ones(2, 3, requires_grad=True).clone()\nfor row in x:\n    row.mul_(2).add_(1)",
        [("inplace_on_view_of_many", 6)],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS, ids=str)
def test_the_defect_to_blame_is_named(name: str) -> None:
    body, blamed = PROGRAMS[name]
    assert {kind for kind, _ in found(body)} == blamed


@pytest.mark.parametrize("name", LINES, ids=str)
def test_it_is_named_once_where_it_begins(name: str) -> None:
    body, blamed = LINES[name]
    assert found(body) == blamed


@pytest.mark.parametrize(
    ("made", "uses"),
    [
        pytest.param("loss.item()", 1, id="a number"),
        pytest.param("loss.item() * 0.5", 1, id="a number times a number"),
        pytest.param("loss.item() + scores.pow(2).mean()", 0, id="a number beside a tensor"),
    ],
)
def test_what_a_name_holds_is_converted_where_it_is_logged_only_if_it_is_a_number(
    made: str, uses: int
) -> None:
    body = (
        "model = nn.Linear(3, 2)\nscores = model(torch.ones(4, 3))\nloss = scores.mean()\n"
        f"total = {made}\n(scores.mean() + total).backward()\nprint(total)\n"
    )
    source = parse("case.py", (HEAD + body).encode())
    assert isinstance(source, Source)
    (cut,) = analyse(source).defects
    assert isinstance(cut.facts, Cut)
    assert len(cut.facts.logged) == uses


@pytest.mark.parametrize(
    ("made", "spoils"),
    [
        pytest.param("before", True, id="made before the step"),
        pytest.param("after", False, id="made after the step"),
    ],
)
def test_a_step_that_finds_its_gradients_again_may_spoil_a_later_backward(made: str, spoils: bool) -> None:
    again = "    again = model(x).pow(2).mean()\n"
    body = (
        "model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "for x in [torch.ones(4, 3), torch.zeros(4, 3)]:\n"
        "    model(x).mean().backward()\n    optimizer.zero_grad()\n"
        f"{again if made == 'before' else ''}    optimizer.step()\n{again if made == 'after' else ''}"
        "    again.backward()\n"
    )
    source = parse("case.py", (HEAD + body).encode())
    assert isinstance(source, Source)
    (erased,) = (one for one in analyse(source).defects if one.kind == "zero_grad_before_step")
    assert isinstance(erased.facts, EarlyClear)
    assert erased.facts.spoils is spoils


def test_a_step_may_spoil_a_later_backward_through_what_is_not_known() -> None:
    body = (
        "import sys\nfirst, last = nn.Linear(3, 4), nn.Linear(4, 1, bias=False)\n"
        "shape = {'a': torch.tanh}.get(sys.argv[1], torch.relu)\n"
        "optimizer = torch.optim.SGD([*first.parameters(), *last.parameters()], lr=0.1)\n"
        "for x in [torch.ones(4, 3), torch.zeros(4, 3)]:\n"
        "    last(first(x)).mean().backward()\n    loss = last(shape(first(x))).mean()\n"
        "    optimizer.zero_grad()\n    optimizer.step()\n    loss.backward()\n"
    )
    source = parse("case.py", (HEAD + body).encode())
    assert isinstance(source, Source)
    (erased,) = (one for one in analyse(source).defects if one.kind == "zero_grad_before_step")
    assert isinstance(erased.facts, EarlyClear)
    assert erased.facts.spoils is True
