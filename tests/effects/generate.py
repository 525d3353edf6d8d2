"""Writes gradfix/tape/effects/effects.json from the installed torch, or checks that it is what torch does.

python -m tests.effects.generate --check | --write
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from .modules import module_rows
from .native import Report, Rows, native_rows
from .python import python_rows
from .rows import Row

TABLE = Path(__file__).resolve().parent.parent.parent / "gradfix" / "tape" / "effects" / "effects.json"


@contextmanager
def quietly() -> Iterator[None]:
    """Torch warns about half of what it is asked here, and waking its threads costs more than the work."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    torch.set_num_threads(threads)


def generate(report: Report) -> dict[str, Any]:
    """The whole table, with equal rows shared."""
    with quietly():
        surfaces: Rows = {"method": {}, "function": {}, "functional": {}, "functional_inplace": {}}
        for made in (native_rows(report), python_rows(report)):
            for surface, rows in made.items():
                surfaces[surface] |= rows
        modules = module_rows(report)
    numbers: dict[str, int] = {}

    def number(row: Row) -> int:
        extras = {k: v for k, v in row.items() if k not in {"args", "kinds"}}
        return numbers.setdefault(
            json.dumps([row["args"], row["kinds"], extras], sort_keys=True), len(numbers)
        )

    named = {s: {n: [number(r) for r in rows[n]] for n in sorted(rows)} for s, rows in surfaces.items()}
    for module in modules.values():
        module.update({mode: number(module[mode]) for mode in ("train", "eval", "inplace") if mode in module})
    effects = [json.loads(text) for text in numbers]
    return {"torch": torch.__version__.split("+")[0], **named, "module": modules, "effects": effects}


def rendered(table: dict[str, Any]) -> str:
    """JSON with one row or name per line, so that a change of torch reads as a diff."""

    def line(value: Any) -> str:
        return json.dumps(value, separators=(",", ":"))

    parts = []
    for key, value in table.items():
        if isinstance(value, dict):
            inner = ",\n".join(f"{line(n)}:{line(v)}" for n, v in value.items())
            parts.append(f"{line(key)}:{{\n{inner}\n}}")
        elif isinstance(value, list):
            parts.append(f"{line(key)}:[\n" + ",\n".join(map(line, value)) + "\n]")
        else:
            parts.append(f"{line(key)}:{line(value)}")
    return "{" + ",\n".join(parts) + "}\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--check", action="store_true")
    action.add_argument("--write", action="store_true")
    parser.add_argument(
        "--provoke", action="store_true", help="overwrite each tensor before backward as well"
    )
    asked = parser.parse_args()
    report = Report(provoke=asked.provoke)
    text = rendered(generate(report))
    print(f"recorded {report.recorded} overloads, {report.agreed} as derivatives.yaml has them")
    for title in ("disagreements", "joint", "contradicted", "unrecorded"):
        print(f"{title}: {len(getattr(report, title))}", *getattr(report, title), sep="\n  ")
    if asked.write:
        TABLE.write_text(text)
        return 0
    same = TABLE.exists() and TABLE.read_text() == text
    print("effects.json is what torch does" if same else "effects.json differs from the installed torch")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
