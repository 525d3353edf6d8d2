"""Writes gradfix/tape/effects/effects.json from the installed torch, or checks that it is what torch does.

python -m tests.effects.generate --check | --write | --compare

--compare tells what the table says and the installed torch, another one, doesn't do: such claims are kept in
versions.json, and the table makes them no more.
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
VERSIONS = TABLE.with_name("versions.json")
SURFACES = ("method", "function", "functional", "functional_inplace", "module")


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


def claims(row: list[Any]) -> set[str]:
    """What a row says that is broken by a write, or by a backward."""
    extras = row[2]
    found = {f"saves {name}" for name in extras.get("saves", ())}
    return found | {f"{key} {extras[key]}" for key in ("constant", "vanishes") if extras.get(key)}


def untrue(ours: list[Any], theirs: list[Any]) -> set[str]:
    """The claims of our rows that no row of the same arguments (failing that, no row at all) makes there."""
    found: set[str] = set()
    for row in ours:
        alike = [one for one in theirs if one[:2] == row[:2]] or theirs
        found |= claims(row) - set().union(*(claims(one) for one in alike))
    return found


def rows_of(table: dict[str, Any], surface: str, name: str) -> list[Any]:
    held = table[surface][name]
    numbers = held if isinstance(held, list) else [held[mode] for mode in ("train", "eval") if mode in held]
    return [table["effects"][number] for number in numbers]


def compare(theirs: dict[str, Any]) -> int:
    """Note for each surface the names of which the table claims what is not so under this torch."""
    ours = json.loads(TABLE.read_text())
    doubted: dict[str, list[str]] = {}
    for surface in SURFACES:
        for name in sorted(ours[surface].keys() & theirs[surface].keys()):
            found = untrue(rows_of(ours, surface, name), rows_of(theirs, surface, name))
            if found:
                doubted.setdefault(surface, []).append(name)
                print(f"{surface} {name}: {', '.join(sorted(found))} not under torch {theirs['torch']}")
    versions = json.loads(VERSIONS.read_text()) if VERSIONS.exists() else {}
    versions[theirs["torch"]] = doubted
    ordered = sorted(versions.items(), key=lambda item: [int(part) for part in item[0].split(".")])
    VERSIONS.write_text(json.dumps(dict(ordered), indent=1) + "\n")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--check", action="store_true")
    action.add_argument("--write", action="store_true")
    action.add_argument("--compare", action="store_true")
    parser.add_argument(
        "--provoke", action="store_true", help="overwrite each tensor before backward as well"
    )
    asked = parser.parse_args()
    report = Report(provoke=asked.provoke, wary=asked.compare)
    table = generate(report)
    if asked.compare:
        return compare(table)
    text = rendered(table)
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
