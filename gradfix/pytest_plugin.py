"""`pytest --gradients`: every test runs under the recorder; and a fixture for tests about gradients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from gradfix.trace import Watched, assert_gradients_flow

PROPERTY = "gradients"


def pytest_addoption(parser: pytest.Parser) -> None:
    """One option, off unless asked for."""
    told = "watch every backward, and tell which tests break a rule of autograd (gradfix)"
    parser.getgroup("gradfix").addoption("--gradients", action="store_true", help=told)


@pytest.fixture
def gradients_flow() -> type[assert_gradients_flow]:
    """`with gradients_flow(model): ...`: fails the test when a gradient does not arrive."""
    from gradfix.trace import assert_gradients_flow

    return assert_gradients_flow


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Watch one test, if that is wanted."""
    if not item.config.getoption("gradients"):
        yield
        return
    from gradfix.trace import watch

    watching = watch(quiet=True)
    with watching as seen:
        outcome: Any = yield
    if seen.events or seen.failed:
        failed = outcome is not None and outcome.excinfo is not None
        item.user_properties.append((PROPERTY, "\n".join(said(seen, failed))))


def said(seen: Watched, failed: bool) -> Iterator[str]:
    """What one test broke. Where torch raised and the test passed all the same, it was meant to."""
    from gradfix.trace.watching import told

    for defect in seen.defects:
        if failed or not defect["torch_says"]:
            yield from told(defect)
    if seen.failed:
        yield seen.failed


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Which tests broke a rule, with the lines."""
    if not terminalreporter.config.getoption("gradients"):
        return
    reports = [report for kind in ("passed", "failed") for report in terminalreporter.stats.get(kind, ())]
    watched = [
        (r.nodeid, text)
        for r in reports
        if r.when == "call"
        for key, text in r.user_properties
        if key == PROPERTY
    ]
    broken = [(name, text) for name, text in watched if text]
    terminalreporter.section("gradients")
    for name, text in broken:
        terminalreporter.write_line(name, bold=True)
        for line in text.splitlines():
            terminalreporter.write_line(f"  {line}")
    of = f"{len(broken)} of {len(watched)} tests with tensors that need gradients" if watched else "no test"
    terminalreporter.write_line(f"{of} broke a rule of autograd")
