"""The page of a rule: what it says, what torch says, the graph, the rewrite, and what is left alone."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from docs.drawn import legend
from docs.shown import Example, look_alikes
from docs.wording import anchor, leading_to, wordings
from gradfix.explain import FIXES
from gradfix.outcome import RuleCard

PAGE = """\
# {code} {name}

{tags}

{docs}

## What torch says

{torch_says}

## What gradfix says

```text
{listing}```

## The graph

<div class="graphs">{pictures}</div>

{legend}

## The rewrite

{rewrite}

{program}

{healthy}

## To leave it

`# gradfix: ignore[{code}]` silences it on its line, `ignore = ["{code}"]` everywhere: see
[Configure and suppress](../configure.md).
"""
HEALTHY = """\
## Look-alikes that are left alone

Programs that work, among the project's tests: {count}.

{programs}"""
SILENT = "Nothing, as a rule: the program goes on."


def rule_page(card: RuleCard) -> str:
    """All there is to say and to show of a rule."""
    example = Example(card.name)
    return PAGE.format(
        code=card.code,
        name=card.name,
        tags=_tags(card, example),
        docs=card.docs,
        torch_says="\n\n".join(_torch_says(card, example)),
        listing=example.listing,
        pictures="".join(
            f"<figure><figcaption>{caption}</figcaption>{picture}</figure>"
            for caption, picture in example.pictures
        ),
        legend=legend(),
        rewrite=_rewrite(example),
        program=_folded("The whole program", example.text.decode()),
        healthy=_healthy(card),
    )


def _tags(card: RuleCard, example: Example) -> str:
    """What a person in a hurry reads."""
    impact = example.finding.impact
    fix = "safe or unsafe fix" if card.sometimes_unsafe else FIXES[card.safety]
    said = [(impact.replace(" ", "-"), impact), ("fix", fix if example.diff else "by hand")]
    said += [] if card.on_by_default else [("off", "off unless selected")]
    tags = " ".join(f'<span class="{kind}">{text}</span>' for kind, text in said)
    return f'<p class="tags">{tags}</p>'


def _torch_says(card: RuleCard, example: Example) -> Iterator[str]:
    """The messages that lead here."""
    found, finding = leading_to(card.name), example.finding
    if finding.impact != "crashes":
        yield f"{SILENT} These lead here too:" if found else SILENT
    elif not found:
        yield said([finding.torch_says])
    for message in found:
        yield said(wordings(message)[:1])
        yield f"[{message.means}](../messages.md#{anchor(message)})"


def said(words: list[str]) -> str:
    """What torch says, each way on a line of its own."""
    return '<div class="said">' + "".join(f"<p>{escape(each)}</p>" for each in words) + "</div>"


def _rewrite(example: Example) -> str:
    if not example.diff:
        return f"By hand: {example.finding.decline}."
    unsafe = f"\n\nUnsafe: {example.finding.unsafe}." if example.finding.unsafe else ""
    return f"```diff\n{example.diff}```{unsafe}"


def _healthy(card: RuleCard) -> str:
    found = look_alikes(card.name)
    programs = "\n".join(_folded(name[:1].upper() + name[1:], text) for name, text in found)
    return HEALTHY.format(count=len(found), programs=programs) if found else ""


def _folded(title: str, code: str) -> str:
    """A program that is shown when somebody asks for it."""
    inner = "\n".join(f"    {line}" if line else "" for line in code.splitlines())
    return f'??? quote "{title}"\n\n    ```python\n{inner}\n    ```\n'
