"""`gradfix run PROGRAM`: what breaks as it runs, explained, mended and proved."""

from __future__ import annotations

import os
import sys
from typing import Any, get_args

import click

from gradfix import process
from gradfix.commands.settled import interpreter, memory_limit, plan_of, wanted_mode
from gradfix.outcome import RunFormat


@click.command(
    "run", context_settings={"help_option_names": ["-h", "--help"], "allow_interspersed_args": False}
)
@click.option("--diff", is_flag=True, help="Show the rewrite, change nothing.")
@click.option("--apply", "--fix", is_flag=True, help="Rewrite the files.")
@click.option("--unsafe-fixes/--no-unsafe-fixes", default=None, help="Rewrite also what may change values.")
@click.option("--python", metavar="PATH", help="What runs the program.  [the active one that has torch]")
@click.option("--max-steps", type=click.IntRange(min=1), default=3, show_default=True)
@click.option("--style", is_flag=True, help="Also what is legal: any write on a tensor of the graph.")
@click.option(
    "--time-limit", type=click.FloatRange(min=1), default=60.0, show_default=True, help="In seconds."
)
@click.option("--memory-limit", type=click.FloatRange(min=0.1), help="In GB.  [half of all]")
@click.option("--allow-writes", is_flag=True, help="Let the program write files and use the network.")
@click.option("--output-format", type=click.Choice(get_args(RunFormat)), default="text", show_default=True)
@click.option("-m", "module", is_flag=True, help="The program is a module.")
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED, metavar="PROGRAM [ARGS]...")
def command(words: tuple[str, ...], module: bool, **given: Any) -> None:
    """Run a program until the first broken rule of autograd, explain it, mend it, prove it.

    Exits with 0 if gradients flow, 1 if there is a defect, 2 if the program could not be run.
    """
    from gradfix.config import ConfigError
    from gradfix.outcome import View
    from gradfix.report.running import render
    from gradfix.report.screen import colours
    from gradfix.run import Wish, run, with_style
    from gradfix.verify import Limits, parse_command

    mode = wanted_mode(given)
    memory = memory_limit(given["memory_limit"])
    limits = Limits(given["max_steps"], given["time_limit"], memory, allow_writes=given["allow_writes"])
    try:
        program = parse_command(["-m", *words] if module else words)
        plan = plan_of([program.target] if program.kind == "script" else [], given)
    except (ConfigError, ValueError) as error:
        raise click.UsageError(str(error)) from error
    python = interpreter(given["python"], program)
    wish = Wish(program, with_style(plan) if given["style"] else plan, mode, python, limits)
    process.leave_in_order()
    try:
        told = run(wish)
    except KeyboardInterrupt:
        process.interrupted()
    view = View(given["output_format"], colours(sys.stdout, "auto", os.environ))
    render(told, wish.mode, sys.stdout, view)
    sys.exit(told.exit_code)
