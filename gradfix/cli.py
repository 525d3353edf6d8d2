"""From the words of a command line to the command that is meant, and from its run to an exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from gradfix import process
from gradfix.commands.check import checked
from gradfix.commands.check_options import WithVerify, refuse, with_options
from gradfix.commands.rules import explained
from gradfix.commands.settled import wanted_mode
from gradfix.commands.words import COMMANDS

if TYPE_CHECKING:
    from gradfix.health.checked import Health

NOTHING, FOUND = 0, 1


class Gradfix(WithVerify):
    """The command, which hands over to the one that its first word names."""

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> Any:
        """What COMMANDS holds are commands of their own; a folder of that name is `./run`."""
        words = list(sys.argv[1:] if args is None else args)
        process.open_streams()
        try:
            try:
                if words and words[0] in COMMANDS:
                    return _command(words[0]).main(words[1:], f"{prog_name or 'gradfix'} {words[0]}", **extra)
                return super().main(words, prog_name, **extra)
            finally:
                if not sys.stdout.closed:  # the server of an editor closes it as it ends
                    sys.stdout.flush()
        except OSError as error:
            process.stuck(error)

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """A shell that completes `gradfix run` asks for that command's options."""
        if extra.get("resilient_parsing") and args and args[0] in COMMANDS:
            return _command(args[0]).make_context(f"{info_name} {args[0]}", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


def _examined(given: dict[str, Any]) -> Health:
    """What `--deep` says: read only when it is asked for."""
    from gradfix.commands.health import examined

    return examined(given)


def _command(name: str) -> click.Command:
    """What a first word stands for."""
    found: click.Command = import_module(f"gradfix.commands.{name}").command
    return found


@click.command(
    cls=Gradfix, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@with_options
def main(**given: Any) -> None:
    """Find the places where PyTorch code breaks its own gradients, and rewrite them.

    PATHS are files and directories, by default the working directory; - reads standard input. Exits with 0 if
    there is nothing to report, 1 if there are findings (with --diff: a diff), 2 if a file or the call fails.

    Commands of their own, each with a --help: gradfix run PROGRAM runs it and explains what breaks, gradfix
    why TRACE names the line at fault for a traceback, gradfix server talks to an editor, gradfix clean takes
    away what is kept of earlier runs.
    """
    given["mode"] = wanted_mode(given)
    refuse(given)
    process.leave_in_order()
    try:
        if given["list_rules"] or given["explain"]:
            sys.exit(explained(**given))
        if given["watch"]:
            from gradfix.commands.watch import watched

            watched(given)
        code = (_examined(given) if given["deep"] else checked(given)).exit_code
        sys.exit(NOTHING if given["exit_zero"] and code == FOUND else code)
    except KeyboardInterrupt:
        process.interrupted()
