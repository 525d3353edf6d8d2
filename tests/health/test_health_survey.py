"""`gradfix --verify --deep`: every module built and run once, each parameter without a gradient explained."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gradfix.cli import main

HEAD = "import torch\nfrom torch import nn\n\n\n"
HEALTHY = """class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc = nn.Linear(width, width)

    def forward(self, x):
        return self.fc(x)
"""
MEANT = """class Net(nn.Module):
    def __init__(self, width, wide=False):
        super().__init__()
        self.fc = nn.Linear(width, width)
        self.more = nn.Linear(width, width)
        self.table = nn.Embedding(3, width)
        self.table.weight.requires_grad_(False)
        self.wide = wide

    def forward(self, x):
        x = self.fc(x) + self.table(torch.tensor(1))
        return self.more(x) if self.wide else x
"""
STOPPED = """class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.teacher = nn.Linear(width, width)
        self.student = nn.Linear(width, width)

    def forward(self, x):
        return (self.student(x) - self.teacher(x).detach()).pow(2).mean()
"""
BROKEN = HEALTHY.replace("return self.fc(x)", "h = self.fc(x).exp()\n        h += 1\n        return h")
CONSTANT = """class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("table", torch.ones(8, width))

    def forward(self, x):
        return self.table[: x.size(0)]
"""
KEPT = """class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc = nn.Linear(width, width)
        self.state = None

    def forward(self, x):
        self.state = x if self.state is None else self.state
        self.state = torch.tanh(self.fc(self.state))
        return self.state
"""
APART = """class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.state = nn.Linear(width, width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        state = self.state(x)
        return self.out(state.detach()), state
"""
MISSING = "raise OSError('no such device')\n" + HEAD + HEALTHY
STOOD = "import a_package_that_is_nowhere\n" + HEAD + HEALTHY

pytestmark = pytest.mark.torch


def deep(folder: Path, *words: str) -> Result:
    return CliRunner().invoke(main, ["--verify", "--deep", "--no-cache", *words, str(folder)])


def only(folder: Path, text: str) -> tuple[int, dict[str, Any]]:
    """The exit code, and what is said of the one module of a file."""
    (folder / "net.py").write_text(HEAD + text)
    done = deep(folder, "--output-format", "json")
    (module,) = json.loads(done.stdout)["modules"]
    return done.exit_code, module


def whys(module: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: each["why"] for each in module["without_gradient"]}


def test_a_healthy_module_flows(tmp_path: Path) -> None:
    code, module = only(tmp_path, HEALTHY)
    assert (code, module["state"], module["reached"], module["parameters"]) == (0, "flows", 2, 2)
    assert "Net(" in module["driver"]


def test_what_is_frozen_or_unused_is_said_and_is_no_defect(tmp_path: Path) -> None:
    code, module = only(tmp_path, MEANT)
    assert (code, module["state"]) == (0, "flows")
    assert whys(module) == {"more.weight": "unused", "more.bias": "unused", "table.weight": "frozen"}
    assert "no gradient: unused in this run" in {each["message"] for each in module["without_gradient"]}


def test_what_a_detach_stops_is_named_with_its_line_and_is_no_defect(tmp_path: Path) -> None:
    code, module = only(tmp_path, STOPPED)
    assert (code, module["state"], module["broken"]) == (0, "partly", [])
    assert whys(module) == {"teacher.weight": "cut", "teacher.bias": "cut"}
    assert "net.py:12" in module["without_gradient"][0]["message"]


def test_what_only_another_output_reaches_is_told_by_output_and_is_no_defect(tmp_path: Path) -> None:
    code, module = only(tmp_path, APART)
    assert (code, module["state"], module["reached"], module["without_gradient"]) == (0, "flows", 4, [])
    (apart,) = module["by_output"]
    assert apart["output"] == "[0]"
    assert {each["name"]: each["why"] for each in apart["without_gradient"]} == {
        "state.weight": "cut",
        "state.bias": "cut",
    }
    told = " ".join(deep(tmp_path).stdout.split())
    assert "from output [0] alone, state.weight, state.bias: no gradient: detach in forward stops it" in told


def test_exit_codes_are_in_the_help() -> None:
    told = " ".join(CliRunner().invoke(main, ["--help"]).output.split())
    assert "Exit code 0: nothing is broken; 1: something is, or is found by reading" in told


def test_what_torch_refuses_is_broken(tmp_path: Path) -> None:
    code, module = only(tmp_path, BROKEN)
    assert (code, module["state"]) == (1, "broken")
    assert [(each["code"], each["row"]) for each in module["broken"]] == [("GF101", 12)]


def test_a_module_without_anything_that_learns_is_not_broken(tmp_path: Path) -> None:
    code, module = only(tmp_path, CONSTANT)
    assert (code, module["state"], module["broken"]) == (0, "none", [])


def test_a_state_that_is_kept_between_two_calls_may_be_let_go_by_others(tmp_path: Path) -> None:
    code, module = only(tmp_path, KEPT)
    assert module["broken"] == []
    assert code == 0


def test_what_can_not_be_built_is_named_and_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(MISSING)
    done = deep(tmp_path)
    assert done.exit_code == 0
    assert "Net, line 6: not run" in done.stdout
    assert "its file can't be imported: OSError: no such device" in done.stdout
    assert "1 module in 1 file: 1 not run" in done.stderr


def test_what_stands_in_for_a_missing_package_is_named(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(STOOD)
    (module,) = json.loads(deep(tmp_path, "--output-format", "json").stdout)["modules"]
    assert module["state"] == "flows"
    assert "a_package_that_is_nowhere, which isn't installed" in module["reason"]


def test_a_file_that_can_not_be_read_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(HEAD + HEALTHY)
    (tmp_path / "torn.py").write_text("import torch\ndef (")
    assert deep(tmp_path).exit_code == 2


def test_without_torch_nothing_is_run_and_that_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(HEAD + HEALTHY)
    done = deep(tmp_path, "--python", "/bin/false")
    assert done.exit_code == 2
    assert "nothing could be run" in done.stderr


def test_the_page_stands_alone_and_shows_how_each_module_was_run(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(HEAD + STOPPED)
    page = tmp_path / "health.html"
    deep(tmp_path, "--report", str(page))
    text = page.read_text("utf-8")
    assert text.startswith("<!doctype html>")
    assert "how it was run" in text and "a part gets none" in text
    assert "<script" not in text and "http" not in text.replace("https://gradfix", "")
