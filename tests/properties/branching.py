"""`python -m tests.properties.branching FOLDER`: flags that don't matter hide nothing, however many.

Into a script go flags in a row, or the arms of one `elif`, that do what changes no fault: they touch
something else, look at what is there, or scale it. What is found beneath one is found beneath any number.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from gradfix.source import Source, parse
from gradfix.tape.entries import analyse

Found: TypeAlias = "frozenset[tuple[str, int]]"
"""Rules, each with the line of the unchanged text that it blames."""
Branches: TypeAlias = "Callable[[int, str], list[str]]"
"""So many branches about a name, as lines."""
TEST = 'os.environ.get("FLAG{}")'
OTHER = "beside"
"""A name that no script has."""


def _flags(statement: str) -> Branches:
    def lines(count: int, name: str) -> list[str]:
        made = ([f"if {TEST.format(i)}:", "    " + statement.format(i=i, name=name)] for i in range(count))
        return [line for one in made for line in one]

    return lines


def _arms(statement: str) -> Branches:
    def lines(count: int, name: str) -> list[str]:
        made = (
            [f"{'el' if i else ''}if {OTHER} == {i}:", "    " + statement.format(i=i, name=name)]
            for i in range(count)
        )
        return [f"{OTHER} = {TEST.format(0)}", *(line for one in made for line in one)]

    return lines


def _one_of_two(count: int, name: str) -> list[str]:
    made = [
        [f"if {TEST.format(i)}:", f"    {OTHER} = {i}.5", "else:", f"    {OTHER} = -{i}.5",
         f"{name} = {name} * {OTHER}"] for i in range(count)
    ]  # fmt: skip
    return [line for one in made for line in one]


TOUCHING: dict[str, Branches] = {
    "flags that touch something else": _flags(OTHER + " = {i}"),
    "flags that look at it": _flags(OTHER + " = {name}"),
    "arms that touch something else": _arms(OTHER + "s = {i}"),
    "arms that look at it": _arms(OTHER + "s = {name}"),
}
"""What changes nothing, not even the value."""
SCALING: dict[str, Branches] = {
    "flags that scale it": _flags("{name} = {name} * {i}.5"),
    "flags that choose its factor": _one_of_two,
    "arms that scale it": _arms("{name} = {name} * {i}.5"),
}
"""What changes the value, and may mend what is broken: measured beside one of it."""
WAYS = {**TOUCHING, **SCALING}


class Place(NamedTuple):
    """Where branches go in: before which line, how far in, and about which name."""

    line: int
    indent: str
    name: str


def found(text: str) -> Found | None:
    """What is listed in a script, by line; None where it can't be read."""
    source = parse("script.py", text.encode("utf-8", "surrogatepass"))
    if not isinstance(source, Source):
        return None
    listed = (one for one in analyse(source).defects if one.certainty != "suspect" and one.impact != "style")
    return frozenset((one.kind, one.culprit.line) for one in listed)


def places(text: str) -> Iterator[Place]:
    """Before what uses a name that the same block has just made by a call or an operation."""
    lines = text.splitlines()
    for block in _blocks(ast.parse(text)):
        made: set[str] = set()
        for statement in block:
            before = lines[statement.lineno - 1]
            indent = before[: len(before) - len(before.lstrip())]
            if not before[len(indent) :].startswith((";", "\\")) and statement.col_offset == len(indent):
                for name in sorted(made & _looked_at(statement)):
                    yield Place(statement.lineno, indent, name)
            made = _made(statement)


def _blocks(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list) and not isinstance(node, ast.ClassDef):
                yield block


def _made(statement: ast.stmt) -> set[str]:
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, (ast.Call, ast.BinOp)):
        return set()
    return {one.id for one in statement.targets if isinstance(one, ast.Name)}


def _looked_at(statement: ast.stmt) -> set[str]:
    if getattr(statement, "body", None):
        return set()
    return {one.id for one in ast.walk(statement) if isinstance(one, ast.Name)}


def scalable(text: str) -> set[str]:
    """The names of a script that may be tensors: made by no class, not called, and nobody's parameters."""
    names, others = set(), set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Name):
            names.add(node.id)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            maker = ast.unparse(node.value.func).rpartition(".")[2]
            if maker[:1].isupper():
                others |= {one.id for one in node.targets if isinstance(one, ast.Name)}
        called = node.func if isinstance(node, ast.Call) else None
        asked = node.value if isinstance(node, ast.Attribute) and node.attr == "parameters" else None
        others |= {one.id for one in (called, asked) if isinstance(one, ast.Name)}
    return names - others


def put(text: str, place: Place, lines: Sequence[str]) -> str:
    """A text with lines before one of its own."""
    own = text.splitlines()
    own[place.line - 1 : place.line - 1] = [place.indent + line for line in ("import os", *lines)]
    return "\n".join(own) + "\n"


def seen(text: str, place: Place, lines: Sequence[str]) -> Found | None:
    """What is found beside these lines, by the lines that were there before."""
    told = found(put(text, place, lines))
    if told is None:
        return None
    more, first = len(lines) + 1, place.line
    return frozenset(
        (kind, at if at < first else at - more) for kind, at in told if not first <= at < first + more
    )


class Difference(NamedTuple):
    """Where more branches showed less, or more."""

    path: str
    way: str
    many: int
    place: Place
    lost: Found
    gained: Found


def differences(
    path: str, text: str, counts: Sequence[int], ways: Iterable[str]
) -> Iterator[Difference | None]:
    """Each variant of a script: None where it says what one branch says."""
    plain, tensors = found(text), scalable(text)
    for place in places(text):
        for way in ways:
            if way in SCALING and place.name not in tensors:
                continue
            branches = WAYS[way]
            one = plain if way in TOUCHING else seen(text, place, branches(1, place.name))
            for count in counts:
                told = seen(text, place, branches(count, place.name))
                if one is None or told is None or told == one:
                    yield None
                else:
                    yield Difference(path, way, count, place, one - told, told - one)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.properties.branching", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--counts", type=int, nargs="+", default=[2, 3, 5, 10])
    parser.add_argument("--every", type=int, default=1, help="of so many files one")
    options = parser.parse_args(arguments)
    tried, lost, gained = Counter[str](), Counter[str](), Counter[str]()
    for path in sorted(options.folder.rglob("*.py"))[:: options.every]:
        try:
            text = path.read_text("utf-8")
            ast.parse(text)
        except (UnicodeDecodeError, SyntaxError, RecursionError):
            continue
        for way in WAYS:
            for one in differences(str(path), text, options.counts, [way]):
                tried[way] += 1
                if one is not None:
                    lost[way] += bool(one.lost)
                    gained[way] += bool(one.gained)
                    print(f"{one.path}:{one.place.line} {one.way} about {one.place.name}, {one.many}:",
                          *(f"\n  - {told}" for told in sorted(one.lost)),
                          *(f"\n  + {told}" for told in sorted(one.gained)))  # fmt: skip
    for way in WAYS:
        print(f"{way}: {tried[way]} variants, {lost[way]} lose, {gained[way]} gain")
    return 1 if lost or gained else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
