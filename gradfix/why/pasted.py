"""A paste as plain lines: without colours, bars, boxes and what launchers and loggers write before a line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07")
RANK = re.compile(
    r"^\s*(?:\[(?:rank|default|local_rank)?[ _]?(\d+)\]:?|(?:rank|default|worker|ddp)[ _]?(\d+)\s*[:|])\s?",
    re.I,
)
"""What torchrun, accelerate and others write before a line of one of several processes."""
BOX = re.compile(r"^\s*[│|┃] ?(.*?)\s*[│|┃]\s*$")
BEGINS = re.compile(r'^(?P<before>.*?)\s*(?:Traceback \(most recent call last\)|File "[^"]+" ?, ?line \d+)')
LONGEST_PREFIX = 90
NO_PREFIX = re.compile(r"^(?:During task|Original|[Ii]n)\b|^\w*(?:Error|Exception|Interrupt)$")


def lines(text: str) -> list[str]:
    """The lines of a paste, those of each rank together."""
    plain = [_shown(line) for line in ESCAPES.sub("", text.replace("\r\n", "\n")).split("\n")]
    ranked = _by_rank(plain)
    prefixes = [re.compile(each) for each in dict.fromkeys(_prefixes(ranked))]
    return [_without(prefixes, line) for line in ranked]


def _shown(line: str) -> str:
    """What a terminal shows of a line that a bar has written over, and what stands in a box."""
    parts = [part for part in line.split("\r") if part.strip()]
    line = parts[-1] if parts else ""
    boxed = BOX.match(line)
    return boxed[1] if boxed else line.rstrip()


def _by_rank(plain: Iterable[str]) -> list[str]:
    """Lines that several processes wrote in turns, sorted by process."""
    ranks: dict[str, list[str]] = {"": []}
    for line in plain:
        rank = RANK.match(line)
        key = (rank[1] or rank[2]) if rank else ""
        ranks.setdefault(key, []).append(line[rank.end() :] if rank else line)
    return [line for own in ranks.values() for line in own]


def _prefixes(plain: Iterable[str]) -> Iterator[str]:
    """What stands before a traceback's lines, with any number for each number."""
    for line in plain:
        begins = BEGINS.match(line)
        before = begins["before"] if begins else ""
        if before.strip() and len(before) <= LONGEST_PREFIX and not NO_PREFIX.match(before.strip()):
            yield r"\d+".join(re.escape(part) for part in re.split(r"\d+", before)) + r"(?: (?=\S))?"


def _without(prefixes: Iterable[re.Pattern[str]], line: str) -> str:
    found = [match.end() for match in (prefix.match(line) for prefix in prefixes) if match]
    return line[max(found) :] if found else line
