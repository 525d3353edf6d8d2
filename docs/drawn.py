"""Draws a picture: lines of code, and the graph between them as a log draws its branches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from docs.pictures import Row
from docs.played import Edge, Role

LANE, LINE, TOP = 16, 40, 22
"""How far apart branches and lines are, and where the first one is."""
LETTER = 6.7
"""How wide a letter of code is."""
SHAPES: dict[Role, str] = {
    "leaf": '<circle r="6"/>',
    "constant": '<circle r="3"/>',
    "operation": '<circle r="4.5"/>',
    "plain": '<circle r="3"/>',
    "cut": '<path d="M-5,-5L5,5M-5,5L5,-5"/>',
    "backward": '<path d="M0,-7L7,5L-7,5Z"/>',
    "clear": '<rect x="-5" y="-5" width="10" height="10"/>',
    "step": '<rect x="-5" y="-5" width="10" height="10"/>',
    "other": '<path d="M-4,0L0,-4L4,0L0,4Z"/>',
}
LEGEND: dict[Role, str] = {
    "leaf": "a leaf that requires grad",
    "operation": "an operation in the graph",
    "constant": "a value or operation outside of it",
    "cut": "where it is cut",
    "backward": "a backward, which goes back up from here",
    "step": "what clears or uses gradients",
    "other": "another line that matters",
}


def lanes(rows: Sequence[Row]) -> list[int]:
    """The branch of each row: that of a value which ends there, else the first that is free."""
    last = {
        at: max((i for i, row in enumerate(rows) if at in dict(row.above)), default=at)
        for at in range(len(rows))
    }
    taken: dict[int, int] = {}
    found: list[int] = []
    for i, row in enumerate(rows):
        ending = [taken[at] for at, _ in row.above if last[at] == i]
        for at in [at for at in taken if last[at] <= i]:
            del taken[at]
        free = (lane for lane in range(len(rows)) if lane not in taken.values())
        found.append(min(ending) if ending else next(free))
        if last[i] > i:
            taken[i] = found[i]
    return found


def svg(rows: Sequence[Row], title: str) -> str:
    """The whole picture."""
    where = lanes(rows)
    left = (max(where) + 1) * LANE + 10
    width = left + max(len(f"{row.line} {row.code}") for row in rows) * LETTER + 8
    height = TOP + (len(rows) - 1) * LINE + 28
    parts = [*edges(rows, where), *(node(row, i, where[i], left) for i, row in enumerate(rows))]
    return (
        f'<svg class="graph" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" role="img">'
        f"<title>{escape(title)}</title>{''.join(parts)}</svg>"
    )


def edges(rows: Sequence[Row], where: Sequence[int]) -> Iterator[str]:
    """The way of each value down to what it goes into; what is recorded lies on top."""
    order: list[Edge] = ["plain", "cut", "recorded"]
    every = [(kind, at, i) for i, row in enumerate(rows) for at, kind in row.above]
    for kind, at, i in sorted(every, key=lambda one: order.index(one[0])):
        (x, y), (to, end) = spot(where[at], at), spot(where[i], i)
        bend = end - LINE
        path = f"M{x},{y}V{bend}" + (
            f"C{x},{bend + 24} {to},{bend + 16} {to},{end}" if x != to else f"V{end}"
        )
        yield f'<path class="edge {kind}" d="{path}"/>'


def spot(lane: int, at: int) -> tuple[int, int]:
    return 12 + lane * LANE, TOP + at * LINE


def node(row: Row, at: int, lane: int, left: int) -> str:
    """A row: its sign, its line of code, and what is to be said of it."""
    x, y = spot(lane, at)
    state = " bad" if row.bad else " good" if row.good else ""
    note = "; ".join(row.notes)
    return (
        f'<g class="{row.role}{state}"><g class="sign" transform="translate({x},{y})">{SHAPES[row.role]}</g>'
        f'<text class="code" x="{left}" y="{y + (0 if note else 4)}">'
        f'<tspan class="line">{row.line or ""} </tspan>{escape(row.code)}</text>'
        + (f'<text class="note" x="{left}" y="{y + 14}">{escape(note)}</text>' if note else "")
        + "</g>"
    )


def legend() -> str:
    """What the signs mean."""
    signs = (
        f'<span><svg class="graph" width="16" height="16" viewBox="-8 -8 16 16"><g class="{role}">'
        f'<g class="sign">{SHAPES[role]}</g></g></svg> {meaning}</span>'
        for role, meaning in LEGEND.items()
    )
    return f'<p class="legend">{" ".join(signs)}</p>'
