"""Code that leaves backward, steps or clearing to a framework: what is a bug there, and what is not."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gradfix import pool
from gradfix.cli import main
from gradfix.config import read
from gradfix.plan import plan_for
from gradfix.run import Wish, run
from gradfix.source import Source, parse
from gradfix.tape.effects.frameworks import ROWS, Entry, Row, merged
from gradfix.tape.entries import analyse
from gradfix.verify import Command, Launcher, Limits

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"
OFF = {"inplace_on_graph_tensor", "backward_in_no_grad"}


def kinds(body: str, rows: Mapping[str, Row] = ROWS) -> set[str]:
    source = parse("case.py", (HEAD + textwrap.dedent(body)).encode())
    assert isinstance(source, Source)
    return {defect.kind for defect in analyse(source, None, rows).defects} - OFF


def lightning(step: str, init: str = "") -> str:
    """A LightningModule with this training_step."""
    body = textwrap.indent(textwrap.dedent(step).strip(), " " * 8)
    return f"""
import lightning as L

class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(3, 3)
        {init}

    def training_step(self, batch, batch_idx):
        x, y = batch
{body}

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())
"""


MANUAL = "self.automatic_optimization = False"
SETUP = "net = nn.Linear(3, 3)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\n"


def loop(made: str, turn: str) -> str:
    """A plain loop with a framework's object."""
    body = textwrap.indent(textwrap.dedent(turn).strip(), "    ")
    return f"{made}\n{SETUP}for x, y in torch.utils.data.DataLoader([]):\n{body}\n"


DEEPSPEED = "import deepspeed"
ENGINE = "engine, _, _, _ = deepspeed.initialize(model=net, model_parameters=net.parameters(), config={})\n"


def deepspeed(turn: str) -> str:
    return loop(DEEPSPEED, turn).replace("for x", ENGINE + "for x")


def ignite(step: str) -> str:
    body = textwrap.indent(textwrap.dedent(step).strip(), "    ")
    return (
        f"from ignite.engine import Engine\n{SETUP}def update(engine, batch):\n    x, y = batch\n{body}\n"
        "trainer = Engine(update)\n"
    )


def learner(body: str) -> str:
    inner = textwrap.indent(textwrap.dedent(body).strip(), "    ")
    return (
        f"from fastai.learner import Learner\ndef criterion(pred, target):\n{inner}\n"
        "Learner(dls, nn.Linear(1, 1), loss_func=criterion)\n"
    )


def mmengine(step: str) -> str:
    body = textwrap.indent(textwrap.dedent(step).strip(), " " * 8)
    return f"""
from mmengine.model import BaseModel

class Model(BaseModel):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(3, 3)

    def train_step(self, data, optim_wrapper):
        x, y = data
{body}
"""


FOUND = {
    "Lightning: the loss is returned as a number": (
        lightning("loss = F.cross_entropy(self.net(x), y)\nreturn loss.item()"),
        "converted_loss_path",
    ),
    "Lightning: the loss is returned without its graph": (
        lightning("loss = F.cross_entropy(self.net(x), y)\nreturn {'loss': loss.detach()}"),
        "detached_loss_path",
    ),
    "Lightning: the prediction is detached": (
        lightning("return F.cross_entropy(self.net(x).detach(), y)"),
        "detached_loss_path",
    ),
    "Lightning: the prediction is made under no_grad": (
        lightning("with torch.no_grad():\n    out = self.net(x)\nreturn F.cross_entropy(out, y)"),
        "forward_in_no_grad",
    ),
    "Lightning by hand: nothing clears": (
        lightning(
            "opt = self.optimizers()\nself.manual_backward(F.cross_entropy(self.net(x), y))\nopt.step()",
            MANUAL,
        ),
        "missing_zero_grad",
    ),
    "Lightning by hand: cleared before the step": (
        lightning(
            """
            opt = self.optimizers()
            self.manual_backward(F.cross_entropy(self.net(x), y))
            opt.zero_grad()
            opt.step()
            """,
            MANUAL,
        ),
        "zero_grad_before_step",
    ),
    "Trainer: compute_loss returns a detached loss": (
        """
        from transformers import Trainer
        class Own(Trainer):
            def compute_loss(self, model, inputs, return_outputs=False):
                outputs = model(**inputs)
                loss = F.cross_entropy(outputs.logits, inputs["labels"])
                loss = loss.detach()
                return (loss, outputs) if return_outputs else loss
        """,
        "detached_loss_path",
    ),
    "skorch: get_loss detaches the prediction": (
        """
        from skorch import NeuralNet
        class Own(NeuralNet):
            def get_loss(self, y_pred, y_true, X=None, training=False):
                return F.mse_loss(y_pred.detach(), y_true)
        """,
        "detached_loss_path",
    ),
    "Accelerate: nothing clears": (
        loop(
            "from accelerate import Accelerator\nacc = Accelerator()",
            "acc.backward(F.cross_entropy(net(x), y))\nopt.step()",
        ),
        "missing_zero_grad",
    ),
    "Accelerate: the loss is a number": (
        loop(
            "from accelerate import Accelerator\nacc = Accelerator()",
            "opt.zero_grad()\nacc.backward(F.cross_entropy(net(x), y).item())\nopt.step()",
        ),
        "converted_loss_path",
    ),
    "DeepSpeed: the loss is detached": (
        deepspeed("loss = F.cross_entropy(engine(x), y).detach()\nengine.backward(loss)\nengine.step()"),
        "detached_loss_path",
    ),
    "DeepSpeed: a total keeps every graph": (
        deepspeed(
            "loss = F.cross_entropy(engine(x), y)\nengine.backward(loss)\nengine.step()\ntotal += loss"
        ).replace("for x", "total = 0\nfor x"),
        "graph_leak",
    ),
    "Ignite: nothing clears": (
        ignite("loss = F.cross_entropy(net(x), y)\nloss.backward()\nopt.step()\nreturn loss.item()"),
        "missing_zero_grad",
    ),
    "Ignite: cleared before the step": (
        ignite("loss = F.cross_entropy(net(x), y)\nloss.backward()\nopt.zero_grad()\nopt.step()"),
        "zero_grad_before_step",
    ),
    "Ignite: the supervised trainer's loss is detached": (
        """
        from ignite.engine import create_supervised_trainer
        def criterion(out, y):
            return F.mse_loss(out.detach(), y)
        create_supervised_trainer(nn.Linear(1, 1), None, criterion)
        """,
        "detached_loss_path",
    ),
    "fastai: the loss is returned as a number": (
        learner("return F.mse_loss(pred, target).item()"),
        "converted_loss_path",
    ),
    "mmengine: update_params gets a detached loss": (
        mmengine("loss = F.cross_entropy(self.net(x), y)\noptim_wrapper.update_params(loss.detach())"),
        "detached_loss_path",
    ),
    "mmengine: a wrapper of one's own gets a number": (
        loop(
            "from mmengine.optim import OptimWrapper",
            "wrapper.update_params(F.cross_entropy(net(x), y).item())",
        ).replace("for x", "wrapper = OptimWrapper(optimizer=opt)\nfor x"),
        "converted_loss_path",
    ),
    "timm's scaler: nothing clears": (
        loop(
            "from timm.utils import NativeScaler\nloss_scaler = NativeScaler()",
            "loss_scaler(F.cross_entropy(net(x), y), opt, parameters=net.parameters())",
        ),
        "missing_zero_grad",
    ),
    "tianshou: the loss is detached": (
        """
        from tianshou.algorithm.algorithm_base import OnPolicyAlgorithm
        class Own(OnPolicyAlgorithm):
            def __init__(self, policy, optim):
                super().__init__(policy=policy)
                self.net = nn.Linear(3, 3)
                self.optim = self._create_optimizer(self.net, optim)
            def _update_with_batch(self, batch, batch_size, repeat):
                loss = self.net(torch.ones(1, 3)).mean()
                self.optim.step(loss.detach())
        """,
        "detached_loss_path",
    ),
    "Composer: the loss is a number": (
        """
        from composer.models import ComposerModel
        class Own(ComposerModel):
            def loss(self, outputs, batch):
                return F.mse_loss(outputs, batch).item()
        """,
        "converted_loss_path",
    ),
}

SILENT = {
    "Lightning": lightning("loss = F.cross_entropy(self.net(x), y)\nself.log('loss', loss)\nreturn loss"),
    "Lightning: a dict": lightning(
        "loss = F.cross_entropy(self.net(x), y)\nreturn {'loss': loss, 'n': loss.item()}"
    ),
    "Lightning: a batch is skipped": lightning(
        "if batch_idx == 0:\n    return None\nreturn F.cross_entropy(self.net(x), y)"
    ),
    "Lightning: returned inside enable_grad": lightning(
        "with torch.no_grad():\n    t = self.net(x)\nreturn F.mse_loss(self.net(x), t)"
    ),
    "Lightning by hand": lightning(
        """
        opt = self.optimizers()
        self.toggle_optimizer(opt)
        opt.zero_grad()
        self.manual_backward(F.cross_entropy(self.net(x), y))
        opt.step()
        self.untoggle_optimizer(opt)
        """,
        MANUAL,
    ),
    "Lightning by hand: every second batch": lightning(
        """
        opt = self.optimizers()
        self.manual_backward(F.cross_entropy(self.net(x), y))
        if (batch_idx + 1) % 2 == 0:
            opt.step()
            opt.zero_grad()
        """,
        MANUAL,
    ),
    "Lightning by hand: two optimizers": """
        import pytorch_lightning as pl
        class GAN(pl.LightningModule):
            def __init__(self):
                super().__init__()
                self.automatic_optimization = False
                self.g, self.d = nn.Linear(2, 2), nn.Linear(2, 1)
            def training_step(self, batch, batch_idx):
                g, d = self.optimizers()
                g_loss = self.d(self.g(batch)).mean()
                g.zero_grad()
                self.manual_backward(g_loss)
                g.step()
                d_loss = self.d(self.g(batch).detach()).mean()
                d.zero_grad()
                self.manual_backward(d_loss)
                d.step()
            def configure_optimizers(self):
                return [torch.optim.Adam(self.g.parameters()), torch.optim.Adam(self.d.parameters())], []
        """,
    "a LightningModule of somebody else": """
        from ours.base import LightningModule
        class Model(LightningModule):
            def training_step(self, batch, batch_idx):
                return self.net(batch).mean().item()
        """,
    "Trainer": """
        from transformers import Trainer
        class Own(Trainer):
            def compute_loss(self, model, inputs, return_outputs=False):
                outputs = model(**inputs)
                loss = F.cross_entropy(outputs.logits, inputs["labels"])
                return (loss, outputs) if return_outputs else loss
            def training_step(self, model, inputs, num_items_in_batch=None):
                loss = self.compute_loss(model, inputs)
                self.accelerator.backward(loss)
                return loss.detach()
        """,
    "Trainer: compute_loss of the base": """
        from transformers import Trainer
        class Own(Trainer):
            def compute_loss(self, model, inputs, return_outputs=False):
                loss, outputs = super().compute_loss(model, inputs, return_outputs=True)
                return (loss, outputs) if return_outputs else loss
        """,
    "Trainer: a teacher under no_grad": """
        from transformers import Trainer
        class Own(Trainer):
            def compute_loss(self, model, inputs, return_outputs=False):
                out = model(**inputs)
                with torch.no_grad():
                    target = self.teacher(**inputs)
                loss = F.kl_div(out.logits.log_softmax(-1), target.logits.softmax(-1))
                return (loss, out) if return_outputs else loss
        """,
    "Accelerate": loop(
        "from accelerate import Accelerator\nacc = Accelerator()",
        """
        with acc.accumulate(net):
            acc.backward(F.cross_entropy(net(x), y))
            opt.step()
            opt.zero_grad()
        """,
    ),
    "DeepSpeed": deepspeed("loss = F.cross_entropy(engine(x), y)\nengine.backward(loss)\nengine.step()"),
    "DeepSpeed with an optimizer": loop(
        DEEPSPEED,
        "loss = F.cross_entropy(engine(x), y)\nengine.backward(loss)\nengine.step()",
    ).replace("for x", "engine, opt, _, _ = deepspeed.initialize(model=net, optimizer=opt)\nfor x"),
    "DeepSpeed with a model that came in": """
        import deepspeed
        def train(model, loader):
            engine, *_ = deepspeed.initialize(model=model, config={})
            for x, y in loader:
                loss = F.cross_entropy(engine(x), y)
                engine.backward(loss)
                engine.step()
        """,
    "Ignite": ignite(
        "opt.zero_grad()\nloss = F.cross_entropy(net(x), y)\nloss.backward()\nopt.step()\nreturn loss.item()"
    ),
    "Ignite: accumulation": ignite(
        """
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        if engine.state.iteration % 4 == 0:
            opt.step()
            opt.zero_grad()
        """
    ),
    "fastai": learner("return F.mse_loss(pred, target)"),
    "mmengine": mmengine(
        """
        loss = F.cross_entropy(self.net(x), y)
        optim_wrapper.update_params(loss)
        return {'loss': loss.detach()}
        """
    ),
    "mmengine: two updates": mmengine(
        """
        loss = F.cross_entropy(self.net(x), y)
        optim_wrapper.update_params(loss)
        optim_wrapper.update_params(F.mse_loss(self.net(x), y))
        """
    ),
    "timm's scaler": loop(
        "from timm.utils import NativeScaler\nloss_scaler = NativeScaler()",
        "opt.zero_grad()\nloss_scaler(F.cross_entropy(net(x), y), opt, parameters=net.parameters())",
    ),
    "timm's scaler: accumulation": loop(
        "from timm.utils import NativeScaler\nloss_scaler = NativeScaler()",
        """
        due = flag()
        loss_scaler(F.cross_entropy(net(x), y), opt, need_update=due)
        if due:
            opt.zero_grad()
        """,
    ),
    "tianshou": """
        from tianshou.algorithm.algorithm_base import OnPolicyAlgorithm
        class Own(OnPolicyAlgorithm):
            def __init__(self, policy, optim):
                super().__init__(policy=policy)
                self.net = nn.Linear(3, 3)
                self.optim = self._create_optimizer(self.net, optim)
            def _update_with_batch(self, batch, batch_size, repeat):
                for _ in range(repeat):
                    loss = self.net(torch.ones(1, 3)).mean()
                    self.optim.step(loss)
                return loss.item()
        """,
}  # fmt: skip


@pytest.mark.parametrize(("body", "kind"), FOUND.values(), ids=FOUND.keys())
def test_a_bug_in_a_framework_is_found(body: str, kind: str) -> None:
    assert kinds(body) == {kind}


@pytest.mark.parametrize("body", SILENT.values(), ids=SILENT.keys())
def test_what_a_framework_makes_right_is_left_alone(body: str) -> None:
    assert kinds(body) == set()


BASES = {
    "Composer": ("from composer.models import ComposerModel as Base", True),
    "Lightning": ("from lightning import LightningModule as Base", True),
    "mmengine": ("from mmengine.model import BaseModel as Base", True),
    "transformers, handed on by a package": ("from ours.models import PreTrainedModel as Base", True),
    "a file of the project that isn't there": ("from .layers import Module as Base", True),
    "torch": ("from torch.jit import ScriptModule as Base", True),
    "flax": ("from flax.linen import Module as Base", False),
    "ast": ("from ast import Module as Base", False),
    "pydantic": ("from pydantic import BaseModel as Base", False),
}


@pytest.mark.parametrize(("imports", "module"), BASES.values(), ids=BASES.keys())
def test_a_class_is_a_module_where_its_base_is_one(imports: str, module: bool) -> None:
    body = f"""
{imports}
class Own(Base):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)
    def forward(self, x):
        out = torch.relu(self.lin(x))
        out += x
        return out
"""
    assert kinds(body) == ({"inplace_overwrites_saved"} if module else set())


OWN_ROWS = """
[tool.gradfix.frameworks.Learner]
compute_loss = { root = true, owns-steps = true, given = ["batch"] }
evaluate = { grad = false }
backward = ["backprop"]
step = ["update"]
"""
TRAINERS = """
from operator import methodcaller

import torch

class Learner(torch.nn.Module):
    def fit(self, batches, lr=0.1):
        optimizer = torch.optim.SGD(self.parameters(), lr)
        for batch in batches:
            optimizer.zero_grad()
            methodcaller("compute_loss", batch)(self).backward()
            optimizer.step()
"""
TRAIN = """
import torch
from torch import nn
from trainers import Learner


class Mine(Learner):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(3, 1)

    def compute_loss(self, batch):
        return self.net(batch).mean().detach()

    def evaluate(self, batch):
        return self.net(batch).mean().item()


mine = Mine()
mine.fit([torch.ones(2, 3)] * 2)
"""
MENDED = TRAIN.replace(".mean().detach()", ".mean()")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a trainer of its own, and two scripts for it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[tool.gradfix]\n" + OWN_ROWS)
    (tmp_path / "trainers.py").write_text(TRAINERS)
    for name in ("one.py", "two.py"):
        (tmp_path / name).write_text(TRAIN)
    return tmp_path


def gradfix(*arguments: str) -> Result:
    return CliRunner().invoke(main, [*arguments], prog_name="gradfix")


def codes(*arguments: str) -> list[str]:
    return [each["code"] for each in json.loads(gradfix("--output-format", "json", *arguments).stdout)]


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_rows_of_the_configuration_reach_every_process(jobs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "SMALL", 0)
    assert codes("--jobs", jobs) == ["GF201", "GF201"]


def test_without_the_rows_nobody_knows_what_becomes_of_the_result(project: Path) -> None:
    (project / "pyproject.toml").write_text("[tool.gradfix]\n")
    assert codes() == []


def test_a_change_of_the_rows_counts_at_once(project: Path) -> None:
    assert len(codes("one.py")) == 1
    (project / "pyproject.toml").write_text("[tool.gradfix]\n" + OWN_ROWS.replace("root = true, ", ""))
    assert codes("one.py") == []


def test_diff_and_apply_know_the_rows(project: Path) -> None:
    assert "+        return self.net(batch).mean()" in gradfix("--diff", "one.py").stdout
    gradfix("--apply", "one.py")
    assert (project / "one.py").read_text() == MENDED
    assert codes("one.py") == []


def test_a_script_that_names_only_the_trainer_of_the_user_is_read(project: Path) -> None:
    script = "from trainers import Learner\n\n\nclass Mine(Learner):\n    def compute_loss(self, batch):\n"
    (project / "one.py").write_text(f"{script}        return self.net(batch).mean().detach()\n")
    (project / "trainers.py").unlink()
    assert codes("one.py") == ["GF201"]
    found = CliRunner().invoke(
        main, ["-", "--output-format", "concise"], input=(project / "one.py").read_text()
    )
    assert "GF201" in found.stdout


@pytest.mark.usefixtures("project")
def test_standard_input_knows_the_rows() -> None:
    found = CliRunner().invoke(main, ["-", "--output-format", "concise"], input=TRAIN)
    assert "GF201" in found.stdout


@pytest.mark.torch
def test_a_rewrite_that_the_rows_led_to_is_verified(project: Path) -> None:
    gradfix("--apply", "--verify", "one.py")
    assert (project / "one.py").read_text() == MENDED


@pytest.mark.torch
def test_a_run_knows_the_rows(project: Path, server: Launcher) -> None:
    plan = plan_for(read(project))
    wish = Wish(Command("script", str(project / "one.py")), plan, "apply", limits=Limits(seconds=20))
    told = run(replace(wish, echo=False), server)
    assert told.exit_code == 1
    assert (project / "one.py").read_text() == MENDED


def test_a_configured_trainer_steps_and_clears() -> None:
    row = Row(backward=frozenset({"backprop"}), step=frozenset({"update"}), own=True)
    clearing = replace(row, zero_grad=frozenset({"update"}))
    body = loop("from ours import Learner", "learner.backprop(F.cross_entropy(net(x), y))\nlearner.update()")
    body = body.replace("for x", "learner = Learner(net, opt)\nfor x")
    assert kinds(body) == set()
    assert kinds(body, merged(ROWS, [("Learner", row)])) == {"missing_zero_grad"}
    assert kinds(body, merged(ROWS, [("Learner", clearing)])) == set()


def test_a_row_of_the_user_comes_on_top_of_a_known_one() -> None:
    body = lightning("opt = self.optimizers()\nself.ours_backward(self.net(x).mean())\nopt.step()", MANUAL)
    row = Row(backward=frozenset({"ours_backward"}), own=True)
    assert kinds(body, merged(ROWS, [("LightningModule", row)])) == {"missing_zero_grad"}


def test_a_function_that_is_given_to_one_of_the_users_is_entered() -> None:
    body = """
        from ours import fit
        def criterion(prediction, target):
            return F.mse_loss(prediction.detach(), target)
        fit(nn.Linear(1, 1), criterion=criterion)
    """
    entry = Entry(root=True, owns_steps=True, given=("prediction", "batch"))
    assert kinds(body, merged(ROWS, [("fit", Row(functions={"criterion": entry}, own=True))])) == {
        "detached_loss_path"
    }
