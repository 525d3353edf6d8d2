"""What users run: the command over a folder, imports followed, in one process of its own.

Its start-up is timed as well, over a small file for which all of the tape is imported, and taken off.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path

COMMAND = (sys.executable, "-m", "gradfix", "-j1")
SMALL = "import torch\nx = torch.ones(3)\n"
LAUNCH = """
import json, os, sys
null = [(os.POSIX_SPAWN_OPEN, at, os.devnull, os.O_RDWR, 0) for at in range(3)]
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=null)
_, status, used = os.wait4(child, 0)
print(json.dumps([os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]))
"""
"""What starts the command is smaller than that: the peak of a process counts from that of who started it."""


@dataclass(frozen=True)
class Whole:
    """Processor seconds (user and system) of a call without its start-up, and its peak of memory in MiB."""

    seconds: float
    startup: float
    peak: float


def whole(folder: Path, repeat: int) -> Whole:
    """The command over a folder, the best of some tries."""
    with tempfile.TemporaryDirectory() as nothing:
        (Path(nothing) / "small.py").write_text(SMALL)
        startup = min(_used(Path(nothing), (0,))[0] for _ in range(repeat))
    tries = [_used(folder, (0, 1, 2)) for _ in range(repeat)]  # 2: some file is no Python
    return Whole(min(taken for taken, _ in tries) - startup, startup, max(peak for _, peak in tries))


def _used(folder: Path, expected: Container[int]) -> tuple[float, float]:
    """Processor seconds and the peak of memory of one call."""
    started = [sys.executable, "-S", "-E", "-c", LAUNCH, *COMMAND, str(folder)]
    code, taken, peak = json.loads(subprocess.run(started, capture_output=True, check=True).stdout)
    if code not in expected:
        raise RuntimeError(f"the command ended with {code} in {folder}")
    return float(taken), float(peak)
