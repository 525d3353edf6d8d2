"""The rules of in-place writes, each fed with defects written by hand, on the fixtures and on odd layouts."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradfix import edits
from gradfix.places import Places
from gradfix.registry import codemods
from gradfix.rule import Decline, Edit, Fix, Options, Safety
from gradfix.tape.defects import Defect, Fact, Span
from gradfix.tree import Tree

FIXTURES = Path(__file__).parent.parent / "fixtures"

SAVED = "inplace_overwrites_saved"
GRAPH = "inplace_on_graph_tensor"
LEAF = "inplace_on_leaf"
MODULE = "inplace_module"
REBOUND = "leaf_rebound"
DATA = "write_through_data"
MANY = "inplace_on_view_of_many"

Found = tuple[str, dict[str, Fact]]


def found(culprit: str, target: str = "", **facts: Fact) -> Found:
    """The text of a culprit, and facts; those that begin with `at_` name a place by its text."""
    return culprit, {"target": target, **facts}


def place(source: str, text: str) -> Span:
    first = len(source[: source.index(text)].encode())
    return Places(source).span(first, first + len(text.encode()))


def defect(kind: str, source: str, one: Found) -> Defect:
    culprit, facts = one
    known: dict[str, Fact] = {}
    for name, fact in facts.items():
        at = name.startswith("at_")
        known[name.removeprefix("at_")] = place(source, str(fact)) if at else fact
    return Defect(kind, place(source, culprit), (), "certain", "crashes", facts=known)


def rewrite(kind: str, source: str, *some: Found) -> tuple[str, list[Fix | Decline]]:
    """The text after one round of fixes, and what the rule answered to each defect."""
    tree = Tree(source)
    answers = [codemods()[kind].rule.rewrite(defect(kind, source, one), tree, Options()) for one in some]
    fixes = [answer for answer in answers if isinstance(answer, Fix)]
    chosen: list[Edit] = []
    for number in edits.compatible(tree, [fix.edits for fix in fixes]):
        chosen += fixes[number].edits
    return edits.apply(tree, chosen), answers


def mended(kind: str, source: str, *some: Found) -> str:
    return rewrite(kind, source, *some)[0]


def answer(kind: str, source: str, one: Found) -> Fix | Decline:
    return rewrite(kind, source, one)[1][0]


BY_FIXTURE: dict[str, tuple[Found, ...]] = {
    f"{SAVED}/relu_then_add_script": (found("out += skip", "out"),),
    f"{SAVED}/relu_in_another_class": (found("out += h", "out"),),
    f"{SAVED}/relu_last_in_sequential": (found("y += shortcut", "y"),),
    f"{SAVED}/relu_in_module_list": (found("x += residual", "x"),),
    f"{SAVED}/fpn_laterals": (
        found("laterals[i-1] += F.interpolate(laterals[i], scale_factor=2, mode='nearest')", "laterals[i-1]"),
    ),
    f"{SAVED}/gate_times_sum": (found("gate *= x + self.bias", "gate"),),
    f"{SAVED}/l2_normalize": (found("x /= norm", "x"),),
    f"{SAVED}/softmax_add_method": (found("probs.add_(1e-6)", "probs"),),
    f"{SAVED}/chain_of_methods": (found("action.add_(1.0)", "action"),),
    f"{SAVED}/method_inside_a_call": (found("e.add_(-1)", "e"),),
    f"{SAVED}/method_inside_a_call_read_later": (found("e.sub_(1)", "e"),),
    f"{SAVED}/mask_after_softmax": (found("attn[pad] = 0.0", "attn"),),
    f"{SAVED}/comparison_mask_becomes_masked_fill": (found("y[y < 0] = 0", "y"),),
    f"{SAVED}/recurrence_over_rows": (
        found("states[t] = torch.tanh(w * states[t - 1] + inp[t])", "states", at_save="w * states[t - 1]"),
    ),
    f"{SAVED}/alias_before_slice_write": (found("out[:, 1:, 0] = x[:, :-1, 0]", "out"),),
    f"{SAVED}/slice_augmented": (
        found("xywh[:, :2] *= 2", "xywh", at_save="boxes.sigmoid()"),
        found("xywh[:, 2:] **= 2", "xywh", at_save="boxes.sigmoid()"),
    ),
    f"{SAVED}/functional_relu_keyword": (found("F.relu(x, inplace=True)", "x"),),
    f"{SAVED}/functional_dropout_positional": (found("F.dropout(h, 0.5, self.training, True)", "h"),),
    f"{SAVED}/out_argument": (found("torch.add(batch, noise, out=batch)", "batch"),),
    f"{SAVED}/batch_scaled_after_the_layer": (found("x.mul_(2)", "x"),),
    f"{SAVED}/argument_edited_and_used_by_the_caller": (
        found("p += eps", "p", aliased=True, kept="result", at_save="torch.softmax(logits, dim=-1)"),
    ),
    f"{SAVED}/rnn_hidden_times_mask": (found("h *= alive", "h"),),
    f"{SAVED}/seq2seq_attention_weights": (found("weights *= mask", "weights"),),
    f"{SAVED}/gan_instance_noise": (found("fake += 0.1 * torch.randn_like(fake)", "fake"),),
    f"{SAVED}/advantage_centered": (found("advantage -= advantage.mean()", "advantage"),),
    f"{SAVED}/notebook_cells": (found("vec /= scale", "vec"),),
    f"{SAVED}/argparse_flag": (found("h += x", "h"),),
    f"{SAVED}/trainer_clamps_probabilities": (found("probs.clamp_(1e-4, 1 - 1e-4)", "probs"),),
    f"{SAVED}/one_line_body_and_semicolons": (found("h *= scale", "h"), found("k += skip", "k")),
    f"{SAVED}/one_line_body_index_write": (found("y[:n] = 0", "y"),),
    f"{SAVED}/tabs": (found("out[:, 0] = 1", "out"),),
    f"{SAVED}/crlf_line_ends": (found("y += 1", "y"),),
    f"{SAVED}/non_ascii_before_it_on_the_line": (found("σ -= 1", "σ"),),
    f"{SAVED}/every_operator": (
        found("a-=1", "a"),
        found("b *= -a if a.sum() > 9 else a", "b"),
        found("c **= 2", "c"),
        found("d /= (1\n      + x)", "d"),
    ),
    f"{SAVED}/masked_fill_method": (found("weights.masked_fill_(future, 0.)", "weights"),),
    f"{SAVED}/unet_up_path": (found("x3 += x1", "x3"),),
    f"{SAVED}/function_with_underscore": (found("F.relu_(h)", "h"),),
    f"{SAVED}/index_edited_after_lookup": (found("idx += 1", "idx"),),
    f"{SAVED}/attribute_state": (found("self.state += x.mean()", "self.state"),),
    f"{SAVED}/dictionary_entry": (found('feats["p3"] += feats["p4"]', 'feats["p3"]'),),
    f"{SAVED}/half_keeps_its_dtype": (found("h += bias", "h", promotes=True),),
    f"{SAVED}/multi_line_right_side": (found("out *= (\n    scale  # per channel\n    + 1.0\n)", "out"),),
    f"{SAVED}/nested_function": (found("t += 1", "t"),),
    f"{SAVED}/index_with_a_side_effect": (found("rows[next(order)] += 1", "rows[next(order)]"),),
    f"{GRAPH}/seed_plus_one_after_mul": (found("y += 1", "y"),),
    f"{GRAPH}/seed_add_method_before_the_square": (found("y.add_(1)", "y"),),
    f"{GRAPH}/seed_add_the_leaf": (found("y.add_(x)", "y"),),
    f"{GRAPH}/seed_double_the_linear_output": (found("intermediate_tensor *= 2.0", "intermediate_tensor"),),
    f"{GRAPH}/residual_after_batch_norm": (found("out += x", "out"),),
    f"{GRAPH}/slice_of_a_sum": (found("c[0] = 0", "c"),),
    f"{LEAF}/hand_written_regression": (
        found("w -= lr * w.grad", "w", role="update"),
        found("b -= lr * b.grad", "b", role="update"),
    ),
    f"{LEAF}/loop_over_parameters": (found("p -= 0.1 * p.grad", "p", role="update"),),
    f"{LEAF}/initialisation_in_a_module": (
        found("self.weight.uniform_(-0.1, 0.1)", "self.weight", role="update"),
    ),
    f"{LEAF}/padding_row_of_an_embedding": (found("emb.weight[0] = 0", "emb.weight", role="update"),),
    f"{LEAF}/weights_clipped_after_the_step": (found("p.clamp_(-0.01, 0.01)", "p", role="update"),),
    f"{LEAF}/value_that_nothing_optimises": (found("total += w * i", "total", role="value"),),
    f"{LEAF}/filled_row_by_row": (found("stacked[0] = w * 2", "stacked", role="value"),),
    f"{LEAF}/torch_imported_in_parts": (found("layer.weight.mul_(0.5)", "layer.weight", role="update"),),
    f"{LEAF}/between_semicolons": (found("w -= 0.1 * w.grad / g", "w", role="update"),),
    f"{MODULE}/relu_over_tanh": (found("nn.ReLU(inplace=True)"),),
    f"{MODULE}/dropout_after_relu": (found("nn.Dropout(p, inplace=True)"),),
    f"{MODULE}/leaky_relu_positional": (found("nn.LeakyReLU(0.2, True)"),),
    f"{MODULE}/flag_set_far_away": (found("net[2].inplace = True"),),
    f"{MODULE}/first_op_of_the_block_edits_the_caller": (found("nn.ReLU(True)"),),
    f"{MODULE}/one_relu_shared_by_the_whole_block": (found("nn.ReLU(inplace=True)"),),
    f"{MODULE}/positional_hardtanh_with_bounds": (found("Hardtanh(0.1, 0.9, inplace=True)"),),
    f"{MODULE}/layers_list_in_a_loop": (found("nn.Dropout(0.1, inplace=True)"),),
    f"{REBOUND}/linear_regression": (found("w = w - lr * w.grad", "w"),),
    f"{REBOUND}/two_parameters_in_no_grad": (
        found("w = w - 0.05 * w.grad", "w"),
        found("b = b - 0.05 * b.grad", "b"),
    ),
    f"{REBOUND}/two_parameters": (found("w = w - lr * w.grad", "w"), found("b = b - lr * b.grad", "b")),
    f"{REBOUND}/tuple_assignment": (found("w, b = w - 0.1 * w.grad, b - 0.1 * b.grad", "w"),),
    f"{REBOUND}/weight_decay_needs_copy": (
        found("theta = theta - 0.1 * theta.grad - 0.01 * theta", "theta"),
    ),
    f"{REBOUND}/data_of_the_old_weight": (found("w = w.data - 0.1 * w.grad.data", "w"),),
    f"{REBOUND}/adversarial_example": (found("x = x + 0.1 * x.grad.sign()", "x"),),
    f"{DATA}/scaled_after_exp": (found("y.data.add_(1)", "y"),),
    f"{DATA}/mask_written_through_data": (found("s.data[0] = 0.5", "s"),),
    f"{DATA}/data_assigned": (found("h.data = h.data * 3", "h"),),
    f"{DATA}/augmented_data": (found("out.data *= scale", "out"),),
    f"{DATA}/parameter_clamped_before_backward": (
        found("scale.data.clamp_(min=0)", "scale", parameter=True, at_backward="loss.backward()"),
    ),
    f"{MANY}/chunked_gates": (found("f += 1.0", "f"),),
    f"{MANY}/split_method": (found("logvar.clamp_(-2, 2)", "logvar"),),
    f"{MANY}/unbind_coordinates": (found("x2 -= x1", "x2"), found("y2 -= y1", "y2")),
    f"{MANY}/rows_of_a_tensor": (found("row *= 2", "row"),),
    f"{MANY}/gated_linear_unit": (found("value *= F.silu(gate) + 1", "value"),),
    f"{MANY}/functional_keyword": (found("F.relu(a, inplace=True)", "a"),),
    f"{MANY}/slice_of_a_chunk": (found("left[:, 0] = 0", "left"),),
}


@pytest.mark.parametrize("case", BY_FIXTURE)
def test_the_fixture_is_mended_from_a_defect_written_by_hand(case: str) -> None:
    folder = FIXTURES / case
    before = (folder / "before.py").read_bytes().decode()
    assert (
        mended(case.partition("/")[0], before, *BY_FIXTURE[case])
        == (folder / "after.py").read_bytes().decode()
    )
