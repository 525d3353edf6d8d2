"""Synthetic files that grow: twice the input should take twice the time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from .corpus import File
from .cost import Timing, timing

HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n"
LEAF = "w = torch.randn(3, 4, requires_grad=True)\nx = w * 2\n"


@dataclass(frozen=True)
class Scene:
    """A way to grow: the text for a size, and the sizes to try."""

    name: str
    text: Callable[[int], str]
    sizes: tuple[int, ...]


def straight(lines: int) -> str:
    body = (
        "x = F.relu(x + w)\n",
        "x += 1\n",
        "y = x.exp()\n",
        "z = y[0] * 2\n",
        "x = torch.stack([y, y])[0]\n",
    )
    return HEAD + LEAF + "".join(body[i % len(body)] for i in range(lines)) + "x.sum().backward()\n"


def functions(lines: int) -> str:
    block = (
        "def train{i}(net, opt, loader):\n    total = 0\n    for x, y in loader:\n        opt.zero_grad()\n"
        "        out = net(x)\n        if out.dim() > 2:\n            out = out.flatten(1)\n"
        "        loss = F.cross_entropy(out, y)\n        loss.backward()\n        opt.step()\n"
        "        total += loss.item()\n    return total\n\n\n"
    )
    return HEAD + "".join(block.format(i=i) for i in range(lines // 14 + 1))


def classes(lines: int) -> str:
    block = (
        "class Block{i}(nn.Module):\n    def __init__(self, width=4, act=True):\n        super().__init__()\n"
        "        self.conv = nn.Conv2d(width, width, 3)\n        self.bn = nn.BatchNorm2d(width)\n"
        "        self.act = nn.ReLU(inplace=True) if act else nn.Identity()\n\n    def forward(self, x):\n"
        "        out = self.act(self.bn(self.conv(x)))\n        out += x\n        return self.act(out)\n\n\n"
    )
    return HEAD + "".join(block.format(i=i) for i in range(lines // 13 + 1))


def branches(count: int) -> str:
    arms = "".join(f"if flag[{i}]:\n    x = x * w\nelse:\n    x += {i}\n" for i in range(count))
    return HEAD + "import sys\nflag = sys.argv\n" + LEAF + arms + "x.sum().backward()\n"


def elifs(count: int) -> str:
    arms = "".join(f"elif mode == {i}:\n    x = x.exp()\n" for i in range(1, count))
    head = HEAD + "import sys\nmode = len(sys.argv)\n" + LEAF
    return head + "if mode == 0:\n    x += 1\n" + arms + "x.sum().backward()\n"


def loops(depth: int) -> str:
    heads = "".join("    " * i + f"for i{i} in range(n):\n" for i in range(depth))
    body = "    " * depth + "x = F.relu(x * w)\n" + "    " * depth + "x += 1\n"
    return HEAD + "import sys\nn = len(sys.argv)\n" + LEAF + heads + body + "x.sum().backward()\n"


def nested_ifs(depth: int) -> str:
    heads = "".join("    " * i + f"if n > {i}:\n" + "    " * (i + 1) + "x = x * w\n" for i in range(depth))
    return HEAD + "import sys\nn = len(sys.argv)\n" + LEAF + heads + "x.sum().backward()\n"


def brackets(depth: int) -> str:
    return HEAD + LEAF + "x = " + "torch.relu(" * depth + "x" + ")" * depth + "\nx.sum().backward()\n"


def methods(count: int) -> str:
    return HEAD + LEAF + "x = x" + ".relu()" * count + "\nx.sum().backward()\n"


def sums(count: int) -> str:
    return HEAD + LEAF + "x = x" + " + x" * count + "\nx.sum().backward()\n"


def backwards(count: int) -> str:
    turn = "x = x * w\nx.sum().backward(retain_graph=True)\n"
    return HEAD + LEAF + turn * count


def chain(depth: int) -> str:
    """Every function calls the one before it twice."""
    first = "def f0(x):\n    x = x.exp()\n    return x * 2\n\n"
    rest = "".join(f"def f{i}(x):\n    return f{i - 1}(x) + f{i - 1}(x * 2)\n\n" for i in range(1, depth))
    return HEAD + first + rest + LEAF + f"f{depth - 1}(x).sum().backward()\n"


def towers(depth: int) -> str:
    """Every module holds two of the one before it."""
    start = "(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.a = "
    text = f"class M0{start}nn.Linear(4, 4)\n    def forward(self, x):\n        return self.a(x)\n\n"
    for i in range(1, depth):
        text += f"class M{i}{start}M{i - 1}()\n        self.b = M{i - 1}()\n"
        text += "    def forward(self, x):\n        return self.b(self.a(x)) + x\n\n"
    return HEAD + text + f"net = M{depth - 1}()\nnet(torch.randn(3, 4)).sum().backward()\n"


def steps(count: int) -> str:
    turn = "opt.zero_grad()\nloss = net(torch.randn(3, 4)).sum()\nloss.backward()\nopt.step()\n"
    return HEAD + "net = nn.Linear(4, 4)\nopt = torch.optim.SGD(net.parameters(), 0.1)\n" + turn * count


def views(count: int) -> str:
    turn = "v{i} = x[{i}:]\nv{i} += 1\n"
    return HEAD + LEAF + "".join(turn.format(i=i) for i in range(count)) + "x.sum().backward()\n"


def flags(count: int) -> str:
    """A function whose every line hangs on an argument of its own."""
    names = ", ".join(f"flag{i}" for i in range(count))
    turns = "".join(f"    if flag{i}:\n        y = y * w\n        y += {i}\n" for i in range(count))
    return HEAD + f"def f(x, w, {names}):\n    y = x * w\n{turns}    y.sum().backward()\n"


def called(count: int) -> str:
    """One function that is called again and again."""
    head = "def f(x, w, many=True):\n    y = (x * w).exp()\n    if many:\n        y = y * 2\n    return y\n\n"
    return HEAD + head + LEAF + "x = f(x, w)\n" * count + "x += 1\nx.sum().backward()\n"


def endless(count: int) -> str:
    """Loops over as many rows as nobody has memory for."""
    loop = "for row in torch.empty(10**9):\n    x = F.relu(x * w)\n    x += row\n"
    return HEAD + LEAF + loop * count + "x.sum().backward()\n"


LINES = (1000, 2000, 4000, 8000, 16000, 32000, 64000)
SCENES = (
    Scene("straight lines", straight, LINES),
    Scene("functions, lines", functions, LINES),
    Scene("modules, lines", classes, LINES),
    Scene("branches in a row", branches, (125, 250, 500, 1000, 2000)),
    Scene("arms of one elif", elifs, (125, 250, 500, 1000, 2000)),
    Scene("flags of a function", flags, (25, 50, 100, 200)),
    Scene("calls of a function", called, (100, 200, 400, 800, 1600)),
    Scene("nested loops", loops, (3, 6, 12, 18)),
    Scene("endless loops", endless, (25, 50, 100, 200)),
    Scene("nested ifs", nested_ifs, (12, 24, 48, 96)),
    Scene("nested calls", brackets, (12, 24, 48, 96, 180)),
    Scene("methods in a row", methods, (100, 200, 400, 800, 1600)),
    Scene("terms of a sum", sums, (100, 200, 400, 800, 1600)),
    Scene("backwards, one graph", backwards, (100, 200, 400, 800, 1600)),
    Scene("calling twice, depth", chain, (5, 10, 20, 40)),
    Scene("modules of two, depth", towers, (5, 10, 20, 40)),
    Scene("training steps", steps, (100, 200, 400, 800, 1600)),
    Scene("written views", views, (100, 200, 400, 800, 1600)),
)


def table(patience: float, scenes: Iterable[Scene] = SCENES) -> str:
    names = ("scene", "size", "lines", "parse s", "gradfix s", "ratio", "growth", "defects")
    rows = ["{:22s} {:>6s} {:>7s} {:>9s} {:>9s} {:>7s} {:>7s} {:>7s}".format(*names)]
    for scene in scenes:
        before: Timing | None = None
        for size in scene.sizes:
            file = File(Path(f"<{scene.name} {size}>"), scene.text(size).encode())
            now = timing(file, 1 if file.lines > 4000 else 3, patience)
            rows.append(row(scene, size, now, before))
            before = now
            if now.trouble.startswith("over"):
                break
    return "\n".join(rows)


def row(scene: Scene, size: int, now: Timing, before: Timing | None) -> str:
    growth = f"{now.gradfix / before.gradfix:.2f}x" if before and before.gradfix else ""
    counts = f"{scene.name:22s} {size:6d} {now.lines:7d}"
    times = f"{now.parse:9.4f} {now.gradfix:9.4f} {now.ratio:7.1f} {growth:>7s}"
    return f"{counts} {times} {now.defects:7d} {now.trouble[:60]}"
