"""The health of a code base as one self-contained page: a bar for the whole, a table for each file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from gradfix.report.health import by_file, counted, listed, reasons, told
from gradfix.report.html import STYLE
from gradfix.report.html import articles as findings
from gradfix.report.wording import plural

if TYPE_CHECKING:
    from gradfix.health.checked import Checked, Health, State

WORDS: Mapping[State, str] = {
    "flows": "gradients flow",
    "partly": "a part gets none",
    "none": "no gradient",
    "broken": "broken",
    "not run": "not run",
}
OWN = """
.share { display:flex; height:14px; border-radius:7px; overflow:hidden; margin:12px 0;
  background:var(--line) }
.share i { display:block; min-width:3px } .legend { display:flex; flex-wrap:wrap; gap:4px 16px;
  font-size:13px; margin:0 0 24px; padding:0; list-style:none } .legend b { display:inline-block; width:10px;
  height:10px; border-radius:3px; margin-right:6px }
.s-flows { background:var(--good) } .s-partly { background:var(--half) } .s-none { background:var(--old) }
.s-broken { background:var(--bad) } .s-not-run { background:var(--line); outline:1px solid var(--old);
  outline-offset:-1px }
.t-flows { color:var(--good) } .t-partly,.t-none { color:var(--half) } .t-broken { color:var(--bad) }
.t-not-run { color:var(--dim) }
table { border-collapse:collapse; width:100%; margin-top:10px; font-size:14px } td { padding:6px 12px 6px 0;
  border-top:1px solid var(--line); vertical-align:top; overflow-wrap:anywhere } td:first-child { width:26% }
td.state { width:20%; font-weight:600 } td ul { margin:0; padding-left:18px } details { margin:4px 0 }
summary { cursor:pointer; color:var(--dim); font-size:13px } code { font-size:13px }
"""


def page(health: Health) -> str:
    """The whole document."""
    files = "\n".join(_file(path, modules) for path, modules in by_file(health.modules).items())
    found = findings(health.run)
    told = f"<h2>Findings</h2>{found}<h2>Modules</h2>" if found else ""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>gradfix: health</title><style>{STYLE}{OWN}</style></head>\n"
        f"<body><main><h1>gradfix: health of the gradients</h1>{_totals(health)}{told}{files}"
        "</main></body></html>\n"
    )


def _totals(health: Health) -> str:
    if health.broken:
        return f'<p class="why">Nothing could be run: {escape(health.broken)}</p>'
    shares = [(state, count) for state in WORDS if (count := health.counts[state])]
    bar = "".join(f'<i class="{_class("s", state)}" style="flex:{count}"></i>' for state, count in shares)
    legend = "".join(
        f'<li><b class="{_class("s", state)}"></b>{count:,} {WORDS[state]}</li>' for state, count in shares
    )
    said = f'<p class="why">{escape(counted(health))}</p>'
    return f'{said}<div class="share">{bar}</div><ul class="legend">{legend}</ul>'


def _class(kind: str, state: State) -> str:
    return f"{kind}-{state.replace(' ', '-')}"


def _file(path: str, modules: Sequence[Checked]) -> str:
    rows = "".join(map(_row, modules))
    return (
        f"<article><header><h2>{escape(path)}</h2>"
        f'<span class="badge">{plural(len(modules), "module")}</span></header>'
        f"<table>{rows}</table></article>"
    )


def _row(module: Checked) -> str:
    count = ""
    if module.parameters:
        count = f"{module.reached:,} of {plural(module.parameters, 'parameter')}"
    told = "".join(f"<li>{escape(text)}</li>" for text in _told(module))
    return (
        f'<tr><td><code>{escape(module.name)}</code> <span class="why">line {module.line}</span></td>'
        f'<td class="state {_class("t", module.state)}">{WORDS[module.state]}</td>'
        f"<td>{escape(count)}{f'<ul>{told}</ul>' if told else ''}{_driver(module)}</td></tr>"
    )


def _told(module: Checked) -> Iterator[str]:
    if module.reason:
        yield module.reason
    for one in module.broken:
        yield f"{one.path}:{one.line}: {f'{one.code} ' if one.code else ''}{one.message}"
    for where, starved in told(module):
        for says, names in reasons(starved).items():
            yield f"{where}{listed(names)}: {says}"


def _driver(module: Checked) -> str:
    """The program that ran it, to be unfolded."""
    if not module.driver:
        return ""
    assumed = "".join(f"<li>{escape(each)}</li>" for each in module.assumed)
    lines = "".join(f"<span>{escape(line) or ' '}</span>" for line in module.driver.splitlines())
    listing = f"<ul>{assumed}</ul>" if assumed else ""
    return f"<details><summary>how it was run</summary>{listing}<pre>{lines}</pre></details>"
