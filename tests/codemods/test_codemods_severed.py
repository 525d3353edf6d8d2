"""The rules of severed graphs, each fed with defects written by hand, on the fixtures and on odd layouts."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

import pytest
from by_hand import Plain, defect_of

from gradfix import edits
from gradfix.defects import Defect, Span
from gradfix.places import Places
from gradfix.registry import codemods
from gradfix.rule import Decline, Fix, Options
from gradfix.tree import Tree

FIXTURES = Path(__file__).parent.parent.parent / "fixtures"

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
Found: TypeAlias = "tuple[Text, dict[str, Plain | list[Text] | Text]]"


def found(culprit: Text, **facts: Plain | list[Text] | Text) -> Found:
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
    known: dict[str, Plain] = {}
    for name, fact in facts.items():
        if isinstance(fact, list):
            known[name.removeprefix("at_")] = tuple(place(source, text) for text in fact)
        elif name.startswith("at_"):
            assert isinstance(fact, str | tuple)
            known[name.removeprefix("at_")] = place(source, fact)
        else:
            known[name] = fact
    return defect_of(kind, source, place(source, culprit), known)


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
        found("torch.tensor(loss.item(), requires_grad=True)", form="tensor")
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
        found("torch.tensor(-math.log(p), requires_grad=True)", form="tensor")
    ],
    (CONVERTED, "floats_added_up"): [
        found("torch.tensor(float(mse) + 0.01 * float(reg), requires_grad=True)", form="tensor")
    ],
    (CONVERTED, "mean_taken_by_numpy"): [
        found("torch.tensor(np.mean(np.square(error.detach().numpy())), requires_grad=True)", form="tensor")
    ],
    (CONVERTED, "through_numpy_and_back"): [found("torch.from_numpy(values)", form="from_numpy")],
    (CONVERTED, "variable_in_a_forward"): [found("Variable(x)", form="Variable")],
    (CONVERTED, "tensor_of_the_loss"): [
        found("torch.tensor(loss_fn(model(x), y), requires_grad=True)", form="tensor")
    ],
    (CONVERTED, "float_tensor_of_losses"): [found("torch.FloatTensor(losses)", form="tensor_of_list")],
    (CONVERTED, "items_in_a_list"): [found("torch.tensor(losses, requires_grad=True)", form="tensor")],
    (CONVERTED, "parameter_around_the_loss"): [found("nn.Parameter(out.sum())", form="Parameter")],
    (CONVERTED, "list_and_back"): [found("torch.tensor(scores.tolist(), requires_grad=True)", form="tensor")],
    (UNRECORDED, "one_statement_without_grad"): [found("with torch.no_grad():\n    z = y * 2")],
    (UNRECORDED, "forward_and_loss_of_a_loop"): [
        found(
            "with torch.no_grad():\n        output = model(x)\n        # mean over the batch\n"
            "        loss = criterion(output,\n                         y)",
            at_forward=["criterion(output,\n                         y)"],
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
            at_forward=["nn.functional.cross_entropy(logits, y)"],
        )
    ],
    (UNRECORDED, "update_stays_without_grad"): [
        found(
            "with torch.no_grad():\n        loss = ((x @ w - y) ** 2).mean()\n        loss.backward()\n"
            "        w -= 0.1 * w.grad\n        w.grad = None",
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


def test_every_rewrite_here_is_that_of_a_fixture() -> None:
    """And no rule goes without one."""
    changes = {(kind, path.parent.name) for kind in MINE for path in (FIXTURES / kind).glob("*/before.py")}
    assert set(CASES) <= changes
    assert {kind for kind, _ in CASES} == {kind for kind, _ in changes}


LAYOUTS = [
    pytest.param(
        DETACHED, "z = y.detach(); w = z + 1\r\n", "z = y; w = z + 1\r\n", "y.detach()", id="two on a line"
    ),
    pytest.param(DETACHED, "x = 1; y.detach_()  # c\n", "x = 1  # c\n", "y.detach_()", id="last on a line"),
    pytest.param(DETACHED, "if a: y.detach_()\n", "if a: pass\n", "y.detach_()", id="a body on one line"),
    pytest.param(
        DETACHED,
        "if a:\n\t# why\n\ty.detach_()  # cut\nb\n",
        "if a:\n\t# why\n\tpass\nb\n",
        "y.detach_()",
        id="the only statement of a block, under a comment",
    ),
    pytest.param(
        DETACHED, "ü = 'é'; z = ñ.detach() * 2\n", "ü = 'é'; z = ñ * 2\n", "ñ.detach()", id="wide letters"
    ),
    pytest.param(DETACHED, "z = -(a + b).data\n", "z = -(a + b)\n", "(a + b).data", id="after a minus"),
    pytest.param(DETACHED, "z = (a @ b).data + c\n", "z = a @ b + c\n", "(a @ b).data", id="in a sum"),
    pytest.param(DETACHED, "f((a + b).detach(), 1)\n", "f(a + b, 1)\n", "(a + b).detach()", id="an argument"),
    pytest.param(
        DETACHED,
        "loss = f(\n    y.detach(),  # prediction\n    t,\n)\n",
        "loss = f(\n    y,  # prediction\n    t,\n)\n",
        "y.detach()",
        id="a line of a call",
    ),
    pytest.param(DETACHED, "a, b = a, b.detach()\nc\n", "c\n", "b.detach()", id="a pair that becomes itself"),
    pytest.param(
        DETACHED, "self.h = self.h.detach()\nc\n", "c\n", "self.h.detach()", id="an attribute that does"
    ),
    pytest.param(DETACHED, "z = torch.detach(y)\n", "z = y\n", "torch.detach(y)", id="the function"),
    pytest.param(
        DETACHED,
        "import matplotlib.pyplot as plt\ny = f(x).detach()\nplt.plot(y)\ny = 1\nplt.plot(y)\n",
        "import matplotlib.pyplot as plt\ny = f(x)\nplt.plot(y.detach())\ny = 1\nplt.plot(y)\n",
        "f(x).detach()",
        id="a plot, until the name is bound again",
    ),
    pytest.param(
        DETACHED,
        "loss = g(f(x.detach()).detach())\n",
        "loss = g(f(x.detach()))\n",
        "f(x.detach()).detach()",
        id="a cut of the input stays",
    ),
]


@pytest.mark.parametrize(("kind", "before", "after", "culprit"), LAYOUTS)
def test_the_layout_is_kept(kind: str, before: str, after: str, culprit: str) -> None:
    """Only the cut goes; brackets, comments, semicolons and line ends are as they were."""
    assert mended(kind, before, found(culprit)) == after


CONVERSIONS = [
    pytest.param("loss = Variable(loss)\n", "\n", "Variable(loss)", "Variable", id="a bare Variable"),
    pytest.param("t = float(a + b) * 2\n", "t = (a + b) * 2\n", "float(a + b)", "float", id="brackets added"),
    pytest.param(
        "t = torch.tensor(a, dtype=torch.float64)\n",
        "t = a.to(torch.float64)\n",
        "torch.tensor(a, dtype=torch.float64)",
        "tensor",
        id="a dtype",
    ),
    pytest.param(
        "t = torch.tensor(\n    [a.item(), b],\n    dtype=d,\n    device=g,\n)\n",
        "t = torch.stack([a, b]).to(dtype=d, device=g)\n",
        "torch.tensor(\n    [a.item(), b],\n    dtype=d,\n    device=g,\n)",
        "tensor_of_list",
        id="a dtype and a device",
    ),
    pytest.param(
        "t = torch.DoubleTensor((a, 0.5))\n",
        "t = torch.stack((a, torch.tensor(0.5))).double()\n",
        "torch.DoubleTensor((a, 0.5))",
        "tensor_of_list",
        id="a number in a pair of doubles",
    ),
    pytest.param(
        "t = torch.tensor([f(x) for x in xs])\n",
        "t = torch.stack([f(x) for x in xs])\n",
        "torch.tensor([f(x) for x in xs])",
        "tensor_of_list",
        id="a comprehension",
    ),
    pytest.param(
        "from math import log as ln\nt = x * ln(y.item() + 1)\n",
        "from math import log as ln\nt = x * torch.log(y + 1)\n",
        "y.item()",
        "item",
        id="a function of math under its own name",
    ),
    pytest.param(
        "import numpy as np\nt = np.sum(x.data.numpy() ** 2, axis=1).mean()\n",
        "import numpy as np\nt = torch.sum(x ** 2, axis=1).mean()\n",
        "x.data.numpy()",
        "numpy",
        id="numpy with an axis",
    ),
    pytest.param(
        "t = torch.tensor(x.detach().requires_grad_().item(), requires_grad=True)\n",
        "t = x.detach().requires_grad_()\n",
        "torch.tensor(x.detach().requires_grad_().item(), requires_grad=True)",
        "tensor",
        id="a leaf that was begun on purpose",
    ),
    pytest.param("t = (x.tolist())[0]\n", "t = x[0]\n", "x.tolist()", "tolist", id="one entry of a list"),
]


@pytest.mark.parametrize(("before", "after", "culprit", "form"), CONVERSIONS)
def test_a_conversion_becomes_its_tensor(before: str, after: str, culprit: str, form: str) -> None:
    """What stood around the conversion computes with the tensor."""
    text = mended(CONVERTED, "import torch\n" + before, found(culprit, form=form))
    assert text == "import torch\n" + after.lstrip("\n")


def test_numbers_are_collected_as_tensors() -> None:
    """A loss averaged by numpy over a list of items is averaged by torch over the losses."""
    before = (
        "import numpy as np\nimport torch\nlosses = []\nfor x in xs:\n    losses.append(f(x).item())\n"
        "loss = torch.tensor(np.mean(losses) / len(losses), requires_grad=True)\n"
    )
    after = (
        "import numpy as np\nimport torch\nlosses = []\nfor x in xs:\n    losses.append(f(x))\n"
        "loss = torch.mean(torch.stack(losses)) / len(losses)\n"
    )
    one = found("torch.tensor(np.mean(losses) / len(losses), requires_grad=True)", form="tensor")
    assert mended(CONVERTED, before, one) == after


def test_a_logged_number_is_converted_at_the_log() -> None:
    before = "import torch\nloss = f(x).item()\nlog(loss, 'loss')\nloss.backward()\n"
    after = "import torch\nloss = f(x)\nlog(loss.item(), 'loss')\nloss.backward()\n"
    one = found("f(x).item()", form="item", at_logged=[("loss", 1)])
    assert mended(CONVERTED, before, one) == after


REBUILT = [
    pytest.param(
        "v = loss.item()\nprint(v)\nloss = torch.tensor(v, requires_grad=True)\n",
        "v = loss.item()\nprint(v)\n",
        "torch.tensor(v, requires_grad=True)",
        id="the tensor behind a number that stays for the log",
    ),
    pytest.param(
        "loss = loss.item()\nloss = torch.tensor(loss, requires_grad=True)\nx = 1\n",
        "x = 1\n",
        "torch.tensor(loss, requires_grad=True)",
        id="there and back under one name",
    ),
    pytest.param(
        "v = f(x).item()\nloss = torch.tensor(v, requires_grad=True)\nprint(v)\n",
        "v = f(x)\nloss = v\nprint(v.item())\n",
        "torch.tensor(v, requires_grad=True)",
        id="a number that is printed afterwards",
    ),
    pytest.param(
        "t = 0.0\nfor x in y:\n    t += f(x).item()\nt /= 2\nloss = torch.tensor(t, requires_grad=True)\n",
        "t = 0.0\nfor x in y:\n    t += f(x)\nt /= 2\nloss = t\n",
        "torch.tensor(t, requires_grad=True)",
        id="a sum over a loop",
    ),
    pytest.param(
        "import math\nloss = torch.tensor(-math.log(p.item()) / math.log(2), requires_grad=True)\n",
        "import math\nloss = -torch.log(p) / math.log(2)\n",
        "torch.tensor(-math.log(p.item()) / math.log(2), requires_grad=True)",
        id="a logarithm of a constant stays a number",
    ),
    pytest.param(
        "a = l1.item()\nb = float(l2)\nloss = torch.tensor([a, b]).sum()\n",
        "a = l1.item()\nb = float(l2)\nloss = torch.stack([l1, l2]).sum()\n",
        "torch.tensor([a, b])",
        id="two numbers in a list",
    ),
    pytest.param(
        "ls = [f(x).item() for x in xs]\nloss = torch.tensor(sum(ls) / len(ls), requires_grad=True)\n",
        "ls = [f(x) for x in xs]\nloss = sum(ls) / len(ls)\n",
        "torch.tensor(sum(ls) / len(ls), requires_grad=True)",
        id="a comprehension of numbers",
    ),
    pytest.param(
        "w = torch.nn.Parameter(torch.zeros(3))\nloss = w[0]\nt = torch.tensor([loss]).sum()\nu = w + 1\n",
        "w = torch.nn.Parameter(torch.zeros(3))\nloss = w[0]\nt = torch.stack([loss]).sum()\nu = w + 1\n",
        "torch.tensor([loss])",
        id="a parameter is where the graph begins",
    ),
    pytest.param(
        "w = torch.zeros(3).requires_grad_()\nt = torch.tensor([w[0]]).sum()\n",
        "w = torch.zeros(3).requires_grad_()\nt = torch.stack([w[0]]).sum()\n",
        "torch.tensor([w[0]])",
        id="so is what was told to require grad",
    ),
    pytest.param(
        "x = torch.from_numpy(array)\nloss = (w * x).sum()\nt = torch.tensor([loss]).sum()\n",
        "x = torch.from_numpy(array)\nloss = (w * x).sum()\nt = torch.stack([loss]).sum()\n",
        "torch.tensor([loss])",
        id="data that is made a tensor stays one",
    ),
    pytest.param(
        "values = out.data.cpu().numpy()\npred = torch.from_numpy(values)\n",
        "values = out.cpu()\npred = values\n",
        "torch.from_numpy(values)",
        id="an array",
    ),
]


@pytest.mark.parametrize(("before", "after", "culprit"), REBUILT)
def test_a_rebuilt_tensor_is_followed_to_its_sources(before: str, after: str, culprit: str) -> None:
    """Where the culprit is the constructor, the conversions are found behind the names that it reads."""
    text = mended(CONVERTED, "import torch\n" + before, found(culprit, form="tensor"))
    assert text == "import torch\n" + after


DECLINES = [
    pytest.param(
        CONVERTED,
        "import torch\nls = []\nls.append(f(x).item())\nt = torch.tensor(ls)\nprint(max(ls))\n",
        found("torch.tensor(ls)", form="tensor_of_list"),
        "used as plain numbers",
        id="a list of numbers that is read elsewhere",
    ),
    pytest.param(
        CONVERTED,
        "import torch, numpy as np\nt = torch.tensor(np.std(x.detach().numpy()))\n",
        found("x.detach().numpy()", form="numpy"),
        "`np.std`",
        id="numpy's standard deviation divides by n",
    ),
    pytest.param(
        CONVERTED,
        "import torch\nimport math\nt = math.log(x, 2)\n",
        found("math.log(x, 2)", form="math"),
        "`math.log`",
        id="a logarithm with a base",
    ),
    pytest.param(
        CONVERTED,
        "import torch\nt = torch.tensor([*losses])\n",
        found("torch.tensor([*losses])", form="tensor_of_list"),
        "starred",
        id="a starred entry",
    ),
    pytest.param(
        CONVERTED,
        "from torch import tensor\nt = tensor([a, b])\n",
        found("tensor([a, b])", form="tensor_of_list"),
        "torch is not imported",
        id="no name for torch",
    ),
    pytest.param(
        UNRECORDED,
        "with torch.set_grad_enabled(train):\n    loss = f(x)\n",
        found("with torch.set_grad_enabled(train):\n    loss = f(x)"),
        "decided while the program runs",
        id="a mode that depends on a flag",
    ),
    pytest.param(
        UNRECORDED,
        "with torch.no_grad():\n    a = f(x)\n    w -= a\n    b = g(a)\n",
        found("with torch.no_grad():\n    a = f(x)\n    w -= a\n    b = g(a)", at_forward=["f(x)", "g(a)"]),
        "split this block by hand",
        id="a write between two statements of the forward",
    ),
    pytest.param(
        UNRECORDED,
        "with torch.no_grad(), open(p) as f:\n    a = g(x)\n    w -= a\n",
        found("with torch.no_grad(), open(p) as f:\n    a = g(x)\n    w -= a", at_forward=["g(x)"]),
        "split this block by hand",
        id="a write beside another context",
    ),
    pytest.param(
        LEAFLESS,
        "import torch\nx = torch.randint(0, 5, (3,))\n",
        found("torch.randint(0, 5, (3,))"),
        "integers carry no gradient",
        id="random integers",
    ),
    pytest.param(
        LEAFLESS,
        "import torch\nx = torch.tensor([1], dtype=torch.long)\n",
        found("torch.tensor([1], dtype=torch.long)"),
        "integers carry no gradient",
        id="an integer dtype on purpose",
    ),
    pytest.param(
        SWITCHED, "loss.requires_grad = True\n", found("loss.requires_grad = True"), "remove it", id="no cut"
    ),
    pytest.param(
        SWITCHED,
        "import torch, math\nx = math.log(y, 2)\nx.requires_grad_()\n",
        found("x.requires_grad_()", at_cut="math.log(y, 2)"),
        "`math.log`",
        id="a cut without a twin",
    ),
    pytest.param(
        UNREACHED,
        "o = SGD(p)\nloss.requires_grad_()\n",
        found("SGD(p)", at_cut="loss.requires_grad_()"),
        "hides a cut",
        id="a switch that only hides the cut",
    ),
    pytest.param(UNREACHED, "o = SGD(p)\n", found("SGD(p)"), "take them out of the optimizer", id="unused"),
    pytest.param(
        NON_LEAF,
        "f(x * 2).backward()\n",
        found("x * 2", target=""),
        "retain_grad()",
        id="a value without name",
    ),
    pytest.param(
        FLAT,
        "loss = (x.argmax(1) - y).abs()\n",
        found("x.argmax(1)", op="argmax"),
        "torch.nn.functional.cross_entropy(x, y)",
        id="argmax against a target",
    ),
    pytest.param(
        FLAT, "p = f.argmax(x)\n", found("f.argmax(x)", op="argmax"), "cross_entropy(f, target)", id="argmax"
    ),
    pytest.param(
        FLAT, "take(x.argmax)(1)\n", found("take(x.argmax)(1)", op="argmax"), "on the logits", id="no scores"
    ),
    *(
        pytest.param(
            FLAT, f"{made}\nloss = ({test}).float()\n", found(test, op="eq"), words, id=f"{made}: {test}"
        )
        for made, test, words in [
            ("p = x.argmax(1)", "p == y", "let the loss be torch.nn.functional.cross_entropy(x, y)"),
            ("p = x.argmax(1)", "y.ne(p)", "let the loss be torch.nn.functional.cross_entropy(x, y)"),
            ("_, p = x.max(1)", "p == y", "let the loss be torch.nn.functional.cross_entropy(x, y)"),
            ("p = d.argmin(1)", "p == y", "let the loss be torch.nn.functional.cross_entropy(-d, y)"),
            ("p = x.argmax(1); p = z", "p == y", "smooth"),
            ("p = z", "p == y", "smooth"),
        ]
    ),
    pytest.param(
        FLAT,
        "f(g(x).round())\n",
        found("g(x).round()", op="round"),
        "with x = g(x), x + (x.round() - x).detach()",
        id="a rounding of what is called, which nothing holds",
    ),
    pytest.param(
        FLAT,
        "x.round_()\n",
        found("x.round_()", op="round"),
        "x + (x.round() - x).detach()",
        id="a rounding in place",
    ),
    pytest.param(
        FLAT, "x > 0\n", found("x > 0", op=">"), "torch.sigmoid((x - 0) / temperature)", id="a comparison"
    ),
    pytest.param(
        FLAT, "x.long()\n", found("x.long()", op="long"), "from `x`, before the cast", id="an integer cast"
    ),
    pytest.param(FLAT, "d.sample()\n", found("d.sample()", op="sample"), "rsample()", id="a sample"),
]


@pytest.mark.parametrize(("kind", "source", "one", "words"), DECLINES)
def test_what_is_not_certain_is_declined_with_advice(kind: str, source: str, one: Found, words: str) -> None:
    assert words in reason(kind, source, one)


@pytest.mark.parametrize(
    ("source", "culprit", "after"),
    [
        pytest.param(
            "q = z.round()\n", "z.round()", "q = z + (z.round() - z).detach()\n", id="the method of a name"
        ),
        pytest.param(
            "f(torch.sign(self.z))\n",
            "torch.sign(self.z)",
            "f(self.z + (torch.sign(self.z) - self.z).detach())\n",
            id="a function of an attribute",
        ),
        pytest.param(
            "q = z[0].floor() / 4\n",
            "z[0].floor()",
            "q = (z[0] + (z[0].floor() - z[0]).detach()) / 4\n",
            id="a part of something",
        ),
        pytest.param(
            "if a:\n    q = net(x).round(decimals=1)\n",
            "net(x).round(decimals=1)",
            "if a:\n    q = net(x)\n    q = q + (q.round(decimals=1) - q).detach()\n",
            id="of a call: it runs once",
        ),
    ],
)
def test_what_is_rounded_gets_a_straight_through_estimator(source: str, culprit: str, after: str) -> None:
    one = found(culprit, op="round")
    _, fix = answer(FLAT, "import torch\n" + source, one)
    assert isinstance(fix, Fix)
    assert fix.unsafe
    assert mended(FLAT, "import torch\n" + source, one) == "import torch\n" + after


LOOKED_UP = """import torch
d = torch.cdist(z, codes)
index = d.argmin(DIM)
q = codes[index]
"""
SCORED = found("SGD(p)", cut_kind="constant", at_cut="d.argmin(DIM)", at_chosen="codes[index]",
               at_scored="torch.cdist(z, codes)")  # fmt: skip


def looked_up(dim: str, before: str, **facts: Plain) -> tuple[str, Found]:
    culprit, known = SCORED
    known = {**known, "at_cut": f"d.argmin({dim})", **facts}
    return before + LOOKED_UP.replace("DIM", dim) + "o = SGD(p)\n", (culprit, known)


@pytest.mark.parametrize(
    ("dim", "before", "rank"),
    [
        pytest.param("-1", "z = f(x)\n", None, id="along the last dimension"),
        pytest.param("dim=1", "z = f(x)\n", 1, id="an index of one dimension"),
        pytest.param("1", "z = x.view(-1, 4)\n", None, id="of the rows of a matrix"),
    ],
)
def test_what_is_chosen_from_a_codebook_gets_a_straight_through_estimator(
    dim: str, before: str, rank: int | None
) -> None:
    source, one = looked_up(dim, before, rank=rank)
    _, fix = answer(UNREACHED, source, one)
    assert isinstance(fix, Fix)
    assert fix.unsafe
    assert "q = codes[index] + (z - z.detach())\n" in mended(UNREACHED, source, one)


@pytest.mark.parametrize(
    ("dim", "before", "facts"),
    [
        pytest.param("", "z = f(x)\n", {}, id="over all"),
        pytest.param("1", "z = f(x)\n", {}, id="along what may not be the last dimension"),
        pytest.param("1", "z = f(x)\n", {"rank": 2}, id="along another dimension"),
        pytest.param("1", "z = torch.reshape(x, shape)\n", {}, id="of what has any shape"),
        pytest.param("-1, keepdim=True", "z = f(x)\n", {}, id="with a dimension more"),
        pytest.param("-1", "z = f(x)\nz = g(z)\n", {}, id="a name of two values"),
        pytest.param("-1", "z = f(x)\n", {"alone": False}, id="beside another cut"),
    ],
)
def test_what_may_have_another_shape_is_chosen_by_hand(
    dim: str, before: str, facts: dict[str, Plain]
) -> None:
    assert "y + (x - x.detach())" in reason(UNREACHED, *looked_up(dim, before, **facts))


BLOCKS = [
    pytest.param(
        "# a\nwith torch.no_grad():\n\n    # b\n    x = f(y)\n\n    # c\n\nz = 1\n",
        "# a\n# b\nx = f(y)\n\n# c\n\nz = 1\n",
        "with torch.no_grad():\n\n    # b\n    x = f(y)",
        [],
        id="comments above, inside and at the end",
    ),
    pytest.param(
        "h = f.parameters()\nwith torch.no_grad():\n    y = f(x)\n    t = h(x)\n    loss = g(y, t)\n",
        "h = f.parameters()\ny = f(x)\nwith torch.no_grad():\n    t = h(x)\nloss = g(y, t)\n",
        "with torch.no_grad():\n    y = f(x)\n    t = h(x)\n    loss = g(y, t)",
        ["g(y, t)"],
        id="a teacher between, which nothing trains, stays inside",
    ),
    pytest.param(
        "with torch.no_grad():\n    a = []\n    for x in xs:\n        a.append(f(x))\n    loss = sum(a)\n",
        "a = []\nfor x in xs:\n    a.append(f(x))\nloss = sum(a)\n",
        "with torch.no_grad():\n    a = []\n    for x in xs:\n        a.append(f(x))\n    loss = sum(a)",
        ["sum(a)"],
        id="a loop that collects losses",
    ),
    pytest.param(
        "h = f.parameters()\nwith torch.no_grad():\n    t = h(x)\n    n = 3\n    y = f(x)\n    l = g(y, t)\n",
        "h = f.parameters()\nwith torch.no_grad():\n    t = h(x)\nn = 3\ny = f(x)\nl = g(y, t)\n",
        "with torch.no_grad():\n    t = h(x)\n    n = 3\n    y = f(x)\n    l = g(y, t)",
        ["f(x)", "g(y, t)"],
        id="a teacher before the forward stays inside",
    ),
    pytest.param(
        "with torch.no_grad():\n    y = f(x)\n\n    # acc\n    acc = y.argmax(1)\n    n += 1\n    log(acc)\n",
        "y = f(x)\n\nwith torch.no_grad():\n    # acc\n    acc = y.argmax(1)\nn += 1\nlog(acc)\n",
        "with torch.no_grad():\n    y = f(x)\n\n    # acc\n    acc = y.argmax(1)\n    n += 1\n    log(acc)",
        ["f(x)"],
        id="a metric behind it stays, counting and logging leave",
    ),
    pytest.param(
        "with torch.no_grad():\n    y = f(x) + \\\n        f(\n            x)\n",
        "y = f(x) + \\\n    f(\n        x)\n",
        "with torch.no_grad():\n    y = f(x) + \\\n        f(\n            x)",
        ["f(x)"],
        id="what follows a backslash moves along",
    ),
    pytest.param(
        "with a, torch.no_grad(), b: y = f(x); z = y\n",
        "with a, b: y = f(x); z = y\n",
        "with a, torch.no_grad(), b: y = f(x); z = y",
        ["f(x)"],
        id="one of three contexts over a body on one line",
    ),
]


@pytest.mark.parametrize(("before", "after", "culprit", "forward"), BLOCKS)
def test_a_block_dissolves(before: str, after: str, culprit: str, forward: list[Text]) -> None:
    """What needs no graph stays without one; comments keep their places."""
    assert mended(UNRECORDED, before, found(culprit, at_forward=forward)) == after


LEAVES = [
    pytest.param(
        "torch.tensor(2)", "torch.tensor(2, dtype=torch.float32, requires_grad=True)", id="an integer"
    ),
    pytest.param("torch.tensor([1, 2.5])", "torch.tensor([1, 2.5], requires_grad=True)", id="mixed numbers"),
    pytest.param("torch.eye(2, requires_grad=False)", "torch.eye(2, requires_grad=True)", id="said False"),
    pytest.param("torch.Tensor([1, 2])", "torch.Tensor([1, 2]).requires_grad_()", id="no such keyword"),
    pytest.param(
        "torch.rand(\n    2,  # rows\n    3  # columns\n)",
        "torch.rand(\n    2,  # rows\n    3,\n    requires_grad=True  # columns\n)",
        id="a comment before the closing bracket",
    ),
]


@pytest.mark.parametrize(("before", "after"), LEAVES)
def test_a_leaf_asks_for_its_gradient(before: str, after: str) -> None:
    """In the way that the call is written, with floats where there were integers."""
    assert mended(LEAFLESS, f"import torch\nx = {before}\n", found(before)) == f"import torch\nx = {after}\n"


@pytest.mark.parametrize(
    ("before", "after", "facts"),
    [
        pytest.param(
            "x = a * 2; x.sum()\n", "x = a * 2; x.retain_grad(); x.sum()\n", found("a * 2"), id="on one line"
        ),
        pytest.param(
            "x, y = a * 2, b\n",
            "x, y = a * 2, b\nx.retain_grad()\n",
            found("a * 2", target="x"),
            id="one of a pair",
        ),
        pytest.param(
            "x = torch.ones(2).requires_grad_() * 3\n",
            "x = (torch.ones(2) * 3).requires_grad_()\n",
            found("torch.ones(2).requires_grad_() * 3", at_factory="torch.ones(2).requires_grad_()"),
            id="asked for by a method",
        ),
        pytest.param(
            "x = (torch.ones(2, requires_grad=True) * 3)\n",
            "x = (torch.ones(2) * 3).requires_grad_()\n",
            found("torch.ones(2, requires_grad=True) * 3", at_factory="torch.ones(2, requires_grad=True)"),
            id="in brackets",
        ),
    ],
)
def test_a_result_keeps_its_gradient(before: str, after: str, facts: Found) -> None:
    assert mended(NON_LEAF, before, facts) == after


@pytest.mark.parametrize(
    "leaf",
    [
        "nn.Parameter(torch.zeros(1))",
        "torch.tensor([0.5], requires_grad=True)",
        "torch.zeros(3, requires_grad=True)",
        "torch.tensor(0.5)",
    ],
)
def test_a_leaf_that_is_made_there_stays_a_leaf(leaf: str) -> None:
    """What is taken off is the cut alone: a graph begins with the rest."""
    head = "import torch\nfrom torch import nn\n"
    one = found(f"{leaf}.detach()", form="detach")
    assert mended(DETACHED, f"{head}w = {leaf}.detach()\n", one) == f"{head}w = {leaf}\n"
