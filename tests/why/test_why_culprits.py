"""Who is named for a traceback: programs with the line at fault marked, by hand and under torch."""

from __future__ import annotations

import contextlib
import re
import traceback
import warnings
from pathlib import Path

import pytest

from gradfix.config import Config
from gradfix.plan import Plan
from gradfix.why.answers import Answer, answer

MARK = "# <- at fault"
INPLACE = (
    "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace "
    "operation: [torch.FloatTensor [%s]]%s is at version 1; expected version 0 instead. Hint: enable anomaly"
)
FREED = "RuntimeError: Trying to backward through the graph a second time (or directly access saved tensors"
LEAFLESS = "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn"
NET = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.last = nn.Linear(4, 1)

    def forward(self, x):
        hidden = torch.sigmoid(self.first(x))
        hidden += 1  # <- at fault
        return self.last(hidden)
"""
TRAIN = """\
import torch

from net import Net

net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    loss = net(torch.ones(2, 4)).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def asked(text: str, folder: Path) -> Answer:
    return answer(text, [str(folder)], Plan(Config(folder), follows_imports=True))


def raised(path: str, line: int, function: str, code: str, said: str) -> str:
    return (
        "Traceback (most recent call last):\n"
        f'  File "{path}", line {line}, in {function}\n    {code}\n{said}\n'
    )


def put(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)


def line_of(text: str, part: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if part in line)


def first(told: Answer) -> tuple[str, int, str]:
    """The file, the line and how sure it is of what is named first."""
    suspect = told.culprits[0].suspect
    return Path(suspect.path).name, suspect.span.line, told.culprits[0].sure


def test_the_tapes_finding_in_another_file_is_the_line_at_fault(tmp_path: Path) -> None:
    put(tmp_path, net=NET, train=TRAIN)
    said = INPLACE % ("2, 4", ", which is output 0 of SigmoidBackward0,")
    told = asked(raised("train.py", 10, "<module>", "loss.backward()", said), tmp_path)
    assert first(told) == ("net.py", line_of(NET, MARK), "shown")
    assert "+        hidden = hidden + 1" in told.culprits[0].diff.decode()


@pytest.mark.parametrize(
    ("path", "line", "code"),
    [
        pytest.param("/home/b/elsewhere/proj/train.py", 10, "loss.backward()", id="of another machine"),
        pytest.param("D:\\b\\proj\\train.py", 10, "loss.backward()", id="of another system"),
        pytest.param("train.py", 4, "loss.backward()", id="whose line has moved"),
        pytest.param("train.py", 10, "loss.backward(  )", id="whose line was spaced anew"),
        pytest.param("<ipython-input-3-abc>", 5, "loss.backward()", id="that was a cell"),
    ],
)
def test_the_line_is_found_for_a_path(path: str, line: int, code: str, tmp_path: Path) -> None:
    put(tmp_path, net=NET, train=TRAIN)
    told = asked(raised(path, line, "<module>", code, INPLACE % ("2, 4", "")), tmp_path)
    assert [(Path(spot.path).name, spot.line) for spot in told.spots] == [("train.py", 10)]


def test_a_line_that_was_edited_is_found_but_nothing_is_shown_by_it(tmp_path: Path) -> None:
    put(tmp_path, net="import torch\n\n\ndef scale(views, mask):\n    views *= mask\n    return views\n")
    said = "RuntimeError: Output 0 of UnbindBackward0 is a view and is being modified inplace. This view"
    told = asked(raised("net.py", 5, "scale", "views *= m", said), tmp_path)
    assert first(told) == ("net.py", 5, "possible")


def test_a_file_of_the_same_name_with_other_text_is_not_blamed(tmp_path: Path) -> None:
    put(tmp_path, train="import torch\n\nx = torch.ones(3)\nprint(x)\n")
    said = "RuntimeError: a leaf Variable that requires grad is being used in an in-place operation."
    told = asked(raised("/elsewhere/train.py", 3, "main", "weights[0] *= 1.0001", said), tmp_path)
    assert first(told) == ("train.py", 3, "possible")
    assert told.culprits[0].suspect.code == "weights[0] *= 1.0001"
    assert told.spots == ()


def test_a_traceback_without_files_names_the_line_that_it_quotes(tmp_path: Path) -> None:
    said = "RuntimeError: a leaf Variable that requires grad is being used in an in-place operation."
    told = asked(raised("/elsewhere/a.py", 3, "main", "w += 1", said), tmp_path)
    assert first(told) == ("a.py", 3, "possible")


def test_a_message_about_something_else_blames_nobody(tmp_path: Path) -> None:
    put(tmp_path, train=TRAIN)
    told = asked(raised("train.py", 8, "<module>", "loss = net(x)", "ValueError: no"), tmp_path)
    assert (told.culprits, told.raised, told.exit_code) == ((), "ValueError: no", 0)


def test_a_text_without_a_traceback_says_what_to_give(tmp_path: Path) -> None:
    told = asked("epoch 1 done\n", tmp_path)
    assert told.exit_code == 2 and "Traceback" in told.error


GAN = """\
import torch


def train(gen, disc, loader, opt_d, opt_g, criterion, make):
    for real in loader:
        fake = gen(make(real))
        fake_out = disc(fake)
        d_loss = criterion(disc(real), 1) + criterion(fake_out, 0)
        opt_d.zero_grad()
        d_loss.backward(retain_graph=True)
        opt_d.step()  # <- at fault
        g_loss = criterion(fake_out, 1)
        opt_g.zero_grad()
        g_loss.backward()
        opt_g.step()
"""
UPDATES = """\
import torch


class Agent:
    def update(self, batch):
        policy_loss = self.policy_loss(batch)
        critic_loss = self.critic_loss(batch)
        self._perform(critic_loss, self.critic_opt)  # <- at fault
        self._perform(policy_loss, self.policy_opt)

    def _perform(self, loss, opt):
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
CARRIED = """\
import torch


def train(net, loader, criterion, optimizer, hidden):
    for x, y in loader:
        out, hidden = net(x, hidden)  # <- at fault
        loss = criterion(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
KEPT = """\
import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        out, self.hidden = self.cell(x, self.hidden)  # <- at fault
        return out


net = Net()


def train(loader, criterion):
    for x, y in loader:
        loss = criterion(net(x), y)
        loss.backward()
"""
SHARED = """\
import torch


def train(gen, disc, loader, opt_d, opt_g):
    for real in loader:
        fake = gen(real)
        d_loss = disc(real).mean() - disc(fake).mean()  # <- at fault
        d_loss.backward()
        opt_d.step()
        g_loss = -disc(fake).mean()
        g_loss.backward()
        opt_g.step()
"""
DISABLED = """\
import torch


def attack(model, x, y, criterion):
    loss = criterion(model(x), y)
    loss.backward()
    return x.grad


@torch.no_grad()  # <- at fault
def evaluate(model, loader, criterion):
    for x, y in loader:
        attack(model, x, y, criterion)
"""
ROUNDED = """\
import torch


def dice(prediction, target):
    chosen = prediction.argmax(dim=1)  # <- at fault
    return 1 - (chosen * target).sum() / target.sum()


def train(model, loader):
    for x, y in loader:
        loss = dice(model(x), y)
        loss.backward()
"""
LISTED = """\
import matplotlib.pyplot as plt


def train(net, loader):
    losses = []
    for x in loader:
        loss = net(x).sum()
        losses.append(loss)  # <- at fault
        loss.backward()
    plt.plot(losses)
"""
WRAPPED = """\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def main(model, loader):
    model = DDP(model)  # <- at fault
    for x in loader:
        model(x).sum().backward()
"""


@pytest.mark.parametrize(
    ("text", "quoted", "said", "places"),
    [
        pytest.param(
            GAN, "g_loss.backward()", INPLACE % ("128, 1", ", which is output 0 of AsStridedBackward0,"), 1,
            id="a step between the forward and its backward",
        ),
        pytest.param(
            UPDATES, "self._perform(policy_loss, self.policy_opt)",
            INPLACE % ("256, 1", ", which is output 0 of TBackward,"), 1,
            id="a step in a method that runs backward and steps",
        ),
        pytest.param(CARRIED, "loss.backward()", FREED, 1, id="a state that is carried along"),
        pytest.param(KEPT, "loss.backward()", FREED, 1, id="a state that a module keeps"),
        pytest.param(SHARED, "g_loss.backward()", FREED, 3, id="a fake that both losses use"),
        pytest.param(ROUNDED, "loss.backward()", LEAFLESS, 1, id="an argmax in a loss"),
        pytest.param(
            LISTED, "plt.plot(losses)", "RuntimeError: Can't call numpy() on Tensor that requires grad.", 1,
            id="losses that are plotted",
        ),
        pytest.param(
            WRAPPED, "model(x).sum().backward()",
            "RuntimeError: Expected to have finished reduction in the prior iteration before starting", 1,
            id="a wrapper that waits for gradients",
        ),
    ],
)  # fmt: skip
def test_the_place_is_named_where_the_tape_is_silent_for(
    text: str, quoted: str, said: str, places: int, tmp_path: Path
) -> None:
    put(tmp_path, train=text)
    line = line_of(text, quoted)
    function = "update" if text is UPDATES else "main" if text is WRAPPED else "train"
    told = asked(raised("train.py", line, function, quoted, said), tmp_path)
    named = [culprit.suspect.span.line for culprit in told.culprits[:places]]
    assert line_of(text, MARK) in named


def test_a_block_around_the_caller_is_named_for_a_loss_without_a_graph(tmp_path: Path) -> None:
    put(tmp_path, train=DISABLED)
    inner = raised("train.py", 6, "attack", "loss.backward()", LEAFLESS)
    outer = '  File "train.py", line 13, in evaluate\n    attack(model, x, y, criterion)\n'
    told = asked(inner.replace('  File "train.py"', outer + '  File "train.py"', 1), tmp_path)
    assert line_of(DISABLED, MARK) in [each.suspect.span.line for each in told.culprits[:3]]


def test_what_is_named_first_without_proof_is_not_called_shown(tmp_path: Path) -> None:
    put(tmp_path, train=CARRIED)
    told = asked(raised("train.py", 9, "train", "loss.backward()", FREED), tmp_path)
    assert told.culprits[0].sure != "shown"
    assert told.culprits[0].suspect.assumes


def test_a_legal_write_is_no_line_at_fault_by_the_tapes_word_alone(tmp_path: Path) -> None:
    text = (
        "import torch\n\n\ndef train(net, x):\n    y = net(x) * 2\n    y += 1\n    loss = y.sum()\n"
        "    loss.backward()\n"
    )
    put(tmp_path, train=text)
    said = raised("train.py", 8, "train", "loss.backward()", INPLACE % ("3, 3", ""))
    told = asked(said, tmp_path)
    assert all(culprit.sure != "shown" for culprit in told.culprits)


TWO_WRITES = """\
import torch


def forward(a, b):
    p = torch.relu(a)
    q = torch.relu(b)
    p += 1
    q += 1  # <- at fault
    return p + q


def train(a, b):
    loss = forward(a, b).sum()
    loss.backward()
"""
WARNED = """\
/x/site-packages/torch/autograd/graph.py:824: UserWarning: Error detected in ReluBackward0. \
Traceback of forward call that caused the error:
  File "train.py", line 13, in train
    loss = forward(a, b).sum()
  File "train.py", line 6, in forward
    q = torch.relu(b)
"""


def test_anomaly_modes_line_decides_between_two_writes(tmp_path: Path) -> None:
    put(tmp_path, train=TWO_WRITES)
    said = INPLACE % ("3", ", which is output 0 of ReluBackward0,")
    told = asked(WARNED + raised("train.py", 14, "train", "loss.backward()", said), tmp_path)
    assert first(told)[:2] == ("train.py", line_of(TWO_WRITES, MARK))


PROGRAMS = {
    "a write over what sigmoid saved": """\
import torch
x = torch.ones(3, requires_grad=True)
y = torch.sigmoid(x)
y *= 2  # <- at fault
y.sum().backward()
""",
    "a part of a tensor that is written in a loop": """\
import torch
w = torch.ones(3, 3, requires_grad=True)
h = torch.zeros(4, 3)
for i in range(3):
    h[i + 1] = torch.tanh(h[i] @ w)  # <- at fault
h.sum().backward()
""",
    "a module in place over a saved output": """\
import torch
from torch import nn
act = nn.ReLU(inplace=True)  # <- at fault
x = torch.ones(3, requires_grad=True)
y = torch.exp(x)
z = act(y)
z.sum().backward()
""",
    "a step before the backward": """\
import torch
from torch import nn
net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
loss = net(torch.ones(2, 3)).sum()
loss.backward(retain_graph=True)
opt.step()  # <- at fault
loss.backward()
""",
    "a leaf that is updated": """\
import torch
w = torch.ones(3, requires_grad=True)
w.sum().backward()
w -= 0.1 * w.grad  # <- at fault
""",
    "one of several views": """\
import torch
x = torch.ones(2, 3, requires_grad=True) * 2
a, b = x.unbind(0)
a += 1  # <- at fault
""",
    "a loss of several elements": """\
import torch
x = torch.ones(3, requires_grad=True)
loss = x * 2
loss.backward()  # <- at fault
""",
    "an array of a loss": """\
import torch
x = torch.ones(3, requires_grad=True)
y = (x * 2).numpy()  # <- at fault
""",
    "integers that are to learn": """\
import torch
x = torch.tensor([1, 2], requires_grad=True)  # <- at fault
""",
    "a loss that was detached": """\
import torch
from torch import nn
net = nn.Linear(3, 1)
loss = net(torch.ones(2, 3)).sum().detach()  # <- at fault
loss.backward()
""",
    "an update that rebinds the leaf": """\
import torch
w = torch.ones(3, requires_grad=True)
for _ in range(2):
    loss = (w * w).sum()
    loss.backward()
    with torch.no_grad():
        w = w - 0.1 * w.grad  # <- at fault
""",
    "a floor in a loss": """\
import torch
x = torch.ones(3, requires_grad=True)
y = x // 2  # <- at fault
y.sum().backward()
""",
    "a gradient of what isn't a leaf": """\
import torch
x = torch.ones(3, requires_grad=True) * 2  # <- at fault
x.sum().backward()
x.grad.zero_()
""",
}


def output(path: Path, anomaly: bool) -> str:
    """What a program writes when it fails, its warnings first."""
    import torch

    code = compile(path.read_text(), str(path), "exec")
    with warnings.catch_warnings(record=True) as caught, contextlib.ExitStack() as stack:
        warnings.simplefilter("always")
        if anomaly:
            stack.enter_context(torch.autograd.set_detect_anomaly(True))
        try:
            exec(code, {"__name__": "__main__"})
        except Exception:
            failed = traceback.format_exc()
        else:
            pytest.fail("the program does not fail")
    warned = "".join(f"torch/graph.py:1: UserWarning: {each.message}\n" for each in caught)
    return re.sub(r"(?m)^  File .*, line \d+, in output\n.*\n(?: +[~^]+\n)?", "", warned + failed)


@pytest.mark.torch
@pytest.mark.parametrize(
    "anomaly", [pytest.param(False, id="alone"), pytest.param(True, id="in anomaly mode")]
)
@pytest.mark.parametrize("name", [pytest.param(name, id=name) for name in PROGRAMS])
def test_the_line_at_fault_is_named_first_for(name: str, anomaly: bool, tmp_path: Path) -> None:
    put(tmp_path, program=PROGRAMS[name])
    text = output(tmp_path / "program.py", anomaly)
    told = asked(text.replace(str(tmp_path), "/another/machine"), tmp_path)
    assert told.culprits, text
    assert told.culprits[0].suspect.span.line == line_of(PROGRAMS[name], MARK)


WALKED = """\
import torch

x = torch.ones(3, requires_grad=True)
made = x.exp()
first = made.sum()
second = made.mean()
first.backward()
second.backward()
"""


def test_which_of_two_backwards_is_to_change_is_left_open(tmp_path: Path) -> None:
    put(tmp_path, train=WALKED)
    told = asked(raised("train.py", 8, "<module>", "second.backward()", FREED), tmp_path)
    assert first(told) == ("train.py", 7, "possible")
    assert told.culprits[0].suspect.finding is not None
