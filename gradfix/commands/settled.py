"""What several commands make of their options: one thing to do, a plan, limits, an interpreter."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from gradfix.outcome import Mode
    from gradfix.plan import Plan
    from gradfix.verify import Command, Limits

SPELT = {"review": "interactive"}


def wanted_mode(given: dict[str, Any]) -> Mode:
    """What to do with what is found: one thing at a time."""
    modes: tuple[Mode, ...] = ("diff", "apply", "add-ignore")
    wanted = [mode for mode in modes if given.pop(mode.replace("-", "_"), False)]
    if given.pop("interactive", False):
        wanted = ["review", *(mode for mode in wanted if mode != "apply")]
    if len(wanted) > 1:
        told = " and ".join(f"--{SPELT.get(mode, mode)}" for mode in wanted)
        raise click.UsageError(f"{told} exclude each other: give one of them")
    return wanted[0] if wanted else "list"


def plan_of(paths: Sequence[str], given: dict[str, Any]) -> Plan:
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


def memory_limit(given: float | None) -> float:
    """The limit in bytes."""
    from gradfix.verify.launch import half_of_memory

    return given * 1e9 if given else half_of_memory()


def limits_of(given: dict[str, Any]) -> Limits:
    """How far a run may go."""
    from gradfix.verify import Limits

    memory = memory_limit(given["memory_limit"])
    return Limits(given["max_steps"], memory=memory, allow_writes=given["verify_allow_writes"])


def interpreter(given: str | None, command: Command | None, quiet: bool = False) -> str:
    """What is to run the program; where that is not what runs gradfix, one line says which, and why."""
    from gradfix.verify.interpreter import chosen

    script = command.target if command is not None and command.kind == "script" else ""
    python = chosen(given, os.path.dirname(script))
    if not python.own and not quiet:
        click.echo(f"gradfix: runs {python}", err=True)
    return python.path


@contextmanager
def complaints() -> Iterator[None]:
    """What settings, rules, revisions and executors complain of is a wrong call."""
    from gradfix.config import ConfigError
    from gradfix.registry import RegistryError
    from gradfix.since import RevisionError
    from gradfix.task import ExecutorError

    try:
        yield
    except (ConfigError, RegistryError) as error:
        raise click.UsageError(str(error)) from error
    except RevisionError as error:
        raise click.UsageError(f"--since: {error}") from error
    except ExecutorError as error:
        raise click.UsageError(f"--executor: {error}") from error
