"""The recorder inside somebody else's process: `watch`, `assert_gradients_flow`, and no trace afterwards."""

from __future__ import annotations

import importlib
import io
import linecache
import subprocess
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from gradfix.trace.report import BOOKS

pytestmark = pytest.mark.torch

torch: Any = pytest.importorskip("torch")


def model() -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))


def test_watch_explains_what_broke() -> None:
    from gradfix.trace import watch

    net, said = model(), io.StringIO()
    with watch(net, stream=said) as seen:
        h = net[0](torch.ones(2, 3)).exp()
        h += 1
        with pytest.raises(RuntimeError):
            h.sum().backward()
    assert [defect["kind"] for defect in seen.defects] == ["inplace_overwrites_saved"]
    assert "h += 1   <- overwritten here" in said.getvalue()


def test_watch_is_content_with_a_training_loop() -> None:
    from gradfix.trace import watch

    net, said = model(), io.StringIO()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with watch(net, optimizer, stream=said) as seen:
        for _ in range(3):
            optimizer.zero_grad()
            net(torch.ones(2, 3)).sum().backward()
            optimizer.step()
    assert seen.defects == []
    assert said.getvalue() == "gradfix: gradients flow: 4 leaves reached\n"


def test_watch_names_the_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    from gradfix.trace import watch

    monkeypatch.setenv("RANK", "3")
    said = io.StringIO()
    with watch(stream=said):
        pass
    assert said.getvalue() == "[rank 3] gradfix: no backward was seen\n"


def test_watch_puts_everything_back() -> None:
    from gradfix.trace import watch

    places = [
        (torch.autograd, "backward"),
        (torch.nn.Module, "__init__"),
        (torch.optim.Optimizer, "zero_grad"),
    ]
    before = [vars(owner).get(name) for owner, name in places]
    with pytest.raises(ZeroDivisionError), watch(quiet=True):
        assert [vars(owner).get(name) for owner, name in places] != before
        raise ZeroDivisionError
    assert [vars(owner).get(name) for owner, name in places] == before
    assert torch.overrides._get_current_function_mode() is None


def test_watch_sees_into_what_is_compiled_inside() -> None:
    from gradfix.trace import watch

    net, said = model(), io.StringIO()
    with watch(net, stream=said) as seen:
        torch.compile(net)(torch.ones(2, 3)).sum().backward()
    assert len(seen.gradients) == 4
    assert seen.defects == []


@pytest.mark.skipif(not hasattr(torch.amp, "GradScaler"), reason="this torch has no scaler for the CPU")
def test_watch_follows_mixed_precision_on_the_cpu() -> None:
    from gradfix.trace import watch

    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    with watch(net, optimizer, quiet=True) as seen:
        for _ in range(2):
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = net(torch.ones(2, 3)).float().pow(2).mean()
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
    assert seen.defects == []


def test_assert_gradients_flow_passes_where_they_do() -> None:
    from gradfix.trace import assert_gradients_flow

    net = model()
    with assert_gradients_flow(net):
        net(torch.ones(2, 3)).sum().backward()


def test_assert_gradients_flow_names_the_parameter_that_gets_none() -> None:
    from gradfix.trace import assert_gradients_flow

    net = model()
    with pytest.raises(AssertionError, match=r"no gradient: 0\.weight"), assert_gradients_flow(net):
        net[2](net[1](net[0](torch.ones(2, 3))).detach()).sum().backward()


def test_assert_gradients_flow_names_a_gradient_that_is_not_finite() -> None:
    from gradfix.trace import assert_gradients_flow

    w = torch.zeros(1, requires_grad=True)
    with pytest.raises(AssertionError, match="gradient not finite: w"), assert_gradients_flow():
        w.sqrt().sum().backward()


def test_the_report_types_need_no_torch() -> None:
    code = "import gradfix.trace.report, gradfix.verify, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_part_that_no_backward_reaches_is_named_without_an_optimizer(
    capsys: pytest.CaptureFixture[str],
) -> None:
    from gradfix.trace import watch

    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
    with watch(net):
        net[1](net[0](torch.ones(1, 2)).detach()).sum().backward()
    said = capsys.readouterr().err
    assert "no gradient: 0.weight (cut by detach in test_a_part" in said
    assert "1.weight" not in said


def test_gradients_that_a_loop_clears_at_its_end_have_flowed() -> None:
    from gradfix.trace import assert_gradients_flow

    net = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with assert_gradients_flow(net):
        for _ in range(2):
            net(torch.ones(1, 2)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()


CELL = """with watch(net, optimizer, stream=said) as seen:
    hidden = net[0](x).exp()
    hidden += 1
    try:
        hidden.sum().backward()
    except RuntimeError:
        pass
"""


def run_cell(filename: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a cell as a notebook does: compiled under a name of its own, its text in linecache."""
    from gradfix.trace import watch

    net, said = model(), io.StringIO()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    monkeypatch.setitem(linecache.cache, filename, (len(CELL), None, CELL.splitlines(True), filename))
    space = {"watch": watch, "net": net, "optimizer": optimizer, "said": said, "x": torch.ones(2, 3)}
    exec(compile(CELL, filename, "exec"), space)
    return said.getvalue()


@pytest.mark.parametrize("filename", ["<ipython-input-3-1f2e3d>", "/tmp/ipykernel_123/1234567.py"])
def test_watch_quotes_the_lines_of_a_notebook_cell(filename: str, monkeypatch: pytest.MonkeyPatch) -> None:
    said = run_cell(filename, monkeypatch)
    assert f"gradfix: {filename}:3: inplace_overwrites_saved\n" in said
    assert f"{filename}:3: hidden += 1   <- overwritten here\n" in said


def test_watch_names_a_cell_as_the_notebook_does(monkeypatch: pytest.MonkeyPatch) -> None:
    filename = "/tmp/ipykernel_123/1234567.py"
    compiler = SimpleNamespace(format_code_name={filename: ("Cell", "In[7]")}.get)
    notebook: Any = ModuleType("IPython")
    notebook.get_ipython = lambda: SimpleNamespace(compile=compiler)
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    assert "Cell In[7]:3: hidden += 1   <- overwritten here\n" in run_cell(filename, monkeypatch)


def test_a_mistake_of_the_recorder_never_becomes_the_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    from gradfix.trace import watch
    from gradfix.trace.backwards import Backwards

    def mistaken(*_: object) -> None:
        raise AttributeError("no such thing")

    monkeypatch.setattr(Backwards, "_spoiled", mistaken)
    watching = watch(stream=io.StringIO())
    with watching:
        h = model()[0](torch.ones(2, 3)).exp()
        h += 1
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            h.sum().backward()
        assert torch.is_grad_enabled()
    assert watching.seen.blind == {BOOKS: "AttributeError: no such thing"}


def cut(net: Any) -> None:
    net[2](net[1](net[0](torch.ones(2, 3))).detach()).sum().backward()


def test_assert_gradients_flow_gives_the_reason_with_file_and_line() -> None:
    from gradfix.trace import assert_gradients_flow

    line = cut.__code__.co_firstlineno + 1
    with pytest.raises(AssertionError) as failed, assert_gradients_flow(net := model()):
        cut(net)
    assert f"no gradient: 0.weight (cut by detach in cut, tests/trace/test_trace_watch.py:{line})" in str(
        failed.value
    )


def test_a_result_that_the_loss_leaves_out_is_named_with_its_line() -> None:
    from gradfix.trace import assert_gradients_flow

    net, head = model(), torch.nn.Linear(3, 1)
    with (
        pytest.raises(AssertionError, match=r"not used by the loss, .*\.py:\d+\)"),
        assert_gradients_flow(head),
    ):
        head(torch.ones(2, 3))
        net(torch.ones(2, 3)).sum().backward()


def test_assert_gradients_flow_keeps_the_diagnosis_when_torch_raises() -> None:
    from gradfix.trace import assert_gradients_flow

    net, wanted = model(), "h \\+= 1   <- overwritten here"
    with pytest.raises(AssertionError, match=wanted) as failed, assert_gradients_flow(net):
        h = net[0](torch.ones(2, 3)).exp()
        h += 1
        h.sum().backward()
    assert isinstance(failed.value.__cause__, RuntimeError)


def test_an_exception_that_has_nothing_to_do_with_gradients_passes_through() -> None:
    from gradfix.trace import assert_gradients_flow

    with pytest.raises(ZeroDivisionError), assert_gradients_flow(model()):
        raise ZeroDivisionError


@pytest.mark.parametrize("given", [42, "model", None, [torch.nn.Linear(1, 1)]], ids=repr)
def test_what_is_no_module_is_refused(given: Any) -> None:
    from gradfix.trace import assert_gradients_flow

    with pytest.raises(TypeError, match="takes modules and optimizers, not "):
        assert_gradients_flow(given)


def test_assert_gradients_flow_can_be_used_again_and_forgets_what_was() -> None:
    from gradfix.trace import assert_gradients_flow

    net = model()
    flows = assert_gradients_flow(net)
    with pytest.raises(AssertionError), flows:
        cut(net)
    with flows:
        net(torch.ones(2, 3)).sum().backward()
    with pytest.raises(AssertionError, match="no backward was seen"), flows:
        net(torch.ones(2, 3))
    with pytest.raises(AssertionError), flows:
        cut(net)


def test_assert_gradients_flow_decorates_a_test() -> None:
    from gradfix.trace import assert_gradients_flow

    net = model()

    @assert_gradients_flow(net)
    def train() -> None:
        net(torch.ones(2, 3)).sum().backward()

    train()
    train()


@pytest.mark.skipif(
    not hasattr(torch._C._autograd.SavedTensor, "data"), reason="this torch shows what it saved only once"
)
def test_a_watch_within_a_watch_sees_the_same() -> None:
    from gradfix.trace import watch

    w = torch.ones(2, requires_grad=True)
    with watch(quiet=True) as outer:
        for _ in range(9):
            (w * w).sum().backward()
        with watch(quiet=True) as inner:
            loss = (w * w).sum()
            w.data.add_(1)
            loss.backward()
    kinds = [[defect["kind"] for defect in seen.defects] for seen in (outer, inner)]
    assert kinds == [["write_through_data"], ["write_through_data"]]


def test_a_torch_that_cannot_be_watched_leaves_the_program_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from gradfix.trace import assert_gradients_flow, watch

    optimizers = importlib.import_module("torch.optim.optimizer")
    monkeypatch.delattr(optimizers, "register_optimizer_step_pre_hook")
    net, said = model(), io.StringIO()
    with watch(net, stream=said):
        net(torch.ones(2, 3)).sum().backward()
    assert said.getvalue().startswith("gradfix: could not watch under torch ")
    with pytest.raises(AssertionError, match="could not watch under torch"), assert_gradients_flow(net):
        net(torch.ones(2, 3)).sum().backward()


def test_a_mode_that_the_program_left_open_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    from gradfix.trace import watch

    class Mode(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
        pass

    mode = Mode()
    watching = watch(quiet=True)
    watching.__enter__()
    mode.__enter__()
    watching.__exit__(None, None, None)
    assert torch.overrides._get_current_function_mode() is mode
    mode.__exit__(None, None, None)
    torch.overrides._get_current_function_mode().__exit__(None, None, None)


def test_many_parameters_of_one_reason_are_told_in_few_lines() -> None:
    from gradfix.trace import watch

    net, said = torch.nn.Sequential(*(torch.nn.Linear(2, 2) for _ in range(9))), io.StringIO()
    with watch(net, stream=said):
        h = net[:8](torch.ones(1, 2)).detach()
        net[8](h).sum().backward()
    lines = [line for line in said.getvalue().splitlines() if "no gradient" in line]
    assert len(lines) == 8
    assert "0.weight (cut by detach in " in lines[0]
    assert lines[7].startswith("gradfix: no gradient: 9 more (cut by detach in ")


@pytest.mark.parametrize(
    ("write", "kinds"),
    [
        ("z.data[:, 2] = 5", []),
        ("z.data[1:, 1:].mul_(3)", []),
        ("z.data[z > 0] = 5", ["write_through_data"]),
        ("z.data[:, 1:] = 5", ["write_through_data"]),
        ("z.data[:, 2] = 5; z.data[1, 0] = 7", ["write_through_data"]),
        ("z.data.mul_(3)", ["write_through_data"]),
    ],
)
def test_a_silent_write_beside_what_was_saved_spoils_nothing(write: str, kinds: list[str]) -> None:
    from gradfix.trace import watch

    w = torch.ones(3, 3, requires_grad=True)
    with watch(quiet=True) as seen:
        z = w * 2
        loss = (z[:, :2] * w[:, :2]).sum() if "1:," not in write else (z[:, :1] * w[:, :1]).sum()
        exec(write, {"z": z})
        loss.backward()
    assert [defect["kind"] for defect in seen.defects] == kinds


@pytest.mark.parametrize("fast", [False, True])
def test_a_value_that_is_changed_and_put_back_spoils_nothing(fast: bool) -> None:
    from gradfix.trace import watch

    x = torch.rand(3, dtype=torch.float64, requires_grad=True)
    with watch(quiet=True) as seen:
        assert torch.autograd.gradcheck(lambda x: (x * x).exp() * x, (x,), fast_mode=fast)
    assert seen.defects == []


def test_what_was_saved_before_a_value_was_put_back_is_spoilt() -> None:
    from gradfix.trace import watch

    x = torch.ones(2, requires_grad=True)
    with watch(quiet=True) as seen:
        before = (x * x).sum()
        x.data.mul_(2)
        between = (x * x).sum()
        x.data.div_(2)
        before.backward()
        assert seen.defects == []
        between.backward()
    assert [defect["kind"] for defect in seen.defects] == ["write_through_data"]
