"""What `--list-rules` and `--explain` say: the rules in the words of their own modules."""

from __future__ import annotations

from collections.abc import Iterable

from gradfix.outcome import RuleCard
from gradfix.rule import Safety

FIXES = {Safety.SAFE: "safe fix", Safety.UNSAFE: "unsafe fix", None: "no fix"}
PAGES = "https://gradfix.github.io/gradfix"
"""Where the pages are published, as the project's metadata has it."""


def listing(cards: Iterable[RuleCard]) -> str:
    """One line for each rule."""
    rows = [(card.code, card.name, _fix(card), card.summary) for card in cards]
    widths = [max((len(row[i]) for row in rows), default=0) for i in range(3)]
    return "".join("  ".join([*map(str.ljust, row[:3], widths), row[3]]) + "\n" for row in rows)


def page(card: RuleCard) -> str:
    """All there is to say about a rule."""
    return f"{card.code} {card.name} ({_fix(card)})\n\n{card.docs}\n"


def offered(cards: Iterable[RuleCard], typed: str) -> list[str]:
    """What a shell may make of the beginning of a rule, the last one of a list: a code, or else a name."""
    before, comma, word = typed.rpartition(",")
    every = list(cards)
    codes = [card.code for card in every if card.code.startswith(word.upper())]
    names = sorted(card.name for card in every if card.name.startswith(word))
    return [f"{before}{comma}{rule}" for rule in codes or names]


def address(rule: str) -> str:
    """Where a rule's page is read in a browser."""
    return f"{PAGES}/rules/{rule}/"


def _fix(card: RuleCard) -> str:
    fix = "safe or unsafe fix" if card.sometimes_unsafe else FIXES[card.safety]
    return fix + ("" if card.on_by_default else ", off by default")
