"""What `gradfix PATHS` takes, and which of it excludes which."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, get_args

import click

from gradfix.commands.rules import completed
from gradfix.commands.version import version
from gradfix.commands.words import completed_paths, refuse_misspelt
from gradfix.defects import Enough
from gradfix.outcome import OutputFormat

CERTAINTY = click.Choice(get_args(Enough))
VERIFY = {"--verify=lenient": "--verify-lenient", "--verify=strict": "--verify"}

F = TypeVar("F", bound=Callable[..., Any])


def _split(
    context: click.Context, option: click.Parameter, values: tuple[str, ...]
) -> tuple[str, ...] | None:
    """Comma-separated lists, given once or several times."""
    return tuple(item.strip() for value in values for item in value.split(",") if item.strip()) or None


def _split_rules(
    context: click.Context, option: click.Parameter, values: tuple[str, ...]
) -> tuple[str, ...] | None:
    """A list of rules that is given and empty is a slip: it would mean nothing, or everything."""
    for value in values:
        if not value.replace(",", " ").strip():
            raise click.BadParameter(f"{value!r} names no rule; see --list-rules", context, option)
    return _split(context, option, values)


def _listed(name: str, text: str) -> Callable[[F], F]:
    return click.option(name, multiple=True, callback=_split, metavar="LIST", help=text)


def _listed_rules(name: str, text: str) -> Callable[[F], F]:
    return click.option(
        name,
        multiple=True,
        callback=_split_rules,
        metavar="LIST",
        help=text,
        shell_complete=completed,
    )


def _scheduler(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """The address of a scheduler, as dask writes it."""
    if value is None:
        return None
    kind, _, place = value.partition("://")
    host, _, port = place.rpartition(":")
    if kind != "dask" or not host or not port.isdecimal():
        told = f"{value!r} is no address of a scheduler, like dask://127.0.0.1:8786"
        raise click.BadParameter(told, context, option)
    return f"tcp://{place}"


def _print_version(context: click.Context, option: click.Parameter, wanted: bool) -> None:
    if wanted:
        click.echo(f"gradfix {version()}")
        context.exit()


class WithVerify(click.Command):
    """The command, with an option that may carry a value but never takes the next word for it."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """`--verify=lenient` is an option of its own."""
        end = args.index("--") if "--" in args else len(args)
        options = [VERIFY.get(word, word) for word in args[:end]]
        for word in options:
            if word.startswith("--verify="):
                given = word.partition("=")[2]
                raise click.UsageError(
                    f"--verify={given}: give --verify, --verify=strict or --verify=lenient"
                )
        refuse_misspelt(args)
        return super().parse_args(context, options + args[end:])


OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.argument("paths", nargs=-1, metavar="[PATHS]", shell_complete=completed_paths),
    click.option("--diff", is_flag=True, help="Show what --apply would write, change nothing."),
    click.option("--apply", "--fix", is_flag=True, help="Rewrite the files."),
    click.option("--interactive", is_flag=True, help="Ask what to do with each finding (with --apply)."),
    click.option("--add-ignore", is_flag=True, help="Silence all of today's findings by comments."),
    click.option(
        "--verify",
        "verify",
        flag_value="strict",
        help="Run the code before and after; write only what flows"
        " (--verify=lenient: also what no run showed).",
    ),
    click.option(
        "--deep",
        is_flag=True,
        help="Build and run every module once, explain each parameter without a gradient (with --verify)."
        " What can't be built is named, and is no failure. Exit code 0: nothing is broken; 1: something"
        " is, or is found by reading; 2: a file can't be read, or nothing could be run.",
    ),
    click.option(
        "--write-tests",
        metavar="FOLDER",
        type=click.Path(file_okay=False),
        help="Leave a test for each finding that was mended (with --apply --verify).",
    ),
    click.option("--verify-lenient", "verify", flag_value="lenient", hidden=True),
    click.option(
        "--verify-cmd", metavar="COMMAND", help="What to run: script.py, -m module, pytest; with arguments."
    ),
    click.option("--verify-allow-writes", is_flag=True, help="Let that run write files and use the network."),
    click.option("--python", metavar="PATH", help="What runs the program.  [the active one that has torch]"),
    click.option("--max-steps", type=click.IntRange(min=1), default=3, help="Optimizer steps to run.  [3]"),
    click.option(
        "--time-limit",
        type=click.FloatRange(min=1),
        default=600.0,
        help="Seconds for all runs of --verify.  [600]",
    ),
    click.option(
        "--memory-limit", type=click.FloatRange(min=0.1), help="GB that a run may hold.  [half of all]"
    ),
    click.option("--report", type=click.Path(dir_okay=False), help="Write a page with diffs and gradients."),
    click.option("--watch", is_flag=True, help="Run again whenever a file changes, until Ctrl-C."),
    click.option("--since", metavar="REV", help="Only what is new since a git revision."),
    _listed_rules("--select", "Rules to look for: codes, their beginnings, names, ALL."),
    _listed_rules("--ignore", "Rules not to look for."),
    _listed_rules("--extend-select", "Rules to look for besides."),
    _listed("--exclude", "Patterns of files to leave out, instead of the default ones."),
    _listed("--extend-exclude", "Patterns of files to leave out besides."),
    click.option(
        "--force-exclude", is_flag=True, default=None, help="Leave out excluded files even if named."
    ),
    click.option(
        "--unsafe-fixes/--no-unsafe-fixes", default=None, help="Rewrite also what may change values."
    ),
    click.option("--min-certainty", type=CERTAINTY, help="The least certainty of what is listed.  [likely]"),
    click.option(
        "--fix-certainty", type=CERTAINTY, help="The least certainty of what is rewritten.  [likely]"
    ),
    click.option(
        "--suspects/--no-suspects",
        default=None,
        help="List also what would need more than is seen to be sure.",
    ),
    click.option(
        "--output-format", type=click.Choice(get_args(OutputFormat)), default="text", show_default=True
    ),
    click.option("--exit-zero", is_flag=True, help="Exit with 0 even where something is found."),
    click.option("--statistics", is_flag=True, help="Count the findings by rule."),
    click.option(
        "--color", type=click.Choice(("auto", "always", "never")), default="auto", show_default=True
    ),
    click.option("-j", "--jobs", type=click.IntRange(min=1), help="Processes to use.  [the CPUs it may use]"),
    click.option(
        "--executor",
        metavar="dask://HOST:PORT",
        callback=_scheduler,
        help="Let the workers of a dask scheduler do the work; nothing need be shared with them.",
    ),
    click.option(
        "--from-list",
        metavar="FILE",
        type=click.Path(exists=True, dir_okay=False, allow_dash=True),
        help="Look at many repositories: a folder or file on each line, - for standard input.",
    ),
    click.option("--stdin-filename", metavar="NAME", help="The name of what - reads from standard input."),
    click.option(
        "--config",
        "config_file",
        type=click.Path(exists=True, dir_okay=False),
        help="Instead of the nearest pyproject.toml.",
    ),
    click.option("-v", "--verbose", is_flag=True, help="Also say where gradfix keeps silent, and why."),
    click.option(
        "--no-cache", is_flag=True, envvar="GRADFIX_NO_CACHE", help="Look at every file, whatever is kept."
    ),
    click.option(
        "--cache-dir",
        "cache_at",
        metavar="FOLDER",
        envvar="GRADFIX_CACHE_DIR",
        help="Where what was found is kept.  [.gradfix_cache]",
    ),
    click.option("--list-rules", is_flag=True, help="List all rules."),
    click.option("--explain", metavar="RULE", help="Say what a rule is about.", shell_complete=completed),
    click.option(
        "--version",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_print_version,
        help="Show the version.",
    ),
)


def with_options(function: F) -> F:
    """A function that is given all of them."""
    for option in reversed(OPTIONS):
        function = option(function)
    return function


def refuse(given: dict[str, Any]) -> None:
    """What excludes each other."""
    _refuse_two_reports(given)
    _refuse_to_ask(given)
    _refuse_besides(
        given, "--from-list", ("paths", "since", "watch", "verify", "verify_cmd", "stdin_filename")
    )
    _refuse_besides(given, "--executor", ("jobs", "stdin_filename"))
    _refuse_besides(
        given,
        "--deep",
        ("verify_cmd", "since", "watch", "from_list", "executor", "statistics", "write_tests"),
    )
    _refuse_alone(given)


def _refuse_besides(given: dict[str, Any], option: str, others: Sequence[str]) -> None:
    """What makes no sense, or nobody has made sense of, beside an option."""
    if not given[option[2:].replace("-", "_")]:
        return
    for other in (name for name in others if given[name]):
        told = "PATHS" if other == "paths" else f"--{other.replace('_', '-')}"
        raise click.UsageError(f"{option} does not go with {told}: leave out one of them")


def _refuse_alone(given: dict[str, Any]) -> None:
    """What runs code says so twice; what stays of a run needs one that writes."""
    if given["deep"]:
        if not given["verify"]:
            raise click.UsageError("--deep builds and runs what it finds: give it beside --verify")
        if given["mode"] != "list" or "-" in given["paths"]:
            other = "-" if "-" in given["paths"] else f"--{given['mode']}"
            raise click.UsageError(
                f"--deep only reports, so it does not go with {other}: leave out one of them"
            )
        if given["output_format"] not in ("text", "json"):
            raise click.UsageError(f"--deep has no {given['output_format']} report: there are text and json")
    if given["write_tests"] and not (given["mode"] == "apply" and given["verify"]):
        raise click.UsageError("--write-tests keeps what a run has shown: give it beside --apply --verify")


def _refuse_two_reports(given: dict[str, Any]) -> None:
    """A diff is a report of its own."""
    other = "--statistics" if given["statistics"] else f"--output-format {given['output_format']}"
    if given["mode"] == "diff" and other != "--output-format text":
        raise click.UsageError(f"--diff prints a diff, so it does not go with {other}: leave out one of them")


def _refuse_to_ask(given: dict[str, Any]) -> None:
    """Questions need a terminal, and somebody who reads nothing else meanwhile."""
    if given["mode"] != "review":
        return
    taken = {
        "-": "-" in given["paths"],
        "--verify": given["verify"] or given["verify_cmd"],
        "--statistics": given["statistics"],
        "--report": given["report"],
        "--watch": given["watch"],
        "--from-list": given["from_list"],
        f"--output-format {given['output_format']}": given["output_format"] != "text",
    }
    for other in (name for name, wanted in taken.items() if wanted):
        raise click.UsageError(f"--interactive does not go with {other}: leave out one of them")
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout)):
        told = "--diff shows all fixes, --apply takes them without asking"
        raise click.UsageError(f"--interactive asks at a terminal, and there is none: {told}")
