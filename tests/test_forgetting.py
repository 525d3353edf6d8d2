"""Who knows less says no more: mechanisms one by one, and a slice of the forgetting test."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from random import Random
from textwrap import dedent

import pytest
from forgetting.bounds import nobody
from forgetting.campaign import WAYS, Plan, Played, Tally, forget
from forgetting.edits import Edit
from oracle.choose import seeded
from oracle.programs import program
from wild.programs import written

from gradfix.defects import Assumption
from gradfix.source import Source, parse
from gradfix.tape.entries import analyse

START = """
import torch
import torch.nn.functional as F
from torch import nn
from elsewhere import unknown
"""


def kinds(body: str) -> set[str]:
    """What is listed in a script, without matters of style and suspects."""
    source = parse("script.py", (START + dedent(body)).encode())
    assert isinstance(source, Source)
    return {
        defect.kind
        for defect in analyse(source).defects
        if defect.impact != "style" and defect.certainty != "suspect"
    }


UNKNOWN_BUT_MAY_BE_IT = {
    "who has a gradient may clear it": """
        w = torch.ones(3, requires_grad=True)
        for _ in range(3):
            (w * 2).sum().backward()
            with torch.no_grad():
                w -= 0.1 * w.grad
            unknown(w.grad)
        """,
    "a method of a gradient may clear it": """
        w = torch.ones(3, requires_grad=True)
        for _ in range(3):
            (w * 2).sum().backward()
            with torch.no_grad():
                w -= 0.1 * w.grad
            getattr(w.grad, unknown)()
        """,
    "who has a leaf may clear its gradient": """
        w = torch.ones(3, requires_grad=True)
        for _ in range(3):
            (w * 2).sum().backward()
            with torch.no_grad():
                w -= 0.1 * w.grad
            unknown([w])
        """,
    "who has a function may call it": """
        net = nn.Linear(2, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        def forget():
            opt.zero_grad()
        for _ in range(3):
            net(torch.ones(2)).sum().backward()
            opt.step()
            unknown(forget)
        """,
    "who has a loss may run backward from it": """
        net = nn.Linear(2, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            net(torch.ones(2)).sum().backward()
            loss = net(torch.ones(2)).sum()
            opt.zero_grad()
            unknown(loss)
            opt.step()
        """,
    "an unknown method of a loss may be backward": """
        net = nn.Linear(2, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            net(torch.ones(2)).sum().backward()
            loss = net(torch.ones(2)).sum()
            opt.zero_grad()
            getattr(loss, unknown)()
            opt.step()
        """,
    "who has a loss may have trained what another one is cut off from": """
        net, other = nn.Linear(2, 1), nn.Linear(2, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        fake = net(torch.ones(2))
        unknown(fake.sum())
        (other.weight.sum() + fake.detach().sum()).backward()
        opt.step()
        """,
    "who has a result may have it keep its gradient": """
        x = torch.ones(3, requires_grad=True)
        y = x * 2
        unknown(y)
        (y * y).sum().backward()
        print(y.grad)
        """,
    "what is entered may have turned recording off": """
        w = torch.ones(3, requires_grad=True)
        (w * 2).sum().backward()
        with unknown():
            w -= 0.1 * w.grad
        """,
    "so may what is left early": """
        w = torch.ones(3, requires_grad=True)
        def update():
            with unknown():
                if w.grad is None:
                    return
                w.sub_(0.1 * w.grad)
        (w * 2).sum().backward()
        update()
        """,
    "one of several contexts turns recording off": """
        import contextlib
        w = torch.ones(3, requires_grad=True)
        (w * 2).sum().backward()
        with torch.no_grad() if unknown() else contextlib.nullcontext():
            w -= 0.1 * w.grad
        """,
    "a decorator may turn recording off": """
        w = torch.ones(3, requires_grad=True)
        @unknown.quietly()
        def update():
            w.sub_(0.1 * w.grad)
        (w * 2).sum().backward()
        update()
        """,
    "what an unknown call gets needn't be backpropagated": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 4)
            def forward(self, x):
                h = torch.sigmoid(self.layer(x))
                h += 1
                unknown(h)
                return x
        """,
    "an unknown attribute of a leaf may be its gradient": """
        w = torch.ones(3, requires_grad=True)
        for _ in range(3):
            (w * 2).sum().backward()
            with torch.no_grad():
                w -= 0.1 * w.grad
            getattr(w, unknown).zero_()
        """,
    "an unknown attribute of an object may be a tensor whose gradient is cleared": """
        class Holder:
            def __init__(self):
                self.w = torch.ones(3, requires_grad=True)
        holder = Holder()
        for _ in range(3):
            (holder.w * 2).sum().backward()
            with torch.no_grad():
                holder.w -= 0.1 * holder.w.grad
            getattr(holder, unknown).grad = None
        """,
    "a module may register what it is handed": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = [nn.Linear(2, 2), nn.Linear(2, 2)]
                unknown(self)
            def forward(self, x):
                for layer in self.layers:
                    x = layer(x)
                return x
        net = Net()
        net(torch.ones(1, 2)).sum().backward()
        """,
    "what is registered may be one of them": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = [nn.Linear(2, 2), nn.Linear(2, 2)]
                for i, layer in enumerate(self.layers):
                    self.add_module(f"layer{i}", unknown(layer))
            def forward(self, x):
                for layer in self.layers:
                    x = layer(x)
                return x
        net = Net()
        net(torch.ones(1, 2)).sum().backward()
        """,
    "an optimizer may have got what it was given in an unknown way": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = [nn.Linear(2, 2), nn.Linear(2, 2)]
            def forward(self, x):
                for layer in self.layers:
                    x = layer(x)
                return x
        net = Net()
        opt = torch.optim.SGD(unknown([layer.parameters() for layer in net.layers]), lr=0.1)
        opt.zero_grad()
        net(torch.ones(1, 2)).sum().backward()
        opt.step()
        """,
    "a list of modules that isn't known holds some": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList(unknown([nn.Linear(2, 2)]))
            def forward(self, x):
                for layer in self.layers:
                    x = layer(x)
                return x
        Net()(torch.ones(1, 2)).sum().backward()
        """,
    "one of several terms may lead to what another one doesn't": """
        net, other = nn.Linear(2, 1), nn.Linear(2, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            net(torch.ones(2)).sum().backward()
            opt.zero_grad()
            torch.stack([other(torch.ones(2)).sum(), unknown()]).sum().backward()
            opt.step()
        """,
    "a list that may hold more has no known sum": """
        losses = []
        unknown(losses)
        torch.stack(losses).sum().backward()
        """,
    "who has a leaf may let it require grad": """
        x = torch.ones(3)
        unknown(x)
        x.sum().backward()
        """,
    "who has what was detached may let it require grad": """
        x = torch.ones(3, requires_grad=True)
        y = (x * 2).detach()
        getattr(y, unknown)()
        y.sum().backward()
        """,
    "a variable may require grad": """
        from torch.autograd import Variable
        x = Variable(torch.ones(3), requires_grad=unknown())
        x.sum().backward()
        """,
    "a part that isn't known may have parameters": """
        def deep(n):
            return nn.Linear(3, 3) if n == 0 else deep(n - 1)
        model = unknown(nn.Linear(3, 3))
        for parameter in model.parameters():
            parameter.requires_grad = False
        model.head = deep(4)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        optimizer.zero_grad()
        F.mse_loss(model(torch.ones(2, 3)), torch.ones(2, 3)).backward()
        optimizer.step()
        """,
    "who has a list of modules may put something into it": """
        blocks = nn.ModuleList()
        getattr(blocks, unknown)(nn.Linear(2, 2))
        x = torch.ones(3)
        for block in blocks:
            x = block(x)
        x.sum().backward()
        """,
    "who has parameters may step them": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = [nn.Linear(2, 2), nn.Linear(2, 2)]
                self.optimizers = [unknown(layer.parameters()) for layer in self.layers]
            def forward(self, x):
                for layer in self.layers:
                    x = layer(x)
                return x
        Net()(torch.ones(1, 2)).sum().backward()
        """,
    "what an unknown call returns needn't lead back to what it got": """
        class Best(nn.Module):
            def forward(self, scores, pad):
                scores = torch.sigmoid(scores)
                scores[pad] = 0
                return unknown(scores)
        """,
    "a helper that runs where recording may be off isn't trained through": """
        class InsideOf(nn.Module):
            def forward(self, boxes, width):
                boxes[:, 0] = torch.clamp(boxes[:, 0], min=0)
                boxes[:, 2] = torch.clamp(boxes[:, 2], max=width)
                return boxes
        with unknown():
            InsideOf()(torch.ones(1, 4), 30)
        """,
    "a switch that isn't known may be on": """
        net = nn.Linear(2, 1)
        net.requires_grad = unknown()
        """,
    "an optimizer that may hold more may have it unscaled": """
        net = nn.Linear(2, 1)
        opt = torch.optim.SGD(unknown(net.parameters()), lr=0.1)
        scaler = torch.amp.GradScaler("cpu")
        scaler.scale(net(torch.ones(2)).sum()).backward()
        scaler.unscale_(opt)
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        """,
    "a scaler that may be switched off needn't scale": """
        net = nn.Linear(2, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", enabled=unknown())
        scaler.scale(net(torch.ones(2)).sum()).backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        """,
    "what scales a number that isn't known may have a graph": """
        net = nn.Linear(2, 1)
        kept = []
        unknown(kept)
        total = torch.zeros(())
        for log_prob, reward in zip(kept, [net(torch.ones(2)).sum().item()]):
            total = total - log_prob * reward
        total.sum().backward()
        """,
    "who has a list may take something out of it": """
        net, kept = nn.Linear(2, 1), []
        for _ in range(3):
            kept.append(net(torch.ones(2)).sum())
            torch.stack(kept).sum().backward()
            unknown(kept)
        """,
    "what is deleted of an unknown attribute may be a list's elements": """
        class Kept:
            def __init__(self):
                self.losses = []
        net, kept = nn.Linear(2, 1), Kept()
        for _ in range(3):
            kept.losses.append(net(torch.ones(2)).sum())
            torch.stack(kept.losses).sum().backward()
            del getattr(kept, unknown)[:]
        """,
    "who calls a function may fill the list of a module that it names": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.kept = []
        net = Net()
        def play():
            net.kept.append(torch.ones(1, requires_grad=True))
        unknown(play)
        losses = [-one for one in net.kept]
        torch.stack(losses).sum().backward()
        """,
    "a class that isn't known may be that of any tensor": """
        from elsewhere import Kind
        def apart(h):
            if isinstance(h, Kind):
                return h.detach()
            return tuple(apart(v) for v in h)
        rnn = nn.LSTM(2, 3)
        hidden = (unknown(1, 1, 3), unknown(1, 1, 3))
        for chunk in unknown(3, 4, 1, 2):
            hidden = apart(hidden)
            out, hidden = rnn(chunk, hidden)
            out.sum().backward()
        """,
    "who is asked for its children has those that aren't known as well": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.stem = getattr(nn, unknown)(4, 4)
                self.head = nn.Linear(4, 4)
        net = Net()
        list(net.children())[0].requires_grad_(False)
        loss = torch.randn(3, 4).max()
        loss = loss + sum(p.pow(2).sum() for p in net.parameters())
        loss.backward()
        print(net.stem.weight.grad, net.head.weight.grad)
        """,
    "parameters of a part that isn't known are in a sum over all": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.stem = nn.Linear(4, 4)
                self.head = getattr(nn, unknown)(4, 4)
        net = Net()
        net.stem.requires_grad_(False)
        loss = torch.randn(3, 4).max()
        loss = loss + sum(p.pow(2).sum() for p in net.parameters())
        loss.backward()
        print(net.stem.weight.grad, net.head.weight.grad)
        """,
    "a total needn't be recorded where recording may be off": """
        net, total = nn.Linear(2, 1), 0.0
        for _ in range(3):
            loss = net(torch.ones(2)).sum()
            loss.backward()
            with unknown():
                total += loss
        """,
    "what is shared by two losses needn't be recorded where recording may be off": """
        net, other = nn.Linear(2, 1), nn.Linear(1, 1)
        with unknown():
            style = net(torch.ones(2))
        F.mse_loss(other(torch.ones(1)), style).backward()
        F.mse_loss(other(torch.zeros(1)), style).backward()
        """,
    "a generator behind an unknown decorator runs who knows when": """
        @unknown
        def updating(optimizer):
            optimizer.zero_grad()
            yield
            optimizer.step()
        net = nn.Linear(2, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            with updating(opt):
                net(torch.ones(2)).sum().backward()
        """,
    "who has the parameters of one of several may step any of them": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.heads = [nn.Linear(2, 2), nn.Linear(2, 2)]
                self.optimizers = [unknown(self.heads[i].parameters()) for i in unknown()]
            def forward(self, x):
                return self.heads[0](x)
        net = Net()
        opt = torch.optim.SGD(nn.Linear(2, 2).parameters(), lr=0.1)
        net(torch.ones(2)).sum().backward()
        """,
    "an update where recording may be off is one": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = [nn.Linear(2, 2), nn.Linear(2, 2)]
            def forward(self, x):
                for layer in self.layers:
                    x = layer(x)
                return x
        net = Net()
        net(torch.ones(2)).sum().backward()
        with unknown():
            for layer in net.layers:
                layer.weight -= 0.1 * layer.weight.grad
        """,
    "who has a class may train what is made of it": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = [nn.Linear(2, 2), nn.Linear(2, 2)]
            def forward(self, x):
                for layer in self.layers:
                    x = layer(x)
                return x
        net = unknown(Net)
        """,
    "what is registered of one of them may be any": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.gates = [nn.Linear(2, 2), nn.Linear(2, 2)]
                for gate in unknown(self.gates):
                    for parameter in gate.parameters():
                        self.register_parameter(unknown(), parameter)
            def forward(self, x):
                for gate in self.gates:
                    x = gate(x)
                return x
        Net()(torch.ones(2)).sum().backward()
        """,
    "what isn't known stays what it was where it is updated unrecorded": """
        w = unknown(requires_grad=True)
        x = torch.ones(3)
        for _ in range(3):
            loss = (w * x).mean()
            if w.grad is not None:
                w.grad.zero_()
            loss.backward()
            with torch.no_grad():
                w -= 0.1 * w.grad
        """,
    "what a recurrent layer makes of what isn't known may be packed": """
        packed, _ = nn.GRU(3, 4)(unknown())
        packed.data.pow(2).sum().backward()
        """,
    "what fills a memory once under a test of it doesn't fill it again": """
        class Filters(nn.Module):
            def __init__(self):
                super().__init__()
                self.bank = unknown()
            def forward(self, x):
                if self.bank.numel() == 0:
                    self.bank.copy_(torch.eye(4))
                return torch.matmul(x, self.bank)
        lin, filters = nn.Linear(4, 4), Filters()
        (filters(lin(torch.ones(4))) - filters(lin(torch.zeros(4)))).sum().backward()
        """,
    "a list of modules that is extended by what isn't known may hold any": """
        blocks = nn.ModuleList()
        blocks.extend(unknown())
        x = torch.ones(3)
        for block in blocks:
            x = block(x)
        x.sum().backward()
        """,
    "what is put into a model that isn't known may learn": """
        model = unknown()
        for parameter in model.parameters():
            parameter.requires_grad = False
        model.head[1] = unknown(4, 1)
        F.mse_loss(model(torch.ones(2, 3)), torch.ones(2, 1)).backward()
        """,
    "a copy of what may be frozen may be frozen": """
        import copy
        model = unknown().requires_grad_(False)
        average = copy.deepcopy(unknown(model))
        for slow, fast in zip(average.parameters(), model.parameters()):
            slow.copy_(fast)
        """,
    "a call for its effect may turn recording off, in a file that does so": """
        w = torch.ones(3, requires_grad=True)
        getattr(torch, unknown)(False)
        w.sub_(0.1)
        torch.set_grad_enabled(True)
        """,
    "a call for its effect may freeze what it gets": """
        w = torch.ones(3, requires_grad=True)
        getattr(w, unknown)(False)
        w.sub_(0.1)
        """,
    "an unknown mode of torch may turn recording on again": """
        net = nn.Linear(2, 1)
        with torch.no_grad():
            with getattr(torch, unknown)():
                loss = net(torch.ones(2)).sum()
        loss.backward()
        """,
    "who has a module that isn't known may clear its gradients": """
        net = unknown()
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            loss = net(torch.ones(2)).sum()
            unknown(net)
            loss.backward()
            opt.step()
        """,
    "what a gradient is filled with may be zeros": """
        w = torch.ones(3, requires_grad=True)
        for _ in range(3):
            (w * 2).sum().backward()
            with torch.no_grad():
                w -= 0.1 * w.grad
            w.grad[:] = unknown()
        """,
    "an optimizer that may hold it may clear its gradient": """
        net = nn.Linear(2, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        other = torch.optim.SGD(unknown(net.parameters()), lr=0.1)
        for _ in range(3):
            net(torch.ones(2)).sum().backward()
            opt.step()
            other.zero_grad()
        """,
    "what may be a leaf again hasn't lost its gradient": """
        x = torch.ones(3, requires_grad=True)
        for _ in range(3):
            (x * x).sum().backward()
            x = unknown(x - 0.1 * x.grad).requires_grad_()
        """,
    "an optimizer that isn't known uses no gradient of what it wasn't given": """
        net, w = nn.Linear(2, 1), unknown(requires_grad=True)
        opt = getattr(torch, unknown).Adam(net.parameters())
        for _ in range(3):
            (w ** 2).sum().backward()
            opt.zero_grad()
            opt.step()
        """,
    "who has a leaf may have an optimizer for it": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.shift = torch.zeros(2, requires_grad=True)
                self.out = nn.Linear(2, 1)
            def forward(self, x):
                return self.out(x + self.shift)
        net = Net()
        opt, own = torch.optim.SGD(net.parameters(), lr=0.1), unknown([net.shift])
        for _ in range(3):
            opt.zero_grad()
            net(torch.ones(2)).sum().backward()
            opt.step()
        """,
    "who has a list may put something into it": """
        blocks = []
        unknown(blocks)
        x = torch.ones(3)
        for block in blocks:
            x = block(x)
        x.sum().backward()
        """,
}


@pytest.mark.parametrize(
    "body", [pytest.param(body, id=name) for name, body in UNKNOWN_BUT_MAY_BE_IT.items()]
)
def test_nothing_is_claimed_of_what_an_unknown_call_may_have_done(body: str) -> None:
    assert kinds(body) == set()


def test_without_the_unknown_call_the_gradient_is_stale() -> None:
    body = UNKNOWN_BUT_MAY_BE_IT["who has a gradient may clear it"]
    assert kinds(body.replace("unknown(w.grad)", "print(w.grad)")) == {"missing_zero_grad"}


DEEP = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c, self.d, self.e, self.f = (nn.Linear(8, 8) for _ in range(6))
    def forward(self, x):
        for layer in (self.a, self.b, self.c, self.d, self.e, self.f):
            x = torch.relu(layer(x))
        return x

gen = nn.Linear(4, 8)
dis = nn.Sequential(
    Block(), Block(), Block(), Block(), Block(), Block(), Block(), Block(), nn.Linear(8, 1)
)
opt_g = torch.optim.Adam(gen.parameters())
opt_d = torch.optim.Adam(dis.parameters())
for step in range(3):
    fake = gen(torch.randn(16, 4))
    opt_g.zero_grad()
    dis(fake).mean().backward()
    opt_g.step()
    opt_d.zero_grad()
    (dis(torch.randn(16, 8)).mean() - dis(fake.detach()).mean()).backward()
    opt_d.step()
"""


def test_a_network_that_is_no_longer_followed_may_be_in_any_loss() -> None:
    assert kinds(DEEP) == set()


def test_what_only_recording_would_break_is_suspected_where_it_may_be_off() -> None:
    body = UNKNOWN_BUT_MAY_BE_IT["what is entered may have turned recording off"]
    source = parse("script.py", (START + dedent(body)).encode())
    assert isinstance(source, Source)
    (suspect,) = analyse(source).defects
    assert (suspect.kind, suspect.certainty) == ("inplace_on_leaf", "suspect")
    assert suspect.assumptions == (Assumption.RECORDED_HERE.value,)


def test_a_loss_of_several_alternatives_is_kept_as_one_is() -> None:
    """What the tape doesn't know apart it says as well as what it knows: else forgetting would say more."""
    body = """
    net, losses = nn.Linear(2, 1), []
    x = torch.ones(2).cuda() if torch.cuda.is_available() else torch.ones(2)
    for _ in range(3):
        loss = net(x).sum()
        loss.backward()
        losses.append(loss)
    """
    assert kinds(body) == {"graph_leak"}


@pytest.mark.parametrize(("other", "found"), [("loss.backward()", {"graph_leak"}), ("pass", set())])
def test_what_is_walked_whichever_way_a_test_comes_out_is_walked(other: str, found: set[str]) -> None:
    body = f"""
    net, losses = nn.Linear(2, 1), []
    for _ in range(3):
        loss = net(torch.ones(2)).sum()
        if unknown():
            (loss * 2).backward()
        else:
            {other}
        losses.append(loss.sqrt())
    """
    assert kinds(body) == found


FIXTURES = Path(__file__).parent.parent / "fixtures"
SEED = 7
ANNOTATED = re.compile(rb"def \w+\(.*\w: ")
"""Few fixtures have annotations to forget: a sample may have none."""


def texts() -> Iterator[tuple[str, bytes]]:
    """Some fixtures and some random programs, the same each time."""
    paths = sorted(FIXTURES.glob("*/*/*.py"))
    drawn = Random(SEED).sample(paths, 90)
    chosen = dict.fromkeys([*drawn, *(path for path in paths if ANNOTATED.search(path.read_bytes()))])
    yield from ((path.relative_to(FIXTURES).as_posix(), path.read_bytes()) for path in chosen)
    for number in range(SEED * 1000, SEED * 1000 + 30):
        yield f"program {number}", program(seeded(number)).source.encode()


def every_other_fixture() -> Iterator[tuple[str, bytes]]:
    for path in sorted(FIXTURES.glob("*/*/*.py"))[::2]:
        yield path.relative_to(FIXTURES).as_posix(), path.read_bytes()


def longer_programs() -> Iterator[tuple[str, bytes]]:
    """Some of the other generator's: classes, loops, several networks."""
    for number in range(SEED * 1000, SEED * 1000 + 20):
        yield f"wild {number}", written(number).source.encode()


def tally(of: Iterable[tuple[str, bytes]], plan: Plan) -> Tally:
    total = Tally()
    for path, content in of:
        total.add(forget(path, content, plan, nobody))
    return total


@cache
def forgotten() -> Tally:
    return tally(texts(), Plan(each=1, seed=SEED))


@cache
def forgotten_at_once() -> Tally:
    return tally(chain(every_other_fixture(), longer_programs()), Plan(drawn=3, seed=SEED))


def more(found: Tally) -> set[tuple[str, str, str]]:
    """What is said only because something was forgotten: the text, the way and the rule."""
    cases = [case for case in found.cases if case.more.sort in ("appeared", "surer")]
    return {(case.path, case.way, case.more.defect.kind) for case in cases}


@pytest.mark.parametrize("way", WAYS)
def test_who_forgets_says_no_more(way: str) -> None:
    assert {case for case in more(forgotten()) if case[1] == way} == set()


def test_who_forgets_several_things_at_once_says_no_more() -> None:
    assert forgotten_at_once().played > forgotten_at_once().texts
    assert more(forgotten_at_once()) == set()


@pytest.mark.parametrize("way", WAYS)
def test_each_way_is_gone(way: str) -> None:
    assert forgotten().runs[way] > 0


def test_the_tape_never_fails_for_what_it_does_not_know() -> None:
    assert forgotten().crashes == []
    assert forgotten_at_once().crashes == []


ENDS = """
w = torch.ones(3, requires_grad=True)
y = w * 2
y.detach_()
z = y - 1
z.sum().backward()
print(z.grad)
"""
ENDS_A_TURN = """
w = torch.ones(3, requires_grad=True)
for _ in range(3):
    y = w * 2
    y.detach_()
    z = y - 1
    z.sum().backward()
    print(z.grad)
"""
CAUGHT = """
w = torch.ones(3, requires_grad=True)
y = w * 2
y.detach_()
z = y - 1
try:
    z.sum().backward()
except RuntimeError:
    pass
print(z.grad)
"""


@pytest.mark.parametrize(
    ("body", "sort"),
    [(ENDS, "way opened"), (ENDS_A_TURN, "way opened"), (CAUGHT, "appeared")],
    ids=["which ends the program", "which ends each turn", "which is caught"],
)
def test_a_crash_that_was_certain_hides_what_stands_behind_it(body: str, sort: str) -> None:
    text = (START + body).encode()
    source = parse("script.py", text)
    assert isinstance(source, Source)
    at = text.index(b"y.detach_()")
    played = Played(source, nobody)
    found = played.blurred([[Edit(at, at + len(b"y.detach_()"), b"pass")]])
    assert found is not None
    assert {(one.defect.kind, one.sort) for one in played.sorted_out(found)} == {("grad_of_non_leaf", sort)}


FIVE = """
from elsewhere import blur
w = torch.ones(3, requires_grad=True)
def update(a):
    if a == 1:
        scale = [w * 2]
    elif a == 2:
        scale = [w * 3]
    elif a == 3:
        scale = [w * 4]
    elif a == 4:
        scale = [w * 5]
    else:
        scale = [w * 6]
    y = scale[0].exp()
    y.mul_(2)
    y.sum().backward()
update(blur(0))
"""


def sorts(text: str, begin: str, end: str, instead: str) -> set[str]:
    """How it counts what is only said of a text that has something else between two of its words."""
    source = parse("script.py", text.encode())
    assert isinstance(source, Source)
    played = Played(source, nobody)
    assert not played.said
    edit = Edit(text.index(begin), text.index(end), instead.encode())
    found = played.blurred([[edit]])
    assert found is not None
    assert {(one.defect.kind, one.sort) for one in found} == {("inplace_overwrites_saved", "appeared")}
    return {one.sort for one in played.sorted_out(found)}


def test_a_finding_that_too_many_alternatives_had_hidden_is_told_apart() -> None:
    assert sorts(START + FIVE, "    elif a == 4", "    else:", "") == {"limit met"}


def test_a_finding_that_alternatives_had_hidden_of_which_there_are_too_many_in_all_is_told_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gradfix.tape.entries.SPREAD_FLOOR", 0)
    monkeypatch.setattr("gradfix.tape.entries.BYTES_PER_SPREAD", 10**9)
    three = FIVE.replace(FIVE[FIVE.index("    elif a == 3") : FIVE.index("    else:")], "")
    assert sorts(START + three, "    if a == 1", "    y = ", "    scale = [w * 2]\n") == {"limit met"}
