"""`--write-tests FOLDER`: the tests that stay of what was mended, and why others don't."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gradfix.commands.settled import interpreter, limits_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradfix.outcome import Run
    from gradfix.plan import Plan
    from gradfix.regression.mended import Kept, Unkept


def left_behind(done: Run, plan: Plan, given: dict[str, Any]) -> None:
    """Write the tests of a run that has mended something, and say what was written."""
    from gradfix.regression.left import Leaving
    from gradfix.verify import Launcher

    if not any(outcome.written for outcome in done.outcomes):
        return
    python = interpreter(given["python"], None, quiet=True)
    with Launcher(python, seconds=given["time_limit"]) as launcher:
        found = list(Leaving(plan, launcher, limits_of(given)).tests(done.outcomes))
    _written(found, Path(given["write_tests"]), python)


def _written(found: Sequence[Kept | Unkept], folder: Path, python: str) -> None:
    from gradfix.regression.files import texts, write
    from gradfix.regression.mended import Kept

    kept = [one for one in found if isinstance(one, Kept)]
    files = texts(kept, folder, python)
    try:
        write(files)
    except OSError as error:
        raise click.UsageError(f"--write-tests: {error.filename}: {error.strerror}") from error
    for path, text in files.items():
        click.echo(f"{path}: {_counted(text)}", err=True)
    for one in found:
        if not isinstance(one, Kept):
            place = f"{one.mended.shown}:{one.mended.line}"
            click.echo(f"{place}: no test for {one.mended.code}: {one.reason}", err=True)


def _counted(text: str) -> str:
    """What is in a file."""
    tests = text.count("\ndef test_")
    if not tests:
        return "lets the tests find the project"
    what = "1 test that failed before and passes now"
    return what if tests == 1 else f"{tests} tests that failed before and pass now"
