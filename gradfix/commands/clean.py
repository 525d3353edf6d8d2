"""`gradfix clean`: away with what is kept of earlier runs."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("clean", context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--cache-dir",
    metavar="FOLDER",
    envvar="GRADFIX_CACHE_DIR",
    help="Where it is kept.  [.gradfix_cache, or what the settings say]",
)
def command(cache_dir: str | None) -> None:
    """Take away what is kept of earlier runs in the project of the working directory."""
    from gradfix.cache.place import clean, place
    from gradfix.config import ConfigError, read

    try:
        folder = place(read(Path.cwd()), cache_dir)
    except ConfigError as error:
        raise click.UsageError(str(error)) from error
    try:
        click.echo(f"removed {folder}" if clean(folder) else f"nothing is kept in {folder}")
    except OSError as error:
        raise click.UsageError(f"{folder}: {error.strerror or error}") from error
