"""From the command line to options, and from a run to an exit code."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, get_args

import click

from gradfix import process
from gradfix.defects import Enough
from gradfix.outcome import OutputFormat, RunFormat

if TYPE_CHECKING:
    from gradfix.outcome import Mode, Run
    from gradfix.plan import Plan
    from gradfix.session import Request
    from gradfix.verify import Command

CERTAINTY = click.Choice(get_args(Enough))
NOTHING, FOUND = 0, 1
SPELT = {"review": "interactive"}
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


def _completed_rules(context: click.Context, option: click.Parameter, typed: str) -> list[str]:
    from gradfix.explain import offered
    from gradfix.registry import codemods

    return offered((codemod.card for codemod in codemods().values()), typed)


def _listed(name: str, text: str) -> Callable[[F], F]:
    return click.option(name, multiple=True, callback=_split, metavar="LIST", help=text)


def _listed_rules(name: str, text: str) -> Callable[[F], F]:
    return click.option(
        name,
        multiple=True,
        callback=_split_rules,
        metavar="LIST",
        help=text,
        shell_complete=_completed_rules,
    )


def _mode(given: dict[str, Any]) -> Mode:
    """What to do with what is found: one thing at a time."""
    modes: tuple[Mode, ...] = ("diff", "apply", "add-ignore")
    wanted = [mode for mode in modes if given.pop(mode.replace("-", "_"), False)]
    if given.pop("interactive", False):
        wanted = ["review", *(mode for mode in wanted if mode != "apply")]
    if len(wanted) > 1:
        told = " and ".join(f"--{SPELT.get(mode, mode)}" for mode in wanted)
        raise click.UsageError(f"{told} exclude each other: give one of them")
    return wanted[0] if wanted else "list"


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
        f"--output-format {given['output_format']}": given["output_format"] != "text",
    }
    for other in (name for name, wanted in taken.items() if wanted):
        raise click.UsageError(f"--interactive does not go with {other}: leave out one of them")
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout)):
        told = "--diff shows all fixes, --apply takes them without asking"
        raise click.UsageError(f"--interactive asks at a terminal, and there is none: {told}")


def _print_version(context: click.Context, option: click.Parameter, wanted: bool) -> None:
    if wanted:
        click.echo(f"gradfix {version()}")
        context.exit()


def version() -> str:
    """The installed version; in a checkout that was never installed, the one in its pyproject.toml."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        return installed("gradfix")
    except PackageNotFoundError:
        project = Path(__file__).resolve().parent.parent / "pyproject.toml"
        found = re.search(r'^version = "(.+)"$', project.read_text("utf-8"), re.MULTILINE)
        return found[1] if found else "unknown"


class Gradfix(click.Command):
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
        return super().parse_args(context, options + args[end:])

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> Any:
        """`gradfix run`, `why` and `server` are commands of their own; a folder of that name is `./run`."""
        words = list(sys.argv[1:] if args is None else args)
        process.open_streams()
        try:
            try:
                if words and words[0] in COMMANDS:
                    return COMMANDS[words[0]].main(words[1:], f"{prog_name or 'gradfix'} {words[0]}", **extra)
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
            return COMMANDS[args[0]].make_context(f"{info_name} {args[0]}", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@click.command(
    cls=Gradfix, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.argument("paths", nargs=-1, metavar="[PATHS]")
@click.option("--diff", is_flag=True, help="Show what --apply would write, change nothing.")
@click.option("--apply", "--fix", is_flag=True, help="Rewrite the files.")
@click.option("--interactive", is_flag=True, help="Ask what to do with each finding (with --apply).")
@click.option("--add-ignore", is_flag=True, help="Silence all of today's findings by comments.")
@click.option(
    "--verify",
    "verify",
    flag_value="strict",
    help="Run the code before and after; write only what flows (--verify=lenient: also what no run showed).",
)
@click.option("--verify-lenient", "verify", flag_value="lenient", hidden=True)
@click.option(
    "--verify-cmd", metavar="COMMAND", help="What to run: script.py, -m module, pytest; with arguments."
)
@click.option("--verify-allow-writes", is_flag=True, help="Let that run write files and use the network.")
@click.option("--python", metavar="PATH", help="What runs the program.  [the active one that has torch]")
@click.option("--max-steps", type=click.IntRange(min=1), default=3, help="Optimizer steps to run.  [3]")
@click.option(
    "--time-limit",
    type=click.FloatRange(min=1),
    default=600.0,
    help="Seconds for all runs of --verify.  [600]",
)
@click.option("--memory-limit", type=click.FloatRange(min=0.1), help="GB that a run may hold.  [half of all]")
@click.option("--report", type=click.Path(dir_okay=False), help="Write a page with diffs and gradients.")
@click.option("--watch", is_flag=True, help="Run again whenever a file changes, until Ctrl-C.")
@click.option("--since", metavar="REV", help="Only what is new since a git revision.")
@_listed_rules("--select", "Rules to look for: codes, their beginnings, names, ALL.")
@_listed_rules("--ignore", "Rules not to look for.")
@_listed_rules("--extend-select", "Rules to look for besides.")
@_listed("--exclude", "Patterns of files to leave out, instead of the default ones.")
@_listed("--extend-exclude", "Patterns of files to leave out besides.")
@click.option("--force-exclude", is_flag=True, default=None, help="Leave out excluded files even if named.")
@click.option("--unsafe-fixes/--no-unsafe-fixes", default=None, help="Rewrite also what may change values.")
@click.option("--min-certainty", type=CERTAINTY, help="The least certainty of what is listed.  [likely]")
@click.option("--fix-certainty", type=CERTAINTY, help="The least certainty of what is rewritten.  [likely]")
@click.option(
    "--suspects/--no-suspects", default=None, help="List also what would need more than is seen to be sure."
)
@click.option("--output-format", type=click.Choice(get_args(OutputFormat)), default="text", show_default=True)
@click.option("--exit-zero", is_flag=True, help="Exit with 0 even where something is found.")
@click.option("--statistics", is_flag=True, help="Count the findings by rule.")
@click.option("--color", type=click.Choice(("auto", "always", "never")), default="auto", show_default=True)
@click.option("-j", "--jobs", type=click.IntRange(min=1), help="Processes to use.  [the CPUs it may use]")
@click.option("--stdin-filename", metavar="NAME", help="The name of what - reads from standard input.")
@click.option(
    "--config",
    "config_file",
    type=click.Path(exists=True, dir_okay=False),
    help="Instead of the nearest pyproject.toml.",
)
@click.option("-v", "--verbose", is_flag=True, help="Also say where gradfix keeps silent, and why.")
@click.option("--list-rules", is_flag=True, help="List all rules.")
@click.option("--explain", metavar="RULE", help="Say what a rule is about.", shell_complete=_completed_rules)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version.",
)
def main(**given: Any) -> None:
    """Find the places where PyTorch code breaks its own gradients, and rewrite them.

    PATHS are files and directories, by default the working directory; - reads standard input. Exits with 0 if
    there is nothing to report, 1 if there are findings (with --diff: a diff), 2 if a file or the call fails.

    Commands of their own, each with a --help: gradfix run PROGRAM runs it and explains what breaks, gradfix
    why TRACE names the line at fault for a traceback, gradfix server talks to an editor.
    """
    given["mode"] = _mode(given)
    _refuse_two_reports(given)
    _refuse_to_ask(given)
    process.leave_in_order()
    try:
        if given["list_rules"] or given["explain"]:
            sys.exit(_explained(**given))
        if given["watch"]:
            _watched(given)
        code = _checked(given).exit_code
        sys.exit(NOTHING if given["exit_zero"] and code == FOUND else code)
    except KeyboardInterrupt:
        process.interrupted()


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
def run_command(words: tuple[str, ...], module: bool, **given: Any) -> None:
    """Run a program until the first broken rule of autograd, explain it, mend it, prove it.

    Exits with 0 if gradients flow, 1 if there is a defect, 2 if the program could not be run.
    """
    from gradfix.config import ConfigError
    from gradfix.outcome import View
    from gradfix.report.running import render
    from gradfix.report.screen import colours
    from gradfix.run import Wish, run, with_style
    from gradfix.verify import Limits, parse_command

    mode = _mode(given)
    memory = _memory(given["memory_limit"])
    limits = Limits(given["max_steps"], given["time_limit"], memory, allow_writes=given["allow_writes"])
    try:
        command = parse_command(["-m", *words] if module else words)
        plan = _plan([command.target] if command.kind == "script" else [], given)
    except (ConfigError, ValueError) as error:
        raise click.UsageError(str(error)) from error
    python = _interpreter(given["python"], command)
    wish = Wish(command, with_style(plan) if given["style"] else plan, mode, python, limits)
    process.leave_in_order()
    try:
        told = run(wish)
    except KeyboardInterrupt:
        process.interrupted()
    view = View(given["output_format"], colours(sys.stdout, "auto", os.environ))
    render(told, wish.mode, sys.stdout, view)
    sys.exit(told.exit_code)


@click.command("why", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("words", nargs=-1, metavar="[TRACE] [PATHS]...")
@click.option("--symptom", metavar="TEXT", help='What goes wrong, if nothing raises: "grad is None for w".')
@click.option("--output-format", type=click.Choice(get_args(RunFormat)), default="text", show_default=True)
@click.option("--color", type=click.Choice(("auto", "always", "never")), default="auto", show_default=True)
def why_command(words: tuple[str, ...], symptom: str | None, output_format: RunFormat, color: Any) -> None:
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
        told = asked(words, symptom, output_format == "text", lambda paths: _plan(paths, {}))
    except (AskedError, ConfigError) as error:
        raise click.UsageError(str(error)) from error
    except KeyboardInterrupt:
        process.interrupted()
    stream = sys.stderr if told.error else sys.stdout
    render(told, stream, View(output_format, colours(stream, color, os.environ)))
    sys.exit(told.exit_code)


@click.command("server", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--stdio", is_flag=True, help="Speak on standard input and output, as it does anyway.")
@click.option(
    "--time-limit",
    type=click.FloatRange(min=0.1),
    default=30.0,
    show_default=True,
    help="Seconds that a file may take.",
)
def server_command(stdio: bool, time_limit: float) -> None:
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


COMMANDS = {"run": run_command, "why": why_command, "server": server_command}


def _explained(list_rules: bool, explain: str | None, **_: Any) -> int:
    from gradfix.explain import listing, page
    from gradfix.registry import codemods, find, suggestion

    if explain is None:
        click.echo(listing(codemod.card for codemod in codemods().values()), nl=False)
        return 0
    codemod = find(codemods(), explain)
    if codemod is None:
        raise click.UsageError(f"there is no rule {explain!r}; {suggestion(codemods(), explain)}")
    click.echo(page(codemod.card), nl=False)
    return 0


def _watched(given: dict[str, Any]) -> NoReturn:
    """A run whenever a file changes; settings that don't hold any more are told of, and waited for."""
    from gradfix.config import ConfigError
    from gradfix.plan import forget
    from gradfix.watch import Watched, again

    try:
        config = _request(given).plan.config
    except ConfigError as error:
        raise click.UsageError(str(error)) from error
    settings = given["config_file"] or str(config.root / "pyproject.toml")

    def turn(number: int) -> list[str]:
        forget()
        if number and sys.stdout.isatty():
            click.clear()
        try:
            done = _checked(given)
        except click.UsageError as error:
            if not number:
                raise
            error.show()
            return []
        click.echo(f"{time.strftime('%X')} waiting for changes; Ctrl-C ends", err=True)
        return [outcome.path for outcome in done.outcomes if outcome.written]

    again(Watched(given["paths"] or (".",), config, (settings,)), turn)


def _checked(given: dict[str, Any]) -> Run:
    from gradfix.config import ConfigError
    from gradfix.progress import Bar
    from gradfix.registry import RegistryError
    from gradfix.since import RevisionError

    try:
        request = _request(given)
        with Bar(visible=sys.stderr.isatty()) as bar:
            done = _run(request, given, bar.start)
        if request.mode == "review":
            done = _reviewed(done, request, given)
    except (ConfigError, RegistryError) as error:
        raise click.UsageError(str(error)) from error
    except RevisionError as error:
        raise click.UsageError(f"--since: {error}") from error
    _show(done, request, given)
    if given["report"]:
        from gradfix.report.html import page

        Path(given["report"]).write_text(page(done), "utf-8")
    return done


def _run(request: Request, given: dict[str, Any], start: Callable[[int], Callable[[int], None]]) -> Run:
    """The run, with the judge's word on every rewrite if that is asked for."""
    if not (given["verify"] or given["verify_cmd"]):
        from gradfix.session import run

        return run(request, start)
    from gradfix.proof import Proving, proved
    from gradfix.verify import Limits, parse_line

    try:
        command = parse_line(given["verify_cmd"]) if given["verify_cmd"] else None
    except ValueError as error:
        raise click.UsageError(f"--verify-cmd: {error}") from error
    memory = _memory(given["memory_limit"])
    limits = Limits(given["max_steps"], memory=memory, allow_writes=given["verify_allow_writes"])
    python = _interpreter(given["python"], command)
    proving = Proving(given["verify"] or "strict", command, python, limits, given["time_limit"])
    return proved(request, proving, start)


def _reviewed(found: Run, request: Request, given: dict[str, Any]) -> Run:
    """The run with what somebody says of each finding."""
    from gradfix.report.question import Terminal
    from gradfix.report.screen import colours
    from gradfix.review import review

    return review(
        found, request, Terminal(sys.stdout, sys.stdin, colours(sys.stdout, given["color"], os.environ))
    )


def _memory(given: float | None) -> float:
    """The limit in bytes."""
    from gradfix.verify.launch import half_of_memory

    return given * 1e9 if given else half_of_memory()


def _interpreter(given: str | None, command: Command | None) -> str:
    """What is to run the program; where that is not what runs gradfix, one line says which, and why."""
    from gradfix.verify.interpreter import chosen

    script = command.target if command is not None and command.kind == "script" else ""
    python = chosen(given, os.path.dirname(script))
    if not python.own:
        click.echo(f"gradfix: runs {python}", err=True)
    return python.path


def _request(given: dict[str, Any]) -> Request:
    from gradfix.pool import usable_cpus
    from gradfix.session import STDIN, Request

    paths: tuple[str, ...] = given["paths"] or (".",)
    if STDIN in paths and len(paths) > 1:
        raise click.UsageError("- stands alone")
    if STDIN in paths and (given["mode"] == "add-ignore" or given["since"]):
        raise click.UsageError("standard input has no history and can't be silenced")
    if STDIN in paths and given["watch"]:
        raise click.UsageError("--watch waits for files to change; standard input is none")
    jobs: int = given["jobs"] or usable_cpus()
    name = given["stdin_filename"] or "<stdin>"
    return Request(paths, given["mode"], _plan(paths, given), jobs, given["since"], name)


def _plan(paths: Sequence[str], given: dict[str, Any]) -> Plan:
    """The plan for these paths: the file of settings that is given or nearest, with the options on top."""
    from gradfix.config import Config, read, read_file
    from gradfix.plan import plan_for

    if given.get("config_file"):
        config = read_file(Path(given["config_file"]))
    else:
        places = [Path(path).absolute() for path in paths if path != "-"] or [Path.cwd()]
        shared = Path(os.path.commonpath(places))
        config = read(shared if shared.is_dir() else shared.parent)
    options = {key: given[key] for key in given.keys() & Config.__dataclass_fields__.keys()}
    return plan_for(config.with_options(**options), follows_imports="-" not in paths)


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
