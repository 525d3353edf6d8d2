"""Every fixture pair before the judge: the gradient that was lost is seen to arrive."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterator
from difflib import SequenceMatcher
from pathlib import Path

import pytest

from gradfix.verify import Claim, Command, JudgeOptions, Launcher, Limits, judge

pytestmark = pytest.mark.torch

FIXTURES = Path(__file__).parent.parent.parent / "fixtures"
RULES = sorted(folder.name for folder in FIXTURES.iterdir() if any(folder.glob("*/before.py")))


UNSEEN = {
    "compared_instead_of_assigned",
    "compared_with_an_argument",
    "frozen_for_good",
    "item_of_the_penalty",
    "entropy_and_value_as_numbers",
    "penalty_summed_as_floats",
}
"""A comparison leaves no trace, nor does a statement that a test passes by, nor a number that is multiplied
before it is added to a loss (it might have been logged): only who reads the text can tell."""


@pytest.fixture(scope="module")
def launcher() -> Iterator[Launcher]:
    with Launcher() as one:
        yield one


def changed(before: bytes, after: bytes) -> tuple[int, int]:
    """The lines that the rewrite touches, the comment on top left out."""
    matcher = SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False)
    blocks = [block for block in matcher.get_opcodes() if block[0] != "equal" and block[1] > 0]
    return min(block[1] for block in blocks) + 1, max(block[2] for block in blocks) + 1


def torch_version() -> tuple[int, ...]:
    return tuple(int(part) for part in importlib.metadata.version("torch").split(".")[:2])


def runs(path: Path) -> bool:
    """Whether this torch has what a script uses: the scaler for every device came with 2.3."""
    text = path.read_bytes()
    return torch_version() >= (2, 3) or b"torch.amp" not in text or b"GradScaler" not in text


def judged(path: Path, launcher: Launcher) -> str:
    before, after = path.read_bytes(), path.with_name("after.py").read_bytes()
    claim = Claim(str(path), path.parent.parent.name, *changed(before, after))
    options = JudgeOptions([claim], cwd=str(path.parent), limits=Limits(seconds=30))
    verdict = judge({str(path): before}, {str(path): after}, Command("script", str(path)), options, launcher)[
        0
    ]
    return f"{verdict.verdict} ({verdict.reason})"


@pytest.mark.parametrize("rule", ["inplace_overwrites_saved", "missing_zero_grad", "detached_loss_path"])
def test_a_pair_flows_without_fork_as_with_it_for(rule: str, launcher: Launcher) -> None:
    path = min((FIXTURES / rule).glob("*/before.py"))
    with Launcher(anew=True) as forkless:
        assert judged(path, forkless) == judged(path, launcher)


@pytest.mark.parametrize("rule", RULES)
def test_every_pair_flows_for(
    rule: str, launcher: Launcher, record_property: Callable[[str, object], None]
) -> None:
    pairs = [path for path in sorted((FIXTURES / rule).glob("*/before.py")) if runs(path)]
    words = {path.parent.name: judged(path, launcher) for path in pairs}
    unproved = {name: word for name, word in words.items() if not word.startswith("flows (")}
    record_property("proved", f"{rule:<30} {len(words) - len(unproved):>3} of {len(words)} pairs flow")
    assert unproved == {}


@pytest.mark.parametrize("rule", sorted(folder.name for folder in FIXTURES.iterdir() if folder.is_dir()))
def test_the_recorder_finds_no_such_defect_in_what_must_not_change_for(rule: str, launcher: Launcher) -> None:
    from gradfix.recorded import wanted
    from gradfix.source import Source, parse
    from gradfix.verify.launch import Job

    found: dict[str, list[int]] = {}
    for path in sorted((FIXTURES / rule).glob("*/keep.py")):
        recording = launcher.run(
            Job(Command("script", str(path)), str(path.parent), limits=Limits(seconds=30))
        )
        source = parse(str(path), path.read_bytes())
        assert isinstance(source, Source)
        lines = [
            e["place"]["line"]
            for e in recording["events"]
            if e["event"] == "defect" and e["kind"] == rule and not wanted(e, str(path), source)
        ]
        if lines:
            found[path.parent.name] = lines
    assert found == {}


@pytest.mark.parametrize("rule", RULES)
def test_gradfix_run_names_a_line_of_the_evidence_and_mends(rule: str, launcher: Launcher) -> None:
    from gradfix.config import Config
    from gradfix.plan import plan_for
    from gradfix.run import Wish, notable, run, with_style

    plan = with_style(plan_for(Config(FIXTURES, unsafe_fixes=True)))
    limits = Limits(max_steps=50, seconds=30)
    left: dict[str, str] = {}
    for path in sorted((FIXTURES / rule).glob("*/before.py")):
        wish = Wish(Command("script", str(path)), plan, limits=limits, echo=False)
        told = run(wish, launcher)
        error = told.first.recording["error"]
        if told.broken and error and error["type"] == "AssertionError" and not told.first.handed:
            continue  # its own check ends it before there is a gradient to speak of
        named = any(finding.rule == rule for outcome in told.outcomes for finding in outcome.findings)
        clean = not told.last.failed and not notable(told.last)
        if not named or not clean:
            left[path.parent.name] = told.last.failure if named else "not named"
    assert left == {name: "not named" for name in UNSEEN if (FIXTURES / rule / name).is_dir()}
