"""How the tests are dealt out, what several modules of them share, and what is said at their end."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.scheduler import WorkStealingScheduling

    from gradfix.verify import Launcher


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> WorkStealingScheduling | None:
    """Modules stay together, as what they share is made once; who is done early takes from the others."""
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log) if config.getoption("dist") == "load" else None


@pytest.fixture(scope="session")
def server() -> Iterator[Launcher]:
    """An interpreter that has imported torch and is forked for each run."""
    from gradfix.verify import Launcher

    with Launcher() as one:
        yield one


@pytest.fixture
def one_server(server: Launcher, monkeypatch: pytest.MonkeyPatch) -> None:
    """`gradfix run` in this process imports torch once for all tests, and not for each."""
    monkeypatch.setattr("gradfix.run.Launcher", lambda python: contextlib.nullcontext(server))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many fixture pairs the judge has proved, by rule."""
    reports = terminalreporter.getreports("passed")
    rows = sorted(
        {str(value) for report in reports for name, value in report.user_properties if name == "proved"}
    )
    if rows:
        terminalreporter.section("fixtures before the judge")
        for row in rows:
            terminalreporter.write_line(row)
