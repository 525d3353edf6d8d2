"""Backwards and steps of which code that isn't followed had the leaves, or a graph that leads there.

What it did with them may be what a rule looks for, or what keeps it silent: whoever asks why nothing is said
of such a backward or step is told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradfix.tape.domain.events import Backward
from gradfix.tape.domain.graph import Tensor
from gradfix.tape.domain.values import Foreign
from gradfix.tape.machine.account import why_of_call
from gradfix.tape.machine.deeds import doubt
from gradfix.tape.machine.here import span_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gradfix.tape.domain.moments import Moment
    from gradfix.tape.machine.machine import Machine

HAD = "what code that isn't followed has done to this isn't known"


def had_by_strangers(machine: Machine) -> None:
    """At the end: the deeds of one entry, each with a call that could get at what it is about."""
    seen: dict[int, Moment | None] = {}
    told = {span for span, _ in machine.reports.findings.silences}
    for moment in machine.timeline.moments:
        place = moment.place
        if moment.deed not in ("steps", "fills") or place is None or isinstance(place, Foreign):
            continue
        if span_of(place) in told:
            continue
        leaf = next(_leaves(machine, moment), None)  # code that has one of them mostly has them all
        if leaf is not None and id(leaf) not in seen:
            seen[id(leaf)] = next(machine.leaves.accounts.strangers(leaf), None)
        call = seen[id(leaf)] if leaf is not None else None
        if call is not None and call.number < moment.number:
            doubt(machine.reports, place, HAD, why_of_call(call))


def _leaves(machine: Machine, moment: Moment) -> Iterator[Tensor]:
    """What a step writes, or what a backward has reached."""
    for one in moment.what:
        if isinstance(one, Tensor):
            yield one
        elif isinstance(one, Backward):
            yield from (leaf for leaf in machine.leaves.every_leaf if id(leaf.node) in one.met)
