"""`gradfix PATHS`: one run, from its options to its report."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gradfix.commands.settled import complaints, interpreter, limits_of, plan_of

if TYPE_CHECKING:
    from gradfix.cache.kept import Cache
    from gradfix.outcome import Run
    from gradfix.plan import Plan
    from gradfix.session import Request
    from gradfix.task import Executor


def request_of(given: dict[str, Any]) -> Request:
    """What a session is asked for."""
    from gradfix.pool import usable_cpus
    from gradfix.session import STDIN, UNNAMED, Request

    paths: tuple[str, ...] = given["paths"] or (() if given["from_list"] else (".",))
    if STDIN in paths and len(paths) > 1:
        raise click.UsageError("- stands alone")
    if STDIN in paths and (given["mode"] == "add-ignore" or given["since"]):
        raise click.UsageError("standard input has no history and can't be silenced")
    if STDIN in paths and given["watch"]:
        raise click.UsageError("--watch waits for files to change; standard input is none")
    jobs: int = given["jobs"] or usable_cpus()
    name = given["stdin_filename"] or UNNAMED
    plan = plan_of(paths, given)
    request = Request(paths, given["mode"], plan, jobs, given["since"], name, _cache(plan, given))
    return replace(request, executor=_executor(given["executor"])) if given["executor"] else request


def _executor(address: str) -> Executor:
    """Who works on the files instead of processes here."""
    from importlib.util import find_spec

    from gradfix.fleet.cluster import Cluster

    if find_spec("distributed") is None:
        raise click.UsageError("--executor needs distributed: pip install 'gradfix[dask]'")
    return Cluster(address, lambda said: click.echo(f"gradfix: {said}", err=True))


def _cache(plan: Plan, given: dict[str, Any]) -> Cache | None:
    """Where outcomes are kept; what is to be run is looked at anew."""
    if given["no_cache"] or given["verify"] or given["verify_cmd"]:
        return None
    from gradfix.cache.kept import Cache
    from gradfix.cache.place import place

    return Cache(place(plan.config, given["cache_at"]), plan)


def checked(given: dict[str, Any]) -> Run:
    """One run, from the options to what the user reads."""
    from gradfix.progress import Bar

    with complaints():
        request = request_of(given)
        with Bar(sys.stderr.isatty(), "repositories" if given["from_list"] else "files") as bar:
            done = _run(request, given, bar.start)
        if given["verbose"] and request.cache is not None and request.cache.trouble:
            click.echo(f"gradfix: works without a cache: {request.cache.trouble}", err=True)
        if request.mode == "review":
            done = _reviewed(done, request, given)
    _show(done, request, given)
    if given["write_tests"]:
        from gradfix.commands.kept import left_behind

        left_behind(done, request.plan, given)
    if given["report"]:
        from gradfix.report.html import page

        Path(given["report"]).write_text(page(done), "utf-8")
    return done


def _run(request: Request, given: dict[str, Any], start: Callable[[int], Callable[[int], None]]) -> Run:
    """The run, with the judge's word on every rewrite if that is asked for."""
    if given["from_list"]:
        return _of_list(request, given, start)
    if not (given["verify"] or given["verify_cmd"]):
        from gradfix.session import run

        return run(request, start)
    from gradfix.proof import Proving, proved
    from gradfix.verify import parse_line

    try:
        command = parse_line(given["verify_cmd"]) if given["verify_cmd"] else None
    except ValueError as error:
        raise click.UsageError(f"--verify-cmd: {error}") from error
    limits = limits_of(given)
    python = interpreter(given["python"], command)
    proving = Proving(given["verify"] or "strict", command, python, limits, given["time_limit"])
    return proved(request, proving, start)


def _of_list(request: Request, given: dict[str, Any], start: Callable[[int], Callable[[int], None]]) -> Run:
    """The run over all repositories that a list names."""
    from gradfix.repositories import paths_in, run

    with click.open_file(given["from_list"], encoding="utf-8", errors="surrogateescape") as file:
        paths = paths_in(file.read())
    if not paths:
        click.echo(f"gradfix: {given['from_list']} names no repository", err=True)

    def ask(path: str) -> Request:
        plan = plan_of((path,), given)
        return replace(request, paths=(path,), plan=plan, cache=_cache(plan, given))

    return run(paths, ask, request, start)


def _reviewed(found: Run, request: Request, given: dict[str, Any]) -> Run:
    """The run with what somebody says of each finding."""
    from gradfix.report.question import Terminal
    from gradfix.report.screen import colours
    from gradfix.review import review

    return review(
        found, request, Terminal(sys.stdout, sys.stdin, colours(sys.stdout, given["color"], os.environ))
    )


def _show(done: Run, request: Request, given: dict[str, Any]) -> None:
    from gradfix.outcome import View
    from gradfix.report.screen import colours
    from gradfix.report.show import show

    out = sys.stdout
    if request.reads_stdin and request.mode == "apply":
        sys.stdout.buffer.write(done.outcomes[0].shown_bytes)
        sys.stdout.flush()
        out = sys.stderr
    colour = colours(out, given["color"], os.environ)
    show(done, View(given["output_format"], colour, given["verbose"], given["statistics"]), out, sys.stderr)
