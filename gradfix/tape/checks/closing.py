"""What can only be said when everything has run: the checks at the end, in their order."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from gradfix.tape.checks.leaks import leaked
from gradfix.tape.checks.logged import say_what_is_logged
from gradfix.tape.checks.plain_tensors import check_plain_leaves
from gradfix.tape.checks.registration import check_replacements, check_unreached, homeless
from gradfix.tape.interpreter.interpreter import Interpreter
from gradfix.tape.machine.gradients import Ended


def close(entries: Sequence[Interpreter]) -> None:
    """Say what can be said at the end of all entries: what one of them hasn't done, another may have."""
    ended = Ended(entries)
    of_module = entries[0].reported
    with ExitStack() as over:
        for vm in entries:
            vm.reported.update(of_module)
            over.enter_context(vm.within(repeat=False, grad=None, ran=[]))
        _judge(entries, ended)


def _judge(entries: Sequence[Interpreter], ended: Ended) -> None:
    """Check by check, where nothing runs any more."""
    for vm in entries:
        vm.severed_terms(ended.reached, ended.trained)
        vm.rewrapped_leaves(ended.read, ended.reached)
        if not any(kind == "requires_grad_misspelt" for kind, _ in vm.reported):
            vm.leafless_roots([*ended.read, *(leaf for one in ended.optimizers for leaf in one.leaves)])
        leaked(vm)
        check_replacements(vm, ended)
        check_plain_leaves(vm, ended)
        check_unreached(vm)
    homeless(entries, ended)
    for vm in entries:
        vm.harmless_writes()
        vm.say_what_fills()
        say_what_is_logged(vm)
        for leaf, facts in vm.watched_leaves:
            gets_some = leaf.slot is not None and bool(leaf.slot.events)
            if leaf.parameter or gets_some or any(leaf is read for read in ended.read):
                facts["role"] = "update"
