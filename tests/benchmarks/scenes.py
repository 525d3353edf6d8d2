"""Training loops as people write them, of one to twenty milliseconds a step, for measuring the recorder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 - as torch's users write it

Step = Callable[[], None]


def four_layers() -> Step:
    """Four layers of 256."""
    net = nn.Sequential(*[one for _ in range(4) for one in (nn.Linear(256, 256), nn.ReLU())])
    optimizer = torch.optim.Adam(net.parameters())
    x = torch.randn(128, 256)

    def step() -> None:
        optimizer.zero_grad()
        (net(x) - 1).pow(2).mean().backward()
        optimizer.step()

    return step


def two_convolutions() -> Step:
    """Two convolutions with a batch norm between them."""
    net = nn.Sequential(
        nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 16, 3), nn.ReLU(), nn.Flatten()
    )
    optimizer = torch.optim.Adam(net.parameters())
    x = torch.randn(16, 3, 24, 24)

    def step() -> None:
        optimizer.zero_grad()
        (net(x) - 1).pow(2).mean().backward()
        optimizer.step()

    return step


class Block(nn.Module):
    """A residual block."""

    def __init__(self, wide: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(wide, wide, 3, padding=1, bias=False), nn.BatchNorm2d(wide)
        self.conv2, self.bn2 = nn.Conv2d(wide, wide, 3, padding=1, bias=False), nn.BatchNorm2d(wide)

    def forward(self, x: Any) -> Any:
        """The input comes back on top of what the two layers make of it."""
        out = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(out)) + x)


def small_cnn() -> Step:
    """A classifier of two residual blocks, with batch norm and Adam."""
    net = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        Block(16), Block(16), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10),
    )  # fmt: skip
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    x, y = torch.randn(16, 3, 32, 32), torch.randint(10, (16,))
    running = [0.0]

    def step() -> None:
        optimizer.zero_grad()
        loss: Any = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        running[0] += loss.item()

    return step


def lstm() -> Step:
    """A language model: embedding, LSTM, clipping."""
    table, core, head = nn.Embedding(100, 64), nn.LSTM(64, 128, batch_first=True), nn.Linear(128, 100)
    parameters = [p for one in (table, core, head) for p in one.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    tokens = torch.randint(100, (16, 33))

    def step() -> None:
        optimizer.zero_grad()
        out, _ = core(table(tokens[:, :-1]))
        loss: Any = F.cross_entropy(head(out).flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()

    return step


def attention() -> Step:
    """Two layers of a transformer's encoder."""
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    net = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    optimizer = torch.optim.AdamW(net.parameters())
    x = torch.randn(8, 16, 64)

    def step() -> None:
        optimizer.zero_grad()
        (net(x) - 1).pow(2).mean().backward()
        optimizer.step()

    return step


class Layer(nn.Module):
    """One layer of attention, written out."""

    def __init__(self, wide: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.asks, self.gives = nn.Linear(wide, 3 * wide), nn.Linear(wide, wide)
        self.up, self.down = nn.Linear(wide, 2 * wide), nn.Linear(2 * wide, wide)
        self.norm1, self.norm2 = nn.LayerNorm(wide), nn.LayerNorm(wide)

    def forward(self, x: Any) -> Any:
        """Attention, then two layers on each token, each on top of what came in."""
        batch, time, wide = x.shape
        parts = self.asks(self.norm1(x)).view(batch, time, 3, self.heads, wide // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(query, key, value, dropout_p=0.1)
        x = x + self.gives(seen.transpose(1, 2).reshape(batch, time, wide))
        return x + F.dropout(self.down(F.relu(self.up(self.norm2(x)))), 0.1, self.training)


def own_attention() -> Step:
    """Two layers of attention of one's own."""
    net = nn.Sequential(Layer(64, 4), Layer(64, 4))
    optimizer = torch.optim.AdamW(net.parameters())
    x = torch.randn(8, 16, 64)

    def step() -> None:
        optimizer.zero_grad()
        (net(x) - 1).pow(2).mean().backward()
        optimizer.step()

    return step


def gan() -> Step:
    """A generator and a discriminator, each with its optimizer."""
    maker = nn.Sequential(nn.Linear(32, 256), nn.ReLU(), nn.Linear(256, 784), nn.Tanh())
    critic = nn.Sequential(nn.Linear(784, 256), nn.LeakyReLU(0.2), nn.Linear(256, 1))
    first, second = torch.optim.Adam(maker.parameters()), torch.optim.Adam(critic.parameters())
    real, ones, zeros = torch.randn(64, 784), torch.ones(64, 1), torch.zeros(64, 1)
    loss = nn.BCEWithLogitsLoss()

    def step() -> None:
        fake = maker(torch.randn(64, 32))
        second.zero_grad()
        (loss(critic(real), ones) + loss(critic(fake.detach()), zeros)).backward()
        second.step()
        first.zero_grad()
        loss(critic(fake), ones).backward()
        first.step()

    return step


def by_hand() -> Step:
    """Layers written out as products and sums, updated under no_grad."""
    weights = [(torch.randn(256, 256) / 16).requires_grad_() for _ in range(6)]
    x = torch.randn(64, 256)

    def step() -> None:
        h: Any = x
        for weight in weights:
            h = torch.tanh(h @ weight + 0.1) * 0.9 + h / 2
        h.pow(2).mean().backward()
        with torch.no_grad():
            for weight in weights:
                weight -= 0.01 * weight.grad  # type: ignore[operator]
                weight.grad = None

    return step


SCENES: dict[str, Callable[[], Step]] = {
    "four layers of 256": four_layers,
    "two convolutions": two_convolutions,
    "residual network, batch norm, Adam": small_cnn,
    "LSTM with clipping": lstm,
    "two layers of attention": attention,
    "two layers of attention, written out": own_attention,
    "GAN, two optimizers": gan,
    "six layers by hand": by_hand,
}
