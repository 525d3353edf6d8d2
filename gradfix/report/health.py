"""The health of a code base for a person: by file, what gets no gradient and why, and what didn't run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, TextIO

from gradfix.report.screen import Line, Piece, cells, columns, harmless, write
from gradfix.report.summary import render as summary
from gradfix.report.text import render as listing
from gradfix.report.wording import plural

if TYPE_CHECKING:
    from gradfix.health.checked import Checked, Health, Starved, State
    from gradfix.outcome import View

STYLES: Mapping[State, str] = {
    "broken": "bold red",
    "partly": "yellow",
    "none": "yellow",
    "not run": "dim",
    "flows": "green",
}
INDENT = " " * 4
MOST_NAMES = 4


def show(health: Health, view: View, out: TextIO, err: TextIO) -> None:
    """Print all that there is to say: the findings, the modules; failures and counts on `err`."""
    if view.output_format == "json":
        from gradfix.report.health_json import render as as_json

        as_json(health, out, view)
    else:
        listing(health.run, out, view)
        render(health, out, view)
    out.flush()
    summary(health.run, err, view)
    closing(health, err, view)
    err.flush()


def render(health: Health, stream: TextIO, view: View) -> None:
    """Write what became of the modules; of those through which gradients flow, how many there are."""
    width = columns()
    for path, modules in by_file(health.modules).items():
        write(stream, _file(path, modules, view.verbose, width), view.colour)


def closing(health: Health, stream: TextIO, view: View) -> None:
    """Write what all of it comes to."""
    if health.broken:
        line = [Piece("nothing could be run: ", "bold red"), Piece(harmless(health.broken))]
    else:
        line = [Piece(counted(health))]
    write(stream, _wrapped(line, columns()), view.colour and stream.isatty())


def by_file(modules: Sequence[Checked]) -> dict[str, list[Checked]]:
    """The modules of each file, in order."""
    found: dict[str, list[Checked]] = {}
    for one in modules:
        found.setdefault(one.path, []).append(one)
    return found


def counted(health: Health) -> str:
    """All modules in one sentence."""
    counts, files = health.counts, len(by_file(health.modules))
    said = {
        "flow": counts["flows"] + counts["partly"],
        "broken": counts["broken"],
        "without any gradient": counts["none"],
        "not run": counts["not run"],
    }
    partly = f" ({counts['partly']:,} with a part that gets none)" if counts["partly"] else ""
    parts = [f"{count:,} {what}{partly if what == 'flow' else ''}" for what, count in said.items() if count]
    what = f"{plural(len(health.modules), 'module')} in {plural(files, 'file')}"
    return f"{what}: {', '.join(parts)}." if parts else "No modules."


def _file(path: str, modules: Sequence[Checked], verbose: bool, width: int) -> Iterator[Line]:
    flowing = [one for one in modules if one.state == "flows"]
    told = [one for one in modules if verbose or one.state != "flows" or notable(one)]
    yield [Piece(harmless(path), "bold"), Piece(": "), *_head(modules, flowing)]
    for one in told:
        yield [Piece(f"  {harmless(one.name)}", "bold"), Piece(f", line {one.line}: "), *_state(one)]
        yield from _reasons(one, width)


def notable(module: Checked) -> bool:
    """Whether something of a module that flows is worth a line: what is frozen is not."""
    return bool(module.apart) or any(each.why != "frozen" for each in module.starved)


def _head(modules: Sequence[Checked], flowing: Sequence[Checked]) -> Line:
    if len(flowing) == len(modules):
        which = "its module" if len(modules) == 1 else f"all {len(modules)} modules"
        return [Piece(f"gradients flow through {which}", STYLES["flows"])]
    return [Piece(f"gradients flow through {len(flowing)} of {plural(len(modules), 'module')}")]


def _state(module: Checked) -> Line:
    style = STYLES[module.state]
    if module.state == "not run":
        return [Piece("not run", style)]
    if module.state == "broken":
        return [Piece("broken", style)]
    if not module.parameters:
        return [Piece("flows" if module.state == "flows" else "no gradient comes through", style)]
    if module.reached == module.parameters:
        return [Piece(f"gradients reach {plural(module.parameters, 'parameter')}", style)]
    return [Piece(f"gradients reach {module.reached:,} of {plural(module.parameters, 'parameter')}", style)]


def _reasons(module: Checked, width: int) -> Iterator[Line]:
    if module.reason:
        yield from _wrapped([Piece(INDENT), Piece(harmless(module.reason), "dim")], width, INDENT)
    for one in module.broken:
        code = f"{one.code} " if one.code else ""
        place = f"{one.path}:{one.line}: {code}{one.message}"
        yield from _wrapped([Piece(INDENT), Piece(harmless(place), "red")], width, INDENT)
    for where, starved in told(module):
        for says, names in reasons(starved).items():
            yield from _wrapped(
                [Piece(INDENT), Piece(f"{where}{listed(names)}: {harmless(says)}")], width, INDENT
            )


def told(module: Checked) -> Iterator[tuple[str, Sequence[Starved]]]:
    """What gets no gradient at all, then what gets none from one of several outputs."""
    yield "", module.starved
    for one in module.apart:
        yield f"from output {harmless(one.output)} alone, ", one.cut


def reasons(starved: Sequence[Starved]) -> dict[str, list[str]]:
    """The parameters that get no gradient, by why."""
    found: dict[str, list[str]] = {}
    for one in starved:
        found.setdefault(one.says, []).append(one.name)
    return found


def listed(names: Sequence[str]) -> str:
    """The first of some names, and how many more there are."""
    shown = [harmless(name) for name in names[:MOST_NAMES]]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _wrapped(line: Line, width: int, hang: str = "") -> Iterator[Line]:
    """A line whose last piece is broken where the terminal ends."""
    *head, last = line
    began = " " * sum(cells(piece.text) for piece in head)
    rows = wrap(
        last.text,
        width,
        initial_indent=began,
        subsequent_indent=hang,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [began]
    yield [*head, Piece(rows[0].removeprefix(began), last.style)]
    yield from ([Piece(row, last.style)] for row in rows[1:])
