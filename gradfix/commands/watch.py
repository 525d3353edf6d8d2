"""`gradfix --watch`: checked again whenever a file changes."""

from __future__ import annotations

import sys
import time
from typing import Any, NoReturn

import click

from gradfix.commands.check import checked, request_of


def watched(given: dict[str, Any]) -> NoReturn:
    """A run whenever a file changes; settings that don't hold any more are told of, and waited for."""
    from gradfix.config import ConfigError
    from gradfix.plan import forget
    from gradfix.watch import Watched, again

    try:
        config = request_of(given).plan.config
    except ConfigError as error:
        raise click.UsageError(str(error)) from error
    settings = given["config_file"] or str(config.root / "pyproject.toml")

    def turn(number: int) -> list[str]:
        forget()
        if number and sys.stdout.isatty():
            click.clear()
        try:
            done = checked(given)
        except click.UsageError as error:
            if not number:
                raise
            error.show()
            return []
        click.echo(f"{time.strftime('%X')} waiting for changes; Ctrl-C ends", err=True)
        return [outcome.path for outcome in done.outcomes if outcome.written]

    again(Watched(given["paths"] or (".",), config, (settings,)), turn)
