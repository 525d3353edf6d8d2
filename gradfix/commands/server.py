"""`gradfix server`: what an editor starts."""

from __future__ import annotations

import sys

import click

from gradfix.commands.version import version


@click.command("server", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--stdio", is_flag=True, help="Speak on standard input and output, as it does anyway.")
@click.option(
    "--time-limit",
    type=click.FloatRange(min=0.1),
    default=30.0,
    show_default=True,
    help="Seconds that a file may take.",
)
def command(stdio: bool, time_limit: float) -> None:
    """Tell an editor what is found while you type. Needs `pip install 'gradfix[server]'`."""
    try:
        from gradfix.server.main import serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("pygls", "lsprotocol"):
            raise
        raise click.UsageError("gradfix server needs pygls: pip install 'gradfix[server]'") from error
    if sys.stdin.isatty():
        click.echo("gradfix server waits for an editor to speak to it; Ctrl-C ends it", err=True)
    serve(version(), time_limit)
