"""What can only be said when everything has run: the checks at the end, in their order."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from gradfix.defects import Lean, kind_of
from gradfix.defects.reasons import What
from gradfix.tape.checks.asked import check_penalties
from gradfix.tape.checks.dead_addends import dead_addends
from gradfix.tape.checks.leaks import leaked, never_walked, shown_later
from gradfix.tape.checks.logged import note_conversions
from gradfix.tape.checks.misspellings import never_switched
from gradfix.tape.checks.out_of_sight import had_by_strangers
from gradfix.tape.checks.plain_tensors import check_plain_leaves
from gradfix.tape.checks.registration import check_replacements, homeless
from gradfix.tape.checks.unreached import check_frozen_groups, check_unreached
from gradfix.tape.checks.unruled import steps_along
from gradfix.tape.domain.events import Add, Use
from gradfix.tape.domain.why import Why
from gradfix.tape.machine.account import UNFINISHED
from gradfix.tape.machine.dead_terms import constant_terms, severed_terms
from gradfix.tape.machine.gradients import Ended
from gradfix.tape.machine.leafless import leafless_roots
from gradfix.tape.machine.rewraps import rewrapped_leaves

if TYPE_CHECKING:
    from gradfix.tape.interpreter.interpreter import Interpreter
    from gradfix.tape.machine.machine import Machine


def close(entries: Sequence[Interpreter]) -> None:
    """Say what can be said at the end of all entries: what one of them hasn't done, another may have."""
    ended = Ended([vm.machine.gradients for vm in entries])
    ended.supposed += [one.value for vm in entries for one in vm.strangers.supposed.values()]
    with ExitStack() as over:
        for vm in entries:
            over.enter_context(vm.reports.within(repeat=False, ran=[]))
            over.enter_context(vm.grad_mode.within(grad=None))
        _judge(entries, ended)


def _judge(entries: Sequence[Interpreter], ended: Ended) -> None:
    """Check by check, where nothing runs any more."""
    gap: Lean = frozenset({UNFINISHED})
    of_module = entries[0].reports.reported
    with ExitStack() as over:
        for vm in entries:
            if vm.budget.unfinished or entries[0].budget.unfinished:
                over.enter_context(vm.reports.within(granted=vm.reports.granted | gap))
        for vm in entries:
            # with what was judged of the module itself, which comes first
            vm.reports.reported.update(of_module)
            _never(vm, ended)
            dead_addends(vm, [one.machine.severed for one in entries])
    with ExitStack() as over:
        for vm in entries if any(vm.budget.unfinished for vm in entries) else ():
            over.enter_context(vm.reports.within(granted=vm.reports.granted | gap))
        homeless(entries, ended)
        leaked(entries)
        never_switched(entries)
    for vm in entries:
        vm.machine.gradients.note_erasures()
        note_conversions(vm.names)
        note_leaf_writes(vm.machine, ended)
        note_inferred(vm.machine, ended)
    for vm in entries:
        vm.machine.operations.harmless_writes()
    for vm in entries:
        had_by_strangers(vm.machine)


def _never(vm: Interpreter, ended: Ended) -> None:
    """What nothing has reached, used or wanted in all that was run."""
    severed_terms(vm.machine.severed, ended.reached, ended.trained)
    stepped = {id(leaf) for one in ended.optimizers if one.stepped for leaf in one.leaves}
    wanted = {*ended.trained, *map(id, ended.read)} - stepped  # of those it is said by their optimizer
    constant_terms(vm.machine.severed, ended.reached, wanted)
    check_penalties(vm.machine.severed)
    rewrapped_leaves(vm.machine.severed, ended.read, ended.reached)
    if not any(kind_of(kind).leafless for kind, _ in vm.reports.reported):
        leafless_roots(
            vm.machine.severed, [*ended.read, *(leaf for one in ended.optimizers for leaf in one.leaves)]
        )
    never_walked(vm)
    shown_later(vm)
    _never_used(vm, ended)
    check_replacements(vm.notes, ended)
    check_plain_leaves(vm.notes, ended)
    check_unreached(vm.names)
    check_frozen_groups(vm.machine)
    steps_along(vm)


def _never_used(vm: Interpreter, ended: Ended) -> None:
    """Say of a backward that fills some leaves for a step, and others for nobody who is known."""
    filled = [leaf for leaf in vm.machine.leaves.every_leaf if leaf.slot is not None and leaf.parameter]
    adds = {id(leaf): [one for one in leaf.gradient().events if isinstance(one, Add)] for leaf in filled}
    used = {id(add.backward) for leaf in filled if any(isinstance(one, Use) for one in leaf.gradient().events)
            for add in adds[id(leaf)]}  # fmt: skip
    for leaf in filled:
        own = adds[id(leaf)]
        if not own or len(own) < len(leaf.gradient().events) or any(leaf is read for read in ended.read):
            continue
        if all(id(add.backward) in used for add in own):
            reason = "whether somebody uses all gradients that this fills isn't known"
            vm.reports.silence(own[0].backward.place, reason, Why(What.CALLER))


def note_leaf_writes(machine: Machine, ended: Ended) -> None:
    """Writes to leaves are updates where the leaf gets a gradient, or somebody looks for it or freezes it."""
    for draft, leaf, learned in machine.operations.leaf_writes:
        frozen = "frozen" in (leaf.node.facts or ())
        filled = leaf.slot is not None and bool(leaf.slot.events)
        updated = leaf.parameter or filled or frozen or any(leaf is read for read in ended.read)
        role: Literal["update", "value"] = "update" if updated and not learned else draft.facts.role
        machine.reports.note(draft, replace(draft.facts, role=role, frozen=frozen))


def note_inferred(machine: Machine, ended: Ended) -> None:
    """What inference mode has made is a constant where all that it is made of learns otherwise, or never."""
    for draft, behind in machine.operations.keeping.inferred:
        held = [leaf for leaf in behind if not ended.trained or id(leaf) in ended.trained]
        machine.reports.note(draft, replace(draft.facts, saved=all(id(one) in ended.reached for one in held)))
