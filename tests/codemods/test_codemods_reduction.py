"""Where a loss of several elements is reduced: by who makes it, calls it and reads one number of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradfix.config import Config
from gradfix.engine import fix
from gradfix.plan import Plan
from gradfix.rewriting.reductions import EVERYWHERE, UNREDUCED

NET = """import torch
from torch import nn

net = nn.Linear(3, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.ones(5, 3), torch.zeros(5, dtype=torch.long)
"""
NONE = 'criterion = nn.CrossEntropyLoss(reduction="none")\n'
MEAN = NONE.replace("none", "mean")
TRAIN = """
def train(model, loss_fn):
    loss = loss_fn(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
REDUCED = TRAIN.replace("loss.backward", "loss.mean().backward")


def evaluate(body: str) -> str:
    return f"\ndef evaluate(model, loss_fn):\n    with torch.no_grad():\n        {body}\n"


CALLS = "\ntrain(net, criterion)\n"
BOTH = CALLS + "evaluate(net, criterion)\n"


def mended(text: str, root: Path | None = None) -> str | None:
    plan = Plan(Config(root or Path(), unsafe_fixes=True), follows_imports=root is not None)
    path = str(root / "program.py") if root is not None else "program.py"
    outcome = fix(path, (NET + text).encode(), plan)
    return outcome.after.decode().removeprefix(NET) if outcome.after else None


def unsafe(text: str) -> list[str]:
    return [one.unsafe for one in fix("program.py", (NET + text).encode(), Plan(Config(Path()))).findings]


NUMBER = evaluate("return loss_fn(model(x), y).item()")


def test_a_loss_that_is_handed_over_reduces_where_it_is_built() -> None:
    program = NONE + TRAIN + NUMBER + BOTH
    assert mended(program) == MEAN + TRAIN + NUMBER + BOTH
    assert unsafe(program) == [EVERYWHERE]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("return loss_fn(model(x), y)[y == 1]", id="chosen from"),
        pytest.param("return loss_fn(model(x), y).sum().item()", id="reduced by a method"),
        pytest.param("return torch.mean(loss_fn(model(x), y)).item()", id="reduced by a function"),
    ],
)
def test_a_loss_that_another_caller_needs_whole_is_reduced_at_its_backward(body: str) -> None:
    program = NONE + TRAIN + evaluate(body) + BOTH
    assert mended(program) == NONE + REDUCED + evaluate(body) + BOTH
    assert unsafe(program) == [""]


def test_a_rewrite_that_leaves_another_caller_without_its_number_says_so() -> None:
    other = NUMBER.replace("evaluate", "score")
    program = (
        NONE
        + TRAIN
        + evaluate("return loss_fn(model(x), y)[y == 1]")
        + other
        + BOTH
        + "score(net, criterion)\n"
    )
    assert unsafe(program) == [UNREDUCED]


FIRST = """
def first():
    criterion = nn.CrossEntropyLoss(reduction="none")
    loss = criterion(net(x), y)
    loss.backward()
"""
SECOND = """
def second():
    criterion = nn.MSELoss()
    loss = criterion(net(x), torch.zeros(5, 4))
    loss.backward()
"""


def test_a_name_that_is_given_several_losses_is_no_riddle() -> None:
    assert mended(FIRST + SECOND) == FIRST.replace("loss.b", "loss.mean().b") + SECOND


OTHER = 'other = nn.NLLLoss(reduction="none")\n'
AND_OTHER = "train(net, other)\n"


def test_one_backward_of_several_losses_is_reduced_here_where_nobody_else_gets_them() -> None:
    calls = CALLS + AND_OTHER
    assert mended(NONE + OTHER + TRAIN + calls) == NONE + OTHER + REDUCED + calls


def test_each_of_the_losses_that_others_get_too_reduces_where_it_is_built() -> None:
    rest = TRAIN + NUMBER + BOTH + AND_OTHER
    assert mended(NONE + OTHER + rest) == MEAN + OTHER.replace("none", "mean") + rest


def test_a_loss_that_is_built_in_another_file_is_reduced_here_which_is_unsafe(tmp_path: Path) -> None:
    (tmp_path / "losses.py").write_text("from torch import nn\n" + NONE)
    program = "from losses import criterion\n" + TRAIN + CALLS
    assert mended(program, tmp_path) == "from losses import criterion\n" + REDUCED + CALLS
    plan = Plan(Config(tmp_path), follows_imports=True)
    outcome = fix(str(tmp_path / "program.py"), (NET + program).encode(), plan)
    assert [one.unsafe for one in outcome.findings] == [UNREDUCED]


LOSS = 'loss = nn.functional.cross_entropy(net(x), y, reduction="none")\n'
MEAN_LOSS = LOSS.rstrip() + ".mean()\n"
BACK = "opt.zero_grad()\nloss.backward()\nopt.step()\n"


@pytest.mark.parametrize(
    "reading",
    [
        "print(loss)",
        "print(f'loss {loss}')",
        "print('%s' % loss)",
        "print('%d %.2f' % (3, loss))",
        "print('{}'.format(loss))",
        "print(str(loss))",
        "writer.add_scalar('loss', loss, 3)",
        "print(loss.detach().cpu().item())",
    ],
)
def test_a_loss_that_is_shown_is_reduced_where_it_is_made(reading: str) -> None:
    assert mended(f"{LOSS}{BACK}{reading}\n") == f"{MEAN_LOSS}{BACK}{reading}\n"


def test_the_first_element_of_old_code_becomes_the_number() -> None:
    assert mended(f"{LOSS}shown = loss.data[0]\n{BACK}") == f"{MEAN_LOSS}shown = loss.item()\n{BACK}"


def test_the_first_element_of_another_loss_under_the_name_stays() -> None:
    other = "loss = net(x).pow(2).mean(0)\nprint(loss.data[0])\n"
    program = f"{other}{LOSS}shown = loss.data[0]\n{BACK}"
    assert mended(program) == f"{other}{MEAN_LOSS}shown = loss.item()\n{BACK}"


def test_the_first_element_becomes_the_number_where_the_loss_is_built_to_be_one() -> None:
    shown = evaluate("loss = loss_fn(model(x), y)\n        return loss.data[0]")
    number = shown.replace("data[0]", "item()")
    assert mended(NONE + TRAIN + shown + BOTH) == MEAN + TRAIN + number + BOTH


@pytest.mark.parametrize(
    "reading",
    [
        pytest.param("print(loss.shape)", id="its shape is shown"),
        pytest.param("print('%d' % 3, loss[2])", id="one element is shown"),
        pytest.param("show(loss=3)", id="an argument has its name"),
        pytest.param("print(net.loss)", id="an attribute has its name"),
    ],
)
def test_what_is_not_read_as_one_number_is_reduced_at_its_backward(reading: str) -> None:
    back = BACK.replace("loss.b", "loss.mean().b")
    assert mended(f"{LOSS}{BACK}{reading}\n") == f"{LOSS}{back}{reading}\n"


PRODUCT = "w = torch.ones(3, requires_grad=True)\nz = w * 2\n"


@pytest.mark.parametrize(
    ("reading", "made"),
    [
        pytest.param("print(z)", False, id="all of it is shown"),
        pytest.param("print('%s' % z)", False, id="all of it is shown in a text"),
        pytest.param("print('%.2f' % z)", True, id="a number is wanted in a text"),
        pytest.param("print('{:.2f}'.format(z))", True, id="a number is wanted by format"),
        pytest.param("total = 0.0\ntotal += z.detach()", True, id="a total that begins as a number"),
        pytest.param("n, total = 0, 0\ntotal += (z * len(w)).detach()", True, id="so many times it is added"),
        pytest.param("total = torch.zeros(4)\ntotal += z.detach()", False, id="a total for each element"),
        pytest.param("total = 0\ntotal += (z * w).sum().detach()", False, id="a sum that weighs each"),
        pytest.param("total = 0\ntotal += (z * w).detach()", False, id="weights, perhaps for each"),
        pytest.param("print(f'{z:.2f}')", True, id="a number is wanted by an f-string"),
    ],
)
def test_a_product_is_reduced_where_it_is_made_if_a_number_is_wanted(reading: str, made: bool) -> None:
    there = PRODUCT.replace("w * 2", "(w * 2).sum()") + "z.backward()\n"
    here = PRODUCT + "z.sum().backward()\n"
    assert mended(f"{PRODUCT}z.backward()\n{reading}\n") == f"{there if made else here}{reading}\n"


@pytest.mark.parametrize(
    ("used", "reduced"),
    [
        pytest.param("print(loss.data[0])", True, id="read"),
        pytest.param("loss.data[0] = 0.0", False, id="written"),
        pytest.param("loss.data[0] += 1.0", False, id="added to"),
    ],
)
def test_a_loss_is_one_number_where_it_is_made_unless_its_elements_are_written(
    used: str, reduced: bool
) -> None:
    after = mended(f"loss = net(x)\n{used}\nloss.backward()\nopt.step()\n")
    assert after is None or ("loss = net(x).sum()" in after) is reduced
    assert after is None or ".item() =" not in after.replace("+=", "=")
