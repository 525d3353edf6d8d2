"""The text of each page, in Markdown: the rules, torch's messages, and the README's chapters."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from docs.rule_pages import rule_page, said
from docs.shown import ROOT
from docs.wording import anchor, wordings
from gradfix.outcome import RuleCard
from gradfix.registry import codemods
from gradfix.why.messages import MESSAGES, Message

FAMILIES = {
    "GF1": "Overwritten while backward still needs it",
    "GF2": "Gradients that never arrive",
    "GF3": "How backward is called",
    "GF4": "The training loop",
}
CHAPTERS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "use": ("Use it", ("Use it", "What gradfix will not touch")),
    "configure": ("Configure and suppress", ("Suppressions", "Configuration")),
    "notebooks": ("Notebooks", ("Notebooks",)),
    "review": ("In a review", ("pre-commit", "GitHub and GitLab")),
    "editor": ("In an editor", ("In an editor", "Completion")),
    "why": ("Ask for a traceback", ("Ask for a traceback: `gradfix why`",)),
    "verify": ("Prove a fix", ("Prove a fix: `--verify`",)),
    "run": ("Run a program", ("Run a program: `gradfix run`", "Watch from inside: `gradfix.trace`")),
}
"""The pages that are chapters of the README, each with its title and the headings that it takes."""
CODE = re.compile(r"(^```.*?^```$)", re.M | re.S)
LINK = re.compile(r"\]\((?!https?:|#)([^)]+)\)")
README = (ROOT / "README.md").read_text("utf-8")
SCHEMAS = ROOT / "gradfix" / "schemas"
HOME = """\
# gradfix

{opening}

- A traceback and no idea? [Find it by torch's message](messages.md), or ask [`gradfix why`](why.md).
- What *certain*, *likely*, *safe* and *crashes* mean stands in [Use it](use.md); how to silence a rule in
  [Configure and suppress](configure.md).

{families}"""
FAMILY = """\
## {told}

{rows}
"""
BY_MESSAGE = """\
# Find by error message

What torch says when a gradient breaks, in the words of all its versions. Search for a part of yours, in the
field above or in this page; `<names>` stand for what differs. [`gradfix why`](why.md) reads the whole
traceback and names the line.

{messages}"""
MESSAGE = """\
## {means} {{ #{anchor} }}

{said}

**What is certain:** {proves}.

**What to do:** {then}.

**Leads to:** {leads}
"""
NO_RULE = "[`gradfix run`](run.md), which names the first value that isn't finite"
JSON = """\
# JSON and its schemas

`--output-format json` prints one document, with ruff's names for what ruff has too. `url` is the page of the
rule. Later versions of gradfix may add fields. SARIF is that of version 2.1.0, rdjson reviewdog's.

| schema (draft 7) | what it describes |
|---|---|
{rows}
"""


def cards() -> list[RuleCard]:
    return [each.card for each in codemods().values()]


def of(family: str) -> list[RuleCard]:
    """The rules of a family."""
    return [card for card in cards() if card.code.startswith(family)]


def pages(repository: str) -> Iterator[tuple[str, str]]:
    """Every page: its path and its text."""
    yield "index.md", home()
    yield "messages.md", BY_MESSAGE.format(messages="\n".join(map(_message, MESSAGES)))
    yield "schemas.md", JSON.format(rows="\n".join(_schemas()))
    for card in cards():
        yield f"rules/{card.name}.md", rule_page(card)
    for name, (title, headings) in CHAPTERS.items():
        chapters = [chapter(each, title, repository) for each in headings]
        yield f"{name}.md", "\n".join([f"# {title}\n", *chapters])


def nav() -> list[dict[str, object]]:
    """The pages in the order in which a reader meets them."""
    rules: list[dict[str, object]] = [
        {told: [{f"{card.code} {card.name}": f"rules/{card.name}.md"} for card in of(family)]}
        for family, told in FAMILIES.items()
    ]
    manual = [{title: f"{name}.md"} for name, (title, _) in CHAPTERS.items()]
    last: dict[str, object] = {"Manual": [*manual, {"JSON and its schemas": "schemas.md"}]}
    return [{"Rules": "index.md"}, {"Find by error message": "messages.md"}, *rules, last]


def home() -> str:
    """What it is, and all rules."""
    opening = README.partition("\n\n")[2].partition("\n\n## ")[0]
    families = (
        FAMILY.format(told=told, rows="\n".join(map(_row, of(family)))) for family, told in FAMILIES.items()
    )
    return HOME.format(opening=opening, families="\n".join(families))


def _row(card: RuleCard) -> str:
    return f"- [{card.code} {card.name}](rules/{card.name}.md)<br>{card.summary}"


def _message(message: Message) -> str:
    codes = {card.name: card.code for card in cards()}
    rules = [f"[{codes[kind]} {kind}](rules/{kind}.md)" for kind in message.kinds]
    return MESSAGE.format(
        means=message.means[:1].upper() + message.means[1:],
        anchor=anchor(message),
        said=said(wordings(message)),
        proves=message.proves,
        then=message.then,
        leads=", ".join(rules) or NO_RULE,
    )


def _schemas() -> Iterator[str]:
    for file in sorted(SCHEMAS.glob("*.json")):
        yield f"| [{file.name}](schemas/{file.name}) | {json.loads(file.read_text('utf-8'))['title']} |"


def chapter(heading: str, title: str, repository: str) -> str:
    """One chapter of the README, up to the next heading."""
    found = re.search(rf"^##+ {re.escape(heading)}\n(.*?)(?=^#{{2,3}} |\Z)", README, re.M | re.S)
    assert found, heading
    parts = CODE.split(re.sub(r"<!--.*?-->\n?", "", found[1], flags=re.S))
    parts[::2] = [LINK.sub(rf"]({repository}/blob/main/\1)", part) for part in parts[::2]]
    return "".join(parts) if heading == title else f"## {heading}\n{''.join(parts)}"
