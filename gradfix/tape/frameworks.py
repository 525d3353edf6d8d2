"""Frameworks as data: who calls backward, who steps and clears, what a method is entered with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

BACKWARD_OF_ARGUMENT: Mapping[str, frozenset[str]] = {
    "Accelerator": frozenset({"backward"}),
    "Fabric": frozenset({"backward"}),
    "initialize": frozenset({"backward"}),
    "[0]": frozenset({"backward"}),
}
"""Objects (by the name of what made them) whose methods run backward on their first argument."""

PREPARES: Mapping[str, frozenset[str]] = {
    "Accelerator": frozenset({"prepare", "prepare_model", "unwrap_model", "gather", "reduce"}),
    "Fabric": frozenset({"setup", "setup_module", "setup_dataloaders", "to_device"}),
}
"""Methods that return what they are given, ready for use."""

SETS_UP: Mapping[str, frozenset[str]] = {
    "Accelerator": frozenset({"accumulate", "autocast", "no_sync", "print", "log", "wait_for_everyone"}),
    "Fabric": frozenset({"autocast", "no_backward_sync", "print", "log", "launch"}),
}
"""Methods that leave gradients alone."""


@dataclass(frozen=True, slots=True)
class Entry:
    """How a framework calls a method: in which grad mode, and what becomes of its result."""

    grad: bool = True
    root: bool = False
    """Whether the result (or its "loss") is backpropagated."""
    owns_steps: bool = False
    """Whether clearing and stepping are the framework's."""


LIGHTNING = frozenset({"LightningModule"})
ENTRIES: Mapping[str, Mapping[str, Entry]] = {
    "LightningModule": {
        "training_step": Entry(root=True, owns_steps=True),
        "validation_step": Entry(grad=False),
        "test_step": Entry(grad=False),
        "predict_step": Entry(grad=False),
        "on_validation_epoch_end": Entry(grad=False),
        "on_test_epoch_end": Entry(grad=False),
        "validation_epoch_end": Entry(grad=False),
        "test_epoch_end": Entry(grad=False),
    },
    "Trainer": {"compute_loss": Entry(root=True, owns_steps=True), "prediction_step": Entry(grad=False)},
    "Seq2SeqTrainer": {
        "compute_loss": Entry(root=True, owns_steps=True),
        "prediction_step": Entry(grad=False),
    },
    "NeuralNet": {"get_loss": Entry(root=True, owns_steps=True)},
}
"""Methods that a framework calls, by the name of the base class."""
