"""What can only be said when everything has run: the checks at the end, in their order."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

from gradfix.defects import Assumption, Lean, kind_of
from gradfix.tape.checks.leaks import leaked, never_walked
from gradfix.tape.checks.logged import note_conversions
from gradfix.tape.checks.plain_tensors import check_plain_leaves
from gradfix.tape.checks.registration import check_replacements, check_unreached, homeless
from gradfix.tape.interpreter.interpreter import Interpreter
from gradfix.tape.machine.gradients import Ended


def close(entries: Sequence[Interpreter]) -> None:
    """Say what can be said at the end of all entries: what one of them hasn't done, another may have."""
    ended = Ended(entries)
    with ExitStack() as over:
        for vm in entries:
            over.enter_context(vm.within(repeat=False, grad=None, ran=[]))
        _judge(entries, ended)


def _judge(entries: Sequence[Interpreter], ended: Ended) -> None:
    """Check by check, where nothing runs any more."""
    gap: Lean = frozenset({Assumption.ALL_HAS_RUN})
    of_module = entries[0].reported
    with ExitStack() as over:
        for vm in entries:
            if vm.unfinished or entries[0].unfinished:
                over.enter_context(vm.within(granted=vm.granted | gap))
        for vm in entries:
            vm.reported.update(of_module)  # with what was judged of the module itself, which comes first
            _never(vm, ended)
    with ExitStack() as over:
        for vm in entries if any(vm.unfinished for vm in entries) else ():
            over.enter_context(vm.within(granted=vm.granted | gap))
        homeless(entries, ended)
    leaked(entries)
    for vm in entries:
        vm.note_erasures()
        note_conversions(vm)
        note_leaf_writes(vm, ended)
    for vm in entries:
        vm.harmless_writes()


def _never(vm: Interpreter, ended: Ended) -> None:
    """What nothing has reached, used or wanted in all that was run."""
    vm.severed_terms(ended.reached, ended.trained)
    vm.rewrapped_leaves(ended.read, ended.reached)
    if not any(kind_of(kind).leafless for kind, _ in vm.reported):
        vm.leafless_roots([*ended.read, *(leaf for one in ended.optimizers for leaf in one.leaves)])
    never_walked(vm)
    check_replacements(vm, ended)
    check_plain_leaves(vm, ended)
    check_unreached(vm)


def note_leaf_writes(vm: Interpreter, ended: Ended) -> None:
    """Writes to leaves are updates where the leaf gets a gradient, or somebody looks for it."""
    for draft, leaf in vm.leaf_writes:
        gets_some = leaf is not None and leaf.slot is not None and bool(leaf.slot.events)
        if leaf is not None and (leaf.parameter or gets_some or any(leaf is read for read in ended.read)):
            vm.note(draft.defect(replace(draft.facts, role="update")))
        else:
            vm.note(draft.defect(draft.facts))
