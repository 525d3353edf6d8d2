"""Test functions and files as a person would write them, in black's layout."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from textwrap import wrap

from gradfix.driver.written import INDENT, WIDTH, Parts, parts
from gradfix.regression.mended import Check, Mended, Piece

PLAIN = re.compile(r"(?:import|from) ")
QUOTES = '"""'


def function(check: Check, mended: Mended) -> Piece:
    """A test: the program that shows the finding, and what holds since it was mended."""
    made = parts(check.recipe)
    blocks = [block for block in (*forms(check, made), [*check.lines]) if block]
    if check.form == "built":
        blocks = [[line for block in blocks for line in block]]
    name = f"test_{check.name}"
    body = [*documented(mended), *[line for block in blocks for line in ("", *block)][1:]]
    lines = (f"def {name}():", *((INDENT + line) if line else "" for line in body))
    return Piece(name, tuple(line for line in made.imports if line and used(line, lines)), lines)


def forms(check: Check, made: Parts) -> Iterator[list[str]]:
    """What comes before the asserts, in blocks."""
    run = [*made.call, *made.backward]
    if check.form == "built":
        yield [*made.build, *check.setup]
    elif check.form == "twice":
        yield [*made.build, *check.setup]
        turn = ["torch.manual_seed(1)", *made.inputs, *run, f"gradients.append({check.kept})"]
        yield ["gradients = []", "for _ in range(2):", *(INDENT + line for line in turn)]
    elif check.recipe.repeats > 1:
        yield [*made.build, *check.setup]
        turn = [*made.inputs, *run]
        yield [f"for _ in range({check.recipe.repeats}):", *(INDENT + line for line in turn)]
    else:
        yield [*made.build, *check.setup, *made.inputs]
        yield run


def used(line: str, body: Sequence[str]) -> bool:
    """Whether a function needs what an import line binds; what is no plain import is kept."""
    if not PLAIN.match(line):
        return True
    names = [each.split()[-1].partition(".")[0] for each in line.rpartition("import ")[2].split(",")]
    return any(re.search(rf"\b{name}\b", row) for name in names for row in body)


def documented(mended: Mended) -> list[str]:
    """The docstring: what would be wrong without the fix."""
    said = f"{mended.message} ({mended.code})." if mended.message else f"{mended.code}."
    text = escaped(f"Without the fix, {said}")
    line = f"{QUOTES}{text}{QUOTES}"
    if len(INDENT + line) <= WIDTH:
        return [line]
    rows = wrap(QUOTES + text, WIDTH - len(INDENT), break_long_words=False)
    return [*rows, QUOTES]


def escaped(text: str) -> str:
    """A text that may stand in a docstring."""
    return text.replace("\\", "\\\\").replace(QUOTES, "'''").strip()


def file(pieces: Sequence[Piece], says: str) -> str:
    """A whole file of tests."""
    imports = imported(line for piece in pieces for line in piece.imports)
    functions = ["\n".join(piece.lines) for piece in pieces]
    return "\n\n\n".join([f"{QUOTES}{says}{QUOTES}\n\n" + "\n".join(imports), *functions]) + "\n"


def imported(lines: Iterable[str]) -> list[str]:
    """Import lines in three blocks, the standard library's first; what else binds a name behind them."""
    given = list(dict.fromkeys(lines))
    plain = joined(line for line in given if PLAIN.match(line))
    blocks = [sorted((one for one in plain if rank(one) == number), key=order) for number in range(3)]
    blocks.append([line for line in given if not PLAIN.match(line)])
    return "\n\n".join("\n".join(block) for block in blocks if block).split("\n")


def joined(lines: Iterable[str]) -> list[str]:
    """Lines that import from one module made one."""
    found: dict[str, list[str]] = {}
    for line in lines:
        head, _, names = line.partition(" import ") if line.startswith("from ") else (line, "", "")
        found.setdefault(head, []).extend(name.strip() for name in names.split(",") if name)
    return [
        f"{head} import {', '.join(sorted(set(names), key=str.lower))}" if names else head
        for head, names in found.items()
    ]


def rank(line: str) -> int:
    """Whose module an import line names: Python's, an installed one, the project's."""
    top = line.split()[1].partition(".")[0]
    if top in sys.stdlib_module_names:
        return 0
    return 1 if top in ("torch", "numpy", "pytest") else 2


def order(line: str) -> tuple[bool, str]:
    """Whole modules first, then names from modules."""
    return line.startswith("from"), line.lower()


def unlike(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """The same with a name of its own for each."""
    taken: set[str] = set()
    for piece in pieces:
        name, number = piece.name, 2
        while name in taken:
            name, number = f"{piece.name}_{number}", number + 1
        taken.add(name)
        lines = (piece.lines[0].replace(piece.name, name), *piece.lines[1:])
        yield replace(piece, name=name, lines=lines)
