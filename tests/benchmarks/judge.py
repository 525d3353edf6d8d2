"""How much faster the warm judge is than starting each script anew, and what the recorder costs.

Run it on an idle machine: `python tests/benchmarks/judge.py`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from gradfix.verify import Command, JudgeOptions, Launcher, judge

FIXTURES = Path(__file__).parent.parent.parent / "fixtures"
SAMPLE = 10
"""Pairs that are started one by one, evenly spread; all pairs are judged."""


def one_by_one(pairs: list[Path]) -> float:
    """Seconds for a pair, each script in a new interpreter."""
    started = time.perf_counter()
    for before in pairs:
        for script in (before, before.with_name("after.py")):
            subprocess.run([sys.executable, script], capture_output=True, cwd=script.parent, check=False)
    return (time.perf_counter() - started) / len(pairs)


def judged(pairs: list[Path]) -> float:
    """Seconds for a pair before the judge, its start included."""
    started = time.perf_counter()
    with Launcher() as launcher:
        for path in pairs:
            before, after = path.read_bytes(), path.with_name("after.py").read_bytes()
            options = JudgeOptions(cwd=str(path.parent))
            judge({str(path): before}, {str(path): after}, Command("script", str(path)), options, launcher)
    return (time.perf_counter() - started) / len(pairs)


def programs() -> dict[str, Callable[[], tuple[Any, Any, Any]]]:
    """Training steps of about a millisecond and more."""
    import torch
    from torch import nn

    def wide() -> tuple[Any, Any, Any]:
        net = nn.Sequential(*[one for _ in range(4) for one in (nn.Linear(256, 256), nn.ReLU())])
        return net, torch.optim.Adam(net.parameters()), torch.randn(128, 256)

    def image() -> tuple[Any, Any, Any]:
        net = nn.Sequential(
            nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 16, 3), nn.ReLU(), nn.Flatten()
        )
        return net, torch.optim.Adam(net.parameters()), torch.randn(16, 3, 24, 24)

    def attention() -> tuple[Any, Any, Any]:
        layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
        net = nn.TransformerEncoder(layer, 2)
        return net, torch.optim.Adam(net.parameters()), torch.randn(8, 16, 64)

    return {"four layers of 256": wide, "two convolutions": image, "two layers of attention": attention}


def step(net: Any, optimizer: Any, x: Any, times: int) -> float:
    """The median milliseconds of a training step."""
    seconds = []
    for _ in range(times):
        started = time.perf_counter()
        optimizer.zero_grad()
        (net(x) - 1).pow(2).mean().backward()
        optimizer.step()
        seconds.append(time.perf_counter() - started)
    return 1000 * median(seconds)


def overhead() -> None:
    """A training step with and without the recorder."""
    from gradfix.trace.session import Session

    for name, make in programs().items():
        given = make()
        step(*given, 10)
        plain = step(*given, 60)
        events: list[Any] = []
        session = Session(events.append)
        session.start()
        step(*given, 5)
        recorded = step(*given, 60)
        session.stop()
        plain = min(plain, step(*given, 60))
        print(f"{name}: {plain:.2f} ms plain, {recorded:.2f} ms recorded, x{recorded / plain:.2f}")


def main() -> None:
    """Print both measurements."""
    pairs = sorted(FIXTURES.glob("*/*/before.py"))
    plain = one_by_one(pairs[:: max(1, len(pairs) // SAMPLE)])
    warm = judged(pairs)
    print(f"{len(pairs)} pairs: {plain:.2f} s each one by one, {warm:.3f} s each judged, x{plain / warm:.0f}")
    overhead()
    print(f"on {os.cpu_count()} CPUs")


if __name__ == "__main__":
    main()
