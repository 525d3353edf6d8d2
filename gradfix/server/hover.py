"""What an editor shows where the pointer rests: the way out, torch's words, and the page of the rule."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gradfix.explain import page
from gradfix.registry import codemods, find
from gradfix.report.wording import label, remedy, unknown, way_out
from gradfix.rule import Finding

CODE = re.compile(r"\bGF\d+\b")


def about(finding: Finding) -> str:
    """All there is to say of a finding beyond its message, as Markdown."""
    head = f"**{finding.code} {finding.rule}** [{finding.impact}, {finding.certainty}, {remedy(finding)}]"
    return "\n\n".join([head, *_remarks(finding), "---", _page(finding.code)])


def at(line: str, character: int) -> str | None:
    """The page of the rule whose code stands there, in a comment that silences it for example."""
    for word in CODE.finditer(line):
        if word.start() <= character <= word.end() and find(codemods(), word[0]) is not None:
            return _page(word[0])
    return None


def _remarks(finding: Finding) -> Iterator[str]:
    for reason in finding.unknowns:
        yield f"unknown: {unknown(reason)}"
    if way_out(finding):
        yield f"{label(finding)}: {way_out(finding)}" if finding.safety is None else _quoted(finding)
    if finding.torch_says:
        yield f'torch says: "{finding.torch_says}"'


def _quoted(finding: Finding) -> str:
    """A rewrite as code, and why it is unsafe."""
    why = f" (unsafe: {finding.unsafe})" if finding.unsafe else ""
    return f"{label(finding)}: `{finding.says}`{why}"


def _page(code: str) -> str:
    """What `--explain` prints, its first line as a headline."""
    codemod = find(codemods(), code)
    assert codemod is not None
    head, _, rest = page(codemod.card).partition("\n")
    return f"**{head}**\n{rest}".replace("``", "`").rstrip()
