"""Every Python file of any folder: analysed, or named with a reason; never a crash, never a hang."""

from __future__ import annotations

import multiprocessing
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from gradfix.source import Source, parse
from gradfix.tape.entries import analyse

from .corpus import files
from .watch import HungError, watchdog

CONTEXT = multiprocessing.get_context("fork")
BATCH = 50


@dataclass(frozen=True)
class End:
    """How a file ended: analysed, too complex, failed (named), crash, or hung; and the reason."""

    path: Path
    how: str
    reason: str = ""
    seconds: float = 0.0
    lines: int = 0
    defects: int = 0


def end_of(path: Path, patience: float) -> End:
    content = path.read_bytes()
    start = time.process_time()
    how, reason, defects = "analysed", "", 0
    try:
        with watchdog(patience):
            source = parse(str(path), content)
            if isinstance(source, Source):
                analysis = analyse(source)
                defects = len(analysis.defects)
                how, reason = ("too complex", analysis.too_complex) if analysis.too_complex else (how, reason)
            else:
                how, reason = "failed", f"{source.stage}: {source.reason}"
    except HungError:
        how, reason = "hung", f"over {patience:g} s"
    except Exception as error:
        how, reason = "crash", f"{type(error).__name__}: {error} at {place(error)}"
    taken = time.process_time() - start
    return End(path, how, reason, taken, content.count(b"\n"), defects)


def place(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(frame.filename).name}:{frame.lineno}"


def worker(pipe: Connection, paths: list[Path], patience: float) -> None:
    for path in paths:
        pipe.send(end_of(path, patience))
    pipe.close()


def ends(folder: Path, patience: float) -> Iterator[End]:
    """Each batch in a forked child; the file on which a child dies is a crash, and the rest goes on."""
    left = [file.path for file in files(folder)]
    while left:
        here, there = CONTEXT.Pipe(duplex=False)
        child = CONTEXT.Process(target=worker, args=(there, left[:BATCH], patience))
        child.start()
        there.close()
        done = 0
        try:
            while done < min(BATCH, len(left)):
                yield here.recv()
                done += 1
        except EOFError:
            yield End(left[done], "crash", "the interpreter died")
            done += 1
        child.join()
        left = left[done:]


HOWS = ("analysed", "too complex", "failed", "crash", "hung")


def table(folders: list[Path], patience: float) -> tuple[str, bool]:
    """The counts for every folder, the reasons below; and whether all went well."""
    rows = [
        f"{'folder':40s} {'files':>6s} {'lines':>8s}"
        + "".join(f"{h:>12s}" for h in HOWS)
        + "  defects slowest"
    ]
    notes = []
    well = True
    for folder in folders:
        found = list(ends(folder, patience))
        rows.append(row(folder, found))
        notes += [
            f"  {e.how}: {e.path}: {e.reason} ({e.seconds:.1f} s)" for e in found if e.how != "analysed"
        ]
        well = well and not any(e.how in ("crash", "hung") for e in found)
    return "\n".join([*rows, "", *notes]), well


def row(folder: Path, found: list[End]) -> str:
    counts = "".join(f"{sum(e.how == how for e in found):12d}" for how in HOWS)
    slowest = max((e.seconds for e in found), default=0.0)
    lines, defects = sum(e.lines for e in found), sum(e.defects for e in found)
    return f"{str(folder)[-40:]:40s} {len(found):6d} {lines:8d}{counts} {defects:8d} {slowest:7.2f}"
