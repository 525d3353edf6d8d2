"""Programs on which tape and torch once disagreed, kept as files."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from .programs import Program

FOUND = Path(__file__).parent / "found"
LENIENT = "# ruff: noqa\n# mypy: ignore-errors\n"
BEHIND = "# behind the file, unseen by the tape:\n"


def write(folder: Path, group: str, program: Program) -> Path:
    """Keep a program under the name of its disagreement."""
    digest = hashlib.sha1(program.source.encode()).hexdigest()[:6]
    name = re.sub(r"\W+", "_", group).strip("_")
    path = folder / f"{name}_{digest}.py"
    unknown = ", unknown callee" if program.opaque else ""
    behind = BEHIND + program.driver if program.driver else ""
    source = program.source.removeprefix(LENIENT).strip()
    path.write_text(f"# flags {program.flags}{unknown}\n{LENIENT}{source}\n{behind}")
    return path


def read(path: Path) -> Program:
    head, rest = path.read_text().split("\n", 1)
    source, _, driver = rest.partition(BEHIND)
    flags = re.search(r"flags (\d+)", head)
    return Program(f"{head}\n{source}", int(flags[1]) if flags else 0, "unknown callee" in head, driver)


def found() -> list[Path]:
    return sorted(FOUND.glob("*.py"))
