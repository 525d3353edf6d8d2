"""What the test run says at its end, besides who passed."""

from __future__ import annotations

import pytest


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
