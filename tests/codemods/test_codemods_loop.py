"""The rules of training loops, each fed with defects written by hand, on the fixtures and on odd layouts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pytest
from by_hand import Plain, defect_of

from gradfix import edits
from gradfix.config import Config
from gradfix.defects import Defect, Span, Touch, TouchKind
from gradfix.engine import fix
from gradfix.places import Places
from gradfix.plan import plan_for
from gradfix.registry import codemods
from gradfix.rewriting.branches import HALF
from gradfix.rule import Decline, Fix, Options, Safety
from gradfix.tree import Tree

FIXTURES = Path(__file__).parent.parent.parent / "fixtures"


@dataclass(frozen=True)
class At:
    """A place in a text: where this stretch of it stands for the nth time, or last within another stretch."""

    text: str
    nth: int = 1
    within: str = ""

    def span(self, source: str) -> Span:
        start = source.index(self.within) + self.within.rindex(self.text) - 1 if self.within else -1
        for _ in range(self.nth):
            start = source.index(self.text, start + 1)
        first = len(source[:start].encode())
        return Places(source).span(first, first + len(self.text.encode()))


@dataclass(frozen=True)
class Seen:
    """A touch of the leaves that a defect is about."""

    at: At
    kind: TouchKind

    def span(self, source: str) -> Touch:
        return Touch(self.at.span(source), self.kind)


Given: TypeAlias = "Plain | At | tuple[Seen, ...]"


def seen(text: str, kind: TouchKind) -> Seen:
    return Seen(At(text), kind)


@dataclass(frozen=True)
class Found:
    """A defect as the tape would describe it, its places named by their text."""

    kind: str
    culprit: At
    facts: dict[str, Given]

    def defect(self, source: str) -> Defect:
        def plain(fact: Given) -> Plain:
            if isinstance(fact, tuple):
                parts = [part.span(source) if isinstance(part, Seen) else part for part in fact]
                return tuple(parts)
            return fact.span(source) if isinstance(fact, At) else fact

        facts = {name: plain(fact) for name, fact in self.facts.items()}
        return defect_of(self.kind, source, self.culprit.span(source), facts)


def found(kind: str, culprit: str | At, **facts: Given) -> Found:
    return Found(kind, At(culprit) if isinstance(culprit, str) else culprit, facts)


def rewrite(source: str, one: Found, options: Options | None = None) -> tuple[Fix | Decline, Tree]:
    tree = Tree(source)
    return codemods()[one.kind].rule.rewrite(one.defect(source), tree, options or Options()), tree


def fixed(source: str, *several: Found) -> str:
    """The text after each of these defects was mended, one after the other."""
    for one in several:
        fix, tree = rewrite(source, one)
        assert isinstance(fix, Fix), fix
        source = edits.apply(tree, fix.edits)
    return source


def nonscalar(culprit: str, root: str) -> Found:
    return found("non_scalar_backward", culprit, root=root)


def twice(culprit: str, again: At, carried: At | None = None) -> Found:
    return found("backward_twice", culprit, again=again, carried=carried)


def unzeroed(culprit: str, optimizer: str, step: str, *parameters: str, between: Given = ()) -> Found:
    updated: dict[str, Given] = {"parameters": parameters, "between": between}
    return found("missing_zero_grad", culprit, optimizer=optimizer, step=At(step), **updated)


def erased(culprit: str | At, backward: str, step: str, optimizer: str, *between: Seen) -> Found:
    places = {"backward": At(backward), "step": At(step)}
    return found("zero_grad_before_step", culprit, **places, optimizer=optimizer, between=between)


def leaked(culprit: str, value: str) -> Found:
    return found("graph_leak", culprit, value=At(value, within=culprit))


def scaled(culprit: str, scaler: str, optimizer: str, form: str = "clip") -> Found:
    return found("clip_before_unscale", culprit, scaler=scaler, optimizer=optimizer, form=form)


def plain(culprit: str, attribute: str, container: str = "list", holds: str = "modules") -> Found:
    return found("unregistered_parameters", culprit, attribute=attribute, container=container, holds=holds)


def early(culprit: str, replacement: str, optimizer: str) -> Found:
    return found("optimizer_before_replacement", culprit, replacement=At(replacement), optimizer=optimizer)


def misspelt(culprit: str, attribute: str, on: str) -> Found:
    return found("requires_grad_misspelt", culprit, attribute=attribute, on=on)


def checkpointed(culprit: str) -> Found:
    return found("reentrant_checkpoint_cut", culprit, function="f")


def stepped(step: str, optimizer: str, backward: str, **facts: Given) -> Found:
    apart: dict[str, Given] = {"between": (), "beside": (), "shared": False}
    return found(
        "step_before_backward", step, optimizer=optimizer, backward=At(backward), **{**apart, **facts}
    )


LOSS, STEP = "loss.backward()", "optimizer.step()"
DEFECTS: dict[str, list[Found]] = {
    "non_scalar_backward/elementwise_product": [nonscalar("z.backward()", "z")],
    "non_scalar_backward/error_caught_and_printed": [nonscalar("z.backward()", "z")],
    "non_scalar_backward/second_backward_without_gradient": [nonscalar("z2.backward()", "z2")],
    "non_scalar_backward/squared_error_expression": [
        nonscalar("((prediction - targets) ** 2).backward()", "(prediction - targets) ** 2")
    ],
    "non_scalar_backward/criterion_without_reduction": [nonscalar(LOSS, "loss")],
    "non_scalar_backward/functional_loss_without_reduction": [nonscalar("losses.backward()", "losses")],
    "non_scalar_backward/autograd_backward_function": [nonscalar("torch.autograd.backward(w * x)", "w * x")],
    "non_scalar_backward/scaled_per_sample_loss": [
        nonscalar("scaler.scale(loss).backward()", "scaler.scale(loss)")
    ],
    "non_scalar_backward/one_line_loop_body": [nonscalar("(-w * x).backward()", "-w * x")],
    "non_scalar_backward/expression_over_several_lines": [
        nonscalar("(\n    model(x)\n    - 1.0  # the wanted output\n).backward()", "model(x) - 1.0")
    ],
    "non_scalar_backward/retain_graph_is_kept": [nonscalar("values.backward(retain_graph=True)", "values")],
    "backward_twice/same_loss_twice": [twice(LOSS, At(LOSS, 2))],
    "backward_twice/two_losses_on_one_trunk": [twice("policy_loss.backward()", At("value_loss.backward()"))],
    "backward_twice/three_losses": [
        twice("a.backward()", At("b.backward()")),
        twice("b.backward()", At("c.backward()")),
    ],
    "backward_twice/retain_graph_said_false": [
        twice("l1.backward(\n        retain_graph=False,\n    )", At("l2.backward()"))
    ],
    "backward_twice/gradient_over_several_lines": [
        twice("y.backward(\n    gradient=th.tensor([1.0, 0.0, 0.0]),\n)", At("y.backward(\n", 2))
    ],
    "backward_twice/autograd_backward_function": [
        twice("torch.autograd.backward(energy)", At("torch.autograd.backward(energy)", 2))
    ],
    "backward_twice/gru_state_carried": [twice(LOSS, At(LOSS), At("output, hidden = rnn(chunk, hidden)"))],
    "backward_twice/lstm_state_carried": [twice(LOSS, At(LOSS), At("scores, hidden = model(x, hidden)"))],
    "backward_twice/lstm_cell_two_names": [twice(LOSS, At(LOSS), At("h, c = cell(x, (h, c))"))],
    "backward_twice/state_kept_on_the_module": [
        twice(LOSS, At(LOSS), At("self.state = self.cell(x, self.state)"))
    ],
    "missing_zero_grad/training_loop": [unzeroed(LOSS, "optimizer", STEP)],
    "missing_zero_grad/train_function": [unzeroed(LOSS, "opt", "opt.step()")],
    "missing_zero_grad/trainer_class": [unzeroed(LOSS, "self.optimizer", "self.optimizer.step()")],
    "missing_zero_grad/zeroed_only_before_the_loop": [unzeroed(LOSS, "optimizer", STEP)],
    "missing_zero_grad/update_by_hand": [
        unzeroed(LOSS, "", "w -= lr * w.grad", "w"),
        unzeroed(LOSS, "", "b -= lr * b.grad", "b"),
    ],
    "missing_zero_grad/update_of_each_parameter": [
        unzeroed(LOSS, "", "param -= learning_rate * param.grad", "param")
    ],
    "missing_zero_grad/update_through_data": [
        unzeroed("score.backward()", "", "weights.data -= 0.5 * weights.grad", "weights")
    ],
    "missing_zero_grad/lbfgs_closure": [unzeroed(LOSS, "optimizer", "optimizer.step(closure)")],
    "missing_zero_grad/accumulation_never_cleared": [unzeroed(LOSS, "optimizer", STEP)],
    "missing_zero_grad/micro_batches": [unzeroed(LOSS, "opt", "opt.step()")],
    "missing_zero_grad/grad_scaler": [
        unzeroed("scaler.scale(loss).backward()", "optimizer", "scaler.step(optimizer)")
    ],
    "missing_zero_grad/only_the_other_optimizer_zeroed": [
        unzeroed(LOSS, "opt_encoder", "opt_encoder.step()")
    ],
    "missing_zero_grad/zeroed_in_the_other_branch": [unzeroed(LOSS, "optimizer", STEP)],
    "missing_zero_grad/semicolons": [unzeroed(LOSS, "opt", "opt.step()")],
    "missing_zero_grad/reinforce": [unzeroed("policy_loss.backward()", "optimizer", STEP)],
    "missing_zero_grad/argparse_main": [unzeroed(LOSS, "optimizer", STEP)],
    "zero_grad_before_step/between_backward_and_step": [
        erased("optimizer.zero_grad()", LOSS, STEP, "optimizer")
    ],
    "zero_grad_before_step/trainer_method": [
        erased("self.model.zero_grad()", LOSS, "self.opt.step()", "self.opt")
    ],
    "zero_grad_before_step/every_micro_batch": [erased("optimizer.zero_grad()", LOSS, STEP, "optimizer")],
    "zero_grad_before_step/inner_loop_of_micro_batches": [
        erased("opt.zero_grad()", "model(micro).sum().backward()", "opt.step()", "opt")
    ],
    "zero_grad_before_step/gan_wrong_place": [
        erased("netD.zero_grad()", "errD.backward()", "optimizerD.step()", "optimizerD")
    ],
    "zero_grad_before_step/twice_zeroed": [
        erased(
            At("opt.zero_grad()", 2),
            LOSS,
            "opt.step()",
            "opt",
            seen("opt.zero_grad()", "clears"),
            seen(LOSS, "fills"),
        )
    ],
    "graph_leak/epoch_total": [leaked("total_loss += loss", "loss")],
    "graph_leak/history_list": [leaked("losses.append(loss)", "loss")],
    "graph_leak/weighted_by_batch_size": [leaked("running += loss * x.size(0)", "loss * x.size(0)")],
    "graph_leak/running_mean_on_self": [leaked("self.total = self.total + loss", "loss")],
    "graph_leak/two_losses_logged": [leaked('logs["task"].append(task)', "task")],
    "clip_before_unscale/no_unscale": [
        scaled("torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)", "scaler", "optimizer")
    ],
    "clip_before_unscale/unscale_after_clip": [
        scaled("clip_grad_value_(self.net.parameters(), 2.0)", "self.scaler", "self.optim")
    ],
    "clip_before_unscale/clip_inside_a_condition": [
        scaled("th.nn.utils.clip_grad_norm_(model.parameters(), max_norm)", "scaler", "opt")
    ],
    "unregistered_parameters/list_comprehension": [
        plain("[nn.Linear(width, width) for _ in range(depth)]", "layers")
    ],
    "unregistered_parameters/appended_in_a_loop": [plain("[]", "blocks")],
    "unregistered_parameters/dict_of_heads": [
        plain(
            '{\n            "depth": th.nn.Linear(2, 1),  # metres\n'
            '            "class": th.nn.Linear(2, 5),\n        }',
            "heads",
            "dict",
        )
    ],
    "unregistered_parameters/list_of_parameters": [
        plain(
            "[nn.Parameter(torch.zeros(1)) for _ in range(degree + 1)]",
            "coefficients",
            holds="parameters",
        )
    ],
    "unregistered_parameters/names_imported_one_by_one": [plain("[Linear(2, 2), Linear(2, 2)]", "branches")],
    "optimizer_before_replacement/head_replaced": [
        early(
            "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)",
            "model[2] = nn.Linear(4, 2)",
            "optimizer",
        )
    ],
    "optimizer_before_replacement/with_its_scheduler": [
        early("opt = torch.optim.SGD(net.parameters(), lr=0.1)", "net.fc = nn.Linear(3, 1)", "opt")
    ],
    "optimizer_before_replacement/model_rebuilt": [
        early("opt = torch.optim.SGD(model.parameters(), lr=0.5)", "model = nn.Linear(2, 3)", "opt")
    ],
    "requires_grad_misspelt/parameters_meant_frozen": [
        misspelt("param.require_grad = False", "require_grad", "tensor")
    ],
    "requires_grad_misspelt/letters_swapped": [
        misspelt("param.requiers_grad = False", "requiers_grad", "tensor")
    ],
    "requires_grad_misspelt/module_meant_frozen": [
        misspelt("self.encoder.requires_grad = False", "requires_grad", "module")
    ],
    "requires_grad_misspelt/tensor_meant_to_require_grad": [
        misspelt("x.require_grad = True", "require_grad", "tensor")
    ],
    "requires_grad_misspelt/head_unfrozen_again": [
        misspelt("model[1].requires_grad = trainable", "requires_grad", "module")
    ],
    "reentrant_checkpoint_cut/first_layer_of_a_batch": [
        checkpointed("checkpoint(stem, x, use_reentrant=True)")
    ],
    "reentrant_checkpoint_cut/silent_cut": [
        checkpointed(
            "cp.checkpoint(\n            self.stem,\n            x,\n"
            "            use_reentrant=True,\n        )"
        )
    ],
    "step_before_backward/gan_losses_first": [stepped("opt_d.step()", "opt_d", "g_loss.backward()")],
    "step_before_backward/gan_training_loop": [
        stepped("optimizerD.step()", "optimizerD", "loss_g.backward()")
    ],
    "step_before_backward/critic_steps_before_actor": [
        stepped(
            "self.critic_optim.step()",
            "self.critic_optim",
            "actor_loss.backward()",
        )
    ],
    "step_before_backward/step_cleared_at_once": [
        stepped(
            "opt_dec.step()",
            "opt_dec",
            "reg.backward()",
            between=(seen("opt_dec.zero_grad()", "clears"),),
        )
    ],
    "step_before_backward/two_heads_one_trunk": [stepped("opt_a.step()", "opt_a", "loss_b.backward()")],
    "step_before_backward/graph_carried_by_a_state": [
        found(
            "step_before_backward",
            STEP,
            optimizer="optimizer",
            backward=At("loss.backward(retain_graph=True)"),
            step_backward=At("loss.backward(retain_graph=True)"),
        )
    ],
    "missing_zero_grad/notebook_export": [unzeroed("err.backward()", "opt", "opt.step()")],
    "missing_zero_grad/seq2seq_two_optimizers": [
        unzeroed(LOSS, "decoder_optimizer", "decoder_optimizer.step()")
    ],
    "missing_zero_grad/dqn_update": [unzeroed(LOSS, "self.optimizer", "self.optimizer.step()")],
    "non_scalar_backward/actor_loss_of_a_batch": [nonscalar("actor_loss.backward()", "actor_loss")],
    "backward_twice/loss_parts_one_by_one": [twice("classes.backward()", At("boxes.backward()"))],
    "graph_leak/plotted_history": [leaked("epoch_loss = epoch_loss + loss", "loss")],
    "unregistered_parameters/attention_heads": [
        plain(
            "[\n            nn.Linear(width, width // heads)  # one for each head\n"
            "            for _ in range(heads)\n        ]",
            "heads",
        )
    ],
    "zero_grad_before_step/after_the_clip_of_a_function": [
        erased("optimizer.zero_grad(set_to_none=True)", LOSS, STEP, "optimizer")
    ],
    "step_before_backward/step_and_scheduler": [
        stepped(
            "value_opt.step()",
            "value_opt",
            "policy_loss.backward()",
            between=(seen("value_sched.step()", "schedules"),),
        )
    ],
    "step_before_backward/convolutional_critic": [stepped("d_optim.step()", "d_optim", "g_loss.backward()")],
}


def read(case: str, name: str) -> str:
    return (FIXTURES / case / name).read_bytes().decode()


def test_every_described_pair_is_there() -> None:
    pairs = {f"{path.parent.parent.name}/{path.parent.name}" for path in FIXTURES.glob("*/*/before.py")}
    assert set(DEFECTS) <= pairs


@pytest.mark.parametrize("case", DEFECTS)
def test_a_described_defect_turns_before_into_after(case: str) -> None:
    assert fixed(read(case, "before.py"), *DEFECTS[case]) == read(case, "after.py")


@pytest.mark.parametrize("newline", ["\r\n", "\n"])
@pytest.mark.parametrize(
    "case", [case for case in DEFECTS if not any("\n" in one.culprit.text for one in DEFECTS[case])]
)
def test_line_ends_are_kept(case: str, newline: str) -> None:
    before = read(case, "before.py").replace("\n", newline)
    assert fixed(before, *DEFECTS[case]) == read(case, "after.py").replace("\n", newline)


def declined(source: str, one: Found) -> str:
    answer, _ = rewrite(source, one)
    assert isinstance(answer, Decline), answer
    return answer.reason


ZERO_LAST = unzeroed(LOSS, "opt", "opt.step()")
LAYOUTS: dict[str, tuple[str, Found, str]] = {
    "a body on the line of its loop": (
        "for x in data: loss = f(x); loss.backward(); opt.step()\n",
        ZERO_LAST,
        "for x in data: loss = f(x); opt.zero_grad(); loss.backward(); opt.step()\n",
    ),
    "a backward alone on the line of its condition": (
        "for x in data:\n    if x.ok: loss.backward()\n    opt.step()\n",
        ZERO_LAST,
        "for x in data:\n    opt.zero_grad()\n    if x.ok: loss.backward()\n    opt.step()\n",
    ),
    "text that is not ASCII before the call": (
        'for x in data:\n\tprint("Größe", "梯度"); loss.backward(); opt.step()\n',
        ZERO_LAST,
        'for x in data:\n\tprint("Größe", "梯度"); opt.zero_grad(); loss.backward(); opt.step()\n',
    ),
    "a backward under with": (
        "for x in data:\n    with scale(loss) as scaled:\n        loss.backward()\n    opt.step()\n",
        ZERO_LAST,
        "for x in data:\n    opt.zero_grad()\n    with scale(loss) as scaled:\n"
        "        loss.backward()\n    opt.step()\n",
    ),
    "two ways to run backward": (
        "for x in data:\n    if amp:\n        loss.backward()\n    else:\n"
        "        other(loss)\n    opt.step()\n",
        ZERO_LAST,
        "for x in data:\n    opt.zero_grad()\n    if amp:\n        loss.backward()\n"
        "    else:\n        other(loss)\n    opt.step()\n",
    ),
    "a decorated function in a function": (
        "def outer(opt):\n    @timed\n    def inner(loss):\n        loss.backward()\n"
        "        opt.step()\n    return inner\n",
        ZERO_LAST,
        "def outer(opt):\n    @timed\n    def inner(loss):\n        opt.zero_grad()\n"
        "        loss.backward()\n        opt.step()\n    return inner\n",
    ),
    "a step in another method": (
        "class T:\n    def back(self, loss):\n        loss.backward()\n\n"
        "    def update(self):\n        self.opt.step()\n",
        unzeroed(LOSS, "self.opt", "self.opt.step()"),
        "class T:\n    def back(self, loss):\n        loss.backward()\n\n"
        "    def update(self):\n        self.opt.step()\n        self.opt.zero_grad()\n",
    ),
    "optimizers that only a loop names": (
        "for x in data:\n    loss.backward()\n    for opt in opts:\n        opt.step()\n",
        ZERO_LAST,
        "for x in data:\n    loss.backward()\n    for opt in opts:\n        opt.step()\n"
        "        opt.zero_grad()\n",
    ),
    "a scaler that waits for several batches": (
        "for i, x in data:\n    scaler.scale(loss).backward()\n    if i % 4 == 3:\n"
        "        scaler.step(opt)\n        scaler.update()\n",
        unzeroed(
            "scaler.scale(loss).backward()",
            "opt",
            "scaler.step(opt)",
            between=(seen("scaler.update()", "scales"),),
        ),
        "for i, x in data:\n    scaler.scale(loss).backward()\n    if i % 4 == 3:\n"
        "        scaler.step(opt)\n        scaler.update()\n        opt.zero_grad()\n",
    ),
    "a step in both branches": (
        "for x in xs:\n    loss.backward()\n    if amp:\n        scaler.step(opt)\n    else:\n"
        "        opt.step()\n",
        ZERO_LAST,
        "for x in xs:\n    opt.zero_grad()\n    loss.backward()\n    if amp:\n        scaler.step(opt)\n"
        "    else:\n        opt.step()\n",
    ),
    "a step in each branch behind its own backward": (
        "for x in xs:\n    if amp:\n        with cast():\n            scaler.scale(loss).backward()\n"
        "        scaler.unscale_(opt)\n        scaler.step(opt)\n    else:\n        loss.backward()\n"
        "        opt.step()\n",
        ZERO_LAST,
        "for x in xs:\n    opt.zero_grad()\n    if amp:\n        with cast():\n"
        "            scaler.scale(loss).backward()\n        scaler.unscale_(opt)\n        scaler.step(opt)\n"
        "    else:\n        loss.backward()\n        opt.step()\n",
    ),
    "a step in the first of three branches": (
        "for x in xs:\n    if a:\n        scaler.step(opt)\n    elif b:\n        pass\n    else:\n"
        "        loss.backward()\n        opt.step()\n",
        ZERO_LAST,
        "for x in xs:\n    opt.zero_grad()\n    if a:\n        scaler.step(opt)\n    elif b:\n        pass\n"
        "    else:\n        loss.backward()\n        opt.step()\n",
    ),
    "a step in the other branch that clears for itself": (
        "for x in xs:\n    if amp:\n        opt.zero_grad()\n        scaler.step(opt)\n    else:\n"
        "        loss.backward()\n        opt.step()\n",
        ZERO_LAST,
        "for x in xs:\n    if amp:\n        opt.zero_grad()\n        scaler.step(opt)\n    else:\n"
        "        opt.zero_grad()\n        loss.backward()\n        opt.step()\n",
    ),
    "another optimizer's step in the other branch": (
        "for x in xs:\n    if amp:\n        scaler.step(other)\n    else:\n        loss.backward()\n"
        "        opt.step()\n",
        ZERO_LAST,
        "for x in xs:\n    if amp:\n        scaler.step(other)\n    else:\n        opt.zero_grad()\n"
        "        loss.backward()\n        opt.step()\n",
    ),
    "a loop of its own in each branch": (
        "if amp:\n    for x in xs:\n        scaler.step(opt)\nelse:\n    for x in xs:\n"
        "        loss.backward()\n        opt.step()\n",
        ZERO_LAST,
        "if amp:\n    for x in xs:\n        scaler.step(opt)\nelse:\n    for x in xs:\n"
        "        opt.zero_grad()\n        loss.backward()\n        opt.step()\n",
    ),
    "a step unless the loss is sick": (
        "for x in xs:\n    loss.backward()\n    if torch.isfinite(loss):\n        opt.step()\n",
        ZERO_LAST,
        "for x in xs:\n    opt.zero_grad()\n    loss.backward()\n"
        "    if torch.isfinite(loss):\n        opt.step()\n",
    ),
    "an elif": (
        "if a:\n    pass\nelif b:\n    loss.backward()\n    opt.step()\n",
        ZERO_LAST,
        "if a:\n    pass\nelif b:\n    opt.zero_grad()\n    loss.backward()\n    opt.step()\n",
    ),
    "a zero_grad between semicolons": (
        "loss.backward(); opt.zero_grad(); opt.step()\n",
        erased("opt.zero_grad()", LOSS, "opt.step()", "opt"),
        "opt.zero_grad(); loss.backward(); opt.step()\n",
    ),
    "a zero_grad at the end of the line before": (
        "loss.backward(); opt.zero_grad()\nopt.step()\n",
        erased("opt.zero_grad()", LOSS, "opt.step()", "opt"),
        "opt.zero_grad(); loss.backward()\nopt.step()\n",
    ),
    "a comment that heads what moves too": (
        "loss = f()\n\n# back and step\nloss.backward()\nclip()\nopt.zero_grad()  # all\nopt.step()\n",
        erased("opt.zero_grad()", LOSS, "opt.step()", "opt"),
        "loss = f()\n\n# back and step\nopt.zero_grad()  # all\nloss.backward()\nclip()\nopt.step()\n",
    ),
    "a comment about the backward alone": (
        "loss = f()\n# back\nloss.backward()\n\nopt.zero_grad()\nopt.step()\n",
        erased("opt.zero_grad()", LOSS, "opt.step()", "opt"),
        "loss = f()\nopt.zero_grad()\n# back\nloss.backward()\n\nopt.step()\n",
    ),
    "a block between the comment and what moves": (
        "loss = f()\n# back\nloss.backward()\nif log:\n    show()\nopt.zero_grad()\nopt.step()\n",
        erased("opt.zero_grad()", LOSS, "opt.step()", "opt"),
        "loss = f()\nopt.zero_grad()\n# back\nloss.backward()\nif log:\n    show()\nopt.step()\n",
    ),
    "a blank line and a comment above what moves": (
        "loss = f()\n# back\nloss.backward()\n\n# clear\nopt.zero_grad()  # all\nopt.step()\n",
        erased("opt.zero_grad()", LOSS, "opt.step()", "opt"),
        "loss = f()\n# clear\nopt.zero_grad()  # all\n# back\nloss.backward()\n\nopt.step()\n",
    ),
    "steps between semicolons": (
        "d.backward(); od.step()\ng.backward(); og.step()\n",
        stepped("od.step()", "od", "g.backward()"),
        'd.backward()\ng.backward(inputs=[p for group in og.param_groups for p in group["params"]]); '
        "od.step(); og.step()\n",
    ),
    "a scheduler behind the step": (
        "od = SGD(D.parameters())\nog = SGD(G.parameters())\nd.backward()\nod.step()\n"
        "sched.step()\nprint(1)\ng.backward()\nog.step()\n",
        stepped("od.step()", "od", "g.backward()", between=(seen("sched.step()", "schedules"),)),
        "od = SGD(D.parameters())\nog = SGD(G.parameters())\nd.backward()\nprint(1)\n"
        "g.backward(inputs=list(G.parameters()))\nod.step()\nsched.step()\nog.step()\n",
    ),
    "a later step that the tape did not see": (
        "od, og = SGD([a]), SGD([c])\nd.backward()\nod.step()\nog.zero_grad()\ng.backward()\n"
        "scaler.step(og)\n",
        found(
            "step_before_backward",
            "od.step()",
            optimizer="od",
            backward=At("g.backward()"),
            between=(),
            beside=(),
            shared=False,
        ),
        "od, og = SGD([a]), SGD([c])\nd.backward()\nog.zero_grad()\ng.backward(inputs=[c])\n"
        "od.step()\nscaler.step(og)\n",
    ),
    "an optimizer built out of sight": (
        "d.backward()\nself.od.step()\ng.backward()\nself.og.step()\n",
        stepped("self.od.step()", "self.od", "g.backward()"),
        "d.backward()\n"
        'g.backward(inputs=[p for group in self.og.param_groups for p in group["params"]])\n'
        "self.od.step()\nself.og.step()\n",
    ),
    "a list of tensors as parameters": (
        "od, og = SGD([a, b]), SGD([c])\nd.backward()\nod.step()\ng.backward()\nog.step()\n",
        stepped("od.step()", "od", "g.backward()"),
        "od, og = SGD([a, b]), SGD([c])\nd.backward()\ng.backward(inputs=[c])\nod.step()\nog.step()\n",
    ),
    "two backwards on one line": (
        "a.backward(); b.backward()\n",
        twice("a.backward()", At("b.backward()")),
        "a.backward(retain_graph=True); b.backward()\n",
    ),
    "retain_graph given by position": (
        "a.backward(None, False)\nb.backward()\n",
        twice("a.backward(None, False)", At("b.backward()")),
        "a.backward(None, True)\nb.backward()\n",
    ),
    "a state that starts as None beside an LSTM": (
        "lstm = nn.LSTM(2, 2)\nh = None\nfor x in xs:\n    y, h = lstm(x, h)\n    loss.backward()\n",
        twice(LOSS, At(LOSS), At("y, h = lstm(x, h)")),
        "lstm = nn.LSTM(2, 2)\nh = None\nfor x in xs:\n    y, h = lstm(x, h)\n"
        "    loss.backward()\n    h = tuple(part.detach() for part in h)\n",
    ),
    "a state that a function of the file makes": (
        "import torch\ndef init(n):\n    return torch.zeros(n), torch.zeros(n)\ns = init(2)\n"
        "for x in xs:\n    y, s = net(x, s)\n    loss.backward()\n",
        twice(LOSS, At(LOSS), At("y, s = net(x, s)")),
        "import torch\ndef init(n):\n    return torch.zeros(n), torch.zeros(n)\ns = init(2)\n"
        "for x in xs:\n    y, s = net(x, s)\n    loss.backward()\n"
        "    s = tuple(h.detach() for h in s)\n",
    ),
    "a loss function that was told not to reduce": (
        'loss_fn = nn.L1Loss(reduction="none")\nloss = loss_fn(y, t)\nloss.backward()\n',
        nonscalar("loss.backward()", "loss"),
        'loss_fn = nn.L1Loss(reduction="none")\nloss = loss_fn(y, t)\nloss.mean().backward()\n',
    ),
    "a loss given by name": (
        "torch.autograd.backward(tensors=a - b)\n",
        nonscalar("torch.autograd.backward(tensors=a - b)", "a - b"),
        "torch.autograd.backward(tensors=(a - b).sum())\n",
    ),
    "a loss given to an accelerator": (
        "accelerator.backward(a - b)\n",
        nonscalar("accelerator.backward(a - b)", "a - b"),
        "accelerator.backward((a - b).sum())\n",
    ),
    "a step on scaled gradients": (
        "scaler.scale(loss).backward()\nopt.step()\n",
        scaled("opt.step()", "scaler", "opt", "step"),
        "scaler.scale(loss).backward()\nscaler.step(opt)\nscaler.update()\n",
    ),
    "a checkpoint with its arguments below each other": (
        "y = checkpoint(f,\n               x)\n",
        checkpointed("checkpoint(f,\n               x)"),
        "y = checkpoint(f,\n               x,\n               use_reentrant=False)\n",
    ),
    "a checkpoint with a trailing comma": (
        "y = checkpoint(\n    f,\n    x,\n)\n",
        checkpointed("checkpoint(\n    f,\n    x,\n)"),
        "y = checkpoint(\n    f,\n    x,\n    use_reentrant=False,\n)\n",
    ),
    "a list under a name that is imported": (
        "from torch.nn import ModuleList as ML\nself.a = [f()]\n",
        plain("[f()]", "a"),
        "from torch.nn import ModuleList as ML\nself.a = ML([f()])\n",
    ),
    "a tuple without brackets": (
        "import torch\nself.a = f(), g()\n",
        plain("f(), g()", "a"),
        "import torch\nself.a = torch.nn.ModuleList((f(), g()))\n",
    ),
    "a list under a star import": (
        "from torch.nn import *\nself.a = {}\n",
        plain("{}", "a", "dict"),
        "from torch.nn import *\nself.a = ModuleDict()\n",
    ),
    "a misspelt switch between semicolons": (
        "a = 1; net.requires_grad = False; b = 2\n",
        misspelt("net.requires_grad = False", "requires_grad", "module"),
        "a = 1; net.requires_grad_(False); b = 2\n",
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layout_is_kept(layout: str) -> None:
    before, one, after = LAYOUTS[layout]
    assert fixed(before, one) == after


DECLINED: dict[str, tuple[str, Found, str]] = {
    "several roots": (
        "torch.autograd.backward([a, b])\n",
        nonscalar("torch.autograd.backward([a, b])", "[a, b]"),
        "reduce what backward runs on",
    ),
    "a stale loss stepped along in a loop": (
        "loss = f()\nfor _ in range(3):\n    loss.backward()\n    opt.step()\n",
        twice(LOSS, At(LOSS)),
        "build the whole graph inside the loop",
    ),
    "arguments that a star hides": (
        "a.backward(**how)\nb.backward()\n",
        twice("a.backward(**how)", At("b.backward()")),
        "pass retain_graph=True",
    ),
    "a state of unknown make": (
        "s = start()\nfor x in xs:\n    y, s = net(x, s)\n    loss.backward()\n",
        twice(LOSS, At(LOSS), At("y, s = net(x, s)")),
        "detach s after this backward",
    ),
    "a layer in a tuple that a stray comma makes": (
        "import torch\nself.a = f(),\n",
        plain("f(),", "a"),
        "drop the comma behind it",
    ),
    "keys that no ModuleDict takes": (
        "import torch\nself.a = {1: f()}\n",
        plain("{1: f()}", "a", "dict"),
        "strings without dots",
    ),
    "a key that is an attribute of modules": (
        'import torch\nself.a = {"type": f()}\n',
        plain('{"type": f()}', "a", "dict"),
        "strings without dots",
    ),
    "a file that does not import torch": ("self.a = [f()]\n", plain("[f()]", "a"), "import torch.nn"),
    "an optimizer used before the replacement": (
        "opt = SGD(net.parameters())\nopt.step()\nnet.fc = f()\n",
        early("opt = SGD(net.parameters())", "net.fc = f()", "opt"),
        "build the optimizer after",
    ),
    "a replacement in another function": (
        "opt = SGD(net.parameters())\ndef swap():\n    net.fc = f()\n",
        early("opt = SGD(net.parameters())", "net.fc = f()", "opt"),
        "build the optimizer after",
    ),
    "one optimizer with two steps": (
        "a.backward()\nopt.step()\nopt.zero_grad()\nb.backward()\nopt.step()\n",
        found(
            "step_before_backward",
            "opt.step()",
            optimizer="opt",
            backward=At("b.backward()"),
            between=(seen("opt.zero_grad()", "clears"),),
        ),
        "build the later loss after this step",
    ),
    "optimizers that share a network": (
        "oa, ob = SGD(net.parameters()), SGD(net.head.parameters())\na.backward()\noa.step()\n"
        "b.backward()\nob.step()\n",
        stepped("oa.step()", "oa", "b.backward()", shared=True),
        "build the later loss after this step",
    ),
    "weights clipped behind the step": (
        "od, og = SGD(D.parameters()), SGD(G.parameters())\nd.backward()\nod.step()\n"
        "for p in D.parameters():\n    clamp(p)\n    g = g + 1\ng.backward()\nog.step()\n",
        stepped("od.step()", "od", "g.backward()", between=(seen("clamp(p)", "writes"),)),
        "step behind the later backward, and `for p in D.parameters():` behind the step",
    ),
    "everything cleared between the two": (
        "od, og = SGD(D.parameters()), SGD(G.parameters())\nd.backward()\nod.step()\n"
        "both.zero_grad()\ng.backward()\nog.step()\n",
        stepped(
            "od.step()",
            "od",
            "g.backward()",
            between=(seen("both.zero_grad()", "clears"),),
            beside=(seen("both.zero_grad()", "clears"),),
        ),
        "build the later loss after this step",
    ),
    "a later backward under a condition": (
        "d.backward()\nod.step()\nif i % 5 == 0:\n    g.backward()\n    og.step()\n",
        stepped("od.step()", "od", "g.backward()"),
        "build the later loss after this step",
    ),
    "a graph carried into the next iteration": (
        "for x in xs:\n    loss.backward(retain_graph=True)\n    opt.step()\n",
        found(
            "step_before_backward",
            "opt.step()",
            optimizer="opt",
            backward=At("loss.backward(retain_graph=True)"),
            step_backward=At("loss.backward(retain_graph=True)"),
        ),
        "detach what one iteration carries",
    ),
    "a graph that is freed before it is carried on": (
        "for x in xs:\n    y, h = gru(x, h)\n    loss.backward()\n    opt.step()\n",
        found(
            "step_before_backward",
            "opt.step()",
            optimizer="opt",
            backward=At(LOSS),
            step_backward=At(LOSS),
        ),
        "this backward frees the graph",
    ),
    "a zero_grad under a condition": (
        "loss.backward()\nif log:\n    opt.zero_grad()\nopt.step()\n",
        erased("opt.zero_grad()", LOSS, "opt.step()", "opt"),
        "move the zero_grad",
    ),
    "a zero_grad in another function": (
        "def fresh():\n    opt.zero_grad()\nloss.backward()\nfresh()\nopt.step()\n",
        erased("opt.zero_grad()", LOSS, "opt.step()", "opt"),
        "move the zero_grad",
    ),
    "an accumulation that clears after its step": (
        "for i, x in data:\n    loss.backward()\n    if i % 4 == 3:\n"
        "        opt.step()\n        opt.zero_grad()\n",
        ZERO_LAST,
        "before the loop",
    ),
    "an update of unknown parameters": (
        "loss.backward()\nw -= g\n",
        unzeroed(LOSS, "", "w -= g"),
        "set the .grad of what is updated to None",
    ),
    "unscaled in another place": (
        "if clip:\n    clip_(ps)\nscaler.unscale_(opt)\nscaler.step(opt)\n",
        scaled("clip_(ps)", "scaler", "opt"),
        "move scaler.unscale_(opt) before the clip",
    ),
    "a checkpoint whose keywords are hidden": (
        "y = checkpoint(f, x, **how)\n",
        checkpointed("checkpoint(f, x, **how)"),
        "pass use_reentrant=False",
    ),
    "two targets in one assignment": (
        "a.require_grad = b.require_grad = False\n",
        misspelt("a.require_grad = b.require_grad = False", "require_grad", "tensor"),
        "set requires_grad on the parameters",
    ),
}


@pytest.mark.parametrize("reason", DECLINED)
def test_what_is_not_certain_is_declined(reason: str) -> None:
    source, one, says = DECLINED[reason]
    assert says in declined(source, one)


@pytest.mark.parametrize(
    ("body", "unsafe"),
    [
        pytest.param("    if i % 4 == 3:\n            scaler.step(opt)", True, id="it waits for several"),
        pytest.param("    amp_update(loss, opt)", True, id="a helper is given the optimizer"),
        pytest.param("    scaler.unscale_(opt)", False, id="it only unscales"),
    ],
)
def test_clearing_is_unsafe_where_the_other_branch_may_step_too(body: str, unsafe: bool) -> None:
    source = (
        f"for i, x in xs:\n    if amp:\n    {body}\n    else:\n        loss.backward()\n        opt.step()\n"
    )
    mended, tree = rewrite(source, ZERO_LAST)
    assert isinstance(mended, Fix) and mended.unsafe == (HALF if unsafe else "")
    assert "else:\n        opt.zero_grad()\n" in edits.apply(tree, mended.edits)


def test_the_configured_reduction_is_used_where_the_code_suggests_none() -> None:
    fix, tree = rewrite("z.backward()\n", nonscalar("z.backward()", "z"), Options(reduction="mean"))
    assert isinstance(fix, Fix)
    assert fix.says == "z.mean().backward()"
    assert edits.apply(tree, fix.edits) == "z.mean().backward()\n"


@pytest.mark.parametrize(("value", "safety"), [("True", Safety.SAFE), ("False", Safety.UNSAFE)])
def test_freezing_is_unsafe_and_thawing_is_not(value: str, safety: Safety) -> None:
    text = f"p.require_grad = {value}"
    fix, _ = rewrite(f"{text}\n", misspelt(text, "require_grad", "tensor"))
    assert isinstance(fix, Fix)
    assert fix.safety is safety


BOUND_ANEW = """import torch


def search(place, rate, steps):
    for step in range(steps):
        loss = (place - 3).pow(2).sum()
        loss.backward()
        with torch.no_grad():
            place = place - rate * place.grad
        place.requires_grad = True
    return place.item()


place = torch.ones(1, requires_grad=True)
found = []
for _ in range(2):
    found.append(search(place, 0.1, 3))
"""


def test_a_leaf_whose_name_is_bound_anew_by_its_update_is_cleared_before_its_backward() -> None:
    """The judge can't tell: no step writes the first leaf, whose gradient adds up from call to call."""
    mended = fix("main.py", BOUND_ANEW.encode(), plan_for(Config(Path())))
    cleared = BOUND_ANEW.replace(
        "        loss.backward()", "        place.grad = None\n        loss.backward()"
    )
    assert (mended.after or b"").decode() == cleared
