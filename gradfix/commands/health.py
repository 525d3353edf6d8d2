"""`gradfix --verify --deep PATHS`: every module built and run once, from the options to the report."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradfix.commands.check import request_of
from gradfix.commands.settled import complaints, interpreter, limits_of

if TYPE_CHECKING:
    from gradfix.health.checked import Health
    from gradfix.outcome import Outcome, Run
    from gradfix.session import Request


def examined(given: dict[str, Any]) -> Health:
    """One survey, from the options to what the user reads."""
    from gradfix.health.survey import Bounds, survey
    from gradfix.progress import Bar
    from gradfix.verify import Launcher

    with complaints():
        request = request_of(given)
        with Bar(sys.stderr.isatty(), "files") as bar:
            found = _found(request, bar.start)
        launcher = Launcher(interpreter(given["python"], None), seconds=given["time_limit"])
        with launcher, Bar(sys.stderr.isatty(), "modules") as bar:
            health = survey(found, launcher, Bounds(limits_of(given), given["time_limit"]), bar.start)
    health = replace(health, run=listed(found, request))
    _show(health, given)
    return health


def _found(request: Request, start: Callable[[int], Callable[[int], None]]) -> Run:
    """What is found by reading, suspects too: a run may show which of them is right."""
    from gradfix.session import run

    config = request.plan.config.with_options(suspects=True)
    return run(replace(request, plan=replace(request.plan, config=config)), start)


def listed(run: Run, request: Request) -> Run:
    """The same with what is listed unless more is asked for."""
    return replace(run, outcomes=tuple(_listed(one, request) for one in run.outcomes))


def _listed(outcome: Outcome, request: Request) -> Outcome:
    if request.plan.config.suspects:
        return outcome
    kept = tuple(one for one in outcome.findings if one.certainty != "suspect")
    return replace(outcome, findings=kept, remaining=kept)


def _show(health: Health, given: dict[str, Any]) -> None:
    from gradfix.outcome import View
    from gradfix.report.health import show
    from gradfix.report.screen import colours

    colour = colours(sys.stdout, given["color"], os.environ)
    show(health, View(given["output_format"], colour, given["verbose"]), sys.stdout, sys.stderr)
    if given["report"]:
        from gradfix.report.health_page import page

        Path(given["report"]).write_text(page(health), "utf-8")
