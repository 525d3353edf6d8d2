"""How much faster the warm judge is than starting each script anew, and what the recorder costs.

`python -m tests.benchmarks.judge` measures both; with `recorder` behind it, the second alone; with `folder`,
how long `--verify` takes for folders of scripts.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
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
FOLDERS = (25, 100)


def spent() -> float:
    """Seconds of the processor so far, of this process and of all that have ended under it."""
    return sum(os.times()[:4])


def one_by_one(pairs: list[Path]) -> float:
    """Seconds for a pair, each script in a new interpreter."""
    started = spent()
    for before in pairs:
        for script in (before, before.with_name("after.py")):
            subprocess.run([sys.executable, script], capture_output=True, cwd=script.parent, check=False)
    return (spent() - started) / len(pairs)


def judged(pairs: list[Path]) -> float:
    """Seconds for a pair before the judge, its start included."""
    started = spent()
    with Launcher() as launcher:
        for path in pairs:
            before, after = path.read_bytes(), path.with_name("after.py").read_bytes()
            options = JudgeOptions(cwd=str(path.parent))
            judge({str(path): before}, {str(path): after}, Command("script", str(path)), options, launcher)
    return (spent() - started) / len(pairs)


def first_verdict() -> tuple[float, float]:
    """Seconds, by the clock, of a plain `import torch` and of `--verify` until its first verdict."""
    script = FIXTURES / "missing_zero_grad" / "accumulation_never_cleared" / "before.py"
    words = [sys.executable, "-m", "gradfix", "--diff", "--unsafe-fixes", "--verify", str(script)]
    pairs = [(lasts([sys.executable, "-c", "import torch"]), lasts(words)) for _ in range(TURNS)]
    return min(plain for plain, _ in pairs), min(verdict for _, verdict in pairs)


def folders() -> None:
    """Seconds, by the clock and of the processor, of `--verify` on folders of scripts."""
    pairs = sorted(FIXTURES.glob("*/*/before.py"))
    for size in FOLDERS:
        with tempfile.TemporaryDirectory() as room:
            for number, path in enumerate(pairs[:: len(pairs) // size][:size]):
                shutil.copyfile(path, os.path.join(room, f"script{number}.py"))
            words = [sys.executable, "-m", "gradfix", "--diff", "--unsafe-fixes", "--verify", room]
            before = spent()
            seconds = lasts(words, room)
            print(f"{size} scripts: {seconds:.1f} s by the clock, {spent() - before:.1f} s of the processor")


def lasts(words: list[str], folder: str | None = None) -> float:
    """Seconds of a process."""
    started = time.perf_counter()
    subprocess.run(words, capture_output=True, check=False, cwd=folder)
    return time.perf_counter() - started


def block(step: Callable[[], None]) -> float:
    """The median CPU seconds of a training step: what else the machine does does not count."""
    seconds = []
    for _ in range(STEPS):
        started = time.process_time()
        step()
        seconds.append(time.process_time() - started)
    return median(seconds)


def recorded(step: Callable[[], None], emit: Callable[[Any], None]) -> tuple[float, float]:
    """The same under the recorder: of the third step and those behind it, and of a loop that goes on."""
    from gradfix.trace.session import Session
    from gradfix.trace.settled import OFTEN

    session = Session(emit)
    session.start()
    try:
        step()
        step()
        first = block(step)
        for _ in range(OFTEN):
            step()
        return first, block(step)
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
        first, later = (
            median(2 * during[i] / (before + after) for before, during, after in pairs) for i in (0, 1)
        )
        plain = 1000 * median(before for before, _, _ in pairs)
        print(f"{name}: {plain:.2f} ms plain, recorded x{first:.2f} at first, x{later:.2f} from then on")


def main() -> None:
    """Print both measurements."""
    if "folder" in sys.argv[1:]:
        folders()
        return
    if "recorder" not in sys.argv[1:]:
        speed_up()
    overhead()
    print(f"on {os.cpu_count()} CPUs")


def speed_up() -> None:
    """All pairs before the judge, some of them one by one; and the first verdict."""
    pairs = sorted(FIXTURES.glob("*/*/before.py"))
    plain = one_by_one(pairs[:: max(1, len(pairs) // SAMPLE)])
    warm = judged(pairs)
    print(f"{len(pairs)} pairs: {plain:.2f} s each one by one, {warm:.3f} s each judged, x{plain / warm:.0f}")
    torch, verdict = first_verdict()
    print(f"import torch: {torch:.2f} s, first verdict: {verdict:.2f} s, x{verdict / torch:.2f}")


if __name__ == "__main__":
    main()
