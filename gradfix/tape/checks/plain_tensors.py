"""Tensors that a module keeps as plain attributes: they require grad, and are no parameters of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradfix.defects import Assumption, Role
from gradfix.defects.records import Unregistered
from gradfix.tape.domain.events import Add, Use
from gradfix.tape.domain.graph import Tensor
from gradfix.tape.domain.values import Foreign
from gradfix.tape.effects.operations import having
from gradfix.tape.interpreter.origins import factory_inside
from gradfix.tape.machine.cuts import leaves_behind
from gradfix.tape.torch.modules import leaves

if TYPE_CHECKING:
    from gradfix.tape.domain.definitions import Instance
    from gradfix.tape.interpreter.interpreter import Interpreter
    from gradfix.tape.interpreter.occasions import Built
    from gradfix.tape.interpreter.state import Notes
    from gradfix.tape.machine.gradients import Ended
    from gradfix.tape.machine.reports import Reports

BLANK = having("blank")
"""What makes the beginning of something that is to be learnt: nobody knows a random number beforehand, and
adding or multiplying zeros for ever is pointless."""


def note_plain_leaves(vm: Interpreter, built: Built) -> None:
    """Tensors of a new module that require grad, and are no parameters of it."""
    vm.notes.plain_leaves.extend(_plain_leaves(vm.reports, built.instance))


def _plain_leaves(reports: Reports, instance: Instance) -> Iterator[tuple[Instance, str, Tensor, Tensor]]:
    """Them by name, and the leaves that they are, or are the result of."""
    if instance.cls.file != reports.findings.main:
        return
    for name, value in instance.attrs.items():
        if not isinstance(value, Tensor) or value.requires is not True or isinstance(value.place, Foreign):
            continue
        if value.leaf is True and not value.parameter:
            yield instance, name, value, value
        elif value.leaf is False and factory_inside(reports, value) is not None:
            yield from ((instance, name, value, leaf) for leaf in leaves_behind(value.node)[:1])


def check_plain_leaves(notes: Notes, ended: Ended) -> None:
    """At the end: those whose gradients nobody uses, though the parameters of their module are trained."""
    for instance, name, tensor, leaf in notes.plain_leaves:
        events = leaf.slot.events if leaf.slot is not None else []
        used = any(isinstance(event, Use) for event in events) or not ended.updated.isdisjoint(
            (id(leaf), id(tensor))
        )
        read = any(one is leaf or one is tensor for one in ended.read)
        if used or read or not any(isinstance(event, Add) and event.must for event in events):
            continue
        if not leaf.parameter and not any((node.facts or {}).get("factory") in BLANK
                                          for node in (leaf.node, *leaf.node.parents)):  # fmt: skip
            continue  # a known constant may be told to require grad by habit
        registered = {id(one) for one in leaves(notes.machine, instance)[0]}
        steppers = [one for one in ended.optimizers if one.stepped]
        if any(one is leaf or one is tensor for stepper in ended.optimizers for one in stepper.leaves):
            continue
        held = next((one for one in steppers if any(id(own) in registered for own in one.leaves)), None)
        if held is not None and held.complete:
            steps = [(tensor.place, Role.UNREGISTERED), (held.place, Role.TAKES_REGISTERED)]
            facts = Unregistered(
                attribute=name,
                container="tensor",
                holds="parameters",
                factory=factory_inside(notes.reports, tensor),
            )
            account = ended.held(Assumption.NOBODY_ELSE_USES, [leaf, tensor])
            notes.reports.report("unregistered_parameters", tensor.place, steps, facts, account=account)
