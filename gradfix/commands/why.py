"""`gradfix why TRACE`: the line at fault for a traceback, without a run."""

from __future__ import annotations

import os
import sys
from typing import Any, get_args

import click

from gradfix import process
from gradfix.commands.settled import plan_of
from gradfix.outcome import RunFormat


@click.command("why", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("words", nargs=-1, metavar="[TRACE] [PATHS]...")
@click.option("--symptom", metavar="TEXT", help='What goes wrong, if nothing raises: "grad is None for w".')
@click.option("--output-format", type=click.Choice(get_args(RunFormat)), default="text", show_default=True)
@click.option("--color", type=click.Choice(("auto", "always", "never")), default="auto", show_default=True)
def command(words: tuple[str, ...], symptom: str | None, output_format: RunFormat, color: Any) -> None:
    """Name the line at fault for a traceback, without running anything.

    TRACE is a file, or - for standard input; PATHS are the project's files and directories, by default the
    working directory. With --symptom there is no TRACE. Exits with 0 if no line explains it, 1 if one does, 2
    if there was nothing to read.
    """
    from gradfix.config import ConfigError
    from gradfix.outcome import View
    from gradfix.report.screen import colours
    from gradfix.report.why import render
    from gradfix.why.asked import AskedError, asked

    try:
        told = asked(words, symptom, output_format == "text", lambda paths: plan_of(paths, {}))
    except (AskedError, ConfigError) as error:
        raise click.UsageError(str(error)) from error
    except KeyboardInterrupt:
        process.interrupted()
    stream = sys.stderr if told.error else sys.stdout
    render(told, stream, View(output_format, colours(stream, color, os.environ)))
    sys.exit(told.exit_code)
