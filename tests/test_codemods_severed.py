"""The rules of severed graphs, each fed with defects written by hand, on the fixtures and on odd layouts."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

import pytest

from gradfix import edits
from gradfix.places import Places
from gradfix.registry import codemods
from gradfix.rule import Decline, Fix, Options
from gradfix.tape.defects import Defect, Fact, Span
from gradfix.tree import Tree

FIXTURES = Path(__file__).parent.parent / "fixtures"

DETACHED = "detached_loss_path"
CONVERTED = "converted_loss_path"
UNRECORDED = "forward_in_no_grad"
LEAFLESS = "no_leaf_requires_grad"
FLAT = "non_differentiable_loss"
SWITCHED = "requires_grad_on_result"
TERM = "severed_term"
UNREACHED = "unreached_parameters"
NON_LEAF = "grad_of_non_leaf"
BACKWARD = "backward_in_no_grad"
MINE = (DETACHED, CONVERTED, UNRECORDED, LEAFLESS, SWITCHED, TERM, UNREACHED, NON_LEAF, BACKWARD)

Text: TypeAlias = "str | tuple[str, int]"
"""A stretch of source, the first of its kind or, counted from 0, a later one."""
Found: TypeAlias = "tuple[Text, dict[str, Fact | list[Text] | Text]]"


def found(culprit: Text, **facts: Fact | list[Text] | Text) -> Found:
    """A culprit and facts; those that begin with `at_` name places by their text."""
    return culprit, {**facts}


def place(source: str, text: Text) -> Span:
    words, number = text if isinstance(text, tuple) else (text, 0)
    at = -1
    for _ in range(number + 1):
        at = source.index(words, at + 1)
    first = len(source[:at].encode())
    return Places(source).span(first, first + len(words.encode()))


def defect(kind: str, source: str, one: Found) -> Defect:
    culprit, facts = one
    known: dict[str, Fact] = {}
    for name, fact in facts.items():
        if isinstance(fact, list):
            known[name.removeprefix("at_")] = tuple(place(source, text) for text in fact)
        elif name.startswith("at_"):
            assert isinstance(fact, str | tuple)
            known[name.removeprefix("at_")] = place(source, fact)  # type: ignore[arg-type]
        else:
            known[name] = fact  # type: ignore[assignment]
    return Defect(kind, place(source, culprit), (), "certain", "crashes", facts=known)


def answer(kind: str, source: str, one: Found) -> tuple[Tree, Fix | Decline]:
    tree = Tree(source)
    return tree, codemods()[kind].rule.rewrite(defect(kind, source, one), tree, Options())


def mended(kind: str, source: str, *some: Found) -> str:
    """The text after the fixes for these defects, one after the other."""
    for one in some:
        tree, fix = answer(kind, source, one)
        assert isinstance(fix, Fix), fix
        assert fix.says and "\n" not in fix.says
        source = edits.apply(tree, fix.edits)
    return source


def reason(kind: str, source: str, one: Found) -> str:
    _, declined = answer(kind, source, one)
    assert isinstance(declined, Decline), declined
    return declined.reason


CASES: dict[tuple[str, str], list[Found]] = {
    (DETACHED, "then_added_to"): [found("y.detach()")],
    (DETACHED, "then_squared"): [found("y.detach()")],
    (DETACHED, "relu_then_sum"): [found("y.detach()")],
    (DETACHED, "prediction_in_a_training_script"): [found("model(inputs).detach()")],
    (DETACHED, "module_that_returns_a_detached_output"): [found("out.detach()")],
    (DETACHED, "data_of_the_loss"): [found("criterion(net(batch), labels).data", form="data")],
    (DETACHED, "detach_in_place_statement"): [found("out.detach_()", form="detach_")],
    (DETACHED, "chain_over_several_lines"): [found("net(x)\n            .detach()", form="detach")],
    (DETACHED, "log_probs_of_a_policy"): [found("dist.log_prob(actions).detach()")],
    (DETACHED, "decoder_steps_collected_as_data"): [found("logits.data", form="data")],
    (DETACHED, "notebook_that_also_plots"): [found("model(X).detach()")],
    (DETACHED, "several_statements_on_one_line"): [found("y.detach_()", form="detach_")],
    (DETACHED, "name_rebound_to_its_own_detach"): [found("codes.detach()")],
    (DETACHED, "parenthesised_sum"): [found("(a * b + a).detach()"), found("(a + b).data", form="data")],
    (DETACHED, "branch_left_empty"): [found("out.detach_()", form="detach_")],
    (CONVERTED, "loss_wrapped_again_from_item"): [
        found("loss.item()", form="item", at_rewrap="torch.tensor(loss.item(), requires_grad=True)")
    ],
    (CONVERTED, "variable_around_the_data_of_the_loss"): [
        found("Variable(loss.data, requires_grad=True)", form="Variable")
    ],
    (CONVERTED, "two_losses_in_a_list"): [found("torch.tensor([l1, l2])", form="tensor_of_list")],
    (CONVERTED, "losses_appended_to_a_list"): [found("torch.tensor(losses)", form="tensor_of_list")],
    (CONVERTED, "total_of_items"): [found("loss.item()", form="item")],
    (CONVERTED, "item_also_printed"): [
        found("nn.functional.l1_loss(self.model(x), y).item()", form="item", at_logged=[("loss", 2)])
    ],
    (CONVERTED, "log_from_the_math_module"): [
        found("math.log(p)", form="math", at_rewrap="torch.tensor(-math.log(p), requires_grad=True)")
    ],
    (CONVERTED, "floats_added_up"): [
        found(
            "float(mse)",
            form="float",
            at_rewrap="torch.tensor(float(mse) + 0.01 * float(reg), requires_grad=True)",
        )
    ],
    (CONVERTED, "mean_taken_by_numpy"): [
        found(
            "error.detach().numpy()",
            form="numpy",
            at_rewrap="torch.tensor(np.mean(np.square(error.detach().numpy())), requires_grad=True)",
        )
    ],
    (CONVERTED, "through_numpy_and_back"): [
        found("out.detach().cpu().numpy()", form="numpy", at_rewrap="torch.from_numpy(values)")
    ],
    (CONVERTED, "variable_in_a_forward"): [found("Variable(x)", form="Variable")],
    (CONVERTED, "tensor_of_the_loss"): [
        found("torch.tensor(loss_fn(model(x), y), requires_grad=True)", form="tensor")
    ],
    (CONVERTED, "float_tensor_of_losses"): [found("torch.FloatTensor(losses)", form="tensor_of_list")],
    (CONVERTED, "items_in_a_list"): [
        found("out.pow(2).mean().item()", form="item", at_rewrap="torch.tensor(losses, requires_grad=True)")
    ],
    (CONVERTED, "parameter_around_the_loss"): [found("nn.Parameter(out.sum())", form="Parameter")],
    (CONVERTED, "list_and_back"): [
        found("scores.tolist()", form="tolist", at_rewrap="torch.tensor(scores.tolist(), requires_grad=True)")
    ],
    (UNRECORDED, "one_statement_without_grad"): [found("with torch.no_grad():\n    z = y * 2")],
    (UNRECORDED, "forward_and_loss_of_a_loop"): [
        found(
            "with torch.no_grad():\n        output = model(x)\n        # mean over the batch\n"
            "        loss = criterion(output,\n                         y)",
            at_forward=["output = model(x)", "loss = criterion(output,\n                         y)"],
        )
    ],
    (UNRECORDED, "decorated_forward"): [found("torch.no_grad()", form="decorator")],
    (UNRECORDED, "decorated_train_step"): [found("torch.inference_mode()", form="decorator")],
    (UNRECORDED, "inference_mode_around_the_model"): [found("with th.inference_mode():\n    pred = net(x)")],
    (UNRECORDED, "grad_switched_off_for_good"): [found("torch.set_grad_enabled(False)", form="statement")],
    (UNRECORDED, "one_of_two_contexts"): [
        found(
            'with torch.no_grad(), record_function("forward"):\n            out = net(x)\n'
            "            loss = out.pow(2).mean()"
        )
    ],
    (UNRECORDED, "context_in_parentheses"): [
        found(
            "with (\n    contextlib.suppress(ValueError),\n    torch.no_grad(),\n):\n"
            "    loss = net(torch.ones(1, 2)).sum()"
        )
    ],
    (UNRECORDED, "nested_block_inside"): [
        found(
            "with torch.no_grad():\n                # forward\n                out = self.model(x)\n"
            "                if self.scale is not None:\n                    out = out * self.scale"
            "  # temperature\n                loss = nn.functional.mse_loss(out, y)"
        )
    ],
    (UNRECORDED, "metrics_stay_without_grad"): [
        found(
            "with torch.no_grad():\n    logits = model(x)\n"
            "    loss = nn.functional.cross_entropy(logits, y)\n"
            "    accuracy = (logits.argmax(1) == y).float().mean()",
            at_forward=["logits = model(x)", "loss = nn.functional.cross_entropy(logits, y)"],
        )
    ],
    (UNRECORDED, "update_stays_without_grad"): [
        found(
            "with torch.no_grad():\n        loss = ((x @ w - y) ** 2).mean()\n        loss.backward()\n"
            "        w -= 0.1 * w.grad",
            at_forward=["loss = ((x @ w - y) ** 2).mean()"],
        )
    ],
    (UNRECORDED, "teacher_stays_without_grad"): [
        found(
            "with torch.no_grad():\n    soft = F.softmax(teacher(x), dim=1)\n    loss = F.kl_div("
            'F.log_softmax(student(x), dim=1), soft, reduction="batchmean")',
            at_forward=['F.kl_div(F.log_softmax(student(x), dim=1), soft, reduction="batchmean")'],
        )
    ],
    (UNRECORDED, "body_on_the_same_line"): [found("with torch.no_grad(): loss = (w * 2).sum()")],
    (LEAFLESS, "input_without_requires_grad"): [found("torch.randn(3)")],
    (LEAFLESS, "weights_of_a_linear_regression"): [found("torch.zeros(2, 1)"), found("torch.zeros(1)")],
    (LEAFLESS, "optimised_image"): [found("torch.rand(1, 3, 6, 6)")],
    (LEAFLESS, "integer_literals"): [found("torch.tensor([1, 2, 3])")],
    (LEAFLESS, "variable_of_ones"): [found("torch.ones(2, 2)")],
    (LEAFLESS, "misspelt_attribute"): [
        found("torch.tensor([0.5, -0.5])", misspelt="require_grad", target="w")
    ],
    (LEAFLESS, "call_over_several_lines"): [found("th.full(\n    (3,),\n    0.5,\n    dtype=th.float64,\n)")],
    (LEAFLESS, "from_an_array"): [found("torch.from_numpy(np.array([3.0, -1.0]))")],
    (LEAFLESS, "scaled_initialisation"): [found("torch.randn(3, 2)")],
    (LEAFLESS, "spaces_around_the_keyword"): [found("torch.ones( 2, 3, device = device )")],
    (SWITCHED, "switched_on_after_detach"): [
        found("loss.requires_grad = True", target="loss", at_cut="model(x).detach()", cut_kind=DETACHED)
    ],
    (SWITCHED, "called_on_a_loss_without_graph"): [
        found(
            "loss.requires_grad_(True)",
            target="loss",
            at_cut="with torch.no_grad():\n            logits = self.model(x)",
            cut_kind=UNRECORDED,
        )
    ],
    (SWITCHED, "chained_before_backward"): [
        found("loss.requires_grad_()", target="loss", at_cut="torch.tensor([l1, l2])", cut_kind=CONVERTED)
    ],
    (SWITCHED, "item_and_a_switched_on_tensor"): [
        found("loss.requires_grad = True", target="loss", at_cut="-logp.mean().item()", cut_kind=CONVERTED)
    ],
    (SWITCHED, "data_in_the_forward"): [
        found(
            "loss.requires_grad_()",
            target="loss",
            at_cut="self.dec(self.enc(x)).data",
            cut_kind=DETACHED,
        )
    ],
    (TERM, "item_of_the_penalty"): [found("penalty.item()", form="item")],
    (TERM, "entropy_and_value_as_numbers"): [found("value_loss.item()", form="item")],
    (TERM, "auxiliary_losses_in_a_tensor"): [found("torch.tensor([a, b])", form="tensor_of_list")],
    (TERM, "penalty_summed_as_floats"): [found("float(sparsity)", form="float")],
    (TERM, "divergence_detached_as_a_whole"): [found("kl.detach()", form="detach")],
    (TERM, "weight_decay_on_data"): [found("scale.pow(2).data", form="data")],
    (UNREACHED, "generator_step_on_a_detached_fake"): [
        found(("torch.optim.SGD(G.parameters(), lr=0.1)", 0), at_cut=("fake.detach()", 1))
    ],
    (UNREACHED, "policy_behind_a_detached_action"): [
        found("torch.optim.SGD(self.actor.parameters(), lr=0.1)", at_cut="action.detach()")
    ],
    (UNREACHED, "encoder_cut_off_from_its_decoder"): [
        found(
            "torch.optim.SGD(itertools.chain(encoder.parameters(), decoder.parameters()), lr=0.1)",
            at_cut="encoder(x).data",
        )
    ],
    (UNREACHED, "embedding_read_without_grad"): [
        found("torch.optim.SGD(params, lr=0.1)", at_cut="embed(tokens).mean(1).detach()")
    ],
    (NON_LEAF, "scaled_after_requires_grad"): [
        found(
            "torch.randn(3, requires_grad=True) * 0.1",
            target="w",
            at_factory="torch.randn(3, requires_grad=True)",
        )
    ],
    (NON_LEAF, "moved_after_requires_grad"): [
        found(
            "torch.zeros(2, 3, requires_grad=True).to(device).double()",
            target="x",
            at_factory="torch.zeros(2, 3, requires_grad=True)",
        )
    ],
    (NON_LEAF, "intermediate_value"): [found("x ** 2", target="y")],
    (NON_LEAF, "activation_of_a_layer"): [found("net(image)", target="features")],
    (NON_LEAF, "reshaped_over_lines"): [
        found(
            "th.ones(6, dtype=th.float64, requires_grad=True)\n    .reshape(2, 3)",
            target="W",
            at_factory="th.ones(6, dtype=th.float64, requires_grad=True)",
        )
    ],
    (BACKWARD, "before_a_hand_written_update"): [
        found(
            "with torch.no_grad():\n        loss.backward()\n        w -= 0.1 * w.grad\n"
            "        w.grad.zero_()",
            at_backward="loss.backward()",
        )
    ],
    (BACKWARD, "alone_in_the_block"): [
        found(
            "with torch.no_grad():\n    # gradients need no graph of their own\n    loss.backward()",
            at_backward="loss.backward()",
        )
    ],
    (BACKWARD, "last_in_the_block"): [
        found(
            "with torch.no_grad():\n    average.weight.lerp_(model.weight, 0.1)\n    loss.backward()",
            at_backward="loss.backward()",
        )
    ],
}

ROTATION = """th.tensor([
    [th.cos(theta), -th.sin(theta), 0],
    [th.sin(theta), th.cos(theta), 0],  # counter-clockwise
    [0, 0, 1],
])"""
CASES[CONVERTED, "rotation_built_from_entries"] = [found(ROTATION, form="tensor_of_list")]


@pytest.mark.parametrize(
    ("kind", "case"), [pytest.param(*key, id=f"{key[0]}: {key[1].replace('_', ' ')}") for key in CASES]
)
def test_a_fixture_becomes_what_a_colleague_would_write(kind: str, case: str) -> None:
    """The rewrite alone, given the right defects, turns before into after byte for byte."""
    folder = FIXTURES / kind / case
    before = (folder / "before.py").read_text(encoding="utf-8")
    assert mended(kind, before, *CASES[kind, case]) == (folder / "after.py").read_text(encoding="utf-8")


def test_every_fixture_with_a_change_is_rewritten_here() -> None:
    """No change of these rules goes without a rewrite of its own."""
    changes = {(kind, path.parent.name) for kind in MINE for path in (FIXTURES / kind).glob("*/before.py")}
    assert changes == set(CASES)
