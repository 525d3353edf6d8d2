"""How much faster the warm judge is than starting each script anew, and what the recorder costs.

`python -m tests.benchmarks.judge` measures both; with `recorder` behind it, the second alone.
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

from gradfix.trace.server import say
from gradfix.verify import Command, JudgeOptions, Launcher, judge

FIXTURES = Path(__file__).parent.parent.parent / "fixtures"
STEPS = 8
TURNS = 15
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


def block(step: Callable[[], None]) -> float:
    """The median CPU seconds of a training step: what else the machine does does not count."""
    seconds = []
    for _ in range(STEPS):
        started = time.process_time()
        step()
        seconds.append(time.process_time() - started)
    return median(seconds)


def recorded(step: Callable[[], None], emit: Callable[[Any], None]) -> float:
    """The same under the recorder, its first steps left out as those of the plain run are."""
    from gradfix.trace.session import Session

    session = Session(emit)
    session.start()
    try:
        step()
        step()
        return block(step)
    finally:
        session.stop()


def overhead() -> None:
    """Training steps with and without the recorder, in turns, in one thread."""
    import torch

    from .scenes import SCENES

    torch.set_num_threads(1)
    null = os.open(os.devnull, os.O_WRONLY)
    for name, make in SCENES.items():
        step = make()
        block(step)
        pairs = [
            (block(step), recorded(step, lambda event: say(event, null)), block(step)) for _ in range(TURNS)
        ]
        ratio = median(2 * during / (before + after) for before, during, after in pairs)
        plain, with_it = (1000 * median(pair[i] for pair in pairs) for i in (0, 1))
        print(f"{name}: {plain:.2f} ms plain, {with_it:.2f} ms recorded, x{ratio:.2f}")


def main() -> None:
    """Print both measurements."""
    if "recorder" not in sys.argv[1:]:
        speed_up()
    overhead()
    print(f"on {os.cpu_count()} CPUs")


def speed_up() -> None:
    """All pairs before the judge, some of them one by one."""
    pairs = sorted(FIXTURES.glob("*/*/before.py"))
    plain = one_by_one(pairs[:: max(1, len(pairs) // SAMPLE)])
    warm = judged(pairs)
    print(f"{len(pairs)} pairs: {plain:.2f} s each one by one, {warm:.3f} s each judged, x{plain / warm:.0f}")


if __name__ == "__main__":
    main()
