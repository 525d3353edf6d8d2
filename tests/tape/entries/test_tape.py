"""The tape's rules of the machine, one at a time, without torch."""

from __future__ import annotations

import pytest
from short import analysis, culprits, kinds

FOUND = {
    "what a flag appended is overwritten where the flag is on": (
        """
        class Stage(nn.Module):
            def __init__(self, closed):
                super().__init__()
                parts = [nn.Conv2d(2, 2, 1)]
                if closed:
                    parts.append(nn.ReLU())
                self.parts = nn.Sequential(*parts)
                self.closed = closed
            def forward(self, x):
                y = self.parts(x)
                if self.closed:
                    y += x
                return y
        """,
        "inplace_overwrites_saved",
        "y += x",
    ),
    "a result that exp saved is overwritten": (
        "x = torch.ones(3, requires_grad=True)\ny = x.exp()\ny += 1\ny.sum().backward()",
        "inplace_overwrites_saved",
        "y += 1",
    ),
    "an input that a product saved is overwritten through a view": (
        (
            "w = torch.ones(3, requires_grad=True)\nx = torch.ones(3)\n"
            "y = w * x\nx.view(-1)[0] = 5\ny.sum().backward()"
        ),
        "inplace_overwrites_saved",
        "x.view(-1)[0] = 5",
    ),
    "a write under the flag of the save is found": (
        """
        class Block(nn.Module):
            def __init__(self, residual):
                super().__init__()
                self.conv = nn.Conv2d(3, 3, 1)
                self.residual = residual
            def forward(self, x):
                if self.residual:
                    out = F.relu(self.conv(x))
                    out += x
                    return out
                return x
        """,
        "inplace_overwrites_saved",
        "out += x",
    ),
    "relu last in a Sequential of another class": (
        """
        class Inner(nn.Module):
            def __init__(self):
                super().__init__()
                self.net = nn.Sequential(nn.Conv2d(3, 3, 1), nn.ReLU())
            def forward(self, x):
                return self.net(x)
        class Outer(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = Inner()
            def forward(self, x):
                y = self.inner(x)
                y += x
                return y
        """,
        "inplace_overwrites_saved",
        "y += x",
    ),
    "an update by hand in a method whose callers are elsewhere": (
        """
        class Trainer:
            def __init__(self):
                self.net = nn.Linear(2, 1)
            def train(self, x):
                self.net(x).sum().backward()
                self.net.weight -= 0.1 * self.net.weight.grad
        """,
        "inplace_on_leaf",
        "self.net.weight -= 0.1 * self.net.weight.grad",
    ),
    "a block that normalises what it is given": (
        """
        class Scale(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.lin = nn.Linear(width, width)
            def forward(self, x):
                x = x - x.mean(1, keepdim=True)
                spread = torch.sqrt(torch.var(x, dim=1, keepdim=True) + 1e-5)
                x /= spread
                return self.lin(x)
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Sequential(nn.Linear(4, 4), Scale(4))
            def forward(self, x):
                return self.body(x)
        """,
        "inplace_overwrites_saved",
        "x /= spread",
    ),
    "a parameter drawn by the constructor": (
        """
        class Head(nn.Module):
            def __init__(self):
                super().__init__()
                self.lin = nn.Linear(2, 1)
                self.lin.weight.uniform_(-1, 1)
            def forward(self, x):
                return self.lin(x)
        """,
        "inplace_on_leaf",
        "self.lin.weight.uniform_(-1, 1)",
    ),
    "a step between forward and the second backward": (
        """
        a, b = nn.Linear(2, 2), nn.Linear(2, 2)
        opt = torch.optim.SGD(a.parameters(), lr=0.1)
        h = a(torch.ones(1, 2, requires_grad=True))
        first, second = h.sum(), b(h).sum()
        first.backward(retain_graph=True)
        opt.step()
        second.backward()
        """,
        "step_before_backward",
        "opt.step()",
    ),
    "gradients that a step has used are added to": (
        """
        net = nn.Linear(2, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for x in [torch.ones(1, 2)] * 3:
            net(x).sum().backward()
            opt.step()
        """,
        "missing_zero_grad",
        "net(x).sum().backward()",
    ),
    "a model that isn't known, stepped without clearing": (
        """
        from models import build
        def main():
            net = build()
            opt = torch.optim.SGD(net.parameters(), lr=0.1)
            for x, y in batches():
                F.cross_entropy(net(x), y).backward()
                opt.step()
        """,
        "missing_zero_grad",
        "F.cross_entropy(net(x), y).backward()",
    ),
    "a detach on the only way to the leaf": (
        "w = torch.ones(3, requires_grad=True)\nloss = (w * 2).detach().sum()\nloss.backward()",
        "detached_loss_path",
        "loss = (w * 2).detach().sum()",
    ),
    "a hidden state carried from turn to turn": (
        """
        cell = nn.RNNCell(2, 2)
        h = torch.zeros(1, 2)
        for _ in range(3):
            h = cell(torch.ones(1, 2), h)
            h.sum().backward()
        """,
        "backward_twice",
        "h.sum().backward()",
    ),
}


@pytest.mark.parametrize(("body", "kind", "line"), FOUND.values(), ids=FOUND.keys())
def test_a_broken_rule_is_found_where_it_is_broken(body: str, kind: str, line: str) -> None:
    assert culprits(body, kind) == [line]


QUIET = {
    "what is done only where a model trains that was told not to": """
        def run(net):
            net.eval()
            w = torch.ones(3, requires_grad=True)
            if net.training:
                y = w.exp()
                y += 1
                y.sum().backward()
        """,
    "recording that is on where there is an optimizer, and only there a backward": """
        def process(net, batches, optimizer=None):
            with torch.set_grad_enabled(optimizer is not None):
                for x, wanted in batches:
                    loss = F.cross_entropy(net(x), wanted)
                    if optimizer is not None:
                        optimizer.zero_grad()
                        loss.backward()
                        optimizer.step()
        if kind == 0:
            pass
        elif kind == 1:
            net = first().to(device)
        elif kind == 2:
            net = second().to(device)
        optimizer = torch.optim.Adam(net.parameters())
        for epoch in range(epochs + 1):
            if epoch == 0:
                pass
            else:
                process(net, batches, optimizer)
        """,
    "a loss that is backpropagated only where a flag says that something was put into it": """
        net = nn.Linear(2, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        def run(batches, good):
            for x, a, b in batches:
                loss = torch.tensor(0.0)
                first, second = False, False
                if len(a) > 0:
                    if good(a):
                        loss += net(x).mean()
                        first = True
                if len(b) > 0:
                    loss += net(x).pow(2).mean()
                    second = True
                if first or second:
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
        """,
    "a parameter that was loaded": """
        class Agent:
            def __init__(self, path):
                self.net = nn.Linear(2, 1)
                self.weight = torch.zeros(1, requires_grad=True)
                self.optimizer = torch.optim.SGD([self.weight], lr=0.1)
                if path:
                    self.weight = torch.load(path)
            def update(self, x):
                loss = (self.weight * self.net(x).detach()).mean()
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
        """,
    "layers by the letters of a word, of which two turns of a loop would have to meet different ones": """
        def layers(word, width, early):
            made = []
            for i, letter in enumerate(word):
                if letter == "r":
                    made.append(("relu", nn.ReLU(inplace=True)))
                elif letter == "l":
                    made.append(("leaky", nn.LeakyReLU(inplace=True)))
                elif letter == "e":
                    pass
                elif letter == "c":
                    pass
                elif letter == "g":
                    pass
                elif letter == "b":
                    if early:
                        pass
                    else:
                        made.append(("norm", nn.BatchNorm2d(width)))
                else:
                    raise ValueError(letter)
            return made
        class Block(nn.Sequential):
            def __init__(self, word, width, early):
                super().__init__()
                for name, module in layers(word, width, early):
                    self.add_module(name, module)
        class Net(nn.Module):
            def __init__(self, word, width, early):
                super().__init__()
                self.block = Block(word, width, early)
            def forward(self, x):
                return self.block(x)
        """,
    "entries of what came in that are put back clipped": """
        class Clip(nn.Module):
            def forward(self, boxes, image):
                boxes[:, 0] = torch.clamp(boxes[:, 0], min=0)
                boxes[:, 1] = torch.clamp(boxes[:, 1], max=image.shape[2])
                return boxes
        """,
    "a gradient that is zeroed where there is one, of a leaf that differs by path": """
        class Base:
            def __init__(self, model):
                try:
                    self.device = next(model.parameters()).device
                except Exception:
                    self.device = None
        class Attack(Base):
            def run(self, images):
                images = images.clone().detach().to(self.device)
                image = nn.Parameter(images)
                for _ in range(self.rounds):
                    for _ in range(self.steps):
                        if image.grad is not None:
                            image.grad.detach_()
                            image.grad.zero_()
                        loss = self.judge(self.distance(image, images))
                        loss.backward()
                        with torch.no_grad():
                            image -= image.grad * self.rate
        """,
    "parameters of the optimizer that follow others by hand": """
        class Pair(nn.Module):
            def __init__(self):
                super().__init__()
                self.fast = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 3),
                                          nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 3),
                                          nn.Linear(3, 3))
                self.slow = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 3),
                                          nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 3),
                                          nn.Linear(3, 3))
            def follow(self):
                for fast, slow in zip(self.fast.parameters(), self.slow.parameters()):
                    slow.data.mul_(0.9).add_(fast.data, alpha=0.1)
        pair = Pair()
        optimizer = torch.optim.SGD(pair.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            pair.follow()
            x = torch.randn(2, 3)
            (pair.fast(x) - pair.slow(x).detach()).pow(2).sum().backward()
            optimizer.step()
        """,
    "a layer that a flag appends, and a write where it is off": """
        class Stage(nn.Module):
            def __init__(self, closing):
                super().__init__()
                parts = [nn.Conv2d(2, 2, 1)]
                if closing == "relu":
                    parts.append(nn.ReLU(inplace=True))
                self.parts = nn.Sequential(*parts)
                self.closing = closing
            def forward(self, x):
                y = self.parts(x)
                if self.closing == "sum":
                    y += x
                return y
        """,
    "a layer that a flag appends to a list of modules, and a write where it is off": """
        class Stage(nn.Module):
            def __init__(self, closed):
                super().__init__()
                self.parts = nn.ModuleList([nn.Conv2d(2, 2, 1)])
                if closed:
                    self.parts.append(nn.ReLU())
                self.closed = closed
            def forward(self, x):
                for i, part in enumerate(self.parts):
                    x = part(x)
                if not self.closed:
                    x += 1
                return x
        """,
    "the last of a list to which a flag appends": """
        def run(flag):
            w = torch.ones(3, requires_grad=True)
            made = [w * 2]
            if flag:
                made.append(w.exp())
            made[-1].add_(0 if flag else 1)
            sum(made).sum().backward()
        """,
    "what a flag puts into a dict, and a write where it is off": """
        def run(flag):
            w = torch.ones(3, requires_grad=True)
            made = {"a": w * 2}
            if flag:
                made["b"] = w.exp()
            for name, one in made.items():
                if not flag:
                    one += 1
            sum(made.values()).sum().backward()
        """,
    "a write under a flag that the save isn't under": """
        def run(x, a, b):
            w = torch.ones(3, requires_grad=True)
            y = w * 1
            if a:
                y = y.exp()
            if b:
                y = y + 1
            y.sum().backward()
        """,
    "a write before the save": "x = torch.ones(3, requires_grad=True) * 1\nx += 1\nx.pow(2).sum().backward()",
    "a write after a sum, which saves nothing": (
        "x = torch.ones(3, requires_grad=True)\ny = x + 1\ny *= 2\ny.sum().backward()"
    ),
    "a discriminator on a detached fake": """
        g, d = nn.Linear(2, 2), nn.Linear(2, 1)
        og = torch.optim.SGD(g.parameters(), lr=0.1)
        od = torch.optim.SGD(d.parameters(), lr=0.1)
        for _ in range(3):
            fake = g(torch.ones(1, 2))
            od.zero_grad()
            d(fake.detach()).mean().backward()
            od.step()
            og.zero_grad()
            d(fake).mean().backward()
            og.step()
        """,
    "gradient accumulation": """
        net = nn.Linear(2, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for i, x in enumerate(load()):
            net(x).sum().backward()
            if (i + 1) % 4 == 0:
                opt.step()
                opt.zero_grad()
        """,
    "a method that finds recording as the one before left it": """
        class Agent:
            def __init__(self):
                self.critic = nn.Linear(2, 1)
                self.optimizer = torch.optim.SGD(self.critic.parameters(), lr=0.1)
            def update(self, states):
                target = self.critic(states) + 1
                torch.set_grad_enabled(True)
                for _ in range(3):
                    loss = (self.critic(states) - target).pow(2).mean()
                    self.optimizer.zero_grad()
                    loss.backward()
                    self.optimizer.step()
                torch.set_grad_enabled(False)
        """,
    "results put into a fresh tensor where recording may be on": """
        def collect(net, states):
            out = torch.empty(4)
            for i in range(4):
                out[i] = net(states[i]).sum()
            out.mean().backward()
        def serve(net, state):
            torch.set_grad_enabled(False)
            return net(state)
        """,
    "a loop that freezes all parameters but those of some names": """
        def work(models, loader, args):
            model = models[args.arch]
            for name, param in model.named_parameters():
                if name not in ["fc.weight", "fc.bias"]:
                    param.requires_grad = False
            wanted = [p for p in model.parameters() if p.requires_grad]
            train(loader, model, nn.CrossEntropyLoss(), torch.optim.SGD(wanted, 0.1))
        def train(loader, model, criterion, optimizer):
            for images, target in loader:
                loss = criterion(model(images), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
    "a learnt coefficient taken as a number, times what a policy says": """
        class Agent:
            def __init__(self, policy, judge, optimizer):
                self.policy, self.judge, self.optimizer = policy, judge, optimizer
                self.log_alpha = nn.Parameter(torch.zeros(1))
            def update(self, state):
                alpha = self.log_alpha.exp().item()
                action, log_prob = self.policy(state)
                loss = torch.mean(alpha * log_prob[..., None] - self.judge(state, action))
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
        """,
    "a term that was asked for without recording": """
        class Agent:
            def __init__(self, policy, optimizer):
                self.policy, self.optimizer = policy, optimizer
                self.log_alpha = nn.Parameter(torch.zeros(1))
            def level(self):
                with torch.no_grad():
                    return float(self.log_alpha.exp())
            def update(self, state):
                loss = self.policy(state).mean() - 2 * self.level()
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
        """,
    "a kernel in another language that fills a parameter": """
        import taichi as ti
        import triton
        @ti.kernel
        def fill(data: ti.types.ndarray()):
            for place in ti.grouped(data):
                data[place] = ti.random()
        @triton.autotune(configs=[], key=[])
        @triton.jit
        def clear(data):
            data[0] = 0
        weights = nn.Parameter(torch.zeros(4))
        fill(weights)
        clear(weights)
        """,
    "weights loaded by a method whose callers are elsewhere": """
        def to_torch(array):
            return torch.from_numpy(array)
        class Unit(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.conv = nn.Conv2d(width, width, 1)
            def forward(self, x):
                return self.conv(x)
            def load_from(self, arrays):
                self.conv.weight.copy_(to_torch(arrays["kernel"]))
        """,
    "an augmentation that overwrites its input with noise": """
        class Erase(nn.Module):
            def forward(self, x):
                mean, std, low, high = x.mean(), x.std(), x.min(), x.max()
                nn.init.normal_(x[:, :, 2:4, 2:4], mean=mean, std=std)
                x.clamp_(low, high)
                return x
        """,
    "cells of a grid that are filled where there are points": """
        import numpy
        def pooled(points, features):
            out = torch.zeros(64, 8)
            for i, cell in enumerate(zip(*numpy.meshgrid(range(4), range(4)))):
                inside = find(points, cell)
                if len(inside) > 0:
                    out[i, :] = features[torch.LongTensor(inside), :].sum(0)
            return out
        points, features = torch.rand(9, 3), torch.rand(9, 8, requires_grad=True)
        torch.sum(pooled(points, features) * torch.rand(64, 8)).backward()
        """,
    "an episode that ends the loop it was recorded in": """
        class Estimator:
            def __init__(self):
                self.model = nn.Linear(4, 2)
                self.optimizer = torch.optim.Adam(self.model.parameters())
            def update(self, returns, log_probs):
                terms = [-log_prob * gain for log_prob, gain in zip(log_probs, returns)]
                self.optimizer.zero_grad()
                torch.stack(terms).sum().backward()
                self.optimizer.step()
            def act(self, state):
                probs = torch.softmax(self.model(torch.Tensor(state)), -1)
                action = torch.multinomial(probs, 1).item()
                return action, torch.log(probs[action])
        def reinforce(env, estimator):
            for episode in range(100):
                log_probs, rewards = [], []
                state = env.reset()
                while True:
                    action, log_prob = estimator.act(state)
                    state, reward, done, _ = env.step(action)
                    log_probs.append(log_prob)
                    rewards.append(reward)
                    if done:
                        estimator.update(torch.tensor(rewards), log_probs)
                        break
        reinforce(env, Estimator())
        """,
    "a layer filled for callers who are elsewhere": """
        def widened(layer, kernel):
            made = nn.Conv2d(layer.in_channels, layer.out_channels, 3)
            made.weight.copy_(kernel)
            return made
        """,
    "a frozen model whose head is thawed by name": """
        from zoo import resnet
        def work(args, loader):
            model = resnet(args.depth).cuda(args.gpu)
            if args.freeze:
                model.requires_grad_(False)
                model.fc.requires_grad_(True)
            if args.path.is_file():
                model.load_state_dict(torch.load(args.path))
            model = nn.parallel.DistributedDataParallel(model)
            optimizer = torch.optim.SGD(model.parameters(), 0.1)
            for images, target in loader:
                loss = F.cross_entropy(model(images), target.long())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
    "agents of any number, each with an optimizer of its own": """
        class Agent:
            def __init__(self, size):
                self.policy = nn.Sequential(nn.Linear(size, size), nn.Tanh(), nn.Linear(size, 1))
                self.optimizer = torch.optim.Adam(self.policy.parameters())
        class Crowd:
            def __init__(self, sizes):
                self.agents = [Agent(size) for size in sizes]
            @property
            def policies(self):
                return [agent.policy for agent in self.agents]
            def update(self, seen):
                costs = []
                for policy, one in zip(self.policies, seen):
                    costs.append(policy(one).square().mean())
                for i, cost in enumerate(costs):
                    cost.backward()
                    self.agents[i].optimizer.step()
        """,
    "pairs of any number of a network and its optimizer": """
        def train(sizes, seen):
            nets = [nn.Sequential(nn.Linear(size, size), nn.Linear(size, 1)) for size in sizes]
            pairs = [(net, torch.optim.Adam(net.parameters())) for net in nets]
            costs = [(net(seen).square().mean(), optimizer) for net, optimizer in pairs]
            for cost, optimizer in costs:
                cost.backward()
                optimizer.step()
        """,
    "a tensor that is asked whether it equals None": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.first = nn.Linear(3, 3)
                self.second = nn.Linear(3, 3)
            def forward(self, x, w=None):
                y = self.first(x)
                if w == None:
                    return y, None
                return y, self.second(x * w)
        def train(loader):
            model = Net()
            optimizer = torch.optim.Adam(model.second.parameters())
            for x, y, w in loader:
                y, w = torch.tensor(y).float(), torch.tensor(w).float()
                out, more = model(x, w=w)
                loss = F.mse_loss(F.log_softmax(more, dim=1), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
    "an abstract method with a body, where a subclass has another": """
        import abc
        class Trainer(abc.ABC):
            def __init__(self, optimizer):
                self.optimizer = optimizer
            @abc.abstractmethod
            def forward(self, x):
                self.loss = self.loss * 1
            @abc.abstractmethod
            def backward(self):
                self.loss.backward()
            def turn(self, x):
                self.loss = torch.tensor(0.0)
                self.forward(x)
                self.optimizer.zero_grad()
                self.backward()
                self.optimizer.step()
        """,
    "an abstract method behind one that starts with this constant or that": """
        import abc
        class Trainer(abc.ABC):
            def __init__(self, optimizer):
                self.optimizer = optimizer
            @abc.abstractmethod
            def backward(self):
                self.loss.backward()
            def turn(self, x):
                if self.optimizer:
                    self.loss = torch.tensor(0.0)
                else:
                    self.loss = torch.tensor(1.0)
                self.backward()
        """,
    "an abstract property, where a subclass has another": """
        import abc
        class Trainer(abc.ABC):
            @property
            @abc.abstractmethod
            def start(self):
                return torch.zeros(1)
            def turn(self):
                self.start.sum().backward()
        """,
    "a method that is left to subclasses": """
        class Model:
            def __init__(self, tasks):
                self.tasks = tasks
                self.optimizer = torch.optim.Adam(self.weights)
            def cost(self, out, target):
                raise NotImplementedError("to be overridden")
            def fit(self, data):
                for x, y in data:
                    costs = []
                    for task in range(self.tasks):
                        costs.append(self.cost(x[task], y[:, task]))
                    self.optimizer.zero_grad()
                    torch.cat(costs).sum().backward()
                    self.optimizer.step()
        """,
    "methods of a GAN in the order of their names": """
        class Pair(nn.Module):
            def __init__(self, options):
                super().__init__()
                self.g, self.d = build(options.g), build(options.d)
                self.opt_g = torch.optim.Adam(self.g.parameters())
                self.opt_d = torch.optim.Adam(self.d.parameters())
            def backward_d(self, fake, real):
                loss = self.d(fake.detach()).mean() - self.d(real).mean()
                loss.backward()
            def backward_g(self, fake):
                loss = -self.d(fake).mean()
                loss.backward()
            def update(self, noise, real):
                fake = self.g(noise)
                self.opt_d.zero_grad()
                self.backward_d(fake, real)
                self.opt_d.step()
                self.opt_g.zero_grad()
                self.backward_g(fake)
                self.opt_g.step()
        """,
    "parameters that hold the place of inputs": """
        class Pair(nn.Module):
            def __init__(self, shapes):
                super().__init__()
                self.inputs = []
                for shape in shapes:
                    self.inputs.append(nn.Parameter(torch.empty(shape)))
                self.lin = nn.Linear(2, 2)
            def forward(self, given):
                self.inputs = [given]
                return self.lin(self.inputs[0])
        """,
    "a whole model that normalises its data": """
        from layers import Embedding
        class Forecaster(nn.Module):
            def __init__(self, width, steps):
                super().__init__()
                self.embedding = Embedding(width)
                self.head = nn.Linear(width, steps)
            def forward(self, x, marks):
                x = x - x.mean(1, keepdim=True).detach()
                spread = torch.sqrt(torch.var(x, dim=1, keepdim=True) + 1e-5)
                x /= spread
                return self.head(self.embedding(x, marks)) * spread
        """,
    "a model that trains itself and is asked for samples": """
        class Denoiser(nn.Module):
            def __init__(self):
                super().__init__()
                self.net = nn.Linear(2, 2)
                self.optimizer = torch.optim.Adam(self.net.parameters())
            def fit(self, loader):
                for x in loader:
                    self.optimizer.zero_grad()
                    (self.net(x) - x).pow(2).mean().backward()
                    self.optimizer.step()
            def forward(self, count):
                x = torch.randn(count, 2)
                for _ in range(9):
                    x -= self.net(x)
                return x
        """,
    "an exercise whose layers are still to be written": """
        net = nn.Sequential()
        optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
        for _ in range(3):
            loss = F.mse_loss(net(torch.ones(4, 1)), torch.ones(4, 1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    "layers of a list that are set as attributes by their names": """
        class Mlp(nn.Module):
            def __init__(self, sizes):
                super().__init__()
                self.layers = []
                for i, (a, b) in enumerate(zip(sizes, sizes[1:])):
                    layer = nn.Linear(a, b)
                    self.__setattr__("layer{}".format(i), layer)
                    self.layers.append(layer)
            def forward(self, x):
                for layer in self.layers:
                    x = layer(x)
                return x
        """,
    "state that a module keeps in buffers": """
        class Spiking(nn.Module):
            def __init__(self, threshold):
                super().__init__()
                self.threshold = threshold
                self.register_buffer("v", torch.zeros(4))
                self.register_buffer("s", torch.zeros(4))
            def forward(self, x):
                self.v = self.v * 0.9 + x
                self.s = self.v >= self.threshold
                self.v.masked_fill_(self.s, 0.0)
                if self.s.any():
                    self.s.zero_()
        """,
    "a frozen copy of a module isn't among what a filter takes": """
        import copy
        class Net(nn.Module):
            def __init__(self, net):
                super().__init__()
                self.online, self.target = net, copy.deepcopy(net)
                for p in self.target.parameters():
                    p.requires_grad = False
            def forward(self, a):
                return (self.online(a) - self.target(a).detach()).pow(2).mean()
        model = Net(nn.Linear(4, 8))
        opt = torch.optim.Adam([p for p in model.parameters() if p.requires_grad])
        loss = model(torch.randn(8, 4))
        loss.backward()
        opt.step()
        """,
    "gradients that are cleared by hand, more than a later turn looks at": """
        m = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2))
        opt = torch.optim.SGD(m.parameters(), lr=0.1)
        for _ in range(3):
            for p in m.parameters():
                p.grad = None
            m(torch.ones(1, 2)).sum().backward()
            opt.step()
        """,
    "gradients put back into what the optimizer's groups hold": """
        m = nn.Linear(4, 1)
        opt = torch.optim.SGD(m.parameters(), lr=0.1)
        for _ in range(3):
            opt.zero_grad()
            m(torch.ones(2, 4)).sum().backward()
            saved = [p.grad for group in opt.param_groups for p in group["params"]]
            opt.zero_grad()
            for group in opt.param_groups:
                for p in group["params"]:
                    p.grad = saved.pop(0)
            opt.step()
        """,
    "gradients written into those that were set to zero": """
        m = nn.Linear(4, 1)
        opt = torch.optim.SGD(m.parameters(), lr=0.1)
        m(torch.ones(2, 4)).sum().backward()
        opt.zero_grad(set_to_none=False)
        m.weight.grad.add_(torch.ones(1, 4))
        m.bias.grad[0] = 1.0
        opt.step()
        """,
    "gradients that were copied before they were cleared": """
        m = nn.Linear(4, 1)
        opt = torch.optim.SGD(m.parameters(), lr=0.1)
        m(torch.ones(2, 4)).sum().backward()
        saved = [p.grad.detach().clone() for p in m.parameters()]
        opt.zero_grad()
        restore(saved)
        opt.step()
        """,
    "gradients put back into one parameter of a group": """
        m = nn.Linear(4, 1)
        opt = torch.optim.SGD(m.parameters(), lr=0.1)
        m(torch.ones(2, 4)).sum().backward()
        opt.zero_grad()
        for i in range(2):
            opt.param_groups[0]["params"][i].grad = torch.ones(1)
        opt.step()
        """,
    "the merged gradients of several losses, of many parameters": """
        m = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2))
        opt = torch.optim.SGD(m.parameters(), lr=0.1)
        for _ in range(3):
            z = m(torch.ones(1, 2))
            grads = []
            for loss in [z.sum(), z.pow(2).sum()]:
                opt.zero_grad()
                loss.backward(retain_graph=True)
                grads.append([p.grad for p in m.parameters()])
            opt.zero_grad()
            for p, a, b in zip(m.parameters(), *grads):
                p.grad = a + b
            opt.step()
        """,
    "a straight-through estimator": """
        x = torch.ones(3, requires_grad=True)
        y = x + (x.round() - x).detach()
        y.sum().backward()
        """,
}


@pytest.mark.parametrize("body", QUIET.values(), ids=QUIET.keys())
def test_healthy_code_is_left_alone(body: str) -> None:
    assert kinds(body) == set()


ALONE = {
    "what the other network's loss left is cleared before a backward that raises": (
        """
        G, D = nn.Linear(3, 2), nn.Linear(2, 1)
        opt_g, opt_d = torch.optim.SGD(G.parameters(), lr=0.1), torch.optim.SGD(D.parameters(), lr=0.1)
        fake = G(torch.ones(4, 3))
        D.zero_grad()
        D(fake).mean().backward()
        opt_d.step()
        G.zero_grad()
        (-D(fake).mean()).backward()
        opt_g.step()
        """,
        "backward_twice",
        "D(fake).mean().backward()",
    ),
    "groups of parameters are cleared between a backward and a step": (
        """
        a, b = nn.Linear(2, 1), nn.Linear(2, 1)
        opt = torch.optim.SGD([{"params": a.parameters()}, {"params": b.parameters(), "lr": 1.0}], lr=0.1)
        (a(torch.ones(1, 2)) + b(torch.ones(1, 2))).sum().backward()
        opt.param_groups[0]["lr"] *= 0.5
        for p in opt.param_groups[1]["params"]:
            p.grad = None
        opt.step()
        """,
        "zero_grad_before_step",
        "p.grad = None",
    ),
    "what was freed raises before torch sees that it was overwritten": (
        """
        cell = nn.GRU(3, 3)
        opt = torch.optim.SGD(cell.parameters(), lr=0.1)
        h = torch.zeros(1, 1, 3)
        for x in torch.ones(3, 1, 1, 3):
            opt.zero_grad()
            y, h = cell(x, h)
            y.sum().backward()
            opt.step()
        """,
        "backward_twice",
        "y.sum().backward()",
    ),
}


@pytest.mark.parametrize(("body", "kind", "line"), ALONE.values(), ids=ALONE.keys())
def test_what_follows_from_a_defect_is_not_one_more(body: str, kind: str, line: str) -> None:
    assert kinds(body) == {kind}
    assert culprits(body, kind) == [line]


def test_a_cut_that_is_all_an_argument_switches_on_is_wanted() -> None:
    body = """
        class Actor(nn.Module):
            def __init__(self):
                super().__init__()
                self.encoder, self.head = nn.Linear(3, 2), nn.Linear(2, 1)
            def forward(self, x, detach=False):
                hidden = torch.relu(self.encoder(x))
                if detach:
                    hidden = hidden.detach()
                return self.head(hidden)
        actor = Actor()
        optimizer = torch.optim.SGD(actor.parameters(), lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            actor(torch.randn(4, 3), detach=True).pow(2).mean().backward()
            optimizer.step()
    """
    assert kinds(body) == set()
    unasked = body.replace("if detach:", "if True:").replace(", detach=True", "")
    assert kinds(unasked) == {"unreached_parameters"}


def test_the_condition_of_a_defect_is_told_in_the_words_of_the_source() -> None:
    body = FOUND["a write under the flag of the save is found"][0]
    (defect,) = (d for d in analysis(body).defects if d.kind == "inplace_overwrites_saved")
    assert defect.condition == "self.residual"
    assert defect.certainty == "likely"
    assert defect.conventions == ("D",)


@pytest.mark.parametrize(
    ("test", "told"),
    [
        pytest.param('__name__ == "__main__"', "", id="how the file is run"),
        pytest.param("__debug__", "", id="how Python is run"),
        pytest.param("torch.cuda.is_available()", "", id="on which machine it is run"),
        pytest.param("not torch.backends.mps.is_available()", "", id="on which machine it is not run"),
        pytest.param(
            "torch.cuda.is_available() and self.residual", "self.residual", id="that, and what a flag says"
        ),
        pytest.param("self.cuda", "self.cuda", id="what is only called like a machine"),
        pytest.param('self.residual and __name__ == "__main__"', "self.residual", id="that and more"),
        pytest.param("self.residual", "self.residual", id="what the module was made with"),
    ],
)
def test_a_condition_says_nothing_of_how_a_file_is_run(test: str, told: str) -> None:
    body = FOUND["a write under the flag of the save is found"][0].replace("if self.residual", f"if {test}")
    (defect,) = (d for d in analysis(body).defects if d.kind == "inplace_overwrites_saved")
    assert defect.condition == told


def _chain(recorded: set[int]) -> str:
    """A long chain of which some arms put x into a graph; the last is the one without a test."""
    heads = [f"{'el' if i else ''}if mode == {i}:" for i in range(10)] + ["else:"]
    arms = [(head, "x = x * w" if i in recorded else "pass") for i, head in enumerate(heads)]
    return "\n".join(f"        {head}\n            {body}" for head, body in arms)


@pytest.mark.parametrize(
    ("recorded", "told"),
    [
        pytest.param({3}, "mode == 3", id="of one"),
        pytest.param({3, 4}, "mode == 3 or mode == 4", id="of two"),
        pytest.param(set(range(11)) - {3}, "mode != 3", id="of all but one"),
        pytest.param({10}, "in the else of `if mode == 0`", id="where no test holds"),
        pytest.param(set(range(11)), "", id="of all"),
    ],
)
def test_what_happens_in_arms_of_a_long_chain_is_told_by_its_tests(recorded: set[int], told: str) -> None:
    body = f"""
    import sys
    def f(mode):
        x = torch.ones(3)
{_chain(recorded)}
        y = x.exp()
        y.mul_(2)
        y.sum().backward()
    w = torch.ones(3, requires_grad=True)
    f(len(sys.argv))
    """
    found = [d for d in analysis(body).defects if d.kind == "inplace_overwrites_saved"]
    assert [d.condition for d in found] == [told]


@pytest.mark.parametrize(
    ("cases", "told"),
    [
        pytest.param('case "a": pass\n            case "b": y.mul_(2)', "mode == 'b'", id="of one constant"),
        pytest.param('case "a": pass\n            case _: y.mul_(2)', "mode != 'a'", id="of all others"),
        pytest.param("case None: y.mul_(2)", "mode is None", id="of None"),
        pytest.param("case [a, *b]: y.mul_(2)", "mode matches [a, *b]", id="of a pattern"),
        pytest.param(
            "case [a, *b]: pass\n            case _: y.mul_(2)",
            "not (mode matches [a, *b])",
            id="of no pattern",
        ),
        pytest.param(
            "case a if a > 2: y.mul_(2)", "mode matches a and a > 2", id="of what is asked beside a pattern"
        ),
    ],
)
def test_what_happens_in_a_case_is_told_by_its_pattern(cases: str, told: str) -> None:
    body = f"""
    def f(mode):
        y = torch.ones(3, requires_grad=True).exp()
        match mode:
            {cases}
        y.sum().backward()
    f(somewhere)
    """
    (defect,) = (d for d in analysis(body).defects if d.kind == "inplace_overwrites_saved")
    assert defect.condition == told


def test_a_case_of_one_constant_excludes_a_test_of_another() -> None:
    body = """
    def f(mode):
        x = torch.ones(3, requires_grad=True)
        y = x * 1
        if mode == "a":
            y = y.exp()
        match mode:
            case "b": y.mul_(2)
        y.sum().backward()
    f(somewhere)
    """
    assert "inplace_overwrites_saved" not in kinds(body)
    assert "inplace_overwrites_saved" in kinds(body.replace('case "b"', 'case "a"'))


def test_a_condition_leaves_out_what_the_backward_itself_takes() -> None:
    body = """
    def f(p, q):
        y = torch.ones(3, requires_grad=True).exp()
        if q is not None and p != "x":
            y.mul_(2)
        if p == "x":
            return
        y.sum().backward()
    f(somewhere, somewhere_else)
    """
    (defect,) = (d for d in analysis(body).defects if d.kind == "inplace_overwrites_saved")
    assert defect.condition == "q is not None"


@pytest.mark.parametrize(
    ("handler", "told"), [("ValueError", "ValueError is caught"), ("", "an exception is caught")]
)
def test_what_happens_where_something_is_caught_says_so(handler: str, told: str) -> None:
    body = f"""
    def f(mode):
        y = torch.ones(3, requires_grad=True).exp()
        try:
            int(mode)
        except {handler}:
            y.mul_(2)
        y.sum().backward()
    f(somewhere)
    """
    (defect,) = (d for d in analysis(body).defects if d.kind == "inplace_overwrites_saved")
    assert defect.condition == told


def test_what_every_overload_that_fits_saves_is_saved() -> None:
    body = """
    def f(n):
        x = torch.ones(3, requires_grad=True) * 1
        y = torch.clamp(x, max=n - 1)
        x += 1
        y.sum().backward()
    f(m)
    """
    assert "inplace_overwrites_saved" in kinds(body)


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        pytest.param("(F.l1_loss(net(x), y) > 0).float()", {"non_differentiable_loss"}, id="a comparison"),
        pytest.param("F.l1_loss(net(x), y).detach()", {"detached_loss_path"}, id="a detach"),
        pytest.param("F.l1_loss(x, y)", {"leaf_rebound"}, id="none"),
        pytest.param("F.l1_loss(x, y) + F.l1_loss(net(x), y).detach()", {"leaf_rebound"}, id="one beside it"),
    ],
)
def test_a_name_that_was_bound_anew_is_not_blamed_for_what_a_cut_behind_it_hides(
    loss: str, expected: set[str]
) -> None:
    body = f"""
    net = nn.Linear(3, 3)
    y = torch.randn(4, 3)
    x = torch.randn(4, 3, requires_grad=True)
    F.mse_loss(net(x), y).backward()
    x = (x + 0.1 * x.grad.sign()).detach()
    loss = {loss}
    loss.backward()
    """
    assert kinds(body) == expected
