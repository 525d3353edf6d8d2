"""What a rewrite has changed besides: the loss, weights, buffers, and who learns from what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gradfix.verify.verdicts import Facts, listed, named

NEAR = 1e-5
DECAY = "weight_decay"
Lines = Mapping[str, Mapping[int, int]]
"""File -> line before -> the same line after."""


def consequences(before: Facts, after: Facts, lines: Lines) -> str:
    """The first of what nobody asked for; empty where there is none."""
    values = (*losses(before, after), *returned(before, after))
    found = (*values, *rules(before, after), *weights(before, after), *buffers(before, after))
    return next(iter((*found, *learners(before, after, lines))), "")


def differ(one: float | None, other: float | None) -> bool:
    """Whether two numbers are more apart than rounding explains."""
    if one is None or other is None:
        return False
    return abs(one - other) > NEAR * max(abs(one), abs(other))


def events(seen: Facts, kind: str) -> list[Any]:
    """The events of one kind, in order."""
    return [event for event in seen.recording["events"] if event["event"] == kind]


def losses(before: Facts, after: Facts) -> Iterator[str]:
    """No rewrite changes a forward value: the first loss is what it was."""
    one, other = (next(iter(events(seen, "backward")), None) for seen in (before, after))
    if one is not None and other is not None and differ(one["root"]["value"], other["root"]["value"]):
        yield f"the first loss changes from {one['root']['value']:.4g} to {other['root']['value']:.4g}"


def returned(before: Facts, after: Facts) -> Iterator[str]:
    """Nor what the program's own modules return before the first backward."""
    one, other = (next(iter(events(seen, "returned")), None) for seen in (before, after))
    pairs = list(zip(one["values"], other["values"], strict=False)) if one and other else []
    if any(was[0] != now[0] for was, now in pairs):
        return
    for (name, was), (_, now) in pairs:
        if differ(was, now):
            yield f"what {name} returns changes in the first step (its norm from {was:.4g} to {now:.4g})"


def told(seen: Facts, what: str) -> dict[str, Any]:
    """One part of all first updates, by the names that the program has for the parameters."""
    found: dict[str, Any] = {}
    for event in events(seen, "update"):
        found.update(event[what])
    return {name: found[name] for name in named(found)}


def rules(before: Facts, after: Facts) -> Iterator[str]:
    """The numbers by which each parameter is stepped stay."""
    one, other = told(before, "options"), told(after, "options")
    changed: dict[tuple[str, float, float], list[str]] = {}
    for name in one.keys() & other.keys():
        for option in one[name].keys() & other[name].keys():
            if differ(one[name][option], other[name][option]):
                changed.setdefault((option, one[name][option], other[name][option]), []).append(name)
    for (option, was, now), names in sorted(changed.items()):
        count = f"{len(names)} parameter{'s' if len(names) > 1 else ''}"
        if option == DECAY and not now:
            yield f"the decay of {count} is gone ({listed(sorted(names))})"
        else:
            yield f"{option} of {count} changes from {was:g} to {now:g} ({listed(sorted(names))})"


def first_norms(seen: Facts) -> dict[str, float | None]:
    """What the first step of each optimizer found in its parameters."""
    found: dict[str, float | None] = {}
    for event in events(seen, "step"):
        for name, at in event["parameters"].items():
            found.setdefault(name, at["norm"])
    return found


def weights(before: Facts, after: Facts) -> Iterator[str]:
    """Where the gradient is the same, the weight is it as well after the step."""
    one, other = told(before, "weights"), told(after, "weights")
    given, now = first_norms(before), first_norms(after)
    same = [name for name in one.keys() & other.keys() if given.get(name) and given[name] == now.get(name)]
    moved = sorted(name for name in same if differ(one[name], other[name]))
    if moved:
        yield f"the same gradient makes another weight of {listed(moved)}"


def buffers(before: Facts, after: Facts) -> Iterator[str]:
    """What modules keep besides their parameters is the same when the first step is over."""
    one, other = (next(iter(events(seen, "update")), None) for seen in (before, after))
    if one is None or other is None:
        return
    moved = sorted(
        n for n in one["buffers"].keys() & other["buffers"] if differ(one["buffers"][n], other["buffers"][n])
    )
    if moved:
        yield f"the first step ends with another buffer: {listed(moved)}"


def learners(before: Facts, after: Facts, lines: Lines) -> Iterator[str]:
    """Nobody starts to learn from a loss of others, who has learned from one of his own all along."""
    back = {path: {new: old for old, new in kept.items()} for path, kept in lines.items()}
    one, other = learned(before, {}), learned(after, back)
    held = {name: event["optimizer"] for event in events(before, "update") for name in event["learned"]}
    for place in sorted(set().union(*other.values())):
        own = {held[name] for name, places in one.items() if place in places}
        new = [name for name, places in other.items() if place in places and one.get(name)]
        strangers = [name for name in new if held[name] not in own]
        if own and strangers:
            who = f"{listed(strangers)} of {held[strangers[0]]}"
            yield f"{who} now learn from the backward in line {place[1]}"


def learned(seen: Facts, back: Lines) -> dict[str, set[tuple[str, int]]]:
    """Parameter -> the lines, as before the rewrite, of the backwards that its first step has used."""
    return {
        name: {(place["file"], before_line(back.get(place["file"]), place["line"])) for place in places}
        for name, places in told(seen, "learned").items()
    }


def before_line(back: Mapping[int, int] | None, line: int) -> int:
    """A line of the new text in the old one; one that was rewritten by the last before it that was not."""
    known = next((one for one in range(line, 0, -1) if one in back), 0) if back is not None else 0
    return back[known] + line - known if back is not None and known else line
