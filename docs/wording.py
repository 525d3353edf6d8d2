"""The words of torch's messages, out of the patterns by which `gradfix why` reads them."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from typing import Any

from gradfix.why.messages import MESSAGES, Message

if sys.version_info >= (3, 11):
    parser: Any = vars(re)["_parser"]
else:
    import sre_parse

    parser = sre_parse
BLANK = "…"
"""What stands for words that differ."""


def wordings(message: Message) -> list[str]:
    """Each way in which torch says it."""
    return [said for pattern in message.patterns for said in _alternatives(pattern)]


def leading_to(rule: str) -> list[Message]:
    """The messages that a rule explains, those first of which it is the likeliest cause."""
    return sorted((one for one in MESSAGES if rule in one.kinds), key=lambda one: one.kinds.index(rule))


def anchor(message: Message) -> str:
    """Where a message is on its page."""
    return message.name.replace(" ", "-")


def _alternatives(pattern: str) -> list[str]:
    """A pattern's own alternatives, each as a person would write it down."""
    parts = list(parser.parse(pattern))
    named = {number: name for name, number in re.compile(pattern).groupindex.items()}
    if len(parts) == 1 and str(parts[0][0]) == "BRANCH":
        return [_said(branch, named) for branch in parts[0][1][1]]
    return [_said(parts, named)]


def _said(parts: Iterable[tuple[Any, Any]], named: dict[int, str]) -> str:
    return re.sub(rf"{BLANK}+", BLANK, "".join(_part(str(kind), held, named) for kind, held in parts))


def _part(kind: str, held: Any, named: dict[int, str]) -> str:
    """One piece of a pattern: the first of several words; what is optional, if it is more than a letter."""
    if kind == "LITERAL":
        return chr(held)
    if kind == "IN":
        return chr(held[0][1]) if str(held[0][0]) == "LITERAL" else BLANK
    if kind == "BRANCH":
        return _said(held[1][0], named)
    if kind == "MAX_REPEAT":
        least, _, inner = held
        said = _said(inner, named)
        return said if least or len(said) > 1 or said == " " else ""
    if kind == "SUBPATTERN":
        said = _said(held[3], named)
        return f"<{named[held[0]]}>" if held[0] in named and _differs(held[3]) else said
    return BLANK


def _differs(parts: Iterable[tuple[Any, Any]]) -> bool:
    """Whether what is matched isn't one of some words."""
    return any(str(kind) not in ("LITERAL", "BRANCH") for kind, _ in parts)
