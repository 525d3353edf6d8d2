"""The GitHub Action and the GitLab template: their scripts run as hosts run them and make what hosts read."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

ROOT = Path(__file__).parent.parent
ACTION = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
TEMPLATE = yaml.safe_load((ROOT / ".ci" / "gitlab.yml").read_text("utf-8"))["gradfix"]
STEPS = ACTION["runs"]["steps"]
SARIF = json.loads((ROOT / "tests" / "report" / "sarif-2.1.0-rtm.5.json").read_text("utf-8"))
ASKED = re.compile(r"\$\{\{\s*([\w.-]+)\s*\}\}")
COMMAND = re.compile(r"::(?P<name>error|warning|notice) (?P<given>[^:]*)::(?P<message>.*)")
BROKEN = """\
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    hidden = torch.sigmoid(model(torch.ones(8, 4)))
    hidden *= 2
    hidden.sum().backward()
    optimizer.step()
"""
HEALTHY = "import torch\n\nw = torch.ones(2, requires_grad=True)\n(w * 2).sum().backward()\n"
PYTHON = f"""\
#!/bin/sh
# Stands in for an interpreter that makes an environment and installs into it.
echo "$@" >>"$CALLS"
[ "$2" = venv ] || exit 0
mkdir -p "$3/bin"
cp "$0" "$3/bin/python"
printf '#!/bin/sh\\nexec "{sys.executable}" -m gradfix "$@"\\n' >"$3/bin/gradfix"
chmod +x "$3/bin/gradfix"
"""


@dataclass(frozen=True, slots=True)
class Host:
    """A machine that runs jobs in a checkout."""

    folder: Path
    environ: dict[str, str]

    def bash(self, script: str, **given: str) -> subprocess.CompletedProcess[str]:
        """Run a script as hosts do: it ends at the first command that fails."""
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", script],
            cwd=self.folder,
            env=self.environ | given,
            capture_output=True,
            text=True,
            check=False,
        )

    def action(self, **inputs: str) -> subprocess.CompletedProcess[str]:
        """Run the steps of the action, with its inputs in the place of the expressions that ask for them."""
        values = {name: given["default"] for name, given in ACTION["inputs"].items()} | inputs
        known = {f"inputs.{name}": value for name, value in values.items()}
        known["github.action_path"] = str(ROOT)
        for step in STEPS:
            given = {
                name: ASKED.sub(lambda found: known[found[1]], text) for name, text in step["env"].items()
            }
            kept = dict(line.split("=", 1) for line in self.file("github_env").read_text().splitlines())
            done = self.bash(step["run"], **given, **kept)
            if done.returncode:
                break
        return done

    def job(self, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run the script of the template, with a folder of the test in the place of the machine's own."""
        lines = "\n".join(TEMPLATE["script"]).replace("/tmp/gradfix", str(self.file("venv")))
        return self.bash(lines, **TEMPLATE["variables"] | variables, CI_PROJECT_DIR=str(self.folder))

    def file(self, name: str) -> Path:
        return self.folder.parent / name


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """A checkout with a broken file, and an interpreter that installs what is here already."""
    folder, programs = tmp_path / "checkout", tmp_path / "programs"
    for each in (folder / "src", programs):
        each.mkdir(parents=True)
    (folder / "src" / "train.py").write_text(BROKEN)
    (folder / "healthy.py").write_text(HEALTHY)
    (programs / "python3").write_text(PYTHON)
    (programs / "python3").chmod(0o755)
    (tmp_path / "github_env").touch()
    environ = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("GITHUB", "CI_"))},
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "CALLS": str(tmp_path / "calls"),
        "RUNNER_TEMP": str(tmp_path / "runner"),
        "GITHUB_ENV": str(tmp_path / "github_env"),
    }
    return Host(folder, environ)


def annotated(output: str) -> list[dict[str, str]]:
    """The annotations that GitHub makes of what a step prints."""
    found = [COMMAND.fullmatch(line) for line in output.splitlines()]
    return [
        dict(pair.split("=", 1) for pair in each["given"].split(",")) | each.groupdict()
        for each in found
        if each
    ]


def test_the_action_annotates_the_lines_that_break_gradients_and_fails(host: Host) -> None:
    done = host.action()
    assert done.returncode == 1, done.stderr
    assert [(one["file"], one["line"]) for one in annotated(done.stdout)] == [
        ("src/train.py", "8"),
        ("src/train.py", "9"),
    ]
    assert all(one["name"] == "error" and "gradfix GF" in one["title"] for one in annotated(done.stdout))
    assert len(annotated(done.stdout)) == len(done.stdout.splitlines())


def test_the_action_installs_the_revision_that_it_is_used_at(host: Host) -> None:
    host.action()
    assert host.file("calls").read_text().splitlines() == [
        f"-m venv {host.file('runner')}/gradfix",
        f"-m pip install --quiet --disable-pip-version-check {ROOT}",
    ]


def test_the_action_passes_where_nothing_is_found(host: Host) -> None:
    done = host.action(paths="healthy.py")
    assert (done.returncode, done.stdout) == (0, "")


def test_the_action_takes_paths_options_and_patterns_as_they_are(host: Host) -> None:
    done = host.action(paths="src healthy.py", args="--select GF1 --extend-exclude *.txt")
    assert [one["title"] for one in annotated(done.stdout)] == ["gradfix GF101 (crashes)"]


def test_the_action_runs_nothing_that_an_input_says(host: Host) -> None:
    done = host.action(paths="src;touch,pwned $(touch${IFS}pwned) `touch pwned`", since="")
    assert not list(host.folder.rglob("pwned")) and done.returncode == 2


def test_the_action_writes_sarif_for_code_scanning_besides(host: Host) -> None:
    done = host.action(sarif="gradfix.sarif")
    assert (done.returncode, len(annotated(done.stdout))) == (1, 2)
    log = json.loads((host.folder / "gradfix.sarif").read_text())
    jsonschema.Draft4Validator(SARIF).validate(log)
    (run,) = log["runs"]
    assert [result["ruleId"] for result in run["results"]] == ["GF101", "GF401"]
    uris = {one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for one in run["results"]}
    assert uris == {"src/train.py"}


def test_the_action_says_what_failed_with_sarif_as_without(host: Host) -> None:
    (host.folder / "bad.py").write_text("import torch\nx = (\n")
    done = host.action(sarif="gradfix.sarif")
    assert done.returncode == 2
    assert ("bad.py", "error") in [(one["file"], one["name"]) for one in annotated(done.stdout)]


def test_the_action_reports_only_what_is_new_since_a_revision(host: Host) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "first")):
        subprocess.run(["git", *identity, *words], cwd=host.folder, check=True)
    assert host.action(since="HEAD").returncode == 0
    (host.folder / "new.py").write_text(BROKEN)
    assert {one["file"] for one in annotated(host.action(since="HEAD").stdout)} == {"new.py"}


def test_the_action_is_one_that_github_can_run() -> None:
    """Composite steps need a shell; expressions stand in `env` alone, so that no input becomes a script."""
    assert {"name", "description", "inputs", "runs"} <= ACTION.keys()
    assert ACTION["runs"]["using"] == "composite"
    assert all({"name", "shell", "run", "env"} <= step.keys() for step in STEPS)
    assert not any("${{" in step["run"] for step in STEPS)
    asked = {found for step in STEPS for text in step["env"].values() for found in ASKED.findall(text)}
    assert asked == {f"inputs.{name}" for name in ACTION["inputs"]} | {"github.action_path"}
    assert all(given["description"] for given in ACTION["inputs"].values())


def report(host: Host) -> list[dict[str, Any]]:
    name = TEMPLATE["artifacts"]["reports"]["codequality"]
    issues: list[dict[str, Any]] = json.loads((host.folder / name).read_text())
    return issues


def test_the_template_leaves_a_report_lists_in_the_log_and_fails(host: Host) -> None:
    done = host.job()
    assert done.returncode == 1, done.stderr
    issues = report(host)
    assert [(one["check_name"], one["location"]["path"]) for one in issues] == [
        ("GF101", "src/train.py"),
        ("GF401", "src/train.py"),
    ]
    assert [one["location"]["lines"]["begin"] for one in issues] == [8, 9]
    assert "hidden *= 2" in done.stdout and "2 findings in 2 files" in done.stderr


def test_the_template_passes_with_an_empty_report_where_nothing_is_found(host: Host) -> None:
    done = host.job(GRADFIX_PATHS="healthy.py")
    assert (done.returncode, done.stdout, report(host)) == (0, "", [])


def test_the_template_takes_options_and_keeps_its_report_when_it_fails(host: Host) -> None:
    host.job(GRADFIX_ARGS="--select GF4")
    assert [one["check_name"] for one in report(host)] == ["GF401"]
    assert TEMPLATE["artifacts"]["when"] == "always"


def test_the_template_installs_the_tag_that_it_is_included_from(host: Host) -> None:
    host.job()
    made, installed = host.file("calls").read_text().splitlines()
    assert made.startswith("-m venv ") and installed.endswith(TEMPLATE["variables"]["GRADFIX_SOURCE"])
