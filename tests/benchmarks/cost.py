"""How long files take: `ast.parse` alone, then gate, parsing and analysis together, in one process.

`ast.parse` is timed as Python runs it. gradfix is timed as `engine.fix` runs it: garbage is looked for at the
end of each file's work, and that is part of its time.
"""

from __future__ import annotations

import ast
import gc
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from gradfix.garbage import seldom
from gradfix.gate import passes
from gradfix.source import Source, parse
from gradfix.tape.entries import analyse

from .command import Whole, whole
from .corpus import File, torch_files
from .watch import HungError, watchdog


@dataclass(frozen=True)
class Timing:
    """One file: seconds of `ast.parse`, seconds of gradfix, and how it ended."""

    path: Path
    lines: int
    parse: float
    gradfix: float
    defects: int
    trouble: str = ""

    @property
    def ratio(self) -> float:
        return self.gradfix / self.parse if self.parse else 0.0


@dataclass
class Cost:
    """A folder's timings, summed."""

    folder: Path
    timings: list[Timing] = field(default_factory=list)
    command: Whole | None = None
    torchfix: float | None = None

    @property
    def lines(self) -> int:
        return sum(t.lines for t in self.timings)

    @property
    def parse(self) -> float:
        return sum(t.parse for t in self.timings)

    @property
    def gradfix(self) -> float:
        return sum(t.gradfix for t in self.timings)


def seconds(work: Callable[[], object], repeat: int) -> float:
    """Processor seconds, the best of some tries."""
    best = float("inf")
    for _ in range(repeat):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def parsed_alone(content: bytes) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        pass


@seldom()
def worked_on(file: File) -> tuple[int, str]:
    """What gradfix does with a file short of rewriting it: defects, and what went wrong."""
    if not passes(file.content):
        return 0, ""
    source = parse(str(file.path), file.content)
    if not isinstance(source, Source):
        return 0, f"{source.stage}: {source.reason}"
    analysis = analyse(source)
    return len(analysis.defects), f"too complex: {analysis.too_complex}" if analysis.too_complex else ""


def timing(file: File, repeat: int, patience: float) -> Timing:
    parse_time = seconds(lambda: parsed_alone(file.content), repeat)
    said: list[tuple[int, str]] = []
    start = time.process_time()
    try:
        with watchdog(patience):
            taken = seconds(lambda: said.append(worked_on(file)), repeat)
        defects, trouble = said[-1]
    except HungError:
        taken, defects, trouble = time.process_time() - start, 0, f"over {patience:g} s"
    except Exception as error:
        taken, defects, trouble = time.process_time() - start, 0, f"crash: {type(error).__name__}: {error}"
    return Timing(file.path, file.lines, parse_time, taken, defects, trouble)


def cost(folder: Path, repeat: int, patience: float, command: bool = False, torchfix: bool = False) -> Cost:
    found = torch_files(folder)
    result = Cost(folder)
    worked_on(File(folder, b"import torch\nx = torch.ones(3)\n"))  # reads the tables, once for all
    gc.collect()
    gc.freeze()
    for file in found:
        result.timings.append(timing(file, repeat, patience))
    gc.unfreeze()
    if command:
        result.command = whole(folder, repeat)
    if torchfix:
        result.torchfix = torchfix_seconds([file.path for file in found])
    return result


def torchfix_seconds(paths: list[Path], sample: int = 200) -> float | None:
    """Processor seconds of TorchFix on those files, scaled up from a sample where there are many."""
    program = Path(sys.executable).with_name("torchfix")
    if not program.exists() or not paths:
        return None
    step = max(1, len(paths) // sample)
    chosen = [str(path) for path in paths[::step]]
    used = processor_seconds_of_children()
    subprocess.run([program, "-j", "1", *chosen], capture_output=True, check=False)
    size = sum(path.stat().st_size for path in paths)
    part = sum(Path(path).stat().st_size for path in chosen)
    return (processor_seconds_of_children() - used) * size / max(part, 1)


def processor_seconds_of_children() -> float:
    import resource

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def table(costs: Iterable[Cost], slowest: int) -> str:
    names = ("folder", "files", "lines", "parse s", "tape s", "ratio", "defects", "troubled", "torchfix s")
    rows = ["{:30s} {:>6s} {:>8s} {:>9s} {:>9s} {:>6s} {:>7s} {:>8s} {:>10s}".format(*names)]
    costs = list(costs)
    for each in costs:
        rows.append(row(each))
    everything = [t for each in costs for t in each.timings]
    large = [t for t in everything if t.parse > 0.002]
    rows += called(costs)
    rows += ["", "slowest by seconds"]
    rows += map(line, sorted(everything, key=lambda t: -t.gradfix)[:slowest])
    rows += ["", "slowest by ratio (parse over 2 ms)"]
    rows += map(line, sorted(large, key=lambda t: -t.ratio)[:slowest])
    rows += ["", "troubled"]
    rows += [f"  {t.path}: {t.trouble}" for t in everything if t.trouble]
    return "\n".join(rows)


def called(costs: Iterable[Cost]) -> Iterator[str]:
    """What the command took, beside the parsing of the files that mention torch; it reads the others too."""
    for each in costs:
        if each.command is not None:
            one, ratio = each.command, each.command.seconds / each.parse if each.parse else 0
            yield (
                f"{each.folder.name[-30:]:30s} the command, imports followed: {one.seconds:.2f} s, "
                f"{ratio:.2f} x, and {one.startup:.2f} s to start up; peak {one.peak:.0f} MiB"
            )


def row(each: Cost) -> str:
    troubled = sum(bool(t.trouble) for t in each.timings)
    ratio = each.gradfix / each.parse if each.parse else 0
    defects = sum(t.defects for t in each.timings)
    other = "" if each.torchfix is None else f"{each.torchfix:10.1f}"
    return (
        f"{each.folder.name[-30:]:30s} {len(each.timings):6d} {each.lines:8d} {each.parse:9.2f} "
        f"{each.gradfix:9.2f} {ratio:6.2f} {defects:7d} {troubled:8d} {other}"
    )


def line(t: Timing) -> str:
    return f"  {t.gradfix:8.3f} s  {t.ratio:7.1f} x  {t.lines:6d} lines  {t.path}"
