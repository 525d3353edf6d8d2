"""What is wrong with a step for any leaves that its optimizer may hold: nothing has come, or it was used."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gradfix.defects import Assumption, Convention, Role
from gradfix.defects.ordered import EarlyClear, NotCleared
from gradfix.tape.domain.events import Add, Backward, Clear, Doubt, Use, shared
from gradfix.tape.domain.paths import beyond, contradicts, implies

if TYPE_CHECKING:
    from gradfix.tape.domain.why import Why
    from gradfix.tape.interpreter.state import Strangers
    from gradfix.tape.machine.account import Account
    from gradfix.tape.strangers.assumed_optimizers import Supposed

BY_USE = frozenset({Convention.B})


def nothing_left(strangers: Strangers, own: Supposed, events: list[Any], node: ast.AST) -> None:
    """A step after what arrived was cleared, with nothing between that could have brought more."""
    clear: Clear | None = None
    lost: list[Add] = []
    doubts: list[Why] = []
    for event in _open(strangers, events):
        if isinstance(event, Doubt) and event.why is not None and clear is None:
            doubts.append(event.why)
        elif isinstance(event, Clear) and event.must and implies(strangers.here.path, event.path):
            clear = clear or event
        elif isinstance(event, Add) and clear is not None:
            lost.append(event)
        else:
            break
    if clear is None or not lost:
        return
    meant = strangers.machine.gradients.meant(lost)
    first = meant.backward
    if any(lost[0].backward.number < number < clear.number for number in strangers.machine.optimizers.steps):
        return  # another optimizer has stepped since: what was cleared may have been for that one
    steps = [(first.place, Role.FILLS), (clear.place, Role.ERASES_THEM)]
    draft = strangers.reports.draft(
        "zero_grad_before_step",
        clear.place,
        [*steps, (strangers.here.at(node), Role.STEPS_WITHOUT)],
        EarlyClear(
            backward=strangers.reports.span(first.place),
            step=strangers.reports.span(strangers.here.at(node)),
            optimizer=own.optimizer.name,
            between=strangers.machine.gradients.since_step(events, meant, own.optimizer.leaves),
        ),
        lean=BY_USE,
        when=beyond(shared(lost, meant), strangers.here.path - strangers.here.assumed),
        account=_of(strangers, Assumption.NOBODY_ELSE_FILLS, doubts),
    )
    strangers.machine.gradients.erased_before(strangers.timeline.newest, draft, own.optimizer.leaves)


def too_early(strangers: Strangers, own: Supposed, backward: Backward, calls: set[int]) -> None:
    """Note a step on cleared gradients between the forward of a loss and its backward."""
    use: Use | None = None
    forward = False
    for event in reversed(own.leaf.gradient().events):
        if contradicts(event.path, strangers.here.path):
            continue
        if isinstance(event, Doubt) and use is not None and id(event.call) in calls:
            forward = True
        elif isinstance(event, Use) and use is None and implies(strangers.here.path, event.path):
            use = event
        elif isinstance(event, Clear) and event.must and forward and use is not None:
            strangers.early.append((own, event, use, backward))
            return
        else:
            return


def report_early_steps(strangers: Strangers) -> None:
    """At the end of what is executed on its own: steps that came too early and were not made up for."""
    for own, clear, use, backward in strangers.early:
        after = [one for one in own.leaf.gradient().events if getattr(one, "backward", None) is backward]
        events = own.leaf.gradient().events
        later = events[events.index(after[0]) + 1 :] if after else []
        if any(isinstance(one, (Use, Add, Doubt)) for one in later):
            continue
        draft = strangers.reports.draft(
            "zero_grad_before_step",
            clear.place,
            [
                (clear.place, Role.ERASES),
                (use.place, Role.STEPS_WITHOUT),
                (backward.place, Role.FILLS_NEXT),
            ],
            EarlyClear(
                backward=strangers.reports.span(backward.place),
                step=strangers.reports.span(use.place),
                optimizer=own.optimizer.name,
                between=strangers.machine.optimizers.between(
                    use.moment, backward.moment, own.optimizer.leaves
                ),
            ),
            lean=BY_USE,
            when=backward.path,
            account=_of(strangers, Assumption.NOBODY_ELSE_FILLS, []),
        )
        strangers.machine.gradients.erased_before(use.moment, draft, own.optimizer.leaves)
    strangers.early.clear()


def used_before(strangers: Strangers, own: Supposed, events: list[Any], node: ast.AST) -> None:
    """A step on gradients that an earlier one used, with nothing between that could have cleared them."""
    use: Use | None = None
    fresh: list[Add] = []
    stale = False
    cleared = any(isinstance(event, Clear) and event.must for event in events)
    doubts: list[Why] = [] if cleared else [own.value.why]  # its own step may do that
    for event in _open(strangers, events):
        if isinstance(event, Use):
            use = use or event
        elif isinstance(event, Doubt) and event.why is not None:
            doubts.append(event.why)
        elif not isinstance(event, Add):
            return
        elif use is None:
            fresh.append(event)
        else:
            stale = True
            break
    if use is None or not stale or not fresh:
        return
    first = fresh[-1].backward
    between = strangers.machine.optimizers.between(use.moment, first.moment, own.optimizer.leaves)
    strangers.reports.report(
        "missing_zero_grad",
        first.place,
        [(first.place, Role.ADDS), (use.place, Role.ALREADY_USED)],
        NotCleared(
            optimizer=own.optimizer.name,
            step=strangers.reports.span(strangers.here.at(node)),
            between=between,
        ),
        lean=BY_USE,
        when=use.path - strangers.here.path,
        account=_of(strangers, Assumption.NOBODY_ELSE_CLEARS, doubts),
    )


def _open(strangers: Strangers, events: list[Any]) -> Iterator[Any]:
    """The events that can have happened here, newest first, without calls that are part of a forward."""
    for event in reversed(events):
        forward = isinstance(event, Doubt) and id(event.call) in strangers.fed
        if not forward and not contradicts(event.path, strangers.here.path):
            yield event


def _of(strangers: Strangers, sought: Assumption, doubts: list[Why]) -> Account:
    """The account of what stands for all that an optimizer may hold: every unknown call may get at it."""
    return strangers.machine.leaves.accounts.of(sought, doubts)
