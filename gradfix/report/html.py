"""One self-contained page: each rewrite beside the gradients before and after it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING

from gradfix.patch import unified
from gradfix.report.cells import placed
from gradfix.report.quotes import quotes
from gradfix.report.verdicts import norm
from gradfix.report.wording import plural

if TYPE_CHECKING:
    from gradfix.outcome import Outcome, Run
    from gradfix.rule import Finding
    from gradfix.verify import Verdict

MOST_BARS = 60
DECADES = 8
"""How many powers of ten a bar spans, from the largest norm down."""

STYLE = """
:root { --ink:#1d2433; --dim:#5b6579; --paper:#fff; --card:#f6f7fa; --line:#dde1ea; --good:#1a7f4b;
  --bad:#c62f3b;
  --half:#a06a00; --bar:#3b6fd4; --old:#9aa5ba; --add:#e3f5ea; --cut:#fde8e9; }
@media (prefers-color-scheme: dark) { :root { --ink:#e4e8f1; --dim:#9aa4b8; --paper:#12161f;
  --card:#1a2030;
  --line:#2c3448; --good:#4fc486; --bad:#ff7a83; --half:#e0ab47; --bar:#7aa2ff; --old:#5d6880;
  --add:#17352a;
  --cut:#3d1f26; } }
* { box-sizing:border-box } body { margin:0; background:var(--paper); color:var(--ink);
  font:15px/1.5 system-ui,sans-serif } main { max-width:1200px; margin:0 auto; padding:24px 16px }
h1 { font-size:22px; margin:0 0 4px } h2 { font-size:16px; margin:0; overflow-wrap:anywhere }
h3 { font-size:13px; color:var(--dim); margin:0 0 8px; font-weight:600 } p { margin:4px 0 } ul {
  padding-left:20px }
.totals { display:flex; flex-wrap:wrap; gap:8px; margin:12px 0 24px }
.badge { display:inline-block; border:1px solid currentColor; border-radius:999px; padding:1px 10px;
  font-size:13px;
  font-weight:600; color:var(--dim); white-space:nowrap }
.flows { color:var(--good) } .worse,.no-change { color:var(--bad) } .flows-partly { color:var(--half) }
article { border:1px solid var(--line); border-radius:10px; background:var(--card); padding:16px; margin:0
  0 20px }
header { display:flex; flex-wrap:wrap; gap:8px 12px; align-items:center; justify-content:space-between }
.sides { display:grid; gap:16px; margin-top:14px; grid-template-columns:minmax(0,1fr) }
@media (min-width:900px) { .sides { grid-template-columns:minmax(0,3fr) minmax(0,2fr) } }
pre { margin:0; tab-size:4; overflow-x:auto; background:var(--paper); border:1px solid var(--line);
  border-radius:8px; padding:10px 0; font:13px/1.45 ui-monospace,monospace }
pre span { display:block; padding:0 12px; width:max-content; min-width:100% }
.added { background:var(--add) } .removed { background:var(--cut) } .hunk { color:var(--dim) }
.parameter { margin:0 0 9px } .name { font:12px ui-monospace,monospace;
  overflow-wrap:anywhere } .row { display:grid; grid-template-columns:44px minmax(0,1fr) 64px; gap:8px;
  align-items:center; font-size:12px; color:var(--dim) } .track { height:9px; border-radius:5px;
  background:var(--line); overflow:hidden } .fill { height:100%; background:var(--bar) } .before .fill {
  background:var(--old) } .missing .track { background:repeating-linear-gradient(45deg,var(--bad) 0 5px,
  transparent 5px 9px); border:1px solid var(--bad) } .missing .value { color:var(--bad); font-weight:600
  }
.value { text-align:right } .why { color:var(--dim) }
"""


def page(run: Run) -> str:
    """The whole document."""
    run = placed(run, "html")
    shown = [outcome for outcome in run.outcomes if outcome.findings or outcome.verdicts]
    body = articles(run) or "<p>No findings.</p>"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>gradfix</title><style>{STYLE}</style></head>\n"
        f"<body><main><h1>gradfix</h1>{_totals(run, shown)}{body}</main></body></html>\n"
    )


def articles(run: Run) -> str:
    """What is told of each file in which there is something to tell."""
    shown = [outcome for outcome in run.outcomes if outcome.findings or outcome.verdicts]
    return "\n".join(map(_article, shown))


def _totals(run: Run, shown: list[Outcome]) -> str:
    findings = sum(len(outcome.findings) for outcome in shown)
    words = Counter(v.verdict for outcome in shown for v in outcome.verdicts if not v.kind)
    badges = "".join(_badge(word, f"{count} {word}") for word, count in words.most_common())
    said = f"{plural(findings, 'finding')} in {plural(len(shown), 'file')} of {len(run.outcomes):,}"
    return f'<p class="why">{escape(said)}</p><div class="totals">{badges}</div>'


def _badge(word: str, text: str) -> str:
    return f'<span class="badge {word.replace(" ", "-")}">{escape(text)}</span>'


def _article(outcome: Outcome) -> str:
    verdict = next((v for v in outcome.verdicts if not v.kind), None)
    badge = _badge(verdict.verdict, verdict.verdict) if verdict else ""
    why = f'<p class="why">{escape(verdict.reason)}</p>' if verdict else ""
    held = [f"<li>held back: {escape(text)}</li>" for text in (verdict.held_back if verdict else ())]
    chains = "".join(_finding(outcome, finding) for finding in outcome.findings)
    bars = "".join(_bars(verdict)) if verdict else ""
    right = f"<section><h3>gradient norms, logarithmic</h3>{bars}</section>" if verdict else ""
    return (
        f"<article><header><h2>{escape(outcome.path)}</h2>{badge}</header>{why}"
        f"<ul>{''.join(held)}</ul>{chains}"
        f'<div class="sides"><section><h3>rewrite</h3>{_diff(outcome)}</section>{right}</div></article>'
    ).replace("<ul></ul>", "")


def _finding(outcome: Outcome, finding: Finding) -> str:
    own = (v for v in outcome.verdicts if (v.kind, v.line) == (finding.rule, finding.span.line))
    verdict = next(own, None)
    word = f" {_badge(verdict.verdict, verdict.verdict)}" if verdict else ""
    head = f"{finding.code}, line {finding.span.line}: {finding.message}"
    return f"<p>{escape(head)}{word}</p><ul>{''.join(_steps(outcome, finding))}</ul>"


def _steps(outcome: Outcome, finding: Finding) -> Iterator[str]:
    """The evidence as the listing shows it: this file's lines in their order, then those of others."""
    lines = replace(outcome, written=False).lines
    for quote in quotes(finding, lines, None):
        yield _step(f"line {quote.number}", "".join(quote.shown), [mark.role for mark in quote.marks])
    for path in dict.fromkeys(step.path for step in finding.evidence if step.path):
        there = [step for step in finding.evidence if step.path == path]
        for step in sorted(there, key=lambda step: step.span):
            yield _step(f"{path}:{step.span.line}", "", [step.says])


def _step(where: str, text: str, roles: Iterable[str]) -> str:
    said = "; ".join(filter(None, roles))
    return f"<li>{escape(where)} <code>{escape(text.strip())}</code> {escape(said)}</li>"


def _diff(outcome: Outcome) -> str:
    if outcome.after is None or outcome.before is None:
        return '<p class="why">Not rewritten.</p>'
    text = unified(outcome.path, outcome.before, outcome.after).decode(outcome.encoding, "replace")
    signs = {"+": "added", "-": "removed", "@": "hunk"}
    rows = []
    for line in text.splitlines()[2:]:
        kind = signs.get(line[:1], "")
        rows.append(f'<span class="{kind}">{escape(line) or " "}</span>')
    return f"<pre>{''.join(rows)}</pre>"


def _bars(verdict: Verdict) -> Iterator[str]:
    """Two bars for each parameter: before and after the rewrite, on a scale of powers of ten."""
    names = sorted(verdict.after.keys() | verdict.before.keys())
    values = [value for side in (verdict.before, verdict.after) for value in side.values() if value]
    top = math.log10(max(values)) if values else 0.0
    for name in names[:MOST_BARS]:
        rows = (
            _row("before", verdict.before, name, top),
            _row("after", verdict.after, name, top),
        )
        yield f'<div class="parameter"><div class="name">{escape(name)}</div>{"".join(rows)}</div>'
    if len(names) > MOST_BARS:
        yield f'<p class="why">and {len(names) - MOST_BARS:,} more</p>'
    if not names:
        yield '<p class="why">No gradient was seen in either run.</p>'


def _row(side: str, norms: Mapping[str, float | None], name: str, top: float) -> str:
    value = norms.get(name)
    missing = " missing" if value is None else ""
    width = max(2.0, 100 * (1 + (math.log10(value) - top) / DECADES)) if value else 0.0
    return (
        f'<div class="row {side}{missing}"><span>{side}</span>'
        f'<div class="track"><div class="fill" style="width:{min(width, 100):.1f}%"></div></div>'
        f'<span class="value">{norm(value)}</span></div>'
    )
