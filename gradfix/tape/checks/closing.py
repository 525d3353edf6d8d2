"""What can only be said when everything has run: the checks at the end, in their order."""

from __future__ import annotations

from gradfix.tape.checks.leaks import leaked
from gradfix.tape.checks.logged import say_what_is_logged
from gradfix.tape.checks.plain_tensors import check_plain_leaves
from gradfix.tape.checks.registration import check_replacements, check_unreached, homeless
from gradfix.tape.interpreter.interpreter import Interpreter


def close(vm: Interpreter) -> None:
    """What can only be said when everything has run."""
    vm.repeat, vm.grad = False, None
    reached = vm.reached()
    vm.severed_terms(reached)
    vm.rewrapped_leaves(vm.read_grads, reached)
    if not any(kind == "requires_grad_misspelt" for kind, _ in vm.found):
        vm.leafless_roots(
            [*vm.read_grads, *(leaf for optimizer in vm.optimizers for leaf in optimizer.leaves)]
        )
    leaked(vm)
    check_replacements(vm)
    check_plain_leaves(vm)
    check_unreached(vm)
    homeless(vm)
    vm.harmless_writes()
    say_what_is_logged(vm)
    for leaf, facts in vm.watched_leaves:
        if (
            leaf.parameter
            or (leaf.slot is not None and leaf.slot.events)
            or any(leaf is read for read in vm.read_grads)
        ):
            facts["role"] = "update"
