"""How the tests are dealt out, what several modules of them share, and what is said at their end."""

from __future__ import annotations

import compileall
import contextlib
import gc
import importlib.util
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.scheduler import WorkStealingScheduling

    from gradfix.verify import Launcher

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs" / "__init__.py"
WHOLLY_TORCH = re.compile(r"^pytestmark = pytest\.mark\.torch$", re.MULTILINE)


def pytest_configure(config: pytest.Config) -> None:
    """The package that makes the pages is not installed, nor is the checkout's root on the path."""
    # Programs of a few numbers run side by side: threads of torch would wait for each other, busily.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if not hasattr(config, "workerinput"):
        compiled()
    sys.dont_write_bytecode = False  # what pytest makes of the tests, which each worker reads
    spec = importlib.util.spec_from_file_location("docs", DOCS, submodule_search_locations=[str(DOCS.parent)])
    assert spec is not None
    sys.modules.setdefault("docs", importlib.util.module_from_spec(spec))


def compiled() -> None:
    """Hundreds of processes start here: each would compile gradfix where Python is told to keep nothing."""
    for room in ("gradfix", "codemods"):
        compileall.compile_dir(ROOT / room, quiet=2)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """One more than there are CPUs, as some test always waits; unless the environment says how many."""
    from gradfix.pool import usable_cpus

    return None if os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS") else usable_cpus() + 1


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Who wants no test with torch doesn't import it to leave out all that a module holds."""
    unwanted = config.getoption("markexpr") == "not torch" and collection_path.suffix == ".py"
    return True if unwanted and WHOLLY_TORCH.search(collection_path.read_text("utf-8")) else None


def pytest_collection_finish() -> None:
    """Thousands of tests and all of torch stay to the end: no search for garbage need look at them."""
    gc.collect()
    gc.freeze()


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
