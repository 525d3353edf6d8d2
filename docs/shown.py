"""What a rule's page shows: one of its fixtures, and all that gradfix itself says and makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from io import StringIO
from pathlib import Path

from docs.drawn import svg
from docs.pictures import before_and_after
from gradfix.config import Config
from gradfix.engine import fix
from gradfix.outcome import Outcome, Run, View
from gradfix.patch import unified
from gradfix.plan import Plan
from gradfix.report.text import render
from gradfix.rule import Finding

ROOT = Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "fixtures"
NAME = "train.py"
EXAMPLES: Mapping[str, str] = {
    "inplace_overwrites_saved": "relu_then_add_script",
    "inplace_on_graph_tensor": "seed_plus_one_after_mul",
    "inplace_on_leaf": "hand_written_regression",
    "inplace_module": "relu_over_tanh",
    "step_before_backward": "one_optimizer_between_losses",
    "leaf_rebound": "linear_regression",
    "write_through_data": "scaled_after_exp",
    "inplace_on_view_of_many": "unbind_coordinates",
    "write_refused": "scaled_after_expand",
    "detached_loss_path": "relu_then_sum",
    "converted_loss_path": "mean_taken_by_numpy",
    "forward_in_no_grad": "forward_and_loss_of_a_loop",
    "no_leaf_requires_grad": "input_without_requires_grad",
    "non_differentiable_loss": "choice_straight_through",
    "requires_grad_on_result": "switched_on_after_detach",
    "severed_term": "item_of_the_penalty",
    "unreached_parameters": "encoder_cut_off_from_its_decoder",
    "grad_of_non_leaf": "scaled_after_requires_grad",
    "unregistered_parameters": "list_comprehension",
    "optimizer_before_replacement": "head_replaced",
    "requires_grad_misspelt": "parameters_meant_frozen",
    "reentrant_checkpoint_cut": "first_layer_of_a_batch",
    "gradient_without_graph": "residual_of_an_equation",
    "non_scalar_backward": "criterion_without_reduction",
    "backward_twice": "same_loss_twice",
    "backward_in_no_grad": "before_a_hand_written_update",
    "numpy_of_graph": "prediction_kept_beside_the_training",
    "missing_zero_grad": "training_loop",
    "zero_grad_before_step": "between_backward_and_step",
    "graph_leak": "epoch_total",
    "clip_before_unscale": "no_unscale",
    "gradient_edit_dropped": "model_is_an_argument",
}
"""The fixture that a page shows, by rule."""


@dataclass(frozen=True)
class Example:
    """A broken program and what gradfix makes of it."""

    rule: str

    @cached_property
    def text(self) -> bytes:
        return (FIXTURES / self.rule / EXAMPLES[self.rule] / "before.py").read_bytes()

    @cached_property
    def outcome(self) -> Outcome:
        chosen = Config(ROOT, unsafe_fixes=True).with_options(extend_select=(self.rule,))
        return fix(NAME, self.text, Plan(chosen))

    @property
    def finding(self) -> Finding:
        return next(each for each in self.outcome.findings if each.rule == self.rule)

    @property
    def listing(self) -> str:
        """The finding as the command line lists it."""
        stream = StringIO()
        render(Run((replace(self.outcome, findings=(self.finding,)),)), stream, View())
        return stream.getvalue()

    @property
    def diff(self) -> str:
        """What `--diff` prints."""
        after = self.outcome.after
        return unified(NAME, self.text, after).decode() if after is not None else ""

    @property
    def pictures(self) -> list[tuple[str, str]]:
        """The graph before and after, each with its caption."""
        before, after = before_and_after(self.text, self.outcome.after, self.finding)
        drawn = [("Before", svg(before, f"The graph of the program with {self.finding.code}"))]
        if after:
            drawn.append(("After", svg(after, "The graph of the program that gradfix makes of it")))
        return drawn


def look_alikes(rule: str) -> list[tuple[str, str]]:
    """The healthy programs of a rule's fixtures, each with what it is about, the shortest first."""
    found = [
        (path.parent.name.replace("_", " "), path.read_text("utf-8"))
        for path in FIXTURES.glob(f"{rule}/*/keep.py")
    ]
    return sorted(found, key=lambda one: (len(one[1].splitlines()), one[0]))
