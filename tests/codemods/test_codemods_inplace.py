"""The rules of in-place writes, each fed with defects written by hand, on the fixtures and on odd layouts."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
from by_hand import Plain, defect_of

from gradfix import edits
from gradfix.defects import Defect, Span
from gradfix.places import Places
from gradfix.registry import codemods
from gradfix.rewriting.twins import FLAG_OF_FUNCTION, FLAG_OF_MODULE, FUNCTIONS, METHODS
from gradfix.rule import Decline, Edit, Fix, Options, Safety
from gradfix.tree import Tree

FIXTURES = Path(__file__).parent.parent.parent / "fixtures"

SAVED = "inplace_overwrites_saved"
GRAPH = "inplace_on_graph_tensor"
LEAF = "inplace_on_leaf"
MODULE = "inplace_module"
REBOUND = "leaf_rebound"
DATA = "write_through_data"
MANY = "inplace_on_view_of_many"

Found = tuple[str, dict[str, Plain]]


def found(culprit: str, target: str = "", **facts: Plain) -> Found:
    """The text of a culprit, and facts; those that begin with `at_` name a place by its text."""
    return culprit, {"target": target, **facts}


def place(source: str, text: str) -> Span:
    first = len(source[: source.index(text)].encode())
    return Places(source).span(first, first + len(text.encode()))


def defect(kind: str, source: str, one: Found) -> Defect:
    culprit, facts = one
    known: dict[str, Plain] = {}
    for name, fact in facts.items():
        at = name.startswith("at_")
        known[name.removeprefix("at_")] = place(source, str(fact)) if at else fact
    return defect_of(kind, source, place(source, culprit), known)


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
        found("p += eps", "p", aliased=True, saver="softmax", at_save="torch.softmax(logits, dim=-1)"),
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
    f"{SAVED}/non_ascii_before_it_on_the_line": (
        found("\N{GREEK SMALL LETTER SIGMA} -= 1", "\N{GREEK SMALL LETTER SIGMA}"),
    ),
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


def after_saved(source: str, culprit: str, target: str, **facts: Plain) -> str:
    return mended(SAVED, source, found(culprit, target, **facts))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("x *= a + b", "x = x * (a + b)", id="a sum in a product"),
        pytest.param("x += a * b", "x = x + a * b", id="a product in a sum"),
        pytest.param("x -= a - b", "x = x - (a - b)", id="a difference in a difference"),
        pytest.param("x += a + b", "x = x + (a + b)", id="a sum in a sum, which rounds in its own order"),
        pytest.param("x **= a ** b", "x = x ** a ** b", id="a power in a power"),
        pytest.param("x **= a * b", "x = x ** (a * b)", id="a product in a power"),
        pytest.param("x **= -a", "x = x ** -a", id="a sign in a power"),
        pytest.param("x *= -a", "x = x * -a", id="a sign in a product"),
        pytest.param("x *= (a + b)", "x = x * (a + b)", id="brackets that are there"),
        pytest.param("x *= a if c else b", "x = x * (a if c else b)", id="a choice"),
        pytest.param("x *= a > b", "x = x * (a > b)", id="a comparison"),
        pytest.param("x *= a or b", "x = x * (a or b)", id="a disjunction"),
        pytest.param("x *= not a", "x = x * (not a)", id="a negation"),
        pytest.param("x //= a", "x = x // a", id="whole division"),
        pytest.param("x %= a", "x = x % a", id="a remainder"),
        pytest.param("x &= a | b", "x = x & (a | b)", id="bits"),
        pytest.param("x |= a & b", "x = x | a & b", id="bits that bind tighter"),
        pytest.param("x <<= a << b", "x = x << (a << b)", id="shifts"),
        pytest.param("x+=y", "x=x+y", id="no spaces"),
        pytest.param("x   += y", "x   = x + y", id="spaces that line up"),
        pytest.param("x += \\\n    y", "x = \\\n    x + y", id="a line that goes on"),
        pytest.param("x += f(a,\n       b)", "x = x + f(a,\n       b)", id="a call over two lines"),
    ],
)
def test_an_augmented_assignment_keeps_its_layout_and_gets_the_brackets_it_needs(
    before: str, after: str
) -> None:
    source = f"import torch\n\n{before}  # why\n"
    assert after_saved(source, before, "x") == f"import torch\n\n{after}  # why\n"


@pytest.mark.parametrize(
    ("source", "culprit", "target", "after"),
    [
        pytest.param(
            "y = x.add_(1)\n", "x.add_(1)", "x", "y = x.add(1)\n", id="a result that replaces the tensor"
        ),
        pytest.param(
            "y = x.add_(1)\nz = x * y\n",
            "x.add_(1)",
            "x",
            "x = x.add(1)\ny = x\nz = x * y\n",
            id="a result beside a tensor that is read again",
        ),
        pytest.param(
            "x = x.add_(1) * 2\nx.sum()\n",
            "x.add_(1)",
            "x",
            "x = x.add(1) * 2\nx.sum()\n",
            id="a rebound name",
        ),
        pytest.param(
            "x: T = x.add_(1)\nx.sum()\n", "x.add_(1)", "x", "x: T = x.add(1)\nx.sum()\n", id="an annotation"
        ),
        pytest.param(
            "f(x, x.add_(1))\n",
            "x.add_(1)",
            "x",
            "x = x.add(1)\nf(x, x)\n",
            id="a bare name before it in the call",
        ),
        pytest.param(
            "for i in n:\n    y = f(x.add_(1))\n",
            "x.add_(1)",
            "x",
            "for i in n:\n    x = x.add(1)\n    y = f(x)\n",
            id="a loop that reads it again",
        ),
        pytest.param(
            "for i in n:\n    x = g(i)\n    y = f(x.add_(1))\n",
            "x.add_(1)",
            "x",
            "for i in n:\n    x = g(i)\n    y = f(x.add(1))\n",
            id="a loop that makes it anew",
        ),
        pytest.param(
            "if f(x.add_(1)) > 0:\n    y = x\n",
            "x.add_(1)",
            "x",
            "x = x.add(1)\nif f(x) > 0:\n    y = x\n",
            id="the test of an if",
        ),
        pytest.param(
            "def f(self):\n    return self.h.mul_(2)\n",
            "self.h.mul_(2)",
            "self.h",
            "def f(self):\n    self.h = self.h.mul(2)\n    return self.h\n",
            id="an attribute",
        ),
        pytest.param(
            "def f(x):\n    return x.mul_(2)\n",
            "x.mul_(2)",
            "x",
            "def f(x):\n    return x.mul(2)\n",
            id="a return",
        ),
        pytest.param(
            "h = act(x).add_(1)\n", "act(x).add_(1)", "", "h = act(x).add(1)\n", id="a value without a name"
        ),
        pytest.param(
            "h = F.relu(fc(x), inplace=True)\n",
            "F.relu(fc(x), inplace=True)",
            "",
            "h = F.relu(fc(x))\n",
            id="a flag",
        ),
        pytest.param(
            "F.relu(input=x, inplace=True)\n",
            "F.relu(input=x, inplace=True)",
            "x",
            "x = F.relu(input=x)\n",
            id="keywords",
        ),
        pytest.param(
            "h = F.elu(x, 1., True)\n",
            "F.elu(x, 1., True)",
            "x",
            "h = F.elu(x, 1.)\n",
            id="a flag by position",
        ),
        pytest.param(
            "x.mul_(2).copy_(y)\nx.sum()\n",
            "x.mul_(2)",
            "x",
            "x = x.mul(2)\nx.copy_(y)\nx.sum()\n",
            id="a chain that goes on in place",
        ),
        pytest.param(
            "x.add_(1).mul_(x)\n",
            "x.add_(1)",
            "x",
            "x = x.clone()\nx.add_(1).mul_(x)\n",
            id="a chain that reads what it has written",
        ),
        pytest.param("x.copy_(y)\n", "x.copy_(y)", "x", "x = x.clone()\nx.copy_(y)\n", id="no twin"),
        pytest.param(
            "x.view(-1).add_(1)\n",
            "x.view(-1).add_(1)",
            "x",
            "x = x.clone()\nx.view(-1).add_(1)\n",
            id="a view",
        ),
        pytest.param(
            "x.t()[0].mul_(2)\n",
            "x.t()[0].mul_(2)",
            "x",
            "x = x.clone()\nx.t()[0].mul_(2)\n",
            id="a view of a view",
        ),
        pytest.param(
            "F.relu(x[0], inplace=True)\n",
            "F.relu(x[0], inplace=True)",
            "x",
            "x = x.clone()\nF.relu(x[0], inplace=True)\n",
            id="a flag on a part",
        ),
        pytest.param(
            "xs[i][0] = v\n",
            "xs[i][0] = v",
            "xs[i]",
            "xs[i] = xs[i].clone()\nxs[i][0] = v\n",
            id="a list element",
        ),
        pytest.param(
            "self.buf[i] = v\n",
            "self.buf[i] = v",
            "self.buf",
            "self.buf = self.buf.clone()\nself.buf[i] = v\n",
            id="a part of an attribute",
        ),
        pytest.param(
            "x[0], x[1] = a, b\n",
            "x[0], x[1] = a, b",
            "x",
            "x = x.clone()\nx[0], x[1] = a, b\n",
            id="two parts at once",
        ),
        pytest.param(
            "a = 1; x[0] = 2; b = 3\n",
            "x[0] = 2",
            "x",
            "a = 1; x = x.clone(); x[0] = 2; b = 3\n",
            id="semicolons",
        ),
        pytest.param(
            "x[x > -1.5] = -9\n",
            "x[x > -1.5] = -9",
            "x",
            "x = x.masked_fill(x > -1.5, -9)\n",
            id="a mask of its own shape",
        ),
        pytest.param(
            "x[m > 0] = 0\n",
            "x[m > 0] = 0",
            "x",
            "x = x.clone()\nx[m > 0] = 0\n",
            id="a mask of another shape",
        ),
        pytest.param(
            "torch.sigmoid_(x)\n",
            "torch.sigmoid_(x)",
            "x",
            "x = torch.sigmoid(x)\n",
            id="a function of torch",
        ),
        pytest.param(
            "# above\nx[0] = 1\n", "x[0] = 1", "x", "# above\nx = x.clone()\nx[0] = 1\n", id="a comment above"
        ),
        pytest.param(
            "def f():\n    global x\n    x.add_(1)\n",
            "x.add_(1)",
            "x",
            "def f():\n    global x\n    x = x.add(1)\n",
            id="a global name",
        ),
        pytest.param("h.add_(y)\n", "h.add_(y)", "h", "h = h.add(y)\n", id="a plain call"),
    ],
)
def test_the_result_is_bound_where_later_reads_see_it(
    source: str, culprit: str, target: str, after: str
) -> None:
    assert after_saved(source, culprit, target) == after


@pytest.mark.parametrize(
    ("source", "target", "after"),
    [
        ("x[:, 0] *= 2\n", "x[:, 0]", "x = x.clone()\nx[:, 0] *= 2\n"),
        ("x[x > y] *= 2\n", "x[x > y]", "x = x.clone()\nx[x > y] *= 2\n"),
        ("x[0] *= 2\n", "x", "x = x.clone()\nx[0] *= 2\n"),
        ("x.T[0] = 1\n", "x.T", "x = x.clone()\nx.T[0] = 1\n"),
        ("xs[0] *= 2\n", "xs[0]", "xs[0] = xs[0] * 2\n"),
    ],
)
def test_what_holds_a_view_is_what_gets_the_clone(source: str, target: str, after: str) -> None:
    assert after_saved(source, source.strip(), target) == after


def test_a_call_holds_nothing_so_its_flag_goes() -> None:
    source = "h = F.relu(self.fc(x), inplace=True)\n"
    assert after_saved(source, "F.relu(self.fc(x), inplace=True)", "self.fc(x)") == "h = F.relu(self.fc(x))\n"


@pytest.mark.parametrize(
    ("save", "saver"),
    [
        pytest.param("z.pow(2)", "pow", id="the save kept its input"),
        pytest.param("F.relu(z, inplace=True)", "relu", id="the save wrote in place itself"),
    ],
)
def test_a_clone_behind_the_save_needs_a_result_of_its_own(save: str, saver: str) -> None:
    source = f"x = {save}\ny = x\nx += 1\nz = x + y\n"
    fix = answer(SAVED, source, found("x += 1", "x", aliased=True, at_save=save, saver=saver))
    assert isinstance(fix, Fix) and (fix.says, fix.safety) == ("x = x + 1", Safety.UNSAFE)


def test_a_dtype_that_would_change_is_brought_back() -> None:
    assert after_saved("h.add_(y)\n", "h.add_(y)", "h", promotes=True) == "h = h.add(y).to(h.dtype)\n"


def test_a_clone_stands_before_the_loop_when_the_save_does() -> None:
    source = "y = x.exp()\nfor i in n:\n    y[i] = 0\n"
    assert after_saved(source, "y[i] = 0", "y", at_save="x.exp()") == (
        "y = x.exp()\ny = y.clone()\nfor i in n:\n    y[i] = 0\n"
    )


def test_a_clone_stays_in_the_loop_when_the_save_is_in_it() -> None:
    source = "for i in n:\n    h = y.exp()\n    y[i] = 0\n"
    assert after_saved(source, "y[i] = 0", "y", at_save="y.exp()") == (
        "for i in n:\n    h = y.exp()\n    y = y.clone()\n    y[i] = 0\n"
    )


@pytest.mark.parametrize(
    ("source", "culprit", "target"),
    [
        pytest.param(
            "z = x.sum() + x.add_(1)\n", "x.add_(1)", "x", id="the statement reads the old value first"
        ),
        pytest.param("while f(x.add_(1)):\n    pass\n", "x.add_(1)", "x", id="the test of a while"),
        pytest.param(
            "if a:\n    pass\nelif f(x.add_(1)):\n    x\n", "x.add_(1)", "x", id="the test of an elif"
        ),
        pytest.param("y = a and x.add_(1)\nx\n", "x.add_(1)", "x", id="only sometimes evaluated"),
        pytest.param("y = [x.add_(i) for i in n]\nx\n", "x.add_(i)", "x", id="evaluated many times"),
        pytest.param("f = lambda: x.add_(1)\n", "x.add_(1)", "x", id="a lambda"),
        pytest.param("def f():\n    x.add_(1)\n", "x.add_(1)", "x", id="a name of an outer scope"),
        pytest.param("f().h += y\n", "f().h += y", "f().h", id="a place behind a call"),
        pytest.param(
            "xs[f()][g()] += y\n", "xs[f()][g()] += y", "xs[f()][g()]", id="a place behind two calls"
        ),
        pytest.param(
            "F.relu(x, inplace=self.flag)\n", "F.relu(x, inplace=self.flag)", "x", id="a flag from elsewhere"
        ),
        pytest.param("act(x).add_(1)\n", "act(x).add_(1)", "", id="nothing would see it"),
        pytest.param(
            "x.copy_(x.exp())\n",
            "x.copy_(x.exp())",
            "x",
            id="no twin, and its own argument saved",
        ),
    ],
)
def test_it_declines_where_the_meaning_could_change(source: str, culprit: str, target: str) -> None:
    facts: dict[str, Plain] = {"at_save": "x.exp()"} if "exp" in source else {}
    assert isinstance(answer(SAVED, source, found(culprit, target, **facts)), Decline)


def test_a_fix_is_unsafe_where_another_name_sees_the_write() -> None:
    fix = answer(SAVED, "y = x\nx += 1\nz = x + y\n", found("x += 1", "x", aliased=True))
    assert isinstance(fix, Fix) and fix.safety is Safety.UNSAFE


def test_there_is_no_fix_where_only_another_name_is_read() -> None:
    assert isinstance(answer(SAVED, "y = x\nx += 1\nz = y\n", found("x += 1", "x", aliased=True)), Decline)


def test_a_function_that_is_called_for_what_it_writes_is_left_to_the_author() -> None:
    source = "def scale(image, low):\n    image.clamp_(min=low)\n    image.sub_(low)\n"
    assert isinstance(answer(MANY, source, found("image.clamp_(min=low)", "image", aliased=True)), Decline)


def test_an_element_of_a_tuple_is_not_assigned() -> None:
    source = "rows = x.unbind()\nrows[0].mul_(2)\ny = rows[0]\n"
    assert isinstance(answer(MANY, source, found("rows[0].mul_(2)", "rows[0]", in_tuple=True)), Decline)
    assert mended(MANY, source, found("rows[0].mul_(2)", "rows[0]")).count("rows[0] = rows[0].mul(2)") == 1


def test_a_returned_tensor_is_read_again_by_the_caller() -> None:
    source = "def f(x):\n    return x.add_(1)\n"
    fix = answer(SAVED, source, found("x.add_(1)", "x", aliased=True))
    assert isinstance(fix, Fix) and fix.safety is Safety.UNSAFE


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("nn.ReLU(\n    inplace=True,\n)", "nn.ReLU()"),
        ("nn.ReLU(inplace = True)", "nn.ReLU()"),
        ("nn.Dropout(p=0.5,\n           inplace=True)", "nn.Dropout(p=0.5)"),
        ("nn.Dropout(inplace=True, p=0.5)", "nn.Dropout(p=0.5)"),
        ("nn.Threshold(0.1, 0, True)", "nn.Threshold(0.1, 0)"),
        ("nn.RReLU(0.1, 0.3, True)", "nn.RReLU(0.1, 0.3)"),
        ("partial(nn.ReLU, inplace=True)", "partial(nn.ReLU)"),
        ("ConvModule(3, inplace=True)", "ConvModule(3, inplace=False)"),
        ("nn.ReLU(  # saves memory\n    inplace=True)", "nn.ReLU(  # saves memory\n    )"),
    ],
)
def test_the_flag_of_a_module_goes(before: str, after: str) -> None:
    assert mended(MODULE, f"act = {before}\n", found(before)) == f"act = {after}\n"


@pytest.mark.parametrize("call", ["nn.ReLU(inplace=flag)", "nn.ReLU(flag)", "nn.ReLU(**options)"])
def test_the_flag_of_a_module_stays_where_it_comes_from_elsewhere(call: str) -> None:
    assert isinstance(answer(MODULE, f"act = {call}\n", found(call)), Decline)


def test_a_module_that_edits_what_is_read_again_is_unsafe_to_mend() -> None:
    fix = answer(MODULE, "act = nn.ReLU(True)\n", found("nn.ReLU(True)", aliased=True))
    assert isinstance(fix, Fix) and fix.safety is Safety.UNSAFE


@pytest.mark.parametrize(
    ("source", "culprit", "after"),
    [
        pytest.param(
            "import torch\n# step\nw -= lr * w.grad  # down\n\n# bias\nb.sub_(lr * b.grad)\nw.grad = None\n",
            "w -= lr * w.grad",
            "import torch\n# step\nwith torch.no_grad():\n    w -= lr * w.grad  # down\n\n    # bias\n"
            "    b.sub_(lr * b.grad)\nw.grad = None\n",
            id="comments",
        ),
        pytest.param(
            "from torch import no_grad as off\nw.fill_(0)\n",
            "w.fill_(0)",
            "from torch import no_grad as off\nwith off():\n    w.fill_(0)\n",
            id="no_grad by its own name",
        ),
        pytest.param(
            "import torch\ndef f(ws):\n  for w in ws:\n    w -= w.grad\n    log(w)\n",
            "w -= w.grad",
            "import torch\ndef f(ws):\n  for w in ws:\n    with torch.no_grad():\n      w -= w.grad\n"
            "    log(w)\n",
            id="two spaces, and a loop that does more",
        ),
        pytest.param(
            "import torch\nfor w in [a * 2, b]:\n    w -= w.grad\n",
            "w -= w.grad",
            "import torch\nfor w in [a * 2, b]:\n    with torch.no_grad():\n        w -= w.grad\n",
            id="a loop over results",
        ),
        pytest.param(
            "import torch\nwhile c: a = 1; w += 1  # go\n",
            "w += 1",
            "import torch\nwhile c:\n    a = 1\n    with torch.no_grad():\n        w += 1  # go\n",
            id="a one-line body of two statements",
        ),
        pytest.param(
            "import torch\nw[:, 4] += 1\nw[:, 5:] += 2\nv += 3\n",
            "w[:, 4] += 1",
            "import torch\nwith torch.no_grad():\n    w[:, 4] += 1\n    w[:, 5:] += 2\nv += 3\n",
            id="two parts of one leaf",
        ),
    ],
)
def test_updates_of_leaves_go_under_no_grad(source: str, culprit: str, after: str) -> None:
    assert mended(LEAF, source, found(culprit, "w", role="update")) == after


def test_an_update_needs_a_name_for_torch() -> None:
    fix = answer(LEAF, "from model import w\nw += 1\n", found("w += 1", "w", role="update"))
    assert isinstance(fix, Decline)


@pytest.mark.parametrize(
    ("source", "after"),
    [
        ("w = w - (a + w.grad)", "w -= a + w.grad"),
        ("w = w.sub(lr * w.grad)", "w.copy_(w.sub(lr * w.grad))"),
        ("w = (w - lr * w.grad).data", "w.copy_((w - lr * w.grad).data)"),
        ("self.w = self.w.detach() - self.w.grad", "self.w -= self.w.grad"),
        ("ws[i] = ws[i] - ws[i].grad", "ws[i] -= ws[i].grad"),
    ],
)
def test_a_rebound_leaf_is_updated_in_place(source: str, after: str) -> None:
    before = f"import torch\n{source}\n"
    assert mended(REBOUND, before, found(source)) == f"import torch\nwith torch.no_grad():\n    {after}\n"


@pytest.mark.parametrize("source", ["w, b = w - b.grad, b - w", "w = v = w - w.grad", "ws[f()] = ws[0] - g"])
def test_a_rebound_leaf_stays_where_the_update_is_not_plain(source: str) -> None:
    assert isinstance(answer(REBOUND, f"import torch\n{source}\n", found(source)), Decline)


@pytest.mark.parametrize(
    ("source", "after"),
    [
        ("y.data[i] += v", "y = y.clone()\ny[i] += v"),
        ("y.data = torch.relu(y.data)", "y = torch.relu(y)"),
        ("y.data.zero_()", "y = y.clone()\ny.zero_()"),
        ("y.data.mul_(2).add_(1)", "y = y.mul(2).add(1)"),
        ("self.h.data += v", "self.h = self.h + v"),
        ("y.data[0].zero_()", "y = y.clone()\ny[0].zero_()"),
    ],
)
def test_a_write_through_data_goes_to_the_tensor(source: str, after: str) -> None:
    assert mended(DATA, f"{source}\n", found(source)) == f"{after}\n"


def test_a_parameter_in_another_block_than_backward_is_left_to_the_author() -> None:
    source = "if a:\n    w.data.zero_()\nloss.backward()\n"
    one = found("w.data.zero_()", parameter=True, at_backward="loss.backward()")
    assert isinstance(answer(DATA, source, one), Decline)


@pytest.mark.torch
def test_every_method_has_its_twin_in_torch() -> None:
    torch = pytest.importorskip("torch")
    assert [name for name in METHODS if not hasattr(torch.Tensor, name)] == []
    assert [name for name in METHODS if not hasattr(torch.Tensor, name + "_")] == []


@pytest.mark.torch
def test_every_function_has_its_twin_in_torch() -> None:
    torch = pytest.importorskip("torch")
    homes = (torch, torch.nn.functional)
    assert [name for name in FUNCTIONS if not any(hasattr(home, name) for home in homes)] == []
    assert [name for name in FUNCTIONS if not any(hasattr(home, name + "_") for home in homes)] == []


@pytest.mark.torch
def test_the_flags_stand_where_torch_has_them() -> None:
    torch = pytest.importorskip("torch")
    for name, at in FLAG_OF_FUNCTION.items():
        assert list(inspect.signature(getattr(torch.nn.functional, name)).parameters)[at] == "inplace"
    for name, at in FLAG_OF_MODULE.items():
        flag = list(inspect.signature(getattr(torch.nn, name)).parameters.values())[at]
        assert (flag.name, flag.default) == ("inplace", False)
